//! Row-major iteration over strided and broadcast tensors.

use super::bounded;

/// Iterator over the offsets of strided elements of a tensor, in row-major order of a shape.
///
/// Offsets wrap: shapes of empty tensors may have strides that overflow, but those are never used. Users check offsets against
/// the size of the tensor.
pub(super) struct StridedOffsets {
    /// Size, stride and position of each axis whose size is not 1. Their number is small even if the rank is large.
    axes: Vec<(usize, usize, usize)>,
    offset: usize,
    left: usize,
}

impl StridedOffsets {
    /// Creates an iterator. `None` if the shape is too large for folding, or the number of strides differs from its rank.
    pub(super) fn new(dims: &[i64], strides: &[isize], start: isize) -> Option<Self> {
        let left = bounded(dims)?;
        if dims.len() != strides.len() {
            return None;
        }
        let axes = dims.iter().zip(strides).filter(|&(&size, _)| size != 1);
        let axes = axes.map(|(&size, &stride)| (size as usize, stride as usize, 0)).collect();
        Some(Self { axes, offset: start as usize, left })
    }

    /// Iterates over shape `to` in a tensor of shape `from` that broadcasts to it.
    pub(super) fn broadcast(from: &[i64], to: &[i64]) -> Option<Self> {
        let missing = to.len().checked_sub(from.len())?;
        let mut steps = vec![0; missing];
        for ((&size, &target), stride) in from.iter().zip(&to[missing..]).zip(strides(from)) {
            match size {
                _ if size == target => steps.push(stride),
                1 => steps.push(0),
                _ => return None,
            }
        }
        Self::new(to, &steps, 0)
    }
}

impl Iterator for StridedOffsets {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let offset = self.offset;
        for (size, stride, position) in self.axes.iter_mut().rev() {
            *position += 1;
            self.offset = self.offset.wrapping_add(*stride);
            if *position < *size {
                break;
            }
            *position = 0;
            self.offset = self.offset.wrapping_sub(stride.wrapping_mul(*size));
        }
        Some(offset)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// Returns the strides of a dense row-major tensor, in elements.
pub(super) fn strides(dims: &[i64]) -> Vec<isize> {
    let mut strides = vec![1isize; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis].wrapping_mul(dims[axis] as isize);
    }
    strides
}

/// Broadcasts two known shapes as numpy does. `None` if they are incompatible.
pub(super) fn broadcast(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let rank = a.len().max(b.len());
    let at = |dims: &[i64], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Some(x),
            (1, x) | (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// Decomposition of a tensor's elements along one axis: `outer` × `size` × `inner`. Not for empty tensors, whose products may
/// overflow.
pub(super) struct AxisLines {
    outer: usize,
    pub(super) size: usize,
    pub(super) inner: usize,
}

impl AxisLines {
    /// Returns the decomposition. `None` if the tensor is empty or too large for folding.
    pub(super) fn new(dims: &[i64], axis: usize) -> Option<Self> {
        bounded(dims).filter(|&count| count > 0)?;
        let product = |dims: &[i64]| dims.iter().product::<i64>() as usize;
        Some(Self {
            outer: product(dims.get(..axis)?),
            size: *dims.get(axis)? as usize,
            inner: product(&dims[axis + 1..]),
        })
    }

    /// Returns the offset of the first element of each line along the axis, in row-major order of the other axes. The stride
    /// within a line is `inner`.
    pub(super) fn starts(&self) -> impl Iterator<Item = usize> {
        (0..self.outer).flat_map(move |o| (0..self.inner).map(move |i| o * self.size * self.inner + i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_strides() {
        let transposed: Vec<_> = StridedOffsets::new(&[3, 2], &[1, 3], 0).unwrap().collect();
        assert_eq!(transposed, [0, 3, 1, 4, 2, 5]);
        let reversed: Vec<_> = StridedOffsets::new(&[3], &[-2], 4).unwrap().collect();
        assert_eq!(reversed, [4, 2, 0]);
        assert_eq!(StridedOffsets::new(&[], &[], 7).unwrap().collect::<Vec<_>>(), [7]);
        assert_eq!(StridedOffsets::new(&[1 << 62, 0, 1 << 62], &[1, 1, 1], 0).unwrap().count(), 0);
        assert!(StridedOffsets::new(&[1 << 62], &[1], 0).is_none());
    }

    #[test]
    fn walks_broadcasts() {
        assert_eq!(
            StridedOffsets::broadcast(&[2, 1], &[2, 2, 3]).unwrap().collect::<Vec<_>>(),
            [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]
        );
        assert!(StridedOffsets::broadcast(&[2], &[3]).is_none());
        assert!(StridedOffsets::broadcast(&[1, 1], &[1]).is_none());
    }

    #[test]
    fn walks_lines() {
        let lines = AxisLines::new(&[2, 3, 2], 1).unwrap();
        assert_eq!(lines.starts().collect::<Vec<_>>(), [0, 1, 6, 7]);
        assert!(AxisLines::new(&[0, 1 << 62, 1 << 62], 1).is_none());
    }
}
