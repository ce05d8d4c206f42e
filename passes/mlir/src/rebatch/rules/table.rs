//! Operators that define the axis of the batch: convolutions, pools, normalization, attention, recurrence.

use super::{Flow, Site};
use crate::rebatch::layout::Layout;

/// Follows the batch through operators that have it as the first axis of some operands and of every result.
pub(super) fn in_front(site: &Site<'_>, axes: &[Option<usize>]) -> Option<Flow> {
    let (layout, changes) = site.shared(axes, false)?;
    Some(Flow::all(site, layout.on(0), changes))
}

/// Follows the batch through Attention: the mask broadcasts to the scores, whose first axis is the batch.
pub(super) fn attention(site: &Site<'_>) -> Option<Flow> {
    let mut axes = [Some(0); 7];
    let broadcasts = match site.shape(3) {
        Some(&[first, _, _, _]) => site.batch(3).is_none() && first.known() == Some(1),
        _ => true,
    };
    if broadcasts {
        axes[3] = None;
    }
    in_front(site, &axes)
}

/// Follows the batch through a loss without reduction; a mean or sum would combine all inputs.
pub(super) fn loss(site: &Site<'_>) -> Option<Flow> {
    if site.node.str_or("reduction", "mean").ok()? != "none" {
        return None;
    }
    in_front(site, &[Some(0), Some(0)])
}

/// Follows the batch through pooling, which keeps images and channels independent.
pub(super) fn pool(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    (at.axis < 2).then(|| Flow::all(site, at, vec![]))
}

/// Follows the batch through an operator with parameters per channel, if it is not the channels.
pub(super) fn not_channels(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    (at.axis != 1).then(|| Flow::all(site, at, vec![]))
}

/// Follows the batch through AffineGrid, whose size operand contains the number of images.
pub(super) fn affine_grid(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first().filter(|at| at.axis == 0)?;
    let size = site.shape(0)?.first()?.known()?;
    let changes = site.with_element(1, 0, size.checked_mul(site.factor)?)?;
    Some(Flow::all(site, at, changes))
}

/// Follows the batch through quantization: scales are for all elements, for another axis, or for blocks along one.
pub(super) fn quantize(site: &Site<'_>) -> Option<Flow> {
    let at = site.only_first()?;
    let scale = site.shape(1)?;
    if scale.is_empty() || site.node.optional(1)?.ty.count() == Some(1) && scale.len() == 1 {
        return Some(Flow::all(site, at, vec![]));
    }
    if site.axis("axis", 1, 0)? == at.axis {
        return None;
    }
    if scale.len() == 1 {
        return Some(Flow::all(site, at, vec![]));
    }
    let own = Some(at.axis);
    let (layout, changes) = site.shared(&[own, own, own], false)?;
    Some(Flow::all(site, layout, changes))
}

/// Follows the batch through recurrent operators: sequences, their lengths and states are independent.
pub(super) fn recurrent(site: &Site<'_>) -> Option<Flow> {
    let batch_first = site.node.flag("layout", false).ok()?;
    let (x, y, state) = if batch_first { (0, 0, 0) } else { (1, 2, 1) };
    let axes = [Some(x), None, None, None, Some(0), Some(state), Some(state)];
    let (layout, changes) = site.shared(&axes, false)?;
    let result = |i: usize| Some(Layout { axis: if i == 0 { y } else { state }, ..layout });
    Some(Flow { results: (0..site.results.len()).map(result).collect(), changes, as_reshape: false })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;
    use crate::rebatch::layout::Layout;

    #[test]
    fn images_are_independent() {
        let conv = |axis| Case::new("Conv").batched("float[1x3x8x8]", axis).same("float[4x3x1x1]").none();
        conv(0).gives("float[1x4x8x8]", 0, 1);
        conv(1).mixes("float[1x4x8x8]");
        Case::new("Conv").batched("float[1x3x8x8]", 0).batched("float[4x3x1x1]", 0).mixes("float[1x4x8x8]");
        Case::new("GlobalAveragePool").batched("float[1x3x8x8]", 1).gives("float[1x3x1x1]", 1, 1);
        Case::new("AveragePool").batched("float[1x3x8x8]", 2).mixes("float[1x3x4x4]");
        let pool = || Case::new("MaxPool").batched("float[1x3x8x8]", 0);
        pool().gives("float[1x3x4x4]", 0, 1);
        Case::new("GridSample").batched("float[1x3x8x8]", 0).same("float[1x4x4x2]").spreads(1, 0).gives(
            "float[1x3x4x4]",
            0,
            1,
        );
        Case::new("AffineGrid").batched("float[1x2x3]", 0).list(&[1, 3, 8, 8]).becomes(1, &[3, 3, 8, 8]).gives(
            "float[1x8x8x2]",
            0,
            1,
        );
    }

    #[test]
    fn normalization() {
        let norm = |op, axis| {
            let case = Case::new(op).batched("float[1x3x8x8]", axis).same("float[3]").same("float[3]");
            case.same("float[3]").same("float[3]")
        };
        norm("BatchNormalizationInferenceMode", 0).gives("float[1x3x8x8]", 0, 1);
        norm("BatchNormalizationInferenceMode", 2).gives("float[1x3x8x8]", 2, 1);
        norm("BatchNormalizationInferenceMode", 1).mixes("float[1x3x8x8]");
        norm("BatchNormalization", 0).int("training_mode", 1).mixes("float[1x3x8x8]");
        let instance = |axis| Case::new("InstanceNormalization").batched("float[1x3x8]", axis);
        instance(0).same("float[3]").same("float[3]").gives("float[1x3x8]", 0, 1);
        instance(1).same("float[3]").same("float[3]").mixes("float[1x3x8]");
    }

    #[test]
    fn attention_of_each_input() {
        let case = || {
            let qk = Case::new("Attention").batched("float[1x9x4x8]", 0).batched("float[1x3x6x8]", 0);
            qk.batched("float[1x3x6x8]", 0)
        };
        case().gives("float[1x9x4x8]", 0, 1);
        case().same("float[4x6]").gives("float[1x9x4x8]", 0, 1);
        case().same("float[1x1x4x6]").gives("float[1x9x4x8]", 0, 1);
        case().batched("float[1x1x4x6]", 0).gives("float[1x9x4x8]", 0, 1);
        case().batched("float[1x4x6]", 0).mixes("float[1x9x4x8]");
        let rotary = Case::new("RotaryEmbedding").batched("float[1x2x4x8]", 0).same("float[50x4]").same("float[50x4]");
        rotary.same("int64[1x4]").spreads(3, 0).gives("float[1x2x4x8]", 0, 1);
    }

    #[test]
    fn sequences_are_independent() {
        let case = |x, axis| Case::new("GRU").batched(x, axis).same("float[1x15x2]").same("float[1x15x5]");
        let results = &["float[7x1x1x5]", "float[1x1x5]"];
        case("float[7x1x2]", 1).gives_all(results, &[Layout::of(2), Layout::of(1)]);
        let state = case("float[7x1x2]", 1).none().none().same("float[1x1x5]").spreads(5, 1);
        state.gives_all(results, &[Layout::of(2), Layout::of(1)]);
        case("float[7x1x2]", 0).mixes("float[7x1x1x5]");
        case("float[1x7x2]", 0).int("layout", 1).gives("float[1x7x1x5]", 0, 1);
    }

    #[test]
    fn scales_of_other_axes() {
        let case = |scale| Case::new("QuantizeLinear").batched("float[1x4x6]", 0).same(scale).none();
        case("float[]").gives("uint8[1x4x6]", 0, 1);
        case("float[4]").gives("uint8[1x4x6]", 0, 1);
        case("float[1x2x6]").int("block_size", 2).spreads(1, 0).gives("uint8[1x4x6]", 0, 1);
        Case::new("QuantizeLinear").batched("float[1x4x6]", 1).same("float[4]").none().mixes("uint8[1x4x6]");
    }

    #[test]
    fn losses_of_each_input() {
        let case = || Case::new("NegativeLogLikelihoodLoss").batched("float[1x5]", 0).batched("int64[1]", 0);
        case().str("reduction", "none").gives("float[1]", 0, 1);
        case().mixes("float[]");
    }
}
