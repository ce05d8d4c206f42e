//! Quantities with their units in their types. Ratios, shares and coefficients of integer programs are plain numbers.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Time in microseconds: a duration, or an instant since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct Micros(pub f64);

/// Size in bytes. Integral in practice; a view of a problem may count in another unit, then it need not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct Bytes(pub f64);

/// Bandwidth in bytes per microsecond: 32000 is PCIe 4.0 x16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct BytesPerMicro(pub f64);

/// Reciprocal of a bandwidth, or price of memory, in microseconds per byte.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct MicrosPerByte(pub f64);

/// Implements the arithmetic of quantities. Operators are inlined in builds without optimization too.
macro_rules! quantity {
    ($($unit:ident),+) => {$(
        impl $unit {
            /// Zero.
            pub const ZERO: Self = Self(0.0);
            /// Infinity.
            pub const INFINITY: Self = Self(f64::INFINITY);

            /// Returns the larger of two; if one is NaN, the other.
            #[inline(always)]
            pub fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }

            /// Returns the smaller of two; if one is NaN, the other.
            #[inline(always)]
            pub fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }

            /// Returns the nearest quantity from `least` to `most`.
            pub fn clamp(self, least: Self, most: Self) -> Self {
                Self(self.0.clamp(least.0, most.0))
            }

            /// Returns the absolute value.
            pub fn abs(self) -> Self {
                Self(self.0.abs())
            }

            /// Compares by the total order of [`f64::total_cmp`].
            #[inline(always)]
            pub fn total_cmp(&self, other: &Self) -> Ordering {
                self.0.total_cmp(&other.0)
            }

            /// Returns true if it is neither infinite nor NaN.
            #[inline(always)]
            pub fn is_finite(self) -> bool {
                self.0.is_finite()
            }

            /// Returns true if it is infinite.
            #[inline(always)]
            pub fn is_infinite(self) -> bool {
                self.0.is_infinite()
            }
        }

        // Derived operators compare by way of an `Option<Ordering>`, which is slower.
        impl PartialOrd for $unit {
            #[inline(always)]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.0.partial_cmp(&other.0)
            }

            #[inline(always)]
            fn lt(&self, other: &Self) -> bool {
                self.0 < other.0
            }

            #[inline(always)]
            fn le(&self, other: &Self) -> bool {
                self.0 <= other.0
            }

            #[inline(always)]
            fn gt(&self, other: &Self) -> bool {
                self.0 > other.0
            }

            #[inline(always)]
            fn ge(&self, other: &Self) -> bool {
                self.0 >= other.0
            }
        }

        impl Add for $unit {
            type Output = Self;

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl Sub for $unit {
            type Output = Self;

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl Neg for $unit {
            type Output = Self;

            #[inline(always)]
            fn neg(self) -> Self {
                Self(-self.0)
            }
        }

        impl AddAssign for $unit {
            #[inline(always)]
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl SubAssign for $unit {
            #[inline(always)]
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }

        impl Mul<f64> for $unit {
            type Output = Self;

            #[inline(always)]
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }

        impl Mul<$unit> for f64 {
            type Output = $unit;

            #[inline(always)]
            fn mul(self, quantity: $unit) -> $unit {
                $unit(self * quantity.0)
            }
        }

        impl Div<f64> for $unit {
            type Output = Self;

            #[inline(always)]
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }

        impl Div for $unit {
            type Output = f64;

            #[inline(always)]
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }

        impl Sum for $unit {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                Self(all.map(f64::from).sum())
            }
        }

        impl<'a> Sum<&'a Self> for $unit {
            fn sum<I: Iterator<Item = &'a Self>>(all: I) -> Self {
                all.copied().sum()
            }
        }

        impl From<$unit> for f64 {
            #[inline(always)]
            fn from(quantity: $unit) -> f64 {
                quantity.0
            }
        }

        /// Formats the number, without a unit.
        impl fmt::Display for $unit {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    )+};
}

quantity!(Micros, Bytes, BytesPerMicro, MicrosPerByte);

/// Duration of a transfer.
impl Div<BytesPerMicro> for Bytes {
    type Output = Micros;

    #[inline(always)]
    fn div(self, bandwidth: BytesPerMicro) -> Micros {
        Micros(self.0 / bandwidth.0)
    }
}

impl Mul<Micros> for BytesPerMicro {
    type Output = Bytes;

    #[inline(always)]
    fn mul(self, time: Micros) -> Bytes {
        Bytes(self.0 * time.0)
    }
}

impl Mul<MicrosPerByte> for Bytes {
    type Output = Micros;

    #[inline(always)]
    fn mul(self, each: MicrosPerByte) -> Micros {
        Micros(self.0 * each.0)
    }
}

impl Div<Bytes> for Micros {
    type Output = MicrosPerByte;

    #[inline(always)]
    fn div(self, bytes: Bytes) -> MicrosPerByte {
        MicrosPerByte(self.0 / bytes.0)
    }
}

impl Div<BytesPerMicro> for f64 {
    type Output = MicrosPerByte;

    #[inline(always)]
    fn div(self, bandwidth: BytesPerMicro) -> MicrosPerByte {
        MicrosPerByte(self / bandwidth.0)
    }
}

/// A number with the order of [`f64::total_cmp`], for heaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Total(pub(crate) f64);

impl Ord for Total {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Total {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Total {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Total {}

/// Formats a size with a unit: `1.5 GiB`.
pub fn human_bytes(bytes: Bytes) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes.0 < 1024.0 {
        return if bytes.0 == 1.0 { "1 byte".to_owned() } else { format!("{} bytes", number(bytes)) };
    }
    let mut scaled = bytes.0 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if scaled < 1024.0 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    format!("{scaled:.2} {unit}")
}

/// Formats a number as in both file formats: integers without a fraction, others with as many digits as needed to read
/// the same number back.
pub fn number(value: impl Into<f64>) -> String {
    // Adding zero turns -0 into 0: one number, one text.
    format!("{}", value.into() + 0.0)
}

/// Formats a number for messages: with an exponent if it would have many zeros.
pub fn short_number(value: impl Into<f64>) -> String {
    let value = value.into();
    let short = value == 0.0 || (1e-6..1e20).contains(&value.abs());
    if short || !value.is_finite() { number(value) } else { format!("{value:e}") }
}

/// Returns the instant `seconds` after `since`; `None` if the clock cannot represent it. Negative seconds count as zero.
pub(crate) fn deadline(since: Instant, seconds: f64) -> Option<Instant> {
    let allowed = Duration::try_from_secs_f64(seconds.max(0.0)).ok()?;
    since.checked_add(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_formatted_with_units() {
        assert_eq!(human_bytes(Bytes(1.0)), "1 byte");
        assert_eq!(human_bytes(Bytes(12.0)), "12 bytes");
        assert_eq!(human_bytes(Bytes(1536.0)), "1.50 KiB");
        assert_eq!(human_bytes(Bytes(8.0 * 1024.0 * 1024.0 * 1024.0)), "8.00 GiB");
        assert_eq!(human_bytes(Bytes(4096.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0)), "4096.00 TiB");
    }

    #[test]
    fn numbers_round_trip() {
        for value in [0.0, 1.0, 0.1, 1.0 / 3.0, 1e300, 9_007_199_254_740_993.0, 2.5e-7] {
            assert_eq!(number(value).parse::<f64>(), Ok(value));
        }
        assert_eq!(number(-0.0), "0");
        assert_eq!(number(1785.0), "1785");
    }

    #[test]
    fn numbers_in_messages_are_short() {
        assert_eq!(short_number(1e308), "1e308");
        assert_eq!(short_number(-2.5e-30), "-2.5e-30");
        assert_eq!(short_number(1785.5), "1785.5");
        assert_eq!(short_number(-0.0), "0");
        assert_eq!(short_number(f64::INFINITY), "inf");
    }
}
