//! Strict JSON parser and human-readable JSON printer for all of divi's file formats except plans and problems.
//!
//! [`read`] deserializes a serde type; [`parse`] returns a [`Value`], which [`At`] reads field by field. Both reject invalid
//! JSON, duplicate keys of an object, more than 128 levels of nesting, and trailing characters. An [`Error`] contains the path
//! of the invalid value.

mod at;
mod unique;
mod write;

pub use at::At;
use serde::de::DeserializeOwned;
use serde_json::{Value, error::Category};
pub use write::write;

/// Parse error with the path of the invalid value: `entries[3].us.4: must be a positive number, is -1`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{message}", if .path.is_empty() { "" } else { ": " })]
pub struct Error {
    /// Path of the value; empty for the whole text.
    pub path: String,
    /// Description of the error.
    pub message: String,
}

impl Error {
    /// Builds an error about the value at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    fn of(path: &str, fault: &serde_json::Error) -> Self {
        match fault.classify() {
            Category::Data => Self::new(shorten(path), readable_message(fault)),
            // The message of a syntax error contains its line and column.
            _ => Self::new("", format!("not JSON: {fault}")),
        }
    }
}

/// Parses a text into a [`Value`].
pub fn parse(text: impl AsRef<[u8]>) -> Result<Value, Error> {
    read(text)
}

/// Deserializes a value of type `T` from a text.
pub fn read<T: DeserializeOwned>(text: impl AsRef<[u8]>) -> Result<T, Error> {
    // Structs that derive `Deserialize` reject duplicate keys; maps and `Value` silently keep the last one.
    deserialize::<unique::Checked>(text.as_ref())?;
    deserialize(text.as_ref())
}

fn deserialize<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    // Tracking paths doubles the parse time, so only rejected texts are parsed a second time with paths.
    serde_json::from_slice(text).or_else(|_| deserialize_with_path(text))
}

fn deserialize_with_path<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut json)
        .map_err(|fault| Error::of(&fault.path().to_string(), fault.inner()))?;
    json.end().map_err(|fault| Error::of("", &fault))?;
    Ok(value)
}

/// Returns a path without its unknown tail (`?`), truncated to 100 characters; empty for the whole text.
pub fn shorten(path: &str) -> String {
    const MAX_CHARACTERS: usize = 100;
    let known = path.trim_end_matches(['?', '.']);
    match known.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &known[..end]),
        None => known.to_owned(),
    }
}

/// Returns the message of an error with the names of Rust types replaced by descriptions.
pub fn readable_message(fault: &serde_json::Error) -> String {
    let whole = "a whole number from 0 on";
    let words = [("f64", "a number"), ("usize", whole), ("u64", whole), ("u32", whole)];
    words.iter().fold(fault.to_string(), |message, (kind, words)| {
        message.replace(&format!("expected {kind} "), &format!("expected {words} "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        name: String,
        times: Vec<BTreeMap<String, f64>>,
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = read::<File>(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{expected} at line 1 column ")), "{error}");
    }

    #[test]
    fn errors_have_the_path_of_the_value() {
        let times = vec![BTreeMap::from([("1".to_owned(), 2.0)])];
        assert_eq!(read(r#"{"name": "a", "times": [{"1": 2}]}"#), Ok(File { name: "a".to_owned(), times }));
        refused("{}", "missing field `name`");
        refused(
            r#"{"name": "a", "times": [{"1": 2}, {"1": "x"}]}"#,
            "times[1].1: invalid type: string \"x\", expected a number",
        );
        refused(r#"{"name": 1}"#, "name: invalid type: integer `1`, expected a string");
        refused(r#"{"title": "a"}"#, "title: unknown field `title`, expected `name` or `times`");
        let long = format!(r#"{{"name": "a", "times": [{{"{}": ""}}]}}"#, "x".repeat(1000));
        assert!(read::<File>(&long).unwrap_err().path.ends_with("xxx…"));
    }

    #[test]
    fn keys_given_twice_are_refused() {
        refused(r#"{"name": "a", "times": [{}, {"1": 2, "1": 3}]}"#, "times[1]: field '1' is given twice");
        refused(r#"{"name": "a", "name": "b"}"#, "field 'name' is given twice");
        let error = parse(r#"[{"us": 1, "\u0075s": 2}]"#).unwrap_err();
        assert_eq!((&error.path[..], &error.message[..28]), ("[0]", "field 'us' is given twice at"));
    }

    #[test]
    fn texts_that_are_not_json_are_refused() {
        refused("{", "not JSON: EOF while parsing an object");
        refused("", "not JSON: EOF while parsing a value");
        refused(r#"{"name": "a", "times": []} {}"#, "not JSON: trailing characters");
        assert_eq!(parse("1e999").unwrap_err().to_string(), "not JSON: number out of range at line 1 column 5");
        let deep = parse("[".repeat(100_000)).unwrap_err().to_string();
        assert_eq!(deep, "not JSON: recursion limit exceeded at line 1 column 128");
        assert!(parse(b"\"\xff\"").is_err());
    }

    #[test]
    fn values_are_as_they_were_written() {
        let text = r#"[null,true,1,-1,18446744073709551615,0.1,"s",{"b":1,"a":[]}]"#;
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
}
