//! Pooling, resizing and sampling.

use super::{Form, Result, Translator, Upgraded, ValueId, constant, inexpressible, lacks, tensor};
use divi_onnx::{Attr, DType, Dim, Tensor};

/// Renames a MaxPool without indices, for which the dialect has another operation.
pub(super) fn max_pool<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    // Otherwise keep the operator for the check of its arity; the other one has no schema.
    if form.inputs.len() == 1 && form.has(0) && form.outputs <= 1 {
        form.op = "MaxPoolSingleOut";
    }
    form.into_node()
}

/// Upgrades LpPool: the exponent was a float in opset 1.
pub(super) fn lp_pool<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    if let Some(p) = form.take_float("p")? {
        if p.fract() != 0.0 || !(1.0..=1e6).contains(&p) {
            return Err(inexpressible(&format!("has p={p}"), t.opset));
        }
        form.attributes.push("p", Attr::Int(p as i64));
    }
    form.into_node()
}

/// Upgrades Upsample to Resize. Scales were two attributes in opset 1, one since opset 7 and an operand since opset 9.
pub(super) fn upsample<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(if t.opset < 9 { 1..=1 } else { 2..=2 }, t.opset)?;
    let scales = match t.opset {
        ..7 => {
            let height = form.take_float("height_scale")?.ok_or_else(|| lacks("height_scale", t.opset))?;
            let width = form.take_float("width_scale")?.ok_or_else(|| lacks("width_scale", t.opset))?;
            scales_operand(t, &[1.0, 1.0, height, width])
        }
        7..9 => {
            let scales = form.take_floats("scales")?.ok_or_else(|| lacks("scales", t.opset))?;
            scales_operand(t, &scales)
        }
        _ => form.operand(1)?,
    };
    resize_by(form, scales, || Ok("floor"))
}

fn scales_operand(t: &mut Translator<'_, '_>, scales: &[f32]) -> ValueId {
    let values: Vec<_> = scales.iter().copied().map(f64::from).collect();
    let tensor = Tensor::from_floats(DType::F32, vec![scales.len() as i64], &values);
    constant(t, tensor.expect("the count is the only dimension"))
}

/// Upgrades Resize. Opset 10 resized as Upsample did. Opsets 11 and 12 had an empty tensor for an absent operand.
pub(super) fn resize<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    if t.opset < 11 {
        form.takes(2..=2, t.opset)?;
        let scales = form.operand(1)?;
        return resize_by(form, scales, || rounding(t, scales));
    }
    form.takes(3..=4, t.opset)?;
    for input in &mut form.inputs[1..3] {
        if let Some(id) = *input
            && tensor(t, id)?.ty.shape.as_deref() == Some(&[Dim::Known(0)])
        {
            *input = None;
        }
    }
    form.into_node()
}

/// Returns the rounding of opset 10 for the nearest element: down if it enlarged, which is assumed for scales that are
/// not constant, and up if it shrank. The specification did not define it, but its test cases did.
fn rounding(t: &Translator<'_, '_>, scales: ValueId) -> Result<&'static str> {
    let scales = tensor(t, scales)?.tensor().and_then(Tensor::floats).unwrap_or_default();
    let (enlarges, shrinks) = (scales.iter().any(|&scale| scale > 1.0), scales.iter().any(|&scale| scale < 1.0));
    match (enlarges, shrinks) {
        (_, false) => Ok("floor"),
        (false, true) => Ok("ceil"),
        (true, true) => Err(inexpressible("enlarges along one axis and shrinks along another", t.opset)),
    }
}

/// Resizes as Upsample and opset 10 did: a coordinate is divided by the scale, and rounded for the nearest element.
fn resize_by<'o>(
    mut form: Form<'o>,
    scales: ValueId,
    rounding: impl FnOnce() -> Result<&'static str>,
) -> Result<Upgraded<'o>> {
    let x = form.operand(0)?;
    let mode = match form.take_str("mode")?.as_deref() {
        None | Some("nearest") => "nearest",
        // The name in opset 1.
        Some("linear" | "bilinear") => "linear",
        Some(other) => return Err(format!("has mode '{other}', takes nearest or linear")),
    };
    form.attributes.push("mode", Attr::Str(mode.into()));
    form.attributes.push("coordinate_transformation_mode", Attr::Str("asymmetric".into()));
    if mode == "nearest" {
        form.attributes.push("nearest_mode", Attr::Str(rounding()?.into()));
    }
    form.inputs = vec![Some(x), None, Some(scales)];
    form.op = "Resize";
    form.into_node()
}

/// Upgrades RoiAlign: the default was not to shift coordinates by half a pixel.
pub(super) fn roi_align<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.default("coordinate_transformation_mode", Attr::Str("output_half_pixel".into()));
    form.into_node()
}

/// Upgrades GridSample: the names of modes were those for two dimensions.
pub(super) fn grid_sample<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    if let Some(mode) = form.take_str("mode")? {
        let mode = match mode.as_str() {
            "bilinear" => "linear".into(),
            "bicubic" => "cubic".into(),
            _ => mode,
        };
        form.attributes.push("mode", Attr::Str(mode));
    }
    form.into_node()
}
