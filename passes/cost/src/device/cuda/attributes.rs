//! Peak rates of a GPU, derived from the attributes that the CUDA driver reports.

use super::architecture::Architecture;
use crate::{
    device::Rates,
    system::units::{Bytes, BytesPerSecond, FlopsPerSecond},
};

/// GPU with its connections to the others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gpu {
    pub(super) attributes: Attributes,
    /// Connection to each GPU, including itself.
    pub(super) peers: Vec<Peer>,
}

/// Peer access from one GPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// No peer access: copies go through host memory.
    None,
    Pcie,
    NvLink,
}

/// Attributes that the driver reports. Unknown ones are zero and are replaced by the architecture's typical value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attributes {
    pub(super) name: String,
    pub(super) memory: Bytes,
    /// Compute capability, times ten.
    pub(super) capability: u32,
    pub(super) multiprocessors: u32,
    /// Maximum clock.
    pub(super) clock_khz: u32,
    pub(super) memory_clock_khz: u32,
    pub(super) memory_bus_bits: u32,
    /// Ratio of the rates of f32 and f64.
    pub(super) f64_ratio: u32,
    /// Link to the host, if the kernel reports it.
    pub(super) pcie: Option<Pcie>,
}

/// PCI Express link to the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pcie {
    pub(super) gigatransfers_per_second: f64,
    pub(super) lanes: u32,
}

/// Fraction of a link's raw rate that pinned copies achieve: 54.2 of 63 GB/s on an H200 (test/profiles/h200_transfers.json).
const COPY_EFFICIENCY: f64 = 0.86;

impl Attributes {
    pub(super) fn rates(&self) -> Rates {
        let architecture = Architecture::nearest(self.capability);
        let cycles = f64::from(self.clock_khz) * 1e3 * f64::from(self.multiprocessors);
        // A fused multiply-add is two operations.
        let flops = cycles * f64::from(architecture.lanes) * 2.0;
        let f32 = if flops > 0.0 { FlopsPerSecond(flops) } else { architecture.flops() };
        // Double data rate: two transfers per memory clock.
        let bandwidth = 2.0 * f64::from(self.memory_clock_khz) * 1e3 * f64::from(self.memory_bus_bits) / 8.0;
        let bandwidth = if bandwidth > 0.0 { BytesPerSecond(bandwidth) } else { architecture.bandwidth() };
        let mut type_ratios = architecture.type_ratios();
        if self.f64_ratio > 0 {
            type_ratios.f64 = 1.0 / f64::from(self.f64_ratio);
        }
        Rates::with_type_ratios(f32, bandwidth, type_ratios)
    }

    /// Returns the achievable bandwidth of copies between host memory and this GPU.
    pub(super) fn host_bandwidth(&self) -> BytesPerSecond {
        let usual =
            Pcie { gigatransfers_per_second: transfers(Architecture::nearest(self.capability).pcie), lanes: 16 };
        BytesPerSecond(self.pcie.unwrap_or(usual).bytes_per_second() * COPY_EFFICIENCY)
    }

    /// Returns the achievable bandwidth of copies to a GPU over NVLink.
    pub(super) fn nvlink_bandwidth(&self) -> BytesPerSecond {
        BytesPerSecond(Architecture::nearest(self.capability).nvlink().0 * COPY_EFFICIENCY)
    }
}

/// Returns the gigatransfers per second and lane of a generation of PCI Express.
fn transfers(generation: u32) -> f64 {
    match generation {
        5 => 32.0,
        4 => 16.0,
        _ => 8.0,
    }
}

impl Pcie {
    /// Parses Linux's `max_link_speed` and `max_link_width`: `32.0 GT/s PCIe` and `16`.
    pub(super) fn parse(speed: &str, width: &str) -> Option<Self> {
        let (speed, unit) = speed.trim().split_once(' ')?;
        let gigatransfers_per_second: f64 = speed.parse().ok().filter(|speed| (2.5..=256.0).contains(speed))?;
        let lanes = width.trim().parse().ok().filter(|lanes| (1..=32).contains(lanes))?;
        unit.starts_with("GT/s").then_some(Self { gigatransfers_per_second, lanes })
    }

    fn bytes_per_second(self) -> f64 {
        // Line code: 8b/10b in the first two generations, 128b/130b in later ones.
        let bits = if self.gigatransfers_per_second < 8.0 { 10.0 } else { 130.0 / 16.0 };
        self.gigatransfers_per_second * 1e9 * f64::from(self.lanes) / bits
    }

    /// Returns the slower of two links, such as a card's and its slot's.
    pub(super) fn slower(self, other: Self) -> Self {
        if other.bytes_per_second() < self.bytes_per_second() { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> Attributes {
        Attributes {
            name: "NVIDIA H200".to_owned(),
            memory: Bytes(150_754_820_096),
            capability: 90,
            multiprocessors: 132,
            clock_khz: 1_980_000,
            memory_clock_khz: 3_201_000,
            memory_bus_bits: 6144,
            f64_ratio: 2,
            pcie: Some(Pcie { gigatransfers_per_second: 32.0, lanes: 16 }),
        }
    }

    #[test]
    fn h200_rates() {
        let rates = h200().rates();
        assert!((rates.f32.0 / 66.9e12 - 1.0).abs() < 1e-3, "{rates:?}");
        assert!((rates.f64.0 / 33.45e12 - 1.0).abs() < 1e-3);
        assert!((rates.f16.0 / 989.4e12 - 1.0).abs() < 1e-3);
        assert!((rates.bandwidth.0 / 4.917e12 - 1.0).abs() < 1e-3);
        assert!((h200().host_bandwidth().0 / 54.2e9 - 1.0).abs() < 1e-2);
    }

    #[test]
    fn t4_and_a100_rates() {
        let t4 = Attributes {
            capability: 75,
            multiprocessors: 40,
            clock_khz: 1_590_000,
            memory_clock_khz: 5_001_000,
            memory_bus_bits: 256,
            f64_ratio: 32,
            pcie: None,
            ..h200()
        };
        assert!((t4.rates().f32.0 / 8.14e12 - 1.0).abs() < 1e-3);
        assert!((t4.rates().bandwidth.0 / 320e9 - 1.0).abs() < 1e-3);
        assert!((t4.host_bandwidth().0 / 13.5e9 - 1.0).abs() < 1e-2);
        let a100 = Attributes {
            capability: 80,
            multiprocessors: 108,
            clock_khz: 1_410_000,
            memory_clock_khz: 1_215_000,
            memory_bus_bits: 5120,
            ..h200()
        };
        assert!((a100.rates().f32.0 / 19.5e12 - 1.0).abs() < 1e-3);
        assert!((a100.rates().bandwidth.0 / 1555e9 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn unknown_attributes_are_replaced_by_typical_values() {
        let unknown = Attributes { multiprocessors: 0, memory_clock_khz: 0, f64_ratio: 0, pcie: None, ..h200() };
        let rates = unknown.rates();
        assert_eq!((rates.f32, rates.bandwidth), (FlopsPerSecond(66.9e12), BytesPerSecond(3350e9)));
        assert_eq!(unknown.host_bandwidth(), h200().host_bandwidth());
    }

    #[test]
    fn slots_are_read() {
        let gen4 = Pcie { gigatransfers_per_second: 16.0, lanes: 8 };
        assert_eq!(Pcie::parse("16.0 GT/s PCIe\n", "8\n"), Some(gen4));
        assert_eq!(Pcie::parse("2.5 GT/s", "1").map(Pcie::bytes_per_second), Some(0.25e9));
        assert_eq!(h200().pcie.map(|pcie| pcie.slower(gen4)), Some(gen4));
        for (speed, width) in
            [("Unknown", "16"), ("16.0 GT/s PCIe", "0"), ("", ""), ("nan GT/s", "4"), ("1e9 GT/s", "4")]
        {
            assert_eq!(Pcie::parse(speed, width), None, "{speed} {width}");
        }
    }
}
