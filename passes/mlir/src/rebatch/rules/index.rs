//! Operators that read or write elements at indices.

use super::{Change, Flow, Site};
use crate::rebatch::layout::Layout;
use divi_onnx::{Tensor, node::normalize_axis};

/// Follows the batch through Gather: each index selects a slice of a table, or all of them select slices of every run.
pub(super) fn gather(site: &Site<'_>) -> Option<Flow> {
    let axis = site.axis("axis", 0, 0)?;
    let at = match (site.batch(0), site.batch(1)) {
        (Some(data), None) if data.axis < axis => data,
        (Some(data), None) if data.axis > axis => data.on(data.axis + site.rank(1)? - 1),
        (None, Some(indices)) => indices.on(axis + indices.axis),
        (Some(data), None) => return gather_from_each(site, data),
        _ => return None,
    };
    Some(Flow::all(site, at, vec![]))
}

/// Maximum number of indices in a constant for all runs.
const MAX_INDICES: i64 = 1 << 24;

/// Follows the batch through Gather along it, with known indices: the elements of each run are selected at their new
/// positions.
fn gather_from_each(site: &Site<'_>, at: Layout) -> Option<Flow> {
    let size = site.shape(0)?.get(at.axis)?.known()?;
    let rest = size / at.outer;
    let indices = site.ints(1)?;
    let ty = &site.node.optional(1)?.ty;
    let mut dims = ty.static_shape()?;
    let first = dims.first_mut()?;
    *first = first.checked_mul(site.factor)?;
    let count = i64::try_from(indices.len()).ok()?.checked_mul(site.factor)?;
    if count > MAX_INDICES || size.checked_mul(site.factor).is_none() {
        return None;
    }
    let mut moved = Vec::with_capacity(count as usize);
    for run in 0..site.factor {
        for &index in &indices {
            let index = if index < 0 { index + size } else { index };
            if !(0..size).contains(&index) {
                return None;
            }
            let (part, within) = (index / rest, index % rest);
            moved.push((part * site.factor + run) * rest + within);
        }
    }
    let tensor = Tensor::from_ints(ty.dtype, dims, &moved)?;
    // A narrow index type may not hold the new positions.
    if tensor.ints()? != moved {
        return None;
    }
    Some(Flow::all(site, Layout::of(at.axis), vec![(1, Change::Constant(tensor))]))
}

/// Follows the batch through GatherElements and ScatterElements along another axis, where elements and indices have the
/// same position.
pub(super) fn elements(site: &Site<'_>) -> Option<Flow> {
    let (_, at) = site.leader()?;
    if site.axis("axis", 0, 0)? == at.axis {
        return None;
    }
    let (layout, changes) = site.shared(&vec![Some(at.axis); site.node.inputs.len()], false)?;
    // With fewer indices than data, runs would not be aligned.
    let sizes = (0..site.node.inputs.len()).map(|operand| site.shape(operand).and_then(|shape| shape.get(at.axis)));
    let mut sizes = sizes.collect::<Option<Vec<_>>>()?.into_iter();
    let first = sizes.next()?;
    sizes.all(|size| size == first).then(|| Flow::all(site, layout, changes))
}

/// Follows the batch through GatherND: the indices must not select from its axis, unless it is one of `batch_dims`.
pub(super) fn gather_nd(site: &Site<'_>) -> Option<Flow> {
    let batch_dims = usize::try_from(site.node.int_or("batch_dims", 0).ok()?).ok()?;
    let (data_rank, index_rank) = (site.rank(0)?, site.rank(1)?);
    let depth = usize::try_from(site.shape(1)?.last()?.known()?).ok()?;
    let (_, at) = site.leader()?;
    if at.axis < batch_dims {
        let (layout, changes) = site.shared(&[Some(at.axis), Some(at.axis)], false)?;
        return Some(Flow::all(site, layout, changes));
    }
    match (site.batch(0), site.batch(1)) {
        (Some(data), None) if data.axis >= batch_dims + depth && data.axis < data_rank => {
            Some(Flow::all(site, data.on(index_rank - 1 + data.axis - batch_dims - depth), vec![]))
        }
        (None, Some(indices)) if indices.axis + 1 < index_rank => Some(Flow::all(site, indices, vec![])),
        _ => None,
    }
}

/// Follows the batch through ScatterND: it is an axis of the data that indices do not select from, and of the updates.
pub(super) fn scatter_nd(site: &Site<'_>) -> Option<Flow> {
    let index_rank = site.rank(1)?;
    let depth = usize::try_from(site.shape(1)?.last()?.known()?).ok()?;
    let data_axis = match (site.batch(0), site.batch(2)) {
        (Some(data), _) => data.axis,
        (None, Some(updates)) => (updates.axis + depth + 1).checked_sub(index_rank)?,
        (None, None) => return None,
    };
    let update_axis = (index_rank + data_axis).checked_sub(1 + depth)?;
    if data_axis < depth {
        return None;
    }
    let (layout, changes) = site.shared(&[Some(data_axis), None, Some(update_axis)], false)?;
    Some(Flow::all(site, layout.on(data_axis), changes))
}

/// Follows the batch of the indices through OneHot, which adds an axis.
pub(super) fn one_hot(site: &Site<'_>) -> Option<Flow> {
    let at: Layout = site.only_first()?;
    let new = normalize_axis(site.node.int_or("axis", -1).ok()?, site.rank(0)? + 1).ok()?;
    Some(Flow::all(site, at.on(at.axis + usize::from(at.axis >= new)), vec![]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    #[test]
    fn gather_from_a_table_or_from_runs() {
        Case::new("Gather").same("float[9x8]").batched("int64[1x5]", 0).gives("float[1x5x8]", 0, 1);
        Case::new("Gather").same("float[9x8]").batched("int64[1x5]", 0).int("axis", 1).gives("float[9x1x5]", 1, 1);
        let case = |axis| Case::new("Gather").batched("float[1x9x8]", 0).same("int64[2x2]").int("axis", axis);
        case(1).gives("float[1x2x2x8]", 0, 1);
        case(0).mixes("float[2x2x9x8]");
        let behind = Case::new("Gather").batched("float[9x8x1]", 2).same("int64[]").int("axis", 0);
        behind.gives("float[8x1]", 1, 1);
        Case::new("Gather").batched("float[1x9]", 0).batched("int64[1]", 0).mixes("float[1x1]");
    }

    #[test]
    fn known_indices_along_the_batch_move_with_the_runs() {
        let case = |outer| Case::new("Gather").merged("float[4x1]", 0, outer);
        case(1).list(&[0, -1]).becomes(1, &[0, 3, 4, 7, 8, 11]).gives("float[2x1]", 0, 1);
        // Two parts of two elements, with the other runs between them.
        case(2).list(&[0, 3]).becomes(1, &[0, 7, 2, 9, 4, 11]).gives("float[2x1]", 0, 1);
        case(1).scalar(0).mixes("float[1]");
        case(1).list(&[4]).mixes("float[1x1]");
        case(1).same("int64[2]").mixes("float[2x1]");
    }

    #[test]
    fn elements_stay_in_their_run() {
        let case = |axis| Case::new("GatherElements").batched("float[1x9]", 0).int("axis", axis);
        case(1).batched("int64[1x3]", 0).gives("float[1x3]", 0, 1);
        case(1).same("int64[1x3]").spreads(1, 0).gives("float[1x3]", 0, 1);
        case(0).batched("int64[1x3]", 0).mixes("float[1x3]");
        let fewer = Case::new("GatherElements").batched("float[2x9]", 0).int("axis", 1).same("int64[1x3]");
        fewer.mixes("float[1x3]");
        let scatter = Case::new("ScatterElements").batched("float[1x9]", 0).same("int64[1x3]").same("float[1x3]");
        scatter.int("axis", 1).spreads(1, 0).spreads(2, 0).gives("float[1x9]", 0, 1);
    }

    #[test]
    fn indices_of_several_axes() {
        let case = |dims| Case::new("GatherND").batched("float[1x4x5x6]", 0).int("batch_dims", dims);
        case(1).batched("int64[1x7x2]", 0).gives("float[1x7x6]", 0, 1);
        case(0).same("int64[7x2]").mixes("float[7x5x6]");
        let behind = Case::new("GatherND").batched("float[4x5x1]", 2).same("int64[7x3x2]");
        behind.gives("float[7x3x1]", 2, 1);
        let table = Case::new("GatherND").same("float[4x5]").batched("int64[1x2]", 0);
        table.gives("float[1x5]", 0, 1);
        Case::new("GatherND").same("float[4x5]").batched("int64[3x1]", 1).mixes("float[3x5]");
        let scatter = Case::new("ScatterND").batched("float[4x1]", 1).same("int64[2x1]").same("float[2x1]");
        scatter.spreads(2, 1).gives("float[4x1]", 1, 1);
        Case::new("ScatterND").batched("float[1x4]", 0).same("int64[2x1]").same("float[2x4]").mixes("float[1x4]");
    }

    #[test]
    fn one_hot_adds_an_axis() {
        let case =
            |axis| Case::new("OneHot").batched("int64[1x5]", 0).same("int64[]").same("float[2]").int("axis", axis);
        case(-1).gives("float[1x5x9]", 0, 1);
        case(0).gives("float[9x1x5]", 1, 1);
    }
}
