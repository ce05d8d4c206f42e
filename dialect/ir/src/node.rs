//! Conversion of operations of the `onnx` dialect to nodes for shape inference.

use crate::{Operation, Value, attr, element_type_of, elements_of};
use divi_onnx::{Attr, Attributes, Node, Op, Tensor, Value as Known, fold, infer, node::KnownElements};
use melior::ir::Attribute;

/// Largest constant, in bytes, whose elements inference reads: shapes, axes and scales, but not weights.
pub const MAX_INFERENCE_BYTES: u64 = 8 * 1024;

/// Returns the type of a value and, for a small constant, its elements. `None` if it is not a tensor.
pub fn inference_value(value: Value<'_>) -> Option<Known> {
    let ty = value.tensor_type()?;
    let constant = value.defining_op().filter(|definer| definer.op() == Some(Op::Constant)).and_then(constant_of);
    Some(constant.map_or_else(|| Known::new(ty), Known::constant))
}

/// Returns the value of a small constant, whichever attribute holds it.
fn constant_of(operation: Operation<'_>) -> Option<Tensor> {
    match operation.get(attr::VALUE) {
        Some(value) => elements_of(value, MAX_INFERENCE_BYTES),
        None => constant_of_short_form(operation),
    }
}

/// Returns the value of a constant in one of ONNX's short forms (`value_int`, `value_floats`, …).
pub fn constant_of_short_form(operation: Operation<'_>) -> Option<Tensor> {
    let node = Node { op: Op::Constant, inputs: &[], attributes: &attributes_of(operation), outputs: 1 };
    match fold::fold(&node, &infer::infer(&node).ok()?).into_iter().next()?? {
        KnownElements::Constant(tensor) => Some(tensor),
        KnownElements::Partial(_) => None,
    }
}

/// Returns the attributes of an operation in the representation of shape inference.
pub fn attributes_of(operation: Operation<'_>) -> Attributes {
    operation.attributes().into_iter().map(|(name, attribute)| (name, convert(attribute))).collect()
}

fn convert(attribute: Attribute<'_>) -> Attr {
    if let Some(value) = attr::as_wrapping_integer(attribute) {
        return Attr::Int(value);
    }
    if let Some(value) = attr::as_float(attribute) {
        return Attr::Float(value as f32);
    }
    if let Some(value) = attr::as_string(attribute) {
        return Attr::Str(value.to_owned());
    }
    if let Some(r#type) = attr::as_type(attribute) {
        return element_type_of(r#type).map_or(Attr::Other, Attr::DType);
    }
    if let Some(elements) = attr::as_array(attribute) {
        return all(&elements, attr::as_wrapping_integer)
            .map(Attr::Ints)
            .or_else(|| all(&elements, |element| Some(attr::as_float(element)? as f32)).map(Attr::Floats))
            .or_else(|| all(&elements, |element| Some(attr::as_string(element)?.to_owned())).map(Attr::Strs))
            .unwrap_or(Attr::Other);
    }
    elements_of(attribute, MAX_INFERENCE_BYTES).map_or(Attr::Other, Attr::Tensor)
}

fn all<'m, T>(elements: &[Attribute<'m>], read: impl Fn(Attribute<'m>) -> Option<T>) -> Option<Vec<T>> {
    elements.iter().map(|&element| read(element)).collect()
}

/// Calls `f` with the node of an operation; `known` returns the type and contents of a value. Returns `None` if an operand that
/// is present is not known: sequences, optionals and types of other dialects.
pub fn with_inference_node<'m, R>(
    operation: Operation<'m>,
    op: Op,
    known: impl Fn(Value<'m>) -> Option<Known>,
    f: impl FnOnce(&Node<'_>) -> R,
) -> Option<R> {
    let operand = |operand: Value<'m>| match known(operand) {
        None if !operand.is_none() => None,
        known => Some(known),
    };
    let values: Vec<Option<Known>> = operation.operands().into_iter().map(operand).collect::<Option<_>>()?;
    let inputs: Vec<_> = values.iter().map(Option::as_ref).collect();
    let attributes = attributes_of(operation);
    Some(f(&Node { op, inputs: &inputs, attributes: &attributes, outputs: present_results(operation) }))
}

/// Returns the number of results up to the last one that is not `none`. Absent results after it are not computed.
pub fn present_results(operation: Operation<'_>) -> usize {
    operation.results().iter().rposition(|result| !result.is_none()).map_or(0, |last| last + 1)
}
