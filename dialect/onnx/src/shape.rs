//! Shapes whose dimensions may be known, symbolic or unknown.

use crate::{DType, Error, tensor::count_of};
use std::fmt;

/// Symbolic dimension such as `batch`; an index into the importer's symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol(pub u32);

/// Dimension of a tensor. Equal symbols have equal sizes; two unknown dimensions may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// Known size.
    Known(i64),
    /// Symbolic size.
    Symbol(Symbol),
    /// Unknown size.
    Unknown,
}

impl Dim {
    /// Returns the size if it is known.
    pub fn known(self) -> Option<i64> {
        match self {
            Self::Known(size) => Some(size),
            Self::Symbol(_) | Self::Unknown => None,
        }
    }

    /// Applies `f` to both sizes if they are known; unknown if they are not, or if `f` returns `None`.
    pub fn zip(self, other: Self, f: impl FnOnce(i64, i64) -> Option<i64>) -> Self {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => f(a, b).map_or(Self::Unknown, Self::Known),
            _ => Self::Unknown,
        }
    }

    /// Applies `f` to the size if it is known; unknown if it is not, or if `f` returns `None`.
    pub fn map(self, f: impl FnOnce(i64) -> Option<i64>) -> Self {
        self.known().and_then(f).map_or(Self::Unknown, Self::Known)
    }

    /// Returns the sum; an error if it overflows.
    pub fn plus(self, other: Self) -> Result<Self, Error> {
        match (self, other) {
            (Self::Known(0), dim) | (dim, Self::Known(0)) => Ok(dim),
            (Self::Known(a), Self::Known(b)) => checked_size(a.checked_add(b), || format!("{a} + {b}")),
            _ => Ok(Self::Unknown),
        }
    }

    /// Returns the product; an error if it overflows.
    pub fn times(self, other: Self) -> Result<Self, Error> {
        match (self, other) {
            (Self::Known(1), dim) | (dim, Self::Known(1)) => Ok(dim),
            (Self::Known(a), Self::Known(b)) => checked_size(a.checked_mul(b), || format!("{a} * {b}")),
            _ => Ok(Self::Unknown),
        }
    }

    /// Returns the size of one of `parts` equal parts of a dimension; an error, in which `what` names the parts, if the size is
    /// not divisible.
    pub fn split(self, parts: i64, what: &str) -> Result<Self, Error> {
        match self {
            _ if parts < 1 => Err(Error::new(format!("the number of {what} must be positive, is {parts}"))),
            dim if parts == 1 => Ok(dim),
            Self::Known(size) if size % parts != 0 => {
                Err(Error::new(format!("a dimension of {size} does not divide into {parts} {what}")))
            }
            dim => Ok(dim.map(|size| size.checked_div(parts))),
        }
    }

    /// Returns the more precise of two descriptions of the same dimension; `None` if both are known and differ.
    pub fn unify(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => (a == b).then_some(self),
            (Self::Known(_), _) | (_, Self::Unknown) => Some(self),
            (_, Self::Known(_)) | (Self::Unknown, _) => Some(other),
            (Self::Symbol(_), Self::Symbol(_)) => Some(self),
        }
    }
}

impl From<i64> for Dim {
    fn from(size: i64) -> Self {
        Self::Known(size)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(size) => write!(f, "{size}"),
            Self::Symbol(_) | Self::Unknown => f.write_str("?"),
        }
    }
}

/// Dimensions of a tensor of known rank.
pub type Shape = Vec<Dim>;

/// Type of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Dimensions; `None` if the rank is unknown.
    pub shape: Option<Shape>,
}

impl TensorType {
    /// Returns a type of this shape.
    pub fn new(dtype: DType, shape: impl Into<Option<Shape>>) -> Self {
        Self { dtype, shape: shape.into() }
    }

    /// Returns a type of unknown rank.
    pub fn unranked(dtype: DType) -> Self {
        Self { dtype, shape: None }
    }

    /// Returns a type of rank 0.
    pub fn scalar(dtype: DType) -> Self {
        Self { dtype, shape: Some(vec![]) }
    }

    /// Returns a type of this rank with unknown dimensions.
    pub fn of_rank(dtype: DType, rank: usize) -> Self {
        Self { dtype, shape: Some(vec![Dim::Unknown; rank]) }
    }

    /// Returns the rank if it is known.
    pub fn rank(&self) -> Option<usize> {
        self.shape.as_ref().map(Vec::len)
    }

    /// Returns the sizes of the dimensions if all are known.
    pub fn static_shape(&self) -> Option<Vec<i64>> {
        self.shape.as_ref()?.iter().map(|dim| dim.known()).collect()
    }

    /// Returns true if all dimensions are known.
    pub fn is_static(&self) -> bool {
        self.shape.as_ref().is_some_and(|shape| shape.iter().all(|dim| dim.known().is_some()))
    }

    /// Returns the number of elements if it is known and does not overflow.
    pub fn count(&self) -> Option<i64> {
        self.shape.as_ref().and_then(|shape| product(shape).known())
    }

    /// Returns true if all dimensions are known, and one is negative or the number of elements overflows.
    pub fn overflows(&self) -> bool {
        self.static_shape().is_some_and(|dims| count_of(&dims).is_none_or(|count| i64::try_from(count).is_err()))
    }

    /// Returns the combination of two descriptions of the same tensor; `None` if they contradict each other.
    pub fn unify(&self, other: &Self) -> Option<Self> {
        if self.dtype != other.dtype {
            return None;
        }
        let shape = match (&self.shape, &other.shape) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                Some(a.iter().zip(b).map(|(&a, &b)| a.unify(b)).collect::<Option<_>>()?)
            }
            (Some(_), Some(_)) => return None,
            (shape, None) | (None, shape) => shape.clone(),
        };
        Some(Self { dtype: self.dtype, shape })
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shape {
            None => write!(f, "{}[*]", self.dtype),
            Some(shape) => write!(f, "{}[{}]", self.dtype, format_shape(shape)),
        }
    }
}

/// Returns a computed size; overflow (`None`) and negative sizes are errors, in which `how` describes the computation.
pub fn checked_size(size: Option<i64>, how: impl FnOnce() -> String) -> Result<Dim, Error> {
    match size {
        Some(size) if size >= 0 => Ok(Dim::Known(size)),
        Some(size) => Err(Error::new(format!("a dimension is negative: {} = {size}", how()))),
        None => Err(Error::new(format!("a dimension overflows: {}", how()))),
    }
}

/// Formats a shape as `2x3x?`, for messages.
pub fn format_shape(shape: &[Dim]) -> String {
    shape.iter().map(Dim::to_string).collect::<Vec<_>>().join("x")
}

/// Returns the product of dimensions: known if all are (or one is zero), a symbol if all others are 1.
pub fn product(dims: &[Dim]) -> Dim {
    if dims.contains(&Dim::Known(0)) {
        return Dim::Known(0);
    }
    dims.iter().fold(Dim::Known(1), |product, &dim| match (product, dim) {
        (Dim::Known(1), dim) => dim,
        (product, Dim::Known(1)) => product,
        (product, dim) => product.zip(dim, i64::checked_mul),
    })
}

/// Broadcasts two shapes as numpy does.
pub fn broadcast(a: &[Dim], b: &[Dim]) -> Result<Shape, Error> {
    let rank = a.len().max(b.len());
    let at = |shape: &[Dim], i: usize| (i + shape.len()).checked_sub(rank).map_or(Dim::Known(1), |i| shape[i]);
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (Dim::Known(1), dim) | (dim, Dim::Known(1)) => Ok(dim),
            (Dim::Known(x), Dim::Known(y)) if x != y => Err(Error::new(format!(
                "shapes {} and {} do not broadcast: dimension {i} is {x} in one and {y} in the other",
                format_shape(a),
                format_shape(b)
            ))),
            (Dim::Known(x), _) | (_, Dim::Known(x)) => Ok(Dim::Known(x)),
            (x, y) if x == y => Ok(x),
            _ => Ok(Dim::Unknown),
        })
        .collect()
}

/// Checks that a shape broadcasts to another without changing it.
pub fn broadcasts_to(from: &[Dim], to: &[Dim]) -> Result<(), Error> {
    let fits = |(&from, &to): (&Dim, &Dim)| from == Dim::Known(1) || from.unify(to).is_some();
    if from.len() <= to.len() && from.iter().rev().zip(to.iter().rev()).all(fits) {
        return Ok(());
    }
    Err(Error::new(format!("shape [{}] does not broadcast to [{}]", format_shape(from), format_shape(to))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: Dim = Dim::Symbol(Symbol(0));

    fn known(dims: &[i64]) -> Shape {
        dims.iter().copied().map(Dim::Known).collect()
    }

    #[test]
    fn broadcasting_follows_numpy() {
        assert_eq!(broadcast(&known(&[8, 1, 6, 1]), &known(&[7, 1, 5])).unwrap(), known(&[8, 7, 6, 5]));
        assert_eq!(broadcast(&[N, Dim::Known(3)], &[N, Dim::Known(1)]).unwrap(), vec![N, Dim::Known(3)]);
        assert_eq!(broadcast(&[Dim::Unknown], &known(&[4])).unwrap(), known(&[4]));
        assert_eq!(broadcast(&known(&[0]), &known(&[1])).unwrap(), known(&[0]));
        let message = broadcast(&known(&[2, 3]), &known(&[2, 4])).unwrap_err().to_string();
        assert!(message.contains("dimension 1 is 3 in one and 4 in the other"), "{message}");
    }

    #[test]
    fn products() {
        assert_eq!(product(&known(&[2, 3])), Dim::Known(6));
        assert_eq!(product(&[N, Dim::Known(1)]), N);
        assert_eq!(product(&[N, Dim::Known(2)]), Dim::Unknown);
        assert_eq!(product(&[Dim::Unknown, Dim::Known(0)]), Dim::Known(0));
        assert_eq!(product(&known(&[1 << 62, 4])), Dim::Unknown);
    }

    #[test]
    fn arithmetic_preserves_symbols_and_detects_overflow() {
        assert_eq!(N.plus(Dim::Known(0)).unwrap(), N);
        assert_eq!(N.times(Dim::Known(1)).unwrap(), N);
        assert_eq!(N.split(1, "groups").unwrap(), N);
        assert_eq!(N.times(Dim::Known(2)).unwrap(), Dim::Unknown);
        assert_eq!(Dim::Known(6).split(3, "groups").unwrap(), Dim::Known(2));
        assert!(Dim::Known(i64::MAX).plus(Dim::Known(1)).is_err());
        assert!(Dim::Known(1 << 62).times(Dim::Known(4)).is_err());
        assert!(Dim::Known(7).split(2, "groups").is_err());
        assert!(Dim::Known(7).split(0, "groups").is_err());
    }

    #[test]
    fn broadcasting_to_a_shape_never_changes_it() {
        assert!(broadcasts_to(&known(&[1, 3]), &[N, Dim::Known(2), Dim::Known(3)]).is_ok());
        assert!(broadcasts_to(&known(&[2, 3]), &known(&[3])).is_err());
        assert!(broadcasts_to(&known(&[3]), &known(&[1])).is_err());
    }

    #[test]
    fn unify_combines_known_dimensions() {
        let a = TensorType::new(DType::F32, vec![N, Dim::Known(3)]);
        let b = TensorType::new(DType::F32, vec![Dim::Known(8), Dim::Unknown]);
        assert_eq!(a.unify(&b), Some(TensorType::new(DType::F32, known(&[8, 3]))));
        assert_eq!(a.unify(&TensorType::unranked(DType::F32)), Some(a.clone()));
        assert_eq!(a.unify(&TensorType::unranked(DType::F16)), None);
        assert_eq!(b.unify(&TensorType::new(DType::F32, known(&[7, 3]))), None);
    }
}
