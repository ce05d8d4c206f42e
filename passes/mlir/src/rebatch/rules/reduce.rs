//! Operators that combine elements along some axes, which must not include the batch.

use super::{Flow, Site};
use divi_onnx::node::{normalize_axes, normalize_axis};

/// Follows the batch through an operator that combines the elements of another axis, and whose results have the
/// operand's axes.
pub(super) fn along(site: &Site<'_>, axis: Option<usize>) -> Option<Flow> {
    let at = site.only_first()?;
    (axis? != at.axis).then(|| Flow::all(site, at, vec![]))
}

/// Returns an axis that is an operand.
pub(super) fn operand_axis(site: &Site<'_>, operand: usize) -> Option<usize> {
    match site.ints(operand)?[..] {
        [axis] => normalize_axis(axis, site.rank(0)?).ok(),
        _ => None,
    }
}

pub(super) fn reduce(site: &Site<'_>) -> Option<Flow> {
    let rank = site.rank(0)?;
    let axes = match site.node.optional(1) {
        Some(_) => normalize_axes(&site.ints(1)?, rank).ok()?,
        None => vec![],
    };
    let axes = match axes[..] {
        [] if !site.node.flag("noop_with_empty_axes", false).ok()? => return None,
        _ => axes,
    };
    without(site, &axes, site.node.flag("keepdims", true).ok()?)
}

/// Follows the batch through a reduction of other axes, which are removed from the result unless they are kept.
pub(super) fn without(site: &Site<'_>, axes: &[usize], keeps: bool) -> Option<Flow> {
    let at = site.only_first()?;
    if axes.contains(&at.axis) {
        return None;
    }
    let gone = if keeps { 0 } else { axes.iter().filter(|&&axis| axis < at.axis).count() };
    Some(Flow::all(site, at.on(at.axis - gone), vec![]))
}

/// Follows the batch through DFT of another axis; the last axis has the parts of a complex number.
pub(super) fn dft(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let rank = site.rank(0)?;
    let axis = match site.node.optional(2) {
        Some(_) => operand_axis(site, 2)?,
        None => rank.checked_sub(2)?,
    };
    (at.axis != axis && at.axis + 1 != rank).then(|| Flow::all(site, at, vec![]))
}

pub(super) fn mean_variance(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let axes = site.node.ints("axes").ok()?.unwrap_or(&[0, 2, 3]);
    let axes = normalize_axes(axes, site.rank(0)?).ok()?;
    (!axes.contains(&at.axis)).then(|| Flow::all(site, at, vec![]))
}

/// Follows the batch through LayerNormalization of later axes; scale and bias broadcast.
pub(super) fn layer_normalization(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let rank = site.rank(0)?;
    if at.axis >= site.axis("axis", -1, 0)? {
        return None;
    }
    let broadcasts = |operand: usize| match site.shape(operand) {
        Some(shape) => (at.axis + shape.len()).checked_sub(rank).is_none_or(|axis| shape[axis].known() == Some(1)),
        None => site.node.optional(operand).is_none(),
    };
    (broadcasts(1) && broadcasts(2)).then(|| Flow::all(site, at, vec![]))
}

/// Follows the batch through an operator that combines only the last axes.
pub(super) fn in_front_of(site: &Site<'_>, last: usize) -> Option<Flow> {
    let at = site.only_first()?;
    (at.axis + last < site.rank(0)?).then(|| Flow::all(site, at, vec![]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;
    use crate::rebatch::layout::Layout;

    #[test]
    fn reductions_of_other_axes() {
        let case = |axes: &[i64]| Case::new("ReduceMean").batched("float[2x1x3]", 1).list(axes);
        case(&[-1]).gives("float[2x1x1]", 1, 1);
        case(&[0, 2]).int("keepdims", 0).gives("float[1]", 0, 1);
        case(&[1]).mixes("float[2x1x3]");
        case(&[]).mixes("float[1x1x1]");
        case(&[]).int("noop_with_empty_axes", 1).gives("float[2x1x3]", 1, 1);
        Case::new("ReduceMean").batched("float[1x3]", 0).none().mixes("float[1x1]");
        Case::new("ArgMax").batched("float[1x3]", 0).int("axis", 1).int("keepdims", 0).gives("int64[1]", 0, 1);
        Case::new("ArgMax").batched("float[1x3]", 0).mixes("int64[1x3]");
    }

    #[test]
    fn operators_along_an_axis() {
        Case::new("Softmax").batched("float[1x3]", 0).gives("float[1x3]", 0, 1);
        Case::new("Softmax").batched("float[1x3]", 0).int("axis", 0).mixes("float[1x3]");
        Case::new("CumSum").batched("float[1x3]", 0).scalar(1).gives("float[1x3]", 0, 1);
        Case::new("CumSum").batched("float[1x3]", 0).scalar(-2).mixes("float[1x3]");
        Case::new("Trilu").batched("float[1x3x3]", 0).gives("float[1x3x3]", 0, 1);
        Case::new("Trilu").batched("float[1x3x3]", 1).mixes("float[1x3x3]");
        Case::new("DFT").batched("float[1x8x1]", 0).none().none().gives("float[1x8x2]", 0, 1);
        Case::new("MeanVarianceNormalization").batched("float[1x3x2x2]", 0).mixes("float[1x3x2x2]");
    }

    #[test]
    fn layer_normalization_of_axes_after_the_batch() {
        let case = |axis| Case::new("LayerNormalization").batched("float[1x5x8]", axis).same("float[8]");
        let results = &["float[1x5x8]", "float[1x5x1]", "float[1x5x1]"];
        case(0).none().gives_all(results, &[Layout::of(0); 3]);
        case(1).same("float[8]").gives("float[1x5x8]", 1, 1);
        case(2).none().mixes("float[1x5x8]");
        let wide = Case::new("LayerNormalization").batched("float[2x5x8]", 0).same("float[2x5x8]");
        wide.none().mixes("float[2x5x8]");
    }
}
