//! The signatures of ai.onnx's operators, newest opset.

#[path = "schema_table.rs"]
mod table;

use crate::{Attr, DType};

/// The newest opset that divi reads, whose forms its operators have.
pub const OPSET: i64 = table::OPSET;

/// The newest IR version that divi reads.
pub const IR_VERSION: i64 = table::IR_VERSION;

/// The oldest opset that models are written in.
pub const OLDEST_OPSET: i64 = table::OLDEST_OPSET;

/// The IR version that an opset came with: the oldest that a model of that opset may have.
pub fn ir_version(opset: i64) -> i64 {
    let row = table::IR_VERSIONS.iter().find(|(other, _)| *other >= opset);
    row.map_or(IR_VERSION, |(_, version)| *version)
}

/// How many operands or results an operator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// Those that must be there.
    pub required: usize,
    /// Those with a name of their own, required or optional; the `onnx` dialect always lists all of them.
    pub named: usize,
    /// Whether any number of further ones may follow.
    pub variadic: bool,
}

impl Arity {
    /// Whether a node may list `count` of them.
    pub fn allows(self, count: usize) -> bool {
        count >= self.required && (self.variadic || count <= self.named)
    }
}

/// The signature of an operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schema {
    pub name: &'static str,
    pub inputs: Arity,
    pub outputs: Arity,
    /// Sorted by name.
    pub attributes: &'static [Attribute],
    /// The versions in which a node of the newest form may be written, newest first.
    pub versions: &'static [Version],
}

impl Schema {
    /// The lowest opset in which a node means what it does in the newest: one with so many operands, these attributes, and
    /// operands and results of these element types.
    pub fn lowest_opset(&self, inputs: usize, attributes: &[&str], types: &[DType]) -> i64 {
        let fits = |version: &&Version| {
            (inputs <= version.inputs || self.inputs.variadic)
                && !attributes.iter().any(|name| version.lacks_attributes.contains(name))
                && !types.iter().any(|dtype| version.lacks_types >> dtype.code() & 1 == 1)
        };
        let oldest = self.versions.iter().take_while(fits).last().or(self.versions.first());
        oldest.map_or(OPSET, |version| version.since).max(OLDEST_OPSET)
    }
}

/// A version of an operator, by what nodes of the newest form it has no place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The first opset with this version.
    pub since: i64,
    /// Operands that have a name.
    pub inputs: usize,
    pub lacks_attributes: &'static [&'static str],
    /// Element types that came later, a bit each: `1 << code`.
    pub lacks_types: u64,
}

impl Version {
    const fn newest(since: i64, inputs: usize) -> Self {
        Self { since, inputs, lacks_attributes: &[], lacks_types: 0 }
    }
}

/// What kind of value an attribute takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    Ints,
    Float,
    Floats,
    Str,
    Strs,
    Tensor,
    SparseTensor,
    Graph,
    Type,
}

/// An attribute that an operator takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attribute {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    /// What it is if a node does not give it.
    pub default: Option<Default>,
}

impl Attribute {
    /// Whether giving this value is the same as giving none.
    pub fn is_default(&self, value: &Attr) -> bool {
        match (self.default, value) {
            (Some(Default::Int(default)), Attr::Int(value)) => default == *value,
            (Some(Default::Float(default)), Attr::Float(value)) => default == *value,
            (Some(Default::Str(default)), Attr::Str(value)) => default == value,
            _ => false,
        }
    }
}

/// The value of an attribute that a node does not give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    Int(i64),
    Float(f32),
    Str(&'static str),
}

/// Every ai.onnx operator, sorted by name.
pub fn all() -> &'static [Schema] {
    table::SCHEMAS
}

/// The signature of an ai.onnx operator; `None` if ONNX has none of that name.
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
    fn defaults_need_not_be_given() {
        let find = |op: &str, name: &str| find(op).unwrap().attributes.iter().find(|it| it.name == name).unwrap();
        assert!(find("BatchNormalization", "epsilon").is_default(&Attr::Float(1e-5)));
        assert!(!find("BatchNormalization", "epsilon").is_default(&Attr::Float(1e-3)));
        assert!(find("Cast", "round_mode").is_default(&Attr::Str("up".into())));
        assert!(find("Conv", "group").is_default(&Attr::Int(1)));
        assert!(!find("Conv", "pads").is_default(&Attr::Ints(vec![])));
    }

    #[test]
    fn nodes_are_written_in_the_oldest_opset_that_has_them() {
        let lowest =
            |op: &str, inputs, attributes: &[&str], dtype| find(op).unwrap().lowest_opset(inputs, attributes, &[dtype]);
        // Newer versions of these only take more types.
        assert_eq!(lowest("Conv", 3, &["group"], DType::F32), OLDEST_OPSET);
        assert_eq!(lowest("Conv", 3, &["group"], DType::BF16), 22);
        assert_eq!(lowest("Einsum", 2, &["equation"], DType::F32), OLDEST_OPSET);
        assert_eq!(lowest("Reshape", 2, &[], DType::I4), 21);
        // An attribute, an operand, and a meaning that came later.
        assert_eq!(lowest("Cast", 1, &["to"], DType::F32), OLDEST_OPSET);
        assert_eq!(lowest("Cast", 1, &["round_mode", "to"], DType::F32), 24);
        assert_eq!(lowest("Attention", 6, &[], DType::F32), 23);
        assert_eq!(lowest("Attention", 7, &[], DType::F32), 24);
        assert_eq!(lowest("GroupNormalization", 3, &["num_groups"], DType::F32), 21);
        assert_eq!(lowest("Concat", 9, &["axis"], DType::F32), OLDEST_OPSET);
    }

    #[test]
    fn opsets_have_ir_versions() {
        assert_eq!([18, 19, 21, 24, OPSET].map(ir_version), [8, 9, 10, 12, IR_VERSION]);
    }
}
