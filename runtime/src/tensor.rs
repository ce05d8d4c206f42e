//! Tensors that go in and come out: dense, row-major, as ONNX has them.

use crate::{
    dtype::DType,
    error::Error,
    memory::Aligned,
    pool::{Pool, Pooled},
};
use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// A tensor with its bytes, which begin at a multiple of 64, so that kernels can read them where they are.
pub struct TensorData {
    dtype: DType,
    shape: Vec<u64>,
    bytes: Bytes,
}

enum Bytes {
    Own(Aligned),
    /// Devices with memory of their own copy from and to it by themselves.
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

/// A tensor whose bytes are somebody else's.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    pub dtype: DType,
    pub shape: &'a [u64],
    pub bytes: &'a [u8],
}

impl TensorData {
    pub fn zeroed(dtype: DType, shape: &[u64]) -> Result<Self, Error> {
        Self::made(dtype, shape, |bytes, what| Ok(Bytes::Own(Aligned::zeroed(bytes, what)?)))
    }

    /// Its bytes are a pool's, and may be anything.
    pub(crate) fn pooled(dtype: DType, shape: &[u64], pool: &Arc<Pool>) -> Result<Self, Error> {
        Self::made(dtype, shape, |bytes, what| Ok(Bytes::Pooled(pool.take(bytes, what)?)))
    }

    fn made(dtype: DType, shape: &[u64], bytes: impl FnOnce(u64, &str) -> Result<Bytes, Error>) -> Result<Self, Error> {
        let what = format!("a tensor of {}", Described(dtype.name(), shape));
        let length = dtype.bytes_of(shape).ok_or_else(|| Error::Memory { what: what.clone(), bytes: u64::MAX })?;
        Ok(Self { dtype, shape: shape.to_owned(), bytes: bytes(length, &what)? })
    }

    /// `None` if the bytes are not as many as the shape takes.
    pub fn new(dtype: DType, shape: &[u64], bytes: &[u8]) -> Option<Self> {
        let mut tensor = Self::zeroed(dtype, shape).ok().filter(|tensor| tensor.bytes.len() == bytes.len())?;
        tensor.bytes.copy_from_slice(bytes);
        Some(tensor)
    }

    /// `None` if the numbers are not as many as the shape takes.
    pub fn from_f32(shape: &[u64], numbers: &[f32]) -> Option<Self> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        Self::new(DType::F32, shape, &bytes)
    }

    /// The numbers, if they are of 32 bits.
    pub fn to_f32(&self) -> Option<Vec<f32>> {
        let numbers = self.bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
        (self.dtype == DType::F32).then(|| numbers.collect())
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub fn view(&self) -> TensorRef<'_> {
        TensorRef { dtype: self.dtype, shape: &self.shape, bytes: &self.bytes }
    }

    /// Returns the same bits as another type of the same width. Of another width, returns the tensor itself as the error.
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

/// `float [1, 3, 224, 224]`
struct Described<'a>(&'a str, &'a [u64]);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.0, self.1)
    }
}
