//! Field-by-field access to JSON values.

use crate::Error;
use serde_json::{Map, Value};

/// JSON value with its path, for error messages.
#[derive(Clone, Debug)]
pub struct At<'a> {
    /// The value itself.
    pub value: &'a Value,
    path: String,
}

impl<'a> At<'a> {
    /// Wraps the root of a document.
    pub fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// Builds an error about this value.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::new(&self.path[..], message)
    }

    /// Builds the error "must be `expected`, is VALUE"; the printed value is truncated to 40 characters.
    pub fn wrong(&self, expected: &str) -> Error {
        let mut printed = self.value.to_string();
        if let Some((end, _)) = printed.char_indices().nth(40) {
            printed.replace_range(end.., "…");
        }
        self.error(format!("must be {expected}, is {printed}"))
    }

    fn child(&self, name: &str, value: &'a Value) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { value, path }
    }

    fn object(&self) -> Result<&'a Map<String, Value>, Error> {
        self.value.as_object().ok_or_else(|| self.wrong("an object"))
    }

    /// Returns the fields of an object in document order.
    pub fn fields(&self) -> Result<Vec<(&'a str, Self)>, Error> {
        Ok(self.object()?.iter().map(|(name, value)| (name.as_str(), self.child(name, value))).collect())
    }

    /// Returns a required field of an object.
    pub fn field(&self, name: &str) -> Result<Self, Error> {
        self.optional(name)?.ok_or_else(|| self.error(format!("field '{name}' is missing")))
    }

    /// Returns an optional field of an object.
    pub fn optional(&self, name: &str) -> Result<Option<Self>, Error> {
        Ok(self.object()?.get(name).map(|value| self.child(name, value)))
    }

    /// Checks that an object has no fields other than `known`.
    pub fn only(&self, known: &[&str]) -> Result<(), Error> {
        match self.object()?.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(self.error(format!("unknown field '{name}'; expected one of {}", known.join(", ")))),
        }
    }

    /// Returns the items of a list.
    pub fn items(&self) -> Result<Vec<Self>, Error> {
        let items = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let item = |(index, value)| Self { value, path: format!("{}[{index}]", self.path) };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// Returns a string.
    pub fn string(&self) -> Result<&'a str, Error> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    /// Returns a boolean.
    pub fn boolean(&self) -> Result<bool, Error> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// Returns a finite positive number.
    pub fn positive(&self) -> Result<f64, Error> {
        self.value.as_f64().filter(|it| *it > 0.0 && it.is_finite()).ok_or_else(|| self.wrong("a positive number"))
    }

    /// Returns a finite non-negative number.
    pub fn amount(&self) -> Result<f64, Error> {
        let number = self.value.as_f64().filter(|it| *it >= 0.0 && it.is_finite());
        number.ok_or_else(|| self.wrong("a number that is not negative"))
    }

    /// Returns a non-negative integer.
    pub fn count(&self) -> Result<u64, Error> {
        self.value.as_u64().ok_or_else(|| self.wrong("a whole number that is not negative"))
    }

    /// Returns a list of dimensions.
    pub fn shape(&self) -> Result<Vec<u64>, Error> {
        self.items()?.iter().map(Self::count).collect()
    }

    /// Returns a list of shapes.
    pub fn shapes(&self) -> Result<Vec<Vec<u64>>, Error> {
        self.items()?.iter().map(Self::shape).collect()
    }

    /// Checks that the field `format` is `expected` (format name and version).
    pub fn format(&self, expected: &str) -> Result<(), Error> {
        let field = self.field("format")?;
        match field.string()? {
            format if format == expected => Ok(()),
            format => Err(field.error(format!("must be '{expected}', is '{format}'"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn errors_contain_the_path() {
        let value = parse(r#"{"a": [{"b": 1}, {"b": -1.5}], "shape": [1, "x"]}"#).unwrap();
        let root = At::root(&value);
        let items = root.field("a").unwrap().items().unwrap();
        assert_eq!(items[0].field("b").unwrap().positive(), Ok(1.0));
        let prints = |error: Error, expected: &str| assert_eq!(error.to_string(), expected);
        prints(items[1].field("b").unwrap().positive().unwrap_err(), "a[1].b: must be a positive number, is -1.5");
        prints(items[1].field("c").unwrap_err(), "a[1]: field 'c' is missing");
        prints(root.only(&["a"]).unwrap_err(), "unknown field 'shape'; expected one of a");
        let shape = root.field("shape").unwrap();
        prints(shape.shape().unwrap_err(), "shape[1]: must be a whole number that is not negative, is \"x\"");
        prints(root.field("a").unwrap().string().unwrap_err(), "a: must be a string, is [{\"b\":1},{\"b\":-1.5}]");
    }
}
