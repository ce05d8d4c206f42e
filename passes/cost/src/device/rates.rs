//! Peak rates of devices.

use crate::system::units::{BytesPerSecond, FlopsPerSecond};

/// Peak rates of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Operations per second in f32, without tensor cores: TF32 would round the operands.
    pub f32: FlopsPerSecond,
    /// Operations per second in f64.
    pub f64: FlopsPerSecond,
    /// Operations per second in f16, with tensor cores, dense.
    pub f16: FlopsPerSecond,
    /// Operations per second in bf16, with tensor cores, dense.
    pub bf16: FlopsPerSecond,
    /// Operations per second in int8, with tensor cores, dense.
    pub i8: FlopsPerSecond,
    /// Bandwidth of the device's memory.
    pub bandwidth: BytesPerSecond,
}

/// Rates of other types relative to f32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TypeRatios {
    /// Ratio of f64.
    pub f64: f64,
    /// Ratio of f16.
    pub f16: f64,
    /// Ratio of bf16.
    pub bf16: f64,
    /// Ratio of int8.
    pub i8: f64,
}

impl TypeRatios {
    /// Conservative default: narrower types are not faster, f64 is half as fast.
    pub const UNKNOWN: Self = Self { f64: 0.5, f16: 1.0, bf16: 1.0, i8: 1.0 };
}

/// Default rates of a device, for rates that its description does not give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DefaultRates {
    /// Operations per second in f32.
    pub f32: Option<FlopsPerSecond>,
    /// Bandwidth of the device's memory.
    pub bandwidth: Option<BytesPerSecond>,
    /// Rates of other types, relative to the given or default rate of f32.
    pub type_ratios: TypeRatios,
    /// Remedy for an unknown rate, as part of a message: `give 'arch', or 'flops' and 'bandwidth'`.
    pub remedy: &'static str,
}

impl Rates {
    /// Returns the rates for a rate of f32 and the ratios of other types.
    pub fn with_type_ratios(f32: FlopsPerSecond, bandwidth: BytesPerSecond, type_ratios: TypeRatios) -> Self {
        let gain = |factor: f64| FlopsPerSecond(f32.0 * factor);
        Self {
            f32,
            f64: gain(type_ratios.f64),
            f16: gain(type_ratios.f16),
            bf16: gain(type_ratios.bf16),
            i8: gain(type_ratios.i8),
            bandwidth,
        }
    }
}
