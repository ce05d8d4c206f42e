//! GPU architectures: peak rates from data sheets.

use crate::{
    device::TypeRatios,
    system::units::{BytesPerSecond, FlopsPerSecond},
};

/// GPU architecture, with the rates of a representative card.
#[derive(Debug)]
pub(super) struct Architecture {
    /// Compute capability, times ten.
    capability: u32,
    /// Operations per second; those of other types follow.
    f32: f64,
    f64: f64,
    f16: f64,
    bf16: f64,
    i8: f64,
    /// Memory bandwidth in bytes per second.
    bandwidth: f64,
    /// f32 operations that a multiprocessor issues per cycle.
    pub(super) lanes: u32,
    /// Generation of PCI Express.
    pub(super) pcie: u32,
    /// Bandwidth of NVLink in one direction between two cards, in bytes per second.
    nvlink: f64,
}

/// Architectures, sorted by capability. Without bf16 its rate is that of f32. Without 8-bit tensor cores the rate of int8 is
/// that of dp4a (from 6.1 on), four times that of f32.
#[rustfmt::skip]
static ARCHITECTURES: [Architecture; 10] = [
    // P100 SXM2
    Architecture { capability: 60, f32: 10.6e12, f64: 5.3e12, f16: 21.2e12, bf16: 10.6e12, i8: 10.6e12, bandwidth: 732e9, lanes: 64, pcie: 3, nvlink: 20e9 },
    // P40
    Architecture { capability: 61, f32: 11.8e12, f64: 0.37e12, f16: 11.8e12, bf16: 11.8e12, i8: 47e12, bandwidth: 346e9, lanes: 128, pcie: 3, nvlink: 20e9 },
    // V100 SXM2
    Architecture { capability: 70, f32: 15.7e12, f64: 7.8e12, f16: 125e12, bf16: 15.7e12, i8: 62.8e12, bandwidth: 900e9, lanes: 64, pcie: 3, nvlink: 25e9 },
    // T4
    Architecture { capability: 75, f32: 8.1e12, f64: 0.25e12, f16: 65e12, bf16: 8.1e12, i8: 130e12, bandwidth: 320e9, lanes: 64, pcie: 3, nvlink: 25e9 },
    // A100 SXM4 40 GB
    Architecture { capability: 80, f32: 19.5e12, f64: 9.7e12, f16: 312e12, bf16: 312e12, i8: 624e12, bandwidth: 1555e9, lanes: 64, pcie: 4, nvlink: 300e9 },
    // RTX A6000
    Architecture { capability: 86, f32: 38.7e12, f64: 0.6e12, f16: 154.8e12, bf16: 154.8e12, i8: 309.7e12, bandwidth: 768e9, lanes: 128, pcie: 4, nvlink: 56.25e9 },
    // L40S
    Architecture { capability: 89, f32: 91.6e12, f64: 1.4e12, f16: 362e12, bf16: 362e12, i8: 733e12, bandwidth: 864e9, lanes: 128, pcie: 4, nvlink: 56.25e9 },
    // H100 SXM5; the H200 differs in its memory only
    Architecture { capability: 90, f32: 66.9e12, f64: 33.5e12, f16: 989.4e12, bf16: 989.4e12, i8: 1978.9e12, bandwidth: 3350e9, lanes: 128, pcie: 5, nvlink: 450e9 },
    // B200
    Architecture { capability: 100, f32: 75e12, f64: 37e12, f16: 2250e12, bf16: 2250e12, i8: 4500e12, bandwidth: 7700e9, lanes: 128, pcie: 5, nvlink: 900e9 },
    // RTX 5090
    Architecture { capability: 120, f32: 104.8e12, f64: 1.6e12, f16: 209.5e12, bf16: 209.5e12, i8: 838e12, bandwidth: 1792e9, lanes: 128, pcie: 5, nvlink: 56.25e9 },
];

impl Architecture {
    /// Returns the newest architecture that is not newer than `capability`, or the oldest one if there is none.
    pub(super) fn nearest(capability: u32) -> &'static Self {
        let older = ARCHITECTURES.iter().rev().find(|architecture| architecture.capability <= capability);
        older.unwrap_or(&ARCHITECTURES[0])
    }

    pub(super) fn exact(capability: u32) -> Option<&'static Self> {
        ARCHITECTURES.iter().find(|architecture| architecture.capability == capability)
    }

    pub(super) fn type_ratios(&self) -> TypeRatios {
        TypeRatios {
            f64: self.f64 / self.f32,
            f16: self.f16 / self.f32,
            bf16: self.bf16 / self.f32,
            i8: self.i8 / self.f32,
        }
    }

    pub(super) fn flops(&self) -> FlopsPerSecond {
        FlopsPerSecond(self.f32)
    }

    pub(super) fn bandwidth(&self) -> BytesPerSecond {
        BytesPerSecond(self.bandwidth)
    }

    pub(super) fn nvlink(&self) -> BytesPerSecond {
        BytesPerSecond(self.nvlink)
    }
}

/// Returns the compute capability, times ten, of a name such as `sm_90` or `sm_90a`.
pub(super) fn capability(arch: &str) -> Option<u32> {
    let digits = arch.strip_prefix("sm_")?;
    let digits = digits.strip_suffix(['a', 'f']).unwrap_or(digits);
    let is_number = (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_in_order() {
        assert!(ARCHITECTURES.is_sorted_by(|a, b| a.capability < b.capability));
        assert_eq!(Architecture::nearest(87).capability, 86);
        assert_eq!(Architecture::nearest(30).capability, 60);
        assert_eq!(Architecture::nearest(999).capability, 120);
    }

    #[test]
    fn architectures_have_names() {
        assert_eq!(capability("sm_90"), Some(90));
        assert_eq!(capability("sm_90a"), Some(90));
        assert_eq!(capability("sm_120f"), Some(120));
        for other in ["sm_", "sm_9", "sm_9x", "sm_-9", "sm_+90", "compute_90", "90", "sm_1000", "sm_90aa"] {
            assert_eq!(capability(other), None, "{other}");
        }
    }
}
