//! Small models built by hand.

use divi_onnx::{Attr, DType};
use divi_passes::import::{
    proto::{
        AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto,
        TypeProto, ValueInfoProto, attribute_proto::AttributeType, tensor_shape_proto, type_proto,
    },
    tensor_proto::TensorProto,
};
use prost::Message;

/// A node without attributes. Its name is that of its first output with `node_` before it.
pub fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        name: Some(format!("node_{}", outputs.first().unwrap_or(&""))),
        op_type: Some(op.to_owned()),
        input: inputs.iter().map(|&name| name.to_owned()).collect(),
        output: outputs.iter().map(|&name| name.to_owned()).collect(),
        ..NodeProto::default()
    }
}

/// The same node with an attribute more.
pub fn with(mut node: NodeProto, name: &str, value: Attr) -> NodeProto {
    node.attribute.push(attribute(name, value));
    node
}

/// The same node with a subgraph more.
pub fn with_graph(mut node: NodeProto, name: &str, graph: GraphProto) -> NodeProto {
    let r#type = Some(AttributeType::Graph as i32);
    node.attribute.push(AttributeProto {
        name: Some(name.into()),
        r#type,
        g: Some(graph.into()),
        ..Default::default()
    });
    node
}

pub fn attribute(name: &str, value: Attr) -> AttributeProto {
    let mut proto = AttributeProto { name: Some(name.to_owned()), ..AttributeProto::default() };
    let kind = match value {
        Attr::Int(value) => {
            proto.i = Some(value);
            AttributeType::Int
        }
        Attr::Float(value) => {
            proto.f = Some(value);
            AttributeType::Float
        }
        Attr::Str(value) => {
            proto.s = Some(value.into_bytes().into());
            AttributeType::String
        }
        Attr::Ints(value) => {
            proto.ints = value;
            AttributeType::Ints
        }
        Attr::Floats(value) => {
            proto.floats = value;
            AttributeType::Floats
        }
        Attr::Strs(value) => {
            proto.strings = value.into_iter().map(|text| text.into_bytes().into()).collect();
            AttributeType::Strings
        }
        Attr::Tensor(value) => {
            let tensor = initializer("", value.dtype(), value.dims(), value.bytes().to_vec());
            proto.t = Some(tensor.into());
            AttributeType::Tensor
        }
        Attr::DType(value) => {
            proto.i = Some(value.code());
            AttributeType::Int
        }
        Attr::Other => AttributeType::Undefined,
    };
    proto.r#type = Some(kind as i32);
    proto
}

/// The declaration of a tensor.
pub fn value(name: &str, dtype: DType, dims: &[i64]) -> ValueInfoProto {
    let dim = |&size: &i64| tensor_shape_proto::Dimension {
        value: Some(tensor_shape_proto::dimension::Value::DimValue(size)),
    };
    let shape = TensorShapeProto { dim: dims.iter().map(dim).collect() };
    let tensor = type_proto::Tensor { elem_type: Some(dtype.code() as i32), shape: Some(shape) };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)) };
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(ty) }
}

/// The declaration of something about which nothing is said.
pub fn untyped(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.to_owned()), r#type: None }
}

/// An initializer with its bytes.
pub fn initializer(name: &str, dtype: DType, dims: &[i64], bytes: Vec<u8>) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: dims.to_vec(),
        data_type: dtype.code() as i32,
        raw_data: Some(bytes.into()),
        ..TensorProto::default()
    }
}

/// A list of integers, as shapes and axes are given.
pub fn integers(name: &str, values: &[i64]) -> TensorProto {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    initializer(name, DType::I64, &[values.len() as i64], bytes)
}

/// A graph with the nodes and initializers, from inputs to outputs.
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

/// A model of an opset that has every operator the tests use.
pub fn model(graph: GraphProto) -> ModelProto {
    let opset = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
    ModelProto {
        ir_version: Some(10),
        opset_import: vec![opset("", 21), opset("local", 1)],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

/// A function of domain `local`.
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

/// A call of a function of domain `local`.
pub fn call(name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto { domain: Some("local".into()), ..node(name, inputs, outputs) }
}

/// The file that holds a model.
pub fn encode(model: &ModelProto) -> Vec<u8> {
    model.encode_to_vec()
}
