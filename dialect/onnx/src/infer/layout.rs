//! Operators that move elements without changing them: reshape, transpose, concatenate, slice, pad, tile.

pub(super) mod reshape;
pub(super) mod slice_pad;

use super::{Types, elementwise::same_as_first, single_result};
use crate::node::{Node, normalize_axis};
use crate::shape::{broadcast, format_shape, product};
use crate::{DType, Dim, Error, Shape, TensorType};

/// Maximum rank, far above that of real models. Bounds time and memory of inference on malicious models.
const MAX_RANK: i64 = 1024;

/// Returns the elements of an operand that lists dimensions or axes; all unknown if only its length is known.
pub(super) fn list_operand(node: &Node<'_>, index: usize) -> Result<Option<Vec<Dim>>, Error> {
    let value = node.input(index)?;
    if !value.ty.dtype.is_int() {
        return Err(Error::new(format!("operand {index} must contain integers, is {}: insert a Cast", value.ty)));
    }
    let len = match value.ty.shape.as_deref() {
        None => None,
        // Some exporters emit a list of one element as a scalar.
        Some([]) => Some(1),
        Some([len]) => len.known(),
        Some(_) => {
            return Err(Error::new(format!("operand {index} is a list and must have rank 1, is {}", value.ty)));
        }
    };
    if let Some(len) = len
        && !(0..=MAX_RANK).contains(&len)
    {
        return Err(Error::new(format!("operand {index} lists {len} dimensions; at most {MAX_RANK} are supported")));
    }
    Ok(value.dims().or_else(|| len.map(|len| vec![Dim::Unknown; len as usize])))
}

/// Returns the elements of an operand like `list_operand`; they are sizes or counts and must not be negative.
pub(super) fn sizes_operand(node: &Node<'_>, index: usize) -> Result<Option<Vec<Dim>>, Error> {
    let sizes = list_operand(node, index)?;
    match sizes.iter().flatten().filter_map(|size| size.known()).find(|&size| size < 0) {
        Some(size) => Err(Error::new(format!("operand {index} has the element {size}, a size cannot be negative"))),
        None => Ok(sizes),
    }
}

/// Returns the product of dimensions as one dimension of a result; it is an error if it overflows.
fn volume(dims: &[Dim]) -> Result<Dim, Error> {
    match product(dims) {
        Dim::Unknown if dims.iter().all(|dim| dim.known().is_some()) => {
            Err(Error::new(format!("the dimension {} is too large for a 64-bit size", format_shape(dims))))
        }
        dim => Ok(dim),
    }
}

/// Returns the sum of dimensions if it is known; a symbol if all others are zero.
fn sum(dims: &[Dim]) -> Result<Dim, Error> {
    let sizes = dims.iter().filter_map(|dim| dim.known());
    let total = sizes.into_iter().try_fold(0i64, i64::checked_add);
    let total = total.ok_or_else(|| Error::new("the dimensions add up to more than a 64-bit size"))?;
    let mut open = dims.iter().filter(|dim| dim.known().is_none());
    Ok(match (open.next(), open.next()) {
        (None, _) => Dim::Known(total),
        (Some(&dim), None) if total == 0 => dim,
        _ => Dim::Unknown,
    })
}

pub(super) fn concat(node: &Node<'_>) -> Types {
    let operands = node.operands()?;
    let axis = node.int("axis")?.ok_or_else(|| Error::new("needs the attribute 'axis'"))?;
    let first = operands.first().ok_or_else(|| Error::new("needs at least one operand"))?;
    if let Some(other) = operands.iter().find(|operand| operand.ty.dtype != first.ty.dtype) {
        return Err(Error::new(format!(
            "operands must have one element type, these have {} and {}: insert a Cast",
            first.ty.dtype, other.ty.dtype
        )));
    }
    let mut shapes = operands.iter().filter_map(|operand| operand.ty.shape.as_deref());
    let Some(mut shape) = shapes.next().map(<[Dim]>::to_vec) else {
        return single_result(TensorType::unranked(first.ty.dtype));
    };
    if shape.is_empty() {
        return Err(Error::new("scalars cannot be concatenated: insert an Unsqueeze before each"));
    }
    let axis = normalize_axis(axis, shape.len())?;
    for other in shapes {
        shape = unify_except(&shape, other, axis).ok_or_else(|| {
            Error::new(format!(
                "operands must agree in all dimensions but {axis}, these are {} and {}",
                format_shape(&shape),
                format_shape(other)
            ))
        })?;
    }
    let along = operands.iter().map(|operand| operand.ty.shape.as_deref().map_or(Dim::Unknown, |shape| shape[axis]));
    shape[axis] = sum(&along.collect::<Vec<_>>())?;
    single_result(TensorType::new(first.ty.dtype, shape))
}

/// Unifies two shapes except along `axis`, where the result has the dimension of `a`.
fn unify_except(a: &[Dim], b: &[Dim], axis: usize) -> Option<Shape> {
    if a.len() != b.len() {
        return None;
    }
    a.iter().zip(b).enumerate().map(|(i, (&a, &b))| if i == axis { Some(a) } else { a.unify(b) }).collect()
}

pub(super) fn tile(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    let repeats = sizes_operand(node, 1)?;
    let shape = match (node.shape(0)?, repeats) {
        (Some(shape), Some(repeats)) if shape.len() != repeats.len() => {
            return Err(Error::new(format!(
                "there are {} repeats for an operand of rank {}: pass one per dimension",
                repeats.len(),
                shape.len()
            )));
        }
        (Some(shape), Some(repeats)) => {
            shape.iter().zip(repeats).map(|(&dim, times)| volume(&[dim, times])).collect::<Result<_, _>>()?
        }
        (Some(shape), None) => vec![Dim::Unknown; shape.len()],
        (None, Some(repeats)) => vec![Dim::Unknown; repeats.len()],
        (None, None) => return single_result(TensorType::unranked(dtype)),
    };
    single_result(TensorType::new(dtype, shape))
}

pub(super) fn expand(node: &Node<'_>) -> Types {
    let target = sizes_operand(node, 1)?;
    let shape = match (node.shape(0)?, target) {
        (Some(shape), Some(target)) => Some(broadcast(shape, &target)?),
        _ => None,
    };
    single_result(TensorType::new(node.dtype(0)?, shape))
}

fn block_size(node: &Node<'_>) -> Result<Dim, Error> {
    match node.int("blocksize")? {
        Some(size) if size > 0 => Ok(Dim::Known(size)),
        Some(size) => Err(Error::new(format!("attribute 'blocksize' is {size}, must be positive"))),
        None => Err(Error::new("needs the attribute 'blocksize'")),
    }
}

/// Divides a dimension by a block size, which must be a divisor.
fn divide(dim: Dim, by: Dim, what: &str) -> Result<Dim, Error> {
    match (dim, by) {
        (Dim::Known(size), Dim::Known(by)) if by > 0 && size % by == 0 => Ok(Dim::Known(size / by)),
        (Dim::Known(size), Dim::Known(by)) => Err(Error::new(format!("{what} ({size}) must be a multiple of {by}"))),
        (dim, Dim::Known(1)) => Ok(dim),
        _ => Ok(Dim::Unknown),
    }
}

pub(super) fn depth_to_space(node: &Node<'_>) -> Types {
    let block = block_size(node)?;
    let mode = node.str_or("mode", "DCR")?;
    if !["DCR", "CRD"].contains(&mode) {
        return Err(Error::new(format!("attribute 'mode' is '{mode}', must be 'DCR' or 'CRD'")));
    }
    let shape = match node.shape_of_rank(0, 4)? {
        Some(&[n, c, h, w]) => {
            let depth = divide(c, volume(&[block, block])?, "the number of channels")?;
            vec![n, depth, volume(&[h, block])?, volume(&[w, block])?]
        }
        _ => vec![Dim::Unknown; 4],
    };
    single_result(TensorType::new(node.dtype(0)?, shape))
}

pub(super) fn space_to_depth(node: &Node<'_>) -> Types {
    let block = block_size(node)?;
    let shape = match node.shape_of_rank(0, 4)? {
        Some(&[n, c, h, w]) => {
            vec![n, volume(&[c, block, block])?, divide(h, block, "the height")?, divide(w, block, "the width")?]
        }
        _ => vec![Dim::Unknown; 4],
    };
    single_result(TensorType::new(node.dtype(0)?, shape))
}

fn at_least_a_matrix(node: &Node<'_>) -> Result<(), Error> {
    match node.shape(0)? {
        Some([] | [_]) => Err(Error::new(format!("operand 0 must have rank 2 or more, is {}", node.input(0)?.ty))),
        _ => Ok(()),
    }
}

pub(super) fn trilu(node: &Node<'_>) -> Types {
    at_least_a_matrix(node)?;
    same_as_first(node)
}

pub(super) fn reverse_sequence(node: &Node<'_>) -> Types {
    at_least_a_matrix(node)?;
    let (batch, time) = (node.int_or("batch_axis", 1)?, node.int_or("time_axis", 0)?);
    let ((0, 1) | (1, 0)) = (batch, time) else {
        return Err(Error::new(format!(
            "'batch_axis' and 'time_axis' are {batch} and {time}, must be 0 and 1 or 1 and 0"
        )));
    };
    let lengths = node.shape_of_rank(1, 1)?;
    if let (Some(shape), Some(&[lengths])) = (node.shape(0)?, lengths)
        && shape[batch as usize].unify(lengths).is_none()
    {
        let expected = shape[batch as usize];
        return Err(Error::new(format!("there are {lengths} sequence lengths for a batch of {expected}")));
    }
    same_as_first(node)
}

pub(super) fn bit_cast(node: &Node<'_>) -> Types {
    let to = node.dtype_attr("to")?.ok_or_else(|| Error::new("needs the attribute 'to', an element type"))?;
    let from = node.dtype(0)?;
    if from == DType::String || from.bits() != to.bits() {
        return Err(Error::new(format!(
            "{from} cannot be reinterpreted as {to}: the widths must be equal, or use Cast"
        )));
    }
    single_result(TensorType::new(to, node.input(0)?.ty.shape.clone()))
}

/// Infers `TensorScatter`, which writes into a cache of fixed size: the update may be shorter along the sequence axis only.
pub(super) fn tensor_scatter(node: &Node<'_>) -> Types {
    let (cache, update) = (node.input(0)?, node.input(1)?);
    let mode = node.str_or("mode", "linear")?;
    if !["linear", "circular"].contains(&mode) {
        return Err(Error::new(format!("attribute 'mode' is '{mode}', must be 'linear' or 'circular'")));
    }
    let axis = node.int_or("axis", -2)?;
    let mismatch = || Error::new(format!("the update {} does not fit the cache {}", update.ty, cache.ty));
    if cache.ty.dtype != update.ty.dtype {
        return Err(mismatch());
    }
    let Some(shape) = &cache.ty.shape else {
        return single_result(cache.ty.clone());
    };
    let axis = normalize_axis(axis, shape.len())?;
    if axis == 0 {
        return Err(Error::new("attribute 'axis' names dimension 0, which is the batch: name the sequence dimension"));
    }
    let Some(other) = &update.ty.shape else {
        return single_result(cache.ty.clone());
    };
    let unified = unify_except(shape, other, axis).ok_or_else(mismatch)?;
    match (shape[axis], other[axis]) {
        (Dim::Known(have), Dim::Known(wanted)) if wanted > have => Err(mismatch()),
        _ => single_result(TensorType::new(cache.ty.dtype, unified)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    #[test]
    fn concat_adds_along_the_axis() {
        let case = || Case::new("Concat").int("axis", -1);
        case().input("float[2x3]").input("float[2x4]").infers(&["float[2x7]"]);
        case().input("float[?x3]").input("float[Nx4]").input("float[2x1]").infers(&["float[2x8]"]);
        case().input("float[2xN]").input("float[2x0]").infers(&["float[2xN]"]);
        case().input("float[2x3]").input("float[*]").infers(&["float[2x?]"]);
        case().input("float[*]").infers(&["float[*]"]);
        case().input("float[2x3]").input("float[3x3]").fails("agree in all dimensions but 1");
        case().input("float[2x3]").input("float[2]").fails("agree in all dimensions");
        case().input("float[]").fails("insert an Unsqueeze");
        case().input("float[2]").input("int64[2]").fails("insert a Cast");
        case().input("float[4611686018427387904]").input("float[4611686018427387904]").fails("64-bit");
        case().fails("at least one operand");
        Case::new("Concat").input("float[2]").fails("needs the attribute 'axis'");
    }

    #[test]
    fn tile_multiplies() {
        Case::new("Tile").input("float[2xNx?]").shape_input(&[3, 1, 0]).infers(&["float[6xNx0]"]);
        Case::new("Tile").input("float[1x2]").partial("Nx3").infers(&["float[Nx6]"]);
        Case::new("Tile").input("float[*]").input("int64[2]").infers(&["float[?x?]"]);
        Case::new("Tile").input("float[2x2]").input("int64[*]").infers(&["float[?x?]"]);
        Case::new("Tile").input("float[2x2]").shape_input(&[2]).fails("1 repeats for an operand of rank 2");
        Case::new("Tile").input("float[2]").shape_input(&[-2]).fails("cannot be negative");
        Case::new("Tile").input("float[2]").shape_input(&[i64::MAX]).fails("too large");
    }

    #[test]
    fn expand_broadcasts_to_the_target() {
        Case::new("Expand").input("float[3x1]").shape_input(&[2, 1, 6]).infers(&["float[2x3x6]"]);
        Case::new("Expand").input("float[1x3]").partial("Nx1").infers(&["float[Nx3]"]);
        Case::new("Expand").input("float[1x3]").input("int64[3]").infers(&["float[?x?x3]"]);
        Case::new("Expand").input("float[1x3]").input("int64[?]").infers(&["float[*]"]);
        Case::new("Expand").input("float[3]").shape_input(&[4]).fails("do not broadcast");
        Case::new("Expand").input("float[3]").input("int64[1099511627776]").fails("at most 1024");
        Case::new("Expand").input("float[3]").input("float[1]").fails("must contain integers");
        Case::new("Expand").input("float[3]").input("int64[1x1]").fails("must have rank 1");
    }

    #[test]
    fn blocks_move_between_depth_and_space() {
        Case::new("DepthToSpace").input("float[Nx8x2x?]").int("blocksize", 2).infers(&["float[Nx2x4x?]"]);
        Case::new("DepthToSpace").input("float[*]").int("blocksize", 2).infers(&["float[?x?x?x?]"]);
        Case::new("DepthToSpace").input("float[1x6x2x2]").int("blocksize", 2).fails("a multiple of 4");
        Case::new("DepthToSpace").input("float[1x4x2x2]").int("blocksize", 1 << 62).fails("too large");
        Case::new("DepthToSpace").input("float[1x4x2x2]").int("blocksize", 2).str("mode", "X").fails("'DCR' or 'CRD'");
        Case::new("SpaceToDepth").input("float[Nx2x4x6]").int("blocksize", 2).infers(&["float[Nx8x2x3]"]);
        Case::new("SpaceToDepth").input("float[1x2x3x6]").int("blocksize", 2).fails("the height (3)");
        Case::new("SpaceToDepth").input("float[1x2x3x6]").int("blocksize", 0).fails("must be positive");
        Case::new("SpaceToDepth").input("float[1x2x3x6]").fails("needs the attribute 'blocksize'");
        Case::new("SpaceToDepth").input("float[2x3]").int("blocksize", 2).fails("must have rank 4");
    }

    #[test]
    fn trilu_needs_a_matrix() {
        Case::new("Trilu").input("float[2xNx3]").infers(&["float[2xNx3]"]);
        Case::new("Trilu").input("float[3]").fails("rank 2 or more");
    }

    #[test]
    fn reverse_sequence_preserves_type() {
        let case = || Case::new("ReverseSequence").input("float[5xNx2]");
        case().input("int64[?]").infers(&["float[5xNx2]"]);
        case().input("int64[5]").int("batch_axis", 0).int("time_axis", 1).infers(&["float[5xNx2]"]);
        case().input("int64[4]").int("batch_axis", 0).int("time_axis", 1).fails("4 sequence lengths for a batch of 5");
        case().input("int64[4]").int("batch_axis", 0).fails("must be 0 and 1");
    }

    #[test]
    fn bit_cast_preserves_width() {
        Case::new("BitCast").input("float[2xN]").int("to", 6).infers(&["int32[2xN]"]);
        Case::new("BitCast").input("float[2]").int("to", 7).fails("the widths must be equal");
        Case::new("BitCast").input("string[2]").int("to", 8).fails("cannot be reinterpreted");
        Case::new("BitCast").input("float[2]").fails("needs the attribute 'to'");
    }

    #[test]
    fn tensor_scatter_preserves_the_cache_type() {
        let case = || Case::new("TensorScatter").input("float[Nx4x16x8]");
        case().input("float[2x4x1x8]").infers(&["float[2x4x16x8]"]);
        case().input("float[*]").infers(&["float[Nx4x16x8]"]);
        case().input("float[2x4x17x8]").fails("does not fit the cache");
        case().input("float[2x4x1x9]").fails("does not fit the cache");
        case().input("float16[2x4x1x8]").fails("does not fit the cache");
        case().input("float[2x4x1x8]").int("axis", 0).fails("which is the batch");
        case().input("float[2x4x1x8]").str("mode", "round").fails("'linear' or 'circular'");
    }
}
