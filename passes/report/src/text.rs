//! Number formatting, and escaping for HTML, SVG, JSON and Graphviz.

use divi_planner::units::Micros;

/// Formats a time: `1234.5 µs`.
pub(crate) fn micros(time: Micros) -> String {
    format!("{time:.1} µs")
}

/// Formats a share with a number of decimals: `2.79 %`.
pub(crate) fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$} %", 100.0 * share)
}

/// Formats a count: `1 task`, `2 tasks`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Escapes text for an element or a quoted attribute of HTML or SVG. Characters that XML excludes become blanks.
pub(crate) fn markup(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\u{0}'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => safe.push(' '),
            _ => safe.push(letter),
        }
    }
    safe
}

/// Formats JSON for a script element without `<`, so that no `</script>` or `<!--` can end or change it.
pub(crate) fn script_json(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// Quotes a string for Graphviz.
pub(crate) fn quoted(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 2);
    safe.push('"');
    for letter in text.chars() {
        match letter {
            '"' => safe.push_str("\\\""),
            // Graphviz interprets escapes such as \N, and entities.
            '\\' => safe.push_str("\\\\"),
            '&' => safe.push_str("&amp;"),
            '\n' => safe.push_str("\\n"),
            letter if letter.is_control() => safe.push(' '),
            _ => safe.push(letter),
        }
    }
    safe.push('"');
    safe
}

/// Returns a step of 1, 2 or 5 times a power of ten that divides a length into at most `pieces` pieces.
pub(crate) fn nice_step(length: f64, pieces: f64) -> f64 {
    let rough = length / pieces;
    let power = 10.0_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= rough).unwrap_or(10.0 * power)
}

/// Returns a unit suitable for times up to `longest`, and its length in microseconds.
pub(crate) fn time_unit(longest: Micros) -> (&'static str, Micros) {
    match longest {
        longest if longest >= Micros(2e6) => ("s", Micros(1e6)),
        longest if longest >= Micros(2e3) => ("ms", Micros(1e3)),
        _ => ("µs", Micros(1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted() {
        assert_eq!(micros(Micros(1234.46)), "1234.5 µs");
        assert_eq!(percent(0.02789, 2), "2.79 %");
        assert_eq!(counted(1, "transfer"), "1 transfer");
        assert_eq!(counted(0, "transfer"), "0 transfers");
        assert_eq!(time_unit(Micros(1500.0)), ("µs", Micros(1.0)));
        assert_eq!(time_unit(Micros(2500.0)), ("ms", Micros(1e3)));
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(nice_step(100.0, 10.0), 10.0);
        assert_eq!(nice_step(101.0, 10.0), 20.0);
        assert_eq!(nice_step(0.7, 10.0), 0.1);
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(markup("<a b=\"c\">\n&'"), "&lt;a b=&quot;c&quot;&gt; &amp;&#39;");
        assert_eq!(quoted("a\"b\\N\n&"), "\"a\\\"b\\\\N\\n&amp;\"");
        let json = script_json(&serde_json::json!({"</script>": "<!-- <script>"}));
        assert!(!json.contains('<'));
        let back: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(back, serde_json::json!({"</script>": "<!-- <script>"}));
    }
}
