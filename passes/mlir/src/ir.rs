//! IR helpers that several passes share.

use divi_dialect::{Block, NewOperation, Operation, Value, attr, dense_elements, function_type, ranked_tensor_bytes};
pub(crate) use divi_dialect::{emit_error as error, emit_warning as warning};
use divi_onnx::{Op, Tensor, TensorType};
use melior::{
    ContextRef,
    ir::{Attribute, Location},
};

/// MLIR's `failure()`: the error has been emitted as a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure;

/// Name of the operation that holds a constant.
pub(crate) const ONNX_CONSTANT: &str = Op::Constant.operation_name();

/// Creates a detached constant with the name of an ONNX node, if any.
pub(crate) fn new_constant<'m>(location: Location<'m>, tensor: &Tensor, node_name: Option<&str>) -> Operation<'m> {
    let context = location.context();
    let value = dense_elements(context, tensor);
    let name = node_name.map(|name| attr::NODE_NAME.named(context, name));
    let attributes: Vec<_> = [attr::VALUE.named(context, value)].into_iter().chain(name).collect();
    let results = [attr::type_of(value)];
    NewOperation { results: &results, attributes: &attributes, ..NewOperation::new(ONNX_CONSTANT, location) }.create()
}

/// Returns the name of an operation in messages: with its ONNX node if it has one, or the first node of a cluster.
pub(crate) fn describe(operation: Operation<'_>) -> String {
    let op = operation.name();
    let first_member = || operation.get(attr::MEMBERS)?.first().copied();
    match operation.get(attr::NODE_NAME).or_else(first_member) {
        Some(name) => format!("'{op}' op '{name}'"),
        None => format!("'{op}' op"),
    }
}

/// Returns the bytes of a tensor. Dynamic dimensions count as 1.
pub(crate) fn byte_length(ty: &TensorType) -> u64 {
    let sizes = ty.shape.iter().flatten().map(|dim| u64::try_from(dim.known().unwrap_or(1)).unwrap_or(0));
    divi_cost::work::bytes(ty.dtype, sizes.fold(1, u64::saturating_mul))
}

/// Returns the bytes of a value at the module's own batch size, for any element type; 0 if it is not a tensor.
pub(crate) fn value_bytes(value: Value<'_>) -> u64 {
    match value.tensor_type() {
        Some(ty) => byte_length(&ty),
        None => ranked_tensor_bytes(value.r#type()).unwrap_or(0),
    }
}

/// Returns the function type of a body, from its arguments and the operands of its terminator.
pub(crate) fn type_of_body<'m>(context: ContextRef<'m>, body: Block<'m>) -> Attribute<'m> {
    let inputs: Vec<_> = body.arguments().into_iter().map(Value::r#type).collect();
    let outputs: Vec<_> = body.terminator().map(Operation::operands).unwrap_or_default();
    let outputs: Vec<_> = outputs.into_iter().map(Value::r#type).collect();
    attr::type_attribute(function_type(context, &inputs, &outputs))
}
