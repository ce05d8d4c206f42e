//! Input of inference and folding: a node with its operands and attributes.

use crate::{DType, Dim, Op, Shape, Tensor, TensorType};

/// Error message about a node. The caller adds the node's name and location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// Creates an error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// Elements of a value that are known at compile time.
#[derive(Clone, Debug, PartialEq)]
pub enum KnownElements {
    /// All elements.
    Constant(Tensor),
    /// Some elements of a flattened small integer tensor, which a model uses to compute a shape.
    Partial(Vec<Dim>),
}

/// Type and known elements of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Type of the value.
    pub ty: TensorType,
    /// Known elements; `None` if no element is known.
    pub content: Option<KnownElements>,
}

impl Value {
    /// Returns a value of unknown elements.
    pub fn new(ty: TensorType) -> Self {
        Self { ty, content: None }
    }

    /// Returns a constant value.
    pub fn constant(tensor: Tensor) -> Self {
        let shape: Shape = tensor.dims().iter().copied().map(Dim::Known).collect();
        Self { ty: TensorType::new(tensor.dtype(), shape), content: Some(KnownElements::Constant(tensor)) }
    }

    /// Returns the elements of a constant.
    pub fn tensor(&self) -> Option<&Tensor> {
        match &self.content {
            Some(KnownElements::Constant(tensor)) => Some(tensor),
            _ => None,
        }
    }

    /// Returns the elements of a constant or partly known integer tensor as dimensions.
    pub fn dims(&self) -> Option<Vec<Dim>> {
        match self.content.as_ref()? {
            KnownElements::Constant(tensor) => Some(tensor.ints()?.into_iter().map(Dim::Known).collect()),
            KnownElements::Partial(dims) => Some(dims.clone()),
        }
    }
}

/// Attribute of an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Attr {
    /// `INT`.
    Int(i64),
    /// `FLOAT`.
    Float(f32),
    /// `STRING`.
    Str(String),
    /// `INTS`.
    Ints(Vec<i64>),
    /// `FLOATS`.
    Floats(Vec<f32>),
    /// `STRINGS`.
    Strs(Vec<String>),
    /// `TENSOR`.
    Tensor(Tensor),
    /// Element type, which ONNX encodes as `INT` and the `onnx` dialect as a type.
    DType(DType),
    /// Kind that inference does not read (graphs, types, sparse tensors).
    Other,
}

/// Attributes by name. Lookup is linear, because nodes have few attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(Vec<(String, Attr)>);

impl Attributes {
    /// Returns an attribute by name.
    pub fn get(&self, name: &str) -> Option<&Attr> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, attr)| attr)
    }

    /// Appends an attribute.
    pub fn push(&mut self, name: impl Into<String>, attr: Attr) {
        self.0.push((name.into(), attr));
    }

    /// Removes and returns an attribute.
    pub fn remove(&mut self, name: &str) -> Option<Attr> {
        let index = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(index).1)
    }

    /// Iterates over names and attributes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attr)> {
        self.0.iter().map(|(name, attr)| (name.as_str(), attr))
    }

    /// Returns the number of attributes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<S: Into<String>> FromIterator<(S, Attr)> for Attributes {
    fn from_iter<T: IntoIterator<Item = (S, Attr)>>(attributes: T) -> Self {
        Self(attributes.into_iter().map(|(name, attr)| (name.into(), attr)).collect())
    }
}

/// Operator with its operands and attributes.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Operator.
    pub op: Op,
    /// Operands. Absent optional operands are `None`; trailing ones may also be omitted.
    pub inputs: &'a [Option<&'a Value>],
    /// Attributes.
    pub attributes: &'a Attributes,
    /// Number of results of the node. Inference may return more or fewer types; those of absent results are ignored.
    pub outputs: usize,
}

impl<'a> Node<'a> {
    /// Returns an operand, or `None` if it is absent.
    pub fn optional(&self, index: usize) -> Option<&'a Value> {
        self.inputs.get(index).copied().flatten()
    }

    /// Returns a required operand.
    pub fn input(&self, index: usize) -> Result<&'a Value, Error> {
        self.optional(index).ok_or_else(|| Error::new(format!("operand {index} is missing")))
    }

    /// Returns all operands of a variadic operator, none of which may be absent.
    pub fn operands(&self) -> Result<Vec<&'a Value>, Error> {
        (0..self.inputs.len()).map(|i| self.input(i)).collect()
    }

    /// Returns the element type of a required operand.
    pub fn dtype(&self, index: usize) -> Result<DType, Error> {
        Ok(self.input(index)?.ty.dtype)
    }

    /// Returns the shape of a required operand; `None` if its rank is unknown.
    pub fn shape(&self, index: usize) -> Result<Option<&'a [Dim]>, Error> {
        Ok(self.input(index)?.ty.shape.as_deref())
    }

    /// Returns the shape of a required operand, which must have rank `rank` if its rank is known.
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

    /// Unifies the shape of an operand with the shape that it must have. Returns `expected` if the operand is absent.
    pub fn expect_shape(&self, index: usize, expected: &[Dim]) -> Result<Shape, Error> {
        let Some(Value { ty, .. }) = self.optional(index) else { return Ok(expected.to_vec()) };
        let expected_ty = TensorType::new(ty.dtype, expected.to_vec());
        ty.unify(&expected_ty).and_then(|ty| ty.shape).ok_or_else(|| {
            Error::new(format!("operand {index} must have shape [{}], has {ty}", crate::shape::format_shape(expected)))
        })
    }

    /// Returns the common element type of these operands. The first is required; absent others are ignored.
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

    /// Returns the elements of an operand that contains sizes, some of which may be unknown; `None` if their number is
    /// unknown.
    pub fn sizes_of(&self, index: usize) -> Result<Option<Shape>, Error> {
        // Limits the allocation below, whose size comes from the model file.
        const MAX_RANK: i64 = 64;
        let Some(value) = self.optional(index) else { return Ok(None) };
        let sizes = match (value.dims(), value.ty.shape.as_deref()) {
            (Some(sizes), _) => sizes,
            (None, Some(&[Dim::Known(count @ 0..=MAX_RANK)])) => vec![Dim::Unknown; count as usize],
            _ => return Ok(None),
        };
        match sizes.iter().filter_map(|size| size.known()).find(|&size| size < 0) {
            Some(size) => Err(Error::new(format!("operand {index} must contain sizes, but has {size}"))),
            None => Ok(Some(sizes)),
        }
    }

    /// Returns the only element of an operand that contains one size; unknown if the operand is absent.
    pub fn size_of(&self, index: usize) -> Result<Dim, Error> {
        match self.sizes_of(index)?.as_deref() {
            Some(&[size]) => Ok(size),
            _ => Ok(Dim::Unknown),
        }
    }

    /// Returns the elements of an integer operand if all are known. `None` also if the operand is absent.
    pub fn ints_of(&self, index: usize) -> Option<Vec<i64>> {
        self.optional(index)?.dims()?.into_iter().map(Dim::known).collect()
    }

    /// Returns the only element of an integer operand, if it is known.
    pub fn int_of(&self, index: usize) -> Option<i64> {
        match self.ints_of(index)?[..] {
            [value] => Some(value),
            _ => None,
        }
    }

    /// Returns the elements of a floating-point operand, if they are known.
    pub fn floats_of(&self, index: usize) -> Option<Vec<f64>> {
        self.optional(index)?.tensor()?.floats()
    }

    /// Returns an integer attribute.
    pub fn int(&self, name: &str) -> Result<Option<i64>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(&Attr::Int(value)) => Ok(Some(value)),
            Some(_) => Err(self.wrong_kind(name, "an integer")),
        }
    }

    /// Returns an integer attribute, or `default` if it is absent.
    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, Error> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// Returns an integer attribute as a boolean, or `default` if it is absent.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Error> {
        Ok(self.int(name)?.map_or(default, |value| value != 0))
    }

    /// Returns a float attribute.
    pub fn float(&self, name: &str) -> Result<Option<f32>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(&Attr::Float(value)) => Ok(Some(value)),
            Some(_) => Err(self.wrong_kind(name, "a float")),
        }
    }

    /// Returns a string attribute.
    pub fn str(&self, name: &str) -> Result<Option<&'a str>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(Attr::Str(value)) => Ok(Some(value)),
            Some(_) => Err(self.wrong_kind(name, "a string")),
        }
    }

    /// Returns a string attribute, or `default` if it is absent.
    pub fn str_or(&self, name: &str, default: &'a str) -> Result<&'a str, Error> {
        Ok(self.str(name)?.unwrap_or(default))
    }

    /// Returns an attribute that is a list of integers.
    pub fn ints(&self, name: &str) -> Result<Option<&'a [i64]>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(Attr::Ints(values)) => Ok(Some(values)),
            Some(_) => Err(self.wrong_kind(name, "a list of integers")),
        }
    }

    /// Returns an attribute that is a list of floats.
    pub fn floats(&self, name: &str) -> Result<Option<&'a [f32]>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(Attr::Floats(values)) => Ok(Some(values)),
            Some(_) => Err(self.wrong_kind(name, "a list of floats")),
        }
    }

    /// Returns a tensor attribute.
    pub fn tensor(&self, name: &str) -> Result<Option<&'a Tensor>, Error> {
        match self.attributes.get(name) {
            None => Ok(None),
            Some(Attr::Tensor(value)) => Ok(Some(value)),
            Some(_) => Err(self.wrong_kind(name, "a tensor")),
        }
    }

    /// Returns an element type attribute, which is a type or ONNX's code; 0 (undefined) counts as absent.
    pub fn dtype_attr(&self, name: &str) -> Result<Option<DType>, Error> {
        match self.attributes.get(name) {
            None | Some(Attr::Int(0)) => Ok(None),
            Some(&Attr::DType(dtype)) => Ok(Some(dtype)),
            Some(&Attr::Int(code)) => DType::from_code(code)
                .map(Some)
                .ok_or_else(|| Error::new(format!("attribute '{name}' is {code}, which is not an ONNX element type"))),
            Some(_) => Err(self.wrong_kind(name, "an element type")),
        }
    }

    fn wrong_kind(&self, name: &str, expected: &str) -> Error {
        Error::new(format!("attribute '{name}' must be {expected}"))
    }
}

/// Returns the index of an axis, which counts from the end if negative, and checks it against the rank.
pub fn normalize_axis(axis: i64, rank: usize) -> Result<usize, Error> {
    let rank = rank as i64;
    let index = if axis < 0 { axis.checked_add(rank) } else { Some(axis) };
    match index {
        Some(index) if (0..rank).contains(&index) => Ok(index as usize),
        _ => Err(Error::new(format!("axis {axis} is outside [{}, {}] for rank {rank}", -rank, rank - 1))),
    }
}

/// Returns the indices of axes, each of which may occur only once.
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
