//! Transposes and Reshapes in a row.

use super::{
    operator,
    placement::{placement, same},
    with_node,
};
use crate::ir::{operands, results, tensor_type_of_value};
use divi_onnx::{Dim, Node, Op};
use melior::{
    Context, StringRef,
    ir::{AttributeLike, attribute::IntegerAttribute, r#type::IntegerType},
};
use mlir_sys::*;

/// Gives an operator what the one in front of it works on, if it can do the work of both. The other one may be left without
/// users.
pub(super) fn merge(context: &Context, operation: MlirOperation, op: Op) -> bool {
    match op {
        Op::Transpose => merge_transposes(context, operation),
        Op::Reshape => merge_reshapes(operation),
        _ => false,
    }
}

/// The axes of a Transpose's operand, in the order of its result's.
pub(super) fn permutation(node: &Node<'_>) -> Option<Vec<usize>> {
    let rank = node.optional(0)?.ty.rank()?;
    match node.ints("perm").ok()? {
        Some(axes) => axes.iter().map(|&axis| usize::try_from(axis).ok().filter(|&axis| axis < rank)).collect(),
        None => Some((0..rank).rev().collect()),
    }
}

/// The operator that computes an operation's first operand, if both are in one place.
fn producer(operation: MlirOperation) -> Option<MlirOperation> {
    let operand = *operands(operation).first()?;
    // SAFETY: the value is alive.
    let producer = unsafe { mlirValueIsAOpResult(operand).then(|| mlirOpResultGetOwner(operand)) }?;
    // In code that is never reached, an operation may be its own operand.
    let other = producer.ptr != operation.ptr;
    (other && same(placement(producer), placement(operation))).then_some(producer)
}

fn merge_transposes(context: &Context, operation: MlirOperation) -> bool {
    let merged = || {
        let inner = producer(operation).filter(|&inner| operator(inner) == Some(Op::Transpose))?;
        let first = with_node(inner, Op::Transpose, permutation)??;
        let second = with_node(operation, Op::Transpose, permutation)??;
        let axes: Vec<i64> =
            second.iter().map(|&axis| first.get(axis).map(|&axis| axis as i64)).collect::<Option<_>>()?;
        Some((*operands(inner).first()?, axes))
    };
    let Some((operand, axes)) = merged() else { return false };
    let integer = IntegerType::new(context, 64);
    let axes: Vec<_> = axes.into_iter().map(|axis| IntegerAttribute::new(integer.into(), axis).to_raw()).collect();
    // SAFETY: operation, operand and attributes are alive, and the list outlives the call.
    unsafe {
        let axes = mlirArrayAttrGet(context.to_raw(), axes.len() as isize, axes.as_ptr());
        mlirOperationSetAttributeByName(operation, StringRef::new("perm").to_raw(), axes);
        mlirOperationSetOperand(operation, 0, operand);
    }
    true
}

/// Whether an operator only gives its first operand other dimensions.
fn keeps_order(operation: MlirOperation) -> bool {
    operator(operation).is_some_and(|op| op.is_view() && op != Op::Identity)
}

/// The first operand of an operation and the values that it has the elements of, in order, with other dimensions; the
/// nearest first. What is between is in the operation's place.
pub(super) fn roots(operation: MlirOperation) -> Vec<MlirValue> {
    let Some(&(mut value)) = operands(operation).first() else { return vec![] };
    let mut roots = vec![value];
    // SAFETY: the value is alive.
    while let Some(owner) = unsafe { mlirValueIsAOpResult(value).then(|| mlirOpResultGetOwner(value)) }
        && keeps_order(owner)
        && same(placement(owner), placement(operation))
        && let Some(&operand) = operands(owner).first()
        // In code that is never reached, operators may go round in circles.
        && !roots.iter().any(|root| root.ptr == operand.ptr)
    {
        roots.push(operand);
        value = operand;
    }
    roots
}

fn merge_reshapes(operation: MlirOperation) -> bool {
    let merged = || {
        let inner = producer(operation).filter(|&inner| keeps_order(inner))?;
        let operand = *operands(inner).first()?;
        let (from, through) = (tensor_type_of_value(operand)?.shape?, tensor_type_of_value(results(inner)[0])?.shape?);
        with_node(operation, Op::Reshape, |node| {
            let sizes = node.ints_of(1)?;
            // A zero means the operand's dimension, which must be the same one.
            let zeros = !node.flag("allowzero", false).ok()?;
            let same = |axis: usize| matches!((from.get(axis), through.get(axis)), (Some(a @ Dim::Known(_)), Some(b)) if a == b);
            let kept = (0..sizes.len()).all(|axis| !zeros || sizes[axis] != 0 || same(axis));
            kept.then_some(operand)
        })?
    };
    let Some(operand) = merged() else { return false };
    // SAFETY: operation and value are alive.
    unsafe { mlirOperationSetOperand(operation, 0, operand) };
    true
}
