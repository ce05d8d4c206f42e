//! Detects operators without effect.

use super::reorder;
use divi_dialect::{Operation, Value};
use divi_onnx::{Dim, Node, Op, Tensor, TensorType};

/// Returns the operand that equals the first result of an operator, element by element. The caller compares the MLIR
/// types.
pub(super) fn operand<'m>(operation: Operation<'m>, node: &Node<'_>) -> Option<Value<'m>> {
    let operands = operation.operands();
    let first = *operands.first()?;
    let result = operation.results().first()?.tensor_type()?;
    let ty = &node.optional(0)?.ty;
    let same_type = *ty == result;
    let nothing = match node.op {
        Op::Identity => true,
        Op::Cast | Op::CastLike => same_type,
        Op::Concat | Op::Max | Op::Mean | Op::Min | Op::Sum => operands.len() == 1,
        Op::Split => operation.result_count() == 1,
        Op::Dropout => node.outputs == 1 && is_inference(node),
        Op::Transpose => reorder::permutation(node)?.into_iter().eq(0..ty.rank()?),
        Op::Reshape | Op::Flatten | Op::Squeeze | Op::Unsqueeze => {
            let r#type = operation.result(0).r#type();
            let fits = |root: &Value<'_>| root.r#type() == r#type && determined_by_count(&result);
            return reorder::roots(operation).into_iter().find(fits);
        }
        // Broadcasting may enlarge a dimension of unknown size.
        Op::Expand => same_type && ty.is_static(),
        Op::Pad => known(node, 1)?.iter().all(|&pad| pad == 0),
        Op::Tile => known(node, 1)?.iter().all(|&repeat| repeat == 1),
        Op::Slice => same_type && ty.is_static() && forward(node),
        Op::Add => return neutral(node, &operands, 0, true),
        Op::Sub => return neutral(node, &operands, 0, false),
        Op::Mul => return neutral(node, &operands, 1, true),
        Op::Div => return neutral(node, &operands, 1, false),
        _ => false,
    };
    nothing.then_some(first)
}

/// Returns true if a Dropout drops nothing.
pub(super) fn is_inference(node: &Node<'_>) -> bool {
    match node.optional(2) {
        None => true,
        Some(training) => training.tensor().and_then(Tensor::ints).is_some_and(|flag| flag == [0]),
    }
}

fn known(node: &Node<'_>, operand: usize) -> Option<Vec<i64>> {
    node.optional(operand)?.tensor()?.ints()
}

/// Returns true if all tensors of this type with the same number of elements have the same shape: at most one dimension
/// is dynamic, and the others determine its size.
fn determined_by_count(ty: &TensorType) -> bool {
    let Some(shape) = &ty.shape else { return false };
    let open = shape.iter().filter(|dim| dim.known().is_none()).count();
    open == 0 || open == 1 && !shape.contains(&Dim::Known(0))
}

/// Returns true if all steps of a Slice are 1. A Slice of all elements is then a no-op.
fn forward(node: &Node<'_>) -> bool {
    match node.optional(4) {
        None => true,
        Some(_) => known(node, 4).is_some_and(|steps| steps.iter().all(|&step| step == 1)),
    }
}

/// Returns the other operand if one holds only the neutral element and does not broadcast the result to a larger shape.
fn neutral<'m>(node: &Node<'_>, operands: &[Value<'m>], element: i64, commutes: bool) -> Option<Value<'m>> {
    let is_neutral = |constant: usize, other: usize| {
        let constant = node.optional(constant)?;
        let shape = node.optional(other)?.ty.shape.as_deref()?;
        let holds = holds_only(constant.tensor()?, element);
        (holds && widens_nothing(constant.ty.shape.as_deref()?, shape)).then_some(operands[other])
    };
    is_neutral(1, 0).or_else(|| if commutes { is_neutral(0, 1) } else { None })
}

/// Returns true if every element equals `element`. A zero may have either sign.
fn holds_only(tensor: &Tensor, element: i64) -> bool {
    if let Some(ints) = tensor.ints() {
        return ints.iter().all(|&value| value == element);
    }
    tensor.floats().is_some_and(|floats| floats.iter().all(|&value| value == element as f64))
}

/// Returns true if broadcasting `from` with `to` results in `to`, whatever its dynamic dimensions are.
fn widens_nothing(from: &[Dim], to: &[Dim]) -> bool {
    let fits = |(from, to): (&Dim, &Dim)| *from == Dim::Known(1) || from.known().is_some() && from == to;
    from.len() <= to.len() && from.iter().rev().zip(to.iter().rev()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_onnx::DType;

    #[test]
    fn one_dynamic_dimension_follows_from_the_element_count() {
        let ty = |dims: &[Dim]| TensorType::new(DType::F32, dims.to_vec());
        assert!(determined_by_count(&ty(&[Dim::Unknown, Dim::Known(3)])));
        assert!(determined_by_count(&ty(&[Dim::Known(0)])));
        assert!(!determined_by_count(&ty(&[Dim::Unknown, Dim::Known(0)])));
        assert!(!determined_by_count(&ty(&[Dim::Unknown, Dim::Unknown])));
        assert!(!determined_by_count(&TensorType::unranked(DType::F32)));
    }

    #[test]
    fn broadcasting_may_widen() {
        let dims = |sizes: &[i64]| sizes.iter().copied().map(Dim::Known).collect::<Vec<_>>();
        assert!(widens_nothing(&[], &[Dim::Unknown]));
        assert!(widens_nothing(&dims(&[1, 3]), &[Dim::Unknown, Dim::Known(3)]));
        assert!(!widens_nothing(&dims(&[2, 3]), &[Dim::Unknown, Dim::Known(3)]));
        assert!(!widens_nothing(&dims(&[1, 1]), &dims(&[3])));
        assert!(!widens_nothing(&dims(&[3]), &dims(&[1])));
    }

    #[test]
    fn neutral_elements() {
        let floats = |values: &[f64]| Tensor::from_floats(DType::F32, vec![values.len() as i64], values).unwrap();
        assert!(holds_only(&floats(&[0.0, -0.0]), 0));
        assert!(holds_only(&floats(&[1.0]), 1));
        assert!(!holds_only(&floats(&[1.0, 1.5]), 1));
        assert!(!holds_only(&floats(&[f64::NAN]), 0));
        assert!(holds_only(&Tensor::from_shape(&[1, 1]), 1));
    }
}
