//! Data movement: results composed of elements of operands, of any type.

use super::{MAX_ELEMENTS, MAX_PARTIAL, bounded, may_be_partial};
use crate::{DType, Dim, Node, Tensor, Value, node::KnownElements};
use std::borrow::Cow;

/// Tensor from which elements are copied: a constant of any type and size, or partly known integers.
pub(super) struct Source<'a> {
    pub(super) dtype: DType,
    pub(super) dims: Cow<'a, [i64]>,
    elements: Elements<'a>,
}

enum Elements<'a> {
    Tensor(&'a Tensor),
    Dims(Cow<'a, [Dim]>),
}

impl<'a> Source<'a> {
    /// Returns an operand if some of its elements are known.
    pub(super) fn of(node: &Node<'a>, index: usize) -> Option<Self> {
        Self::of_value(node.optional(index)?)
    }

    pub(super) fn of_value(value: &'a Value) -> Option<Self> {
        match value.content.as_ref()? {
            KnownElements::Constant(tensor) => Some(Self::constant(tensor)),
            KnownElements::Partial(elements) => {
                let fits = match value.ty.shape.as_deref()? {
                    [] => elements.len() == 1,
                    [size] => size.known().is_none_or(|size| size == elements.len() as i64),
                    _ => false,
                };
                (fits && may_be_partial(&value.ty)).then(|| Self::partial(value, Cow::Borrowed(elements)))
            }
        }
    }

    /// Returns a value like `of_value`. A short list of integers without known elements becomes a list of unknown dimensions, so
    /// that known elements next to it in a shape are preserved.
    pub(super) fn of_value_or_unknown(value: &'a Value) -> Option<Self> {
        if value.content.is_some() {
            return Self::of_value(value);
        }
        let count = match value.ty.shape.as_deref()? {
            [] => 1,
            [Dim::Known(size)] => usize::try_from(*size).ok()?,
            _ => return None,
        };
        (may_be_partial(&value.ty) && count <= MAX_PARTIAL)
            .then(|| Self::partial(value, Cow::Owned(vec![Dim::Unknown; count])))
    }

    pub(super) fn constant(tensor: &'a Tensor) -> Self {
        Self { dtype: tensor.dtype(), dims: Cow::Borrowed(tensor.dims()), elements: Elements::Tensor(tensor) }
    }

    fn partial(value: &Value, elements: Cow<'a, [Dim]>) -> Self {
        let dims = if value.ty.rank() == Some(0) { vec![] } else { vec![elements.len() as i64] };
        Self { dtype: value.ty.dtype, dims: Cow::Owned(dims), elements: Elements::Dims(elements) }
    }

    pub(super) fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Returns the elements, some of which may be unknown. `None` for constants that are not integers or too large.
    pub(super) fn to_dims(&self) -> Option<Cow<'_, [Dim]>> {
        match &self.elements {
            Elements::Dims(elements) => Some(Cow::Borrowed(elements)),
            Elements::Tensor(tensor) if tensor.count() <= MAX_ELEMENTS => {
                Some(tensor.ints()?.into_iter().map(Dim::Known).collect())
            }
            Elements::Tensor(_) => None,
        }
    }

    /// Returns the same elements with another shape of the same size.
    pub(super) fn reshaped(&self, dims: Vec<i64>) -> Option<KnownElements> {
        let count = bounded(&dims)?;
        match &self.elements {
            Elements::Tensor(tensor) => tensor.reshaped(dims).map(KnownElements::Constant),
            Elements::Dims(elements) if elements.len() == count => content(self.dtype, dims, elements.to_vec()),
            Elements::Dims(_) => None,
        }
    }

    /// Returns a tensor of shape `dims` with the elements at the offsets `picks`. `None` if one is out of range.
    pub(super) fn take(&self, dims: Vec<i64>, picks: impl Iterator<Item = usize>) -> Option<KnownElements> {
        assemble(std::slice::from_ref(self), dims, picks.map(|index| (0, index)))
    }
}

/// Returns a tensor of shape `dims` with elements given by (source, offset). `None` if one is out of range or the sources
/// differ in type.
pub(super) fn assemble(
    sources: &[Source<'_>],
    dims: Vec<i64>,
    picks: impl Iterator<Item = (usize, usize)>,
) -> Option<KnownElements> {
    let count = bounded(&dims)?;
    let dtype = sources.first()?.dtype;
    if sources.iter().any(|source| source.dtype != dtype) {
        return None;
    }
    let tensors: Option<Vec<&Tensor>> = sources.iter().map(Source::tensor).collect();
    if let Some(tensors) = tensors {
        let bytes = copy(&tensors, dtype.bits() as usize, count, picks)?;
        return Tensor::new(dtype, dims, bytes.into()).map(KnownElements::Constant);
    }
    let elements: Vec<_> = sources.iter().map(Source::to_dims).collect::<Option<_>>()?;
    let picked: Option<Vec<_>> = picks.map(|(source, index)| elements.get(source)?.get(index).copied()).collect();
    content(dtype, dims, picked?)
}

impl<'a> Source<'a> {
    fn tensor(&self) -> Option<&'a Tensor> {
        match self.elements {
            Elements::Tensor(tensor) => Some(tensor),
            Elements::Dims(_) => None,
        }
    }
}

/// Returns the bytes of a dense tensor of `count` elements, copied from tensors of the same type.
fn copy(
    tensors: &[&Tensor],
    bits: usize,
    count: usize,
    picks: impl Iterator<Item = (usize, usize)>,
) -> Option<Vec<u8>> {
    match bits {
        2 | 4 => copy_packed(tensors, bits, count, picks),
        8 => copy_wide::<1>(tensors, count, picks),
        16 => copy_wide::<2>(tensors, count, picks),
        32 => copy_wide::<4>(tensors, count, picks),
        64 => copy_wide::<8>(tensors, count, picks),
        128 => copy_wide::<16>(tensors, count, picks),
        // Strings have no fixed width, and elements of six bits straddle bytes.
        _ => None,
    }
}

/// Implements `copy` for types of `WIDTH` bytes.
fn copy_wide<const WIDTH: usize>(
    tensors: &[&Tensor],
    count: usize,
    picks: impl Iterator<Item = (usize, usize)>,
) -> Option<Vec<u8>> {
    let sources: Vec<_> = tensors.iter().map(|tensor| tensor.bytes().as_chunks::<WIDTH>().0).collect();
    let mut bytes = Vec::with_capacity(count * WIDTH);
    for (source, index) in picks.take(count) {
        bytes.extend_from_slice(sources.get(source)?.get(index)?);
    }
    Some(bytes)
}

/// Implements `copy` for types narrower than a byte.
fn copy_packed(
    tensors: &[&Tensor],
    bits: usize,
    count: usize,
    picks: impl Iterator<Item = (usize, usize)>,
) -> Option<Vec<u8>> {
    let mask = (1u8 << bits) - 1;
    let mut bytes = vec![0u8; (count * bits).div_ceil(8)];
    for (i, (source, index)) in picks.take(count).enumerate() {
        let tensor = tensors.get(source)?;
        if index >= tensor.count() {
            return None;
        }
        let field = tensor.bytes()[index * bits / 8] >> (index * bits % 8) & mask;
        bytes[i * bits / 8] |= field << (i * bits % 8);
    }
    Some(bytes)
}

/// Returns the content of an integer tensor: constant if all elements are known, `None` if none is.
pub(super) fn content(dtype: DType, dims: Vec<i64>, elements: Vec<Dim>) -> Option<KnownElements> {
    if bounded(&dims)? != elements.len() {
        return None;
    }
    let known: Option<Vec<i64>> = elements.iter().map(|element| element.known()).collect();
    if let Some(known) = known {
        return Tensor::from_ints(dtype, dims, &known).map(KnownElements::Constant);
    }
    let partial = matches!(dtype, DType::I64 | DType::I32)
        && dims.len() <= 1
        && elements.len() <= MAX_PARTIAL
        && elements.iter().any(|&element| element != Dim::Unknown);
    partial.then_some(KnownElements::Partial(elements))
}
