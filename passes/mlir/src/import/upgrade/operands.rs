//! Attributes that became operands.

use super::{Form, Result, Translator, Upgraded, ValueId, constant, inexpressible, ints, lacks, number, rank, tensor};
use divi_onnx::{Attr, Attributes, DType, Tensor, node::normalize_axis};

/// Upgrades Squeeze and reductions. No axes meant all of them, as in the newest opset.
pub(super) fn optional_axes<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(1..=1, t.opset)?;
    if let Some(axes) = form.take_ints("axes")?.filter(|axes| !axes.is_empty()) {
        form.inputs.push(Some(ints(t, &axes)));
    }
    form.into_node()
}

pub(super) fn unsqueeze<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(1..=1, t.opset)?;
    let axes = form.take_ints("axes")?.ok_or_else(|| lacks("axes", t.opset))?;
    form.inputs.push(Some(ints(t, &axes)));
    form.into_node()
}

/// Upgrades Split. Lengths were an attribute until opset 12, in opset 1 also an operand of the data's type. Without
/// lengths, opset 18 needs the number of results as an attribute.
pub(super) fn split<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    if t.opset < 13 {
        form.takes(1..=if t.opset < 2 { 2 } else { 1 }, t.opset)?;
        match (form.take_ints("split")?, form.inputs.get(1).copied().flatten()) {
            (Some(_), Some(_)) => return Err("has both an operand and an attribute 'split': remove one".into()),
            (Some(lengths), None) => {
                form.inputs.truncate(1);
                form.inputs.push(Some(ints(t, &lengths)));
            }
            (None, Some(lengths)) => form.inputs[1] = Some(as_integers(t, lengths)?),
            (None, None) => {}
        }
    }
    if !form.has(1) {
        form.default("num_outputs", Attr::Int(form.outputs as i64));
    }
    form.into_node()
}

pub(super) fn slice<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(1..=1, t.opset)?;
    let starts = form.take_ints("starts")?.ok_or_else(|| lacks("starts", t.opset))?;
    let ends = form.take_ints("ends")?.ok_or_else(|| lacks("ends", t.opset))?;
    // The default was the first axes, one per start; now it is all axes.
    let axes = form.take_ints("axes")?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    if ends.len() != starts.len() || axes.len() != starts.len() {
        return Err(format!("has {} starts, {} ends and {} axes", starts.len(), ends.len(), axes.len()));
    }
    form.inputs.extend([Some(ints(t, &starts)), Some(ints(t, &ends)), Some(ints(t, &axes))]);
    form.into_node()
}

/// Upgrades Pad. Opset 1 had 'paddings' instead of 'pads'.
pub(super) fn pad<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(1..=1, t.opset)?;
    let name = if t.opset < 2 { "paddings" } else { "pads" };
    let pads = form.take_ints(name)?.ok_or_else(|| lacks(name, t.opset))?;
    let value = form.take_float("value")?.unwrap_or(0.0);
    let dtype = tensor(t, form.operand(0)?)?.ty.dtype;
    form.inputs.push(Some(ints(t, &pads)));
    // The value matters only in mode 'constant', where positive zero is the default.
    let is_constant = form.attributes.get("mode").is_none_or(|mode| *mode == Attr::Str("constant".into()));
    if is_constant && value.to_bits() != 0 {
        form.inputs.push(Some(number(t, dtype, value)?));
    }
    form.into_node()
}

/// Upgrades Clip. The default of a bound is the limit of the type, as in the newest opset.
pub(super) fn clip<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(1..=1, t.opset)?;
    let dtype = tensor(t, form.operand(0)?)?.ty.dtype;
    for name in ["min", "max"] {
        let bound = form.take_float(name)?.map(|bound| number(t, dtype, bound)).transpose()?;
        form.inputs.push(bound);
    }
    while form.inputs.last().is_some_and(Option::is_none) {
        form.inputs.pop();
    }
    form.into_node()
}

pub(super) fn top_k<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(1..=1, t.opset)?;
    let k = form.take_int("k")?.ok_or_else(|| lacks("k", t.opset))?;
    form.inputs.push(Some(ints(t, &[k])));
    form.into_node()
}

pub(super) fn reshape<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(1..=1, t.opset)?;
    let shape = form.take_ints("shape")?.ok_or_else(|| lacks("shape", t.opset))?;
    form.inputs.push(Some(ints(t, &shape)));
    form.into_node()
}

/// Upgrades DFT: the default axis was 1; now it is the last axis of the signal.
pub(super) fn dft<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(1..=2, t.opset)?;
    let axis = form.take_int("axis")?.unwrap_or(1);
    form.inputs.resize(2, None);
    form.inputs.push(Some(constant(t, Tensor::scalar_i64(axis))));
    form.into_node()
}

/// Upgrades Tile. Until opset 5, the operands were a number of copies and one axis, both of the data's type; now there
/// is a number of copies for each axis.
pub(super) fn tile<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(3..=3, t.opset)?;
    let (data, tiles, axis) = (form.operand(0)?, form.operand(1)?, form.operand(2)?);
    let axis = single_integer(t, axis)?.ok_or_else(|| inexpressible("has an axis that is not constant", t.opset))?;
    let rank = rank(t, data, "tile it along one axis")?;
    let axis = normalize_axis(axis, rank).map_err(|error| error.to_string())?;
    let tiles = as_integers(t, tiles)?;
    let one = ints(t, &[1]);
    let tiles = t.apply("Reshape", &[Some(tiles), Some(one)], Attributes::default())?;
    let mut parts = vec![];
    for count in [axis, rank - axis - 1] {
        if count > 0 {
            parts.push(Some(ints(t, &vec![1; count])));
        }
    }
    parts.insert(usize::from(axis > 0), Some(tiles));
    let repeats = t.apply("Concat", &parts, Attributes::from_iter([("axis", Attr::Int(0))]))?;
    form.inputs = vec![Some(data), Some(repeats)];
    form.into_node()
}

/// Converts integers that opset 1 passed as numbers of the data's type.
fn as_integers(t: &mut Translator<'_, '_>, id: ValueId) -> Result<ValueId> {
    let value = tensor(t, id)?;
    if value.ty.dtype == DType::I64 {
        return Ok(id);
    }
    t.apply("Cast", &[Some(id)], Attributes::from_iter([("to", Attr::Int(DType::I64.code()))]))
}

/// Returns the integer in a constant; `None` if the value is not constant, or not a single number.
fn single_integer(t: &mut Translator<'_, '_>, id: ValueId) -> Result<Option<i64>> {
    let id = as_integers(t, id)?;
    let numbers = tensor(t, id)?.tensor().and_then(Tensor::ints);
    Ok(numbers.and_then(|numbers| <[i64; 1]>::try_from(numbers).ok()).map(|[number]| number))
}
