//! Operators that change the shape, but not the order of elements.

use super::{Flow, Site};
use crate::rebatch::layout::{Layout, known_product, regroup};
use divi_onnx::{Dim, node::normalize_axes};

/// Follows the batch through Reshape: the order of elements does not change, so as many elements as before precede it.
/// The shape operand gets the new size.
pub(super) fn reshape(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let to = site.result_shape(0)?;
    let layout = regroup(site.shape(0)?, at, to, site.unit)?;
    let mut sizes = site.ints(1)?;
    let allowzero = site.node.flag("allowzero", false).ok()?;
    for (i, size) in sizes.iter_mut().enumerate() {
        let copies = *size == 0 && !allowzero;
        let dim = to.get(i)?;
        if i == layout.axis {
            match *size {
                -1 => {}
                // The operand's dimension is scaled as well.
                _ if copies && i == at.axis => {}
                _ => *size = dim.known()?.checked_mul(site.factor)?,
            }
        } else if copies && i == at.axis {
            *size = dim.known()?;
        }
    }
    let changes = if Some(&sizes) == site.ints(1).as_ref() { vec![] } else { site.with_elements(1, &sizes)? };
    Some(Flow::all(site, layout, changes))
}

/// Follows the batch through Flatten, whose two dimensions are the products of those before the axis and of the others.
pub(super) fn flatten(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let shape = site.shape(0)?;
    let rank = shape.len() as i64;
    let axis = site.node.int_or("axis", 1).ok()?;
    let split = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
    let (axis, first) = if at.axis < split { (0, 0) } else { (1, split) };
    let outer = known_product(shape.get(first..at.axis)?)?.checked_mul(at.outer)?;
    Some(Flow::all(site, Layout { axis, outer }, vec![]))
}

/// Follows the batch through Squeeze. The dimension of one input can be squeezed, that of several cannot: a Reshape
/// replaces the Squeeze.
pub(super) fn squeeze(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let shape = site.shape(0)?;
    let squeezed = match site.node.optional(1) {
        Some(_) => normalize_axes(&site.ints(1)?, shape.len()).ok()?,
        None => (0..shape.len()).filter(|&axis| shape[axis] == Dim::Known(1)).collect(),
    };
    if squeezed.contains(&at.axis) {
        let layout = regroup(shape, at, site.result_shape(0)?, site.unit)?;
        return Some(Flow { as_reshape: true, ..Flow::all(site, layout, vec![]) });
    }
    let gone = squeezed.iter().filter(|&&axis| axis < at.axis).count();
    Some(Flow::all(site, at.on(at.axis - gone), vec![]))
}

pub(super) fn unsqueeze(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let axes = site.ints(1)?;
    let rank = site.rank(0)? + axes.len();
    let new = normalize_axes(&axes, rank).ok()?;
    let axis = (0..rank).filter(|axis| !new.contains(axis)).nth(at.axis)?;
    Some(Flow::all(site, at.on(axis), vec![]))
}

pub(super) fn transpose(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let rank = site.rank(0)?;
    let axis = match site.node.ints("perm").ok()? {
        Some(perm) => perm.iter().position(|&from| from == at.axis as i64)?,
        None => rank - 1 - at.axis,
    };
    Some(Flow::all(site, at.on(axis), vec![]))
}

/// Follows the batch through Expand, which may keep it (by its size or a 1), but not repeat it.
pub(super) fn expand(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let (rank, result) = (site.rank(0)?, site.result_shape(0)?);
    let axis = (at.axis + result.len()).checked_sub(rank)?;
    let size = site.shape(0)?[at.axis].known()?;
    if result[axis] != Dim::Known(size) {
        return None;
    }
    let sizes = site.ints(1)?;
    let changes = match (axis + sizes.len()).checked_sub(result.len()) {
        Some(entry) if sizes[entry] != 1 => site.with_element(1, entry, size.checked_mul(site.factor)?)?,
        _ => vec![],
    };
    Some(Flow::all(site, at.on(axis), changes))
}

/// Follows the batch through Tile, which must not repeat it: the copies of one run would not be contiguous.
pub(super) fn tile(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    (*site.ints(1)?.get(at.axis)? == 1).then(|| Flow::all(site, at, vec![]))
}

/// Follows the batch through BitCast: a change of width affects only the last dimension.
pub(super) fn bit_cast(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let same = site.results.first()?.dtype.bits() == site.node.dtype(0).ok()?.bits();
    (same || at.axis + 1 != site.rank(0)?).then(|| Flow::all(site, at, vec![]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    #[test]
    fn reshape_has_the_new_batch_size() {
        let case = |shape: &[i64]| Case::new("Reshape").batched("float[1x128x768]", 0).list(shape);
        case(&[1, 128, 12, 64]).becomes(1, &[3, 128, 12, 64]).gives("float[1x128x12x64]", 0, 1);
        case(&[128, 768]).becomes(1, &[384, 768]).gives("float[128x768]", 0, 1);
        case(&[-1, 768]).gives("float[128x768]", 0, 1);
        case(&[0, 0, 12, 64]).gives("float[1x128x12x64]", 0, 1);
        case(&[1, -1, 64]).becomes(1, &[3, -1, 64]).gives("float[1x1536x64]", 0, 1);
        case(&[98304]).becomes(1, &[294912]).gives("float[98304]", 0, 1);
    }

    #[test]
    fn reshape_does_not_copy_a_scaled_dimension() {
        let case = |shape: &[i64]| Case::new("Reshape").batched("float[5x1x4]", 1).list(shape);
        // The second dimension is the batch, which is merged into the first here.
        case(&[5, 4]).becomes(1, &[15, 4]).gives("float[5x4]", 0, 5);
        case(&[0, 4]).becomes(1, &[15, 4]).gives("float[5x4]", 0, 5);
        case(&[0, 0, 2, 2]).gives("float[5x1x2x2]", 1, 1);
        let merged = Case::new("Reshape").merged("float[5x4]", 0, 5).list(&[0, 1, 4]);
        merged.becomes(1, &[5, 3, 4]).gives("float[5x1x4]", 1, 1);
    }

    #[test]
    fn reshape_that_cuts_across_runs_mixes() {
        Case::new("Reshape").batched("float[2x1x3]", 1).list(&[3, 2]).mixes("float[3x2]");
        Case::new("Reshape").batched("float[1x6]", 0).same("int64[2]").mixes("float[1x6]");
        Case::new("Reshape").batched("float[1x6]", 0).batched("int64[2]", 0).mixes("float[2x3]");
    }

    #[test]
    fn flatten_merges_on_either_side() {
        Case::new("Flatten").batched("float[1x8x2x2]", 0).gives("float[1x32]", 0, 1);
        Case::new("Flatten").batched("float[1x8x2x2]", 0).int("axis", 0).gives("float[1x32]", 1, 1);
        Case::new("Flatten").batched("float[5x1x4]", 1).int("axis", 2).gives("float[5x4]", 0, 5);
        Case::new("Flatten").batched("float[5x1x4]", 1).int("axis", -2).gives("float[5x4]", 1, 1);
    }

    #[test]
    fn squeeze_of_a_batch_of_one_is_a_reshape() {
        let case = || Case::new("Squeeze").batched("float[1x1x8]", 0);
        case().list(&[1]).gives("float[1x8]", 0, 1);
        case().list(&[0]).reshapes().gives("float[1x8]", 0, 1);
        case().none().reshapes().gives("float[8]", 0, 1);
        Case::new("Squeeze").batched("float[1x2x8]", 1).none().gives("float[2x8]", 0, 1);
    }

    #[test]
    fn axes_move() {
        Case::new("Unsqueeze").batched("float[1x8]", 0).list(&[0, 3]).gives("float[1x1x8x1]", 1, 1);
        Case::new("Unsqueeze").batched("float[1x8]", 0).list(&[-1]).gives("float[1x8x1]", 0, 1);
        Case::new("Transpose").batched("float[1x2x3]", 0).ints("perm", &[2, 0, 1]).gives("float[3x1x2]", 1, 1);
        Case::new("Transpose").merged("float[4x2x3]", 0, 2).gives("float[3x2x4]", 2, 2);
    }

    #[test]
    fn expand_keeps_the_batch() {
        let case = |shape: &[i64]| Case::new("Expand").batched("float[1x1x4]", 0).list(shape);
        case(&[1, 3, 4]).gives("float[1x3x4]", 0, 1);
        case(&[3, 4]).gives("float[1x3x4]", 0, 1);
        case(&[7, 1, 3, 4]).gives("float[7x1x3x4]", 1, 1);
        case(&[2, 3, 4]).mixes("float[2x3x4]");
        Case::new("Expand").batched("float[2x1]", 0).list(&[2, 4]).becomes(1, &[6, 4]).gives("float[2x4]", 0, 1);
        Case::new("Tile").batched("float[1x2]", 0).list(&[1, 4]).gives("float[1x8]", 0, 1);
        Case::new("Tile").batched("float[1x2]", 0).list(&[4, 1]).mixes("float[4x2]");
    }

    #[test]
    fn bit_cast_to_another_width_combines_neighbors() {
        Case::new("BitCast").batched("float[1x2]", 0).gives("uint8[1x8]", 0, 1);
        Case::new("BitCast").batched("float[2x1]", 1).mixes("uint8[2x4]");
        Case::new("BitCast").batched("float[2x1]", 1).gives("int32[2x1]", 1, 1);
    }
}
