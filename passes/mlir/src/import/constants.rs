//! Translates constants: small ones become attributes, others refer to their bytes.

use super::{
    files::WeightFile,
    proto::SparseTensorProto,
    tensor_proto::{Elements, TensorProto},
    translate::{Kind, Result, Slot, Translator, ValueId},
};
use crate::ir::ONNX_CONSTANT;
use bytes::Bytes;
use divi_dialect::{ExternalAttribute, NewOperation, Value, attr, string_elements};
use divi_onnx::{DType, Dim, Tensor, TensorType, Value as Known};
use divi_runtime::weights;
use melior::ir::{Attribute, Type};
use std::rc::Rc;

/// Integer constants of at most this many elements are written into the IR, because shapes and axes should be readable.
/// So are single numbers of every type. Weights are referred to.
const INLINE_INTEGERS: usize = 64;

/// Size limit of sparse constants, which are stored densely.
const MAX_DENSIFIED_BYTES: u64 = 64 << 20;

/// Constant whose operation is created on first use.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    /// Name of the initializer or node.
    name: String,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    Tensor(Tensor),
    External { ty: TensorType, file: Rc<WeightFile>, offset: u64, length: u64 },
    Strings(Vec<Bytes>),
}

impl<'c> Translator<'c, '_> {
    pub(super) fn initializer(&mut self, tensor: &TensorProto) -> Result<ValueId> {
        if tensor.name.is_empty() {
            return Err("has no name".into());
        }
        self.constant_from(&tensor.name, tensor)
    }

    /// Adds a constant from its protobuf form.
    pub(super) fn constant_from(&mut self, name: &str, proto: &TensorProto) -> Result<ValueId> {
        let (kind, data) = match proto.elements()? {
            Elements::Here(tensor) => return Ok(self.constant(name, tensor)),
            Elements::Strings { dims, values } => {
                return Ok(self.text_constant(name, &dims, values));
            }
            Elements::External { dtype, dims, location, offset, length } => {
                let file = self.files.external(&location, self.source, self.options)?;
                file.check_extent(offset, length).map_err(|error| format!("is cut: {error}"))?;
                let shape: Vec<_> = dims.iter().copied().map(Dim::Known).collect();
                let ty = TensorType::new(dtype, shape);
                // Shapes and axes are needed for inference; weights are not read.
                let count = divi_onnx::tensor::count_of(&dims).unwrap_or(u64::MAX);
                if dtype.is_int() && count <= INLINE_INTEGERS as u64 && file.is_there() {
                    let bytes = weights::map(&file.path).map_err(|error| error.to_string())?;
                    let slice = bytes.slice(offset as usize..(offset + length) as usize);
                    if let Some(tensor) = Tensor::new(dtype, dims, slice) {
                        return Ok(self.constant(name, tensor));
                    }
                }
                (Known::new(ty.clone()), Data::External { ty, file, offset, length })
            }
        };
        let constant = Some(Constant { name: name.to_owned(), data });
        Ok(self.add(Slot { kind: Kind::Tensor(kind), mlir: None, constant }))
    }

    /// Adds a constant of strings, as many as the shape has elements.
    pub(super) fn text_constant(&mut self, name: &str, dims: &[i64], texts: Vec<Bytes>) -> ValueId {
        let shape: Vec<_> = dims.iter().copied().map(Dim::Known).collect();
        let kind = Kind::Tensor(Known::new(TensorType::new(DType::String, shape)));
        let constant = Some(Constant { name: name.to_owned(), data: Data::Strings(texts) });
        self.add(Slot { kind, mlir: None, constant })
    }

    /// Adds a constant that is in memory.
    pub(super) fn constant(&mut self, name: &str, tensor: Tensor) -> ValueId {
        let constant = Some(Constant { name: name.to_owned(), data: Data::Tensor(tensor.clone()) });
        self.add(Slot { kind: Kind::Tensor(Known::constant(tensor)), mlir: None, constant })
    }

    /// Adds a constant with the same bytes and another shape, as Reshape and other views do, without reading it.
    pub(super) fn reshaped_constant(&mut self, id: ValueId, ty: &TensorType) -> Option<ValueId> {
        let Constant { data, .. } = self.slot(id).constant.as_ref()?;
        let dims = ty.static_shape()?;
        let (value, data) = match data {
            Data::Tensor(tensor) => {
                let tensor = tensor.reshaped(dims)?;
                (Known::constant(tensor.clone()), Data::Tensor(tensor))
            }
            Data::External { file, offset, length, .. } => {
                let (file, offset, length) = (file.clone(), *offset, *length);
                (Known::new(ty.clone()), Data::External { ty: ty.clone(), file, offset, length })
            }
            Data::Strings(values) => (Known::new(ty.clone()), Data::Strings(values.clone())),
        };
        let constant = Some(Constant { name: self.current.name.clone(), data });
        Some(self.add(Slot { kind: Kind::Tensor(value), mlir: None, constant }))
    }

    /// Adds a sparse constant in dense form.
    pub(super) fn sparse_initializer(&mut self, sparse: &SparseTensorProto) -> Result<ValueId> {
        let values = sparse.values.as_ref().ok_or("has no values")?;
        let indices = sparse.indices.as_ref().ok_or("has no indices")?;
        let (Elements::Here(values_tensor), Elements::Here(indices)) = (values.elements()?, indices.elements()?) else {
            return Err("is sparse with values outside the model, which divi does not read".into());
        };
        let tensor = densify(&values_tensor, &indices, &sparse.dims)?;
        Ok(self.constant(&values.name, tensor))
    }

    /// Returns the MLIR value of a value of the model. The operation of a constant is created on first use.
    pub(super) fn materialize(&mut self, id: ValueId) -> Result<Value<'c>> {
        if let Some(value) = self.slot(id).mlir {
            return Ok(value);
        }
        let constant = self.slot(id).constant.clone().expect("a value without an operation is a constant");
        let ty = self.type_of(id);
        let attribute = self.constant_attribute(&constant, ty)?;
        // Attributes are uniqued, so equal constants have the same attribute.
        if let Some(&shared) = self.constants.get(&attribute) {
            self.slot_mut(id).mlir = Some(shared);
            return Ok(shared);
        }
        let location = self.emitter.location(&constant.name);
        let name = self.emitter.string(&constant.name);
        let attributes =
            [self.emitter.named(attr::NODE_NAME.name(), name), self.emitter.named(attr::VALUE.name(), attribute)];
        let operation = NewOperation::new(ONNX_CONSTANT, location);
        let operation = self.emitter.hoist(&NewOperation { results: &[ty], attributes: &attributes, ..operation });
        let value = operation.result(0);
        self.constants.insert(attribute, value);
        self.slot_mut(id).mlir = Some(value);
        Ok(value)
    }

    fn constant_attribute(&mut self, constant: &Constant, ty: Type<'c>) -> Result<Attribute<'c>> {
        let context = self.emitter.context;
        match &constant.data {
            Data::Tensor(tensor) => {
                let inline = match tensor.dtype() {
                    dtype if dtype.is_int() || dtype == DType::Bool => tensor.count() <= INLINE_INTEGERS,
                    _ => tensor.count() <= 1,
                };
                if inline {
                    return Ok(divi_dialect::dense_elements(context, tensor));
                }
                let model = self.files.model(self.source, self.options)?;
                match (self.source.offset_of(tensor.bytes()), model) {
                    (Some(offset), Some(file)) => {
                        let shape: Vec<_> = tensor.dims().iter().copied().map(Dim::Known).collect();
                        let ty = TensorType::new(tensor.dtype(), shape);
                        Ok(self.external(&constant.name, &ty, &file, offset, tensor.bytes().len() as u64))
                    }
                    _ => Ok(divi_dialect::dense_resource(context, &constant.name, tensor)),
                }
            }
            Data::External { ty, file, offset, length } => {
                Ok(self.external(&constant.name, ty, file, *offset, *length))
            }
            Data::Strings(values) => {
                let texts: Vec<_> = values
                    .iter()
                    .map(|bytes| std::str::from_utf8(bytes).map(str::as_bytes))
                    .collect::<std::result::Result<_, _>>()
                    .map_err(|_| format!("uses constant '{}', whose text is not UTF-8", constant.name))?;
                Ok(string_elements(ty, &texts))
            }
        }
    }

    fn external(&self, name: &str, ty: &TensorType, file: &WeightFile, offset: u64, length: u64) -> Attribute<'c> {
        let (location, ty) = (self.emitter.location(name), self.emitter.tensor_type(ty));
        let attribute = ExternalAttribute::new(location, ty, &file.from_ir, offset, length);
        attribute.expect("lengths are checked when a tensor is read").as_attribute()
    }
}

/// Scatters values to indices: linear ones of shape `[n]`, or one row of coordinates per value.
fn densify(values: &Tensor, indices: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let dtype = values.dtype();
    let length = divi_onnx::tensor::count_of(dims)
        .and_then(|count| dtype.byte_len(count))
        .filter(|&length| length <= MAX_DENSIFIED_BYTES && dtype.bits().is_multiple_of(8))
        .ok_or("is sparse and too large to store densely")?;
    let width = (dtype.bits() / 8) as usize;
    let indices_of = indices.ints().ok_or("has indices that are not integers")?;
    let count = values.count();
    let rank = indices_of.len().checked_div(count).unwrap_or(1);
    if indices_of.len() != count * rank || (rank != 1 && rank != dims.len()) {
        return Err(format!("has {} indices for {count} values", indices_of.len()));
    }
    let mut bytes = vec![0u8; length as usize];
    for (i, value) in values.bytes().chunks_exact(width).enumerate() {
        let coordinates = &indices_of[i * rank..(i + 1) * rank];
        let linear = match coordinates {
            [linear] => usize::try_from(*linear).ok(),
            _ => coordinates.iter().zip(dims).try_fold(0usize, |linear, (&index, &dim)| {
                (0..dim).contains(&index).then(|| linear * dim as usize + index as usize)
            }),
        };
        let start = linear.and_then(|linear| linear.checked_mul(width));
        let target = start.and_then(|start| bytes.get_mut(start..)?.get_mut(..width));
        target.ok_or("has an index outside its shape")?.copy_from_slice(value);
    }
    Tensor::new(dtype, dims.to_vec(), bytes.into()).ok_or_else(|| "does not fit its shape".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_constants_become_dense() {
        let values = Tensor::from_ints(DType::I32, vec![2], &[7, 8]).unwrap();
        let dense = densify(&values, &Tensor::from_shape(&[1, 3]), &[2, 2]).unwrap();
        assert_eq!(dense.ints().unwrap(), [0, 7, 0, 8]);
        let rows = Tensor::from_ints(DType::I64, vec![2, 2], &[0, 1, 1, 0]).unwrap();
        assert_eq!(densify(&values, &rows, &[2, 2]).unwrap().ints().unwrap(), [0, 7, 8, 0]);
        assert!(densify(&values, &Tensor::from_shape(&[1, 4]), &[2, 2]).is_err());
        assert!(densify(&values, &Tensor::from_shape(&[-1, 0]), &[2, 2]).is_err());
        assert!(densify(&values, &Tensor::from_shape(&[0, i64::MAX]), &[2, 2]).is_err());
        assert!(densify(&values, &Tensor::from_shape(&[1]), &[1 << 40]).is_err());
    }
}
