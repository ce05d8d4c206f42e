//! Human-readable JSON with stable line breaks, so that files can be diffed.

use serde_json::Value;
use std::fmt::Write as _;

/// Prints an object with one line per field and one line per item of a list of objects. Items of the lists named in `opened`
/// are expanded in the same way. `step` is the number of spaces per indentation level.
pub fn write(value: &Value, step: usize, opened: &[&str]) -> String {
    let mut text = String::new();
    write_fields(&mut text, value, 0, step, opened);
    text + "\n"
}

fn write_fields(text: &mut String, value: &Value, indent: usize, step: usize, opened: &[&str]) {
    let Value::Object(fields) = value else {
        *text += &value.to_string();
        return;
    };
    let (of_field, of_item) = (indent + step, indent + 2 * step);
    *text += "{";
    for (index, (name, field)) in fields.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\n{:of_field$}{}: ", "", Value::from(name.as_str()));
        match field {
            Value::Array(items) if items.iter().any(Value::is_object) => {
                *text += "[";
                for (index, item) in items.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    let _ = write!(text, "{comma}\n{:of_item$}", "");
                    if opened.contains(&name.as_str()) {
                        write_fields(text, item, of_item, step, &[]);
                    } else {
                        *text += &item.to_string();
                    }
                }
                let _ = write!(text, "\n{:of_field$}]", "");
            }
            _ => *text += &field.to_string(),
        }
    }
    let _ = write!(text, "\n{:indent$}}}", "");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_of_objects_have_one_line_per_item() {
        let value = json!({"a": [1, 2], "b": [{"c": 1}, {"c": 2}], "d": [{"e": "\n", "f": [{}]}], "g": []});
        let expected = r#"{
  "a": [1,2],
  "b": [
    {"c":1},
    {"c":2}
  ],
  "d": [
    {
      "e": "\n",
      "f": [
        {}
      ]
    }
  ],
  "g": []
}
"#;
        assert_eq!(write(&value, 2, &["d"]), expected);
        assert_eq!(super::super::parse(expected).unwrap(), value);
    }
}
