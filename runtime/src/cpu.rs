//! The processor that this runs on.

use std::{collections::HashSet, fs};

/// Which of the features (in the names of `/proc/cpuinfo`) this processor lacks. Where that file is not, none are known.
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

/// What the processor calls itself.
pub fn name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
