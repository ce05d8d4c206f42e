//! Random models of 5 to 30 operators compute what ONNX Runtime does: the short version of `tools/fuzz --models`.

use divi_test::{python, repository};
use std::process::Command;

/// A second of processor time for three of them.
const MODELS: &str = "40";

#[test]
fn random_models_compute_what_onnx_runtime_does() {
    let output = Command::new(python())
        .arg(repository().join("test/differential/run.py"))
        .args(["--models", MODELS, "--seed", "1000", "--log", "none", "--program", env!("CARGO_BIN_EXE_divi-compute")])
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains(&format!("{MODELS} models")), "{text}");
}
