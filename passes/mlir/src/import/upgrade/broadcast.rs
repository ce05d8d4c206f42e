//! Broadcasting before opset 7, which adopted numpy's: the second operand was broadcast to the first, only on request,
//! and starting at any axis.

use super::{Form, Result, Translator, Upgraded, ValueId, ints, rank, tensor};
use divi_onnx::{Attributes, node::normalize_axis};

/// Upgrades element-wise operators. Without 'axis', trailing axes are matched, as in numpy; without 'broadcast', the
/// shapes are equal and 'axis' is ignored.
pub(super) fn elementwise<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    let broadcasts = form.take_int("broadcast")?.unwrap_or(0) != 0;
    // -1 meant no axis.
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

/// Upgrades PRelu: a slope of rank 1 had one number per channel.
pub(super) fn prelu<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(2..=2, t.opset)?;
    let (x, slope) = (form.operand(0)?, form.operand(1)?);
    let ty = &tensor(t, slope)?.ty;
    // A single number is for all channels, whatever its shape. Data of rank 1 have no channels.
    let is_shared = ty.count() == Some(1);
    if !is_shared && rank(t, slope, "match it with channels")? == 1 && rank(t, x, "find its channels")? > 1 {
        form.inputs[1] = Some(align(t, x, slope, 1)?);
    }
    form.into_node()
}

/// Upgrades Gemm: broadcasting of the third operand was the same, but had to be requested.
pub(super) fn gemm<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.take_int("broadcast")?;
    form.into_node()
}

/// Appends axes to `b`, so that its first is aligned with `axis` of `a`.
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
