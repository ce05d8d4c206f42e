//! Operators that extract rectangular regions of tensors or insert them into larger ones.

use super::{
    array::{axes, int, ints, optional_ints},
    bounded,
    source::{Source, assemble},
    walk::{StridedOffsets, strides},
};
use crate::{
    Node, Tensor,
    node::{KnownElements, normalize_axis},
    tensor::count_of,
};

pub(super) fn slice(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let (starts, ends) = (ints(node, 1)?, ints(node, 2)?);
    let axes = match optional_ints(node, 3)? {
        Some(named) => axes(&named, data.rank())?,
        None if starts.len() <= data.rank() => (0..starts.len()).collect(),
        None => return None,
    };
    let steps = optional_ints(node, 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return None;
    }
    let mut dims = data.dims.to_vec();
    let mut strides = strides(&data.dims);
    let mut offset = 0isize;
    for (i, &axis) in axes.iter().enumerate() {
        let (start, count) = selection(dims[axis], starts[i], ends[i], steps[i])?;
        dims[axis] = count;
        offset = offset.wrapping_add(strides[axis].wrapping_mul(start as isize));
        strides[axis] = strides[axis].wrapping_mul(steps[i] as isize);
    }
    let walk = StridedOffsets::new(&dims, &strides, offset)?;
    data.take(dims, walk)
}

/// Returns the first index and the number of indices of a slice along one axis.
fn selection(size: i64, start: i64, end: i64, step: i64) -> Option<(i64, i64)> {
    let (size, step) = (i128::from(size), i128::from(step));
    let from_end = |index: i64| i128::from(index) + if index < 0 { size } else { 0 };
    let (start, end) = match step {
        0 => return None,
        1.. => (from_end(start).clamp(0, size), from_end(end).clamp(0, size)),
        // An empty axis has no last index to start from.
        _ if size == 0 => (0, 0),
        _ => (from_end(start).clamp(0, size - 1), from_end(end).clamp(-1, size - 1)),
    };
    let distance = (end - start) * step.signum();
    let count = if distance > 0 { (distance + step.abs() - 1) / step.abs() } else { 0 };
    Some((i64::try_from(start).ok()?, i64::try_from(count).ok()?))
}

/// Evaluates a `Split` with `results` results.
pub(super) fn split(node: &Node<'_>, results: usize) -> Option<Vec<Option<KnownElements>>> {
    let data = Source::of(node, 0)?;
    let axis = normalize_axis(node.int_or("axis", 0).ok()?, data.rank()).ok()?;
    let sizes = match optional_ints(node, 1)? {
        Some(sizes) => sizes,
        None => equal_parts(data.dims[axis], results)?,
    };
    let total = sizes.iter().try_fold(0i64, |sum, &size| if size < 0 { None } else { sum.checked_add(size) });
    if sizes.len() != results || total != Some(data.dims[axis]) {
        return None;
    }
    let strides = strides(&data.dims);
    let mut start = 0i64;
    let parts = sizes.iter().map(|&size| {
        let offset = strides[axis].wrapping_mul(start as isize);
        start += size;
        let mut dims = data.dims.to_vec();
        dims[axis] = size;
        let walk = StridedOffsets::new(&dims, &strides, offset)?;
        data.take(dims, walk)
    });
    Some(parts.collect())
}

/// Returns the sizes of equal parts; the last may be smaller.
fn equal_parts(size: i64, parts: usize) -> Option<Vec<i64>> {
    let count = i64::try_from(parts).ok().filter(|&parts| parts > 0)?;
    let part = size / count + i64::from(size % count != 0);
    let last = size - part.checked_mul(count - 1)?;
    (last >= 0).then(|| {
        let mut sizes = vec![part; parts];
        sizes[parts - 1] = last;
        sizes
    })
}

/// Returns a zero scalar of a tensor's type. Zero is all zero bits in every type.
fn zero(like: &Source<'_>) -> Option<Tensor> {
    let bytes = vec![0u8; like.dtype.byte_len(1)? as usize];
    Tensor::new(like.dtype, vec![], bytes.into())
}

pub(super) fn pad(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    if node.str_or("mode", "constant").ok()? != "constant" {
        return None;
    }
    let pads = ints(node, 1)?;
    let axes = match optional_ints(node, 3)? {
        Some(named) => axes(&named, data.rank())?,
        None => (0..data.rank()).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return None;
    }
    let zero = zero(&data)?;
    let fill = match node.optional(2) {
        Some(_) => Source::of(node, 2)?,
        None => Source::constant(&zero),
    };
    if count_of(&fill.dims)? != 1 {
        return None;
    }
    // The region of the data that is kept (negative pads remove elements), and its start in the data and in the result.
    let mut dims = data.dims.to_vec();
    let mut kept = data.dims.to_vec();
    let mut from = vec![0i64; data.rank()];
    let mut to = vec![0i64; data.rank()];
    for (i, &axis) in axes.iter().enumerate() {
        let (before, after) = (pads[i], pads[axes.len() + i]);
        dims[axis] = dims[axis].checked_add(before)?.checked_add(after)?;
        kept[axis] = kept[axis].checked_add(before.min(0))?.checked_add(after.min(0))?;
        from[axis] = before.min(0).checked_neg()?;
        to[axis] = before.max(0);
    }
    let mut picks = vec![(1, 0); bounded(&dims)?];
    for (target, source) in region(&dims, &kept, &to)?.zip(region(&data.dims, &kept, &from)?) {
        *picks.get_mut(target)? = (0, source);
    }
    assemble(&[data, fill], dims, picks.into_iter())
}

/// Returns the offsets of the region of shape `part` that starts at `start` in a tensor of shape `dims`.
fn region(dims: &[i64], part: &[i64], start: &[i64]) -> Option<StridedOffsets> {
    let strides = strides(dims);
    let offsets = strides.iter().zip(start).map(|(stride, &start)| stride.wrapping_mul(start as isize));
    let offset = offsets.fold(0isize, isize::wrapping_add);
    StridedOffsets::new(part, &strides, offset)
}

pub(super) fn trilu(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let &[.., rows, columns] = &data.dims[..] else { return None };
    let diagonal = if node.optional(1).is_some() { int(node, 1)? } else { 0 };
    let upper = node.flag("upper", true).ok()?;
    let dims = data.dims.to_vec();
    let picks = (0..bounded(&dims)?).map(|i| {
        let (row, column) = (i as i64 / columns % rows, i as i64 % columns);
        let kept = if upper { column - row >= diagonal } else { column - row <= diagonal };
        if kept { (0, i) } else { (1, 0) }
    });
    let zero = zero(&data)?;
    assemble(&[data, Source::constant(&zero)], dims, picks)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{N, S, floats, ints, partial};
    use crate::{
        DType, Tensor,
        infer::testing::{Case, parse},
        node::KnownElements,
    };

    fn sliced(values: &[i64], start: i64, end: i64, step: i64) -> Case {
        let case = Case::new("Slice").constant(ints(&[values.len() as i64], values));
        case.shape_input(&[start]).shape_input(&[end]).shape_input(&[0]).shape_input(&[step])
    }

    #[test]
    fn slice_clamps() {
        let v = &[0, 1, 2, 3, 4];
        sliced(v, 1, i64::MAX, 2).folds_to(ints(&[2], &[1, 3]));
        sliced(v, -2, 100, 1).folds_to(ints(&[2], &[3, 4]));
        sliced(v, i64::MIN, -1, 1).folds_to(ints(&[4], &[0, 1, 2, 3]));
        sliced(v, 100, i64::MIN, -1).folds_to(ints(&[5], &[4, 3, 2, 1, 0]));
        sliced(v, -1, 0, -2).folds_to(ints(&[2], &[4, 2]));
        sliced(v, 4, 1, 1).folds_to(ints(&[0], &[]));
        sliced(v, 0, 5, i64::MAX).folds_to(ints(&[1], &[0]));
        sliced(v, 4, i64::MIN, i64::MIN).folds_to(ints(&[1], &[4]));
        sliced(&[], 0, i64::MIN, -1).folds_to(ints(&[0], &[]));
        sliced(v, 0, 5, 0).folds_to_nothing("int64[*]");
    }

    #[test]
    fn slice_of_several_axes() {
        let data = ints(&[2, 3], &[1, 2, 3, 4, 5, 6]);
        let case = Case::new("Slice").constant(data.clone()).shape_input(&[1, 0]).shape_input(&[2, 2]);
        case.folds_to(ints(&[1, 2], &[4, 5]));
        let case = Case::new("Slice").constant(data.clone()).shape_input(&[2]).shape_input(&[-9]).shape_input(&[-1]);
        case.shape_input(&[-1]).folds_to(ints(&[2, 3], &[3, 2, 1, 6, 5, 4]));
        let case = Case::new("Slice").constant(data).shape_input(&[0]).shape_input(&[1]).shape_input(&[2]);
        case.folds_to_nothing("int64[*]");
    }

    #[test]
    fn slice_of_a_shape_and_of_a_large_constant() {
        let case = Case::new("Slice").value(partial(&[N, 3.into(), S])).shape_input(&[1]).shape_input(&[9]);
        case.folds_to_partial("int64[2]", &[3.into(), S]);
        let case = Case::new("Slice").value(partial(&[N, 3.into(), S])).shape_input(&[1]).shape_input(&[2]);
        case.folds_to(ints(&[1], &[3]));
        let large = Tensor::new(DType::U8, vec![1 << 20], vec![7; 1 << 20].into()).unwrap();
        let case = Case::new("Slice").constant(large).shape_input(&[-1]).shape_input(&[i64::MAX]);
        case.folds_to(Tensor::new(DType::U8, vec![1], vec![7].into()).unwrap());
    }

    #[test]
    fn split() {
        let ty = || parse("int64[*]");
        let constant = |dims: &[i64], values: &[i64]| Some(KnownElements::Constant(ints(dims, values)));
        let data = || Case::new("Split").constant(ints(&[2, 3], &[1, 2, 3, 4, 5, 6])).int("axis", 1);
        let parts = data().shape_input(&[1, 2]).all_folded_as(&[ty(), ty()]);
        assert_eq!(parts, [constant(&[2, 1], &[1, 4]), constant(&[2, 2], &[2, 3, 5, 6])]);
        let parts = data().int("num_outputs", 2).all_folded_as(&[ty(), ty()]);
        assert_eq!(parts, [constant(&[2, 2], &[1, 2, 4, 5]), constant(&[2, 1], &[3, 6])]);
        assert!(data().shape_input(&[1, 1]).all_folded_as(&[ty(), ty()]).is_empty());
        assert!(data().shape_input(&[-1, 4]).all_folded_as(&[ty(), ty()]).is_empty());
        assert!(data().shape_input(&[i64::MAX, i64::MAX]).all_folded_as(&[ty(), ty()]).is_empty());
        assert!(data().shape_input(&[]).all_folded_as(&[]).is_empty());
        let shape = Case::new("Split").value(partial(&[N, 4.into()])).int("num_outputs", 2);
        let parts = shape.all_folded_as(&[parse("int64[1]"), parse("int64[1]")]);
        assert_eq!(parts, [Some(KnownElements::Partial(vec![N])), constant(&[1], &[4])]);
    }

    #[test]
    fn pad() {
        let data = || Case::new("Pad").constant(ints(&[2, 2], &[1, 2, 3, 4]));
        data().shape_input(&[0, 1, 1, 0]).folds_to(ints(&[3, 3], &[0, 1, 2, 0, 3, 4, 0, 0, 0]));
        data().shape_input(&[0, -1, 0, 1]).constant(ints(&[], &[9])).folds_to(ints(&[2, 2], &[2, 9, 4, 9]));
        let one_axis = data().shape_input(&[1, 0]).none().shape_input(&[-1]);
        one_axis.folds_to(ints(&[2, 3], &[0, 1, 2, 0, 3, 4]));
        data().shape_input(&[0, -2, 0, -1]).folds_to_nothing("int64[*]");
        data().shape_input(&[0, -3, 0, 3]).folds_to_nothing("int64[*]");
        data().shape_input(&[0, i64::MIN, 0, i64::MAX]).folds_to_nothing("int64[*]");
        data().shape_input(&[0, 1 << 62, 0, 0]).folds_to_nothing("int64[*]");
        data().shape_input(&[0, 1, 1, 0]).str("mode", "edge").folds_to_nothing("int64[*]");
        data().shape_input(&[0, 1]).folds_to_nothing("int64[*]");
        let case = Case::new("Pad").constant(floats(&[0], &[])).shape_input(&[1, 1]);
        case.folds_to(floats(&[2], &[0.0, 0.0]));
    }

    #[test]
    fn trilu() {
        let data = || Case::new("Trilu").constant(floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        data().folds_to(floats(&[2, 3], &[1.0, 2.0, 3.0, 0.0, 5.0, 6.0]));
        data().constant(ints(&[], &[1])).folds_to(floats(&[2, 3], &[0.0, 2.0, 3.0, 0.0, 0.0, 6.0]));
        data().constant(ints(&[], &[i64::MIN])).int("upper", 0).folds_to(floats(&[2, 3], &[0.0; 6]));
        Case::new("Trilu").constant(floats(&[1], &[1.0])).folds_to_nothing("float[*]");
        Case::new("Trilu").constant(floats(&[2, 0], &[])).folds_to(floats(&[2, 0], &[]));
    }
}
