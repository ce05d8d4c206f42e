//! The signatures of ai.onnx's operators, newest opset.

#[path = "schema_table.rs"]
mod table;

/// The newest opset that divi reads, whose forms its operators have.
pub const OPSET: i64 = table::OPSET;

/// The newest IR version that divi reads.
pub const IR_VERSION: i64 = table::IR_VERSION;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    pub name: &'static str,
    pub inputs: Arity,
    pub outputs: Arity,
    /// Sorted by name.
    pub attributes: &'static [Attribute],
}

/// An attribute that an operator takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub name: &'static str,
    pub required: bool,
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
        assert!(conv.attributes.contains(&Attribute { name: "dilations", required: false }));
        assert!(find("Concat").unwrap().inputs.allows(9));
        assert_eq!(find("NoSuchOperator"), None);
    }
}
