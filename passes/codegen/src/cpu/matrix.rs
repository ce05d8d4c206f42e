//! Batches of matrices in the memory of a tensor.

use crate::{
    emit::{Builder, V},
    graph::Id,
    strided_view::StridedView,
};

/// Matrices with any distances between rows and between matrices. Elements of a row are adjacent.
#[derive(Clone, Debug)]
pub(super) struct Matrices {
    pub(super) id: Id,
    /// Sizes and strides of the axes before the last two.
    pub(super) batch: StridedView,
    /// Distance of rows in elements.
    pub(super) row: i64,
}

impl Matrices {
    /// Returns the matrices of a row-major tensor.
    pub(super) fn row_major(id: Id, count: i64, rows: i64, columns: i64) -> Self {
        Self { id, batch: StridedView { shape: vec![count], strides: vec![rows * columns] }, row: columns }
    }

    /// Returns the matrices of a view: its last two axes. `None` if elements of a row are not adjacent.
    pub(super) fn of_view(id: Id, view: &StridedView) -> Option<Self> {
        let axes = view.shape.len().checked_sub(2)?;
        let (shape, outer) = (view.shape[..axes].to_vec(), view.strides[..axes].to_vec());
        let is_adjacent = view.strides[axes + 1] == 1 || view.shape[axes + 1] == 1;
        is_adjacent.then(|| Self { id, batch: StridedView { shape, strides: outer }, row: view.strides[axes] })
    }

    /// Returns the number of matrices.
    pub(super) fn count(&self) -> i64 {
        self.batch.shape.iter().product()
    }

    /// Emits the offset of the first element of a matrix.
    pub(super) fn offset(&self, b: &Builder, number: V) -> V {
        b.offset(&b.coordinates(number, &self.batch.shape), &self.batch.strides)
    }
}
