//! How fast devices are at most, and what is assumed where a description does not say.
//!
//! A missing rate of numbers other than f32 is `flops` times what the architecture gains or loses with them, so that a
//! description of a slower or faster sibling needs to give `flops` and `bandwidth` only.

use super::{
    DeviceKind,
    units::{BytesPerSecond, FlopsPerSecond},
};

/// Peak rates: what no program exceeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// f32 without tensor cores: TF32 rounds its operands, which nobody asked for.
    pub f32: FlopsPerSecond,
    pub f64: FlopsPerSecond,
    /// With tensor cores, dense, as `bf16` and `i8` are.
    pub f16: FlopsPerSecond,
    pub bf16: FlopsPerSecond,
    pub i8: FlopsPerSecond,
    /// Of the device's own memory.
    pub bandwidth: BytesPerSecond,
}

/// What a description says about rates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    pub(super) f32: Option<FlopsPerSecond>,
    pub(super) f64: Option<FlopsPerSecond>,
    pub(super) f16: Option<FlopsPerSecond>,
    pub(super) bf16: Option<FlopsPerSecond>,
    pub(super) i8: Option<FlopsPerSecond>,
    pub(super) bandwidth: Option<BytesPerSecond>,
}

/// How much faster than f32 other numbers are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gains {
    pub(super) f64: f64,
    pub(super) f16: f64,
    pub(super) bf16: f64,
    pub(super) i8: f64,
}

impl Gains {
    /// Where nothing is known: small numbers are no faster, large ones half as fast.
    const UNKNOWN: Self = Self { f64: 0.5, f16: 1.0, bf16: 1.0, i8: 1.0 };
}

/// A GPU architecture, by the data sheet of the card it is best known for.
#[derive(Debug)]
pub(super) struct Architecture {
    /// The compute capability, times ten.
    capability: u32,
    /// Operations a second, as the four below.
    f32: f64,
    f64: f64,
    f16: f64,
    bf16: f64,
    i8: f64,
    /// Bytes a second.
    bandwidth: f64,
    /// f32 operations that a multiprocessor starts in a cycle.
    pub(super) lanes: u32,
    /// The generation of PCI Express that its cards speak.
    pub(super) pcie: u32,
    /// What NVLink brings in one direction between two cards, bytes a second.
    nvlink: f64,
}

/// In increasing order. Where an architecture has no bf16, it is computed as f32; where it has no 8-bit tensor cores,
/// dp4a does four at once.
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
    /// The newest architecture that is not newer than this one; the oldest for what is older than all.
    pub(super) fn nearest(capability: u32) -> &'static Self {
        let older = ARCHITECTURES.iter().rev().find(|architecture| architecture.capability <= capability);
        older.unwrap_or(&ARCHITECTURES[0])
    }

    fn exact(capability: u32) -> Option<&'static Self> {
        ARCHITECTURES.iter().find(|architecture| architecture.capability == capability)
    }

    pub(super) fn gains(&self) -> Gains {
        Gains { f64: self.f64 / self.f32, f16: self.f16 / self.f32, bf16: self.bf16 / self.f32, i8: self.i8 / self.f32 }
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

/// The compute capability in a name such as `sm_90` or `sm_90a`, times ten.
pub(super) fn capability(arch: &str) -> Option<u32> {
    let digits = arch.strip_prefix("sm_")?;
    let digits = digits.strip_suffix(['a', 'f']).unwrap_or(digits);
    let is_number = (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// f32 operations that a core finishes in a cycle, by the names of LLVM for the levels of x86-64 and for AArch64: two
/// fused multiply-adds of a vector where there are any.
pub(super) fn flops_per_cycle(arch: &str) -> f64 {
    match arch {
        "x86-64" | "x86-64-v2" => 8.0,
        "x86-64-v4" => 64.0,
        "generic" | "armv8-a" => 16.0,
        // x86-64-v3, and what most machines of the last ten years can do at least.
        _ => 32.0,
    }
}

/// Of a CPU that says nothing about its clock.
pub(super) const DEFAULT_HERTZ: f64 = 2.5e9;

/// What one core gets from its memory, however many channels there are.
pub(super) const CORE_BYTES_PER_SECOND: f64 = 12e9;

/// Four channels of DDR4: a plain server, or a good workstation.
const DEFAULT_SOCKET_BYTES_PER_SECOND: f64 = 100e9;

/// Completes what a description says. The error is the rule that would let it be completed.
pub(super) fn complete(
    kind: DeviceKind,
    arch: Option<&str>,
    threads: Option<u32>,
    given: Given,
) -> Result<Rates, &'static str> {
    let (f32, bandwidth, gains) = match kind {
        DeviceKind::Cuda => cuda(arch.and_then(capability)),
        DeviceKind::Cpu => cpu(arch, threads),
    };
    let rule = match (kind, arch) {
        (DeviceKind::Cpu, _) => "give 'threads', or 'flops' and 'bandwidth'",
        (DeviceKind::Cuda, None) => "give 'arch', or 'flops' and 'bandwidth'",
        (DeviceKind::Cuda, Some(_)) => "its 'arch' is not in the table, so give 'flops' and 'bandwidth'",
    };
    let f32 = given.f32.or(f32).ok_or(rule)?;
    let bandwidth = given.bandwidth.or(bandwidth).ok_or(rule)?;
    let rates = Rates::with_gains(f32, bandwidth, gains);
    Ok(Rates {
        f64: given.f64.unwrap_or(rates.f64),
        f16: given.f16.unwrap_or(rates.f16),
        bf16: given.bf16.unwrap_or(rates.bf16),
        i8: given.i8.unwrap_or(rates.i8),
        ..rates
    })
}

impl Rates {
    pub(super) fn with_gains(f32: FlopsPerSecond, bandwidth: BytesPerSecond, gains: Gains) -> Self {
        let gain = |factor: f64| FlopsPerSecond(f32.0 * factor);
        Self { f32, f64: gain(gains.f64), f16: gain(gains.f16), bf16: gain(gains.bf16), i8: gain(gains.i8), bandwidth }
    }
}

type Defaults = (Option<FlopsPerSecond>, Option<BytesPerSecond>, Gains);

fn cuda(capability: Option<u32>) -> Defaults {
    let Some(capability) = capability else { return (None, None, Gains::UNKNOWN) };
    let exact = Architecture::exact(capability);
    (exact.map(Architecture::flops), exact.map(Architecture::bandwidth), Architecture::nearest(capability).gains())
}

fn cpu(arch: Option<&str>, threads: Option<u32>) -> Defaults {
    let Some(threads) = threads.map(f64::from) else { return (None, None, Gains::UNKNOWN) };
    let flops = threads * DEFAULT_HERTZ * flops_per_cycle(arch.unwrap_or("x86-64-v3"));
    let bandwidth = (threads * CORE_BYTES_PER_SECOND).min(DEFAULT_SOCKET_BYTES_PER_SECOND);
    (Some(FlopsPerSecond(flops)), Some(BytesPerSecond(bandwidth)), Gains::UNKNOWN)
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

    #[test]
    fn a_table_fills_what_is_missing() {
        let rates = complete(DeviceKind::Cuda, Some("sm_80"), None, Given::default()).unwrap();
        assert_eq!(rates.f32, FlopsPerSecond(19.5e12));
        assert!((rates.f16.0 / 312e12 - 1.0).abs() < 1e-12);
        assert_eq!(rates.bandwidth, BytesPerSecond(1555e9));
        let rates = complete(DeviceKind::Cpu, Some("x86-64-v4"), Some(4), Given::default()).unwrap();
        assert_eq!(rates.f32, FlopsPerSecond(640e9));
        assert_eq!(rates.f64, FlopsPerSecond(320e9));
        assert_eq!(rates.bandwidth, BytesPerSecond(48e9));
    }

    #[test]
    fn a_sibling_gains_as_much() {
        let given = Given { f32: Some(FlopsPerSecond(14e12)), ..Given::default() };
        let rates = complete(DeviceKind::Cuda, Some("sm_70"), None, given).unwrap();
        assert!((rates.f16.0 / 111.5e12 - 1.0).abs() < 1e-3);
        let given = Given { i8: Some(FlopsPerSecond(1e12)), ..given };
        assert_eq!(complete(DeviceKind::Cuda, Some("sm_70"), None, given).unwrap().i8, FlopsPerSecond(1e12));
    }

    #[test]
    fn a_newer_architecture_needs_rates_of_its_own() {
        assert!(complete(DeviceKind::Cuda, Some("sm_103"), None, Given::default()).is_err());
        let (f32, bandwidth) = (Some(FlopsPerSecond(80e12)), Some(BytesPerSecond(8e12)));
        let given = Given { f32, bandwidth, ..Given::default() };
        assert_eq!(complete(DeviceKind::Cuda, Some("sm_103"), None, given).unwrap().f16, FlopsPerSecond(80e12 * 30.0));
        assert_eq!(complete(DeviceKind::Cuda, None, None, given).unwrap().f16, FlopsPerSecond(80e12));
    }
}
