//! Operations of the `onnx` dialect as shape inference sees them.

use crate::{elements_of, tensor_type_of, text};
use divi_onnx::{Attr, Attributes, Node, Op, Tensor, Value, fold, infer, node::Content};
use melior::ir::{
    Attribute, AttributeLike, Type,
    operation::{OperationLike, OperationRef},
};
use mlir_sys::*;

/// Constants up to this many bytes are looked into: shapes, axes, scales, not weights.
pub const SMALL_CONSTANT: u64 = 8 * 1024;

/// The operator of the table that an operation is; `None` for other dialects and for operations that are no operators.
pub fn operator<'a>(operation: &impl OperationLike<'a, 'a>) -> Option<Op> {
    // SAFETY: the operation is alive; its name lives as long as the context.
    Op::from_operation(unsafe { text(mlirIdentifierStr(mlirOperationGetName(operation.to_raw()))) })
}

/// What is known of an MLIR value: its type and, for a small constant, its elements.
pub fn value_of(value: MlirValue) -> Option<Value> {
    // SAFETY: the value is alive.
    let ty = tensor_type_of(unsafe { Type::from_raw(mlirValueGetType(value)) })?;
    let mut result = Value::new(ty);
    // SAFETY: an operation result has an owner.
    unsafe {
        if mlirValueIsAOpResult(value) {
            let owner = OperationRef::from_raw(mlirOpResultGetOwner(value));
            if operator(&owner) == Some(Op::Constant)
                && let Some(tensor) = constant_of(&owner)
            {
                result = Value::constant(tensor);
            }
        }
    }
    Some(result)
}

/// The value of a small constant, whichever attribute has it.
fn constant_of(operation: &OperationRef<'_, '_>) -> Option<Tensor> {
    if let Ok(value) = operation.attribute("value") {
        return elements_of(value, SMALL_CONSTANT);
    }
    let node = Node { op: Op::Constant, inputs: &[], attributes: &attributes_of(operation), outputs: 1 };
    match fold::fold(&node, &infer::infer(&node).ok()?).into_iter().next()?? {
        Content::Constant(tensor) => Some(tensor),
        Content::Partial(_) => None,
    }
}

/// The attributes that inference may ask for.
pub fn attributes_of<'c: 'a, 'a>(operation: &impl OperationLike<'c, 'a>) -> Attributes {
    let raw = operation.to_raw();
    // SAFETY: the operation is alive, and the index is below the count.
    unsafe {
        (0..mlirOperationGetNumAttributes(raw))
            .map(|i| {
                let named = mlirOperationGetAttribute(raw, i);
                let name = text(mlirIdentifierStr(named.name));
                (name, convert(Attribute::from_raw(named.attribute)))
            })
            .collect()
    }
}

fn convert(attribute: Attribute<'_>) -> Attr {
    let raw = attribute.to_raw();
    // SAFETY: the attribute is alive, and each accessor is called on the kind it is for.
    unsafe {
        if mlirAttributeIsAInteger(raw) {
            return Attr::Int(integer(raw));
        }
        if mlirAttributeIsAFloat(raw) {
            return Attr::Float(mlirFloatAttrGetValueDouble(raw) as f32);
        }
        if mlirAttributeIsAString(raw) {
            return Attr::Str(string(raw));
        }
        if mlirAttributeIsAType(raw) {
            let r#type = Type::from_raw(mlirTypeAttrGetValue(raw));
            return crate::element_type_of(r#type).map_or(Attr::Other, Attr::DType);
        }
        if mlirAttributeIsAArray(raw) {
            let elements: Vec<_> =
                (0..mlirArrayAttrGetNumElements(raw)).map(|i| mlirArrayAttrGetElement(raw, i)).collect();
            let all = |is: unsafe extern "C" fn(MlirAttribute) -> bool| elements.iter().all(|&element| is(element));
            if all(mlirAttributeIsAInteger) {
                return Attr::Ints(elements.into_iter().map(|e| integer(e)).collect());
            }
            if all(mlirAttributeIsAFloat) {
                return Attr::Floats(elements.into_iter().map(|e| mlirFloatAttrGetValueDouble(e) as f32).collect());
            }
            if all(mlirAttributeIsAString) {
                return Attr::Strs(elements.into_iter().map(|e| string(e)).collect());
            }
            return Attr::Other;
        }
    }
    elements_of(attribute, SMALL_CONSTANT).map_or(Attr::Other, Attr::Tensor)
}

unsafe fn integer(raw: MlirAttribute) -> i64 {
    // SAFETY: the caller checked that it is an integer; the accessor depends on its signedness.
    unsafe {
        let r#type = mlirAttributeGetType(raw);
        if !mlirTypeIsAInteger(r#type) || mlirIntegerTypeIsSignless(r#type) {
            mlirIntegerAttrGetValueInt(raw)
        } else if mlirIntegerTypeIsSigned(r#type) {
            mlirIntegerAttrGetValueSInt(raw)
        } else {
            mlirIntegerAttrGetValueUInt(raw) as i64
        }
    }
}

unsafe fn string(raw: MlirAttribute) -> String {
    // SAFETY: the caller checked that it is a string.
    unsafe { text(mlirStringAttrGetValue(raw)) }.to_owned()
}

/// Whether a value stands for an absent optional operand or result.
pub fn is_none(value: MlirValue) -> bool {
    // SAFETY: the value is alive.
    unsafe { mlirTypeIsANone(mlirValueGetType(value)) }
}

/// How many results an operator computes: those after the last that is not `none` are not asked for.
pub fn present_results(operation: MlirOperation) -> usize {
    // SAFETY: the operation is alive, and indices are below the count.
    unsafe {
        let count = mlirOperationGetNumResults(operation);
        (0..count).rev().find(|&i| !is_none(mlirOperationGetResult(operation, i))).map_or(0, |last| last as usize + 1)
    }
}
