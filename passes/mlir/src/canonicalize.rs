//! `divi-canonicalize`: removes redundant operators.

mod constants;
mod noop;
mod placement;
mod reorder;
mod same;

use crate::{
    declared::{Canonicalize, CanonicalizeStatistics},
    ir::Failure,
};
use divi_dialect::{
    Operation, Value,
    node::{self, inference_value},
    op,
};
use divi_onnx::{Node, Op};
use same::Scopes;

/// Limit of rounds. A round visits operands before users, so the first one does nearly all of the work. Only
/// unreachable code, where an operator may be its own operand, could keep changing.
const MAX_ROUNDS: usize = 32;

//===----------------------------------------------------------------------===//
// --divi-canonicalize
//===----------------------------------------------------------------------===//

/// Removes redundant `onnx` operators until a fixed point is reached:
///
/// - no-ops: Identity, Dropout, a Cast to the same type, a Transpose, Reshape, Expand, Pad, Slice, Tile or Concat that
///   changes nothing, an addition of zero, a multiplication by one;
/// - one of two Transposes or Reshapes in a row;
/// - duplicates: all but one of the operators that compute the same value, constants included;
/// - dead operators.
///
/// Operators that read only constants are marked (`divi.constant_bytes`): they are not tasks, but part of the tasks
/// that read them.
///
/// Functions keep their signatures, and remaining operators their names. Operators with a pin or a device are merged
/// only with operators of the same placement. Random operators are never duplicates. The sign of zero may change:
/// adding `+0.0` is removed although it turns `-0.0` into `+0.0`, as in other ONNX compilers; everything else is exact.
/// Operators that divi does not know are not changed.
pub fn canonicalize(module: Operation<'_>) -> CanonicalizeStatistics {
    let mut statistics = CanonicalizeStatistics::default();
    for _ in 0..MAX_ROUNDS {
        let mut round = Round { scopes: Scopes::default(), statistics: CanonicalizeStatistics::default() };
        round.below(module);
        remove_dead(module, &mut round.statistics);
        let CanonicalizeStatistics { num_removed, num_merged, num_dead } = round.statistics;
        statistics.num_removed += num_removed;
        statistics.num_merged += num_merged;
        statistics.num_dead += num_dead;
        if num_removed + num_merged + num_dead == 0 {
            break;
        }
    }
    constants::mark(module);
    statistics
}

struct Round<'m> {
    scopes: Scopes<'m>,
    statistics: CanonicalizeStatistics,
}

impl<'m> Round<'m> {
    /// Simplifies all operations nested in an operation.
    fn below(&mut self, operation: Operation<'m>) {
        let isolated = matches!(operation.name(), "builtin.module" | op::FUNC | op::CLUSTER);
        for block in operation.blocks() {
            self.scopes.enter(isolated);
            for inner in block.operations() {
                self.below(inner);
                self.operation(inner);
            }
            self.scopes.leave();
        }
    }

    fn operation(&mut self, operation: Operation<'m>) {
        let op = operator(operation);
        if op.is_none() && !is_no_value(operation) {
            return;
        }
        if let Some(value) = op.and_then(|op| self.simplify(operation, op)) {
            let Some(&result) = operation.results().first() else { return };
            result.replace_all_uses_with(value);
            if operation.results().into_iter().all(|result| result.uses().is_empty()) {
                operation.erase();
                self.statistics.num_removed += 1;
                return;
            }
        }
        if op.is_some_and(|op| is_random(operation, op)) || !operation.blocks().is_empty() {
            return;
        }
        if let Some(other) = self.scopes.find_or_add(operation) {
            for (from, to) in operation.results().into_iter().zip(other.results()) {
                from.replace_all_uses_with(to);
            }
            operation.erase();
            self.statistics.num_merged += 1;
        }
    }

    /// Simplifies an operator. Returns the value that can replace its first result, if there is one.
    fn simplify(&mut self, operation: Operation<'m>, op: Op) -> Option<Value<'m>> {
        if op == Op::Constant || operation.results().is_empty() {
            return None;
        }
        if reorder::merge(operation, op) {
            self.statistics.num_removed += 1;
        }
        let value = with_node(operation, op, |node| noop::operand(operation, node))??;
        let result = operation.result(0);
        // In unreachable code, an operation may be its own operand.
        let fits = value != result && value.r#type() == result.r#type();
        (fits && placement::may_stand_for(value, operation) && !result.uses().is_empty()).then_some(value)
    }
}

/// Returns the ONNX operator of an operation, if there is shape inference for it.
fn operator(operation: Operation<'_>) -> Option<Op> {
    operation.op().filter(|op| op.is_inferred())
}

/// Returns true for the marker of an absent operand.
fn is_no_value(operation: Operation<'_>) -> bool {
    operation.name() == "onnx.NoValue"
}

/// Returns true if an operator may compute another result each time.
fn is_random(operation: Operation<'_>, op: Op) -> bool {
    match op {
        Op::Dropout => !with_node(operation, op, noop::is_inference).unwrap_or(false),
        _ => op.is_random(),
    }
}

/// Calls `f` with the node view of an operator; `None` if an operand is not a tensor.
fn with_node<R>(operation: Operation<'_>, op: Op, f: impl FnOnce(&Node<'_>) -> R) -> Option<R> {
    node::with_inference_node(operation, op, inference_value, f)
}

/// Removes operators without uses, users before their operands.
fn remove_dead(operation: Operation<'_>, statistics: &mut CanonicalizeStatistics) {
    for block in operation.blocks() {
        for inner in block.operations().into_iter().rev() {
            remove_dead(inner, statistics);
            let unused = inner.results().into_iter().all(|result| result.uses().is_empty());
            if unused && (is_no_value(inner) || operator(inner).is_some()) && inner.blocks().is_empty() {
                inner.erase();
                statistics.num_dead += 1;
            }
        }
    }
}

impl Canonicalize {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<CanonicalizeStatistics, Failure> {
        Ok(canonicalize(module))
    }
}
