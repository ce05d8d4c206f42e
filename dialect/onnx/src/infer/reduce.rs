//! Reductions and cumulative operators.

use super::{Types, elementwise::same_as_first, layout::list_operand, single_result};
use crate::node::{Node, normalize_axes, normalize_axis};
use crate::{Dim, Error, Shape, TensorType};

/// Axes of a reduction.
enum Axes {
    All,
    Nothing,
    These(Vec<i64>),
    /// Unknown axes, with their number if it is known.
    Some(Option<usize>),
}

fn axes(node: &Node<'_>) -> Result<Axes, Error> {
    let noop = node.flag("noop_with_empty_axes", false)?;
    let none_given = if noop { Axes::Nothing } else { Axes::All };
    if node.optional(1).is_none() {
        return Ok(none_given);
    }
    let Some(list) = list_operand(node, 1)? else {
        return Ok(Axes::Some(None));
    };
    let len = list.len();
    Ok(match list.into_iter().map(Dim::known).collect() {
        Some(axes) if len > 0 => Axes::These(axes),
        Some(_) => none_given,
        None => Axes::Some(Some(len)),
    })
}

pub(super) fn reduce(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    let keep = node.flag("keepdims", true)?;
    let axes = axes(node)?;
    let Some(shape) = node.shape(0)? else {
        let scalar = !keep && matches!(axes, Axes::All);
        return single_result(if scalar { TensorType::scalar(dtype) } else { TensorType::unranked(dtype) });
    };
    let rank = shape.len();
    let shape: Option<Shape> = match axes {
        Axes::Nothing => Some(shape.to_vec()),
        Axes::All if keep => Some(vec![Dim::Known(1); rank]),
        Axes::All => Some(vec![]),
        Axes::These(axes) => {
            let axes = normalize_axes(&axes, rank)?;
            let dims = shape.iter().enumerate();
            Some(
                dims.filter_map(|(i, &dim)| if axes.contains(&i) { keep.then_some(Dim::Known(1)) } else { Some(dim) })
                    .collect(),
            )
        }
        Axes::Some(Some(count)) if count > rank => {
            return Err(Error::new(format!("has {count} axes for an operand of rank {rank}")));
        }
        // A dimension of size 1 does not depend on whether it is reduced.
        Axes::Some(_) if keep => Some(shape.iter().map(|dim| dim.map(|size| (size == 1).then_some(1))).collect()),
        Axes::Some(count) => count.map(|count| vec![Dim::Unknown; rank - count]),
    };
    single_result(TensorType::new(dtype, shape))
}

pub(super) fn cumulate(node: &Node<'_>) -> Types {
    let axis = list_operand(node, 1)?;
    match axis.as_deref() {
        None | Some([_]) => {}
        Some(axes) => return Err(Error::new(format!("operand 1 must be one axis, has {} elements", axes.len()))),
    }
    if let (Some(shape), Some(&[Dim::Known(axis)])) = (node.shape(0)?, axis.as_deref()) {
        normalize_axis(axis, shape.len())?;
    }
    same_as_first(node)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;
    use crate::Tensor;

    #[test]
    fn all_reductions_have_the_rule() {
        for op in [
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
            "ReduceLogSumExp",
            "ReduceMax",
            "ReduceMaxV18",
            "ReduceMean",
            "ReduceMin",
            "ReduceMinV18",
            "ReduceProd",
            "ReduceSum",
            "ReduceSumSquare",
        ] {
            Case::new(op).input("float[Nx3x4]").shape_input(&[-1]).infers(&["float[Nx3x1]"]);
            Case::new(op).input("float[Nx3x4]").shape_input(&[3]).fails("axis 3 is outside");
        }
    }

    #[test]
    fn keepdims_decides_the_rank() {
        let case = || Case::new("ReduceSum").input("int64[Nx3x4]");
        case().shape_input(&[1, 2]).int("keepdims", 0).infers(&["int64[N]"]);
        case().infers(&["int64[1x1x1]"]);
        case().int("keepdims", 0).infers(&["int64[]"]);
        case().shape_input(&[0, -3]).fails("named twice");
        Case::new("ReduceSum").input("float[*]").shape_input(&[0]).infers(&["float[*]"]);
        Case::new("ReduceSum").input("float[*]").int("keepdims", 0).infers(&["float[]"]);
    }

    #[test]
    fn empty_axes_mean_all_or_none() {
        let case = || Case::new("ReduceMax").input("float[Nx3]");
        case().shape_input(&[]).infers(&["float[1x1]"]);
        case().shape_input(&[]).int("noop_with_empty_axes", 1).infers(&["float[Nx3]"]);
        case().int("noop_with_empty_axes", 1).int("keepdims", 0).infers(&["float[Nx3]"]);
    }

    #[test]
    fn unknown_axes_lose_dimensions() {
        let case = || Case::new("ReduceMean").input("float[Nx1x4]");
        case().input("int64[?]").infers(&["float[?x1x?]"]);
        case().input("int64[1]").int("keepdims", 0).infers(&["float[?x?]"]);
        case().input("int64[?]").int("keepdims", 0).infers(&["float[*]"]);
        case().input("int64[0]").int("keepdims", 0).infers(&["float[]"]);
        case().input("int64[4]").fails("has 4 axes for an operand of rank 3");
    }

    #[test]
    fn cumulation_preserves_type() {
        for op in ["CumSum", "CumProd"] {
            Case::new(op).input("float[Nx3]").constant(Tensor::scalar_i64(-1)).infers(&["float[Nx3]"]);
            Case::new(op).input("float[*]").input("int32[]").infers(&["float[*]"]);
            Case::new(op).input("float[Nx3]").constant(Tensor::scalar_i64(2)).fails("axis 2 is outside");
            Case::new(op).input("float[Nx3]").shape_input(&[0, 1]).fails("must be one axis");
        }
    }
}
