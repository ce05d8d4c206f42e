//! Reads the passes that `td/Passes.td` declares from TableGen's JSON.

use serde_json::Value;

/// Record of class `DiviPass`.
pub(crate) struct Pass {
    /// Name of the C++ class and of the Rust struct.
    pub(crate) name: String,
    /// Name on command lines, `divi-…`.
    pub(crate) argument: String,
    pub(crate) summary: String,
    pub(crate) options: Vec<PassOption>,
    pub(crate) statistics: Vec<Statistic>,
    pub(crate) is_read_only: bool,
    pub(crate) uses_session: bool,
    pub(crate) writes_text: bool,
}

impl Pass {
    /// Returns true if some option has no default value.
    pub(crate) fn has_optional(&self) -> bool {
        self.options.iter().any(|option| matches!(option.r#type, OptionType::Optional(_)))
    }
}

/// Record of class `Option`.
pub(crate) struct PassOption {
    /// Name of the C++ member.
    pub(crate) name: String,
    pub(crate) r#type: OptionType,
    /// C++ expression; empty for lists.
    pub(crate) default: String,
    pub(crate) description: String,
}

/// Types of options that can be passed to Rust.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionType {
    Scalar(Scalar),
    /// `OptionalOption`.
    Optional(Scalar),
    Text,
    /// `PathOption`.
    Path,
    /// `ListOption` of strings.
    Texts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    Bool,
    Integer,
    Real,
}

/// Record of class `Statistic`.
pub(crate) struct Statistic {
    /// Name of the C++ member.
    pub(crate) name: String,
    pub(crate) description: String,
}

/// Reads the passes, in the order of their names.
///
/// # Panics
/// If a pass or an option has no representation in Rust, with the reason.
pub(crate) fn read(json: &str) -> Vec<Pass> {
    let records: Value = serde_json::from_str(json).expect("TableGen writes JSON");
    let of_class = |class: &str| match &records["!instanceof"][class] {
        Value::Array(names) => names.iter().map(|name| name.as_str().expect("records have names").to_owned()).collect(),
        _ => vec![],
    };
    let names: Vec<String> = of_class("DiviPass");
    let others: Vec<String> = of_class("PassBase").into_iter().filter(|name| !names.contains(name)).collect();
    assert!(others.is_empty(), "td/Passes.td: {} must be of class DiviPass", others.join(", "));
    names.iter().map(|name| pass(&records, name)).collect()
}

fn pass(records: &Value, name: &str) -> Pass {
    let record = &records[name];
    let is_set = |field: &str| record[field] == 1;
    let definitions = |field: &str| -> Vec<&Value> {
        let list = record[field].as_array().expect("a list of records");
        list.iter().map(|reference| &records[text(reference, "def")]).collect()
    };
    let pass = Pass {
        name: name.to_owned(),
        argument: text(record, "argument").to_owned(),
        summary: text(record, "summary").to_owned(),
        options: definitions("options").into_iter().map(|option| read_option(option, name)).collect(),
        statistics: definitions("statistics").into_iter().map(read_statistic).collect(),
        is_read_only: is_set("isReadOnly"),
        uses_session: is_set("usesSession"),
        writes_text: is_set("writesText"),
    };
    let has_output = pass.options.iter().any(|option| option.name == "output" && option.r#type == OptionType::Path);
    assert!(!pass.writes_text || has_output, "td/Passes.td: {name} writes a text and needs a PathOption 'output'");
    assert!(
        !pass.writes_text || pass.statistics.is_empty(),
        "td/Passes.td: {name} returns a text and cannot have statistics"
    );
    pass
}

fn read_option(record: &Value, pass: &str) -> PassOption {
    let (name, r#type) = (text(record, "cppName"), text(record, "type"));
    let classes = record["!superclasses"].as_array().expect("a list of classes");
    let is = |class: &str| classes.iter().any(|other| other == class);
    let scalar = match r#type {
        "bool" => Some(Scalar::Bool),
        "int64_t" => Some(Scalar::Integer),
        "double" => Some(Scalar::Real),
        _ => None,
    };
    let known = match scalar {
        Some(scalar) if is("OptionalOption") => Some(OptionType::Optional(scalar)),
        Some(scalar) if !is("ListOption") => Some(OptionType::Scalar(scalar)),
        None if r#type != "std::string" || is("OptionalOption") => None,
        None if is("ListOption") => Some(OptionType::Texts),
        None if is("PathOption") => Some(OptionType::Path),
        None => Some(OptionType::Text),
        Some(_) => None,
    };
    let r#type = known.unwrap_or_else(|| {
        let class = classes.last().and_then(Value::as_str).unwrap_or("Option");
        panic!("td/Passes.td: option '{name}' of {pass} is {class} of type {type}, which has no type in Rust")
    });
    PassOption {
        name: name.to_owned(),
        r#type,
        default: text(record, "defaultValue").to_owned(),
        description: text(record, "description").to_owned(),
    }
}

fn read_statistic(record: &Value) -> Statistic {
    Statistic { name: text(record, "cppName").to_owned(), description: text(record, "description").to_owned() }
}

fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[field].as_str().unwrap_or_else(|| panic!("TableGen's records have a string '{field}'"))
}
