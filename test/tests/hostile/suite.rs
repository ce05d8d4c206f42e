//! Harness for hostile models: expected outcomes, and a builder for single operators.

use divi_onnx::{Attr, DType};
use divi_passes::import::{
    Source,
    proto::{GraphProto, ModelProto, NodeProto, ValueInfoProto},
    tensor_proto::TensorProto,
};
use divi_test::{
    model::{encode, graph, initializer, integers, model, node, value, with},
    trial::{Outcome, Trials},
};
use std::path::PathBuf;

/// The product of two of these overflows.
pub(crate) const HUGE: i64 = 1 << 62;
/// More elements than fit into memory.
pub(crate) const LARGE: i64 = 1 << 40;

/// Expected outcome of an import.
pub(crate) enum Expected {
    /// Imported successfully.
    Imported,
    /// Rejected with an error that contains each of these strings.
    Refused(&'static [&'static str]),
    /// Either outcome: where ONNX leaves it open, or where a value is extreme but valid.
    Either,
}
pub(crate) use Expected::*;

/// Imports models and collects unexpected outcomes.
pub(crate) struct Suite {
    trials: Trials,
    /// Path that the models pretend to have, if any.
    pub(crate) path: Option<PathBuf>,
    complaints: Vec<String>,
}

impl Suite {
    pub(crate) fn new(name: &str) -> Self {
        let trials = Trials::new(env!("CARGO_TARGET_TMPDIR"), &format!("hostile-{name}"));
        Self { trials, path: None, complaints: vec![] }
    }

    pub(crate) fn bytes(&mut self, what: &str, bytes: Vec<u8>, expected: Expected) {
        let source = Source { name: "hostile.onnx".into(), path: self.path.clone(), bytes: bytes.into() };
        let complaint = match (self.trials.run(what, &source), expected) {
            (Err(complaint), _) => complaint,
            (Ok(Outcome::Unverified { messages }), _) => format!("imports, but does not verify: {messages}"),
            (Ok(Outcome::Imported { text }), Refused(parts)) => {
                format!("imports, instead of an error with {parts:?}:\n{text}")
            }
            (Ok(Outcome::Refused { message }), Imported) => format!("is rejected: {message}"),
            (Ok(Outcome::Refused { message }), Refused(parts)) => match parts.iter().find(|&&p| !message.contains(p)) {
                Some(part) => format!("is rejected without '{part}': {message}"),
                None => return,
            },
            _ => return,
        };
        self.complaints.push(format!("{what}: {complaint}"));
    }

    pub(crate) fn model(&mut self, what: &str, model: &ModelProto, expected: Expected) {
        self.bytes(what, encode(model), expected);
    }

    pub(crate) fn graph(&mut self, what: &str, graph: GraphProto, expected: Expected) {
        self.model(what, &model(graph), expected);
    }

    /// Imports a graph whose only node has the name `culprit`.
    pub(crate) fn node(&mut self, what: &str, node: Operator, expected: Expected) {
        let Operator { node, inputs, initializers } = node;
        let node = NodeProto { name: Some("culprit".into()), ..node };
        let outputs = node.output.clone();
        let outputs: Vec<_> = outputs.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        self.graph(what, graph(inputs, initializers, vec![node], &outputs), expected);
    }

    pub(crate) fn finish(self) {
        println!("{:?}", self.trials.summary);
        let count = self.complaints.len();
        assert!(count == 0, "{count} models have unexpected outcomes:\n{}", self.complaints.join("\n"));
    }
}

/// An operator with its operands.
pub(crate) struct Operator {
    pub(crate) node: NodeProto,
    inputs: Vec<ValueInfoProto>,
    initializers: Vec<TensorProto>,
}

impl Operator {
    pub(crate) fn new(op: &str) -> Self {
        Self { node: node(op, &[], &["y"]), inputs: vec![], initializers: vec![] }
    }

    /// Adds an operand that is a model input.
    pub(crate) fn of(mut self, dtype: DType, dims: &[i64]) -> Self {
        let name = format!("x{}", self.node.input.len());
        self.inputs.push(value(&name, dtype, dims));
        self.node.input.push(name);
        self
    }

    pub(crate) fn float(self, dims: &[i64]) -> Self {
        self.of(DType::F32, dims)
    }

    /// Adds an operand that is a list of integers.
    pub(crate) fn ints(mut self, values: &[i64]) -> Self {
        let name = format!("c{}", self.node.input.len());
        self.initializers.push(integers(&name, values));
        self.node.input.push(name);
        self
    }

    /// Adds an operand that is a scalar integer.
    pub(crate) fn int(mut self, value: i64) -> Self {
        let name = format!("c{}", self.node.input.len());
        self.initializers.push(initializer(&name, DType::I64, &[], value.to_le_bytes().into()));
        self.node.input.push(name);
        self
    }

    pub(crate) fn floats(mut self, values: &[f32]) -> Self {
        let name = format!("c{}", self.node.input.len());
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.initializers.push(initializer(&name, DType::F32, &[values.len() as i64], bytes));
        self.node.input.push(name);
        self
    }

    /// Adds an absent operand.
    pub(crate) fn absent(mut self) -> Self {
        self.node.input.push(String::new());
        self
    }

    pub(crate) fn attr(mut self, name: &str, attr: Attr) -> Self {
        self.node = with(self.node, name, attr);
        self
    }

    pub(crate) fn list(self, name: &str, values: &[i64]) -> Self {
        self.attr(name, Attr::Ints(values.to_vec()))
    }

    pub(crate) fn results(mut self, count: usize) -> Self {
        self.node.output = (0..count).map(|i| format!("y{i}")).collect();
        self
    }
}

/// Returns the node that most models contain.
pub(crate) fn relu(input: &str, output: &str) -> NodeProto {
    node("Relu", &[input], &[output])
}

/// Encodes a protobuf varint.
pub(crate) fn varint(value: u64) -> Vec<u8> {
    let mut bytes = vec![];
    prost::encoding::encode_varint(value, &mut bytes);
    bytes
}

/// Returns the input that most models have.
pub(crate) fn x() -> Vec<ValueInfoProto> {
    vec![value("x", DType::F32, &[2, 3])]
}
