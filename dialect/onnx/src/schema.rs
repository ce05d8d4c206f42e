//! Signatures of the ai.onnx operators, in the newest opset.

#[path = "schema_table.rs"]
mod table;

use crate::{Attr, DType};

/// Newest supported opset, to which imported models are upgraded.
pub const OPSET: i64 = table::OPSET;

/// Newest supported IR version.
pub const IR_VERSION: i64 = table::IR_VERSION;

/// Oldest opset that models are exported in.
pub const MIN_EXPORT_OPSET: i64 = table::MIN_EXPORT_OPSET;

/// Returns the IR version that an opset was released with: the oldest that a model of that opset may have.
pub fn ir_version(opset: i64) -> i64 {
    let row = table::IR_VERSIONS.iter().find(|(other, _)| *other >= opset);
    row.map_or(IR_VERSION, |(_, version)| *version)
}

/// Number of operands or results of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// Number of required ones.
    pub required: usize,
    /// Number of named ones, required or optional; operations of the `onnx` dialect always have all of them.
    pub named: usize,
    /// True if any number of further ones may follow.
    pub variadic: bool,
}

impl Arity {
    /// Returns true if a node may have `count` of them.
    pub fn allows(self, count: usize) -> bool {
        count >= self.required && (self.variadic || count <= self.named)
    }
}

/// Signature of an operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schema {
    /// Name of the operator.
    pub name: &'static str,
    /// Number of operands.
    pub inputs: Arity,
    /// Number of results.
    pub outputs: Arity,
    /// Attributes, sorted by name.
    pub attributes: &'static [Attribute],
    /// Versions that nodes of the newest form can be exported as, newest first.
    pub versions: &'static [Version],
}

impl Schema {
    /// Returns the lowest opset in which a node has the same semantics as in the newest, given its number of operands, its
    /// attributes, and the element types of its operands and results.
    pub fn lowest_opset(&self, inputs: usize, attributes: &[&str], types: &[DType]) -> i64 {
        let fits = |version: &&Version| {
            (inputs <= version.inputs || self.inputs.variadic)
                && !attributes.iter().any(|name| version.lacks_attributes.contains(name))
                && !types.iter().any(|dtype| version.lacks_types >> dtype.code() & 1 == 1)
        };
        let oldest = self.versions.iter().take_while(fits).last().or(self.versions.first());
        oldest.map_or(OPSET, |version| version.since).max(MIN_EXPORT_OPSET)
    }
}

/// Version of an operator, described by its differences from the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// First opset with this version.
    pub since: i64,
    /// Number of named operands.
    pub inputs: usize,
    /// Attributes that this version does not have.
    pub lacks_attributes: &'static [&'static str],
    /// Bit set of element types that this version does not support: `1 << code`.
    pub lacks_types: u64,
}

impl Version {
    const fn newest(since: i64, inputs: usize) -> Self {
        Self { since, inputs, lacks_attributes: &[], lacks_types: 0 }
    }
}

/// Kind of an attribute (`AttributeProto.AttributeType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `INT`.
    Int,
    /// `INTS`.
    Ints,
    /// `FLOAT`.
    Float,
    /// `FLOATS`.
    Floats,
    /// `STRING`.
    Str,
    /// `STRINGS`.
    Strs,
    /// `TENSOR`.
    Tensor,
    /// `SPARSE_TENSOR`.
    SparseTensor,
    /// `GRAPH`.
    Graph,
    /// `TYPE_PROTO`.
    Type,
}

/// Attribute of an operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attribute {
    /// Name of the attribute.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: Kind,
    /// True if nodes must have it.
    pub required: bool,
    /// Value if a node does not have it.
    pub default: Option<DefaultValue>,
}

impl Attribute {
    /// Returns true if this value is the default.
    pub fn is_default(&self, value: &Attr) -> bool {
        match (self.default, value) {
            (Some(DefaultValue::Int(default)), Attr::Int(value)) => default == *value,
            (Some(DefaultValue::Float(default)), Attr::Float(value)) => default == *value,
            (Some(DefaultValue::Str(default)), Attr::Str(value)) => default == value,
            _ => false,
        }
    }
}

/// Default value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DefaultValue {
    /// `INT`.
    Int(i64),
    /// `FLOAT`.
    Float(f32),
    /// `STRING`.
    Str(&'static str),
}

/// Returns the signatures of all ai.onnx operators, sorted by name.
pub fn all() -> &'static [Schema] {
    table::SCHEMAS
}

/// Returns the signature of an ai.onnx operator; `None` if ONNX has no operator of that name.
pub fn find(name: &str) -> Option<&'static Schema> {
    let index = table::SCHEMAS.binary_search_by(|schema| schema.name.cmp(name)).ok()?;
    Some(&table::SCHEMAS[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(table::SCHEMAS.is_sorted_by_key(|schema| schema.name));
    }

    #[test]
    fn signatures_are_found() {
        let conv = find("Conv").unwrap();
        assert_eq!(conv.inputs, Arity { required: 2, named: 3, variadic: false });
        assert!(conv.inputs.allows(2) && conv.inputs.allows(3) && !conv.inputs.allows(4) && !conv.inputs.allows(1));
        assert!(conv.attributes.contains(&Attribute {
            name: "dilations",
            kind: Kind::Ints,
            required: false,
            default: None
        }));
        assert!(find("Concat").unwrap().inputs.allows(9));
        assert_eq!(find("NoSuchOperator"), None);
    }

    #[test]
    fn defaults_are_recognized() {
        let find = |op: &str, name: &str| find(op).unwrap().attributes.iter().find(|it| it.name == name).unwrap();
        assert!(find("BatchNormalization", "epsilon").is_default(&Attr::Float(1e-5)));
        assert!(!find("BatchNormalization", "epsilon").is_default(&Attr::Float(1e-3)));
        assert!(find("Cast", "round_mode").is_default(&Attr::Str("up".into())));
        assert!(find("Conv", "group").is_default(&Attr::Int(1)));
        assert!(!find("Conv", "pads").is_default(&Attr::Ints(vec![])));
    }

    #[test]
    fn lowest_opset_of_nodes() {
        let lowest =
            |op: &str, inputs, attributes: &[&str], dtype| find(op).unwrap().lowest_opset(inputs, attributes, &[dtype]);
        // Newer versions of these only support more types.
        assert_eq!(lowest("Conv", 3, &["group"], DType::F32), MIN_EXPORT_OPSET);
        assert_eq!(lowest("Conv", 3, &["group"], DType::BF16), 22);
        assert_eq!(lowest("Einsum", 2, &["equation"], DType::F32), MIN_EXPORT_OPSET);
        assert_eq!(lowest("Reshape", 2, &[], DType::I4), 21);
        // An attribute, an operand and semantics that were added later.
        assert_eq!(lowest("Cast", 1, &["to"], DType::F32), MIN_EXPORT_OPSET);
        assert_eq!(lowest("Cast", 1, &["round_mode", "to"], DType::F32), 24);
        assert_eq!(lowest("Attention", 6, &[], DType::F32), 23);
        assert_eq!(lowest("Attention", 7, &[], DType::F32), 24);
        assert_eq!(lowest("GroupNormalization", 3, &["num_groups"], DType::F32), 21);
        assert_eq!(lowest("Concat", 9, &["axis"], DType::F32), MIN_EXPORT_OPSET);
    }

    #[test]
    fn opsets_have_ir_versions() {
        assert_eq!([18, 19, 21, 24, OPSET].map(ir_version), [8, 9, 10, 12, IR_VERSION]);
    }
}
