//! Converts types of values to ONNX.

use super::proto::tensor_type;
use crate::import::proto::{TypeProto, type_proto};
use divi_dialect::{Value, contained_type, tensor_type_of};
use divi_onnx::DType;
use melior::ir::Type;

/// Returns the type that a model declares for a value; `None` for types that ONNX does not have. `dimensions` are the
/// names of dynamic dimensions, in the form of `onnx.dim_params`: `0:batch,2:length`.
pub(super) fn declared(value: Value<'_>, dimensions: &str) -> Option<TypeProto> {
    convert(value.r#type(), dimensions)
}

fn convert(ty: Type<'_>, dimensions: &str) -> Option<TypeProto> {
    if let Some(ty) = tensor_type_of(ty) {
        let named = |index: usize| {
            let mut entries = dimensions.split(',').filter_map(|entry| entry.split_once(':'));
            entries.find(|(place, _)| place.parse() == Ok(index)).map(|(_, name)| name.to_owned())
        };
        return Some(tensor_type(&ty, named));
    }
    let element = Some(convert(contained_type(ty)?, "")?.into());
    // Only two types of the dialect contain others; the C API identifies types by their text only.
    let value = match ty.to_string().starts_with("!onnx.Seq") {
        true => type_proto::Value::SequenceType(type_proto::Sequence { elem_type: element }.into()),
        false => type_proto::Value::OptionalType(type_proto::Optional { elem_type: element }.into()),
    };
    Some(TypeProto { value: Some(value) })
}

/// Returns the element type of a tensor, or of the tensors in a container.
pub(super) fn element_type(value: Value<'_>) -> Option<DType> {
    let mut ty = value.r#type();
    loop {
        match tensor_type_of(ty) {
            Some(tensor) => return Some(tensor.dtype),
            None => ty = contained_type(ty)?,
        }
    }
}
