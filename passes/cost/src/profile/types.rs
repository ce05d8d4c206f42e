//! Types of the values that the operators of an entry read and write, from which their work is counted.

use super::{Entry, Member};
use crate::work::{opaque_work, work};
use crate::{Task, Work};
use divi_onnx::{DType, Dim, Error, Node, TensorType, Value};
use std::fmt;
use std::str::FromStr;

/// Types of the operands and results of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberTypes {
    /// Operands; `None` for absent ones.
    pub operands: Vec<Option<OperandType>>,
    /// Present results.
    pub results: Vec<ValueType>,
}

/// Type of an operand. In files: `const f32[64,3,7,7]`, `inner f32[N,64,112,112]`, `f32[N,3,224,224]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandType {
    /// Source of the value.
    pub origin: Origin,
    /// Type.
    pub ty: ValueType,
}

/// Source of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A constant.
    Constant,
    /// Another operator of the entry, or an earlier operator of the entry has read it already.
    Inner,
    /// Another task, which computes it inside the result of this concatenation.
    Placed,
    /// Another task.
    Outer,
}

/// Type of a value for any batch size. In files: `f32[12N,197,64]`, where `N` is the batch size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueType {
    /// Element type.
    pub dtype: DType,
    /// Shape at batch size 1.
    pub shape: Vec<u64>,
    /// True if the first dimension is multiplied by the batch size.
    pub has_batch: bool,
}

/// Element types with shorter names in files; all others have ONNX's names.
const SHORT: &[(DType, &str)] = &[(DType::F32, "f32"), (DType::F16, "f16"), (DType::BF16, "bf16"), (DType::F64, "f64")];

/// Returns the name of an element type in files.
pub(super) fn dtype_name(dtype: DType) -> &'static str {
    SHORT.iter().find(|(known, _)| *known == dtype).map_or(dtype.name(), |(_, short)| short)
}

/// Returns the element type that a file names.
pub(super) fn dtype_of(name: &str) -> Option<DType> {
    let short = SHORT.iter().find(|(_, short)| *short == name).map(|(dtype, _)| *dtype);
    short.or_else(|| DType::ALL.iter().copied().find(|dtype| dtype.name() == name))
}

impl ValueType {
    /// Returns the type at batch size 1 of a value that was measured at `batch`; `None` if its first dimension is not a multiple
    /// of the batch size.
    pub fn at_batch_one(mut self, batch: u64) -> Option<Self> {
        if self.has_batch {
            let first = self.shape.first_mut().filter(|first| batch > 0 && first.is_multiple_of(batch))?;
            *first /= batch;
        }
        Some(self)
    }

    fn at(&self, batch: u64) -> TensorType {
        let factor = |axis: usize| if self.has_batch && axis == 0 { batch } else { 1 };
        let size = |(axis, &size): (usize, &u64)| i64::try_from(size.saturating_mul(factor(axis))).unwrap_or(i64::MAX);
        let dims: Vec<Dim> = self.shape.iter().enumerate().map(|sized| Dim::Known(size(sized))).collect();
        TensorType::new(self.dtype, dims)
    }
}

impl MemberTypes {
    /// Returns the types at batch size 1 of an operator that was measured at `batch`, as [`ValueType::at_batch_one`].
    pub fn at_batch_one(self, batch: u64) -> Option<Self> {
        let operand = |operand: Option<OperandType>| match operand {
            Some(OperandType { origin, ty }) => Some(Some(OperandType { origin, ty: ty.at_batch_one(batch)? })),
            None => Some(None),
        };
        let operands = self.operands.into_iter().map(operand).collect::<Option<_>>()?;
        let results = self.results.into_iter().map(|ty| ty.at_batch_one(batch)).collect::<Option<_>>()?;
        Some(Self { operands, results })
    }

    /// Counts the work of an operator with these types.
    fn count(&self, op: &Member, batch: u64) -> Result<Work, Error> {
        let value = |operand: &Option<OperandType>| operand.as_ref().map(|operand| Value::new(operand.ty.at(batch)));
        let values: Vec<Option<Value>> = self.operands.iter().map(value).collect();
        let inputs: Vec<Option<&Value>> = values.iter().map(Option::as_ref).collect();
        let results: Vec<TensorType> = self.results.iter().map(|ty| ty.at(batch)).collect();
        let is_constant =
            |operand: &Option<OperandType>| operand.as_ref().is_some_and(|it| it.origin == Origin::Constant);
        let constant: Vec<bool> = self.operands.iter().map(is_constant).collect();
        let counted = match op.known() {
            Some(known) => {
                let node = Node { op: known, inputs: &inputs, attributes: &op.attributes, outputs: results.len() };
                work(&node, &results, &constant)
            }
            None => opaque_work(&inputs, &results, &constant),
        };
        counted.map_err(|error| Error::new(format!("{}: {error}", op.name)))
    }

    /// Returns the bytes of operands of an origin.
    fn bytes(&self, origin: Origin, batch: u64) -> u64 {
        let operands = self.operands.iter().flatten().filter(|operand| operand.origin == origin);
        operands.filter_map(|operand| byte_count(&operand.ty.at(batch))).fold(0, u64::saturating_add)
    }
}

impl Entry {
    /// Returns the task at a batch size, given the types of its values.
    pub(super) fn typed_task(&self, types: &[MemberTypes], batch: u64) -> Result<Task, Error> {
        let mut task = Task { members: vec![], read: 0, weights: 0, written: 0 };
        let mut placed: u64 = 0;
        for (op, types) in self.ops.iter().zip(types) {
            let in_result = types.bytes(Origin::Placed, batch);
            let counted = types.count(op, batch)?.without_copies(in_result);
            placed = placed.saturating_add(in_result);
            task.read = task.read.saturating_add(counted.read.saturating_sub(types.bytes(Origin::Inner, batch)));
            task.weights = task.weights.saturating_add(counted.weights);
            task.members.push(counted);
        }
        let result = |shape: &Vec<u64>| ValueType { dtype: self.dtype, shape: shape.clone(), has_batch: true };
        let written = self.outputs.iter().filter_map(|shape| byte_count(&result(shape).at(batch)));
        task.written = written.fold(0, u64::saturating_add).saturating_sub(placed);
        Ok(task)
    }
}

fn byte_count(ty: &TensorType) -> Option<u64> {
    ty.dtype.byte_len(u64::try_from(ty.count()?).ok()?)
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sizes: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        if self.has_batch
            && let Some(first) = sizes.first_mut()
        {
            *first = if first == "1" { "N".to_owned() } else { format!("{first}N") };
        }
        write!(f, "{}[{}]", dtype_name(self.dtype), sizes.join(","))
    }
}

impl FromStr for ValueType {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (dtype, sizes) = text.strip_suffix(']').and_then(|text| text.split_once('[')).ok_or(())?;
        let dtype = dtype_of(dtype).ok_or(())?;
        let mut sizes: Vec<&str> = if sizes.is_empty() { vec![] } else { sizes.split(',').collect() };
        let factor = sizes.first().and_then(|first| first.strip_suffix('N'));
        if let Some(factor) = factor {
            sizes[0] = if factor.is_empty() { "1" } else { factor };
        }
        let shape = sizes.iter().map(|size| size.parse().map_err(drop)).collect::<Result<_, _>>()?;
        Ok(Self { dtype, shape, has_batch: factor.is_some() })
    }
}

impl fmt::Display for OperandType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.origin {
            Origin::Constant => "const ",
            Origin::Inner => "inner ",
            Origin::Placed => "placed ",
            Origin::Outer => "",
        };
        write!(f, "{prefix}{}", self.ty)
    }
}

impl FromStr for OperandType {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (origin, ty) = match text.split_once(' ') {
            Some(("const", ty)) => (Origin::Constant, ty),
            Some(("inner", ty)) => (Origin::Inner, ty),
            Some(("placed", ty)) => (Origin::Placed, ty),
            Some(_) => return Err(()),
            None => (Origin::Outer, text),
        };
        Ok(Self { origin, ty: ty.parse()? })
    }
}
