//! The keys of one table, read one by one; whatever is wrong with them is noted, and reading goes on.

use super::{
    error::{Owner, Problem},
    units::UnitError,
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Problems with the byte where each is.
pub(super) type Faults = Vec<(usize, Problem)>;

pub(super) struct Fields<'t, 'i, 'f> {
    pub(super) owner: Owner,
    table: &'t DeTable<'i>,
    /// Where the table starts: where missing keys are missing.
    pub(super) at: usize,
    pub(super) faults: &'f mut Faults,
}

impl<'t, 'i, 'f> Fields<'t, 'i, 'f> {
    pub(super) fn new(owner: Owner, table: &'t DeTable<'i>, at: usize, faults: &'f mut Faults) -> Self {
        Self { owner, table, at, faults }
    }

    pub(super) fn fault(&mut self, at: usize, problem: Problem) {
        self.faults.push((at, problem));
    }

    pub(super) fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.table.get(key)
    }

    /// Where a key's value is.
    pub(super) fn at(&self, key: &str) -> usize {
        self.get(key).map_or(self.at, |value| value.span().start)
    }

    /// Every other key is an error: a misspelt one would silently do nothing.
    pub(super) fn check_keys(&mut self, valid: &'static [&'static str]) {
        for key in self.table.keys().filter(|key| !valid.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref().to_string();
            let nearest = nearest(&name, valid);
            self.faults
                .push((key.span().start, Problem::UnknownKey { owner: self.owner.clone(), key: name, nearest, valid }));
        }
    }

    /// Notes that a key is missing, unless it is there (and then something else was wrong with it).
    pub(super) fn require<T>(&mut self, key: &'static str, value: Option<T>) -> Option<T> {
        if self.get(key).is_none() {
            self.fault(self.at, Problem::MissingKey { owner: self.owner.clone(), key });
        }
        value
    }

    fn wrong_type(&mut self, key: &str, value: &Spanned<DeValue<'_>>, expected: &'static str) {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let owner = self.owner.clone();
        self.fault(value.span().start, Problem::WrongType { owner, key: key.to_owned(), found, expected });
    }

    /// A table, with where it starts.
    pub(super) fn table(&mut self, key: &'static str) -> Option<(usize, &'t DeTable<'i>)> {
        let value = self.get(key)?;
        if let Some(table) = value.get_ref().as_table() {
            return Some((value.span().start, table));
        }
        self.wrong_type(key, value, "a table");
        None
    }

    /// A string that is not empty.
    pub(super) fn text(&mut self, key: &'static str) -> Option<&'t str> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::String(text) if text.trim().is_empty() => {
                self.fault(value.span().start, Problem::Empty { owner: self.owner.clone(), key });
                None
            }
            DeValue::String(text) => Some(text),
            _ => {
                self.wrong_type(key, value, "a string");
                None
            }
        }
    }

    /// A name that can be a symbol of the IR, bare.
    pub(super) fn identifier(&mut self, key: &'static str) -> Option<&'t str> {
        let text = self.text(key)?;
        if is_identifier(text) {
            return Some(text);
        }
        let owner = self.owner.clone();
        self.fault(self.at(key), Problem::NotAnIdentifier { owner, key, text: text.to_owned() });
        None
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, key: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let valid = words.iter().map(|(word, _)| *word).collect();
            let owner = self.owner.clone();
            self.fault(self.at(key), Problem::UnknownWord { owner, key, text: text.to_owned(), valid });
        }
        found
    }

    /// A number with a unit. `plain` says what an integer without one means, where it means anything.
    pub(super) fn quantity<Q>(
        &mut self,
        key: &'static str,
        parse: fn(&str) -> Result<Q, UnitError>,
        plain: Option<fn(i64) -> Result<Q, UnitError>>,
    ) -> Option<Q> {
        let value = self.get(key)?;
        let (text, parsed) = match (value.get_ref(), plain) {
            (DeValue::String(text), _) => (format!("\"{text}\""), parse(text)),
            (DeValue::Integer(number), Some(plain)) => (number.to_string(), {
                i64::from_str_radix(number.as_str(), number.radix())
                    .map_err(|_| {
                        if number.as_str().starts_with('-') { UnitError::NotPositive } else { UnitError::TooLarge }
                    })
                    .and_then(plain)
            }),
            // Parsing the number alone says which unit is missing.
            (DeValue::Integer(number), None) => (number.to_string(), parse(number.as_str())),
            (DeValue::Float(number), _) => (number.to_string(), parse(number.as_str())),
            _ => {
                self.wrong_type(key, value, "a string with a number and a unit");
                return None;
            }
        };
        let note = |error| {
            let owner = self.owner.clone();
            self.fault(value.span().start, Problem::Quantity { owner, key, text, error });
        };
        parsed.map_err(note).ok()
    }

    /// An integer from 1 to `most`.
    pub(super) fn count(&mut self, key: &'static str, most: u32) -> Option<u32> {
        let value = self.get(key)?;
        self.count_of(key, value, most)
    }

    fn count_of(&mut self, key: &'static str, value: &Spanned<DeValue<'_>>, most: u32) -> Option<u32> {
        let DeValue::Integer(number) = value.get_ref() else {
            self.wrong_type(key, value, "an integer");
            return None;
        };
        let count = i64::from_str_radix(number.as_str(), number.radix()).ok();
        let count = count.and_then(|count| u32::try_from(count).ok()).filter(|count| (1..=most).contains(count));
        if count.is_none() {
            let (owner, text) = (self.owner.clone(), number.to_string());
            let problem = Problem::OutOfRange { owner, key, text, from: 1, to: i64::from(most) };
            self.fault(value.span().start, problem);
        }
        count
    }

    /// A list of integers from 1 to `most`, in increasing order.
    pub(super) fn increasing(&mut self, key: &'static str, most: u32) -> Option<Vec<u32>> {
        let value = self.get(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong_type(key, value, "a list of integers");
            return None;
        };
        if items.is_empty() {
            self.fault(value.span().start, Problem::Empty { owner: self.owner.clone(), key });
            return None;
        }
        let mut counts: Vec<u32> = Vec::new();
        for item in items.iter() {
            let count = self.count_of(key, item, most)?;
            if let Some(&before) = counts.last().filter(|before| **before >= count) {
                let (owner, before, after) = (self.owner.clone(), i64::from(before), i64::from(count));
                self.fault(item.span().start, Problem::NotIncreasing { owner, key, before, after });
                return None;
            }
            counts.push(count);
        }
        Some(counts)
    }
}

/// What MLIR prints as a symbol without quotes.
pub(super) fn is_identifier(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let later = |c: char| first(c) || c.is_ascii_digit() || matches!(c, '$' | '.');
    text.starts_with(first) && text.chars().all(later)
}

/// The word that takes fewest edits to reach, if these are few.
fn nearest(word: &str, words: &[&'static str]) -> Option<&'static str> {
    let near = words.iter().map(|other| (edits(word, other), *other)).min()?;
    (near.0 <= 1 + near.1.len() / 4).then_some(near.1)
}

/// How many insertions, deletions and replacements make one word the other. Long words are not compared.
fn edits(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 4 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_find_their_neighbour() {
        let words = ["memory", "batch_sizes", "bandwidth", "bus"];
        assert_eq!(nearest("memmory", &words), Some("memory"));
        assert_eq!(nearest("batch-size", &words), Some("batch_sizes"));
        assert_eq!(nearest("colour", &words), None);
        assert_eq!(nearest("bussy", &words), None);
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn identifiers_are_those_of_mlir() {
        assert!(["gpu0", "_x", "n0.gpu$1"].iter().all(|text| is_identifier(text)));
        assert!(!["", "0gpu", "gpu 0", "gpu-0", "gpü", "a\n"].iter().any(|text| is_identifier(text)));
    }
}
