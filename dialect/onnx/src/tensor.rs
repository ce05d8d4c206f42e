//! Constants: dense little-endian buffers that may alias a mapped file.

use crate::DType;
use bytes::Bytes;
use half::{bf16, f16};

/// Constant of known shape. `bytes` has the layout of ONNX's `raw_data`: row-major, little-endian, one byte per `bool`, types
/// narrower than a byte packed with the first element in the low bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    dtype: DType,
    dims: Vec<i64>,
    bytes: Bytes,
}

impl Tensor {
    /// Creates a tensor. `None` if a dimension is negative or the length of `bytes` does not match type and shape.
    pub fn new(dtype: DType, dims: Vec<i64>, bytes: Bytes) -> Option<Self> {
        let expected = dtype.byte_len(count_of(&dims)?)?;
        (bytes.len() as u64 == expected).then_some(Self { dtype, dims, bytes })
    }

    /// Creates a tensor from integers, wrapped to the width of `dtype` (integers, `bool` as zero and nonzero).
    /// `None` for other types or if the number of values does not match the shape.
    pub fn from_ints(dtype: DType, dims: Vec<i64>, values: &[i64]) -> Option<Self> {
        if count_of(&dims)? != values.len() as u64 {
            return None;
        }
        let bytes = match dtype {
            DType::Bool => values.iter().map(|&v| u8::from(v != 0)).collect(),
            DType::I64 | DType::U64 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            DType::I32 | DType::U32 => values.iter().flat_map(|&v| (v as i32).to_le_bytes()).collect(),
            DType::I16 | DType::U16 => values.iter().flat_map(|&v| (v as i16).to_le_bytes()).collect(),
            DType::I8 | DType::U8 => values.iter().map(|&v| v as u8).collect(),
            DType::I4 | DType::U4 | DType::I2 | DType::U2 => pack(dtype.bits() as usize, values),
            _ => return None,
        };
        Some(Self { dtype, dims, bytes: Vec::into(bytes) })
    }

    /// Creates a tensor from floating-point numbers, rounded to nearest even. `None` for other types or if the number of values
    /// does not match the shape.
    pub fn from_floats(dtype: DType, dims: Vec<i64>, values: &[f64]) -> Option<Self> {
        if count_of(&dims)? != values.len() as u64 {
            return None;
        }
        let bytes: Vec<u8> = match dtype {
            DType::F64 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            DType::F32 => values.iter().flat_map(|&v| (v as f32).to_le_bytes()).collect(),
            DType::F16 => values.iter().flat_map(|&v| f16::from_f32(round_to_odd(v)).to_le_bytes()).collect(),
            DType::BF16 => values.iter().flat_map(|&v| bf16::from_f32(round_to_odd(v)).to_le_bytes()).collect(),
            _ => return None,
        };
        Some(Self { dtype, dims, bytes: bytes.into() })
    }

    /// Creates a one-dimensional `int64` tensor, the form in which ONNX passes shapes and axes.
    pub fn from_shape(values: &[i64]) -> Self {
        Self::from_ints(DType::I64, vec![values.len() as i64], values).expect("the count is the only dimension")
    }

    /// Creates an `int64` scalar.
    pub fn scalar_i64(value: i64) -> Self {
        Self::from_ints(DType::I64, vec![], &[value]).expect("a scalar has one element")
    }

    /// Creates a `float` scalar.
    pub fn scalar_f32(value: f32) -> Self {
        Self::from_floats(DType::F32, vec![], &[value.into()]).expect("a scalar has one element")
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Returns the encoded elements.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the number of elements.
    pub fn count(&self) -> usize {
        // The plain product may overflow even if one dimension is zero.
        count_of(&self.dims).unwrap_or(0) as usize
    }

    /// Decodes integers and `bool`. `None` for other types and for `uint64` beyond `i64::MAX`.
    pub fn ints(&self) -> Option<Vec<i64>> {
        fn read<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> i64) -> Vec<i64> {
            bytes.as_chunks::<N>().0.iter().map(|&chunk| f(chunk)).collect()
        }
        let bytes = &self.bytes[..];
        Some(match self.dtype {
            DType::Bool => read(bytes, |[b]: [u8; 1]| i64::from(b != 0)),
            DType::I64 => read(bytes, i64::from_le_bytes),
            DType::U64 => {
                let values = read(bytes, i64::from_le_bytes);
                return values.iter().all(|&v| v >= 0).then_some(values);
            }
            DType::I32 => read(bytes, |b| i32::from_le_bytes(b).into()),
            DType::U32 => read(bytes, |b| u32::from_le_bytes(b).into()),
            DType::I16 => read(bytes, |b| i16::from_le_bytes(b).into()),
            DType::U16 => read(bytes, |b| u16::from_le_bytes(b).into()),
            DType::I8 => read(bytes, |b| i8::from_le_bytes(b).into()),
            DType::U8 => read(bytes, |b| u8::from_le_bytes(b).into()),
            DType::U4 | DType::U2 | DType::I4 | DType::I2 => self.unpack(),
            _ => return None,
        })
    }

    /// Decodes floating-point numbers, exactly. `None` for other types.
    pub fn floats(&self) -> Option<Vec<f64>> {
        fn read<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> f64) -> Vec<f64> {
            bytes.as_chunks::<N>().0.iter().map(|&chunk| f(chunk)).collect()
        }
        let bytes = &self.bytes[..];
        Some(match self.dtype {
            DType::F64 => read(bytes, f64::from_le_bytes),
            DType::F32 => read(bytes, |b| f32::from_le_bytes(b).into()),
            DType::F16 => read(bytes, |b| f16::from_le_bytes(b).to_f64()),
            DType::BF16 => read(bytes, |b| bf16::from_le_bytes(b).to_f64()),
            _ => return None,
        })
    }

    /// Returns the same elements with another shape; `None` if the number of elements differs.
    pub fn reshaped(&self, dims: Vec<i64>) -> Option<Self> {
        (count_of(&dims)? == self.count() as u64).then(|| Self { dtype: self.dtype, dims, bytes: self.bytes.clone() })
    }

    fn unpack(&self) -> Vec<i64> {
        let bits = self.dtype.bits() as usize;
        let mask = (1u8 << bits) - 1;
        (0..self.count())
            .map(|i| {
                let field = self.bytes[i * bits / 8] >> (i * bits % 8) & mask;
                let sign = if self.dtype.is_signed_int() { field & (1 << (bits - 1)) } else { 0 };
                i64::from(field) - 2 * i64::from(sign)
            })
            .collect()
    }
}

/// Rounds to `f32` such that rounding again to a narrower type equals rounding once: inexact results get an odd last bit, so
/// that they are never a tie. The crate `half` rounds an `f64` twice.
fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if value.is_nan() || f64::from(nearest) == value {
        return nearest;
    }
    let toward_zero = nearest.to_bits() - u32::from(f64::from(nearest).abs() > value.abs());
    f32::from_bits(toward_zero | 1)
}

fn pack(bits: usize, values: &[i64]) -> Vec<u8> {
    let mask = (1u8 << bits) - 1;
    let mut bytes = vec![0; (values.len() * bits).div_ceil(8)];
    for (i, &value) in values.iter().enumerate() {
        bytes[i * bits / 8] |= (value as u8 & mask) << (i * bits % 8);
    }
    bytes
}

/// Returns the number of elements of a shape; `None` if a dimension is negative or the product overflows.
pub fn count_of(dims: &[i64]) -> Option<u64> {
    // A zero dimension makes the tensor empty, even if the product of the others overflows.
    let empty = dims.contains(&0);
    let mut count = u64::from(!empty);
    for &dim in dims {
        let dim = u64::try_from(dim).ok()?;
        count = if empty { 0 } else { count.checked_mul(dim)? };
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ints_round_trip_at_every_width() {
        for dtype in [DType::I64, DType::I32, DType::I16, DType::I8, DType::I4, DType::I2] {
            let tensor = Tensor::from_ints(dtype, vec![3], &[-2, 0, 1]).unwrap();
            assert_eq!(tensor.ints().unwrap(), [-2, 0, 1], "{dtype}");
        }
        for dtype in [DType::U64, DType::U32, DType::U16, DType::U8, DType::U4, DType::U2] {
            let tensor = Tensor::from_ints(dtype, vec![3], &[3, 0, 1]).unwrap();
            assert_eq!(tensor.ints().unwrap(), [3, 0, 1], "{dtype}");
        }
        assert_eq!(Tensor::from_ints(DType::U64, vec![], &[-1]).unwrap().ints(), None);
    }

    #[test]
    fn floats_round_to_the_type() {
        for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            let tensor = Tensor::from_floats(dtype, vec![2], &[0.5, -2.0]).unwrap();
            assert_eq!(tensor.floats().unwrap(), [0.5, -2.0], "{dtype}");
        }
    }

    #[test]
    fn narrow_floats_are_rounded_once() {
        // Slightly above the midpoint of two `f16` numbers; rounding to `f32` first would yield the midpoint.
        let just_above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        let tensor = Tensor::from_floats(DType::F16, vec![3], &[just_above, -just_above, 1e300]).unwrap();
        let above = 1.0 + 2f64.powi(-10);
        assert_eq!(tensor.floats().unwrap(), [above, -above, f64::INFINITY]);
        let just_above = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
        let tensor = Tensor::from_floats(DType::BF16, vec![1], &[just_above]).unwrap();
        assert_eq!(tensor.floats().unwrap(), [1.0 + 2f64.powi(-7)]);
        assert!(Tensor::from_floats(DType::F16, vec![], &[f64::NAN]).unwrap().floats().unwrap()[0].is_nan());
    }

    #[test]
    fn lengths_are_checked() {
        assert!(Tensor::new(DType::F32, vec![2], Bytes::from_static(&[0; 8])).is_some());
        assert!(Tensor::new(DType::F32, vec![2], Bytes::from_static(&[0; 7])).is_none());
        assert!(Tensor::new(DType::F32, vec![-2], Bytes::from_static(&[0; 8])).is_none());
        assert!(Tensor::new(DType::F32, vec![1 << 62, 1 << 62], Bytes::new()).is_none());
        assert_eq!(Tensor::new(DType::F32, vec![1 << 62, 1 << 62, 0], Bytes::new()).unwrap().count(), 0);
    }
}
