//! Operators that compute constants of constants, such as the standardisation of weights: no task of a plan, as they are evaluated
//! when a bundle is built or loaded. Nothing is read for that here: a model is planned without its weights.

use super::{is_random, operator};
use crate::{
    ir::{
        attribute, blocks, integer, operands, operation_name, operations, results, set_attribute, tensor_type_of_value,
        uses, value_bytes,
    },
    tasks::{CONSTANT, definer},
};
use divi_dialect::node::is_none;
use divi_onnx::{DType, Op};
use melior::ContextRef;
use mlir_sys::*;
use rustc_hash::FxHashMap;
use std::ffi::c_void;

/// Results up to this size are always constants; larger ones, if they are not much larger than what they are computed of.
const SMALL: u64 = 16 << 20;
const MOST_GROWTH: u64 = 4;

/// Marks (`divi.constant_bytes`) the operators of a module's functions that read constants alone and compute tensors of numbers with
/// fixed shapes. Operators that a pin or a plan speaks of stay tasks, and so do those whose results a function returns.
pub(super) fn mark(module: MlirOperation) {
    for function in blocks(module).into_iter().flat_map(operations) {
        if operation_name(function) == "func.func" {
            blocks(function).into_iter().for_each(mark_block);
        }
    }
}

/// An operator that could be a constant.
struct Candidate {
    operation: MlirOperation,
    /// True if it, or what it reads, does more than to arrange the elements of one constant, which tasks do with it.
    is_computed: bool,
    /// Bytes of the constants that it is computed of.
    bytes: u64,
}

fn mark_block(block: MlirBlock) {
    // SAFETY: the block is alive; one of a function ends in a terminator.
    let terminator = unsafe { mlirBlockGetTerminator(block) };
    let mut candidates: Vec<Candidate> = vec![];
    // By their results.
    let mut found: FxHashMap<*const c_void, usize> = FxHashMap::default();
    for operation in operations(block) {
        let Some(op) = operator(operation).filter(|&op| op != Op::Constant) else { continue };
        let read: Vec<_> = operands(operation).into_iter().filter(|&operand| !is_none(operand)).collect();
        let is_known = |&operand: &MlirValue| {
            found.contains_key(&operand.ptr)
                || definer(operand).is_some_and(|definer| operator(definer) == Some(Op::Constant))
        };
        if read.is_empty() || !read.iter().all(is_known) || !may_be_constant(operation, op, terminator) {
            continue;
        }
        let source = |operand: &MlirValue| found.get(&operand.ptr).map(|&candidate| &candidates[candidate]);
        let bytes = read.iter().map(|operand| source(operand).map_or_else(|| value_bytes(*operand), |it| it.bytes));
        let bytes = bytes.fold(0, u64::saturating_add);
        let limit = SMALL.max(bytes.saturating_mul(MOST_GROWTH));
        if results(operation).into_iter().map(value_bytes).fold(0, u64::saturating_add) > limit {
            continue;
        }
        let is_computed = !ARRANGING.contains(&op) || read.iter().filter_map(source).any(|it| it.is_computed);
        results(operation).into_iter().for_each(|result| {
            found.insert(result.ptr, candidates.len());
        });
        candidates.push(Candidate { operation, is_computed, bytes });
    }
    // An operator that only arranges a constant counts as one where others are computed of it.
    for Candidate { operation, is_computed, bytes } in candidates.into_iter().rev() {
        let is_marked = |user: MlirOperation| attribute(user, CONSTANT).is_some();
        let mut users = results(operation).into_iter().flat_map(uses);
        if is_computed || users.any(|(user, _)| is_marked(user)) {
            // SAFETY: the context of a live operation is alive.
            let context = unsafe { ContextRef::from_raw(mlirOperationGetContext(operation)) };
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            // SAFETY: see above.
            set_attribute(operation, CONSTANT, integer(unsafe { context.to_ref() }, bytes));
        }
    }
}

/// Operators that leave elements as they are: kernels read weights in any order.
const ARRANGING: &[Op] = &[Op::Identity, Op::Reshape, Op::Flatten, Op::Squeeze, Op::Unsqueeze, Op::Transpose];

fn may_be_constant(operation: MlirOperation, op: Op, terminator: MlirOperation) -> bool {
    if is_random(operation, op) || !blocks(operation).is_empty() || !divi_codegen::backends::host().has_operator(op) {
        return false;
    }
    let is_decided = ["divi.pin", "divi.exclude", "divi.colocate", "divi.device", "divi.stage", "divi.weights"];
    if is_decided.into_iter().any(|name| attribute(operation, name).is_some()) {
        return false;
    }
    results(operation).into_iter().all(|result| {
        // SAFETY: both operations are alive.
        let is_returned = uses(result).into_iter().any(|(user, _)| unsafe { mlirOperationEqual(user, terminator) });
        let is_plain =
            |value| tensor_type_of_value(value).is_some_and(|ty| ty.is_static() && ty.dtype != DType::String);
        !is_returned && (is_none(result) || is_plain(result))
    })
}
