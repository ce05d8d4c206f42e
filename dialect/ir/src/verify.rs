//! The verifier of every `onnx` operator: what shape inference says of it.

use crate::{
    emit_error,
    node::{attributes_of, is_none, operator, present_results, value_of},
    tensor_type, tensor_type_of, text,
};
use divi_onnx::{Node, Op, infer};
use melior::ir::{
    Type,
    operation::{OperationLike, OperationRef},
};
use mlir_sys::*;
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

thread_local! {
    static TRUSTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a verification on this thread that takes the types of `onnx` operators for granted: for IR whose types inference
/// has just computed.
pub fn trusting_inference<R>(verification: impl FnOnce() -> R) -> R {
    let before = TRUSTED.replace(true);
    let result = verification();
    TRUSTED.set(before);
    result
}

/// Called by MLIR's verifier; errors are emitted on the operation.
#[unsafe(no_mangle)]
extern "C" fn diviOnnxVerifyByInference(operation: MlirOperation) -> bool {
    if TRUSTED.get() {
        return true;
    }
    // SAFETY: MLIR hands over an operation that outlives the call.
    let operation = unsafe { OperationRef::from_raw(operation) };
    let verdict = catch_unwind(AssertUnwindSafe(|| check(operation)));
    match verdict.unwrap_or_else(|_| Err("cannot be verified: shape inference panicked; please report this".into())) {
        Ok(()) => true,
        Err(message) => {
            // SAFETY: the operation is alive; its name lives as long as the context.
            let name = unsafe { text(mlirIdentifierStr(mlirOperationGetName(operation.to_raw()))) };
            emit_error(operation.to_raw(), &format!("'{name}' op {message}"));
            false
        }
    }
}

fn check(operation: OperationRef<'_, '_>) -> Result<(), String> {
    // Constants have a verifier of their own; most operators without a rule are no operators (Return, NoValue).
    let Some(op) = operator(&operation).filter(|&op| op != Op::Constant && op.is_inferred()) else { return Ok(()) };
    let raw = operation.to_raw();
    let mut operands = Vec::with_capacity(operation.operand_count());
    for i in 0..operation.operand_count() {
        // SAFETY: the operation is alive, and the index is below the count.
        let operand = unsafe { mlirOperationGetOperand(raw, i as isize) };
        match value_of(operand) {
            Some(value) => operands.push(Some(value)),
            None if is_none(operand) => operands.push(None),
            // Sequences, optionals and foreign types: nothing to infer from.
            None => return Ok(()),
        }
    }
    let inputs: Vec<_> = operands.iter().map(Option::as_ref).collect();
    let attributes = attributes_of(&operation);
    let node = Node { op, inputs: &inputs, attributes: &attributes, outputs: present_results(raw) };
    let inferred = infer::infer(&node).map_err(|error| error.to_string())?;
    for (i, expected) in inferred.iter().enumerate().take(operation.result_count()) {
        // SAFETY: the operation is alive, and the index is below the count.
        let actual = unsafe { Type::from_raw(mlirValueGetType(mlirOperationGetResult(raw, i as isize))) };
        let Some(declared) = tensor_type_of(actual) else { continue };
        if declared.unify(expected).is_none() {
            // SAFETY: the context of a live operation is alive.
            let context = unsafe { melior::ContextRef::from_raw(mlirOperationGetContext(raw)) };
            // SAFETY: the context outlives this function.
            let expected = tensor_type(unsafe { context.to_ref() }, expected);
            return Err(format!(
                "has result {i} of type {actual}, but its operands and attributes make it {expected}: correct the type"
            ));
        }
    }
    Ok(())
}
