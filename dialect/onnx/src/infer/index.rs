//! Operators that gather, scatter or compute indices.

use super::{Types, single_result};
use crate::node::{Node, normalize_axis};
use crate::shape::{format_shape, product};
use crate::{DType, Dim, Error, Shape, TensorType, Value};

/// Returns an operand of indices, which must be signed integers of 32 or 64 bits.
fn indices<'a>(node: &Node<'a>, index: usize) -> Result<&'a Value, Error> {
    let value = node.input(index)?;
    match value.ty.dtype {
        DType::I32 | DType::I64 => Ok(value),
        other => Err(Error::new(format!("indices must be int32 or int64, operand {index} is {other}: insert a Cast"))),
    }
}

/// Returns the only element of an integer operand, which may be unknown.
fn single(node: &Node<'_>, index: usize) -> Result<Dim, Error> {
    match node.input(index)?.dims().as_deref() {
        None => Ok(Dim::Unknown),
        Some(&[element]) => Ok(element),
        Some(elements) => Err(Error::new(format!("operand {index} must have one element, has {}", elements.len()))),
    }
}

pub(super) fn gather(node: &Node<'_>) -> Types {
    let indices = indices(node, 1)?;
    let axis = node.int_or("axis", 0)?;
    let mut result = None;
    if let Some(data) = node.shape(0)? {
        let axis = normalize_axis(axis, data.len())?;
        if let Some(indices) = &indices.ty.shape {
            result = Some([&data[..axis], indices, &data[axis + 1..]].concat());
        }
    }
    single_result(TensorType::new(node.dtype(0)?, result))
}

/// Returns the common rank of data and indices, if it is known, and checks the axis against it.
fn shared_rank(node: &Node<'_>) -> Result<Option<usize>, Error> {
    let (data, indices) = (node.input(0)?, indices(node, 1)?);
    let rank = match (data.ty.rank(), indices.ty.rank()) {
        (Some(a), Some(b)) if a != b => {
            return Err(Error::new(format!("data and indices must have one rank, are {} and {}", data.ty, indices.ty)));
        }
        (a, b) => a.or(b),
    };
    let axis = node.int_or("axis", 0)?;
    rank.map(|rank| normalize_axis(axis, rank).map(|_| rank)).transpose()
}

pub(super) fn gather_elements(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    single_result(match (shared_rank(node)?, node.shape(1)?) {
        (_, Some(shape)) => TensorType::new(dtype, shape.to_vec()),
        (Some(rank), None) => TensorType::of_rank(dtype, rank),
        (None, None) => TensorType::unranked(dtype),
    })
}

/// Returns the length of the index tuples, the last dimension of `indices`; it must be at most `most`.
fn tuple_len(indices: &[Dim], most: usize) -> Result<Option<usize>, Error> {
    let Some(last) = indices.last() else {
        return Err(Error::new("indices must have rank 1 or more, these are a scalar"));
    };
    let Some(len) = last.known() else {
        return Ok(None);
    };
    match usize::try_from(len) {
        Ok(len) if len <= most => Ok(Some(len)),
        _ => {
            Err(Error::new(format!("indices {} address {len} dimensions, the data has {most}", format_shape(indices))))
        }
    }
}

pub(super) fn gather_nd(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    let batch = node.int_or("batch_dims", 0)?;
    let (Some(data), Some(indices)) = (node.shape(0)?, indices(node, 1)?.ty.shape.as_deref()) else {
        return single_result(TensorType::unranked(dtype));
    };
    let batch = match usize::try_from(batch) {
        Ok(batch) if batch < data.len().min(indices.len()) => batch,
        _ => {
            let (data, indices) = (data.len(), indices.len());
            return Err(Error::new(format!(
                "attribute 'batch_dims' is {batch}, must be below the ranks of data ({data}) and indices ({indices})"
            )));
        }
    };
    let Some(len) = tuple_len(indices, data.len() - batch)? else {
        return single_result(TensorType::unranked(dtype));
    };
    let mut result = Shape::new();
    for (i, &dim) in indices[..indices.len() - 1].iter().enumerate() {
        let dim = if i < batch { dim.unify(data[i]) } else { Some(dim) };
        result.push(dim.ok_or_else(|| {
            Error::new(format!(
                "data {} and indices {} differ in batch dimension {i}",
                format_shape(data),
                format_shape(indices)
            ))
        })?);
    }
    result.extend_from_slice(&data[batch + len..]);
    single_result(TensorType::new(dtype, result))
}

/// Checks the operands of a scatter operator: updates have the data's element type, and the reduction is valid.
fn check_updates<'a>(node: &Node<'a>) -> Result<&'a Value, Error> {
    let (dtype, updates) = (node.dtype(0)?, node.input(2)?);
    if updates.ty.dtype != dtype {
        return Err(Error::new(format!("updates are {}, the data is {dtype}: insert a Cast", updates.ty.dtype)));
    }
    let reduction = node.str_or("reduction", "none")?;
    if !["none", "add", "mul", "max", "min"].contains(&reduction) {
        return Err(Error::new(format!("attribute 'reduction' is '{reduction}', must be none, add, mul, max or min")));
    }
    Ok(updates)
}

pub(super) fn scatter_elements(node: &Node<'_>) -> Types {
    let updates = check_updates(node)?;
    let rank = shared_rank(node)?;
    let indices = node.shape(1)?;
    let agree = match (indices, &updates.ty.shape) {
        (Some(indices), Some(updates)) => fits(indices, updates),
        (None, Some(updates)) => rank.is_none_or(|rank| rank == updates.len()),
        (_, None) => true,
    };
    if !agree {
        return Err(Error::new(format!(
            "updates {} must have the shape of the indices {}",
            updates.ty,
            node.input(1)?.ty
        )));
    }
    single_result(scattered(node, rank)?)
}

/// Returns the data's type, with the given rank if the data's own is unknown.
fn scattered(node: &Node<'_>, rank: Option<usize>) -> Result<TensorType, Error> {
    let data = &node.input(0)?.ty;
    Ok(match (&data.shape, rank) {
        (None, Some(rank)) => TensorType::of_rank(data.dtype, rank),
        _ => data.clone(),
    })
}

fn fits(a: &[Dim], b: &[Dim]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| a.unify(b).is_some())
}

pub(super) fn scatter_nd(node: &Node<'_>) -> Types {
    let updates = check_updates(node)?;
    let indices = indices(node, 1)?.ty.shape.as_deref();
    if let Some([]) = node.shape(0)? {
        return Err(Error::new("data must have rank 1 or more, is a scalar"));
    }
    if let (Some(data), Some(indices)) = (node.shape(0)?, indices)
        && let Some(len) = tuple_len(indices, data.len())?
        && let Some(shape) = &updates.ty.shape
    {
        let expected = [&indices[..indices.len() - 1], &data[len..]].concat();
        if !fits(&expected, shape) {
            return Err(Error::new(format!(
                "updates must be {}, are {}",
                format_shape(&expected),
                format_shape(shape)
            )));
        }
    }
    single_result(scattered(node, None)?)
}

pub(super) fn one_hot(node: &Node<'_>) -> Types {
    let (dtype, axis) = (node.dtype(2)?, node.int_or("axis", -1)?);
    if let Some(&[Dim::Known(len)]) = node.shape_of_rank(2, 1)?
        && len != 2
    {
        return Err(Error::new(format!("operand 2 must contain the off and the on value, has {len} elements")));
    }
    // The depth may be a floating-point number; the result of a fractional one depends on the runtime.
    let depth = match node.floats_of(1).as_deref() {
        Some(&[depth]) if depth.fract() == 0.0 && depth.abs() < 9e15 => Dim::Known(depth as i64),
        Some(&[_]) => Dim::Unknown,
        _ => single(node, 1)?,
    };
    if let Dim::Known(depth @ ..0) = depth {
        return Err(Error::new(format!("the depth is {depth}, which cannot be negative")));
    }
    let Some(indices) = node.shape(0)? else {
        return single_result(TensorType::unranked(dtype));
    };
    let mut result = indices.to_vec();
    result.insert(normalize_axis(axis, indices.len() + 1)?, depth);
    single_result(TensorType::new(dtype, result))
}

pub(super) fn top_k(node: &Node<'_>) -> Types {
    let k = single(node, 1)?;
    if let Dim::Known(k @ ..0) = k {
        return Err(Error::new(format!("k is {k}, which cannot be negative")));
    }
    let axis = node.int_or("axis", -1)?;
    let mut shape = node.input(0)?.ty.shape.clone();
    if let Some(shape) = &mut shape {
        let axis = normalize_axis(axis, shape.len())?;
        match (k, shape[axis]) {
            (Dim::Known(k), Dim::Known(size)) if k > size => {
                return Err(Error::new(format!("k is {k}, dimension {axis} has only {size} elements")));
            }
            _ => shape[axis] = k,
        }
    }
    Ok(vec![TensorType::new(node.dtype(0)?, shape.clone()), TensorType::new(DType::I64, shape)])
}

pub(super) fn arg_extremum(node: &Node<'_>) -> Types {
    let axis = node.int_or("axis", 0)?;
    let keep = node.flag("keepdims", true)?;
    let mut shape = node.input(0)?.ty.shape.clone();
    if let Some(shape) = &mut shape {
        let axis = normalize_axis(axis, shape.len())?;
        if keep {
            shape[axis] = Dim::Known(1);
        } else {
            shape.remove(axis);
        }
    }
    single_result(TensorType::new(DType::I64, shape))
}

/// Infers `NonZero`: one column per nonzero element, whose number is known only for a constant.
pub(super) fn non_zero(node: &Node<'_>) -> Types {
    let value = node.input(0)?;
    let tensor = value.tensor();
    let ints = tensor.and_then(|tensor| Some(tensor.ints()?.iter().filter(|&&v| v != 0).count()));
    let count = ints.or_else(|| Some(tensor?.floats()?.iter().filter(|&&v| v != 0.0).count()));
    let count = count.map_or(Dim::Unknown, |count| Dim::Known(count as i64));
    let rank = value.ty.rank().map_or(Dim::Unknown, |rank| Dim::Known(rank as i64));
    single_result(TensorType::new(DType::I64, vec![rank, count]))
}

pub(super) fn unique(node: &Node<'_>) -> Types {
    let data = &node.input(0)?.ty;
    let (values, inverse) = match (node.int("axis")?, &data.shape) {
        (None, shape) => (Some(vec![Dim::Unknown]), shape.as_deref().map_or(Dim::Unknown, product)),
        (Some(_), None) => (None, Dim::Unknown),
        (Some(axis), Some(shape)) => {
            let axis = normalize_axis(axis, shape.len())?;
            let mut values = shape.clone();
            values[axis] = Dim::Unknown;
            (Some(values), shape[axis])
        }
    };
    let list = |len| TensorType::new(DType::I64, vec![len]);
    Ok(vec![TensorType::new(data.dtype, values), list(Dim::Unknown), list(inverse), list(Dim::Unknown)])
}

pub(super) fn non_max_suppression(node: &Node<'_>) -> Types {
    let (boxes, scores) = (node.shape_of_rank(0, 3)?, node.shape_of_rank(1, 3)?);
    if let Some(&[.., Dim::Known(corners)]) = boxes
        && corners != 4
    {
        return Err(Error::new(format!("a box has 4 coordinates, operand 0 has {corners}")));
    }
    if let (Some(&[n, count, _]), Some(&[m, _, scored])) = (boxes, scores)
        && (n.unify(m).is_none() || count.unify(scored).is_none())
    {
        let (boxes, scores) = (&node.input(0)?.ty, &node.input(1)?.ty);
        return Err(Error::new(format!("boxes {boxes} and scores {scores} differ in batch or number of boxes")));
    }
    single_result(TensorType::new(DType::I64, vec![Dim::Unknown, Dim::Known(3)]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;
    use crate::{DType, Tensor};

    #[test]
    fn gather_replaces_the_axis_by_the_indices() {
        Case::new("Gather").input("float[100x64]").input("int64[NxS]").infers(&["float[NxSx64]"]);
        Case::new("Gather").input("float[NxSx64]").input("int64[]").int("axis", 1).infers(&["float[Nx64]"]);
        Case::new("Gather").input("float[2x3]").input("int32[1]").int("axis", -1).infers(&["float[2x1]"]);
        Case::new("Gather").input("float[*]").input("int64[1]").infers(&["float[*]"]);
        Case::new("Gather").input("float[2]").input("int64[*]").infers(&["float[*]"]);
        Case::new("Gather").input("float[2]").input("int64[1]").int("axis", 1).fails("axis 1 is outside");
        Case::new("Gather").input("float[]").input("int64[1]").fails("axis 0 is outside");
        Case::new("Gather").input("float[2]").input("float[1]").fails("insert a Cast");
    }

    #[test]
    fn gather_elements_has_the_shape_of_its_indices() {
        Case::new("GatherElements").input("float[3x3]").input("int64[2xN]").infers(&["float[2xN]"]);
        Case::new("GatherElements").input("float[3x3]").input("int64[*]").infers(&["float[?x?]"]);
        Case::new("GatherElements").input("float[*]").input("int64[*]").infers(&["float[*]"]);
        Case::new("GatherElements").input("float[3x3]").input("int64[2]").fails("must have one rank");
        Case::new("GatherElements").input("float[3]").input("int64[2]").int("axis", 1).fails("axis 1 is outside");
    }

    #[test]
    fn gather_nd_follows_the_tuples() {
        Case::new("GatherND").input("float[2x3x4]").input("int64[Nx2]").infers(&["float[Nx4]"]);
        Case::new("GatherND").input("float[2x3x4]").input("int64[3]").infers(&["float[]"]);
        let case = || Case::new("GatherND").input("float[2x3x4]").int("batch_dims", 1);
        case().input("int64[Nx1]").infers(&["float[2x4]"]);
        case().input("int64[3x1]").fails("differ in batch dimension 0");
        case().input("int64[2x3]").fails("address 3 dimensions, the data has 2");
        case().input("int64[2x?]").infers(&["float[*]"]);
        case().input("int64[1]").fails("must be below the ranks");
        Case::new("GatherND").input("float[2]").input("int64[1]").int("batch_dims", -1).fails("'batch_dims' is -1");
        Case::new("GatherND").input("float[2]").input("int64[-1]").fails("address -1 dimensions");
        Case::new("GatherND").input("float[*]").input("int64[1]").infers(&["float[*]"]);
    }

    #[test]
    fn scatter_preserves_the_data_type() {
        for op in ["ScatterElements", "Scatter"] {
            let case = || Case::new(op).input("float[Nx3]");
            case().input("int64[1x2]").input("float[1x2]").infers(&["float[Nx3]"]);
            case().input("int64[1x2]").input("float[1x3]").fails("must have the shape of the indices");
            case().input("int64[*]").input("float[3]").fails("must have the shape of the indices");
            case().input("int64[1x2]").input("int64[1x2]").fails("insert a Cast");
            case().input("int64[2]").input("float[2]").fails("must have one rank");
            case().input("int64[1x2]").input("float[1x2]").str("reduction", "avg").fails("none, add, mul");
        }
        Case::new("Scatter").input("float[*]").input("int64[2]").input("float[2]").infers(&["float[?]"]);
    }

    #[test]
    fn scatter_nd_checks_the_updates() {
        let case = || Case::new("ScatterND").input("float[Nx3x4]");
        case().input("int64[5x1]").input("float[5x3x4]").infers(&["float[Nx3x4]"]);
        case().input("int64[5x?]").input("float[*]").infers(&["float[Nx3x4]"]);
        case().input("int64[5x1]").input("float[5x4]").fails("updates must be 5x3x4, are 5x4");
        case().input("int64[5x4]").input("float[5]").fails("address 4 dimensions");
        case().input("int64[]").input("float[5]").fails("rank 1 or more");
        Case::new("ScatterND").input("float[]").input("int64[0]").input("float[]").fails("is a scalar");
    }

    #[test]
    fn one_hot_inserts_the_depth() {
        let case = || Case::new("OneHot").input("int64[NxS]");
        case().constant(Tensor::scalar_i64(10)).input("float[2]").infers(&["float[NxSx10]"]);
        case().constant(Tensor::scalar_f32(10.0)).input("float[2]").int("axis", 0).infers(&["float[10xNxS]"]);
        case().partial("D").input("bool[2]").int("axis", -2).infers(&["bool[NxDxS]"]);
        case().input("int64[]").input("float[2]").infers(&["float[NxSx?]"]);
        case().constant(Tensor::scalar_f32(f32::NAN)).input("float[2]").infers(&["float[NxSx?]"]);
        case().constant(Tensor::scalar_i64(-1)).input("float[2]").fails("cannot be negative");
        case().shape_input(&[1, 2]).input("float[2]").fails("must have one element");
        case().input("int64[]").input("float[3]").fails("the off and the on value");
        case().input("int64[]").input("float[2]").int("axis", 3).fails("axis 3 is outside");
        Case::new("OneHot").input("int64[*]").input("int64[]").input("float[2]").infers(&["float[*]"]);
    }

    #[test]
    fn top_k_has_values_and_indices() {
        Case::new("TopK").input("float[Nx5]").shape_input(&[3]).infers(&["float[Nx3]", "int64[Nx3]"]);
        let case = || Case::new("TopK").input("float[4x5]").int("axis", 0);
        case().partial("K").infers(&["float[Kx5]", "int64[Kx5]"]);
        case().input("int64[1]").infers(&["float[?x5]", "int64[?x5]"]);
        case().shape_input(&[5]).fails("has only 4 elements");
        case().shape_input(&[-5]).fails("cannot be negative");
        case().shape_input(&[]).fails("must have one element, has 0");
        Case::new("TopK").input("float[*]").shape_input(&[3]).infers(&["float[*]", "int64[*]"]);
        Case::new("TopK").input("float[]").shape_input(&[1]).fails("axis -1 is outside");
    }

    #[test]
    fn arg_max_is_an_index() {
        Case::new("ArgMax").input("float[Nx5]").infers(&["int64[1x5]"]);
        Case::new("ArgMin").input("float[Nx5]").int("axis", -1).int("keepdims", 0).infers(&["int64[N]"]);
        Case::new("ArgMin").input("float[*]").infers(&["int64[*]"]);
        Case::new("ArgMax").input("float[2]").int("axis", i64::MIN).fails("is outside");
    }

    #[test]
    fn non_zero_counts_constants() {
        Case::new("NonZero").input("float[Nx5]").infers(&["int64[2x?]"]);
        Case::new("NonZero").input("bool[*]").infers(&["int64[?x?]"]);
        Case::new("NonZero").shape_input(&[0, 3, 4]).infers(&["int64[1x2]"]);
        let floats = Tensor::from_floats(DType::F32, vec![2, 2], &[0.0, -0.0, f64::NAN, 1.0]).expect("four elements");
        Case::new("NonZero").constant(floats).infers(&["int64[2x2]"]);
        Case::new("NonZero").fails("operand 0 is missing");
    }

    #[test]
    fn unique_has_four_results() {
        Case::new("Unique").input("float[2x3]").infers(&["float[?]", "int64[?]", "int64[6]", "int64[?]"]);
        Case::new("Unique").input("float[2xN]").int("axis", 1).infers(&[
            "float[2x?]",
            "int64[?]",
            "int64[N]",
            "int64[?]",
        ]);
        Case::new("Unique").input("float[*]").int("axis", 1).infers(&["float[*]", "int64[?]", "int64[?]", "int64[?]"]);
        Case::new("Unique").input("float[2]").int("axis", 1).fails("axis 1 is outside");
    }

    #[test]
    fn non_max_suppression_selects_triples() {
        let case = || Case::new("NonMaxSuppression").input("float[1x100x4]");
        case().input("float[?x80x100]").infers(&["int64[?x3]"]);
        case().input("float[1x80x99]").fails("differ in batch or number of boxes");
        case().input("float[80x100]").fails("must have rank 3");
        Case::new("NonMaxSuppression").input("float[1x9x5]").input("float[1x1x9]").fails("4 coordinates");
    }
}
