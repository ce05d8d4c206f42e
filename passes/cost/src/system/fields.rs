//! Reader of the keys of a table. Errors are collected, and reading continues.

use super::{
    error::{DescriptionError, Owner},
    units::UnitError,
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Problems with their byte offsets.
pub(super) type Diagnostics = Vec<(usize, DescriptionError)>;

pub(super) struct Fields<'t, 'i, 'f> {
    pub(super) owner: Owner,
    table: &'t DeTable<'i>,
    /// Byte offset of the table, the location of missing keys.
    pub(super) at: usize,
    pub(super) diagnostics: &'f mut Diagnostics,
}

impl<'t, 'i, 'f> Fields<'t, 'i, 'f> {
    pub(super) fn new(owner: Owner, table: &'t DeTable<'i>, at: usize, diagnostics: &'f mut Diagnostics) -> Self {
        Self { owner, table, at, diagnostics }
    }

    pub(super) fn report(&mut self, at: usize, error: DescriptionError) {
        self.diagnostics.push((at, error));
    }

    pub(super) fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.table.get(key)
    }

    /// Returns the byte offset of a key's value.
    pub(super) fn at(&self, key: &str) -> usize {
        self.get(key).map_or(self.at, |value| value.span().start)
    }

    /// Reports all other keys as errors, because misspelled ones would be ignored silently.
    pub(super) fn check_keys(&mut self, valid: &'static [&'static str]) {
        for key in self.table.keys().filter(|key| !valid.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref().to_string();
            let nearest = nearest(&name, valid);
            self.diagnostics.push((
                key.span().start,
                DescriptionError::UnknownKey { owner: self.owner.clone(), key: name, nearest, valid },
            ));
        }
    }

    /// Reports an absent key. If the key is present but `value` is `None`, its error was reported already.
    pub(super) fn require<T>(&mut self, key: &'static str, value: Option<T>) -> Option<T> {
        if self.get(key).is_none() {
            self.report(self.at, DescriptionError::MissingKey { owner: self.owner.clone(), key });
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
        self.report(value.span().start, DescriptionError::WrongType { owner, key: key.to_owned(), found, expected });
    }

    /// Returns a table with its byte offset.
    pub(super) fn table(&mut self, key: &'static str) -> Option<(usize, &'t DeTable<'i>)> {
        let value = self.get(key)?;
        if let Some(table) = value.get_ref().as_table() {
            return Some((value.span().start, table));
        }
        self.wrong_type(key, value, "a table");
        None
    }

    /// Returns a nonempty string.
    pub(super) fn text(&mut self, key: &'static str) -> Option<&'t str> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::String(text) if text.trim().is_empty() => {
                self.report(value.span().start, DescriptionError::Empty { owner: self.owner.clone(), key });
                None
            }
            DeValue::String(text) => Some(text),
            _ => {
                self.wrong_type(key, value, "a string");
                None
            }
        }
    }

    /// Returns a name that is a bare symbol of the IR.
    pub(super) fn identifier(&mut self, key: &'static str) -> Option<&'t str> {
        let text = self.text(key)?;
        if is_identifier(text) {
            return Some(text);
        }
        let owner = self.owner.clone();
        self.report(self.at(key), DescriptionError::NotAnIdentifier { owner, key, text: text.to_owned() });
        None
    }

    /// Returns the value of one of several keywords.
    pub(super) fn word<T: Copy>(&mut self, key: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let valid = words.iter().map(|(word, _)| *word).collect();
            let owner = self.owner.clone();
            self.report(self.at(key), DescriptionError::UnknownWord { owner, key, text: text.to_owned(), valid });
        }
        found
    }

    /// Returns a number with a unit. `plain` converts an integer without a unit, if that is allowed.
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
            // Parsing the number without a unit yields an error with an example.
            (DeValue::Integer(number), None) => (number.to_string(), parse(number.as_str())),
            (DeValue::Float(number), _) => (number.to_string(), parse(number.as_str())),
            _ => {
                self.wrong_type(key, value, "a string with a number and a unit");
                return None;
            }
        };
        let note = |error| {
            let owner = self.owner.clone();
            self.report(value.span().start, DescriptionError::Quantity { owner, key, text, error });
        };
        parsed.map_err(note).ok()
    }

    /// Returns an integer from 1 to `most`.
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
            let error = DescriptionError::OutOfRange { owner, key, text, from: 1, to: i64::from(most) };
            self.report(value.span().start, error);
        }
        count
    }

    /// Returns a list of strictly increasing integers from 1 to `most`.
    pub(super) fn increasing(&mut self, key: &'static str, most: u32) -> Option<Vec<u32>> {
        let value = self.get(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong_type(key, value, "a list of integers");
            return None;
        };
        if items.is_empty() {
            self.report(value.span().start, DescriptionError::Empty { owner: self.owner.clone(), key });
            return None;
        }
        let mut counts: Vec<u32> = Vec::new();
        for item in items.iter() {
            let count = self.count_of(key, item, most)?;
            if let Some(&before) = counts.last().filter(|before| **before >= count) {
                let (owner, before, after) = (self.owner.clone(), i64::from(before), i64::from(count));
                self.report(item.span().start, DescriptionError::NotIncreasing { owner, key, before, after });
                return None;
            }
            counts.push(count);
        }
        Some(counts)
    }
}

/// Returns true if MLIR prints a symbol of this name without quotes.
pub(super) fn is_identifier(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let later = |c: char| first(c) || c.is_ascii_digit() || matches!(c, '$' | '.');
    text.starts_with(first) && text.chars().all(later)
}

/// Returns the word with the smallest edit distance, if it is small.
fn nearest(word: &str, words: &[&'static str]) -> Option<&'static str> {
    let near = words.iter().map(|other| (edits(word, other), *other)).min()?;
    (near.0 <= 1 + near.1.len() / 4).then_some(near.1)
}

/// Returns the Levenshtein distance; `usize::MAX` for words whose lengths differ by more than 4.
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
    fn misspelled_words_find_the_nearest() {
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
