//! Changed defaults and names.

use super::{Form, Result, Translator, Upgraded};
use divi_onnx::{Attr, DType};

/// Upgrades Cast: the target was the name of an element type.
pub(super) fn cast<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    let to = form.take_str("to")?.ok_or_else(|| super::lacks("to", t.opset))?;
    let dtype = DType::ALL.iter().find(|dtype| dtype.name().eq_ignore_ascii_case(&to));
    let dtype = dtype.ok_or_else(|| format!("casts to '{to}', which is not an ONNX element type"))?;
    form.attributes.push("to", Attr::Int(dtype.code()));
    form.into_node()
}

pub(super) fn concat<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.default("axis", Attr::Int(1));
    form.into_node()
}

/// Upgrades Selu: the defaults had fewer digits.
pub(super) fn selu<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.default("alpha", Attr::Float(1.6732));
    form.default("gamma", Attr::Float(1.0507));
    form.into_node()
}

/// Upgrades recurrent operators: the full output sequence had to be requested, which the node's results imply.
pub(super) fn recurrent<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.take_int("output_sequence")?;
    // The default of GRU in opset 1 was misspelled, and some models state it explicitly.
    if form.attributes.get("direction") == Some(&Attr::Str("foward".into())) {
        form.attributes.remove("direction");
        form.attributes.push("direction", Attr::Str("forward".into()));
    }
    form.into_node()
}

/// Upgrades Scatter, which opset 11 renamed.
pub(super) fn scatter<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.op = "ScatterElements";
    form.into_node()
}
