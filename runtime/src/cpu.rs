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

/// Returns true if the operating system lets this process use a feature of the processor. Tile registers need a permission, because they
/// enlarge the state of each thread.
pub fn is_permitted(feature: &str) -> bool {
    /// `ARCH_REQ_XCOMP_PERM` of `asm/prctl.h`.
    const REQUEST_PERMISSION: libc::c_long = 0x1023;
    /// Number of the state of tile registers in the XSAVE area.
    const TILE_DATA: libc::c_long = 18;
    if feature != "amx_tile" {
        return true;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the call has no pointers.
    return unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) } == 0;
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Returns the model name of the processor, or its architecture if the model is unknown.
pub fn name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
