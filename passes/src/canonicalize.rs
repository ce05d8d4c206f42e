//! `divi-canonicalize`: the same computation with fewer operators.

mod constants;
mod noop;
mod placement;
mod reorder;
mod same;

use crate::{
    declared::{Canonicalize, CanonicalizeStatistics},
    ir::{Failure, blocks, op_of, operands, operation_name, operations, results, uses},
};
use divi_dialect::node::{attributes_of, is_none, present_results, value_of};
use divi_onnx::{Node, Op, Value};
use melior::{Context, ContextRef, ir::operation::OperationRef};
use mlir_sys::*;
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
pub fn canonicalize(module: MlirOperation) -> CanonicalizeStatistics {
    // SAFETY: the context of a live operation is alive and outlives the pass.
    let context = unsafe { ContextRef::from_raw(mlirOperationGetContext(module)) };
    let mut statistics = CanonicalizeStatistics::default();
    for _ in 0..MAX_ROUNDS {
        let mut round = Round {
            // SAFETY: see above.
            context: unsafe { context.to_ref() },
            scopes: Scopes::default(),
            statistics: CanonicalizeStatistics::default(),
        };
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

struct Round<'c> {
    context: &'c Context,
    scopes: Scopes,
    statistics: CanonicalizeStatistics,
}

impl Round<'_> {
    /// Everything inside an operation.
    fn below(&mut self, operation: MlirOperation) {
        let isolated = matches!(operation_name(operation), "builtin.module" | "func.func" | "divi.cluster");
        for block in blocks(operation) {
            self.scopes.enter(isolated);
            for inner in operations(block) {
                self.below(inner);
                self.operation(inner);
            }
            self.scopes.leave();
        }
    }

    fn operation(&mut self, operation: MlirOperation) {
        let op = operator(operation);
        if op.is_none() && !is_no_value(operation) {
            return;
        }
        if let Some(value) = op.and_then(|op| self.simplify(operation, op)) {
            let Some(&result) = results(operation).first() else { return };
            // SAFETY: both values are alive.
            unsafe { mlirValueReplaceAllUsesOfWith(result, value) };
            if results(operation).into_iter().all(|result| uses(result).is_empty()) {
                // SAFETY: nothing uses the operation, and the loop over its block has a list of its own.
                unsafe { mlirOperationDestroy(operation) };
                self.statistics.num_removed += 1;
                return;
            }
        }
        if op.is_some_and(|op| is_random(operation, op)) || !blocks(operation).is_empty() {
            return;
        }
        if let Some(other) = self.scopes.find_or_add(operation) {
            for (from, to) in results(operation).into_iter().zip(results(other)) {
                // SAFETY: both values are alive, of one type, and the other comes first.
                unsafe { mlirValueReplaceAllUsesOfWith(from, to) };
            }
            // SAFETY: nothing uses the operation any more; see above.
            unsafe { mlirOperationDestroy(operation) };
            self.statistics.num_merged += 1;
        }
    }

    /// Simplifies an operator. The value is what its first result is, if that is known to be computed already.
    fn simplify(&mut self, operation: MlirOperation, op: Op) -> Option<MlirValue> {
        if op == Op::Constant || results(operation).is_empty() {
            return None;
        }
        if reorder::merge(self.context, operation, op) {
            self.statistics.num_removed += 1;
        }
        let value = with_node(operation, op, |node| noop::operand(operation, node))??;
        let result = results(operation)[0];
        // SAFETY: the values are alive. In code that is never reached, an operation may be its own operand.
        let fits = unsafe { !mlirValueEqual(value, result) && mlirTypeEqual(type_of(value), type_of(result)) };
        (fits && placement::may_stand_for(value, operation) && !uses(result).is_empty()).then_some(value)
    }
}

fn type_of(value: MlirValue) -> MlirType {
    crate::ir::type_of(value)
}

/// The operator that an operation is, if there is inference for it.
fn operator(operation: MlirOperation) -> Option<Op> {
    op_of(operation).filter(|op| op.is_inferred())
}

/// Returns whether an operation stands for an absent operand.
fn is_no_value(operation: MlirOperation) -> bool {
    operation_name(operation) == "onnx.NoValue"
}

/// Whether an operator may compute something else each time.
fn is_random(operation: MlirOperation, op: Op) -> bool {
    match op {
        Op::Dropout => !with_node(operation, op, noop::is_inference).unwrap_or(false),
        _ => op.is_random(),
    }
}

/// Calls `f` with what is known of an operator; `None` if it takes something that is no tensor.
fn with_node<R>(operation: MlirOperation, op: Op, f: impl FnOnce(&Node<'_>) -> R) -> Option<R> {
    let mut values: Vec<Option<Value>> = vec![];
    for operand in operands(operation) {
        match value_of(operand) {
            Some(value) => values.push(Some(value)),
            None if is_none(operand) => values.push(None),
            None => return None,
        }
    }
    let inputs: Vec<_> = values.iter().map(Option::as_ref).collect();
    // SAFETY: the operation is alive.
    let attributes = attributes_of(&unsafe { OperationRef::from_raw(operation) });
    Some(f(&Node { op, inputs: &inputs, attributes: &attributes, outputs: present_results(operation) }))
}

/// Removes operators that nobody uses, users before what they use.
fn remove_dead(operation: MlirOperation, statistics: &mut CanonicalizeStatistics) {
    for block in blocks(operation) {
        for inner in operations(block).into_iter().rev() {
            remove_dead(inner, statistics);
            let unused = results(inner).into_iter().all(|result| uses(result).is_empty());
            if unused && (is_no_value(inner) || operator(inner).is_some()) && blocks(inner).is_empty() {
                // SAFETY: nothing uses the operation, and the loop over its block has a list of its own.
                unsafe { mlirOperationDestroy(inner) };
                statistics.num_dead += 1;
            }
        }
    }
}

impl Canonicalize {
    pub(crate) fn run(&self, module: MlirOperation) -> Result<CanonicalizeStatistics, Failure> {
        Ok(canonicalize(module))
    }
}
