//! Operators that slice or concatenate tensors, or change the size of an axis.

use super::{Flow, Site};
use divi_onnx::{
    Op,
    node::{normalize_axes, normalize_axis},
};

/// Follows the batch through Concat along another axis; tensors that all runs share are repeated.
pub(super) fn concat(site: &Site<'_>) -> Option<Flow> {
    let (leader, at) = site.leader()?;
    let axis = normalize_axis(site.node.int("axis").ok()??, site.rank(leader)?).ok()?;
    if axis == at.axis {
        return None;
    }
    let (layout, changes) = site.shared(&vec![Some(at.axis); site.node.inputs.len()], false)?;
    Some(Flow::all(site, layout, changes))
}

pub(super) fn split(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    (site.axis("axis", 0, 0)? != at.axis).then(|| Flow::all(site, at, vec![]))
}

/// Follows the batch through Slice, which must take all of it.
pub(super) fn slice(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let rank = site.rank(0)?;
    let axes = match site.node.optional(3) {
        Some(_) => normalize_axes(&site.ints(3)?, rank).ok()?,
        None => (0..site.node.optional(1)?.ty.count().and_then(|count| usize::try_from(count).ok())?).collect(),
    };
    let Some(entry) = axes.iter().position(|&axis| axis == at.axis) else {
        return Some(Flow::all(site, at, vec![]));
    };
    let size = site.shape(0)?[at.axis].known()?;
    let (start, end) = (*site.ints(1)?.get(entry)?, *site.ints(2)?.get(entry)?);
    let step = match site.node.optional(4) {
        Some(_) => *site.ints(4)?.get(entry)?,
        None => 1,
    };
    let from_front = |position: i64| if position < 0 { position.saturating_add(size) } else { position };
    if step != 1 || from_front(start) > 0 || from_front(end) < size {
        return None;
    }
    let all = size.checked_mul(site.factor)?;
    let mut changes = site.with_element(1, entry, 0)?;
    if end < all {
        changes.extend(site.with_element(2, entry, all)?);
    }
    Some(Flow::all(site, at, changes))
}

/// Follows the batch through Pad of other axes. In every mode, added elements depend only on elements of the same run.
pub(super) fn pad(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let rank = site.rank(0)?;
    let pads = site.ints(1)?;
    let axes = match site.node.optional(3) {
        Some(_) => normalize_axes(&site.ints(3)?, rank).ok()?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return None;
    }
    let untouched = |entry: usize| pads[entry] == 0 && pads[entry + axes.len()] == 0;
    let fits = axes.iter().position(|&axis| axis == at.axis).is_none_or(untouched);
    fits.then(|| Flow::all(site, at, vec![]))
}

/// Returns the axes that an operator with the attribute `axes` changes: all of them by default.
fn named_axes(site: &Site<'_>) -> Option<Vec<usize>> {
    let rank = site.rank(0)?;
    match site.node.ints("axes").ok()? {
        Some(axes) => normalize_axes(axes, rank).ok(),
        None => Some((0..rank).collect()),
    }
}

/// Follows the batch through Resize with scale 1 on it, so that in every coordinate mode each run depends only on
/// itself.
pub(super) fn resize(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    // A region of interest includes fractions of the batch.
    if site.node.str("coordinate_transformation_mode").ok()? == Some("tf_crop_and_resize") {
        return None;
    }
    let axes = named_axes(site)?;
    let Some(entry) = axes.iter().position(|&axis| axis == at.axis) else {
        return Some(Flow::all(site, at, vec![]));
    };
    let (scales, sizes) = if site.node.op == Op::Upsample { (1, None) } else { (2, Some(3)) };
    if let Some(factors) = site.node.floats_of(scales).filter(|factors| !factors.is_empty()) {
        return (*factors.get(entry)? == 1.0).then(|| Flow::all(site, at, vec![]));
    }
    let size = site.shape(0)?[at.axis].known()?;
    if *site.ints(sizes?)?.get(entry)? != size {
        return None;
    }
    let changes = site.with_element(sizes?, entry, size.checked_mul(site.factor)?)?;
    Some(Flow::all(site, at, changes))
}

pub(super) fn center_crop_pad(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let axes = named_axes(site)?;
    let Some(entry) = axes.iter().position(|&axis| axis == at.axis) else {
        return Some(Flow::all(site, at, vec![]));
    };
    let size = site.shape(0)?[at.axis].known()?;
    if *site.ints(1)?.get(entry)? != size {
        return None;
    }
    let changes = site.with_element(1, entry, size.checked_mul(site.factor)?)?;
    Some(Flow::all(site, at, changes))
}

/// Follows the batch through Compress along another axis; without an axis, it selects from all elements.
pub(super) fn compress(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let axis = normalize_axis(site.node.int("axis").ok()??, site.rank(0)?).ok()?;
    (axis != at.axis).then(|| Flow::all(site, at, vec![]))
}

/// Follows the batch through ReverseSequence: lengths are per element of the batch axis, and runs on a third axis share
/// them.
pub(super) fn reverse_sequence(site: &Site<'_>) -> Option<Flow> {
    let (_, at) = site.leader()?;
    let (batch_axis, time_axis) = (site.axis("batch_axis", 1, 0)?, site.axis("time_axis", 0, 0)?);
    let axis = if site.batch(1).is_some() { batch_axis } else { at.axis };
    if axis == time_axis {
        return None;
    }
    let lengths = (axis == batch_axis).then_some(0);
    let (layout, changes) = site.shared(&[Some(axis), lengths], false)?;
    Some(Flow::all(site, layout.on(axis), changes))
}

/// Follows the batch through TensorScatter: each row of a cache is written at its own position, by default at 0.
pub(super) fn tensor_scatter(site: &Site<'_>) -> Option<Flow> {
    let (layout, changes) = site.shared(&[Some(0), Some(0), Some(0)], false)?;
    Some(Flow::all(site, layout.on(0), changes))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    #[test]
    fn concat_along_another_axis() {
        let case = |axis| Case::new("Concat").batched("float[1x2]", 0).int("axis", axis);
        case(1).batched("float[1x3]", 0).gives("float[1x5]", 0, 1);
        case(-1).same("float[1x3]").spreads(1, 0).gives("float[1x5]", 0, 1);
        case(0).batched("float[1x2]", 0).mixes("float[2x2]");
        case(0).same("float[7x2]").mixes("float[8x2]");
        case(1).batched("float[1x3]", 1).mixes("float[1x5]");
    }

    #[test]
    fn slice_of_all_of_the_batch() {
        let case = |starts: &[i64], ends: &[i64]| Case::new("Slice").batched("float[1x8]", 0).list(starts).list(ends);
        case(&[2], &[4]).list(&[1]).list(&[1]).gives("float[1x2]", 0, 1);
        case(&[0, 2], &[1, 4]).none().none().becomes(2, &[3, 4]).gives("float[1x2]", 0, 1);
        case(&[0], &[i64::MAX]).list(&[0]).none().gives("float[1x8]", 0, 1);
        case(&[-1], &[5]).list(&[0]).none().becomes(1, &[0]).gives("float[1x8]", 0, 1);
        case(&[0], &[0]).list(&[0]).none().mixes("float[0x8]");
        case(&[0], &[1]).list(&[0]).list(&[-1]).mixes("float[1x8]");
        Case::new("Slice").batched("float[2x8]", 0).list(&[0]).list(&[1]).none().none().mixes("float[1x8]");
    }

    #[test]
    fn other_axes_change_size() {
        let pad = |pads: &[i64]| Case::new("Pad").batched("float[1x8]", 0).list(pads);
        pad(&[0, 1, 0, 1]).gives("float[1x10]", 0, 1);
        pad(&[1, 0, 0, 0]).mixes("float[2x8]");
        pad(&[1, 1]).same("float[]").list(&[1]).gives("float[1x10]", 0, 1);
        Case::new("Split").batched("float[1x8]", 0).none().int("axis", 1).gives("float[1x4]", 0, 1);
        Case::new("Split").batched("float[1x8]", 0).none().mixes("float[1x8]");
        let resize = || Case::new("Resize").batched("float[1x3x4x4]", 0).none();
        resize().floats(&[1.0, 1.0, 2.0, 2.0]).gives("float[1x3x8x8]", 0, 1);
        resize().floats(&[2.0, 1.0, 2.0, 2.0]).mixes("float[2x3x8x8]");
        resize().none().list(&[1, 3, 8, 8]).becomes(3, &[3, 3, 8, 8]).gives("float[1x3x8x8]", 0, 1);
        resize().none().list(&[8, 8]).ints("axes", &[2, 3]).gives("float[1x3x8x8]", 0, 1);
    }

    #[test]
    fn lengths_go_with_the_batch() {
        let case = || Case::new("ReverseSequence").batched("float[5x1x2]", 1);
        case().same("int64[1]").spreads(1, 0).gives("float[5x1x2]", 1, 1);
        case().batched("int64[1]", 0).gives("float[5x1x2]", 1, 1);
        Case::new("ReverseSequence").batched("float[5x1x2]", 0).same("int64[1]").mixes("float[5x1x2]");
        let third = Case::new("ReverseSequence").batched("float[5x4x1]", 2).same("int64[4]");
        third.gives("float[5x4x1]", 2, 1);
    }
}
