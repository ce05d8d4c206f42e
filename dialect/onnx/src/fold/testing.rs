//! Shorthands for operands and results of tests.

use crate::{
    DType, Dim, Node, Tensor, TensorType, Value,
    infer::testing::{Case, parse},
    node::KnownElements,
    shape::Symbol,
};

/// Symbolic dimension.
pub(super) const N: Dim = Dim::Symbol(Symbol(0));
/// Another symbolic dimension.
pub(super) const S: Dim = Dim::Symbol(Symbol(1));

pub(super) fn tensor(dtype: DType, dims: &[i64], values: &[i64]) -> Tensor {
    Tensor::from_ints(dtype, dims.to_vec(), values).expect("the values fill the shape")
}

pub(super) fn ints(dims: &[i64], values: &[i64]) -> Tensor {
    tensor(DType::I64, dims, values)
}

pub(super) fn bools(dims: &[i64], values: &[i64]) -> Tensor {
    tensor(DType::Bool, dims, values)
}

pub(super) fn floats(dims: &[i64], values: &[f64]) -> Tensor {
    Tensor::from_floats(DType::F32, dims.to_vec(), values).expect("the values fill the shape")
}

/// Returns a partly known `int64` list.
pub(super) fn partial(elements: &[Dim]) -> Value {
    let ty = TensorType::new(DType::I64, vec![Dim::Known(elements.len() as i64)]);
    Value { ty, content: Some(KnownElements::Partial(elements.to_vec())) }
}

/// Returns a partly known `int64` scalar.
pub(super) fn scalar_partial(element: Dim) -> Value {
    Value { ty: TensorType::scalar(DType::I64), content: Some(KnownElements::Partial(vec![element])) }
}

impl Case {
    /// Asserts the first result, both for the inferred type and for an unranked one.
    #[track_caller]
    pub(super) fn folds_to(&self, expected: Tensor) {
        let content = self.folded_as(&[TensorType::unranked(expected.dtype())]);
        let inferred = self.folded().and_then(|value| value.content);
        // Compared as text, because NaN is not equal to itself.
        assert_eq!(format!("{inferred:?}"), format!("{content:?}"), "inference and folding disagree");
        match (content, &expected.floats()) {
            (Some(KnownElements::Constant(tensor)), Some(expected_floats)) => {
                // Compared by value, because NaN has many encodings.
                assert_eq!((tensor.dtype(), tensor.dims()), (expected.dtype(), expected.dims()));
                let values = tensor.floats().expect("the type is one of floats");
                assert_eq!(format!("{values:?}"), format!("{expected_floats:?}"));
            }
            (content, _) => assert_eq!(content, Some(KnownElements::Constant(expected))),
        }
    }

    #[track_caller]
    pub(super) fn folds_to_partial(&self, ty: &str, expected: &[Dim]) {
        assert_eq!(self.folded_as(&[parse(ty)]), Some(KnownElements::Partial(expected.to_vec())));
    }

    #[track_caller]
    pub(super) fn folds_to_nothing(&self, ty: &str) {
        assert_eq!(self.folded_as(&[parse(ty)]), None);
    }

    /// Returns the folded content of the first result, given the types of all results.
    pub(super) fn folded_as(&self, types: &[TensorType]) -> Option<KnownElements> {
        self.all_folded_as(types).into_iter().next().flatten()
    }

    pub(super) fn all_folded_as(&self, types: &[TensorType]) -> Vec<Option<KnownElements>> {
        self.with_node(|node: &Node<'_>| super::fold(node, types))
    }
}
