//! Quantities with units, and their syntax: `80 GiB`, `54 GB/s`, `10 us`, `66.9 TFLOP/s`.

pub use crate::units::Bytes;

/// Duration in seconds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

/// Bandwidth in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct BytesPerSecond(pub f64);

/// Arithmetic operations per second; a multiplication and an addition are two.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct FlopsPerSecond(pub f64);

impl Seconds {
    /// Returns the duration in microseconds.
    pub fn micros(self) -> f64 {
        self.0 * 1e6
    }
}

/// Error of parsing a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text before the unit is not a decimal number.
    #[error("'{0}' is not a number")]
    Number(String),
    /// There is no unit.
    #[error("it needs a unit, as in \"{example}\"")]
    MissingUnit {
        /// Valid quantity.
        example: &'static str,
    },
    /// The unit does not exist.
    #[error("unknown unit '{unit}' (use {})", .known.join(", "))]
    UnknownUnit {
        /// Unit that was given.
        unit: String,
        /// Valid units.
        known: Vec<&'static str>,
    },
    /// Not an integral number of bytes, such as a third of a kilobyte.
    #[error("it is not a whole number of bytes")]
    FractionalBytes,
    /// The quantity exceeds its limit.
    #[error("it is too large")]
    TooLarge,
    /// The quantity must be positive.
    #[error("it must be more than zero")]
    NotPositive,
    /// The quantity must not be negative.
    #[error("it must not be negative")]
    Negative,
}

/// Name of a unit and exponents of its factor, 10^`ten` * 2^`two`.
type Unit = (&'static str, i32, i32);

const SIZES: &[Unit] = &[
    ("B", 0, 0),
    ("kB", 3, 0),
    ("KiB", 0, 10),
    ("MB", 6, 0),
    ("MiB", 0, 20),
    ("GB", 9, 0),
    ("GiB", 0, 30),
    ("TB", 12, 0),
    ("TiB", 0, 40),
];

const BANDWIDTHS: &[Unit] = &[
    ("B/s", 0, 0),
    ("kB/s", 3, 0),
    ("KiB/s", 0, 10),
    ("MB/s", 6, 0),
    ("MiB/s", 0, 20),
    ("GB/s", 9, 0),
    ("GiB/s", 0, 30),
    ("TB/s", 12, 0),
    ("TiB/s", 0, 40),
    ("Mbit/s", 6, -3),
    ("Gbit/s", 9, -3),
];

const DURATIONS: &[Unit] = &[("ns", -9, 0), ("us", -6, 0), ("µs", -6, 0), ("ms", -3, 0), ("s", 0, 0)];

/// Integer units (OP) are equivalent to floating-point ones: the key determines the type.
const RATES: &[Unit] = &[
    ("MFLOP/s", 6, 0),
    ("GFLOP/s", 9, 0),
    ("TFLOP/s", 12, 0),
    ("PFLOP/s", 15, 0),
    ("MFLOPS", 6, 0),
    ("GFLOPS", 9, 0),
    ("TFLOPS", 12, 0),
    ("PFLOPS", 15, 0),
    ("GOP/s", 9, 0),
    ("TOP/s", 12, 0),
    ("POP/s", 15, 0),
    ("GOPS", 9, 0),
    ("TOPS", 12, 0),
    ("POPS", 15, 0),
];

/// Maximum size: sizes are signed 64-bit integers in the IR.
const MAX_BYTES: u64 = i64::MAX as u64;

/// Maximum rate or duration; larger ones are considered mistakes.
const MAX_QUANTITY: f64 = 1e24;

impl Bytes {
    /// Parses a size such as `80 GiB`, exactly: a fractional number of bytes is an error.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let (number, (_, ten, two)) = split(text, SIZES, "80 GiB")?;
        let decimal = Decimal::parse(number)?;
        if decimal.negative || decimal.digits.is_empty() {
            return Err(UnitError::NotPositive);
        }
        Self::new(decimal.whole(ten, two)?)
    }

    /// Returns a plain number of bytes, as a description may give it.
    pub(crate) fn from_integer(bytes: i64) -> Result<Self, UnitError> {
        u64::try_from(bytes).map_err(|_| UnitError::NotPositive).and_then(Self::new)
    }

    fn new(bytes: u64) -> Result<Self, UnitError> {
        match bytes {
            0 => Err(UnitError::NotPositive),
            1..=MAX_BYTES => Ok(Self(bytes)),
            _ => Err(UnitError::TooLarge),
        }
    }
}

impl BytesPerSecond {
    /// Parses a bandwidth such as `54 GB/s`.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        positive(quantity(text, BANDWIDTHS, "54 GB/s")?).map(Self)
    }
}

impl FlopsPerSecond {
    /// Parses a rate such as `66.9 TFLOP/s`.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        positive(quantity(text, RATES, "66.9 TFLOP/s")?).map(Self)
    }
}

impl Seconds {
    /// Parses a duration such as `10 us`; zero is allowed.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        // Unicode has two characters for the prefix: the Greek letter mu and the micro sign.
        let text = text.replace('\u{3bc}', "\u{b5}");
        let seconds = quantity(&text, DURATIONS, "10 us")?;
        // Converts -0 to 0.
        if seconds < 0.0 { Err(UnitError::Negative) } else { Ok(Self(seconds.abs())) }
    }
}

fn positive(value: f64) -> Result<f64, UnitError> {
    if value > 0.0 { Ok(value) } else { Err(UnitError::NotPositive) }
}

/// Parses a quantity and returns its number in the base unit, correctly rounded.
fn quantity(text: &str, units: &[Unit], example: &'static str) -> Result<f64, UnitError> {
    let (number, (_, ten, two)) = split(text, units, example)?;
    let value = Decimal::parse(number)?.scaled(ten) * 2f64.powi(two);
    if value.abs() <= MAX_QUANTITY { Ok(value) } else { Err(UnitError::TooLarge) }
}

/// Splits a text into a number and a unit, which may be separated by spaces.
fn split<'t>(text: &'t str, units: &[Unit], example: &'static str) -> Result<(&'t str, Unit), UnitError> {
    let text = text.trim();
    let in_number = |(at, c): (usize, char)| {
        // `e` belongs to the number only if an exponent follows: no unit starts with it.
        let exponent = || text[at + 1..].starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-');
        c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | '_') || (matches!(c, 'e' | 'E') && exponent())
    };
    let end = text.char_indices().find(|&at| !in_number(at)).map_or(text.len(), |(at, _)| at);
    let (number, unit) = (&text[..end], text[end..].trim_start());
    if number.is_empty() {
        return Err(UnitError::Number(text.to_owned()));
    }
    if unit.is_empty() {
        return Err(UnitError::MissingUnit { example });
    }
    let known = units.iter().find(|(name, ..)| *name == unit);
    let unknown = || UnitError::UnknownUnit {
        unit: unit.to_owned(),
        known: units.iter().map(|(name, ..)| *name).filter(|name| name.is_ascii()).collect(),
    };
    Ok((number, *known.ok_or_else(unknown)?))
}

/// Decimal number: `digits` * 10^`exponent`, without leading and trailing zeros.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i32,
}

/// Maximum length of a number, which also bounds the exponent's arithmetic.
const MAX_DIGITS: usize = 100;

impl Decimal {
    fn parse(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError::Number(text.to_owned());
        if text.len() > MAX_DIGITS {
            return Err(error());
        }
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent = exponent.parse::<i16>().map_err(|_| error())?;
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) {
            return Err(error());
        }
        let digits = format!("{whole}{fraction}");
        let trimmed = digits.trim_end_matches('0');
        let dropped = digits.len() - trimmed.len();
        Ok(Self {
            negative,
            digits: trimmed.trim_start_matches('0').to_owned(),
            exponent: i32::from(exponent) - fraction.len() as i32 + dropped as i32,
        })
    }

    /// Returns the number times 10^`ten`, rounded once.
    fn scaled(&self, ten: i32) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        format!("{sign}{digits}e{}", self.exponent + ten).parse().expect("digits and an exponent are a number")
    }

    /// Returns the absolute value times 10^`ten` * 2^`two`, if that is an integer.
    fn whole(&self, ten: i32, two: i32) -> Result<u64, UnitError> {
        let digits = self
            .digits
            .parse::<u128>()
            .map_err(|_| if self.exponent + ten >= 0 { UnitError::TooLarge } else { UnitError::FractionalBytes })?;
        let shifted = digits.checked_mul(1 << two).ok_or(UnitError::TooLarge)?;
        let exponent = self.exponent + ten;
        let power = 10u128.checked_pow(exponent.unsigned_abs());
        let value = if exponent >= 0 {
            power.and_then(|power| shifted.checked_mul(power)).ok_or(UnitError::TooLarge)?
        } else {
            match power {
                Some(power) if shifted.is_multiple_of(power) => shifted / power,
                _ => return Err(UnitError::FractionalBytes),
            }
        };
        u64::try_from(value).map_err(|_| UnitError::TooLarge)
    }
}

#[cfg(test)]
mod tests;
