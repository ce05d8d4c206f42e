//! Comparisons and `Where`.

use super::{
    array::{Decoded, constant, int_array},
    partial,
    source::{Source, assemble},
    walk::{StridedOffsets, broadcast},
};
use crate::{DType, Node, Op, node::KnownElements};
use std::cmp::Ordering;

fn holds(op: Op, order: Ordering) -> bool {
    match op {
        Op::Equal => order.is_eq(),
        Op::Greater => order.is_gt(),
        Op::GreaterOrEqual => order.is_ge(),
        Op::Less => order.is_lt(),
        _ => order.is_le(),
    }
}

pub(super) fn compare(node: &Node<'_>) -> Option<KnownElements> {
    let (Some(a), Some(b)) = (constant(node, 0), constant(node, 1)) else {
        return partial::compare(node, |order| holds(node.op, order));
    };
    if a.dtype() != b.dtype() {
        return None;
    }
    let result = match (Decoded::of(a)?, Decoded::of(b)?) {
        (Decoded::Ints(a), Decoded::Ints(b)) => a.zip(&b, |a, b| Some(holds(node.op, a.cmp(&b)).into())),
        (Decoded::Floats(a), Decoded::Floats(b)) => {
            // Comparisons with NaN are false.
            a.zip(&b, |a, b| Some(a.partial_cmp(&b).is_some_and(|order| holds(node.op, order)).into()))
        }
        _ => return None,
    };
    Decoded::Ints(result?).content(DType::Bool)
}

pub(super) fn where_(node: &Node<'_>) -> Option<KnownElements> {
    let condition = int_array(node, 0)?;
    let then = Source::of_value_or_unknown(node.optional(1)?)?;
    let otherwise = Source::of_value_or_unknown(node.optional(2)?)?;
    let dims = broadcast(&broadcast(&condition.dims, &then.dims)?, &otherwise.dims)?;
    let walk = |from: &[i64]| StridedOffsets::broadcast(from, &dims);
    let picks = walk(&condition.dims)?.zip(walk(&then.dims)?.zip(walk(&otherwise.dims)?));
    let picks = picks.map(|(c, (t, o))| if condition.data.get(c).is_some_and(|&c| c != 0) { (0, t) } else { (1, o) });
    assemble(&[then, otherwise], dims.clone(), picks)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{N, S, bools, floats, ints, partial};
    use crate::{Dim, infer::testing::Case};

    #[test]
    fn numbers() {
        let of = |op| Case::new(op).shape_input(&[1, 2, 3]).shape_input(&[2]);
        of("Equal").folds_to(bools(&[3], &[0, 1, 0]));
        of("Greater").folds_to(bools(&[3], &[0, 0, 1]));
        of("GreaterOrEqual").folds_to(bools(&[3], &[0, 1, 1]));
        of("Less").folds_to(bools(&[3], &[1, 0, 0]));
        of("LessOrEqual").folds_to(bools(&[3], &[1, 1, 0]));
        let nan = || floats(&[2], &[f64::NAN, 0.0]);
        Case::new("Equal").constant(nan()).constant(nan()).folds_to(bools(&[2], &[0, 1]));
        Case::new("GreaterOrEqual").constant(nan()).constant(nan()).folds_to(bools(&[2], &[0, 1]));
        Case::new("Equal").constant(bools(&[1], &[1])).constant(bools(&[1], &[1])).folds_to(bools(&[1], &[1]));
    }

    #[test]
    fn partly_known() {
        let with = |op, shape: &[Dim], b| Case::new(op).value(partial(shape)).shape_input(&[b]);
        with("Equal", &[N, 3.into()], -1).folds_to(bools(&[2], &[0, 0]));
        with("Equal", &[N, 3.into()], 3).folds_to_nothing("bool[2]");
        with("Equal", &[Dim::Unknown], -1).folds_to_nothing("bool[1]");
        with("Less", &[N], -1).folds_to(bools(&[1], &[0]));
        Case::new("Equal").value(partial(&[N])).value(partial(&[N])).folds_to(bools(&[1], &[1]));
        Case::new("Equal").value(partial(&[N])).value(partial(&[S])).folds_to_nothing("bool[1]");
    }

    #[test]
    fn where_() {
        let case = Case::new("Where").constant(bools(&[2, 1], &[1, 0])).constant(floats(&[2], &[1.0, 2.0]));
        case.constant(floats(&[], &[0.0])).folds_to(floats(&[2, 2], &[1.0, 2.0, 0.0, 0.0]));
        let shape = || Case::new("Where").constant(bools(&[2], &[1, 0]));
        shape().shape_input(&[1, 1]).value(partial(&[N, S])).folds_to_partial("int64[2]", &[1.into(), S]);
        shape().shape_input(&[1, 1]).value(partial(&[N, 3.into()])).folds_to(ints(&[2], &[1, 3]));
        shape().shape_input(&[1, 1]).input("int64[2]").folds_to_partial("int64[2]", &[1.into(), Dim::Unknown]);
        let case = Case::new("Where").input("bool[2]").shape_input(&[1, 1]).shape_input(&[1, 1]);
        case.folds_to_nothing("int64[2]");
        shape().shape_input(&[1, 1, 1]).shape_input(&[1]).folds_to_nothing("int64[*]");
    }
}
