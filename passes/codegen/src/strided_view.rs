//! Views of tensors in memory: sizes and strides of axes.

use crate::graph::{broadcast_strides, strides};

/// Axes of a tensor in the memory of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StridedView {
    pub(crate) shape: Vec<i64>,
    /// Distances in elements.
    pub(crate) strides: Vec<i64>,
}

impl StridedView {
    pub(crate) fn row_major(shape: &[i64]) -> Self {
        Self { shape: shape.to_vec(), strides: strides(shape) }
    }

    /// Returns the view with its axes in another order.
    pub(crate) fn permuted(&self, order: &[usize]) -> Self {
        let of = |values: &[i64]| order.iter().map(|&axis| values[axis]).collect();
        Self { shape: of(&self.shape), strides: of(&self.strides) }
    }

    /// Returns the view with another shape of as many elements in the same row-major order; `None` if it would need a copy.
    pub(crate) fn reshaped(&self, shape: &[i64]) -> Option<Self> {
        let mut axes = self.shape.iter().copied().zip(self.strides.iter().copied()).filter(|&(size, _)| size != 1);
        let mut result = Self { shape: shape.to_vec(), strides: vec![0; shape.len()] };
        // The axes of the old and the new shape are matched in groups of as many elements.
        let mut wanted = (0..shape.len()).filter(|&axis| shape[axis] != 1);
        while let Some((size, stride)) = axes.next() {
            let (mut old, mut last) = (size, stride);
            let first = wanted.next()?;
            let (mut new, mut group) = (shape[first], vec![first]);
            while old != new {
                if old < new {
                    let (size, stride) = axes.next()?;
                    // Adjacent axes are merged only if they are contiguous.
                    if last != stride * size {
                        return None;
                    }
                    (old, last) = (old * size, stride);
                } else {
                    let axis = wanted.next()?;
                    new *= shape[axis];
                    group.push(axis);
                }
            }
            for &axis in group.iter().rev() {
                result.strides[axis] = last;
                last *= shape[axis];
            }
        }
        wanted.next().is_none().then_some(result)
    }

    /// Returns the view broadcast to a shape; `None` if it has more axes.
    pub(crate) fn broadcast(&self, to: &[i64]) -> Option<Self> {
        let missing = to.len().checked_sub(self.shape.len())?;
        let repeated = broadcast_strides(&self.shape, to);
        let stride = |axis: usize| match axis.checked_sub(missing) {
            Some(inner) if repeated[axis] != 0 || self.shape[inner] == to[axis] => self.strides[inner],
            _ => 0,
        };
        Some(Self { shape: to.to_vec(), strides: (0..to.len()).map(stride).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_split_and_merged_where_no_copy_is_needed() {
        let heads = StridedView::row_major(&[2, 7, 96]).reshaped(&[2, 7, 4, 24]).unwrap().permuted(&[0, 2, 1, 3]);
        assert_eq!((&heads.shape[..], &heads.strides[..]), (&[2, 4, 7, 24][..], &[672, 24, 96, 1][..]));
        assert_eq!(heads.reshaped(&[8, 7, 24]), None);
        let ones = heads.reshaped(&[2, 1, 4, 7, 24, 1]).unwrap();
        assert_eq!(ones.strides, [672, 0, 24, 96, 1, 0]);
        assert_eq!(heads.reshaped(&[2, 2, 2, 7, 24]).unwrap().strides, [672, 48, 24, 96, 1]);
        assert_eq!(ones.permuted(&[0, 1, 3, 2, 4, 5]).reshaped(&[14, 96]).unwrap().strides, [96, 1]);
    }

    #[test]
    fn missing_axes_and_axes_of_one_element_are_repeated() {
        let mask = StridedView::row_major(&[3, 1, 5]);
        assert_eq!(mask.broadcast(&[2, 3, 4, 5]).unwrap().strides, [0, 5, 0, 1]);
        assert_eq!(StridedView::row_major(&[1, 1, 1, 1]).broadcast(&[4, 5]), None);
    }
}
