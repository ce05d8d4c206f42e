//! Runs of bundles under `divi-run`.

use super::build::{output_of, program};
use serde_json::Value;
use std::{path::Path, process::Command};

/// Output of `divi-run --json`.
pub(crate) struct Launched(Value);

pub(crate) fn launch(bundle: &Path, options: &[String]) -> Result<Launched, String> {
    Launched::of(Command::new(program("divi-run")?), bundle, options)
}

impl Launched {
    /// Runs a bundle with a command that starts `divi-run`.
    pub(crate) fn of(mut command: Command, bundle: &Path, options: &[String]) -> Result<Self, String> {
        command.arg(bundle).args(["--json", "--random-inputs=1"]).args(options);
        let text = output_of(command, &bundle.display().to_string())?;
        serde_json::from_str(&text).map(Self).map_err(|error| format!("the output of divi-run is not JSON: {error}"))
    }

    /// Returns a number by its JSON pointer, for instance `/latency_us/median`.
    pub(crate) fn number(&self, place: &str) -> Result<f64, String> {
        let number = self.0.pointer(place).and_then(Value::as_f64);
        number.ok_or_else(|| format!("the output of divi-run has no {place}"))
    }

    /// Returns the sum of a field over all devices.
    pub(crate) fn sum_of_devices(&self, field: &str) -> f64 {
        let devices = self.0["devices"].as_array().map(Vec::as_slice).unwrap_or_default();
        devices.iter().filter_map(|device| device[field].as_f64()).sum()
    }
}

/// Returns the `--repeat` option for runs of about `seconds`.
pub(crate) fn repeat(bundle: &Path, seconds: f64) -> Result<String, String> {
    let probe = launch(bundle, &["--repeat=3".to_owned()])?;
    let rate = probe.number("/throughput_per_s")?;
    Ok(format!("--repeat={}", (rate * seconds).ceil().max(3.0)))
}
