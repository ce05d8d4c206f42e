//! Peak rates of devices.

use crate::system::units::{BytesPerSecond, FlopsPerSecond};

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

/// How much faster than f32 other numbers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    pub f64: f64,
    pub f16: f64,
    pub bf16: f64,
    pub i8: f64,
}

impl Gains {
    /// Where nothing is known: small numbers are no faster, large ones half as fast.
    pub const UNKNOWN: Self = Self { f64: 0.5, f16: 1.0, bf16: 1.0, i8: 1.0 };
}

/// Rates of a device whose description gives none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DefaultRates {
    pub f32: Option<FlopsPerSecond>,
    pub bandwidth: Option<BytesPerSecond>,
    /// Rates of other numbers, in that of f32: the given one if there is any.
    pub gains: Gains,
    /// The keys to give where a rate is not known: `give 'arch', or 'flops' and 'bandwidth'`.
    pub remedy: &'static str,
}

impl Rates {
    pub fn with_gains(f32: FlopsPerSecond, bandwidth: BytesPerSecond, gains: Gains) -> Self {
        let gain = |factor: f64| FlopsPerSecond(f32.0 * factor);
        Self { f32, f64: gain(gains.f64), f16: gain(gains.f16), bf16: gain(gains.bf16), i8: gain(gains.i8), bandwidth }
    }
}
