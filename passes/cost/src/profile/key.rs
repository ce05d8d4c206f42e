//! What entries are matched by.

use super::Entry;
use divi_onnx::{Attr, Attributes, DType, Op};
use std::fmt::Write;

/// An operator or a cluster without its batch, in a form that is the same however it was written down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    ops: String,
    inputs: Vec<Vec<u64>>,
    weights: Option<Vec<Vec<u64>>>,
    outputs: Vec<Vec<u64>>,
    dtype: DType,
}

/// An operand of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand<'a> {
    pub shape: &'a [u64],
    /// A weight: it has no batch.
    pub is_constant: bool,
}

/// Attributes that change numbers, not work.
const IGNORED: &[&str] = &["alpha", "beta", "epsilon", "gamma", "lambd", "momentum", "seed", "training_mode"];

/// Attributes that are as good as absent if they have this value (in all places, for lists).
const DEFAULTS: &[(&str, i64)] = &[
    ("ceil_mode", 0),
    ("count_include_pad", 0),
    ("dilations", 1),
    ("group", 1),
    ("keepdims", 1),
    ("pads", 0),
    ("storage_order", 0),
    ("strides", 1),
    ("transA", 0),
    ("transB", 0),
];

/// Operators whose axis is the last one if nothing else is said.
const LAST_AXIS: &[Op] = &[Op::Hardmax, Op::LayerNormalization, Op::LogSoftmax, Op::RMSNormalization, Op::Softmax];

impl Key {
    /// The key of operators with these attributes, in the order in which they run; `operands` are those from outside, in the
    /// order in which the operators take them. `None` if the first dimension of an operand or result is not a multiple of
    /// the batch: such a task has no batch that could be taken away.
    pub fn new(
        ops: &[(&str, &Attributes)],
        operands: &[Operand<'_>],
        results: &[&[u64]],
        dtype: DType,
        batch: u64,
    ) -> Option<Self> {
        let one = |shape: &[u64]| match shape {
            [first, rest @ ..] if batch > 0 && first.is_multiple_of(batch) => Some([&[first / batch], rest].concat()),
            [] if batch == 1 => Some(vec![]),
            _ => None,
        };
        let computed = operands.iter().filter(|operand| !operand.is_constant);
        let inputs: Vec<Vec<u64>> = computed.map(|operand| one(operand.shape)).collect::<Option<_>>()?;
        let constants = operands.iter().filter(|operand| operand.is_constant);
        let weights: Vec<Vec<u64>> = constants.map(|operand| operand.shape.to_vec()).collect();
        let outputs: Vec<Vec<u64>> = results.iter().map(|shape| one(shape)).collect::<Option<_>>()?;
        Some(Self { ops: describe(ops, &inputs, Some(&weights)), inputs, weights: Some(weights), outputs, dtype })
    }

    pub(crate) fn of(entry: &Entry) -> Self {
        let ops: Vec<(&str, &Attributes)> = entry.ops.iter().map(|op| (&op.name[..], &op.attributes)).collect();
        Self {
            ops: describe(&ops, &entry.inputs, entry.weights.as_deref()),
            inputs: entry.inputs.clone(),
            weights: entry.weights.clone(),
            outputs: entry.outputs.clone(),
            dtype: entry.dtype,
        }
    }

    /// The key of an entry that does not say what its weights are.
    pub(super) fn without_weights(&self) -> Self {
        Self { weights: None, ..self.clone() }
    }
}

fn describe(ops: &[(&str, &Attributes)], inputs: &[Vec<u64>], weights: Option<&[Vec<u64>]>) -> String {
    let mut text = String::new();
    for (op, attributes) in ops {
        let known = Op::from_name(op).map(Op::exported);
        let op = known.map_or(*op, |known| known.name());
        let mut printed: Vec<String> = attributes
            .iter()
            .filter(|(name, attr)| !is_default(name, attr))
            .map(|(name, attr)| print(name, attr, inputs))
            .collect();
        let has = |name| attributes.get(name).is_some();
        // The weights of a convolution have the shape of its kernel, whether or not an attribute repeats it.
        if known == Some(Op::Conv) && !has("kernel_shape") {
            let kernel = weights.and_then(|weights| weights.first()).and_then(|weights| weights.get(2..));
            printed.extend(kernel.map(|kernel| format!("kernel_shape={kernel:?}")));
        }
        if known.is_some_and(|op| LAST_AXIS.contains(&op)) && !has("axis") {
            printed.push(print("axis", &Attr::Int(-1), inputs));
        }
        printed.sort();
        write!(text, "{op}({}) ", printed.join(",")).expect("a string takes everything");
    }
    text
}

fn is_default(name: &str, attr: &Attr) -> bool {
    let default = DEFAULTS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    IGNORED.contains(&name)
        || match (attr, default) {
            (Attr::Int(value), Some(default)) => *value == default,
            (Attr::Ints(values), Some(default)) => values.iter().all(|value| *value == default),
            (Attr::Str(value), _) => name == "auto_pad" && value == "NOTSET",
            _ => false,
        }
}

fn print(name: &str, attr: &Attr, inputs: &[Vec<u64>]) -> String {
    match attr {
        // Axes are counted from the start.
        Attr::Int(axis) if name == "axis" && *axis < 0 => {
            let rank = inputs.first().map_or(0, Vec::len) as i64;
            format!("axis={}", axis + rank)
        }
        Attr::Int(value) => format!("{name}={value}"),
        Attr::Ints(values) => format!("{name}={values:?}"),
        Attr::Float(value) => format!("{name}={value:?}"),
        Attr::Floats(values) => format!("{name}={values:?}"),
        Attr::Str(value) => format!("{name}={value:?}"),
        Attr::Strs(values) => format!("{name}={values:?}"),
        // Files have its number.
        Attr::DType(dtype) => format!("{name}={}", dtype.code()),
        other => format!("{name}={other:?}"),
    }
}
