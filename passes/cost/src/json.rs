//! Strict parsing of JSON, with the units of profiles.

pub use divi_json::Error;
pub(crate) use divi_json::{At, parse};

/// Reads a time in microseconds, which must be below a year.
pub(crate) fn micros(at: &At<'_>) -> Result<f64, Error> {
    const YEAR: f64 = 3.2e13;
    at.positive().and_then(|micros| if micros < YEAR { Ok(micros) } else { Err(at.wrong("below a year")) })
}
