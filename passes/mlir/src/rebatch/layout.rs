//! Position of the inputs of a batch in a tensor.

use divi_onnx::{Dim, TensorType};

/// Position of the runs in a tensor: one dimension, which is composed of `outer` × runs × the rest.
///
/// A dimension of `outer * rest` elements for one run has `outer * factor * rest` for `factor` of them, and element `r`
/// of part `o` of run `g` is at `(o * factor + g) * rest + r`. A batch with its own dimension, or merged with following
/// dimensions, has `outer` 1; a batch merged with preceding ones has more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Dimension that contains the runs.
    pub axis: usize,
    /// Number of parts of the dimension, each of which has all runs.
    pub outer: i64,
}

impl Layout {
    /// Returns the layout of consecutive runs.
    pub(crate) fn of(axis: usize) -> Self {
        Self { axis, outer: 1 }
    }

    /// Returns the same layout on another axis.
    pub(crate) fn on(self, axis: usize) -> Self {
        Self { axis, ..self }
    }
}

/// Returns a type at `factor` times the batch. `None` if it does not have the axis, or the dimension overflows; a
/// dynamic dimension stays dynamic.
pub(crate) fn scaled(ty: &TensorType, axis: usize, factor: i64) -> Option<TensorType> {
    let mut ty = ty.clone();
    let dim = ty.shape.as_mut()?.get_mut(axis)?;
    if let Dim::Known(size) = dim {
        *size = size.checked_mul(factor)?;
    }
    (!ty.overflows()).then_some(ty)
}

/// Returns the layout of a batch after a reshape. `unit` is the size of the batch in one run.
///
/// The number of elements before the runs does not change, which often leaves several dimensions to choose from: first
/// one with the size of the batch, then those that have changed, and the last dimension, which most likely holds
/// features, only if there is no other. Any choice is correct; a bad one causes later operators to be unrolled.
pub(crate) fn regroup(from: &[Dim], at: Layout, to: &[Dim], unit: i64) -> Option<Layout> {
    if from.iter().chain(to).any(|&dim| dim == Dim::Known(0)) {
        return None;
    }
    let before = known_product(&from[..at.axis])?.checked_mul(at.outer)?;
    let kept_in_front = from[..at.axis].iter().zip(to).take_while(|(a, b)| a == b).count();
    let behind = &from[at.axis + 1..];
    let kept_behind = behind.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();

    let mut best: Option<(u8, Layout)> = None;
    let mut prefix = 1i64;
    for (axis, &dim) in to.iter().enumerate() {
        let outer = before / prefix;
        let fits = before % prefix == 0 && (outer == 1 || dim.known().is_some_and(|size| size % outer == 0));
        if fits {
            let last = axis + 1 == to.len();
            let kept = axis < kept_in_front || axis >= to.len() - kept_behind;
            let rank = match (outer == 1, kept, last) {
                (true, _, _) if dim == Dim::Known(unit) => 0,
                (true, false, false) => 1,
                (false, false, false) => 2,
                (true, true, false) => 3,
                (false, true, false) => 4,
                (true, _, true) => 5,
                (false, _, true) => 6,
            };
            if best.is_none_or(|(other, _)| rank < other) {
                best = Some((rank, Layout { axis, outer }));
            }
        }
        prefix = match dim {
            Dim::Known(size) => prefix.checked_mul(size)?,
            _ => break,
        };
        if prefix > before {
            break;
        }
    }
    best.map(|(_, layout)| layout)
}

/// Returns the product of dimensions that are all known.
pub(crate) fn known_product(dims: &[Dim]) -> Option<i64> {
    dims.iter().try_fold(1i64, |product, dim| product.checked_mul(dim.known()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_onnx::DType;

    fn dims(sizes: &[i64]) -> Vec<Dim> {
        sizes.iter().map(|&size| if size < 0 { Dim::Unknown } else { Dim::Known(size) }).collect()
    }

    fn after(from: &[i64], at: Layout, to: &[i64], unit: i64) -> Option<(usize, i64)> {
        regroup(&dims(from), at, &dims(to), unit).map(|layout| (layout.axis, layout.outer))
    }

    #[test]
    fn first_dimension_stays_the_batch() {
        assert_eq!(after(&[1, 128, 768], Layout::of(0), &[1, 128, 12, 64], 1), Some((0, 1)));
        assert_eq!(after(&[1, 128, 768], Layout::of(0), &[128, 768], 1), Some((0, 1)));
        assert_eq!(after(&[128, 768], Layout::of(0), &[1, 128, 768], 1), Some((0, 1)));
        assert_eq!(after(&[12, 128, 64], Layout::of(0), &[1, 12, 128, 64], 1), Some((0, 1)));
        assert_eq!(after(&[1, 128], Layout::of(0), &[1, 1, 1, 128], 1), Some((0, 1)));
        assert_eq!(after(&[1, 64], Layout::of(0), &[64], 1), Some((0, 1)));
    }

    #[test]
    fn batch_is_found_by_its_size() {
        assert_eq!(after(&[2, 768], Layout::of(0), &[1, 2, 768], 2), Some((1, 1)));
        assert_eq!(after(&[2, 128, 768], Layout::of(0), &[256, 768], 2), Some((0, 1)));
        assert_eq!(after(&[256, 768], Layout::of(0), &[2, 128, 768], 2), Some((0, 1)));
        assert_eq!(after(&[197, 2, 768], Layout::of(1), &[394, 768], 2), Some((0, 197)));
    }

    #[test]
    fn batch_after_a_sequence_is_merged_with_it_or_with_heads() {
        assert_eq!(after(&[197, 1, 768], Layout::of(1), &[197, 768], 1), Some((0, 197)));
        assert_eq!(after(&[197, 768], Layout { axis: 0, outer: 197 }, &[197, 1, 768], 1), Some((1, 1)));
        assert_eq!(after(&[197, 1, 768], Layout::of(1), &[197, 12, 64], 1), Some((1, 1)));
        assert_eq!(after(&[197, 12, 64], Layout::of(1), &[197, 768], 1), Some((0, 197)));
    }

    #[test]
    fn batch_without_a_matching_dimension_is_not_followed() {
        // Runs after two elements each would start in the middle of a group of three.
        assert_eq!(after(&[2, 1, 3], Layout::of(1), &[3, 2], 1), None);
        assert_eq!(after(&[0, 1, 3], Layout::of(1), &[0, 3], 1), None);
        assert_eq!(after(&[-1, 1, 3], Layout::of(1), &[-1, 3], 1), None);
        assert_eq!(after(&[1, -1, 6], Layout::of(0), &[1, -1, 2, 3], 1), Some((0, 1)));
    }

    #[test]
    fn only_the_batch_dimension_is_scaled() {
        let ty = TensorType::new(DType::F32, dims(&[3, 2, -1]));
        assert_eq!(scaled(&ty, 1, 4).unwrap().shape, Some(dims(&[3, 8, -1])));
        assert_eq!(scaled(&ty, 2, 4).unwrap().shape, Some(dims(&[3, 2, -1])));
        assert_eq!(scaled(&ty, 3, 4), None);
        assert_eq!(scaled(&ty, 0, i64::MAX), None);
        assert_eq!(scaled(&TensorType::unranked(DType::F32), 0, 4), None);
    }
}
