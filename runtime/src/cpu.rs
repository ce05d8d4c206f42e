//! Processor of this machine.

use std::{collections::HashSet, fs};

/// Returns the features (flags of `/proc/cpuinfo`) that this processor lacks; all of them if that file cannot be read.
pub(crate) fn missing(features: &[String]) -> Vec<String> {
    if features.is_empty() {
        return Vec::new();
    }
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags: HashSet<&str> = text
        .lines()
        .find_map(|line| line.strip_prefix("flags").or_else(|| line.strip_prefix("Features")))
        .and_then(|rest| rest.split_once(':'))
        .map(|(_, flags)| flags.split_ascii_whitespace().collect())
        .unwrap_or_default();
    features.iter().filter(|feature| !flags.contains(feature.as_str())).cloned().collect()
}

/// Returns the model name of the processor, or its architecture if the model is unknown.
pub fn name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
