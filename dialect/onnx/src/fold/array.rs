//! Decoded tensors, for operators that compute.

use super::{
    bounded,
    walk::{Walk, broadcast},
};
use crate::{
    DType, Node, Tensor,
    node::{Content, normalize_axes},
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

    /// `f` of each pair of elements, with numpy broadcasting.
    pub(super) fn zip<U: Copy, R>(&self, other: &Array<U>, f: impl Fn(T, U) -> Option<R>) -> Option<Array<R>> {
        let dims = broadcast(&self.dims, &other.dims)?;
        let walks = Walk::broadcast(&self.dims, &dims)?.zip(Walk::broadcast(&other.dims, &dims)?);
        let data = walks.map(|(i, j)| f(*self.data.get(i)?, *other.data.get(j)?)).collect::<Option<_>>()?;
        Some(Array { dims, data })
    }
}

/// A decoded tensor: integers and `bool` as `i64`, floating-point numbers as `f64`, which hold them exactly.
pub(super) enum Numbers {
    Ints(Array<i64>),
    Floats(Array<f64>),
}

impl Numbers {
    /// `None` for other types, for `uint64` beyond `i64`, and for tensors that are too large.
    pub(super) fn of(tensor: &Tensor) -> Option<Self> {
        bounded(tensor.dims())?;
        let dims = tensor.dims().to_vec();
        match tensor.floats() {
            Some(data) => Some(Self::Floats(Array { dims, data })),
            None => Some(Self::Ints(Array { dims, data: tensor.ints()? })),
        }
    }

    /// Integers wrapped and floating-point numbers rounded to a type of their kind.
    pub(super) fn content(self, dtype: DType) -> Option<Content> {
        self.tensor(dtype).map(Content::Constant)
    }

    pub(super) fn tensor(self, dtype: DType) -> Option<Tensor> {
        match self {
            Self::Ints(array) => Tensor::from_ints(dtype, array.dims, &array.data),
            Self::Floats(array) => Tensor::from_floats(dtype, array.dims, &array.data),
        }
    }
}

/// A constant operand.
pub(super) fn constant<'a>(node: &Node<'a>, index: usize) -> Option<&'a Tensor> {
    node.optional(index)?.tensor()
}

/// The integers of an operand with their shape, where all are known and they are not too many.
pub(super) fn int_array(node: &Node<'_>, index: usize) -> Option<Array<i64>> {
    let tensor = constant(node, index)?;
    bounded(tensor.dims())?;
    Some(Array { dims: tensor.dims().to_vec(), data: tensor.ints()? })
}

/// A list of integers, such as axes.
pub(super) fn ints(node: &Node<'_>, index: usize) -> Option<Vec<i64>> {
    let array = int_array(node, index)?;
    (array.dims.len() <= 1).then_some(array.data)
}

/// A list of integers that may be absent: `Some(None)` then, but `None` if it is there and unknown.
pub(super) fn optional_ints(node: &Node<'_>, index: usize) -> Option<Option<Vec<i64>>> {
    match node.optional(index) {
        None => Some(None),
        Some(_) => ints(node, index).map(Some),
    }
}

/// One integer, as a scalar or a list of one.
pub(super) fn int(node: &Node<'_>, index: usize) -> Option<i64> {
    match ints(node, index)?[..] {
        [value] => Some(value),
        _ => None,
    }
}

/// A number rounded to a floating-point type, for operators that round after each step.
pub(super) fn rounded(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F64 => value,
        DType::F32 => f64::from(value as f32),
        _ => Tensor::from_floats(dtype, vec![], &[value]).and_then(|t| t.floats()?.first().copied()).unwrap_or(value),
    }
}

/// An index counted from the end if negative. `None` if it is outside.
pub(super) fn index(index: i64, size: i64) -> Option<i64> {
    let index = if index < 0 { index.checked_add(size)? } else { index };
    (0..size).contains(&index).then_some(index)
}

/// Axes, each at most once. `None` also for a rank that no model has, so that checking them stays cheap.
pub(super) fn axes(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    const MAX_RANK: usize = 64;
    if rank > MAX_RANK || axes.len() > rank {
        return None;
    }
    normalize_axes(axes, rank).ok()
}
