//! Keys by which entries are matched.

use super::Entry;
use divi_onnx::{Attr, Attributes, DType, Op};
use std::fmt::Write;

/// Canonical form of an operator or a cluster, without its batch size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    ops: String,
    inputs: Vec<Vec<u64>>,
    weights: Option<Vec<Vec<u64>>>,
    outputs: Vec<Vec<u64>>,
    dtype: DType,
}

/// Operand of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand<'a> {
    /// Shape.
    pub shape: &'a [u64],
    /// True for weights, which have no batch dimension.
    pub is_constant: bool,
}

/// Attributes that do not affect the time.
const IGNORED: &[&str] = &["alpha", "beta", "epsilon", "gamma", "lambd", "momentum", "seed", "training_mode"];

/// Attributes that are equivalent to absent ones if they have this value (in all elements, for lists).
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

/// Operators whose axis is the last one by default.
const LAST_AXIS: &[Op] = &[Op::Hardmax, Op::LayerNormalization, Op::LogSoftmax, Op::RMSNormalization, Op::Softmax];

impl Key {
    /// Returns the key of a sequence of operators with these attributes. `operands` are those from outside of the cluster, in
    /// the order of their use. `None` if the first dimension of an operand or result is not a multiple of the batch size: such
    /// a task has no batch dimension.
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

    /// Returns the key of an entry.
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

    /// Returns the key of an entry with unknown weights.
    pub(super) fn without_weights(&self) -> Self {
        Self { weights: None, ..self.clone() }
    }
}

fn describe(ops: &[(&str, &Attributes)], inputs: &[Vec<u64>], weights: Option<&[Vec<u64>]>) -> String {
    let mut text = String::new();
    for (op, attributes) in ops {
        let known = Op::from_name(op).map(Op::onnx_op);
        let op = known.map_or(*op, |known| known.name());
        let mut printed: Vec<String> = attributes
            .iter()
            .filter(|(name, attr)| !is_default(name, attr))
            .map(|(name, attr)| print(name, attr, inputs))
            .collect();
        let has = |name| attributes.get(name).is_some();
        // The weights of a convolution determine the kernel's shape, so the attribute is optional.
        if known == Some(Op::Conv) && !has("kernel_shape") {
            let kernel = weights.and_then(|weights| weights.first()).and_then(|weights| weights.get(2..));
            printed.extend(kernel.map(|kernel| format!("kernel_shape={kernel:?}")));
        }
        if known.is_some_and(|op| LAST_AXIS.contains(&op)) && !has("axis") {
            printed.push(print("axis", &Attr::Int(-1), inputs));
        }
        printed.sort();
        write!(text, "{op}({}) ", printed.join(",")).expect("writing to a string cannot fail");
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
        // Axes are normalized to nonnegative ones.
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
        // Files contain the type's code.
        Attr::DType(dtype) => format!("{name}={}", dtype.code()),
        other => format!("{name}={other:?}"),
    }
}
