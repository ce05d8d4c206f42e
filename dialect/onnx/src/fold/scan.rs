//! `CumSum`.

use super::{
    array::{Decoded, constant, int, rounded},
    walk::AxisLines,
};
use crate::{
    Node,
    node::{KnownElements, normalize_axis},
};

pub(super) fn cum_sum(node: &Node<'_>) -> Option<KnownElements> {
    let tensor = constant(node, 0)?;
    let axis = normalize_axis(int(node, 1)?, tensor.dims().len()).ok()?;
    if tensor.count() == 0 {
        return Some(KnownElements::Constant(tensor.clone()));
    }
    let lines = AxisLines::new(tensor.dims(), axis)?;
    let exclusive = node.flag("exclusive", false).ok()?;
    let reverse = node.flag("reverse", false).ok()?;
    let dtype = tensor.dtype();
    let mut numbers = Decoded::of(tensor)?;
    match &mut numbers {
        Decoded::Ints(values) => scan(&mut values.data, &lines, exclusive, reverse, i64::wrapping_add),
        Decoded::Floats(values) => scan(&mut values.data, &lines, exclusive, reverse, |a, b| rounded(dtype, a + b)),
    }
    numbers.content(dtype)
}

fn scan<T: Copy + Default>(
    values: &mut [T],
    lines: &AxisLines,
    exclusive: bool,
    reverse: bool,
    add: impl Fn(T, T) -> T,
) {
    for start in lines.starts() {
        let mut sum = T::default();
        for step in 0..lines.size {
            let position = if reverse { lines.size - 1 - step } else { step };
            let Some(element) = values.get_mut(start + position * lines.inner) else { return };
            let before = sum;
            sum = add(sum, *element);
            *element = if exclusive { before } else { sum };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{floats, ints};
    use crate::infer::testing::Case;

    #[test]
    fn cum_sum() {
        let of = |axis| Case::new("CumSum").constant(ints(&[2, 3], &[1, 2, 3, 4, 5, 6])).constant(ints(&[], &[axis]));
        of(0).folds_to(ints(&[2, 3], &[1, 2, 3, 5, 7, 9]));
        of(-1).folds_to(ints(&[2, 3], &[1, 3, 6, 4, 9, 15]));
        of(1).int("exclusive", 1).folds_to(ints(&[2, 3], &[0, 1, 3, 0, 4, 9]));
        of(1).int("reverse", 1).folds_to(ints(&[2, 3], &[6, 5, 3, 15, 11, 6]));
        of(1).int("exclusive", 1).int("reverse", 1).folds_to(ints(&[2, 3], &[5, 3, 0, 11, 6, 0]));
        of(2).folds_to_nothing("int64[*]");
        let case = Case::new("CumSum").constant(floats(&[2], &[16_777_216.0, 1.0])).constant(ints(&[], &[0]));
        case.folds_to(floats(&[2], &[16_777_216.0, 16_777_216.0]));
        let case = Case::new("CumSum").constant(floats(&[1 << 62, 0], &[])).constant(ints(&[], &[1]));
        case.folds_to(floats(&[1 << 62, 0], &[]));
    }
}
