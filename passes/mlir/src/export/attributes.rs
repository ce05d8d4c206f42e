//! Converts attributes of operations to attributes of nodes.

use super::proto;
use crate::import::proto::AttributeProto;
use divi_dialect::{Operation, attr, elements_of, node::attributes_of};
use divi_onnx::{
    Attr,
    schema::{Kind, Schema},
};

/// Attributes of the IR that are not part of the node: its name, and the identity of an operator of another domain.
/// onnx-mlir uses the last three for shape inference of such operators.
const NOT_OF_NODES: &[&str] = &[
    attr::NODE_NAME.name(),
    "domain_name",
    "domain_version",
    "function_name",
    "inputs_for_infer",
    "output_element_type",
    "shape_infer_pattern",
];

/// Converts the attributes of an operator; operators without a schema may have any. The error describes an unsupported
/// attribute.
pub(super) fn convert(operation: Operation<'_>, schema: Option<&Schema>) -> Result<Vec<AttributeProto>, String> {
    let mut protos = vec![];
    let attributes = attributes_of(operation);
    for (name, value) in attributes.iter() {
        // Attributes of other dialects were added by planning.
        if name.contains('.') || NOT_OF_NODES.contains(&name) {
            continue;
        }
        let known = schema.and_then(|schema| schema.attributes.iter().find(|attribute| attribute.name == name));
        if let (Some(schema), None) = (schema, known) {
            return Err(format!("has attribute '{name}', which ONNX's {} does not take", schema.name));
        }
        // MLIR adds all attributes that have defaults, some of which are unknown to older tools.
        if known.is_some_and(|known| known.is_default(value)) {
            continue;
        }
        let kind = known.map(|known| known.kind);
        let value = match (kind, value) {
            // An empty list has no element type.
            (Some(Kind::Floats), Attr::Ints(list)) if list.is_empty() => Attr::Floats(vec![]),
            (Some(Kind::Strs), Attr::Ints(list)) if list.is_empty() => Attr::Strs(vec![]),
            (_, Attr::Other) => large_tensor(operation, name)
                .ok_or_else(|| format!("has attribute '{name}' of a kind that ONNX's attributes do not have"))?,
            (_, value) => value.clone(),
        };
        if kind.is_some_and(|kind| !is_of(kind, &value)) {
            return Err(format!("has attribute '{name}' of another kind than the operator takes"));
        }
        protos.push(proto::attribute(name, value));
    }
    Ok(protos)
}

fn large_tensor(operation: Operation<'_>, name: &str) -> Option<Attr> {
    elements_of(operation.attribute(name)?, u64::MAX).map(Attr::Tensor)
}

fn is_of(kind: Kind, value: &Attr) -> bool {
    matches!(
        (kind, value),
        (Kind::Int, Attr::Int(_) | Attr::DType(_))
            | (Kind::Ints, Attr::Ints(_))
            | (Kind::Float, Attr::Float(_))
            | (Kind::Floats, Attr::Floats(_))
            | (Kind::Str, Attr::Str(_))
            | (Kind::Strs, Attr::Strs(_))
            | (Kind::Tensor, Attr::Tensor(_))
    )
}
