//! Verifier of all `onnx` operators, based on shape inference.

mod ffi;

use crate::{
    Operation, emit_error,
    node::{inference_value, with_inference_node},
    tensor_type, tensor_type_of,
};
use divi_onnx::{Op, infer};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

thread_local! {
    static TRUSTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a verification on this thread without checking the types of `onnx` operators: for IR whose types were just
/// inferred.
pub fn skip_type_verification<R>(verification: impl FnOnce() -> R) -> R {
    let before = TRUSTED.replace(true);
    let result = verification();
    TRUSTED.set(before);
    result
}

/// Verifies an operator. Emits an error on the operation and returns false if it is invalid.
fn verify(operation: Operation<'_>) -> bool {
    if TRUSTED.get() {
        return true;
    }
    let verdict = catch_unwind(AssertUnwindSafe(|| check(operation)));
    match verdict.unwrap_or_else(|_| Err("cannot be verified: shape inference panicked; please report this".into())) {
        Ok(()) => true,
        Err(message) => {
            emit_error(operation, &format!("'{}' op {message}", operation.name()));
            false
        }
    }
}

fn check(operation: Operation<'_>) -> Result<(), String> {
    // Constants have their own verifier; most operations without an inference rule are not operators (Return, NoValue).
    let Some(op) = operation.op().filter(|&op| op != Op::Constant && op.is_inferred()) else { return Ok(()) };
    // Inference needs the types of all operands.
    let Some(inferred) = with_inference_node(operation, op, inference_value, infer::infer) else { return Ok(()) };
    let inferred = inferred.map_err(|error| error.to_string())?;
    for (i, (expected, result)) in inferred.iter().zip(operation.results()).enumerate() {
        let actual = result.r#type();
        let Some(declared) = tensor_type_of(actual) else { continue };
        if declared.unify(expected).is_none() {
            let expected = tensor_type(operation.context(), expected);
            return Err(format!(
                "has result {i} of type {actual}, but its operands and attributes make it {expected}: correct the type"
            ));
        }
    }
    Ok(())
}
