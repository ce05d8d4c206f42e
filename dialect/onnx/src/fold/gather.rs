//! Operators that select elements by index.

use super::{
    array::{index, int_array},
    bounded,
    source::Source,
    walk::{StridedOffsets, strides},
};
use crate::{
    Node,
    node::{KnownElements, normalize_axis},
};

pub(super) fn gather(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let indices = int_array(node, 1)?;
    let axis = normalize_axis(node.int_or("axis", 0).ok()?, data.rank()).ok()?;
    let (outer, inner) = (&data.dims[..axis], &data.dims[axis + 1..]);
    let dims = [outer, &indices.dims[..], inner].concat();
    if bounded(&dims)? == 0 {
        return data.take(dims, std::iter::empty());
    }
    let chosen = indices.data.iter().map(|&i| index(i, data.dims[axis]).map(|i| i as usize));
    let chosen: Vec<_> = chosen.collect::<Option<_>>()?;
    let chosen = &chosen;
    // No dimension is zero, so these products divide the number of elements of the result or of the data: no overflow.
    let inner: usize = inner.iter().product::<i64>() as usize;
    let block = data.dims[axis] as usize * inner;
    let outer: usize = outer.iter().product::<i64>() as usize;
    let picks =
        (0..outer).flat_map(|o| chosen.iter().flat_map(move |i| (0..inner).map(move |e| o * block + i * inner + e)));
    data.take(dims, picks)
}

pub(super) fn gather_elements(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let indices = int_array(node, 1)?;
    let axis = normalize_axis(node.int_or("axis", 0).ok()?, data.rank()).ok()?;
    let picks = element_offsets(&data.dims, &indices.dims, &indices.data, axis)?;
    data.take(indices.dims, picks.into_iter())
}

/// Returns the offset of each of `indices`, which replaces the coordinate along `axis` by its value.
pub(super) fn element_offsets(dims: &[i64], shape: &[i64], indices: &[i64], axis: usize) -> Option<Vec<usize>> {
    let fits = shape.len() == dims.len() && (0..dims.len()).all(|i| i == axis || shape[i] <= dims[i]);
    if !fits {
        return None;
    }
    let mut steps = strides(dims);
    let stride = std::mem::replace(&mut steps[axis], 0) as usize;
    let offsets = StridedOffsets::new(shape, &steps, 0)?.zip(indices);
    offsets.map(|(offset, &i)| Some(offset.wrapping_add(stride.wrapping_mul(index(i, dims[axis])? as usize)))).collect()
}

pub(super) fn gather_nd(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let indices = int_array(node, 1)?;
    let batch = usize::try_from(node.int_or("batch_dims", 0).ok()?).ok()?;
    let (&tuple, rows) = indices.dims.split_last()?;
    let tuple = usize::try_from(tuple).ok()?;
    let inner = data.dims.get(batch.checked_add(tuple)?..)?;
    if rows.get(..batch)? != data.dims.get(..batch)? {
        return None;
    }
    let dims = [rows, inner].concat();
    if bounded(&dims)? == 0 {
        return data.take(dims, std::iter::empty());
    }
    let inner = inner.iter().product::<i64>() as usize;
    let rows_per_batch = rows[batch..].iter().product::<i64>() as usize;
    let rows = rows.iter().product::<i64>() as usize;
    let strides = strides(&data.dims);
    let batch_stride = data.dims[batch..].iter().try_fold(1usize, |n, &dim| n.checked_mul(dim as usize))?;
    let offsets = (0..rows).map(|row| {
        let coordinates = &indices.data[row * tuple..(row + 1) * tuple];
        let offset = tuple_offset(coordinates, &data.dims[batch..], &strides[batch..])?;
        Some(offset.wrapping_add(row / rows_per_batch * batch_stride))
    });
    let offsets: Vec<_> = offsets.collect::<Option<_>>()?;
    data.take(dims, offsets.into_iter().flat_map(|offset| (0..inner).map(move |e| offset.wrapping_add(e))))
}

/// Returns the offset of the element or block with these leading coordinates.
pub(super) fn tuple_offset(coordinates: &[i64], dims: &[i64], strides: &[isize]) -> Option<usize> {
    let mut offset = 0usize;
    for ((&i, &size), &stride) in coordinates.iter().zip(dims).zip(strides) {
        offset = offset.wrapping_add((stride as usize).wrapping_mul(index(i, size)? as usize));
    }
    Some(offset)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{N, floats, ints, partial, tensor};
    use crate::{DType, Dim, Tensor, infer::testing::Case};

    #[test]
    fn gather() {
        let data = || Case::new("Gather").constant(floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        data().shape_input(&[-1]).folds_to(floats(&[1, 3], &[4.0, 5.0, 6.0]));
        data().constant(ints(&[], &[0])).int("axis", 1).folds_to(floats(&[2], &[1.0, 4.0]));
        let case = data().constant(tensor(DType::I32, &[1, 2], &[2, 0])).int("axis", -1);
        case.folds_to(floats(&[2, 1, 2], &[3.0, 1.0, 6.0, 4.0]));
        data().shape_input(&[2]).folds_to_nothing("float[*]");
        data().shape_input(&[i64::MIN]).folds_to_nothing("float[*]");
        data().shape_input(&[]).folds_to(floats(&[0, 3], &[]));
        data().shape_input(&[0]).int("axis", 2).folds_to_nothing("float[*]");
    }

    #[test]
    fn gather_of_a_shape() {
        let shape = || Case::new("Gather").value(partial(&[N, 3.into(), Dim::Unknown]));
        shape().constant(ints(&[], &[0])).folds_to_partial("int64[]", &[N]);
        shape().constant(ints(&[], &[1])).folds_to(ints(&[], &[3]));
        shape().shape_input(&[1, -3]).folds_to_partial("int64[2]", &[3.into(), N]);
        shape().constant(ints(&[], &[2])).folds_to_nothing("int64[]");
        shape().constant(ints(&[], &[3])).folds_to_nothing("int64[]");
        let large = Tensor::new(DType::U8, vec![1 << 20, 2], vec![7; 1 << 21].into()).unwrap();
        let case = Case::new("Gather").constant(large).shape_input(&[-1]);
        case.folds_to(Tensor::new(DType::U8, vec![1, 2], vec![7, 7].into()).unwrap());
    }

    #[test]
    fn gather_elements() {
        let data = || Case::new("GatherElements").constant(ints(&[2, 2], &[1, 2, 3, 4]));
        data().constant(ints(&[2, 2], &[0, 0, -1, 0])).int("axis", 1).folds_to(ints(&[2, 2], &[1, 1, 4, 3]));
        data().constant(ints(&[1, 2], &[1, 0])).folds_to(ints(&[1, 2], &[3, 2]));
        data().constant(ints(&[1, 2], &[2, 0])).folds_to_nothing("int64[*]");
        data().constant(ints(&[2, 3], &[0; 6])).folds_to_nothing("int64[*]");
        data().shape_input(&[0]).folds_to_nothing("int64[*]");
    }

    #[test]
    fn gather_nd() {
        let data = || Case::new("GatherND").constant(ints(&[2, 2, 2], &[0, 1, 2, 3, 4, 5, 6, 7]));
        data().constant(ints(&[2, 1], &[1, 0])).folds_to(ints(&[2, 2, 2], &[4, 5, 6, 7, 0, 1, 2, 3]));
        data().constant(ints(&[1, 3], &[-1, 0, 1])).folds_to(ints(&[1], &[5]));
        data().constant(ints(&[2, 1], &[1, 0])).int("batch_dims", 1).folds_to(ints(&[2, 2], &[2, 3, 4, 5]));
        data().constant(ints(&[1, 4], &[0; 4])).folds_to_nothing("int64[*]");
        data().constant(ints(&[1, 1], &[2])).folds_to_nothing("int64[*]");
        data().constant(ints(&[2, 1], &[0; 2])).int("batch_dims", i64::MAX).folds_to_nothing("int64[*]");
        data().constant(ints(&[1, 0], &[])).folds_to(ints(&[1, 2, 2, 2], &[0, 1, 2, 3, 4, 5, 6, 7]));
        data().constant(ints(&[], &[0])).folds_to_nothing("int64[*]");
    }
}
