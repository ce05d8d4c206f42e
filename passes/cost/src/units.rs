//! Quantities whose types have units.

use std::{fmt, iter::Sum, ops::Add};

/// Amount of memory or traffic. Sums and products saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// Multiplies by a factor.
    pub fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Add for Bytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::add)
    }
}

/// Formats in the largest binary unit for which the number is at least 1: `9.1 GiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let power = self.0.ilog2() / 10;
        write!(f, "{:.1} {}", self.0 as f64 / 1024f64.powi(power as i32), UNITS[power as usize - 1])
    }
}

/// Duration, or time since the start, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Micros(pub f64);

impl Micros {
    /// No time.
    pub const ZERO: Self = Self(0.0);
}

impl Add for Micros {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sum for Micros {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Self::add)
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} µs", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_formatted_with_units() {
        let prints = |bytes, expected: &str| assert_eq!(Bytes(bytes).to_string(), expected);
        prints(0, "0 B");
        prints(1023, "1023 B");
        prints(1024, "1.0 KiB");
        prints(9_770_000_000, "9.1 GiB");
        prints(u64::MAX, "16.0 EiB");
    }

    #[test]
    fn sums_saturate() {
        assert_eq!(Bytes(u64::MAX) + Bytes(1), Bytes(u64::MAX));
        assert_eq!([Bytes(1), Bytes(2)].into_iter().sum::<Bytes>(), Bytes(3));
        assert_eq!(Bytes(u64::MAX / 2).times(3), Bytes(u64::MAX));
        assert_eq!([Micros(1.5), Micros(2.0)].into_iter().sum::<Micros>(), Micros(3.5));
        assert_eq!(Micros(120.5).to_string(), "120.5 µs");
    }
}
