//! Upgrades operators of older opsets to the newest form.
//!
//! Most operators have kept their meaning since they were introduced: only types were added, and attributes and
//! operands whose defaults have the old meaning. [`RULES`] has those that changed, and those for which the `onnx`
//! dialect has another name. Old forms that the newest opset cannot express are errors.

mod broadcast;
mod defaults;
mod image;
mod normalize;
mod operands;
#[cfg(test)]
mod tests;

use super::translate::{Kind, Result, Translator, ValueId};
use divi_onnx::{Attr, Attributes, DType, Tensor, Value};
use std::ops::RangeInclusive;

/// Result of an upgrade.
pub(super) enum Upgraded<'o> {
    /// One operator in the newest form.
    Node(Form<'o>),
    /// Several operators, applied already.
    Done(Vec<ValueId>),
}

/// Operator application: first as in the model, then as in the newest opset.
pub(super) struct Form<'o> {
    pub(super) op: &'o str,
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) attributes: Attributes,
    /// Number of results that the node names.
    outputs: usize,
}

/// Upgrades one operator to the newest form.
type Rule = for<'o> fn(&mut Translator<'_, '_>, Form<'o>) -> Result<Upgraded<'o>>;

/// Marks a rule that applies to all opsets.
const ALWAYS: i64 = i64::MAX;

/// Operators, the first opset that has their newest form, and the rule for earlier opsets. Sorted by name.
const RULES: &[(&str, i64, Rule)] = &[
    ("Add", 7, broadcast::elementwise),
    ("And", 7, broadcast::elementwise),
    ("BatchNormalization", ALWAYS, normalize::batch_normalization),
    ("Cast", 6, defaults::cast),
    ("Clip", 11, operands::clip),
    ("Concat", 4, defaults::concat),
    ("DFT", 20, operands::dft),
    ("Div", 7, broadcast::elementwise),
    ("Dropout", ALWAYS, normalize::dropout),
    ("Equal", 7, broadcast::elementwise),
    ("GRU", 7, defaults::recurrent),
    ("Gemm", 7, broadcast::gemm),
    ("GlobalLpPool", 2, image::lp_pool),
    ("Greater", 7, broadcast::elementwise),
    ("GridSample", 20, image::grid_sample),
    ("GroupNormalization", 21, normalize::group_normalization),
    ("Hardmax", 13, normalize::softmax),
    ("LSTM", 7, defaults::recurrent),
    ("Less", 7, broadcast::elementwise),
    ("LogSoftmax", 13, normalize::softmax),
    ("LpPool", 2, image::lp_pool),
    ("MaxPool", ALWAYS, image::max_pool),
    ("MeanVarianceNormalization", 9, normalize::mean_variance_normalization),
    ("Mul", 7, broadcast::elementwise),
    ("Or", 7, broadcast::elementwise),
    ("PRelu", 7, broadcast::prelu),
    ("Pad", 11, operands::pad),
    ("Pow", 7, broadcast::elementwise),
    ("RNN", 7, defaults::recurrent),
    ("ReduceL1", 18, operands::optional_axes),
    ("ReduceL2", 18, operands::optional_axes),
    ("ReduceLogSum", 18, operands::optional_axes),
    ("ReduceLogSumExp", 18, operands::optional_axes),
    ("ReduceMax", 18, operands::optional_axes),
    ("ReduceMean", 18, operands::optional_axes),
    ("ReduceMin", 18, operands::optional_axes),
    ("ReduceProd", 18, operands::optional_axes),
    ("ReduceSum", 13, operands::optional_axes),
    ("ReduceSumSquare", 18, operands::optional_axes),
    ("Reshape", 5, operands::reshape),
    ("Resize", 13, image::resize),
    ("RoiAlign", 16, image::roi_align),
    ("Scatter", ALWAYS, defaults::scatter),
    ("Selu", 6, defaults::selu),
    ("Slice", 10, operands::slice),
    ("Softmax", 13, normalize::softmax),
    ("Split", 18, operands::split),
    ("Squeeze", 13, operands::optional_axes),
    ("Sub", 7, broadcast::elementwise),
    ("Tile", 6, operands::tile),
    ("TopK", 10, operands::top_k),
    ("Unsqueeze", 13, operands::unsqueeze),
    ("Upsample", ALWAYS, image::upsample),
    ("Xor", 7, broadcast::elementwise),
];

impl Translator<'_, '_> {
    /// Upgrades an operator of the current opset to the newest form. `outputs` is the number of results that the node
    /// names.
    pub(super) fn upgrade<'o>(
        &mut self,
        op: &'o str,
        inputs: Vec<Option<ValueId>>,
        mut attributes: Attributes,
        outputs: usize,
    ) -> Result<Upgraded<'o>> {
        if self.opset < 6 {
            // It allowed results to reuse the memory of operands, and does not affect values.
            attributes.remove("consumed_inputs");
        }
        let form = Form { op, inputs, attributes, outputs };
        match RULES.binary_search_by(|(name, ..)| (*name).cmp(op)) {
            Ok(index) if self.opset < RULES[index].1 => RULES[index].2(self, form),
            _ => form.into_node(),
        }
    }
}

impl<'o> Form<'o> {
    fn into_node(self) -> Result<Upgraded<'o>> {
        Ok(Upgraded::Node(self))
    }

    /// Checks the number of operands of the old form, which may differ from the newest signature.
    fn takes(&self, count: RangeInclusive<usize>, opset: i64) -> Result<()> {
        if count.contains(&self.inputs.len()) {
            return Ok(());
        }
        let expected = match (count.start(), count.end()) {
            (least, most) if least == most => most.to_string(),
            (least, most) => format!("{least} to {most}"),
        };
        Err(format!("has {} operands, takes {expected} in opset {opset}", self.inputs.len()))
    }

    /// Returns a required operand.
    fn operand(&self, index: usize) -> Result<ValueId> {
        let operand = self.inputs.get(index).copied().flatten();
        operand.ok_or_else(|| format!("lacks operand {index}, which is not optional"))
    }

    /// Returns true if an optional operand is present.
    fn has(&self, index: usize) -> bool {
        matches!(self.inputs.get(index), Some(Some(_)))
    }

    /// Adds an attribute if the model does not have it.
    fn default(&mut self, name: &str, attr: Attr) {
        if self.attributes.get(name).is_none() {
            self.attributes.push(name, attr);
        }
    }

    fn take_int(&mut self, name: &str) -> Result<Option<i64>> {
        match self.attributes.remove(name) {
            None => Ok(None),
            Some(Attr::Int(value)) => Ok(Some(value)),
            Some(_) => Err(wrong_kind(name, "an integer")),
        }
    }

    fn take_float(&mut self, name: &str) -> Result<Option<f32>> {
        match self.attributes.remove(name) {
            None => Ok(None),
            Some(Attr::Float(value)) => Ok(Some(value)),
            Some(_) => Err(wrong_kind(name, "a float")),
        }
    }

    fn take_str(&mut self, name: &str) -> Result<Option<String>> {
        match self.attributes.remove(name) {
            None => Ok(None),
            Some(Attr::Str(value)) => Ok(Some(value)),
            Some(_) => Err(wrong_kind(name, "a string")),
        }
    }

    fn take_ints(&mut self, name: &str) -> Result<Option<Vec<i64>>> {
        match self.attributes.remove(name) {
            None => Ok(None),
            Some(Attr::Ints(values)) => Ok(Some(values)),
            Some(_) => Err(wrong_kind(name, "a list of integers")),
        }
    }

    fn take_floats(&mut self, name: &str) -> Result<Option<Vec<f32>>> {
        match self.attributes.remove(name) {
            None => Ok(None),
            Some(Attr::Floats(values)) => Ok(Some(values)),
            Some(_) => Err(wrong_kind(name, "a list of floats")),
        }
    }
}

fn wrong_kind(name: &str, expected: &str) -> String {
    format!("has attribute '{name}', which must be {expected}")
}

fn lacks(name: &str, opset: i64) -> String {
    format!("lacks the attribute '{name}', which opset {opset} requires")
}

/// Returns the error for a property `what` of a node that the newest opset cannot express.
fn inexpressible(what: &str, opset: i64) -> String {
    format!(
        "{what} in opset {opset}, which the newest opset cannot express: convert the model with onnx.version_converter"
    )
}

/// Adds a constant with the node's name.
fn constant(t: &mut Translator<'_, '_>, tensor: Tensor) -> ValueId {
    let name = t.current.name.clone();
    t.constant(&name, tensor)
}

/// Adds an operand that is a list of integers.
fn ints(t: &mut Translator<'_, '_>, values: &[i64]) -> ValueId {
    constant(t, Tensor::from_shape(values))
}

/// Adds a scalar operand of an element type.
fn number(t: &mut Translator<'_, '_>, dtype: DType, value: f32) -> Result<ValueId> {
    let tensor = Tensor::from_floats(dtype, vec![], &[value.into()]);
    Ok(constant(t, tensor.ok_or_else(|| format!("has data of {dtype}, takes floating-point numbers"))?))
}

/// Returns a value that must be a tensor.
fn tensor<'t>(t: &'t Translator<'_, '_>, id: ValueId) -> Result<&'t Value> {
    match &t.slot(id).kind {
        Kind::Tensor(value) => Ok(value),
        Kind::Other(_) => Err("has an operand that is not a tensor".into()),
    }
}

/// Returns a rank that must be known; `why` completes "whose rank must be known to".
fn rank(t: &Translator<'_, '_>, id: ValueId, why: &str) -> Result<usize> {
    tensor(t, id)?.ty.rank().ok_or_else(|| {
        format!(
            "has an operand whose rank must be known to {why}: give the inputs shapes with --input-shape=NAME:AxBxC"
        )
    })
}
