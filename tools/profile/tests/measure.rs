//! Tests of the command line of `divi-profile measure`. No test depends on measured times.

use divi_cost::{Profile, System, profile::Entry};
use divi_onnx::{DType, Dim, TensorType};
use divi_passes::{
    export::proto::{tensor, tensor_type, value_info},
    import::proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto},
};
use prost::Message;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Creates an empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("scratch")).expect("the folder is ours");
    folder
}

/// Runs `divi-profile measure` in a folder, with `scratch` as its temporary folder.
fn call(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_divi-profile"))
        .arg("measure")
        .args(line.split_whitespace())
        .current_dir(folder)
        .env("TMPDIR", folder.join("scratch"))
        .output()
        .expect("the program is built")
}

fn check_scratch(folder: &Path) {
    let left = fs::read_dir(folder.join("scratch")).expect("the folder is there");
    assert_eq!(left.count(), 0, "nothing is left behind");
}

/// Returns standard error of a successful call.
fn succeeds(folder: &Path, line: &str) -> String {
    let output = call(folder, line);
    let stderr = String::from_utf8(output.stderr).expect("it prints UTF-8");
    assert!(output.status.success(), "{stderr}");
    assert!(output.stdout.is_empty());
    check_scratch(folder);
    stderr
}

fn fails(folder: &Path, line: &str, expected: &str) {
    let output = call(folder, line);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).expect("it prints UTF-8");
    assert!(stderr.starts_with(&format!("divi-profile: error: {expected}")), "{stderr}");
    check_scratch(folder);
}

/// Writes a model with a chain of operators on images of 8 channels and a dynamic batch; `Conv`s are 1x1.
fn write_model(path: &Path, ops: &[&str]) {
    let image = TensorType::new(DType::F32, vec![Dim::Unknown, Dim::Known(8), Dim::Known(6), Dim::Known(6)]);
    let declared = |name: &str| value_info(name, Some(tensor_type(&image, |_| None)));
    let name = |index: usize| format!("v{index}");
    let nodes = ops.iter().enumerate().map(|(index, op)| NodeProto {
        name: Some(format!("node{index}")),
        op_type: Some((*op).to_owned()),
        input: [name(index)].into_iter().chain((*op == "Conv").then(|| "w".to_owned())).collect(),
        output: vec![name(index + 1)],
        ..NodeProto::default()
    });
    let weights: Vec<u8> = (0..64).flat_map(|_| 0.125f32.to_le_bytes()).collect();
    let graph = GraphProto {
        name: Some("graph".to_owned()),
        input: vec![declared("v0")],
        initializer: vec![tensor("w", DType::F32, &[8, 8, 1, 1], weights.into())],
        node: nodes.collect(),
        output: vec![declared(&name(ops.len()))],
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: Some(10),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(21) }],
        graph: Some(graph),
        ..ModelProto::default()
    };
    fs::write(path, model.encode_to_vec()).expect("the folder is there");
}

fn entries(path: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(path).expect("the profile is written");
    Profile::from_json(&text).expect("the profile can be read").entries().to_vec()
}

/// Returns the operators of entries with their batch sizes and counts.
fn outline(entries: &[Entry]) -> Vec<(String, Vec<u64>, u64)> {
    let ops = |entry: &Entry| entry.ops.iter().map(|op| &op.name[..]).collect::<Vec<_>>().join("+");
    entries.iter().map(|entry| (ops(entry), entry.micros.keys().copied().collect(), entry.count)).collect()
}

/// Tests that a model is measured once, another one extends the profile, and the written system uses it.
#[test]
fn existing_times_are_not_measured_again() {
    let folder = folder("resumes");
    write_model(&folder.join("a.onnx"), &["Conv", "Relu", "Softmax", "Conv", "Relu"]);
    write_model(&folder.join("b.onnx"), &["Softmax", "GlobalAveragePool"]);
    let options = "--system=one.toml --batch=2,1 --time-limit=0 -o p.json";
    let device = "[[device]]\nid = \"cpu0\"\nkind = \"cpu\"\nmemory = \"1 GiB\"\nthreads = 1\n";
    fs::write(folder.join("one.toml"), device).unwrap();
    let said = succeeds(&folder, &format!("a.onnx {options}"));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].starts_with("divi-profile: a, batch 1, 1 thread: 3 tasks take "), "{said}");
    assert!(lines[1].ends_with(", 2 new entries"), "{said}");
    let first = entries(&folder.join("p.json"));
    let expected = [("Conv+Relu", 2), ("Softmax", 1)].map(|(op, count)| (op.to_owned(), vec![1, 2], count));
    assert_eq!(outline(&first), expected);
    assert_eq!(first[0].inputs, [[1, 8, 6, 6]], "entries are at batch one");

    let text = fs::read_to_string(folder.join("p.json")).unwrap();
    let said = succeeds(&folder, &format!("a.onnx {options}"));
    let known =
        |batch| format!("divi-profile: a, batch {batch}, 1 thread: skipped, all 3 tasks are already measured\n");
    assert_eq!(said, known(1) + &known(2));
    assert_eq!(fs::read_to_string(folder.join("p.json")).unwrap(), text);

    assert_eq!(succeeds(&folder, &format!("-q b.onnx {options} --system-out=system.toml")), "");
    let second = entries(&folder.join("p.json"));
    assert_eq!(second[0], first[0]);
    assert_eq!(second[1].micros, first[1].micros, "existing times are kept");
    let outline = outline(&second);
    assert_eq!(outline[1], ("Softmax".to_owned(), vec![1, 2], 2), "two batches of a model count once");
    assert_eq!(outline[2], ("GlobalAveragePool".to_owned(), vec![1, 2], 1));
    let system = System::load(folder.join("system.toml").to_str().unwrap()).unwrap();
    assert_eq!(system.devices[0].batch_sizes, [1, 2]);
    assert_eq!(system.devices[0].profile, Some(folder.join("p.json")));
}

/// Tests that links need no model, and that both directions are measured together.
#[test]
fn links_are_measured() {
    if std::thread::available_parallelism().map_or(1, |count| count.get()) < 2 {
        return;
    }
    let folder = folder("links");
    fs::create_dir(folder.join("systems")).unwrap();
    let said = succeeds(&folder, "--system=cpu-2 --time-limit=0 -o p.json --system-out=systems/out.toml");
    assert!(said.starts_with("divi-profile: ") && said.contains("cpu0 to cpu1, cpu1 to cpu0: "), "{said}");
    let system = System::load(folder.join("systems/out.toml").to_str().unwrap()).unwrap();
    assert_eq!((system.devices.len(), system.links.len()), (2, 2));
    assert_eq!(system.links[0].bandwidth, system.links[1].bandwidth);
    assert_eq!(system.devices[0].profile, None, "no model, no profile");
}

#[test]
fn errors_leave_nothing_behind() {
    let folder = folder("errors");
    write_model(&folder.join("a.onnx"), &["Relu"]);
    write_model(&folder.join("odd.onnx"), &["Frobnicate"]);
    fs::write(folder.join("broken.onnx"), [8, 7, 18]).unwrap();
    let gpu = "[[device]]\nid = \"gpu0\"\nkind = \"cuda\"\nmemory = \"1 GiB\"\narch = \"sm_70\"\n";
    fs::write(folder.join("gpu.toml"), gpu).unwrap();
    fs::write(folder.join("other.json"), Profile::new("d", "r", vec![]).to_json()).unwrap();
    let quick = "--time-limit=0 -o p.json";
    fails(&folder, "a.onnx", "measure needs -o PROFILE.json, the profile to extend\n");
    fails(&folder, "a.onnx -o -", "-o must be a file: measure extends an existing profile\n");
    fails(&folder, "-o p.json", "measure needs a model, or --system-out to measure links only (see --help)\n");
    fails(&folder, &format!("none.onnx {quick}"), "none.onnx: No such file or directory (os error 2)\n");
    fails(&folder, "a.onnx -o no/p.json", "no/p.json: 'no' is not a folder\n");
    fails(&folder, &format!("a.onnx --system=none {quick}"), "'none' is neither a file nor a preset");
    fails(&folder, &format!("a.onnx --cpu=z80 {quick}"), "unsupported processor 'z80'");
    let not_here = "system 'gpu.toml' has no device that can be measured on this machine: gpu0 is not measured: ";
    fails(&folder, &format!("a.onnx --system=gpu.toml {quick}"), not_here);
    fails(&folder, &format!("broken.onnx {quick}"), "broken.onnx: not an ONNX model");
    fails(&folder, &format!("odd.onnx {quick} --system-out=s.toml"), "odd.onnx: ");
    fails(&folder, "a.onnx -o other.json", "other.json: measured on d with r, not on CPU, ");
    fails(&folder, "a.onnx -o a.onnx", "cannot write 'a.onnx': it is an input itself");
    assert!(!folder.join("p.json").exists() && !folder.join("s.toml").exists());
}
