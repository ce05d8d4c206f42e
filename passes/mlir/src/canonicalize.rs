//! `divi-canonicalize`: the same computation with fewer operators.

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
    node::{self, value_of},
    op,
};
use divi_onnx::{Node, Op};
use same::Scopes;

/// Operands before users is the order of one round, so that nearly everything is done in the first. Only code that is never
/// reached, whose operators may be their own operands, could go on for ever.
const MAX_ROUNDS: usize = 32;

//===----------------------------------------------------------------------===//
// --divi-canonicalize
//===----------------------------------------------------------------------===//

/// Takes away `onnx` operators that are not needed, until none is left:
///
/// - those that do nothing: Identity, Dropout, a Cast to the same type, a Transpose, Reshape, Expand, Pad, Slice, Tile or
///   Concat that changes nothing, adding zero, multiplying by one;
/// - one of two Transposes or Reshapes in a row;
/// - all but one of those that compute the same, constants included;
/// - those that nobody uses.
///
/// Operators that read constants alone are marked (`divi.constant_bytes`): they are no tasks, but part of what they are read by.
///
/// Functions keep their signatures, and operators that stay keep their names. Where operators are pinned or placed, only
/// those of one place are merged. Random operators are never the same. Zero may change its sign: adding `+0.0` is taken
/// away, though it makes `-0.0` positive, as other compilers for ONNX do; everything else is exact. What divi does not know
/// is not touched.
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
    /// Simplifies everything inside an operation.
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

    /// Simplifies an operator. The value is what its first result is, if that is known to be computed already.
    fn simplify(&mut self, operation: Operation<'m>, op: Op) -> Option<Value<'m>> {
        if op == Op::Constant || operation.results().is_empty() {
            return None;
        }
        if reorder::merge(operation, op) {
            self.statistics.num_removed += 1;
        }
        let value = with_node(operation, op, |node| noop::operand(operation, node))??;
        let result = operation.result(0);
        // In code that is never reached, an operation may be its own operand.
        let fits = value != result && value.r#type() == result.r#type();
        (fits && placement::may_stand_for(value, operation) && !result.uses().is_empty()).then_some(value)
    }
}

/// Returns the operator that an operation is, if there is inference for it.
fn operator(operation: Operation<'_>) -> Option<Op> {
    operation.op().filter(|op| op.is_inferred())
}

/// Returns true if an operation stands for an absent operand.
fn is_no_value(operation: Operation<'_>) -> bool {
    operation.name() == "onnx.NoValue"
}

/// Returns true if an operator may compute something else each time.
fn is_random(operation: Operation<'_>, op: Op) -> bool {
    match op {
        Op::Dropout => !with_node(operation, op, noop::is_inference).unwrap_or(false),
        _ => op.is_random(),
    }
}

/// Calls `f` with what is known of an operator; `None` if it takes something that is no tensor.
fn with_node<R>(operation: Operation<'_>, op: Op, f: impl FnOnce(&Node<'_>) -> R) -> Option<R> {
    node::with_node(operation, op, value_of, f)
}

/// Removes operators that nobody uses, users before what they use.
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
