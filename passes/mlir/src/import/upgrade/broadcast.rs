//! Broadcasting before opset 7, which adopted numpy's: the second operand was fitted into the first, on request only, and
//! starting at any axis.

use super::{Form, Result, Translator, Upgraded, ValueId, ints, rank, tensor};
use divi_onnx::{Attributes, node::normalize_axis};

/// Without 'axis' the last axes are matched, which is numpy's way; without 'broadcast' the shapes are the same, and
/// 'axis' says nothing.
pub(super) fn elementwise<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    let broadcasts = form.take_int("broadcast")?.unwrap_or(0) != 0;
    // -1 stood for no axis.
    let axis = form.take_int("axis")?.filter(|&axis| broadcasts && axis != -1);
    if let Some(axis) = axis {
        form.takes(2..=2, t.opset)?;
        let (a, b) = (form.operand(0)?, form.operand(1)?);
        if tensor(t, b)?.ty.rank() != Some(0) {
            form.inputs[1] = Some(align(t, a, b, axis)?);
        }
    }
    form.into_node()
}

/// The slope was one number for each channel, wherever it has one axis.
pub(super) fn prelu<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(2..=2, t.opset)?;
    let (x, slope) = (form.operand(0)?, form.operand(1)?);
    let ty = &tensor(t, slope)?.ty;
    // One number is for all channels, however it is shaped. Data of one axis have no channels to tell apart.
    let is_shared = ty.count() == Some(1);
    if !is_shared && rank(t, slope, "match it with channels")? == 1 && rank(t, x, "find its channels")? > 1 {
        form.inputs[1] = Some(align(t, x, slope, 1)?);
    }
    form.into_node()
}

/// That the third operand may be broadcast had to be said; it was broadcast as it is now.
pub(super) fn gemm<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.take_int("broadcast")?;
    form.into_node()
}

/// Appends axes to `b`, so that its first lies under `axis` of `a`.
fn align(t: &mut Translator<'_, '_>, a: ValueId, b: ValueId, axis: i64) -> Result<ValueId> {
    let why = "broadcast along an axis";
    let (whole, part) = (rank(t, a, why)?, rank(t, b, why)?);
    let start = normalize_axis(axis, whole).map_err(|error| error.to_string())?;
    let Some(appended) = (whole - start).checked_sub(part) else {
        return Err(format!("broadcasts an operand of rank {part} from axis {axis} of one of rank {whole}"));
    };
    if appended == 0 {
        return Ok(b);
    }
    let axes: Vec<_> = (part..part + appended).map(|axis| axis as i64).collect();
    let axes = ints(t, &axes);
    t.apply("Unsqueeze", &[Some(b), Some(axes)], Attributes::default())
}
