//! Operators that extract parts of a tensor or pad it.

use super::{list_operand, sizes_operand, sum};
use crate::infer::{Types, single_result};
use crate::node::{Node, normalize_axes, normalize_axis};
use crate::shape::{format_shape, product};
use crate::{DType, Dim, Error, TensorType};

pub(in crate::infer) fn slice(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    let (starts, ends) = (list_operand(node, 1)?, list_operand(node, 2)?);
    let axes = node.optional(3).map(|_| list_operand(node, 3)).transpose()?;
    let steps = node.optional(4).map(|_| list_operand(node, 4)).transpose()?;
    let Some(shape) = node.shape(0)? else {
        return single_result(TensorType::unranked(dtype));
    };
    let lists = [Some(&starts), Some(&ends), axes.as_ref(), steps.as_ref()];
    let lens: Vec<usize> = lists.into_iter().flatten().flatten().map(Vec::len).collect();
    let len = lens.first().copied();
    if let (Some(len), Some(other)) = (len, lens.iter().find(|&&other| Some(other) != len)) {
        return Err(Error::new(format!(
            "starts, ends, axes and steps must be equally long, two are {len} and {other}"
        )));
    }
    let axes = match (axes, len) {
        (None, Some(len)) => Some((0..len as i64).collect()),
        (Some(Some(axes)), _) => axes.into_iter().map(Dim::known).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let Some(axes) = axes else {
        return single_result(TensorType::of_rank(dtype, shape.len()));
    };
    let axes = normalize_axes(&axes, shape.len())?;
    let element = |list: &Option<Vec<Dim>>, i: usize| list.as_ref().map_or(Dim::Unknown, |list| list[i]);
    let mut result = shape.to_vec();
    for (i, &axis) in axes.iter().enumerate() {
        let step = steps.as_ref().map_or(Dim::Known(1), |steps| element(steps, i));
        result[axis] = slice_dim(shape[axis], element(&starts, i), element(&ends, i), step)?;
    }
    single_result(TensorType::new(dtype, result))
}

/// Smallest end of a slice that ONNX defines as the end of a dimension of unknown size: INT_MAX of 32 or 64 bits.
const TO_THE_END: i64 = i32::MAX as i64;
/// Largest end that means the start of the dimension for negative steps: INT_MIN of 32 or 64 bits.
const TO_THE_START: i64 = i32::MIN as i64;

fn slice_dim(dim: Dim, start: Dim, end: Dim, step: Dim) -> Result<Dim, Error> {
    if step == Dim::Known(0) {
        return Err(Error::new("a step is 0: use 1 to take every element"));
    }
    Ok(match (dim, start, end, step) {
        (Dim::Known(size), Dim::Known(start), Dim::Known(end), Dim::Known(step)) => {
            Dim::Known(slice_len(size, start, end, step))
        }
        (dim, Dim::Known(0), Dim::Known(TO_THE_END..), Dim::Known(1)) => dim,
        (dim @ Dim::Symbol(_), Dim::Known(0), end, Dim::Known(1)) if end == dim => dim,
        (dim, Dim::Known(-1 | TO_THE_END..), Dim::Known(..=TO_THE_START), Dim::Known(-1)) => dim,
        _ => Dim::Unknown,
    })
}

fn slice_len(size: i64, start: i64, end: i64, step: i64) -> i64 {
    if size <= 0 {
        return 0;
    }
    let from_end = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
    let (low, high) = if step > 0 {
        (from_end(start).clamp(0, size), from_end(end).clamp(0, size))
    } else {
        (from_end(end).clamp(-1, size - 1), from_end(start).clamp(0, size - 1))
    };
    let span = u64::try_from(high - low).unwrap_or(0);
    span.div_ceil(step.unsigned_abs()) as i64
}

pub(in crate::infer) fn split(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    let axis = node.int_or("axis", 0)?;
    let sizes = node.optional(1).map(|_| sizes_operand(node, 1)).transpose()?.flatten();
    let num_outputs = node.int("num_outputs")?;
    if num_outputs.is_some() && node.optional(1).is_some() {
        return Err(Error::new("has both the operand 'split' and the attribute 'num_outputs': remove one"));
    }
    let parts = sizes.as_ref().map(|sizes| sizes.len() as i64).or(num_outputs);
    if let Some(parts) = parts
        && parts != node.outputs as i64
    {
        return Err(Error::new(format!("splits into {parts} parts, but has {} results", node.outputs)));
    }
    let Some(shape) = node.shape(0)? else {
        return Ok(vec![TensorType::unranked(dtype); node.outputs]);
    };
    let axis = normalize_axis(axis, shape.len())?;
    let sizes = match sizes {
        Some(sizes) => explicit_parts(shape[axis], sizes)?,
        None if node.optional(1).is_some() => vec![Dim::Unknown; node.outputs],
        None => equal_parts(shape[axis], node.outputs)?,
    };
    let part = |size| {
        let mut shape = shape.to_vec();
        shape[axis] = size;
        TensorType::new(dtype, shape)
    };
    Ok(sizes.into_iter().map(part).collect())
}

/// Checks that the sizes add up to the dimension, and computes the unknown one if there is only one.
fn explicit_parts(dim: Dim, mut sizes: Vec<Dim>) -> Result<Vec<Dim>, Error> {
    let known: Vec<Dim> = sizes.iter().copied().filter(|size| size.known().is_some()).collect();
    let (Dim::Known(dim), Dim::Known(total)) = (dim, sum(&known)?) else {
        return Ok(sizes);
    };
    let open = sizes.len() - known.len();
    if total > dim || (open == 0 && total != dim) {
        return Err(Error::new(format!(
            "the parts {} add up to {total}, the dimension is {dim}",
            format_shape(&sizes)
        )));
    }
    if let (1, Some(last)) = (open, sizes.iter_mut().find(|size| size.known().is_none())) {
        *last = Dim::Known(dim - total);
    }
    Ok(sizes)
}

/// Returns the sizes of equal parts; the last may be smaller.
fn equal_parts(dim: Dim, count: usize) -> Result<Vec<Dim>, Error> {
    let mut parts = match dim {
        Dim::Known(dim) if count > 0 && dim >= 0 => vec![Dim::Known((dim as u64).div_ceil(count as u64) as i64); count],
        dim if count == 1 => vec![dim],
        _ => vec![Dim::Unknown; count],
    };
    if let (Dim::Known(dim), Some((last, rest))) = (dim, parts.split_last_mut()) {
        let taken = sum(rest).ok().and_then(Dim::known);
        *last = match taken.and_then(|taken| dim.checked_sub(taken)) {
            Some(size) if size >= 0 => Dim::Known(size),
            _ => {
                return Err(Error::new(format!(
                    "a dimension of {dim} does not split into {count} equal parts: pass the sizes as operand 'split'"
                )));
            }
        };
    }
    Ok(parts)
}

pub(in crate::infer) fn pad(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    let mode = node.str_or("mode", "constant")?;
    if !["constant", "reflect", "edge", "wrap"].contains(&mode) {
        return Err(Error::new(format!("attribute 'mode' is '{mode}', must be constant, reflect, edge or wrap")));
    }
    let pads = list_operand(node, 1)?;
    if let Some(pads) = &pads
        && pads.len() % 2 != 0
    {
        return Err(Error::new(format!("there are {} pads: pass one before and one after each axis", pads.len())));
    }
    let axes = node.optional(3).map(|_| list_operand(node, 3)).transpose()?;
    let Some(shape) = node.shape(0)? else {
        let rank = pads.filter(|_| axes.is_none()).map(|pads| pads.len() / 2);
        return single_result(TensorType::new(dtype, rank.map(|rank| vec![Dim::Unknown; rank])));
    };
    let axes = match axes {
        None => Some((0..shape.len()).collect()),
        Some(axes) => match axes.and_then(|axes| axes.into_iter().map(Dim::known).collect::<Option<Vec<_>>>()) {
            Some(axes) => Some(normalize_axes(&axes, shape.len())?),
            None => None,
        },
    };
    let Some(axes) = axes else {
        return single_result(TensorType::of_rank(dtype, shape.len()));
    };
    let pads = pads.unwrap_or_else(|| vec![Dim::Unknown; 2 * axes.len()]);
    if pads.len() != 2 * axes.len() {
        let (len, wanted) = (pads.len(), 2 * axes.len());
        return Err(Error::new(format!("there are {len} pads for {} axes: pass {wanted}", axes.len())));
    }
    let mut result = shape.to_vec();
    for (i, &axis) in axes.iter().enumerate() {
        result[axis] = sum(&[shape[axis], pads[i], pads[i + axes.len()]])?;
        if let Dim::Known(..0) = result[axis] {
            return Err(Error::new(format!(
                "negative pads take more than dimension {axis} of {} has",
                format_shape(shape)
            )));
        }
    }
    single_result(TensorType::new(dtype, result))
}

pub(in crate::infer) fn center_crop_pad(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    let target = sizes_operand(node, 1)?;
    let axes = node.ints("axes")?;
    let rank = match (node.shape(0)?, axes, &target) {
        (Some(shape), ..) => shape.len(),
        (None, None, Some(target)) => target.len(),
        _ => return single_result(TensorType::unranked(dtype)),
    };
    let axes = axes.map_or_else(|| Ok((0..rank).collect()), |axes| normalize_axes(axes, rank))?;
    let target = target.unwrap_or_else(|| vec![Dim::Unknown; axes.len()]);
    if target.len() != axes.len() {
        return Err(Error::new(format!("there are {} sizes for {} axes: pass one per axis", target.len(), axes.len())));
    }
    let mut result = node.shape(0)?.map_or_else(|| vec![Dim::Unknown; rank], <[Dim]>::to_vec);
    for (axis, size) in axes.into_iter().zip(target) {
        result[axis] = size;
    }
    single_result(TensorType::new(dtype, result))
}

pub(in crate::infer) fn compress(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    let condition = node.input(1)?;
    if condition.ty.dtype != DType::Bool {
        return Err(Error::new(format!("the condition must be bool, is {}: insert a Cast", condition.ty.dtype)));
    }
    let len = node.shape_of_rank(1, 1)?.map_or(Dim::Unknown, product);
    let kept = match node.ints_of(1) {
        Some(flags) => Dim::Known(flags.iter().filter(|&&flag| flag != 0).count() as i64),
        None => Dim::Unknown,
    };
    let Some(shape) = node.shape(0)? else {
        return single_result(match node.int("axis")? {
            Some(_) => TensorType::unranked(dtype),
            None => TensorType::new(dtype, vec![kept]),
        });
    };
    let (size, result) = match node.int("axis")? {
        None => (product(shape), vec![kept]),
        Some(axis) => {
            let axis = normalize_axis(axis, shape.len())?;
            let mut result = shape.to_vec();
            result[axis] = kept;
            (shape[axis], result)
        }
    };
    match (len, size) {
        (Dim::Known(len), Dim::Known(size)) if len > size => {
            Err(Error::new(format!("the condition has {len} elements, the operand {size}: shorten it")))
        }
        _ => single_result(TensorType::new(dtype, result)),
    }
}

#[cfg(test)]
mod tests {
    use crate::infer::testing::Case;
    use crate::{DType, Tensor};

    #[test]
    fn slice_follows_numpy() {
        let slice = |start, end, step, expected: &str| {
            let case = Case::new("Slice").input("float[10]").shape_input(&[start]).shape_input(&[end]);
            case.shape_input(&[0]).shape_input(&[step]).infers(&[expected]);
        };
        slice(2, 5, 1, "float[3]");
        slice(0, i64::MAX, 1, "float[10]");
        slice(-3, i64::MAX, 1, "float[3]");
        slice(0, -1, 3, "float[3]");
        slice(0, 10, 3, "float[4]");
        slice(5, 5, 1, "float[0]");
        slice(8, 2, 1, "float[0]");
        slice(20, 30, 1, "float[0]");
        slice(i64::MIN, i64::MAX, i64::MAX, "float[1]");
        slice(-1, i64::MIN, -1, "float[10]");
        slice(i64::MAX, -11, -3, "float[4]");
        slice(8, 2, -2, "float[3]");
        slice(2, 8, -2, "float[0]");
        slice(9, i64::MIN, i64::MIN, "float[1]");
    }

    #[test]
    fn slice_preserves_known_dimensions() {
        let case = || Case::new("Slice").input("float[Nx8x?]");
        case().shape_input(&[0]).shape_input(&[i64::MAX]).infers(&["float[Nx8x?]"]);
        case().shape_input(&[1]).shape_input(&[i64::MAX]).infers(&["float[?x8x?]"]);
        case().shape_input(&[0, 2]).partial("Nx?").infers(&["float[Nx?x?]"]);
        case().shape_input(&[-1]).shape_input(&[i64::MIN]).none().shape_input(&[-1]).infers(&["float[Nx8x?]"]);
        case().shape_input(&[1]).shape_input(&[3]).shape_input(&[-2]).infers(&["float[Nx2x?]"]);
        case().input("int64[1]").input("int64[1]").shape_input(&[1]).infers(&["float[Nx?x?]"]);
        case().input("int64[1]").input("int64[?]").infers(&["float[?x8x?]"]);
        case().input("int64[?]").input("int64[?]").infers(&["float[?x?x?]"]);
        case().shape_input(&[1]).shape_input(&[3]).input("int64[1]").infers(&["float[?x?x?]"]);
        Case::new("Slice")
            .input("float[0]")
            .shape_input(&[3])
            .shape_input(&[0])
            .none()
            .shape_input(&[-1])
            .infers(&["float[0]"]);
        Case::new("Slice").input("float[*]").shape_input(&[0]).shape_input(&[1]).infers(&["float[*]"]);
    }

    #[test]
    fn slice_rejects() {
        let case = || Case::new("Slice").input("float[4x4]");
        case().shape_input(&[0]).shape_input(&[4]).none().shape_input(&[0]).fails("a step is 0");
        case().shape_input(&[0]).shape_input(&[4, 4]).fails("two are 1 and 2");
        case().shape_input(&[0, 0, 0]).shape_input(&[1, 1, 1]).fails("axis 2 is outside");
        case().shape_input(&[0, 0]).shape_input(&[1, 1]).shape_input(&[0, -2]).fails("named twice");
    }

    #[test]
    fn split_infers_all_results() {
        let case = || Case::new("Split").input("float[10xN]").outputs(3);
        case().shape_input(&[2, 3, 5]).infers(&["float[2xN]", "float[3xN]", "float[5xN]"]);
        case().int("num_outputs", 3).infers(&["float[4xN]", "float[4xN]", "float[2xN]"]);
        case().int("axis", 1).infers(&["float[10x?]"; 3]);
        case().partial("2x?x5").infers(&["float[2xN]", "float[3xN]", "float[5xN]"]);
        case().input("int64[3]").infers(&["float[?xN]"; 3]);
        case().input("int64[?]").infers(&["float[?xN]"; 3]);
        Case::new("Split").input("float[N]").int("num_outputs", 1).infers(&["float[N]"]);
        Case::new("Split").input("float[*]").int("num_outputs", 2).outputs(2).infers(&["float[*]"; 2]);
    }

    #[test]
    fn split_rejects() {
        let case = || Case::new("Split").input("float[10]").outputs(2);
        case().shape_input(&[2, 3]).fails("add up to 5, the dimension is 10");
        case().shape_input(&[-2, 12]).fails("cannot be negative");
        case().shape_input(&[2, 3, 5]).fails("splits into 3 parts, but has 2 results");
        case().shape_input(&[i64::MAX, i64::MAX]).fails("64-bit");
        case().int("num_outputs", -1).fails("splits into -1 parts");
        case().int("num_outputs", 2).shape_input(&[5, 5]).fails("remove one");
        Case::new("Split").input("float[5]").int("num_outputs", 4).outputs(4).fails("pass the sizes");
        Case::new("Split").input("float[]").int("num_outputs", 2).outputs(2).fails("axis 0 is outside");
    }

    #[test]
    fn pad_adds_to_both_sides() {
        let case = || Case::new("Pad").input("float[Nx3x4]");
        case().shape_input(&[0, 1, 2, 0, 1, -2]).infers(&["float[Nx5x4]"]);
        case().shape_input(&[1, 1]).none().shape_input(&[-1]).infers(&["float[Nx3x6]"]);
        case().partial("?x1").none().shape_input(&[-1]).infers(&["float[Nx3x?]"]);
        case().input("int64[6]").infers(&["float[?x?x?]"]);
        case().input("int64[?]").none().shape_input(&[1]).infers(&["float[Nx?x4]"]);
        case().input("int64[2]").none().input("int64[1]").infers(&["float[?x?x?]"]);
        Case::new("Pad").input("float[*]").input("int64[4]").infers(&["float[?x?]"]);
        case().shape_input(&[1, 1]).fails("2 pads for 3 axes: pass 6");
        case().shape_input(&[1]).fails("one before and one after");
        case().shape_input(&[0, 0, -5, 0, 0, 0]).fails("take more than dimension 2");
        case().shape_input(&[0, 0, i64::MAX, 0, 0, 0]).fails("64-bit");
        case().shape_input(&[0; 6]).str("mode", "mirror").fails("constant, reflect, edge or wrap");
    }

    #[test]
    fn center_crop_pad_has_the_target_size() {
        let case = || Case::new("CenterCropPad").input("float[Nx3x4]");
        case().shape_input(&[5, 6]).ints("axes", &[1, -1]).infers(&["float[Nx5x6]"]);
        case().input("int64[2]").ints("axes", &[1, 2]).infers(&["float[Nx?x?]"]);
        case().shape_input(&[5, 6]).fails("2 sizes for 3 axes");
        case().shape_input(&[-5]).ints("axes", &[1]).fails("cannot be negative");
        Case::new("CenterCropPad").input("float[*]").shape_input(&[5, 6]).infers(&["float[5x6]"]);
    }

    #[test]
    fn compress_counts_selected_elements() {
        let flags =
            |flags: &[i64]| Tensor::from_ints(DType::Bool, vec![flags.len() as i64], flags).expect("one dimension");
        let case = || Case::new("Compress").input("float[Nx3]");
        case().input("bool[?]").infers(&["float[?]"]);
        case().input("bool[3]").int("axis", 1).infers(&["float[Nx?]"]);
        case().constant(flags(&[1, 0, 1])).int("axis", 1).infers(&["float[Nx2]"]);
        case().constant(flags(&[1, 0, 1, 1])).int("axis", 1).fails("4 elements, the operand 3");
        case().input("int64[3]").fails("must be bool");
        Case::new("Compress").input("float[*]").input("bool[2]").int("axis", 0).infers(&["float[*]"]);
    }
}
