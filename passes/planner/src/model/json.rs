//! Reading and writing JSON, for both formats.

use divi_json::{in_plain_words, shorten};
use serde::de::DeserializeOwned;

use crate::model::error::Error;
use crate::model::units::number;

/// Reads a whole text, and says at which key it is wrong.
pub fn read<T: DeserializeOwned>(text: &str, format: &'static str) -> Result<T, Error> {
    let error = |place: String, message: String| Error::Format { format, place, message };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|fault| error(shorten(&fault.path().to_string()), in_plain_words(fault.inner())))?;
    deserializer.end().map_err(|fault| error(String::new(), fault.to_string()))?;
    Ok(value)
}

/// An object or list that is written piece by piece, so that each piece has a line of its own.
pub(crate) struct Lines {
    text: String,
    close: &'static str,
    indent: &'static str,
    empty: bool,
}

impl Lines {
    pub(crate) fn object() -> Self {
        Self { text: "{".to_owned(), close: "}", indent: "  ", empty: true }
    }

    fn item(&mut self, item: &str) {
        self.text.push_str(if self.empty { "\n" } else { ",\n" });
        self.text.push_str(self.indent);
        self.text.push_str(item);
        self.empty = false;
    }

    pub(crate) fn key(&mut self, key: &str, value: &str) {
        self.item(&format!("{}: {value}", string(key)));
    }

    pub(crate) fn finish(mut self) -> String {
        if !self.empty {
            self.text.push('\n');
        }
        self.text.push_str(if self.empty { self.close.trim_start() } else { self.close });
        self.text
    }
}

pub(crate) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A list with a line an item, as the value of a key.
pub(crate) fn list<T>(items: &[T], write: impl Fn(&T) -> String) -> String {
    let mut lines = Lines { text: "[".to_owned(), close: "  ]", indent: "    ", empty: true };
    for item in items {
        lines.item(&write(item));
    }
    lines.finish()
}

/// A list on one line.
pub(crate) fn row<T>(items: impl IntoIterator<Item = T>, write: impl Fn(T) -> String) -> String {
    let items: Vec<String> = items.into_iter().map(write).collect();
    format!("[{}]", items.join(", "))
}

pub(crate) fn optional(value: &Option<f64>) -> String {
    value.map_or_else(|| "null".to_owned(), number)
}

pub(crate) fn numbers(values: &[f64]) -> String {
    row(values, |value| number(*value))
}

pub(crate) fn integers<T: ToString>(values: &[T]) -> String {
    row(values, ToString::to_string)
}
