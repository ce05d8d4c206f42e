//! Reader and writer of JSON for problems and plans.

use divi_json::{readable_message, shorten};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::model::error::Error;
use crate::model::units::number;

/// Deserializes a whole text; an error contains the path of the invalid value.
pub fn read<T: DeserializeOwned>(text: &str, format: &'static str) -> Result<T, Error> {
    let error = |place: String, message: String| Error::Format { format, place, message };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|fault| error(shorten(&fault.path().to_string()), readable_message(fault.inner())))?;
    deserializer.end().map_err(|fault| error(String::new(), fault.to_string()))?;
    Ok(value)
}

/// Deserializes a whole text whose key `format` is an `F`. An unknown format is reported before any other error, so that the
/// keys of a newer version are not reported as unknown fields.
pub(crate) fn read_format<F: DeserializeOwned, T: DeserializeOwned>(
    text: &str,
    format: &'static str,
) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct Header<F> {
        #[serde(rename = "format")]
        _format: F,
    }
    read(text, format).map_err(|error| match read::<Header<F>>(text, format).err() {
        Some(Error::Format { place, message, .. }) if place == "format" => Error::Format { format, place, message },
        _ => error,
    })
}

/// Object or list that is written item by item, one per line.
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

/// Returns a list with one item per line, as the value of a key.
pub(crate) fn list<T>(items: &[T], write: impl Fn(&T) -> String) -> String {
    let mut lines = Lines { text: "[".to_owned(), close: "  ]", indent: "    ", empty: true };
    for item in items {
        lines.item(&write(item));
    }
    lines.finish()
}

/// Returns a list on one line.
pub(crate) fn row<T>(items: impl IntoIterator<Item = T>, write: impl Fn(T) -> String) -> String {
    let items: Vec<String> = items.into_iter().map(write).collect();
    format!("[{}]", items.join(", "))
}

pub(crate) fn optional<T: Copy + Into<f64>>(value: &Option<T>) -> String {
    value.map_or_else(|| "null".to_owned(), number)
}

pub(crate) fn numbers<T: Copy + Into<f64>>(values: &[T]) -> String {
    row(values, |value| number(*value))
}

pub(crate) fn integers<T: ToString>(values: &[T]) -> String {
    row(values, ToString::to_string)
}
