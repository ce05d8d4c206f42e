//! Builds the protobuf messages of a model.

use crate::import::{
    proto::{
        AttributeProto, GraphProto, StringStringEntryProto, TensorShapeProto, TypeProto, ValueInfoProto,
        attribute_proto::AttributeType, tensor_shape_proto, type_proto,
    },
    tensor_proto::TensorProto,
};
use bytes::Bytes;
use divi_onnx::{Attr, DType, Dim, TensorType};

/// Builds an attribute. Its type follows from the value.
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
            proto.t = Some(tensor("", value.dtype(), value.dims(), value.bytes().clone()).into());
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

/// Builds an attribute that is a subgraph.
pub fn graph_attribute(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(graph.into()),
        ..AttributeProto::default()
    }
}

/// Builds a tensor with its elements.
pub fn tensor(name: &str, dtype: DType, dims: &[i64], bytes: Bytes) -> TensorProto {
    TensorProto { raw_data: Some(bytes), ..typed(name, dtype, dims) }
}

/// Builds a tensor whose elements are in a file, at a path relative to the model.
pub(super) fn external_tensor(
    name: &str,
    dtype: DType,
    dims: &[i64],
    location: &str,
    (offset, length): (u64, u64),
) -> TensorProto {
    let entry = |key: &str, value: String| StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) };
    let external_data = vec![
        entry("location", location.to_owned()),
        entry("offset", offset.to_string()),
        entry("length", length.to_string()),
    ];
    TensorProto { external_data, data_location: 1, ..typed(name, dtype, dims) }
}

/// Builds a tensor of strings.
pub(super) fn text_tensor(name: &str, dims: &[i64], texts: Vec<Bytes>) -> TensorProto {
    TensorProto { string_data: texts, ..typed(name, DType::String, dims) }
}

fn typed(name: &str, dtype: DType, dims: &[i64]) -> TensorProto {
    TensorProto { name: name.to_owned(), dims: dims.to_vec(), data_type: dtype.code() as i32, ..TensorProto::default() }
}

/// Builds the type of a tensor. Dynamic dimensions have no size, but the names that `dimension` returns.
pub fn tensor_type(ty: &TensorType, dimension: impl Fn(usize) -> Option<String>) -> TypeProto {
    let dim = |(index, dim): (usize, &Dim)| {
        let value = match dim.known() {
            Some(size) => Some(tensor_shape_proto::dimension::Value::DimValue(size)),
            None => dimension(index).map(tensor_shape_proto::dimension::Value::DimParam),
        };
        tensor_shape_proto::Dimension { value }
    };
    let shape = ty.shape.as_ref().map(|shape| TensorShapeProto { dim: shape.iter().enumerate().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(ty.dtype.code() as i32), shape };
    TypeProto { value: Some(type_proto::Value::TensorType(tensor)) }
}

/// Builds the declaration of a value.
pub fn value_info(name: &str, r#type: Option<TypeProto>) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.to_owned()), r#type }
}
