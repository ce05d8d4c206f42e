//! Short ways to write the operands and results of a test.

use crate::{
    DType, Dim, Node, Tensor, TensorType, Value,
    infer::testing::{Case, parse},
    node::Content,
    shape::Symbol,
};

/// A named dimension.
pub(super) const N: Dim = Dim::Symbol(Symbol(0));
/// Another.
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

/// A partly known `int64` list.
pub(super) fn partial(elements: &[Dim]) -> Value {
    let ty = TensorType::new(DType::I64, vec![Dim::Known(elements.len() as i64)]);
    Value { ty, content: Some(Content::Partial(elements.to_vec())) }
}

/// A partly known `int64` scalar.
pub(super) fn scalar_partial(element: Dim) -> Value {
    Value { ty: TensorType::scalar(DType::I64), content: Some(Content::Partial(vec![element])) }
}

impl Case {
    /// Asserts the first result, under the inferred type and under one as an unhelpful inference would give it.
    #[track_caller]
    pub(super) fn folds_to(&self, expected: Tensor) {
        let content = self.folded_as(&[TensorType::unranked(expected.dtype())]);
        let inferred = self.folded().and_then(|value| value.content);
        // As text, as NaN is not equal to itself.
        assert_eq!(format!("{inferred:?}"), format!("{content:?}"), "inference and folding disagree");
        match (content, &expected.floats()) {
            (Some(Content::Constant(tensor)), Some(expected_floats)) => {
                // By value, as NaN has many encodings.
                assert_eq!((tensor.dtype(), tensor.dims()), (expected.dtype(), expected.dims()));
                let values = tensor.floats().expect("the type is one of floats");
                assert_eq!(format!("{values:?}"), format!("{expected_floats:?}"));
            }
            (content, _) => assert_eq!(content, Some(Content::Constant(expected))),
        }
    }

    #[track_caller]
    pub(super) fn folds_to_partial(&self, ty: &str, expected: &[Dim]) {
        assert_eq!(self.folded_as(&[parse(ty)]), Some(Content::Partial(expected.to_vec())));
    }

    #[track_caller]
    pub(super) fn folds_to_nothing(&self, ty: &str) {
        assert_eq!(self.folded_as(&[parse(ty)]), None);
    }

    /// What folding knows of the first of several results of these types.
    pub(super) fn folded_as(&self, types: &[TensorType]) -> Option<Content> {
        self.all_folded_as(types).into_iter().next().flatten()
    }

    pub(super) fn all_folded_as(&self, types: &[TensorType]) -> Vec<Option<Content>> {
        self.with_node(|node: &Node<'_>| super::fold(node, types))
    }
}
