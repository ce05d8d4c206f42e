//! Operators that compute constants of constants, such as the standardisation of weights: no task of a plan, as they are evaluated
//! when a bundle is built or loaded. Nothing is read for that here: a model is planned without its weights.

use super::{is_random, operator};
use crate::ir::value_bytes;
use divi_dialect::{Block, Operation, Value, attr, op};
use divi_onnx::{DType, Op};
use rustc_hash::FxHashMap;

/// Results up to this size are always constants; larger ones, if they are not much larger than what they are computed of.
const SMALL: u64 = 16 << 20;
const MOST_GROWTH: u64 = 4;

/// Marks (`divi.constant_bytes`) the operators of a module's functions that read constants alone and compute tensors of numbers with
/// fixed shapes. Operators that a pin or a plan speaks of stay tasks, and so do those whose results a function returns.
pub(super) fn mark(module: Operation<'_>) {
    for function in module.children() {
        if function.name() == op::FUNC {
            function.blocks().into_iter().for_each(mark_block);
        }
    }
}

/// An operator that could be a constant.
struct Candidate<'m> {
    operation: Operation<'m>,
    /// True if it, or what it reads, does more than to arrange the elements of one constant, which tasks do with it.
    is_computed: bool,
    /// Bytes of the constants that it is computed of.
    bytes: u64,
}

fn mark_block(block: Block<'_>) {
    let terminator = block.terminator();
    let mut candidates: Vec<Candidate<'_>> = vec![];
    // By their results.
    let mut found: FxHashMap<Value<'_>, usize> = FxHashMap::default();
    for operation in block.operations() {
        let Some(op) = operator(operation).filter(|&op| op != Op::Constant) else { continue };
        let read: Vec<_> = operation.operands().into_iter().filter(|&operand| !operand.is_none()).collect();
        let is_known = |&operand: &Value<'_>| {
            found.contains_key(&operand)
                || operand.definer().is_some_and(|definer| operator(definer) == Some(Op::Constant))
        };
        if read.is_empty() || !read.iter().all(is_known) || !may_be_constant(operation, op, terminator) {
            continue;
        }
        let source = |operand: &Value<'_>| found.get(operand).map(|&candidate| &candidates[candidate]);
        let bytes = read.iter().map(|operand| source(operand).map_or_else(|| value_bytes(*operand), |it| it.bytes));
        let bytes = bytes.fold(0, u64::saturating_add);
        let limit = SMALL.max(bytes.saturating_mul(MOST_GROWTH));
        if operation.results().into_iter().map(value_bytes).fold(0, u64::saturating_add) > limit {
            continue;
        }
        let is_computed = !ARRANGING.contains(&op) || read.iter().filter_map(source).any(|it| it.is_computed);
        operation.results().into_iter().for_each(|result| {
            found.insert(result, candidates.len());
        });
        candidates.push(Candidate { operation, is_computed, bytes });
    }
    // An operator that only arranges a constant counts as one where others are computed of it.
    for Candidate { operation, is_computed, bytes } in candidates.into_iter().rev() {
        let mut users = operation.results().into_iter().flat_map(Value::uses);
        if is_computed || users.any(|(user, _)| user.has(attr::CONSTANT_BYTES)) {
            operation.set(attr::CONSTANT_BYTES, i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }
}

/// Operators that leave elements as they are: kernels read weights in any order.
const ARRANGING: &[Op] = &[Op::Identity, Op::Reshape, Op::Flatten, Op::Squeeze, Op::Unsqueeze, Op::Transpose];

fn may_be_constant(operation: Operation<'_>, op: Op, terminator: Option<Operation<'_>>) -> bool {
    if is_random(operation, op) || !operation.blocks().is_empty() || !divi_codegen::backends::host().has_operator(op) {
        return false;
    }
    let is_decided = operation.has(attr::PIN)
        || operation.has(attr::EXCLUDE)
        || operation.has(attr::COLOCATE)
        || operation.has(attr::DEVICE)
        || operation.has(attr::STAGE)
        || operation.has(attr::WEIGHTS);
    if is_decided {
        return false;
    }
    operation.results().into_iter().all(|result| {
        let is_returned = result.uses().into_iter().any(|(user, _)| Some(user) == terminator);
        let is_plain = || result.tensor_type().is_some_and(|ty| ty.is_static() && ty.dtype != DType::String);
        !is_returned && (result.is_none() || is_plain())
    })
}
