//! Lists of known failures with their reasons.

/// List of expected failures, one `name-or-glob: reason` per line. A line that matches no failure is reported too, so that
/// the list stays up to date.
pub struct Exceptions {
    file: &'static str,
    lines: Vec<Line>,
}

struct Line {
    pattern: String,
    reason: String,
}

impl Exceptions {
    /// Parses a list; `file` is its name in reports.
    pub fn parse(file: &'static str, text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let lines = lines.map(|line| {
            let (pattern, reason) = line.split_once(':').unwrap_or_else(|| panic!("'{line}' has no reason"));
            assert!(!reason.trim().is_empty(), "'{line}' has no reason");
            Line { pattern: pattern.trim().to_owned(), reason: reason.trim().to_owned() }
        });
        Self { file, lines: lines.collect() }
    }

    /// Returns the unexpected failures and the outdated lines. `verdicts` has all cases, each with its failure, if any.
    pub fn complaints<'a>(&self, verdicts: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Vec<String> {
        let (mut complaints, needed) = self.judge(verdicts);
        for (line, _) in self.lines.iter().zip(&needed).filter(|(_, needed)| !**needed) {
            complaints.push(format!("{}: '{}' matches no failing case", self.file, line.pattern));
        }
        complaints
    }

    /// Returns the unexpected failures of a subset of the cases; unused lines are not reported.
    pub fn complaints_of_some<'a>(&self, verdicts: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Vec<String> {
        self.judge(verdicts).0
    }

    /// Returns the unexpected failures, and for each line whether it matches a failure.
    fn judge<'a>(&self, verdicts: impl IntoIterator<Item = (&'a str, Option<String>)>) -> (Vec<String>, Vec<bool>) {
        let mut complaints = vec![];
        let mut needed = vec![false; self.lines.len()];
        for (name, verdict) in verdicts {
            let lines: Vec<_> = (0..self.lines.len()).filter(|&i| matches(&self.lines[i].pattern, name)).collect();
            match (verdict, &lines[..]) {
                (Some(message), []) => complaints.push(format!("{name}: {message}")),
                (Some(_), lines) => lines.iter().for_each(|&i| needed[i] = true),
                (None, []) => {}
                (None, [line, ..]) => {
                    let Line { pattern, reason } = &self.lines[*line];
                    complaints.push(format!("{name} passes, but {} lists it: '{pattern}: {reason}'", self.file));
                }
            }
        }
        (complaints, needed)
    }
}

/// Returns true if a name matches a pattern, in which `*` stands for any text.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name
            .strip_prefix(head)
            .is_some_and(|tail| (0..=tail.len()).any(|i| tail.is_char_boundary(i) && matches(rest, &tail[i..]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match() {
        assert!(matches("test_if", "test_if"));
        assert!(!matches("test_if", "test_if_seq"));
        assert!(matches("test_*_seq", "test_if_seq"));
        assert!(matches("test_if*", "test_if"));
        assert!(!matches("*_seq", "test_if_seq_none"));
    }

    #[test]
    fn lists_excuse_only_the_cases_they_name() {
        let list = Exceptions::parse("list.txt", "# why\n\ntest_if*: too hard\ntest_gone: was hard\n");
        let bad = || Some("is bad".to_owned());
        let verdicts = [("test_if_opt", bad()), ("test_if", None), ("test_add", bad()), ("test_abs", None)];
        let expected = [
            "test_if passes, but list.txt lists it: 'test_if*: too hard'",
            "test_add: is bad",
            "list.txt: 'test_gone' matches no failing case",
        ];
        assert_eq!(list.complaints(verdicts), expected);
    }
}
