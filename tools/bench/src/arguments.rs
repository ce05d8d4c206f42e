//! What options of several commands have in common.

/// The seconds that an argument says behind its `=`.
pub(crate) fn seconds(argument: &str, text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    seconds.ok_or_else(|| format!("{argument}: not a number of seconds"))
}
