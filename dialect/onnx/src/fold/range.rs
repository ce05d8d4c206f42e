//! `Range`.

use super::{
    MAX_ELEMENTS,
    array::{Decoded, constant, rounded},
};
use crate::{DType, Node, Tensor, node::KnownElements};

pub(super) fn range(node: &Node<'_>) -> Option<KnownElements> {
    let operands = [constant(node, 0)?, constant(node, 1)?, constant(node, 2)?];
    let dtype = operands[0].dtype();
    if operands.iter().any(|operand| operand.dtype() != dtype || operand.count() != 1) {
        return None;
    }
    let [start, limit, delta] = operands;
    match (Decoded::of(start)?, Decoded::of(limit)?, Decoded::of(delta)?) {
        (Decoded::Ints(start), Decoded::Ints(limit), Decoded::Ints(delta)) if dtype != DType::Bool => {
            of_ints(dtype, *start.data.first()?, *limit.data.first()?, *delta.data.first()?)
        }
        (Decoded::Floats(start), Decoded::Floats(limit), Decoded::Floats(delta)) => {
            of_floats(dtype, *start.data.first()?, *limit.data.first()?, *delta.data.first()?)
        }
        _ => None,
    }
    .map(KnownElements::Constant)
}

fn of_ints(dtype: DType, start: i64, limit: i64, delta: i64) -> Option<Tensor> {
    let distance = (i128::from(limit) - i128::from(start)) * i128::from(delta.signum());
    let step = i128::from(delta).abs();
    let count = match step {
        0 => return None,
        _ if distance <= 0 => 0,
        _ => usize::try_from((distance + step - 1) / step).ok().filter(|&count| count <= MAX_ELEMENTS)?,
    };
    let values: Vec<_> = (0..count as i64).map(|i| start.wrapping_add(i.wrapping_mul(delta))).collect();
    Tensor::from_ints(dtype, vec![count as i64], &values)
}

fn of_floats(dtype: DType, start: f64, limit: f64, delta: f64) -> Option<Tensor> {
    let count = ((limit - start) / delta).ceil();
    // Implementations that compute in the element type may round the quotient to another integer: not folded then, because
    // the number of elements depends on the target.
    let narrow = rounded(dtype, rounded(dtype, limit - start) / delta).ceil();
    if delta == 0.0 || count.is_nan() || count.max(0.0) != narrow.max(0.0) || count > MAX_ELEMENTS as f64 {
        return None;
    }
    let count = count.max(0.0) as usize;
    let values: Vec<_> = (0..count).map(|i| start + i as f64 * delta).collect();
    Tensor::from_floats(dtype, vec![count as i64], &values)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{N, floats, ints, scalar_partial, tensor};
    use crate::{DType, infer::testing::Case};

    fn of_ints(start: i64, limit: i64, delta: i64) -> Case {
        let case = Case::new("Range").constant(ints(&[], &[start]));
        case.constant(ints(&[], &[limit])).constant(ints(&[], &[delta]))
    }

    fn of_floats(start: f64, limit: f64, delta: f64) -> Case {
        let case = Case::new("Range").constant(floats(&[], &[start]));
        case.constant(floats(&[], &[limit])).constant(floats(&[], &[delta]))
    }

    #[test]
    fn integers() {
        of_ints(3, 9, 3).folds_to(ints(&[2], &[3, 6]));
        of_ints(10, 4, -2).folds_to(ints(&[3], &[10, 8, 6]));
        of_ints(0, 5, 2).folds_to(ints(&[3], &[0, 2, 4]));
        of_ints(5, 0, 1).folds_to(ints(&[0], &[]));
        of_ints(0, 5, 0).folds_to_nothing("int64[*]");
        of_ints(i64::MIN, i64::MAX, 1).folds_to_nothing("int64[*]");
        of_ints(i64::MAX, i64::MIN, i64::MIN).folds_to(ints(&[2], &[i64::MAX, -1]));
        let short = |v: i64| tensor(DType::I16, &[], &[v]);
        let case = Case::new("Range").constant(short(0)).constant(short(2)).constant(short(1));
        case.folds_to(tensor(DType::I16, &[2], &[0, 1]));
    }

    #[test]
    fn floating_point() {
        of_floats(0.0, 1.0, 0.25).folds_to(floats(&[4], &[0.0, 0.25, 0.5, 0.75]));
        of_floats(1.0, 0.0, -0.4)
            .folds_to(floats(&[3], &[1.0, 1.0 - f64::from(0.4f32), 1.0 - 2.0 * f64::from(0.4f32)]));
        of_floats(0.0, f64::INFINITY, 1.0).folds_to_nothing("float[*]");
        of_floats(0.0, f64::NAN, 1.0).folds_to_nothing("float[*]");
        of_floats(0.0, 1.0, 0.0).folds_to_nothing("float[*]");
    }

    #[test]
    fn symbolic_limit() {
        let case = Case::new("Range").constant(ints(&[], &[0])).value(scalar_partial(N)).constant(ints(&[], &[1]));
        case.folds_to_nothing("int64[?]");
    }
}
