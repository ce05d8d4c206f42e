//! Defaults and spellings that have changed.

use super::{Form, Result, Translator, Upgraded};
use divi_onnx::{Attr, DType};

/// The target was the name of an element type.
pub(super) fn cast<'o>(t: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    let to = form.take_str("to")?.ok_or_else(|| super::lacks("to", t.opset))?;
    let dtype = DType::ALL.iter().find(|dtype| dtype.name().eq_ignore_ascii_case(&to));
    let dtype = dtype.ok_or_else(|| format!("casts to '{to}', which is no ONNX element type"))?;
    form.attributes.push("to", Attr::Int(dtype.code()));
    form.into_node()
}

pub(super) fn concat<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.default("axis", Attr::Int(1));
    form.into_node()
}

/// The defaults had fewer digits.
pub(super) fn selu<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.default("alpha", Attr::Float(1.6732));
    form.default("gamma", Attr::Float(1.0507));
    form.into_node()
}

/// That the whole sequence is a result, and not only its end, had to be said; the node's results say so too.
pub(super) fn recurrent<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.take_int("output_sequence")?;
    // The default of GRU in opset 1 lacked a letter, and some models spell it out.
    if form.attributes.get("direction") == Some(&Attr::Str("foward".into())) {
        form.attributes.take("direction");
        form.attributes.push("direction", Attr::Str("forward".into()));
    }
    form.into_node()
}

/// Opset 11 renamed it.
pub(super) fn scatter<'o>(_: &mut Translator<'_, '_>, mut form: Form<'o>) -> Result<Upgraded<'o>> {
    form.op = "ScatterElements";
    form.into_node()
}
