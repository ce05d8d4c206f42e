//! Compares random models of 5 to 30 operators with ONNX Runtime: a short version of `tools/fuzz --models`.

use divi_test::{python, repository};
use std::process::Command;

/// Number of models; three take about a second of processor time.
const MODELS: &str = "40";

#[test]
fn random_models_agree_with_onnx_runtime() {
    let output = Command::new(python())
        .arg(repository().join("test/differential/run.py"))
        .args(["--models", MODELS, "--seed", "1000", "--log", "none", "--program", env!("CARGO_BIN_EXE_divi-compute")])
        .output()
        .expect("tools/setup installs Python");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains(&format!("{MODELS} models")), "{text}");
}
