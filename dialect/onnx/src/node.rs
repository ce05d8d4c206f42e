//! One operator application as inference and folding see it.

use crate::{DType, Dim, Op, Shape, Tensor, TensorType};

/// What is wrong with an operator application, without where: the caller adds the node's name and location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// What is known of the elements of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// All of them.
    Constant(Tensor),
    /// A small integer tensor, flattened, some of whose elements are known: a shape in the making.
    Partial(Vec<Dim>),
}

/// A value: its type and what is known of its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    pub ty: TensorType,
    pub content: Option<Content>,
}

impl Value {
    pub fn new(ty: TensorType) -> Self {
        Self { ty, content: None }
    }

    pub fn constant(tensor: Tensor) -> Self {
        let shape: Shape = tensor.dims().iter().copied().map(Dim::Known).collect();
        Self { ty: TensorType::new(tensor.dtype(), shape), content: Some(Content::Constant(tensor)) }
    }

    pub fn tensor(&self) -> Option<&Tensor> {
        match &self.content {
            Some(Content::Constant(tensor)) => Some(tensor),
            _ => None,
        }
    }

    /// The elements of an integer tensor as dimensions, as far as they are known.
    pub fn dims(&self) -> Option<Vec<Dim>> {
        match self.content.as_ref()? {
            Content::Constant(tensor) => Some(tensor.ints()?.into_iter().map(Dim::Known).collect()),
            Content::Partial(dims) => Some(dims.clone()),
        }
    }
}

/// An attribute of an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Attr {
    Int(i64),
    Float(f32),
    Str(String),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Strs(Vec<String>),
    Tensor(Tensor),
    /// An element type: ONNX writes its code, the `onnx` dialect a type.
    DType(DType),
    /// A kind inference never asks for (graphs, types, sparse tensors).
    Other,
}

/// Attributes by name. There are few on any node, so a list serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(Vec<(String, Attr)>);

impl Attributes {
    pub fn get(&self, name: &str) -> Option<&Attr> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, attr)| attr)
    }

    pub fn push(&mut self, name: impl Into<String>, attr: Attr) {
        self.0.push((name.into(), attr));
    }

    /// Removes and returns an attribute.
    pub fn take(&mut self, name: &str) -> Option<Attr> {
        let index = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(index).1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attr)> {
        self.0.iter().map(|(name, attr)| (name.as_str(), attr))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<S: Into<String>> FromIterator<(S, Attr)> for Attributes {
    fn from_iter<T: IntoIterator<Item = (S, Attr)>>(attributes: T) -> Self {
        Self(attributes.into_iter().map(|(name, attr)| (name.into(), attr)).collect())
    }
}

/// An operator with its operands. An absent optional operand is `None`, trailing ones may also be left out.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    pub op: Op,
    pub inputs: &'a [Option<&'a Value>],
    pub attributes: &'a Attributes,
    /// Results that the node names. Inference may return more or fewer; absent ones are ignored.
    pub outputs: usize,
}

impl<'a> Node<'a> {
    /// An operand that may be absent.
    pub fn optional(&self, index: usize) -> Option<&'a Value> {
        self.inputs.get(index).copied().flatten()
    }

    /// An operand that must be there.
    pub fn input(&self, index: usize) -> Result<&'a Value, Error> {
        self.optional(index).ok_or_else(|| Error::new(format!("operand {index} is missing")))
    }

    /// Every operand of a variadic operator.
    pub fn variadic(&self) -> Result<Vec<&'a Value>, Error> {
        (0..self.inputs.len()).map(|i| self.input(i)).collect()
    }

    pub fn dtype(&self, index: usize) -> Result<DType, Error> {
        Ok(self.input(index)?.ty.dtype)
    }

    /// The shape of an operand that must be there, if its rank is known.
    pub fn shape(&self, index: usize) -> Result<Option<&'a [Dim]>, Error> {
        Ok(self.input(index)?.ty.shape.as_deref())
    }

    /// As `shape`, and the rank must be `rank` where it is known.
    pub fn shape_of_rank(&self, index: usize, rank: usize) -> Result<Option<&'a [Dim]>, Error> {
        let shape = self.shape(index)?;
        match shape {
            Some(shape) if shape.len() != rank => Err(Error::new(format!(
                "operand {index} must have rank {rank}, has {} ({})",
                shape.len(),
                self.input(index)?.ty
            ))),
            _ => Ok(shape),
        }
    }

    /// Checks an operand against the shape it must have, and returns what is known of it from both. An absent
    /// operand adds nothing.
    pub fn expect_shape(&self, index: usize, expected: &[Dim]) -> Result<Shape, Error> {
        let Some(Value { ty, .. }) = self.optional(index) else { return Ok(expected.to_vec()) };
        let expected_ty = TensorType::new(ty.dtype, expected.to_vec());
        ty.unify(&expected_ty).and_then(|ty| ty.shape).ok_or_else(|| {
            Error::new(format!("operand {index} must have shape [{}], has {ty}", crate::shape::join(expected)))
        })
    }

    /// The element type that these operands must share. The first must be there, absent others do not count.
    pub fn same_dtype(&self, indices: &[usize]) -> Result<DType, Error> {
        let [first, rest @ ..] = indices else { return Err(Error::new("needs at least one operand")) };
        let dtype = self.dtype(*first)?;
        for &index in rest {
            if let Some(other) = self.optional(index).map(|value| value.ty.dtype).filter(|&other| other != dtype) {
                return Err(Error::new(format!(
                    "operands {first} and {index} must have one element type, have {dtype} and {other}: insert a Cast"
                )));
            }
        }
        Ok(dtype)
    }

    /// The elements of an operand that holds sizes, as far as they are known; `None` if not even their number is.
    pub fn sizes_of(&self, index: usize) -> Result<Option<Shape>, Error> {
        // A shape comes from a file and must not make inference allocate at will: nothing has this rank.
        const MAX_RANK: i64 = 64;
        let Some(value) = self.optional(index) else { return Ok(None) };
        let sizes = match (value.dims(), value.ty.shape.as_deref()) {
            (Some(sizes), _) => sizes,
            (None, Some(&[Dim::Known(count @ 0..=MAX_RANK)])) => vec![Dim::Unknown; count as usize],
            _ => return Ok(None),
        };
        match sizes.iter().filter_map(|size| size.known()).find(|&size| size < 0) {
            Some(size) => Err(Error::new(format!("operand {index} holds sizes, {size} is none"))),
            None => Ok(Some(sizes)),
        }
    }

    /// The single number of an operand that holds one size; unknown if the operand is absent.
    pub fn size_of(&self, index: usize) -> Result<Dim, Error> {
        match self.sizes_of(index)?.as_deref() {
            Some(&[size]) => Ok(size),
            _ => Ok(Dim::Unknown),
        }
    }

    /// The integers of an operand, where all are known. `None` also if the operand is absent.
    pub fn ints_of(&self, index: usize) -> Option<Vec<i64>> {
        self.optional(index)?.dims()?.into_iter().map(Dim::known).collect()
    }

    /// The single number of an integer operand, where it is known.
    pub fn int_of(&self, index: usize) -> Option<i64> {
        match self.ints_of(index)?[..] {
            [value] => Some(value),
            _ => None,
        }
    }

    /// The numbers of a floating-point operand, where they are known.
    pub fn floats_of(&self, index: usize) -> Option<Vec<f64>> {
        self.optional(index)?.tensor()?.floats()
    }

    pub fn int(&self, name: &str) -> Result<Option<i64>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(&Attr::Int(value)) => Ok(Some(value)),
            Some(_) => Err(self.wrong_kind(name, "an integer")),
        }
    }

    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, Error> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// A zero-or-one attribute.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Error> {
        Ok(self.int(name)?.map_or(default, |value| value != 0))
    }

    pub fn float(&self, name: &str) -> Result<Option<f32>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(&Attr::Float(value)) => Ok(Some(value)),
            Some(_) => Err(self.wrong_kind(name, "a float")),
        }
    }

    pub fn str(&self, name: &str) -> Result<Option<&'a str>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(Attr::Str(value)) => Ok(Some(value)),
            Some(_) => Err(self.wrong_kind(name, "a string")),
        }
    }

    pub fn str_or(&self, name: &str, default: &'a str) -> Result<&'a str, Error> {
        Ok(self.str(name)?.unwrap_or(default))
    }

    pub fn ints(&self, name: &str) -> Result<Option<&'a [i64]>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(Attr::Ints(values)) => Ok(Some(values)),
            Some(_) => Err(self.wrong_kind(name, "a list of integers")),
        }
    }

    pub fn floats(&self, name: &str) -> Result<Option<&'a [f32]>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(Attr::Floats(values)) => Ok(Some(values)),
            Some(_) => Err(self.wrong_kind(name, "a list of floats")),
        }
    }

    pub fn tensor(&self, name: &str) -> Result<Option<&'a Tensor>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(Attr::Tensor(value)) => Ok(Some(value)),
            Some(_) => Err(self.wrong_kind(name, "a tensor")),
        }
    }

    /// An element type, written as a type or as ONNX's code; 0 (undefined) counts as absent.
    pub fn dtype_attr(&self, name: &str) -> Result<Option<DType>, Error> {
        match self.attributes.get(name) {
            None | Some(Attr::Int(0)) => Ok(None),
            Some(&Attr::DType(dtype)) => Ok(Some(dtype)),
            Some(&Attr::Int(code)) => DType::from_code(code)
                .map(Some)
                .ok_or_else(|| Error::new(format!("attribute '{name}' is {code}, which is no ONNX element type"))),
            Some(_) => Err(self.wrong_kind(name, "an element type")),
        }
    }

    fn wrong_kind(&self, name: &str, expected: &str) -> Error {
        Error::new(format!("attribute '{name}' must be {expected}"))
    }
}

/// An axis counted from the end if negative, checked against the rank.
pub fn normalize_axis(axis: i64, rank: usize) -> Result<usize, Error> {
    let rank = rank as i64;
    let index = if axis < 0 { axis.checked_add(rank) } else { Some(axis) };
    match index {
        Some(index) if (0..rank).contains(&index) => Ok(index as usize),
        _ => Err(Error::new(format!("axis {axis} is outside [{}, {}] for rank {rank}", -rank, rank - 1))),
    }
}

/// Several axes, each at most once.
pub fn normalize_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, Error> {
    let mut seen = Vec::with_capacity(axes.len());
    for &axis in axes {
        let index = normalize_axis(axis, rank)?;
        if seen.contains(&index) {
            return Err(Error::new(format!("axis {axis} is named twice")));
        }
        seen.push(index);
    }
    Ok(seen)
}
