//! From what a CUDA driver says about a GPU to how fast it is.

use super::architecture::Architecture;
use crate::{
    device::Rates,
    system::units::{Bytes, BytesPerSecond, FlopsPerSecond},
};

/// A GPU, and how it reaches the others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gpu {
    pub(super) attributes: Attributes,
    /// One for each GPU, itself included.
    pub(super) peers: Vec<Peer>,
}

/// How one GPU reaches another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// Only through the host's memory.
    None,
    Pcie,
    NvLink,
}

/// What the driver says. What it does not say is zero, and an architecture's usual figure takes its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attributes {
    pub(super) name: String,
    pub(super) memory: Bytes,
    /// The compute capability, times ten.
    pub(super) capability: u32,
    pub(super) multiprocessors: u32,
    /// The highest one.
    pub(super) clock_khz: u32,
    pub(super) memory_clock_khz: u32,
    pub(super) memory_bus_bits: u32,
    /// How much slower f64 is than f32.
    pub(super) f64_ratio: u32,
    /// Where the kernel knows it.
    pub(super) pcie: Option<Pcie>,
}

/// The way to the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pcie {
    pub(super) gigatransfers_per_second: f64,
    pub(super) lanes: u32,
}

/// What pinned copies get of a link's raw rate: 54.2 of 63 GB/s on an H200 (test/profiles/h200_transfers.json).
const COPY_EFFICIENCY: f64 = 0.86;

impl Attributes {
    pub(super) fn rates(&self) -> Rates {
        let architecture = Architecture::nearest(self.capability);
        let cycles = f64::from(self.clock_khz) * 1e3 * f64::from(self.multiprocessors);
        // A fused multiply-add is two operations.
        let flops = cycles * f64::from(architecture.lanes) * 2.0;
        let f32 = if flops > 0.0 { FlopsPerSecond(flops) } else { architecture.flops() };
        // Memory moves bits on both edges of its clock.
        let bandwidth = 2.0 * f64::from(self.memory_clock_khz) * 1e3 * f64::from(self.memory_bus_bits) / 8.0;
        let bandwidth = if bandwidth > 0.0 { BytesPerSecond(bandwidth) } else { architecture.bandwidth() };
        let mut gains = architecture.gains();
        if self.f64_ratio > 0 {
            gains.f64 = 1.0 / f64::from(self.f64_ratio);
        }
        Rates::with_gains(f32, bandwidth, gains)
    }

    /// What copies between the host's memory and this GPU's get.
    pub(super) fn host_bandwidth(&self) -> BytesPerSecond {
        let usual =
            Pcie { gigatransfers_per_second: transfers(Architecture::nearest(self.capability).pcie), lanes: 16 };
        BytesPerSecond(self.pcie.unwrap_or(usual).bytes_per_second() * COPY_EFFICIENCY)
    }

    /// What copies to a GPU get that an NVLink leads to.
    pub(super) fn nvlink_bandwidth(&self) -> BytesPerSecond {
        BytesPerSecond(Architecture::nearest(self.capability).nvlink().0 * COPY_EFFICIENCY)
    }
}

/// Of a generation of PCI Express.
fn transfers(generation: u32) -> f64 {
    match generation {
        5 => 32.0,
        4 => 16.0,
        _ => 8.0,
    }
}

impl Pcie {
    /// Reads what Linux says in `max_link_speed` and `max_link_width`: `32.0 GT/s PCIe` and `16`.
    pub(super) fn parse(speed: &str, width: &str) -> Option<Self> {
        let (speed, unit) = speed.trim().split_once(' ')?;
        let gigatransfers_per_second: f64 = speed.parse().ok().filter(|speed| (2.5..=256.0).contains(speed))?;
        let lanes = width.trim().parse().ok().filter(|lanes| (1..=32).contains(lanes))?;
        unit.starts_with("GT/s").then_some(Self { gigatransfers_per_second, lanes })
    }

    fn bytes_per_second(self) -> f64 {
        // The first two generations send ten bits a byte, later ones 130 for 16 bytes.
        let bits = if self.gigatransfers_per_second < 8.0 { 10.0 } else { 130.0 / 16.0 };
        self.gigatransfers_per_second * 1e9 * f64::from(self.lanes) / bits
    }

    /// A card and the slot that it is in: the slower of both.
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
    fn an_h200() {
        let rates = h200().rates();
        assert!((rates.f32.0 / 66.9e12 - 1.0).abs() < 1e-3, "{rates:?}");
        assert!((rates.f64.0 / 33.45e12 - 1.0).abs() < 1e-3);
        assert!((rates.f16.0 / 989.4e12 - 1.0).abs() < 1e-3);
        assert!((rates.bandwidth.0 / 4.917e12 - 1.0).abs() < 1e-3);
        assert!((h200().host_bandwidth().0 / 54.2e9 - 1.0).abs() < 1e-2);
    }

    #[test]
    fn a_t4_and_an_a100() {
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
    fn what_the_driver_does_not_say_is_the_usual() {
        let silent = Attributes { multiprocessors: 0, memory_clock_khz: 0, f64_ratio: 0, pcie: None, ..h200() };
        let rates = silent.rates();
        assert_eq!((rates.f32, rates.bandwidth), (FlopsPerSecond(66.9e12), BytesPerSecond(3350e9)));
        assert_eq!(silent.host_bandwidth(), h200().host_bandwidth());
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
