//! Operators that replace selected elements.

use super::{
    arithmetic::{float_op, int_op},
    array::{Array, Decoded, constant, int_array, rounded},
    bounded,
    gather::{element_offsets, tuple_offset},
    source::{Source, assemble},
    walk::strides,
};
use crate::{
    DType, Node, Op,
    node::{KnownElements, normalize_axis},
};

pub(super) fn scatter_elements(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    bounded(&data.dims)?;
    let indices = int_array(node, 1)?;
    let axis = normalize_axis(node.int_or("axis", 0).ok()?, data.rank()).ok()?;
    let targets = element_offsets(&data.dims, &indices.dims, &indices.data, axis)?;
    scatter(node, data, &indices.dims, &targets)
}

pub(super) fn scatter_nd(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    bounded(&data.dims)?;
    let indices = int_array(node, 1)?;
    let (&tuple, rows) = indices.dims.split_last()?;
    let tuple = usize::try_from(tuple).ok()?;
    let inner = data.dims.get(tuple..)?;
    let shape = [rows, inner].concat();
    let count = bounded(&shape)?;
    let mut targets = Vec::with_capacity(count);
    if count > 0 {
        let inner = inner.iter().product::<i64>() as usize;
        let rows = rows.iter().product::<i64>() as usize;
        let strides = strides(&data.dims);
        for row in 0..rows {
            let offset = tuple_offset(&indices.data[row * tuple..(row + 1) * tuple], &data.dims, &strides)?;
            targets.extend((0..inner).map(|e| offset.wrapping_add(e)));
        }
    }
    scatter(node, data, &shape, &targets)
}

/// Writes the updates, which must have shape `shape`, to the target offsets. The last update of an element takes effect.
fn scatter(node: &Node<'_>, data: Source<'_>, shape: &[i64], targets: &[usize]) -> Option<KnownElements> {
    let updates = Source::of(node, 2)?;
    if updates.dtype != data.dtype || &updates.dims[..] != shape {
        return None;
    }
    let op = match node.str_or("reduction", "none").ok()? {
        "none" => {
            let dims = data.dims.to_vec();
            let mut picks: Vec<_> = (0..bounded(&dims)?).map(|i| (0, i)).collect();
            for (update, &target) in targets.iter().enumerate() {
                *picks.get_mut(target)? = (1, update);
            }
            return assemble(&[data, updates], dims, picks.into_iter());
        }
        "add" => Op::Add,
        "mul" => Op::Mul,
        "max" => Op::Max,
        "min" => Op::Min,
        _ => return None,
    };
    accumulate(node, data.dtype, op, targets)
}

/// Scatters with a reduction, which is applied in the order of the updates and rounds after each.
fn accumulate(node: &Node<'_>, dtype: DType, op: Op, targets: &[usize]) -> Option<KnownElements> {
    fn run<T: Copy>(
        mut data: Array<T>,
        updates: &[T],
        targets: &[usize],
        f: impl Fn(T, T) -> Option<T>,
    ) -> Option<Array<T>> {
        for (&update, &target) in updates.iter().zip(targets) {
            let element = data.data.get_mut(target)?;
            *element = f(*element, update)?;
        }
        Some(data)
    }
    let result = match (Decoded::of(constant(node, 0)?)?, Decoded::of(constant(node, 2)?)?) {
        (Decoded::Ints(data), Decoded::Ints(updates)) if dtype != DType::Bool => {
            Decoded::Ints(run(data, &updates.data, targets, int_op(op)?)?)
        }
        (Decoded::Floats(data), Decoded::Floats(updates)) => {
            let f = float_op(op)?;
            Decoded::Floats(run(data, &updates.data, targets, |a, b| Some(rounded(dtype, f(a, b))))?)
        }
        _ => return None,
    };
    result.content(dtype)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{N, floats, ints, partial};
    use crate::infer::testing::Case;

    #[test]
    fn scatter_nd() {
        let data = || Case::new("ScatterND").constant(ints(&[4], &[1, 2, 3, 4]));
        data().constant(ints(&[2, 1], &[3, -4])).shape_input(&[9, 8]).folds_to(ints(&[4], &[8, 2, 3, 9]));
        let twice = data().constant(ints(&[2, 1], &[1, 1])).shape_input(&[9, 8]);
        twice.str("reduction", "add").folds_to(ints(&[4], &[1, 19, 3, 4]));
        let case = Case::new("ScatterND").constant(floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]));
        let case = case.constant(ints(&[1, 1], &[1])).constant(floats(&[1, 2], &[0.5, 9.0]));
        case.str("reduction", "min").folds_to(floats(&[2, 2], &[1.0, 2.0, 0.5, 4.0]));
        data().constant(ints(&[1, 1], &[4])).shape_input(&[9]).folds_to_nothing("int64[*]");
        data().constant(ints(&[1, 2], &[0, 0])).shape_input(&[9]).folds_to_nothing("int64[*]");
        data().constant(ints(&[2, 1], &[0, 1])).shape_input(&[9]).folds_to_nothing("int64[*]");
        let shape = Case::new("ScatterND").value(partial(&[N, 3.into()])).constant(ints(&[1, 1], &[1]));
        shape.shape_input(&[7]).folds_to_partial("int64[2]", &[N, 7.into()]);
    }

    #[test]
    fn scatter_elements() {
        let data = || Case::new("ScatterElements").constant(ints(&[2, 3], &[1, 2, 3, 4, 5, 6]));
        let case = data().constant(ints(&[1, 2], &[1, 0])).constant(ints(&[1, 2], &[8, 9]));
        case.folds_to(ints(&[2, 3], &[1, 9, 3, 8, 5, 6]));
        let case = data().constant(ints(&[2, 1], &[-1, 0])).constant(ints(&[2, 1], &[8, 9])).int("axis", 1);
        case.str("reduction", "mul").folds_to(ints(&[2, 3], &[1, 2, 24, 36, 5, 6]));
        let case = data().constant(ints(&[1, 1], &[2])).constant(ints(&[1, 1], &[8]));
        case.folds_to_nothing("int64[*]");
        let case = data().constant(ints(&[1, 1], &[0])).constant(ints(&[1, 2], &[8, 8]));
        case.folds_to_nothing("int64[*]");
    }
}
