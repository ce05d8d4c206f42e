//! `divi-run` as users call it.
#![cfg(test)]

// What makes bundles for the runtime's own tests.
#[allow(dead_code, reason = "the runtime's tests use more of it")]
#[path = "../../../runtime/tests/runtime/kit.rs"]
mod kit;

use divi_runtime::{
    bundle::{Mode, Profile},
    npy, npz,
};
use kit::{Folder, full, scale_and_add, two_devices};
use serde_json::{Value, json};
use std::{
    fs,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_divi-run"));
    command.arg(folder.path()).args(arguments);
    command
}

fn run(folder: &Folder, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// What it prints if all is well; its folder is called FOLDER.
fn output(folder: &Folder, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().replace(folder.path().to_str().unwrap(), "FOLDER")
}

/// What it says if something is not.
fn error(folder: &Folder, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap().replace(folder.path().to_str().unwrap(), "FOLDER")
}

#[test]
fn outputs_are_written_as_files() {
    let (folder, outputs) = (scale_and_add().write(), Folder::new());
    let (input, out) = (folder.join("x.npy"), outputs.join("out"));
    let (input, out) = (input.to_str().unwrap(), out.to_str().unwrap());
    fs::write(input, npy::write(full(2.0).view())).unwrap();
    let read = || npy::read(&fs::read(outputs.join("out/y.npy")).unwrap()).unwrap().to_f32().unwrap();
    for input in [format!("x={input}"), input.to_owned()] {
        let text = output(&folder, &["--input", &input, "--output", out, "--repeat", "3"]);
        assert!(text.starts_with("latency   median "), "{text}");
        assert_eq!(read(), [8.0; 64]);
        fs::remove_file(outputs.join("out/y.npy")).unwrap();
    }
    fs::write(folder.join("x.npz"), npz::write(&[("x", full(3.0).view())])).unwrap();
    let archive = folder.join("x.npz");
    assert_eq!(output(&folder, &["--input-npz", archive.to_str().unwrap(), "--output", out, "-q"]), "");
    assert_eq!(read(), [12.0; 64]);
}

/// Nothing that is read is written over, and nothing is put into a bundle.
#[test]
fn outputs_do_not_replace_inputs() {
    let (folder, outputs) = (scale_and_add().write(), Folder::new());
    let input = outputs.join("y.npy");
    fs::write(&input, npy::write(full(2.0).view())).unwrap();
    let [bundle, places, input] = [folder.path(), outputs.path(), &input].map(|path| path.to_str().unwrap().to_owned());
    let description = fs::read(folder.join("bundle.json")).unwrap();
    for (option, path, expected) in [
        ("--output", bundle.clone(), "cannot write 'FOLDER': it is the bundle itself"),
        ("--output", format!("{bundle}/out"), "cannot write 'FOLDER/out': it is in the bundle 'FOLDER'"),
        ("--trace", format!("{bundle}/bundle.json"), "cannot write 'FOLDER/bundle.json': it is in the bundle 'FOLDER'"),
        ("--profile-out", format!("{bundle}/p.json"), "cannot write 'FOLDER/p.json': it is in the bundle 'FOLDER'"),
        ("--choices", format!("{bundle}/bundle.json"), "cannot write 'FOLDER/bundle.json': it is a file of the bundle"),
        ("--output", places.clone(), "y.npy': it is an input itself: choose another name"),
        ("--trace", input.clone(), "y.npy': it is an input itself: choose another name"),
    ] {
        let message = error(&folder, &["--input", &input, option, &path]);
        assert!(message.contains(expected), "{message}");
    }
    let trace = outputs.join("trace.json");
    let trace = trace.to_str().unwrap();
    let message = error(&folder, &["--input", &input, "--trace", trace, "--profile-out", trace]);
    assert!(message.contains("--trace and --profile-out both write"), "{message}");
    assert_eq!(fs::read(folder.join("bundle.json")).unwrap(), description);
    assert_eq!(fs::read(&input).unwrap(), npy::write(full(2.0).view()));
    assert_eq!(fs::read_dir(outputs.path()).unwrap().count(), 1);
}

#[test]
fn inputs_that_are_missing_are_listed() {
    let folder = scale_and_add().write();
    let expected = "divi-run: error: these inputs are missing:\n  x: float [64]\ngive them (divi-run FOLDER --input \
                    x=FILE.npy) or have them made up (--random-inputs)\n";
    assert_eq!(error(&folder, &[]), expected);
    let expected = "divi-run: error: FOLDER/bundle.json: it does not begin as a NumPy file\n";
    assert_eq!(error(&folder, &["--input", folder.join("bundle.json").to_str().unwrap()]), expected);
    let x = folder.join("x.npy");
    fs::write(&x, npy::write(kit::tensor(&[1.0]).view())).unwrap();
    let expected = "divi-run: error: input 'x' must be float [64], and the one given is float [1]\n";
    assert_eq!(error(&folder, &["--input", x.to_str().unwrap()]), expected);
    let expected = "divi-run: error: input 'z' is none of the model's: 'x'\n";
    assert_eq!(error(&folder, &["--random-inputs", "--input", &format!("z={}", x.display())]), expected);
}

#[test]
fn inputs_that_are_made_up_depend_on_the_seed() {
    let folder = scale_and_add().write();
    let run = |seed: &str| {
        let outputs = Folder::new();
        let out = outputs.join("out");
        output(&folder, &[seed, "--output", out.to_str().unwrap()]);
        fs::read(out.join("y.npy")).unwrap()
    };
    assert_eq!(run("--random-inputs"), run("--random-inputs=0"));
    assert_ne!(run("--random-inputs=1"), run("--random-inputs=2"));
}

#[test]
fn pipelines_say_their_throughput() {
    let mut maker = two_devices(Mode::Pipeline, false);
    maker.bundle.objective.predicted_us = Some(100.0);
    let folder = maker.write();
    let text = output(&folder, &["--random-inputs", "--repeat", "20"]);
    assert!(text.contains("throughput ") && text.contains("; predicted 10000.00 inputs/s ("), "{text}");
    let text = output(&folder, &["--random-inputs", "--repeat", "20", "--json", "--in-flight", "2"]);
    let measured: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&measured["runs"], &measured["in_flight"], &measured["mode"]),
        (&json!(20), &json!(2), &json!("pipeline"))
    );
    assert!(measured["throughput_per_s"].as_f64().unwrap() > 0.0);
    assert!(measured["peak_memory_bytes"].as_u64().unwrap() > 0);
    let text = output(&folder, &["--random-inputs", "--info"]);
    assert!(text.contains("memory    ") && text.contains(" at most; loaded in "), "{text}");
}

#[test]
fn bundles_are_described_and_checked() {
    let folder = two_devices(Mode::Pipeline, false).write();
    let memory = "device    cpu0: 5.50 KiB of 1.00 GiB: weights 0.00 KiB, arena 4.00 KiB, values 1.50 KiB\n";
    let expected = "model     test\ntarget    x86-64-v3\nobjective pipeline\ninput     x: float [64]\noutput    y: float [64]\n\
                    stages    2 with 2 tasks in 4 calls; 2 transfers, 2 constants\n";
    let text = output(&folder, &["--info"]);
    assert!(text.starts_with(&format!("{expected}{memory}")), "{text}");
    let text = output(&folder, &["--check"]);
    assert!(text.starts_with("FOLDER: sound, 2 files, ") && text.contains(memory), "{text}");
    let weights = folder.join("weights.bin");
    let mut bytes = fs::read(&weights).unwrap();
    bytes[0] ^= 1;
    fs::write(&weights, bytes).unwrap();
    assert_eq!(
        error(&folder, &["--check"]),
        "divi-run: error: 'FOLDER/weights.bin' is not as it was written: its contents do not have the hash that the bundle \
         names; compile the model again\n"
    );
}

#[test]
fn traces_and_profiles_are_written() {
    let mut maker = scale_and_add();
    let entry = json!({"ops": ["Mul", "Add"], "in": [[64]], "out": [64], "dtype": "f32"});
    maker.bundle.stages[0].tasks[0].profile = Some(Profile { batch: 1, entry });
    let folder = maker.write();
    let outputs = Folder::new();
    let (trace, profile) = (outputs.join("trace.json"), outputs.join("profile.json"));
    let [trace, profile] = [&trace, &profile].map(|path| path.to_str().unwrap());
    output(&folder, &["--random-inputs", "--repeat", "5", "--trace", trace, "--profile-out", profile]);
    let read = |path| serde_json::from_str::<Value>(&fs::read_to_string(path).unwrap()).unwrap();
    let spans = read(trace)["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").count();
    assert_eq!(spans, 10);
    assert_eq!(read(profile)["entries"][0]["ops"], json!(["Mul", "Add"]));
    let folder = scale_and_add().write();
    let expected = "divi-run: error: --profile-out: the bundle says of none of its tasks what they compute\n";
    assert_eq!(error(&folder, &["--random-inputs", "--profile-out", profile]), expected);
}

#[test]
fn interrupts_end_it_cleanly() {
    let folder = two_devices(Mode::Pipeline, true).write();
    let mut command = command(&folder, &["--random-inputs", "--repeat", "1000000", "-q"]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    // Long enough to be running; if it is not, it ends no less.
    thread::sleep(Duration::from_millis(300));
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn wrong_arguments_are_refused() {
    let folder = scale_and_add().write();
    let refused = |arguments: &[&str], expected: &str| {
        assert_eq!(error(&folder, arguments), format!("divi-run: error: {expected}\n"));
    };
    refused(&["--repeat", "0"], "--repeat must be at least 1");
    refused(&["--threads", "many"], "--threads=many: invalid digit found in string");
    refused(&["--cold", "warm"], "--cold=warm: it is 'overlap' or 'copy-first'");
    refused(&["--fast"], "invalid option '--fast'; see divi-run --help");
}
