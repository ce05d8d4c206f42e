//! Marks operators that compute constants from constants, such as weight standardization. They are not tasks of a plan,
//! as they are evaluated when a bundle is built or loaded. No weights are read here: a model is planned without them.

use super::{is_random, operator};
use crate::ir::value_bytes;
use divi_dialect::{Block, Operation, Value, attr, op};
use divi_onnx::{DType, Op};
use rustc_hash::FxHashMap;

/// Results of at most this many bytes are always constants; larger ones only within `MOST_GROWTH`.
const SMALL: u64 = 16 << 20;
/// Largest ratio of a result's bytes to those of the constants that it is computed from.
const MOST_GROWTH: u64 = 4;

/// Marks (`divi.constant_bytes`) the operators of a module's functions that read only constants and compute numeric
/// tensors of static shape. Operators with constraints or decisions on them stay tasks, and so do those whose results a
/// function returns.
pub(super) fn mark(module: Operation<'_>) {
    for function in module.children() {
        if function.name() == op::FUNC {
            function.blocks().into_iter().for_each(mark_block);
        }
    }
}

/// Operator that may be a constant.
struct Candidate<'m> {
    operation: Operation<'m>,
    /// True if it, or an operator it reads, does more than rearrange the elements of one constant, which kernels do
    /// themselves.
    is_computed: bool,
    /// Bytes of the constants that it is computed from.
    bytes: u64,
}

fn mark_block(block: Block<'_>) {
    let terminator = block.terminator();
    let mut candidates: Vec<Candidate<'_>> = vec![];
    // Index of the candidate that defines each result.
    let mut found: FxHashMap<Value<'_>, usize> = FxHashMap::default();
    for operation in block.operations() {
        let Some(op) = operator(operation).filter(|&op| op != Op::Constant) else { continue };
        let read: Vec<_> = operation.operands().into_iter().filter(|&operand| !operand.is_none()).collect();
        let is_known = |&operand: &Value<'_>| {
            found.contains_key(&operand)
                || operand.defining_op().is_some_and(|definer| operator(definer) == Some(Op::Constant))
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
    // An operator that only rearranges a constant is marked if a marked operator reads it.
    for Candidate { operation, is_computed, bytes } in candidates.into_iter().rev() {
        let mut users = operation.results().into_iter().flat_map(Value::uses);
        if is_computed || users.any(|(user, _)| user.has(attr::CONSTANT_BYTES)) {
            operation.set(attr::CONSTANT_BYTES, i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }
}

/// Operators that only rearrange elements: kernels read weights in any order.
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
