//! Operators that rearrange or repeat elements without selecting by index.

use super::{
    array::{axes, ints, optional_ints},
    bounded,
    source::{Source, assemble},
    walk::{StridedOffsets, broadcast, strides},
};
use crate::{
    Node,
    node::{KnownElements, normalize_axis},
    tensor::count_of,
};

pub(super) fn identity(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    data.reshaped(data.dims.to_vec())
}

pub(super) fn reshape(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let mut dims = ints(node, 1)?;
    let allow_zero = node.flag("allowzero", false).ok()?;
    let mut inferred = None;
    for (axis, dim) in dims.iter_mut().enumerate() {
        match *dim {
            0 if !allow_zero => *dim = *data.dims.get(axis)?,
            -1 if inferred.replace(axis).is_some() => return None,
            _ => {}
        }
    }
    if let Some(axis) = inferred {
        dims[axis] = 1;
        let count = bounded(&data.dims)? as u64;
        let others = count_of(&dims)?;
        if others == 0 || !count.is_multiple_of(others) {
            return None;
        }
        dims[axis] = (count / others) as i64;
    }
    data.reshaped(dims)
}

pub(super) fn flatten(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let axis = node.int_or("axis", 1).ok()?;
    let rank = data.rank();
    // The axis may equal the rank: it is a position between axes.
    let axis = if axis == rank as i64 { rank } else { normalize_axis(axis, rank).ok()? };
    let (outer, inner) = data.dims.split_at(axis);
    let dims = [outer, inner].map(|dims| i64::try_from(count_of(dims)?).ok());
    data.reshaped(vec![dims[0]?, dims[1]?])
}

pub(super) fn squeeze(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let Some(named) = optional_ints(node, 1)? else {
        return data.reshaped(data.dims.iter().copied().filter(|&dim| dim != 1).collect());
    };
    let axes = axes(&named, data.rank())?;
    if axes.iter().any(|&axis| data.dims[axis] != 1) {
        return None;
    }
    data.reshaped((0..data.rank()).filter(|axis| !axes.contains(axis)).map(|axis| data.dims[axis]).collect())
}

pub(super) fn unsqueeze(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let named = ints(node, 1)?;
    let rank = data.rank() + named.len();
    let axes = axes(&named, rank)?;
    let mut old = data.dims.iter();
    let dims = (0..rank).map(|axis| if axes.contains(&axis) { Some(1) } else { old.next().copied() });
    data.reshaped(dims.collect::<Option<_>>()?)
}

pub(super) fn transpose(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let perm = match node.ints("perm").ok()? {
        Some(perm) if perm.len() == data.rank() => axes(perm, data.rank())?,
        Some(_) => return None,
        None => (0..data.rank()).rev().collect(),
    };
    let steps = strides(&data.dims);
    let dims: Vec<_> = perm.iter().map(|&axis| data.dims[axis]).collect();
    let steps: Vec<_> = perm.iter().map(|&axis| steps[axis]).collect();
    let walk = StridedOffsets::new(&dims, &steps, 0)?;
    data.take(dims, walk)
}

pub(super) fn expand(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let dims = broadcast(&data.dims, &ints(node, 1)?)?;
    let walk = StridedOffsets::broadcast(&data.dims, &dims)?;
    data.take(dims, walk)
}

pub(super) fn tile(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let repeats = ints(node, 1)?;
    if repeats.len() != data.rank() || repeats.iter().any(|&times| times < 0) {
        return None;
    }
    let dims: Vec<_> =
        data.dims.iter().zip(&repeats).map(|(&dim, &times)| dim.checked_mul(times)).collect::<Option<_>>()?;
    // Each axis becomes two: repetitions, with stride 0, and elements.
    let split: Vec<_> = data.dims.iter().zip(&repeats).flat_map(|(&dim, &times)| [times, dim]).collect();
    let steps: Vec<_> = strides(&data.dims).into_iter().flat_map(|stride| [0, stride]).collect();
    let walk = StridedOffsets::new(&split, &steps, 0)?;
    data.take(dims, walk)
}

pub(super) fn concat(node: &Node<'_>) -> Option<KnownElements> {
    let values = node.inputs.iter().map(|value| Source::of_value_or_unknown((*value)?));
    let sources: Vec<_> = values.collect::<Option<_>>()?;
    let first = sources.first()?;
    let axis = normalize_axis(node.int("axis").ok()??, first.rank()).ok()?;
    let mut dims = first.dims.to_vec();
    for source in &sources[1..] {
        let fits = source.rank() == dims.len() && (0..dims.len()).all(|i| i == axis || source.dims[i] == dims[i]);
        if !fits {
            return None;
        }
        dims[axis] = dims[axis].checked_add(source.dims[axis])?;
    }
    if bounded(&dims)? == 0 {
        return assemble(&sources, dims, std::iter::empty());
    }
    let outer = count_of(&dims[..axis])? as usize;
    let inner = count_of(&dims[axis + 1..])? as usize;
    let chunks = sources.iter().map(|source| source.dims[axis] as usize * inner).enumerate();
    // Without empty operands the work is proportional to the size of the result.
    let chunks: Vec<_> = chunks.filter(|&(_, chunk)| chunk > 0).collect();
    let chunks = &chunks;
    let picks = (0..outer).flat_map(|o| {
        chunks.iter().flat_map(move |&(source, chunk)| (o * chunk..(o + 1) * chunk).map(move |i| (source, i)))
    });
    assemble(&sources, dims, picks)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{N, floats, ints, partial, scalar_partial};
    use crate::{DType, Dim, Tensor, infer::testing::Case};

    const M: &[i64] = &[1, 2, 3, 4, 5, 6];

    #[test]
    fn identity() {
        Case::new("Identity").value(partial(&[N, 3.into()])).folds_to_partial("int64[2]", &[N, 3.into()]);
        Case::new("Identity").constant(floats(&[2], &[0.5, 1.0])).folds_to(floats(&[2], &[0.5, 1.0]));
        let big = Tensor::new(DType::I8, vec![65_537], vec![0; 65_537].into()).unwrap();
        Case::new("Identity").constant(big).folds_to_nothing("int8[65537]");
    }

    #[test]
    fn reshape() {
        let data = || Case::new("Reshape").constant(ints(&[2, 3], M));
        data().shape_input(&[3, -1]).folds_to(ints(&[3, 2], M));
        data().shape_input(&[0, 1, -1]).folds_to(ints(&[2, 1, 3], M));
        data().shape_input(&[-1, -1]).folds_to_nothing("int64[*]");
        data().shape_input(&[4, -1]).folds_to_nothing("int64[*]");
        data().shape_input(&[i64::MIN, i64::MAX]).folds_to_nothing("int64[*]");
        data().shape_input(&[1, 1, 0]).folds_to_nothing("int64[*]");
        let empty = ints(&[0, 4], &[]);
        Case::new("Reshape").constant(empty.clone()).shape_input(&[0, -1]).folds_to_nothing("int64[*]");
        Case::new("Reshape").constant(empty).shape_input(&[5, 0]).int("allowzero", 1).folds_to(ints(&[5, 0], &[]));
        Case::new("Reshape").value(scalar_partial(N)).shape_input(&[-1]).folds_to_partial("int64[1]", &[N]);
        Case::new("Reshape").value(partial(&[N])).shape_input(&[]).folds_to_partial("int64[]", &[N]);
        Case::new("Reshape").value(partial(&[N, N])).shape_input(&[1, 2]).folds_to_nothing("int64[1x2]");
    }

    #[test]
    fn flatten() {
        Case::new("Flatten").constant(ints(&[1, 2, 3], M)).int("axis", -1).folds_to(ints(&[2, 3], M));
        Case::new("Flatten").constant(ints(&[2, 3], M)).int("axis", 2).folds_to(ints(&[6, 1], M));
        Case::new("Flatten").constant(ints(&[2, 3], M)).int("axis", 3).folds_to_nothing("int64[*]");
    }

    #[test]
    fn squeeze_and_unsqueeze() {
        Case::new("Squeeze").constant(ints(&[1, 6, 1], M)).folds_to(ints(&[6], M));
        Case::new("Squeeze").constant(ints(&[1, 6, 1], M)).shape_input(&[-1]).folds_to(ints(&[1, 6], M));
        Case::new("Squeeze").constant(ints(&[1, 6], M)).shape_input(&[1]).folds_to_nothing("int64[*]");
        Case::new("Squeeze").value(partial(&[N])).shape_input(&[0]).folds_to_partial("int64[]", &[N]);
        Case::new("Squeeze").constant(ints(&[1], &[3])).input("int64[1]").folds_to_nothing("int64[*]");
        Case::new("Unsqueeze").constant(ints(&[6], M)).shape_input(&[0, -1]).folds_to(ints(&[1, 6, 1], M));
        Case::new("Unsqueeze").constant(ints(&[6], M)).shape_input(&[3]).folds_to_nothing("int64[*]");
        Case::new("Unsqueeze").constant(ints(&[6], M)).shape_input(&[0, 0]).folds_to_nothing("int64[*]");
        Case::new("Unsqueeze").value(scalar_partial(N)).shape_input(&[0]).folds_to_partial("int64[1]", &[N]);
    }

    #[test]
    fn transpose() {
        Case::new("Transpose").constant(ints(&[2, 3], M)).folds_to(ints(&[3, 2], &[1, 4, 2, 5, 3, 6]));
        let data = || Case::new("Transpose").constant(ints(&[2, 1, 3], M));
        data().ints("perm", &[1, 0, 2]).folds_to(ints(&[1, 2, 3], M));
        data().ints("perm", &[0, 0, 2]).folds_to_nothing("int64[*]");
        data().ints("perm", &[0, 1]).folds_to_nothing("int64[*]");
        let nibbles = |dims: &[i64], values: &[i64]| Tensor::from_ints(DType::I4, dims.to_vec(), values).unwrap();
        let transposed = nibbles(&[3, 1], &[-8, 7, -1]);
        Case::new("Transpose").constant(nibbles(&[1, 3], &[-8, 7, -1])).folds_to(transposed);
    }

    #[test]
    fn expand() {
        Case::new("Expand")
            .constant(ints(&[2, 1], &[1, 2]))
            .shape_input(&[1, 3])
            .folds_to(ints(&[2, 3], &[1, 1, 1, 2, 2, 2]));
        Case::new("Expand").constant(ints(&[2], &[1, 2])).shape_input(&[3]).folds_to_nothing("int64[*]");
        Case::new("Expand").constant(ints(&[], &[1])).shape_input(&[1 << 40]).folds_to_nothing("int64[*]");
        Case::new("Expand").constant(ints(&[], &[1])).shape_input(&[-1]).folds_to_nothing("int64[*]");
        Case::new("Expand").value(scalar_partial(N)).shape_input(&[2]).folds_to_partial("int64[2]", &[N, N]);
    }

    #[test]
    fn tile() {
        Case::new("Tile")
            .constant(ints(&[1, 2], &[1, 2]))
            .shape_input(&[2, 2])
            .folds_to(ints(&[2, 4], &[1, 2, 1, 2, 1, 2, 1, 2]));
        Case::new("Tile").constant(ints(&[2], &[1, 2])).shape_input(&[0]).folds_to(ints(&[0], &[]));
        Case::new("Tile").constant(ints(&[2], &[1, 2])).shape_input(&[1 << 62]).folds_to_nothing("int64[*]");
        Case::new("Tile").constant(ints(&[2], &[1, 2])).shape_input(&[-1]).folds_to_nothing("int64[*]");
        let data = partial(&[N, 2.into()]);
        Case::new("Tile").value(data).shape_input(&[2]).folds_to_partial("int64[4]", &[N, 2.into(), N, 2.into()]);
    }

    #[test]
    fn concat() {
        let case = Case::new("Concat").constant(ints(&[2, 1], &[1, 4])).constant(ints(&[2, 2], &[2, 3, 5, 6]));
        case.int("axis", -1).folds_to(ints(&[2, 3], M));
        let case = Case::new("Concat").value(partial(&[N])).constant(ints(&[0], &[])).shape_input(&[3]);
        case.int("axis", 0).folds_to_partial("int64[2]", &[N, 3.into()]);
        let case = Case::new("Concat").input("int64[1]").shape_input(&[3]).int("axis", 0);
        case.folds_to_partial("int64[2]", &[Dim::Unknown, 3.into()]);
        let case = Case::new("Concat").input("float[1]").constant(floats(&[1], &[3.0])).int("axis", 0);
        case.folds_to_nothing("float[2]");
        let case = Case::new("Concat").constant(ints(&[1], &[1])).constant(floats(&[1], &[3.0])).int("axis", 0);
        case.folds_to_nothing("int64[2]");
        Case::new("Concat").constant(ints(&[1], &[1])).folds_to_nothing("int64[*]");
    }
}
