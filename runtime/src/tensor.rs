//! Tensors of inputs and outputs: dense and row-major.

use crate::{
    dtype::DType,
    error::Error,
    memory::AlignedBuffer,
    pool::{Pool, Pooled},
};
use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// Tensor that owns its bytes, which are aligned to 64 so that kernels can read them in place.
pub struct TensorData {
    dtype: DType,
    shape: Vec<u64>,
    bytes: Bytes,
}

enum Bytes {
    Own(AlignedBuffer),
    /// Pinned memory of a pool.
    Pooled(Pooled),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Pooled(bytes) => bytes,
        }
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Pooled(bytes) => bytes,
        }
    }
}

/// Tensor with borrowed bytes.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: &'a [u64],
    /// Elements, dense and row-major.
    pub bytes: &'a [u8],
}

impl TensorData {
    /// Allocates a tensor of zeros.
    pub fn zeroed(dtype: DType, shape: &[u64]) -> Result<Self, Error> {
        Self::made(dtype, shape, |bytes, what| Ok(Bytes::Own(AlignedBuffer::zeroed(bytes, what)?)))
    }

    /// Allocates a tensor from a pool. Its contents are unspecified.
    pub(crate) fn pooled(dtype: DType, shape: &[u64], pool: &Arc<Pool>) -> Result<Self, Error> {
        Self::made(dtype, shape, |bytes, what| Ok(Bytes::Pooled(pool.take(bytes, what)?)))
    }

    fn made(dtype: DType, shape: &[u64], bytes: impl FnOnce(u64, &str) -> Result<Bytes, Error>) -> Result<Self, Error> {
        let what = format!("a tensor of {}", Described(dtype.name(), shape));
        let length = dtype.bytes_of(shape).ok_or_else(|| Error::Memory { what: what.clone(), bytes: u64::MAX })?;
        Ok(Self { dtype, shape: shape.to_owned(), bytes: bytes(length, &what)? })
    }

    /// Copies a tensor from bytes; `None` if their number does not match the shape.
    pub fn new(dtype: DType, shape: &[u64], bytes: &[u8]) -> Option<Self> {
        let mut tensor = Self::zeroed(dtype, shape).ok().filter(|tensor| tensor.bytes.len() == bytes.len())?;
        tensor.bytes.copy_from_slice(bytes);
        Some(tensor)
    }

    /// Builds an `f32` tensor; `None` if the number of elements does not match the shape.
    pub fn from_f32(shape: &[u64], numbers: &[f32]) -> Option<Self> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        Self::new(DType::F32, shape, &bytes)
    }

    /// Returns the elements of an `f32` tensor; `None` for other types.
    pub fn to_f32(&self) -> Option<Vec<f32>> {
        let numbers = self.bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
        (self.dtype == DType::F32).then(|| numbers.collect())
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the bytes of the elements.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes of the elements, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Borrows the tensor.
    pub fn view(&self) -> TensorRef<'_> {
        TensorRef { dtype: self.dtype, shape: &self.shape, bytes: &self.bytes }
    }

    /// Reinterprets the elements as another type of the same width; returns the unchanged tensor as the error otherwise.
    pub fn with_type(self, dtype: DType) -> Result<Self, Self> {
        if self.dtype.bits() == dtype.bits() { Ok(Self { dtype, ..self }) } else { Err(self) }
    }
}

impl fmt::Debug for TensorData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.view())
    }
}

impl fmt::Display for TensorRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Described(self.dtype.name(), self.shape).fmt(f)
    }
}

/// Type and shape, printed as `float [1, 3, 224, 224]`.
struct Described<'a>(&'a str, &'a [u64]);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.0, self.1)
    }
}
