//! Merges consecutive Transposes and Reshapes.

use super::{operator, placement::placement, with_node};
use divi_dialect::{Operation, Value, attr};
use divi_onnx::{Dim, Node, Op};

/// Rewires an operator to its producer's operand if it can do the work of both. The producer may be left without uses.
pub(super) fn merge(operation: Operation<'_>, op: Op) -> bool {
    match op {
        Op::Transpose => merge_transposes(operation),
        Op::Reshape => merge_reshapes(operation),
        _ => false,
    }
}

/// Returns the axes of a Transpose's operand, in the order of its result's.
pub(super) fn permutation(node: &Node<'_>) -> Option<Vec<usize>> {
    let rank = node.optional(0)?.ty.rank()?;
    match node.ints("perm").ok()? {
        Some(axes) => axes.iter().map(|&axis| usize::try_from(axis).ok().filter(|&axis| axis < rank)).collect(),
        None => Some((0..rank).rev().collect()),
    }
}

/// Returns the producer of an operation's first operand, if both have the same placement.
fn producer(operation: Operation<'_>) -> Option<Operation<'_>> {
    let producer = operation.operands().first()?.defining_op()?;
    // In unreachable code, an operation may be its own operand.
    let other = producer != operation;
    (other && placement(producer) == placement(operation)).then_some(producer)
}

fn merge_transposes(operation: Operation<'_>) -> bool {
    let merged = || {
        let inner = producer(operation).filter(|&inner| operator(inner) == Some(Op::Transpose))?;
        let first = with_node(inner, Op::Transpose, permutation)??;
        let second = with_node(operation, Op::Transpose, permutation)??;
        let axes: Vec<i64> =
            second.iter().map(|&axis| first.get(axis).map(|&axis| axis as i64)).collect::<Option<_>>()?;
        Some((*inner.operands().first()?, axes))
    };
    let Some((operand, axes)) = merged() else { return false };
    let context = operation.context();
    let axes: Vec<_> = axes.into_iter().map(|axis| attr::integer(context, axis)).collect();
    operation.set_attribute("perm", attr::array(context, &axes));
    operation.set_operand(0, operand);
    true
}

/// Returns true if an operator only changes the shape of its first operand.
fn keeps_order(operation: Operation<'_>) -> bool {
    operator(operation).is_some_and(|op| op.is_view() && op != Op::Identity)
}

/// Returns the first operand of an operation and the values that it is a reshaped view of, the nearest first. Operators
/// in between have the placement of the operation.
pub(super) fn roots(operation: Operation<'_>) -> Vec<Value<'_>> {
    let Some(&(mut value)) = operation.operands().first() else { return vec![] };
    let mut roots = vec![value];
    while let Some(owner) = value.defining_op()
        && keeps_order(owner)
        && placement(owner) == placement(operation)
        && let Some(&operand) = owner.operands().first()
        // In unreachable code, operators may form a cycle.
        && !roots.contains(&operand)
    {
        roots.push(operand);
        value = operand;
    }
    roots
}

fn merge_reshapes(operation: Operation<'_>) -> bool {
    let merged = || {
        let inner = producer(operation).filter(|&inner| keeps_order(inner))?;
        let operand = *inner.operands().first()?;
        let (from, through) = (operand.tensor_type()?.shape?, inner.results()[0].tensor_type()?.shape?);
        with_node(operation, Op::Reshape, |node| {
            let sizes = node.ints_of(1)?;
            // A zero copies the operand's dimension, which must be the same in both operands.
            let zeros = !node.flag("allowzero", false).ok()?;
            let same = |axis: usize| matches!((from.get(axis), through.get(axis)), (Some(a @ Dim::Known(_)), Some(b)) if a == b);
            let kept = (0..sizes.len()).all(|axis| !zeros || sizes[axis] != 0 || same(axis));
            kept.then_some(operand)
        })?
    };
    let Some(operand) = merged() else { return false };
    operation.set_operand(0, operand);
    true
}
