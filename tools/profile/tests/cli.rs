//! Tests of the command line of `divi-profile`.

use std::process::{Command, Output, Stdio};
use std::{fs, io::Write, path::PathBuf};

const OPERATORS: &str = "../../test/profiles/h200_xeon16_operators.json";

fn call(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_divi-profile"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is built");
    // A program that exits before it reads closes the pipe.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

/// Returns standard output and standard error of a successful call.
fn succeeds(arguments: &[&str], input: &str) -> (String, String) {
    let output = call(arguments, input);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints UTF-8");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{stderr}");
    (stdout, stderr)
}

fn fails(arguments: &[&str], input: &str, expected: &str) {
    let output = call(arguments, input);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("divi-profile: error: {expected}\n"));
}

/// Checks that arguments are rejected before any file is read, with this message and a reference to the help.
fn misses(arguments: &[&str], expected: &str) {
    let output = call(arguments, "");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with(&format!("divi-profile: error: {expected}")), "{stderr}");
    assert!(stderr.ends_with("\n\nFor more information, try '--help'.\n"), "{stderr}");
}

/// Returns the path of a file that no other test writes.
fn temporary(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Builds a table of one model with these nodes, each measured once.
fn table(nodes: &[&str]) -> String {
    let nodes: Vec<String> = nodes
        .iter()
        .enumerate()
        .map(|(index, node)| {
            format!(r#""n{index}": {{{node}, "preds": [], "cuda_us": {{"1": 5}}, "cpu_us": {{"1": 7}}}}"#)
        })
        .collect();
    format!(r#"{{"gpu": "a GPU", "cpu_threads": 2, "models": {{"m": {{{}}}}}}}"#, nodes.join(", "))
}

/// Returns the converted entries of nodes, one per line, without their common part.
fn entries(nodes: &[&str]) -> Vec<String> {
    let (stdout, _) = succeeds(&["convert", "-"], &table(nodes));
    let lines = stdout.lines().filter(|line| line.starts_with("    "));
    lines.map(|line| line.trim().trim_end_matches(',').replace(r#","dtype":"f32","us":{"1":5.0}}"#, "")).collect()
}

#[test]
fn operators_are_converted_to_onnx() {
    let becomes = |node: &str, expected: &str| assert_eq!(entries(&[node]), [expected], "{node}");
    becomes(
        r#""op": "Conv2d", "inputs": [[1,3,224,224]], "output": [1,64,112,112], "params": 37632,
           "attrs": {"kernel": [7,7], "stride": [2,2], "padding": [3,3], "groups": 1, "dilation": [1,1]}"#,
        r#"{"ops":["Conv"],"attrs":{"kernel_shape":[7,7],"strides":[2,2],"pads":[3,3,3,3],"dilations":[1,1],"group":1},"in":[[1,3,224,224]],"weights":[[64,3,7,7]],"out":[1,64,112,112]"#,
    );
    becomes(
        r#""op": "Conv2d", "inputs": [[1,96,14,14]], "output": [1,96,14,14], "params": 19200,
           "attrs": {"kernel": [7,7], "stride": [1,1], "padding": [3,3], "groups": 96, "dilation": [1,1]}"#,
        r#"{"ops":["Conv"],"attrs":{"kernel_shape":[7,7],"strides":[1,1],"pads":[3,3,3,3],"dilations":[1,1],"group":96},"in":[[1,96,14,14]],"weights":[[96,1,7,7],[96]],"out":[1,96,14,14]"#,
    );
    becomes(
        r#""op": "Linear", "inputs": [[1,512]], "output": [1,10], "params": 20520"#,
        r#"{"ops":["Gemm"],"attrs":{"transB":1},"in":[[1,512]],"weights":[[10,512],[10]],"out":[1,10]"#,
    );
    becomes(
        r#""op": "Linear", "inputs": [[1,7,7,512]], "output": [1,7,7,10], "params": 20520"#,
        r#"{"ops":["MatMul","Add"],"attrs":{},"in":[[1,7,7,512]],"weights":[[512,10],[10]],"out":[1,7,7,10]"#,
    );
    becomes(
        r#""op": "MaxPool2d", "inputs": [[1,64,112,112]], "output": [1,64,56,56], "attrs": {"kernel": 3, "stride": 2, "padding": 0}"#,
        r#"{"ops":["MaxPool"],"attrs":{"kernel_shape":[3,3],"strides":[2,2],"pads":[0,0,0,0],"ceil_mode":1},"in":[[1,64,112,112]],"weights":[],"out":[1,64,56,56]"#,
    );
    becomes(
        r#""op": "avg_pool2d", "inputs": [[1,192,35,35]], "output": [1,192,35,35]"#,
        r#"{"ops":["AveragePool"],"attrs":{"kernel_shape":[3,3],"strides":[1,1],"pads":[1,1,1,1],"count_include_pad":1},"in":[[1,192,35,35]],"weights":[],"out":[1,192,35,35]"#,
    );
    becomes(
        r#""op": "AdaptiveAvgPool2d", "inputs": [[1,512,7,7]], "output": [1,512,1,1], "params": 0"#,
        r#"{"ops":["GlobalAveragePool"],"attrs":{},"in":[[1,512,7,7]],"weights":[],"out":[1,512,1,1]"#,
    );
    becomes(
        r#""op": "AdaptiveAvgPool2d", "inputs": [[1,512,12,12]], "output": [1,512,6,6], "params": 0"#,
        r#"{"ops":["AveragePool"],"attrs":{"kernel_shape":[2,2],"strides":[2,2],"pads":[0,0,0,0]},"in":[[1,512,12,12]],"weights":[],"out":[1,512,6,6]"#,
    );
    becomes(
        r#""op": "cat", "inputs": [[1,64,8,8], [1,32,8,8]], "output": [1,96,8,8]"#,
        r#"{"ops":["Concat"],"attrs":{"axis":1},"in":[[1,64,8,8],[1,32,8,8]],"weights":[],"out":[1,96,8,8]"#,
    );
    becomes(
        r#""op": "mul", "inputs": [[96,1,1], [1,96,8,8]], "output": [1,96,8,8]"#,
        r#"{"ops":["Mul"],"attrs":{},"in":[[1,96,8,8]],"weights":[[96,1,1]],"out":[1,96,8,8]"#,
    );
    becomes(
        r#""op": "layer_norm", "inputs": [[1,8,8,96], [96], [96]], "output": [1,8,8,96]"#,
        r#"{"ops":["LayerNormalization"],"attrs":{"axis":-1},"in":[[1,8,8,96]],"weights":[[96],[96]],"out":[1,8,8,96]"#,
    );
    becomes(
        r#""op": "ReLU6", "inputs": [[1,96,8,8]], "output": [1,96,8,8], "params": 0"#,
        r#"{"ops":["Clip"],"attrs":{},"in":[[1,96,8,8]],"weights":[[],[]],"out":[1,96,8,8]"#,
    );
}

#[test]
fn equal_operators_are_one_entry() {
    let relu = r#""op": "ReLU", "inputs": [[1,8]], "output": [1,8]"#;
    let twice = entries(&[relu, relu]);
    assert_eq!(
        twice,
        [r#"{"ops":["Relu"],"attrs":{},"in":[[1,8]],"weights":[],"out":[1,8],"dtype":"f32","us":{"1":5.0},"count":2}"#]
    );
}

#[test]
fn omissions_and_assumptions_are_reported() {
    let nodes = [
        r#""op": "Dropout", "inputs": [[1,8]], "output": [1,8]"#,
        r#""op": "flatten", "inputs": [[1,8,1,1]], "output": [1,8]"#,
        r#""op": "flatten", "inputs": [[1,8,1,1]], "output": [1,8]"#,
        r#""op": "AdaptiveAvgPool2d", "inputs": [[1,8,13,13]], "output": [1,8,6,6]"#,
        r#""op": "AdaptiveAvgPool2d", "inputs": [[1,8,6,6]], "output": [1,8,6,6]"#,
        r#""op": "max_pool2d", "inputs": [[1,8,60,60]], "output": [1,8,6,6]"#,
        r#""op": "einsum", "inputs": [[1,8]], "output": [1,8]"#,
        r#""op": "max_pool2d", "inputs": [[1,8,35,35]], "output": [1,8,17,17]"#,
    ];
    let (_, stderr) = succeeds(&["convert", "-"], &table(&nodes));
    let expected = "\
divi-profile: m: 'n0' (Dropout): left out, is the identity in inference
divi-profile: m: 'n1' (flatten) and 1 more: left out, is a view, whose time is Python overhead
divi-profile: m: 'n3' (AdaptiveAvgPool2d): left out, its windows have different sizes, which ONNX cannot express
divi-profile: m: 'n4' (AdaptiveAvgPool2d): left out, averages over single elements, which is the identity
divi-profile: m: 'n5' (max_pool2d): left out, its window is not in the table, and no common window has its sizes
divi-profile: m: 'n6' (einsum): left out, has no known ONNX equivalent
divi-profile: m: 'n7' (max_pool2d): its window is not in the table: 3x3 at stride 2 is assumed
";
    assert_eq!(stderr, expected);
}

#[test]
fn the_device_is_chosen() {
    let table = table(&[r#""op": "relu", "inputs": [[1,8]], "output": [1,8]"#]);
    let (stdout, _) = succeeds(&["convert", "--device=cpu", "-"], &table);
    assert!(stdout.contains(r#""device": "CPU, 2 threads""#) && stdout.contains(r#""us":{"1":7.0}"#), "{stdout}");
}

#[test]
fn copies_become_links() {
    let (stdout, _) = succeeds(&["convert", "../../test/profiles/h200_transfers.json"], "");
    let expected = "[[link]]\nfrom = \"cpu0\"\nto = \"gpu0\"\nbandwidth = \"52.8 GB/s\"\nlatency = \"22.6 us\"\n";
    assert!(stdout.starts_with(expected), "{stdout}");
    assert_eq!((stdout.matches("[[link]]").count(), stdout.matches("# From").count()), (2, 2));
}

/// Tests that a fit to a converted profile gives the same result as a fit to its table.
#[test]
fn a_profile_is_equivalent_to_its_table() {
    let profile = temporary("profile.json");
    let profile = profile.to_str().expect("the path is UTF-8");
    succeeds(&["convert", OPERATORS, "--device=cpu", "-o", profile], "");
    let (from_profile, _) = succeeds(&["fit", profile], "");
    let (from_table, _) = succeeds(&["fit", "--device=cpu", OPERATORS], "");
    assert_eq!(from_profile, from_table);
    let (without, _) = succeeds(&["fit", "--device=cpu", OPERATORS, "--leave-out=alexnet,googlenet"], "");
    assert_ne!(without, from_table);
    let rates = ["--flops-per-s=1e12", "--bytes-per-s", "1e11"];
    let (slower, _) = succeeds(&[&["fit", "--device=cpu", profile], &rates[..]].concat(), "");
    assert!(
        slower.contains(r#""flops_per_s": 1000000000000.0"#) && slower.contains(r#""bytes_per_s": 100000000000.0"#)
    );
}

#[test]
fn uncountable_work_is_reported() {
    let profile = r#"{"format": "divi-profile/1", "device": "d", "runtime": "r", "entries": [
        {"ops": ["Relu"], "in": [[1, 4096]], "out": [1, 4096], "dtype": "f32", "us": {"1": 9}},
        {"ops": ["Conv"], "in": [[1, 8]], "weights": [], "out": [1, 8], "dtype": "f32", "us": {"1": 9}}]}"#;
    let (stdout, stderr) = succeeds(&["fit", "-"], profile);
    let expected = "divi-profile: warning: -: left out, its work cannot be counted: Conv: operand 1 is missing\n";
    assert_eq!(stderr, expected);
    assert!(stdout.contains(r#""device": "d""#), "{stdout}");
}

#[test]
fn errors_leave_nothing_behind() {
    let out = temporary("untouched.json");
    fs::write(&out, "as it was").expect("the folder is there");
    let path = out.to_str().expect("the path is UTF-8");
    fails(&["convert", "-", "-o", path], "{", "-: not JSON: EOF while parsing an object at line 1 column 1");
    assert_eq!(fs::read_to_string(&out).expect("it is still there"), "as it was");
}

#[test]
fn errors_name_the_cause() {
    misses(
        &[],
        "'divi-profile' requires a subcommand but one was not provided\n  [subcommands: calibrate, convert, fit, measure]\n",
    );
    misses(
        &["guess"],
        "unrecognized subcommand 'guess'\n\n  tip: available commands: calibrate, convert, fit, measure\n",
    );
    misses(&["convert"], "the following required arguments were not provided:\n  <TABLE.json>\n");
    misses(&["convert", "a", "b"], "unexpected argument 'b' found\n");
    misses(&["fit"], "the following required arguments were not provided:\n  <FILE.json>...\n");
    misses(&["fit", "--frob", "x"], "unexpected argument '--frob' found\n");
    misses(&["fit", "-q", "x"], "unexpected argument '-q' found\n");
    misses(&["fit", "x", "-o"], "a value is required for '-o <MODEL.json>' but none was supplied\n");
    misses(&["fit", "x", "-o", "a", "-o", "b"], "the argument '-o <MODEL.json>' cannot be used multiple times\n");
    misses(
        &["fit", "x", "--device=tpu"],
        "invalid value 'tpu' for '--device <KIND>'\n  [possible values: cpu, cuda]\n",
    );
    misses(
        &["fit", "x", "--flops-per-s", "-1"],
        "invalid value '-1' for '--flops-per-s <N>': must be a positive number\n",
    );
    fails(&["fit", "no/such.json"], "", "no/such.json: No such file or directory (os error 2)");
    fails(
        &["convert", "-"],
        r#"{"rows": []}"#,
        "-: unknown field 'rows'; expected one of cpu_threads, gpu, note, models",
    );
    fails(&["fit", "-"], "{}", "-: field 'format' is missing");
    let empty = r#"{"format": "divi-profile/1", "device": "d", "runtime": "r", "entries": []}"#;
    fails(&["fit", "-"], empty, "no measured operator to fit a model to");
    let conv = r#""op": "Conv2d", "inputs": [[1,3,8,8]], "output": [1,8,8,8], "params": 17,
        "attrs": {"kernel": [1,1], "stride": [1,1], "padding": [0,0], "groups": 1, "dilation": [1,1]}"#;
    fails(&["convert", "-"], &table(&[conv]), "-: models.m.n0: params are 17 bytes, weights [8, 3, 1, 1] are 96");
    let pool = r#""op": "MaxPool2d", "inputs": [[1,8,9,9]], "output": [1,8,2,2], "attrs": {"kernel": 3, "stride": 1, "padding": 0}"#;
    fails(&["convert", "-"], &table(&[pool]), "-: models.m.n0: no window of [9, 9] gives [2, 2]");
    fails(
        &["fit", OPERATORS, "-"],
        empty,
        &format!("-: measured on d with r, but {OPERATORS} on NVIDIA H200 with PyTorch eager; fit them separately"),
    );
    fails(&["fit", OPERATORS, "--leave-out=lenet"], "", "--leave-out: no table has a model 'lenet'");
    fails(
        &["convert", "../../test/profiles/h200_pytorch_models.json"],
        "",
        "../../test/profiles/h200_pytorch_models.json: contains times of whole models, not of operators; \
         pass it to fit --graphs",
    );
    let graphs = "--graphs=../../test/profiles/h200_pytorch_models.json";
    let relu = table(&[r#""op": "relu", "inputs": [[1,8]], "output": [1,8]"#]);
    let expected =
        "../../test/profiles/h200_pytorch_models.json: none of its models is in the given tables of operators";
    fails(&["fit", "-", graphs], &relu, expected);
}

#[test]
fn help_is_printed() {
    for (arguments, usage) in [
        (&["--help"][..], "<COMMAND>"),
        (&["fit", "--help"], "fit [OPTIONS] <FILE.json>..."),
        (&["convert", "-h"], "convert [OPTIONS] <TABLE.json>"),
        (&["measure", "-h"], "measure [OPTIONS] -o <PROFILE.json> [MODEL.onnx|MODEL.mlir]..."),
    ] {
        let (stdout, _) = succeeds(arguments, "");
        assert!(stdout.contains(&format!("\nUsage: divi-profile {usage}\n")), "{stdout}");
    }
    assert!(succeeds(&["--version"], "").0.starts_with("divi-profile "));
}

#[test]
fn outputs_do_not_replace_inputs() {
    let (file, link) = (temporary("table.json"), temporary("link-to-table.json"));
    let text = table(&[r#""op": "ReLU", "inputs": [[1, 4]], "output": [1, 4], "params": 0"#]);
    fs::write(&file, &text).expect("it can be written");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(&file, &link).expect("it can be made");
    let [file, link] = [&file, &link].map(|path| path.to_str().expect("it is UTF-8"));
    for output in [file, link] {
        let expected = format!("cannot write '{output}': it is an input itself: choose another name");
        fails(&["convert", file, "-o", output], "", &expected);
        fails(&["fit", file, "-o", output], "", &expected);
        fails(&["measure", file, "-o", output], "", &expected);
    }
    assert_eq!(fs::read_to_string(file).expect("it is there"), text);
}
