//! Tests of the command line of `divi-run`.
#![cfg(test)]

// Builder of bundles, shared with the runtime's tests.
#[allow(dead_code, reason = "the runtime's tests use more of it")]
#[path = "../../../runtime/tests/runtime/kit.rs"]
mod kit;

use divi_npy::{npy, npz};
use divi_runtime::{
    DType, Options, Runtime, TensorData,
    bundle::{Buffer, Mode, Profile, Source},
};
use kit::{BundleBuilder, Folder, full, scale_and_add, two_devices};
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

/// Returns standard output of a successful run, with FOLDER for its folder.
fn output(folder: &Folder, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().replace(folder.path().to_str().unwrap(), "FOLDER")
}

/// Returns standard error of a failed run, with FOLDER for its folder.
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
    fs::write(folder.join("x.npz"), npz::write(&[("x", full(3.0).view())]).unwrap()).unwrap();
    let archive = folder.join("x.npz");
    assert_eq!(output(&folder, &["--input-npz", archive.to_str().unwrap(), "--output", out, "-q"]), "");
    assert_eq!(read(), [12.0; 64]);
}

#[test]
fn outputs_are_compared_with_expected_ones() {
    let (folder, expected) = (scale_and_add().write(), Folder::new());
    let (input, wanted) = (folder.join("x.npy"), expected.path().to_str().unwrap().to_owned());
    fs::write(&input, npy::write(full(2.0).view())).unwrap();
    let options = ["--input", input.to_str().unwrap(), "--expected", &wanted];
    let with = |more: &[&'static str]| [&options[..], more].concat();
    let write = |tensor: &TensorData| fs::write(expected.join("y.npy"), npy::write(tensor.view())).unwrap();

    let message = error(&folder, &options);
    assert!(message.contains("y.npy: No such file or directory"), "{message}");
    write(&kit::tensor(&[8.0]));
    let message = error(&folder, &options);
    assert!(message.contains("y.npy: contains float [1], but output 'y' is float [64]"), "{message}");
    write(&full(8.0));
    assert!(
        output(&folder, &options).ends_with("expected  output 'y' with an error of 0.0e0 of the largest element\n")
    );
    assert_eq!(output(&folder, &with(&["-q"])), "");
    write(&full(7.0));
    let message = error(&folder, &options);
    let problem =
        "y.npy': element 0 is 8, expected 7: an error of 1.4e-1 of the largest element exceeds the tolerance of 1e-4\n";
    assert!(message.contains("output 'y' differs from") && message.ends_with(problem), "{message}");
    output(&folder, &with(&["--tolerance=0.2"]));
    for tolerance in [&["--tolerance=-1"][..], &["--tolerance", "-1"]] {
        let message = error(&folder, &with(tolerance));
        assert!(
            message.contains("invalid value '-1' for '--tolerance <X>': must be a non-negative number\n"),
            "{message}"
        );
    }
    let message = error(&folder, &with(&["--output"]).into_iter().chain([&wanted[..]]).collect::<Vec<_>>());
    assert!(message.contains("it is the folder of expected outputs itself"), "{message}");
}

/// Tests that no input is overwritten, and that nothing is written into a bundle.
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
fn missing_inputs_are_listed() {
    let folder = scale_and_add().write();
    let expected = "divi-run: error: missing inputs:\n  x: float [64]\npass them (divi-run FOLDER --input \
                    x=FILE.npy) or generate them (--random-inputs)\n";
    assert_eq!(error(&folder, &[]), expected);
    let expected = "divi-run: error: FOLDER/bundle.json: it does not begin as a NumPy file\n";
    assert_eq!(error(&folder, &["--input", folder.join("bundle.json").to_str().unwrap()]), expected);
    let x = folder.join("x.npy");
    fs::write(&x, npy::write(kit::tensor(&[1.0]).view())).unwrap();
    let expected = "divi-run: error: input 'x' must be float [64], and the one given is float [1]\n";
    assert_eq!(error(&folder, &["--input", x.to_str().unwrap()]), expected);
    let expected = "divi-run: error: unknown input 'z'; expected one of 'x'\n";
    assert_eq!(error(&folder, &["--random-inputs", "--input", &format!("z={}", x.display())]), expected);
}

#[test]
fn random_inputs_depend_on_the_seed() {
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
fn pipelines_report_their_throughput() {
    let mut builder = two_devices(Mode::Pipeline, false);
    builder.bundle.objective.predicted_us = Some(100.0);
    let folder = builder.write();
    let text = output(&folder, &["--random-inputs", "--repeat", "20"]);
    assert!(text.contains("throughput ") && text.contains("; predicted 10000.00 inputs/s ("), "{text}");
    let text = output(&folder, &["--random-inputs", "--repeat", "20", "--json", "--in-flight", "2"]);
    let measured: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&measured["runs"], &measured["in_flight"], &measured["mode"]),
        (&json!(20), &json!(2), &json!("pipeline"))
    );
    assert!(measured["throughput_per_s"].as_f64().unwrap() > 0.0);
    // Each launch and transfer has the times of the same runs.
    let steps = measured["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["runs_us"].as_array().unwrap().len() == 20), "{steps:?}");
    let launches = steps.iter().filter_map(|step| step["device"].as_str());
    assert_eq!(launches.collect::<Vec<_>>(), ["cpu0", "cpu1"]);
    let links = steps.iter().filter_map(|step| Some((step["from"].as_str()?, step["to"].as_str()?)));
    assert_eq!(links.collect::<Vec<_>>(), [("cpu0", "cpu1"), ("cpu1", "cpu0")]);
    assert!(measured["peak_memory_bytes"].as_u64().unwrap() > 0);
    let text = output(&folder, &["--random-inputs", "--info"]);
    assert!(text.contains("memory    ") && text.contains("; loaded in "), "{text}");
}

#[test]
fn bundles_are_described_and_checked() {
    let folder = two_devices(Mode::Pipeline, false).write();
    let memory = "device    cpu0: 5.50 KiB of 1.00 GiB: weights 0.00 KiB, arena 4.00 KiB, values 1.50 KiB\n";
    let expected = "model     test\ncode      kernels.so (elf-x86-64)\nobjective pipeline\ninput     x: float [64]\noutput    y: float [64]\n\
                    stages    2 with 2 tasks in 4 calls; 2 transfers, 2 constants\n";
    let text = output(&folder, &["--info"]);
    assert!(text.starts_with(&format!("{expected}{memory}")), "{text}");
    let text = output(&folder, &["--check"]);
    assert!(text.starts_with("FOLDER: valid, 2 files, ") && text.contains(memory), "{text}");
    let weights = folder.join("weights.bin");
    let mut bytes = fs::read(&weights).unwrap();
    bytes[0] ^= 1;
    fs::write(&weights, bytes).unwrap();
    assert_eq!(
        error(&folder, &["--check"]),
        "divi-run: error: 'FOLDER/weights.bin' was modified or damaged: its SHA-256 does not match the bundle; compile the \
         model again\n"
    );
}

/// Builds `y = x + w` with `w` in a file of the model, in the bundle's folder or at another path.
fn with_model_file(path: &str, model_folder: &str, folder: Folder) -> Folder {
    let mut builder = BundleBuilder::new(Mode::Latency, 1);
    let weight = builder.constant(256, Source::File { path: path.into(), offset: 64 });
    let (x, y) = (builder.input("x", 0), builder.value("y", 0));
    let add = kit::call("add", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(weight)]);
    builder.launch("main", vec![add], &[x], &[y]);
    builder.output("y", y);
    builder.bundle.model_folder = model_folder.into();
    builder.write_into(folder)
}

#[test]
fn files_of_the_model_are_checked() {
    let folder = Folder::new();
    let model = folder.join("model.bin");
    fs::write(&model, [0; 512]).unwrap();
    let folder = with_model_file("model.bin", "", folder);
    let is_valid = || {
        assert!(output(&folder, &["--check"]).starts_with("FOLDER: valid, 3 files, "));
        output(&folder, &["--random-inputs", "-q"]);
        output(&folder, &["--random-inputs", "-q", "--map-weights"]);
    };
    let is_rejected = |check: &str, load: &str| {
        assert_eq!(error(&folder, &["--check"]), format!("divi-run: error: {check}\n"));
        assert_eq!(error(&folder, &["--random-inputs"]), format!("divi-run: error: {load}\n"));
        assert_eq!(error(&folder, &["--random-inputs", "--map-weights"]), format!("divi-run: error: {load}\n"));
    };
    is_valid();
    let change = |index: usize| {
        let mut bytes = [0; 512];
        bytes[index] = 1;
        fs::write(&model, bytes).unwrap();
    };
    // Only bytes that constants use are checked.
    [0, 63, 320, 511].into_iter().for_each(|index| {
        change(index);
        is_valid();
    });
    let damaged =
        |reason: &str| format!("'FOLDER/model.bin' was modified or damaged: {reason}; compile the model again");
    for index in [64, 100, 319] {
        change(index);
        is_rejected(
            &damaged("its SHA-256 does not match the bundle"),
            &damaged("its checksum does not match the bundle"),
        );
    }
    fs::write(&model, [0; 511]).unwrap();
    let truncated = damaged("it has 511 bytes instead of 512: it is truncated");
    is_rejected(&truncated, &truncated);
    fs::remove_file(&model).unwrap();
    let missing = "cannot read 'FOLDER/model.bin': No such file or directory (os error 2)";
    is_rejected(missing, missing);
    assert!(Command::new("mkfifo").arg(&model).status().unwrap().success());
    let pipe = "cannot read 'FOLDER/model.bin': it is not a regular file";
    is_rejected(pipe, pipe);
}

#[test]
fn weights_stay_in_folders_that_are_allowed() {
    let other = Folder::new();
    fs::write(other.join("model.bin"), [0; 512]).unwrap();
    let name = format!("../{}", other.path().file_name().unwrap().to_str().unwrap());
    let path = format!("{name}/model.bin");
    let folder = with_model_file(&path, &name, Folder::new());
    output(&folder, &["--random-inputs", "-q"]);
    output(&folder, &["--check", "-q"]);
    let folder = with_model_file(&path, "", Folder::new());
    let outside = format!(
        "divi-run: error: 'FOLDER/{path}' is outside the bundle's folder and its model's: allow another folder for weights \
         with --allow-path\n"
    );
    assert_eq!(error(&folder, &["--random-inputs"]), outside);
    assert_eq!(error(&folder, &["--check"]), outside);
    let allowed = other.path().to_str().unwrap();
    output(&folder, &["--random-inputs", "-q", "--allow-path", allowed]);
    output(&folder, &["--check", "-q", "--allow-path", allowed]);
    // Symbolic links do not lead outside either.
    let folder = Folder::new();
    std::os::unix::fs::symlink(other.join("model.bin"), folder.join("model.bin")).unwrap();
    let folder = with_model_file("model.bin", "", folder);
    assert_eq!(error(&folder, &["--random-inputs"]), outside.replace(&path, "model.bin"));
}

#[test]
fn truncating_a_file_in_use_does_not_affect_a_loaded_bundle() {
    let folder = Folder::new();
    let model = folder.join("model.bin");
    fs::write(&model, [0; 512]).unwrap();
    let folder = with_model_file("model.bin", "", folder);
    let runtime = Runtime::load(folder.path(), Options::default()).unwrap();
    fs::write(&model, []).unwrap();
    fs::write(folder.join("weights.bin"), []).unwrap();
    let outputs = runtime.run(&[("x", full(3.0).view())]).unwrap();
    assert_eq!(kit::numbers(&outputs, "y"), [3.0; 64]);
}

#[test]
fn requests_and_inputs_that_exceed_memory_are_rejected() {
    let folder = scale_and_add().write();
    for requests in ["4294967296", "18446744073709551615", "3000000"] {
        let text = error(&folder, &["--random-inputs", "--in-flight", requests]);
        assert!(text.starts_with(&format!("divi-run: error: {requests} requests in flight take ")), "{text}");
        assert!(text.ends_with(" are available: allow fewer, with --in-flight\n"), "{text}");
    }
    output(&folder, &["--random-inputs", "--in-flight", "100", "-q"]);
    let expected = "divi-run: error: /dev/zero: it has more than 132096 bytes, too many for the model's inputs\n";
    assert_eq!(error(&folder, &["--input", "x=/dev/zero"]), expected);
    let archive = folder.join("x.npz");
    let many = TensorData::zeroed(DType::F32, &[1 << 16]).unwrap();
    fs::write(&archive, npz::write(&[("z", full(1.0).view())]).unwrap()).unwrap();
    let expected =
        format!("divi-run: error: {}: entry 'z.npy': unknown input 'z'; expected one of 'x'\n", archive.display());
    let text = error(&folder, &["--input-npz", archive.to_str().unwrap()]);
    assert_eq!(text, expected.replace(folder.path().to_str().unwrap(), "FOLDER"));
    fs::write(&archive, npz::write(&[("x", many.view())]).unwrap()).unwrap();
    let text = error(&folder, &["--input-npz", archive.to_str().unwrap()]);
    assert!(text.contains("entry 'x.npy': it has 262272 bytes, more than any file of float [64]"), "{text}");
}

#[test]
fn traces_and_profiles_are_written() {
    let mut builder = scale_and_add();
    let entry = json!({"ops": ["Mul", "Add"], "in": [[64]], "out": [64], "dtype": "f32"});
    builder.bundle.stages[0].tasks[0].profile = Some(Profile { batch: 1, entry });
    let folder = builder.write();
    let outputs = Folder::new();
    let (trace, profile) = (outputs.join("trace.json"), outputs.join("profile.json"));
    let [trace, profile] = [&trace, &profile].map(|path| path.to_str().unwrap());
    output(&folder, &["--random-inputs", "--repeat", "5", "--trace", trace, "--profile-out", profile]);
    let read = |path| serde_json::from_str::<Value>(&fs::read_to_string(path).unwrap()).unwrap();
    let spans = read(trace)["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").count();
    assert_eq!(spans, 10);
    assert_eq!(read(profile)["entries"][0]["ops"], json!(["Mul", "Add"]));
    let folder = scale_and_add().write();
    let expected = "divi-run: error: --profile-out: the bundle does not describe what its tasks compute\n";
    assert_eq!(error(&folder, &["--random-inputs", "--profile-out", profile]), expected);
}

#[test]
fn interrupts_end_the_program_cleanly() {
    let folder = two_devices(Mode::Pipeline, true).write();
    let mut command = command(&folder, &["--random-inputs", "--repeat", "1000000", "-q"]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    // Long enough to be running; otherwise the program ends the same way.
    thread::sleep(Duration::from_millis(300));
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn invalid_arguments_are_rejected() {
    let folder = scale_and_add().write();
    let rejected = |arguments: &[&str], expected: &str| {
        let message = error(&folder, arguments);
        assert!(message.starts_with(&format!("divi-run: error: {expected}")), "{message}");
        assert!(message.ends_with("\n\nFor more information, try '--help'.\n"), "{message}");
    };
    rejected(&["--repeat", "0"], "invalid value '0' for '--repeat <N>': must be a positive integer");
    rejected(&["--threads", "many"], "invalid value 'many' for '--threads <N>': invalid digit found in string");
    rejected(&["--cold", "warm"], "invalid value 'warm' for '--cold <WHEN>'\n  [possible values: overlap, copy-first]");
    rejected(&["--fast"], "unexpected argument '--fast' found");
    rejected(
        &["--random-input"],
        "unexpected argument '--random-input' found\n\n  tip: a similar argument exists: '--random-inputs'",
    );
    rejected(&["more"], "unexpected argument 'more' found");
    let alone = Command::new(env!("CARGO_BIN_EXE_divi-run")).output().unwrap();
    assert_eq!((alone.status.code(), alone.stdout.len()), (Some(1), 0));
    let message = String::from_utf8(alone.stderr).unwrap();
    assert!(
        message.starts_with("divi-run: error: the following required arguments were not provided:\n  <BUNDLE>\n"),
        "{message}"
    );
}

/// Tests that the last value of a repeated option counts.
#[test]
fn the_last_value_counts() {
    let folder = scale_and_add().write();
    let text = output(&folder, &["--random-inputs", "--repeat=7", "--repeat", "2", "--json", "--json"]);
    let measured: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(measured["runs"], json!(2));
    assert!(output(&folder, &["--help"]).contains("\nUsage: divi-run [OPTIONS] <BUNDLE>\n"));
}
