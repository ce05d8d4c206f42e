//! Reading JSON strictly: whatever is wrong is said with the path of the field.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// What is wrong with a file, and where: `entries[3].us.4: must be a positive number, is -1`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{message}", if .path.is_empty() { "" } else { ": " })]
pub struct Error {
    path: String,
    message: String,
}

impl Error {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// Parses a text. A field that is given twice is an error: nobody can say which one is meant.
pub fn parse(text: &str) -> Result<Value, Error> {
    serde_json::from_str::<Unique>(text).map(|it| it.0).map_err(|error| Error::new("", format!("not JSON: {error}")))
}

/// A value whose objects have every field once.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;

        impl<'de> Visitor<'de> for Values {
            type Value = Unique;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_unit<E>(self) -> Result<Unique, E> {
                Ok(Unique(Value::Null))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Unique, E> {
                Ok(Unique(Value::Bool(value)))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Unique, E> {
                Ok(Unique(Number::from_f64(value).map_or(Value::Null, Value::Number)))
            }

            fn visit_str<E>(self, value: &str) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
                let mut list = vec![];
                while let Some(Unique(item)) = items.next_element()? {
                    list.push(item);
                }
                Ok(Unique(Value::Array(list)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Unique, A::Error> {
                let mut map = Map::new();
                while let Some((name, Unique(value))) = fields.next_entry::<String, Unique>()? {
                    if map.contains_key(&name) {
                        return Err(A::Error::custom(format!("field '{name}' is given twice")));
                    }
                    map.insert(name, value);
                }
                Ok(Unique(Value::Object(map)))
            }
        }

        deserializer.deserialize_any(Values)
    }
}

/// A value and where it is.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    pub(crate) value: &'a Value,
    path: String,
}

impl<'a> At<'a> {
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        Error::new(&self.path[..], message)
    }

    /// The error that it is not what it must be.
    fn wrong(&self, expected: &str) -> Error {
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

    /// The fields of an object, in the order in which they are written.
    pub(crate) fn fields(&self) -> Result<Vec<(&'a str, Self)>, Error> {
        Ok(self.object()?.iter().map(|(name, value)| (name.as_str(), self.child(name, value))).collect())
    }

    pub(crate) fn field(&self, name: &str) -> Result<Self, Error> {
        self.optional(name)?.ok_or_else(|| self.error(format!("field '{name}' is missing")))
    }

    /// A field that may be left out.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<Self>, Error> {
        Ok(self.object()?.get(name).map(|value| self.child(name, value)))
    }

    /// Checks that there are no fields but these.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Error> {
        match self.object()?.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(self.error(format!("unknown field '{name}'; there are {}", known.join(", ")))),
        }
    }

    pub(crate) fn items(&self) -> Result<Vec<Self>, Error> {
        let items = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let item = |(index, value)| Self { value, path: format!("{}[{index}]", self.path) };
        Ok(items.iter().enumerate().map(item).collect())
    }

    pub(crate) fn string(&self) -> Result<&'a str, Error> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    pub(crate) fn boolean(&self) -> Result<bool, Error> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// A number above zero.
    pub(crate) fn positive(&self) -> Result<f64, Error> {
        self.value.as_f64().filter(|it| *it > 0.0 && it.is_finite()).ok_or_else(|| self.wrong("a positive number"))
    }

    /// A number that is not negative.
    pub(crate) fn amount(&self) -> Result<f64, Error> {
        let number = self.value.as_f64().filter(|it| *it >= 0.0 && it.is_finite());
        number.ok_or_else(|| self.wrong("a number that is not negative"))
    }

    pub(crate) fn count(&self) -> Result<u64, Error> {
        self.value.as_u64().ok_or_else(|| self.wrong("a whole number that is not negative"))
    }

    /// A time in microseconds. What takes longer than a year was not measured.
    pub(crate) fn micros(&self) -> Result<f64, Error> {
        const YEAR: f64 = 3.2e13;
        self.positive().and_then(|micros| if micros < YEAR { Ok(micros) } else { Err(self.wrong("below a year")) })
    }

    /// A list of sizes.
    pub(crate) fn shape(&self) -> Result<Vec<u64>, Error> {
        self.items()?.iter().map(Self::count).collect()
    }

    pub(crate) fn shapes(&self) -> Result<Vec<Vec<u64>>, Error> {
        self.items()?.iter().map(Self::shape).collect()
    }

    /// Checks the name of the format and its version.
    pub(crate) fn format(&self, expected: &str) -> Result<(), Error> {
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

    #[test]
    fn errors_say_where() {
        let value = parse(r#"{"a": [{"b": 1}, {"b": -1.5}], "shape": [1, "x"]}"#).unwrap();
        let root = At::root(&value);
        let items = root.field("a").unwrap().items().unwrap();
        assert_eq!(items[0].field("b").unwrap().positive(), Ok(1.0));
        let prints = |error: Error, expected: &str| assert_eq!(error.to_string(), expected);
        prints(items[1].field("b").unwrap().positive().unwrap_err(), "a[1].b: must be a positive number, is -1.5");
        prints(items[1].field("c").unwrap_err(), "a[1]: field 'c' is missing");
        prints(root.only(&["a"]).unwrap_err(), "unknown field 'shape'; there are a");
        let shape = root.field("shape").unwrap();
        prints(shape.shape().unwrap_err(), "shape[1]: must be a whole number that is not negative, is \"x\"");
        prints(root.field("a").unwrap().string().unwrap_err(), "a: must be a string, is [{\"b\":1},{\"b\":-1.5}]");
    }

    #[test]
    fn fields_given_twice_are_errors() {
        let error = parse(r#"{"us": 1, "us": 2}"#).unwrap_err().to_string();
        assert!(error.starts_with("not JSON: field 'us' is given twice at line 1"), "{error}");
        assert!(parse("{").unwrap_err().to_string().starts_with("not JSON: "));
        assert_eq!(parse(r#"[null, true, 1, -1, 0.5, "s"]"#).unwrap().to_string(), r#"[null,true,1,-1,0.5,"s"]"#);
    }
}
