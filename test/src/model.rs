//! Builders of small models.

use divi_onnx::{Attr, DType, Dim, TensorType};
pub use divi_passes::export::proto::attribute;
use divi_passes::{
    export::proto::{graph_attribute, tensor, tensor_type, value_info},
    import::{
        proto::{FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto},
        tensor_proto::TensorProto,
    },
};
use prost::Message;

/// Builds a node without attributes. Its name is that of its first output with the prefix `node_`.
pub fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        name: Some(format!("node_{}", outputs.first().unwrap_or(&""))),
        op_type: Some(op.to_owned()),
        input: inputs.iter().map(|&name| name.to_owned()).collect(),
        output: outputs.iter().map(|&name| name.to_owned()).collect(),
        ..NodeProto::default()
    }
}

/// Adds an attribute to a node.
pub fn with(mut node: NodeProto, name: &str, value: Attr) -> NodeProto {
    node.attribute.push(attribute(name, value));
    node
}

/// Adds a subgraph attribute to a node.
pub fn with_graph(mut node: NodeProto, name: &str, graph: GraphProto) -> NodeProto {
    node.attribute.push(graph_attribute(name, graph));
    node
}

/// Declares a tensor.
pub fn value(name: &str, dtype: DType, dims: &[i64]) -> ValueInfoProto {
    let shape: Vec<_> = dims.iter().copied().map(Dim::Known).collect();
    value_info(name, Some(tensor_type(&TensorType::new(dtype, shape), |_| None)))
}

/// Declares a value without a type.
pub fn untyped(name: &str) -> ValueInfoProto {
    value_info(name, None)
}

/// Builds an initializer from its bytes.
pub fn initializer(name: &str, dtype: DType, dims: &[i64], bytes: Vec<u8>) -> TensorProto {
    tensor(name, dtype, dims, bytes.into())
}

/// Builds an initializer with a list of integers, for instance shapes and axes.
pub fn integers(name: &str, values: &[i64]) -> TensorProto {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    initializer(name, DType::I64, &[values.len() as i64], bytes)
}

/// Builds a graph.
pub fn graph(
    inputs: Vec<ValueInfoProto>,
    initializers: Vec<TensorProto>,
    nodes: Vec<NodeProto>,
    outputs: &[&str],
) -> GraphProto {
    GraphProto {
        name: Some("graph".into()),
        input: inputs,
        initializer: initializers,
        node: nodes,
        output: outputs.iter().map(|&name| untyped(name)).collect(),
        ..GraphProto::default()
    }
}

/// Builds a model with an opset that has every operator of the tests.
pub fn model(graph: GraphProto) -> ModelProto {
    let opset = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
    ModelProto {
        ir_version: Some(10),
        opset_import: vec![opset("", 21), opset("local", 1)],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

/// Builds a function of domain `local`.
pub fn function(name: &str, inputs: &[&str], outputs: &[&str], nodes: Vec<NodeProto>) -> FunctionProto {
    FunctionProto {
        name: Some(name.into()),
        domain: Some("local".into()),
        input: inputs.iter().map(|&name| name.to_owned()).collect(),
        output: outputs.iter().map(|&name| name.to_owned()).collect(),
        node: nodes,
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(21) }],
        ..FunctionProto::default()
    }
}

/// Builds a call of a function of domain `local`.
pub fn call(name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto { domain: Some("local".into()), ..node(name, inputs, outputs) }
}

/// Serializes a model.
pub fn encode(model: &ModelProto) -> Vec<u8> {
    model.encode_to_vec()
}
