//! C program, compiled with the header and linked with the library.
#![cfg(test)]

// Test bundles, shared with the runtime's own tests.
#[allow(dead_code, reason = "the runtime's tests use more of it")]
#[path = "../../tests/runtime/kit.rs"]
mod kit;

use kit::{Folder, scale_and_add};
use std::{path::Path, process::Command};

/// Compiles a program. Cargo puts the library into the folder of the test binary.
fn compile(source: &str, folder: &Folder) -> Command {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let test = std::env::current_exe().unwrap();
    let libraries = test.parent().unwrap();
    let program = folder.join("program");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-o"]).arg(&program);
    compiler.arg(here.join(source)).arg("-I").arg(here.join("../include"));
    compiler.arg("-L").arg(libraries).args(["-ldivirun"]);
    assert!(compiler.status().unwrap().success());
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", libraries);
    command
}

#[test]
fn c_program_runs_a_bundle() {
    let (bundle, folder) = (scale_and_add().write(), Folder::new());
    let output = compile("tests/program.c", &folder).arg(bundle.path()).output().unwrap();
    let expected = "1 1 x float 1 64 256\n40\n80\n\
                    error: input 'x' must be float [64], and the one given is float [64] with 4 bytes instead of 256\n\
                    error: the model has 1 inputs, and 0 are given\n";
    assert_eq!((String::from_utf8(output.stdout).unwrap(), output.status.code()), (expected.to_owned(), Some(0)));
    let output = compile("tests/program.c", &folder).arg("nowhere").output().unwrap();
    let expected = "error: cannot read 'nowhere/bundle.json': No such file or directory (os error 2)\n";
    assert_eq!((String::from_utf8(output.stdout).unwrap(), output.status.code()), (expected.to_owned(), Some(1)));
}

#[test]
fn the_example_runs_a_bundle() {
    let (bundle, folder) = (scale_and_add().write(), Folder::new());
    let output = compile("../../examples/run_bundle.c", &folder).arg(bundle.path()).output().unwrap();
    // The output is a multiple of the input, which is zero.
    let expected = "y: 0.0000 0.0000 0.0000 0.0000\n";
    assert_eq!((String::from_utf8(output.stdout).unwrap(), output.status.code()), (expected.to_owned(), Some(0)));
}
