//! Runs the tests again under valgrind to detect memory errors and leaks.

use std::process::Command;

/// Skipped tests: they compile, fork or only wait, or do not test the runtime's own code.
const SKIPPED: &[&str] = &["valgrind", "files::", "rejections::", "mutants"];

fn run(tool: &[&str]) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("skipped: valgrind is not installed (run tools/setup)");
        return;
    }
    let mut command = Command::new("valgrind");
    command.args(tool).args(["--quiet", "--error-exitcode=9", "--fair-sched=yes"]);
    command.arg(std::env::current_exe().unwrap()).args(["--test-threads=1", "--quiet", "--nocapture"]);
    SKIPPED.iter().for_each(|skipped| {
        command.args(["--skip", skipped]);
    });
    let output = command.env("DIVI_REQUESTS", "100").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

#[test]
fn there_are_no_memory_errors() {
    run(&["--tool=memcheck", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
}
