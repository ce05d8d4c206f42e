//! Decoded tensors, for operators that compute on elements.

use super::{
    bounded,
    walk::{StridedOffsets, broadcast},
};
use crate::{
    DType, Node, Tensor,
    node::{KnownElements, normalize_axes},
};

/// Elements in row-major order with their shape.
#[derive(Debug)]
pub(super) struct Array<T> {
    pub(super) dims: Vec<i64>,
    pub(super) data: Vec<T>,
}

impl<T: Copy> Array<T> {
    pub(super) fn map<R>(&self, f: impl Fn(T) -> Option<R>) -> Option<Array<R>> {
        Some(Array { dims: self.dims.clone(), data: self.data.iter().map(|&x| f(x)).collect::<Option<_>>()? })
    }

    /// Applies `f` to each pair of elements, with numpy broadcasting.
    pub(super) fn zip<U: Copy, R>(&self, other: &Array<U>, f: impl Fn(T, U) -> Option<R>) -> Option<Array<R>> {
        let dims = broadcast(&self.dims, &other.dims)?;
        let walks = StridedOffsets::broadcast(&self.dims, &dims)?.zip(StridedOffsets::broadcast(&other.dims, &dims)?);
        let data = walks.map(|(i, j)| f(*self.data.get(i)?, *other.data.get(j)?)).collect::<Option<_>>()?;
        Some(Array { dims, data })
    }
}

/// Decoded tensor: integers and `bool` as `i64`, floating-point numbers as `f64`. Both conversions are exact.
pub(super) enum Decoded {
    Ints(Array<i64>),
    Floats(Array<f64>),
}

impl Decoded {
    /// Decodes a tensor. `None` for other types, for `uint64` beyond `i64::MAX`, and for tensors that are too large.
    pub(super) fn of(tensor: &Tensor) -> Option<Self> {
        bounded(tensor.dims())?;
        let dims = tensor.dims().to_vec();
        match tensor.floats() {
            Some(data) => Some(Self::Floats(Array { dims, data })),
            None => Some(Self::Ints(Array { dims, data: tensor.ints()? })),
        }
    }

    /// Encodes as `dtype`: integers wrap, floating-point numbers are rounded. `None` if `dtype` is of another kind.
    pub(super) fn content(self, dtype: DType) -> Option<KnownElements> {
        self.tensor(dtype).map(KnownElements::Constant)
    }

    /// Encodes as `dtype`, like [`content`](Self::content).
    pub(super) fn tensor(self, dtype: DType) -> Option<Tensor> {
        match self {
            Self::Ints(array) => Tensor::from_ints(dtype, array.dims, &array.data),
            Self::Floats(array) => Tensor::from_floats(dtype, array.dims, &array.data),
        }
    }
}

/// Returns the elements of a constant operand.
pub(super) fn constant<'a>(node: &Node<'a>, index: usize) -> Option<&'a Tensor> {
    node.optional(index)?.tensor()
}

/// Returns the elements of a constant integer operand, if they are at most [`MAX_ELEMENTS`](super::MAX_ELEMENTS).
pub(super) fn int_array(node: &Node<'_>, index: usize) -> Option<Array<i64>> {
    let tensor = constant(node, index)?;
    bounded(tensor.dims())?;
    Some(Array { dims: tensor.dims().to_vec(), data: tensor.ints()? })
}

/// Returns the elements of a constant integer list or scalar, such as axes.
pub(super) fn ints(node: &Node<'_>, index: usize) -> Option<Vec<i64>> {
    let array = int_array(node, index)?;
    (array.dims.len() <= 1).then_some(array.data)
}

/// Returns the elements of an optional integer list: `Some(None)` if it is absent, `None` if it is present but unknown.
pub(super) fn optional_ints(node: &Node<'_>, index: usize) -> Option<Option<Vec<i64>>> {
    match node.optional(index) {
        None => Some(None),
        Some(_) => ints(node, index).map(Some),
    }
}

/// Returns the value of a constant integer scalar or list of one element.
pub(super) fn int(node: &Node<'_>, index: usize) -> Option<i64> {
    match ints(node, index)?[..] {
        [value] => Some(value),
        _ => None,
    }
}

/// Rounds a number to a floating-point type, for operators that round after each step.
pub(super) fn rounded(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F64 => value,
        DType::F32 => f64::from(value as f32),
        _ => Tensor::from_floats(dtype, vec![], &[value]).and_then(|t| t.floats()?.first().copied()).unwrap_or(value),
    }
}

/// Normalizes an index, which counts from the end if negative. `None` if it is out of range.
pub(super) fn index(index: i64, size: i64) -> Option<i64> {
    let index = if index < 0 { index.checked_add(size)? } else { index };
    (0..size).contains(&index).then_some(index)
}

/// Normalizes axes, each of which may occur only once. `None` also for ranks above 64, which bounds the quadratic check.
pub(super) fn axes(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    const MAX_RANK: usize = 64;
    if rank > MAX_RANK || axes.len() > rank {
        return None;
    }
    normalize_axes(axes, rank).ok()
}
