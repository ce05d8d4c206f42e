//! What options of several commands have in common.

/// The part of a benchmark that an argument names.
pub(crate) fn part<T>(
    parts: &'static [(&'static str, T)],
    argument: &str,
    usage: &str,
) -> Result<&'static (&'static str, T), String> {
    let part = parts.iter().find(|(name, _)| *name == argument);
    part.ok_or_else(|| format!("there is no part or option '{argument}'\n{usage}"))
}

/// Runs parts of a benchmark, with an empty line between their tables.
pub(crate) fn in_turn<'a, T: 'a>(
    parts: impl IntoIterator<Item = &'a (&'static str, T)>,
    mut run: impl FnMut(&T) -> Result<(), String>,
) -> Result<(), String> {
    for (index, (_, part)) in parts.into_iter().enumerate() {
        if index > 0 {
            println!();
        }
        run(part)?;
    }
    Ok(())
}

/// The seconds that an argument says behind its `=`.
pub(crate) fn seconds(argument: &str, text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    seconds.ok_or_else(|| format!("{argument}: not a number of seconds"))
}
