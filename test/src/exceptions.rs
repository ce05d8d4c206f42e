//! Lists of what is known not to work, a reason each.

/// Cases that a test excuses, as `name-or-glob: reason` a line. A line that nothing needs any more is a complaint too, so
/// that the list stays true.
pub struct Exceptions {
    file: &'static str,
    lines: Vec<Line>,
}

struct Line {
    pattern: String,
    reason: String,
}

impl Exceptions {
    /// Reads a list; `file` is what complaints call it.
    pub fn parse(file: &'static str, text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let lines = lines.map(|line| {
            let (pattern, reason) = line.split_once(':').unwrap_or_else(|| panic!("'{line}' gives no reason"));
            assert!(!reason.trim().is_empty(), "'{line}' gives no reason");
            Line { pattern: pattern.trim().to_owned(), reason: reason.trim().to_owned() }
        });
        Self { file, lines: lines.collect() }
    }

    /// What is wrong with cases that the list does not excuse, and with the list. `verdicts` are the names of all cases,
    /// with what is wrong with each, if anything.
    pub fn complaints<'a>(&self, verdicts: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Vec<String> {
        let (mut complaints, needed) = self.judge(verdicts);
        for (line, _) in self.lines.iter().zip(&needed).filter(|(_, needed)| !**needed) {
            complaints.push(format!("{} lists '{}', which no failing case has the name of", self.file, line.pattern));
        }
        complaints
    }

    /// The same if `verdicts` are of some cases only: lines may be there for others.
    pub fn complaints_of_some<'a>(&self, verdicts: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Vec<String> {
        self.judge(verdicts).0
    }

    /// Complaints about cases, and which lines a case needs.
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
                    complaints.push(format!("{name} is right, but {} lists it: '{pattern}: {reason}'", self.file));
                }
            }
        }
        (complaints, needed)
    }
}

/// Whether a name has the form of a pattern, in which `*` stands for any text.
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
    fn lists_excuse_what_they_name_and_nothing_else() {
        let list = Exceptions::parse("list.txt", "# why\n\ntest_if*: too hard\ntest_gone: was hard\n");
        let bad = || Some("is bad".to_owned());
        let verdicts = [("test_if_opt", bad()), ("test_if", None), ("test_add", bad()), ("test_abs", None)];
        let expected = [
            "test_if is right, but list.txt lists it: 'test_if*: too hard'",
            "test_add: is bad",
            "list.txt lists 'test_gone', which no failing case has the name of",
        ];
        assert_eq!(list.complaints(verdicts), expected);
    }
}
