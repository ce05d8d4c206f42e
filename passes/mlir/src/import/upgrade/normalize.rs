//! Normalization, softmax and dropout.

use super::{Form, Result, Translator, Upgraded, ValueId, constant, inexpressible, ints, lacks, tensor};
use divi_onnx::{Attr, Attributes, DType, Dim, Tensor, node::normalize_axis};

/// Upgrades BatchNormalization. In older opsets, a single result meant inference and several meant training.
pub(super) fn batch_normalization<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    // Keep the operator for the check of its arity; the one for inference has no schema.
    if form.inputs.len() != 5 || form.inputs.contains(&None) {
        return form.into_node();
    }
    let trains = if t.opset >= 14 {
        match form.attributes.get("training_mode") {
            None | Some(Attr::Int(0)) => false,
            Some(Attr::Int(_)) => true,
            Some(_) => return Err(super::wrong_kind("training_mode", "an integer")),
        }
    } else {
        let is_test = if t.opset < 7 { form.take_int("is_test")?.unwrap_or(0) != 0 } else { false };
        if t.opset < 9 {
            spatial(t, &mut form)?;
        }
        match form.outputs {
            ..=1 => false,
            2..=3 if !is_test => true,
            2..=3 => return Err(inexpressible("has is_test=1 and names statistics", t.opset)),
            _ => return Err(inexpressible("names the results saved_mean and saved_var", t.opset)),
        }
    };
    if trains && t.opset < 14 {
        form.attributes.push("training_mode", Attr::Int(1));
    } else if !trains && form.outputs <= 1 {
        form.attributes.remove("training_mode");
        form.op = "BatchNormalizationInferenceMode";
    }
    form.into_node()
}

/// Removes 'spatial'. With spatial=0, every element was normalized separately, which is equivalent if there are only
/// channels.
fn spatial(t: &Translator<'_, '_>, form: &mut Form<'_>) -> Result<()> {
    let is_spatial = form.take_int("spatial")?.unwrap_or(1) != 0;
    if is_spatial || tensor(t, form.operand(0)?)?.ty.rank().is_some_and(|rank| rank <= 2) {
        return Ok(());
    }
    Err(inexpressible("has spatial=0", t.opset))
}

/// Upgrades Dropout. In inference, the result is the operand, and the mask is all true.
pub(super) fn dropout<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    if t.opset >= 12 {
        let is_false = |id: ValueId| {
            let mode = tensor(t, id).ok().and_then(|mode| mode.tensor()?.ints());
            mode.is_some_and(|mode| mode == [0])
        };
        // A wrong number of operands is reported later.
        let fits = (1..=3).contains(&form.inputs.len()) && form.has(0) && form.outputs <= 2;
        if !fits || !form.inputs.get(2).copied().flatten().is_none_or(is_false) {
            return form.into_node();
        }
    } else {
        form.takes(1..=1, t.opset)?;
        // Opset 7 removed the attribute, and until opset 11 there was only inference.
        let trains = t.opset < 7 && form.take_int("is_test")?.unwrap_or(0) == 0;
        let ratio = form.take_float("ratio")?.unwrap_or(0.5);
        if trains {
            if form.outputs > 1 {
                return Err(inexpressible("names the mask of training", t.opset));
            }
            let mode = Tensor::from_ints(DType::Bool, vec![], &[1]).expect("a scalar has one element");
            let operands = [constant(t, Tensor::scalar_f32(ratio)), constant(t, mode)];
            form.inputs.extend(operands.map(Some));
            return form.into_node();
        }
    }
    let data = form.operand(0)?;
    let mut results = vec![data];
    match form.outputs {
        ..=1 => {}
        2 => results.push(full_mask(t, data)?),
        count => return Err(format!("has {count} results, takes 1 to 2")),
    }
    Ok(Upgraded::Done(results))
}

/// Builds a mask that keeps all elements: true, or 1 of the data's type before opset 10.
fn full_mask(t: &mut Translator<'_, '_>, data: ValueId) -> Result<ValueId> {
    let dtype = tensor(t, data)?.ty.dtype;
    let kept = match t.opset {
        10.. => Tensor::from_ints(DType::Bool, vec![1], &[1]),
        _ => Tensor::from_floats(dtype, vec![1], &[1.0]),
    };
    let kept = kept.ok_or_else(|| format!("has data of {dtype}, takes floating-point numbers"))?;
    let shape = t.apply("Shape", &[Some(data)], Attributes::default())?;
    t.apply("ConstantOfShape", &[Some(shape)], Attributes::from_iter([("value", Attr::Tensor(kept))]))
}

/// Upgrades GroupNormalization: scale and bias had one number per group, now one per channel.
pub(super) fn group_normalization<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(3..=3, t.opset)?;
    let groups = match form.attributes.get("num_groups") {
        Some(&Attr::Int(groups)) if groups > 0 => groups,
        Some(_) => return Err(super::wrong_kind("num_groups", "a positive integer")),
        None => return Err(lacks("num_groups", t.opset)),
    };
    let x = form.operand(0)?;
    if let Some(shape) = &tensor(t, x)?.ty.shape {
        let channels = *shape.get(1).ok_or("needs a batch and channels")?;
        channels.split(groups, "groups").map_err(|error| error.to_string())?;
    }
    let range = Attributes::from_iter([("start", Attr::Int(1)), ("end", Attr::Int(2))]);
    let channels = t.apply("Shape", &[Some(x)], range)?;
    let groups_operand = ints(t, &[groups]);
    let width = t.apply("Div", &[Some(channels), Some(groups_operand)], Attributes::default())?;
    let along = Attributes::from_iter([("axis", Attr::Int(0))]);
    let table = t.apply("Concat", &[Some(groups_operand), Some(width)], along)?;
    let (column, flat) = (ints(t, &[groups, 1]), ints(t, &[-1]));
    for index in 1..3 {
        let parameter = form.operand(index)?;
        tensor(t, parameter)?;
        let parameter = t.apply("Reshape", &[Some(parameter), Some(column)], Attributes::default())?;
        let parameter = t.apply("Expand", &[Some(parameter), Some(table)], Attributes::default())?;
        form.inputs[index] = Some(t.apply("Reshape", &[Some(parameter), Some(flat)], Attributes::default())?);
    }
    form.into_node()
}

/// Upgrades Softmax, LogSoftmax and Hardmax: they normalized over all axes from 'axis' on, now over a single one.
pub(super) fn softmax<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.takes(1..=1, t.opset)?;
    let axis = form.take_int("axis")?.unwrap_or(1);
    let x = form.operand(0)?;
    let shape = tensor(t, x)?.ty.shape.clone();
    let single = match &shape {
        Some(shape) => {
            let axis = normalize_axis(axis, shape.len()).map_err(|error| error.to_string())?;
            let mut long = (axis..shape.len()).filter(|&axis| shape[axis] != Dim::Known(1));
            let first = long.next().unwrap_or(axis);
            long.next().is_none().then_some(first as i64)
        }
        None => (axis == -1).then_some(-1),
    };
    if let Some(axis) = single {
        form.attributes.push("axis", Attr::Int(axis));
        return form.into_node();
    }
    let flat = t.apply("Flatten", &[Some(x)], Attributes::from_iter([("axis", Attr::Int(axis))]))?;
    form.attributes.push("axis", Attr::Int(-1));
    let flat = t.apply(form.op, &[Some(flat)], form.attributes)?;
    let back = t.apply("Shape", &[Some(x)], Attributes::default())?;
    let mut attributes = Attributes::default();
    if !shape.is_some_and(|shape| shape.iter().all(|dim| dim.known().is_some_and(|size| size > 0))) {
        // A dimension may be zero, which must not refer to the operand's dimension.
        attributes.push("allowzero", Attr::Int(1));
    }
    form = Form { op: "Reshape", inputs: vec![Some(flat), Some(back)], attributes, outputs: form.outputs };
    form.into_node()
}

/// Rejects MeanVarianceNormalization before opset 9. It was experimental, had other attributes and normalized each
/// element of a batch separately; ONNX has removed its definition.
pub(super) fn mean_variance_normalization<'o>(t: &mut Translator<'_, '_>, _: Form<'o>) -> Result<Upgraded<'o>> {
    Err(format!("is of opset {}, where it was experimental: export the model with opset 9 or newer", t.opset))
}
