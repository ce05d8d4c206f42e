//! Units of numbers. Solvers work on plain numbers; names and these aliases say in which unit.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

/// Time in microseconds.
pub type Micros = f64;
/// Sizes in bytes. Whole numbers in practice; a view of a problem may count in another unit, then they need not be.
pub type Bytes = f64;
/// Bandwidth in bytes per microsecond: 32000 is PCIe 4.0 x16.
pub type BytesPerMicro = f64;

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

/// A size as people read it: `1.5 GiB`.
pub fn human_bytes(bytes: Bytes) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024.0 {
        return if bytes == 1.0 { "1 byte".to_owned() } else { format!("{} bytes", number(bytes)) };
    }
    let mut scaled = bytes / 1024.0;
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

/// A number as both formats write it: whole numbers without a fraction, others with as many digits as it takes to read
/// the same number again.
pub fn number(value: f64) -> String {
    // Adding zero turns -0 into 0: one number, one text.
    format!("{}", value + 0.0)
}

/// A number as messages have it: with an exponent where it would be a row of zeros.
pub fn short_number(value: f64) -> String {
    let short = value == 0.0 || (1e-6..1e20).contains(&value.abs());
    if short || !value.is_finite() { number(value) } else { format!("{value:e}") }
}

/// The instant so many seconds after another; none if it is later than clocks can say. Negative seconds are none.
pub(crate) fn deadline(since: Instant, seconds: f64) -> Option<Instant> {
    let allowed = Duration::try_from_secs_f64(seconds.max(0.0)).ok()?;
    since.checked_add(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        assert_eq!(human_bytes(1.0), "1 byte");
        assert_eq!(human_bytes(12.0), "12 bytes");
        assert_eq!(human_bytes(1536.0), "1.50 KiB");
        assert_eq!(human_bytes(8.0 * 1024.0 * 1024.0 * 1024.0), "8.00 GiB");
        assert_eq!(human_bytes(4096.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0), "4096.00 TiB");
    }

    #[test]
    fn numbers_come_back() {
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
