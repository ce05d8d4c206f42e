//! Converts the types that a model declares.

use super::{
    proto::{
        TypeProto,
        tensor_shape_proto::{Dimension, dimension},
        type_proto,
    },
    translate::Translator,
};
use divi_onnx::{DType, Dim, Symbol, TensorType};
use melior::ir::Type;

/// Type of a value.
#[derive(Clone, Debug)]
pub(super) enum ValueType<'c> {
    Tensor(TensorType),
    /// Sequences and optionals, which are not inferred.
    Other(Type<'c>),
}

impl<'c> Translator<'c, '_> {
    /// Converts a declared type; `Ok(None)` if it lacks an element type, or nothing is declared.
    pub(super) fn declared_type(&mut self, ty: Option<&TypeProto>) -> Result<Option<ValueType<'c>>, String> {
        let Some(value) = ty.and_then(|ty| ty.value.as_ref()) else { return Ok(None) };
        match value {
            type_proto::Value::TensorType(tensor) => {
                if tensor.elem_type() == 0 {
                    return Ok(None);
                }
                let dtype = DType::from_code(tensor.elem_type().into())
                    .ok_or_else(|| format!("has element type code {}, which ONNX does not have", tensor.elem_type()))?;
                let size = |dim: &Dimension| match &dim.value {
                    // Older exporters write a negative size for a dynamic dimension.
                    None | Some(dimension::Value::DimValue(..0)) => Dim::Unknown,
                    Some(dimension::Value::DimValue(size)) => Dim::Known(*size),
                    Some(dimension::Value::DimParam(name)) => self.symbol(name),
                };
                let shape = tensor.shape.as_ref().map(|shape| shape.dim.iter().map(size).collect::<Vec<_>>());
                let ty = TensorType { dtype, shape };
                match ty.static_shape() {
                    Some(dims) if divi_onnx::tensor::count_of(&dims).and_then(|n| i64::try_from(n).ok()).is_none() => {
                        Err(format!(
                            "has shape {}, which no tensor can have",
                            divi_onnx::shape::format_shape(ty.shape.as_deref().unwrap_or_default())
                        ))
                    }
                    _ => Ok(Some(ValueType::Tensor(ty))),
                }
            }
            type_proto::Value::SequenceType(sequence) => {
                let element = self.declared_type(sequence.elem_type.as_deref())?;
                Ok(element.map(|element| ValueType::Other(self.container(divi_dialect::sequence_type, &element))))
            }
            type_proto::Value::OptionalType(optional) => {
                let element = self.declared_type(optional.elem_type.as_deref())?;
                Ok(element.map(|element| ValueType::Other(self.container(divi_dialect::optional_type, &element))))
            }
            type_proto::Value::MapType(_) => Err("is a map, which divi does not support".into()),
            type_proto::Value::SparseTensorType(_) => Err("is a sparse tensor, which divi does not support".into()),
            type_proto::Value::OpaqueType(_) => Err("has an opaque type, which divi does not support".into()),
        }
    }

    fn container(&self, make: fn(Type<'c>) -> Type<'c>, element: &ValueType<'c>) -> Type<'c> {
        make(self.mlir_type(element))
    }

    pub(super) fn mlir_type(&self, ty: &ValueType<'c>) -> Type<'c> {
        match ty {
            ValueType::Tensor(tensor) => self.emitter.tensor_type(tensor),
            ValueType::Other(other) => *other,
        }
    }

    /// Returns the dimension of a name: a size if the options fix it.
    pub(super) fn symbol(&mut self, name: &str) -> Dim {
        if name.is_empty() {
            return Dim::Unknown;
        }
        if let Some(&dim) = self.symbols.get(name) {
            return dim;
        }
        let dim = match self.options.dims.iter().find(|(other, _)| other == name) {
            Some(&(_, size)) => Dim::Known(size),
            None => {
                self.symbol_names.push(name.to_owned());
                Dim::Symbol(Symbol(self.symbol_names.len() as u32 - 1))
            }
        };
        self.symbols.insert(name.to_owned(), dim);
        dim
    }

    /// Returns the name of a dimension.
    pub(super) fn symbol_name(&self, dim: Dim) -> Option<&str> {
        match dim {
            Dim::Symbol(Symbol(index)) => self.symbol_names.get(index as usize).map(String::as_str),
            Dim::Known(_) | Dim::Unknown => None,
        }
    }
}
