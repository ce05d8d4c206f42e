//! Input and result of work rules.

use super::{Class, Geometry};
use divi_onnx::{DType, Dim, Error, Node, TensorType, Value};

/// Operator to count.
pub(super) struct Operator<'a> {
    pub(super) node: &'a Node<'a>,
    pub(super) results: &'a [TensorType],
    /// Default class of the operator; rules may refine it by shapes.
    pub(super) class: Class,
}

/// Result of a rule.
pub(super) struct Count {
    pub(super) class: Class,
    pub(super) flops: u64,
    pub(super) scratch: u64,
    pub(super) dtype: DType,
    pub(super) geometry: Geometry,
    /// Operands that are read partly, with the bytes that are read.
    pub(super) read_bytes: Vec<(usize, u64)>,
    /// Bytes of the results, if they differ from those of their types.
    pub(super) written: Option<u64>,
}

impl Count {
    pub(super) fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    pub(super) fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    pub(super) fn scratch(mut self, bytes: u64) -> Self {
        self.scratch = bytes;
        self
    }

    pub(super) fn read_bytes(mut self, operand: usize, bytes: u64) -> Self {
        self.read_bytes.push((operand, bytes));
        self
    }
}

impl Operator<'_> {
    /// Returns true if an optional operand is present.
    pub(super) fn has(&self, operand: usize) -> bool {
        self.node.optional(operand).is_some()
    }

    pub(super) fn dims(&self, operand: usize) -> Result<Vec<u64>, Error> {
        sizes(&self.node.input(operand)?.ty, &format!("operand {operand}"))
    }

    pub(super) fn result_dims(&self, result: usize) -> Result<Vec<u64>, Error> {
        sizes(self.result(result)?, &format!("result {result}"))
    }

    fn result(&self, result: usize) -> Result<&TensorType, Error> {
        self.results.get(result).ok_or_else(|| Error::new(format!("result {result} is missing")))
    }

    /// Returns the number of elements of an operand.
    pub(super) fn count(&self, operand: usize) -> Result<u64, Error> {
        Ok(times(&self.dims(operand)?))
    }

    /// Returns the number of elements of a result.
    pub(super) fn result_count(&self, result: usize) -> Result<u64, Error> {
        result_count(self.result(result)?, result)
    }

    pub(super) fn bytes(&self, operand: usize) -> Result<u64, Error> {
        operand_bytes(self.node.input(operand)?, operand)
    }

    pub(super) fn result_bytes(&self, result: usize) -> Result<u64, Error> {
        result_bytes(self.result(result)?, result)
    }

    /// Returns a count that reads all operands entirely and computes in the type of the first operand.
    pub(super) fn does(&self, flops: u64, geometry: Geometry) -> Count {
        let dtype = dtype(self.node.inputs, self.results);
        Count { class: self.class, flops, scratch: 0, dtype, geometry, read_bytes: vec![], written: None }
    }

    /// Returns a count of `flops` operations per element of the first result.
    pub(super) fn each(&self, flops: u64) -> Result<Count, Error> {
        let count = self.result_count(0)?;
        Ok(self.does(times(&[count, flops]), Geometry::Elements { count }))
    }

    /// Returns the count of a view: no operations and no bytes.
    pub(super) fn view(&self) -> Count {
        let read_bytes = (0..self.node.inputs.len()).map(|operand| (operand, 0)).collect();
        let empty = self.does(0, Geometry::Elements { count: 0 }).class(Class::View);
        Count { read_bytes, written: Some(0), ..empty }
    }

    /// Returns the error that an operand does not have the required form.
    pub(super) fn wrong(&self, operand: usize, needs: &str) -> Error {
        match self.node.input(operand) {
            Ok(value) => Error::new(format!("operand {operand} must be {needs}, is {}", value.ty)),
            Err(error) => error,
        }
    }
}

/// Returns the element type of an operator's arithmetic: that of its first operand.
pub(super) fn dtype(inputs: &[Option<&Value>], results: &[TensorType]) -> DType {
    let first = inputs.iter().flatten().next().map(|value| value.ty.dtype);
    first.or(results.first().map(|result| result.dtype)).unwrap_or(DType::F32)
}

/// Returns the size in bytes of operand `index`.
pub(super) fn operand_bytes(value: &Value, index: usize) -> Result<u64, Error> {
    Ok(bytes(value.ty.dtype, times(&sizes(&value.ty, &format!("operand {index}"))?)))
}

/// Returns the number of elements of result `index`.
pub(super) fn result_count(ty: &TensorType, index: usize) -> Result<u64, Error> {
    Ok(times(&sizes(ty, &format!("result {index}"))?))
}

/// Returns the size in bytes of result `index`.
pub(super) fn result_bytes(ty: &TensorType, index: usize) -> Result<u64, Error> {
    Ok(bytes(ty.dtype, result_count(ty, index)?))
}

/// Returns the dimensions of a type, all of which must be known.
fn sizes(ty: &TensorType, what: &str) -> Result<Vec<u64>, Error> {
    const REMEDY: &str =
        "so its work cannot be counted: fix the batch or the shapes of the inputs (--batch, --input-shape)";
    let Some(shape) = &ty.shape else {
        return Err(Error::new(format!("the rank of {what} ({ty}) is unknown, {REMEDY}")));
    };
    let size = |(index, dim): (usize, &Dim)| match *dim {
        Dim::Known(size) => u64::try_from(size)
            .map_err(|_| Error::new(format!("dimension {index} of {what} ({ty}) is {size}, which is negative"))),
        _ => Err(Error::new(format!("dimension {index} of {what} ({ty}) is unknown, {REMEDY}"))),
    };
    shape.iter().enumerate().map(size).collect()
}

/// Returns the saturating product. It is 0 if any factor is 0.
pub(super) fn times(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |product, &factor| product.saturating_mul(factor))
}

/// Returns the saturating sum.
pub(super) fn plus(terms: &[u64]) -> u64 {
    terms.iter().fold(0, |sum, &term| sum.saturating_add(term))
}

/// Returns the size in bytes of a dense buffer; a string counts as its pointer and length.
pub fn bytes(dtype: DType, count: u64) -> u64 {
    match dtype {
        DType::String => count.saturating_mul(16),
        _ => dtype.byte_len(count).unwrap_or(u64::MAX),
    }
}

/// Returns `log2` of a count, rounded up: the depth of a balanced binary tree with that many leaves.
pub(super) fn levels(count: u64) -> u64 {
    (u64::BITS - count.saturating_sub(1).leading_zeros()).into()
}
