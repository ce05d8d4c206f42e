//! Row-major iteration over strided and broadcast tensors.

use super::bounded;

/// The offsets, in row-major order of some shape, of elements that lie at fixed strides in another tensor.
///
/// Offsets wrap: shapes of empty tensors may have strides that overflow, but those are never followed, and who uses an
/// offset checks it against the tensor it is for.
pub(super) struct Walk {
    /// Size, stride and position of each axis with more than one element. There are few of them, however high the rank.
    axes: Vec<(usize, usize, usize)>,
    offset: usize,
    left: usize,
}

impl Walk {
    /// `None` if the shape is not one that folding computes, or the strides are not as many as its axes.
    pub(super) fn new(dims: &[i64], strides: &[isize], start: isize) -> Option<Self> {
        let left = bounded(dims)?;
        if dims.len() != strides.len() {
            return None;
        }
        let axes = dims.iter().zip(strides).filter(|&(&size, _)| size != 1);
        let axes = axes.map(|(&size, &stride)| (size as usize, stride as usize, 0)).collect();
        Some(Self { axes, offset: start as usize, left })
    }

    /// Iteration over `to` in a tensor of shape `from` that broadcasts to it.
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

impl Iterator for Walk {
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

/// The strides of a dense row-major tensor, in elements.
pub(super) fn strides(dims: &[i64]) -> Vec<isize> {
    let mut strides = vec![1isize; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis].wrapping_mul(dims[axis] as isize);
    }
    strides
}

/// Numpy broadcasting of two known shapes.
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

/// A tensor seen along one axis: `outer` times `size` times `inner` elements. Not for empty tensors, whose products may
/// overflow.
pub(super) struct Lines {
    outer: usize,
    pub(super) size: usize,
    pub(super) inner: usize,
}

impl Lines {
    /// `None` if the tensor is empty or has more elements than folding reads.
    pub(super) fn new(dims: &[i64], axis: usize) -> Option<Self> {
        bounded(dims).filter(|&count| count > 0)?;
        let product = |dims: &[i64]| dims.iter().product::<i64>() as usize;
        Some(Self {
            outer: product(dims.get(..axis)?),
            size: *dims.get(axis)? as usize,
            inner: product(&dims[axis + 1..]),
        })
    }

    /// Where each line along the axis starts, in row-major order of the other axes. Its elements are `inner` apart.
    pub(super) fn starts(&self) -> impl Iterator<Item = usize> {
        (0..self.outer).flat_map(move |o| (0..self.inner).map(move |i| o * self.size * self.inner + i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_strides() {
        let transposed: Vec<_> = Walk::new(&[3, 2], &[1, 3], 0).unwrap().collect();
        assert_eq!(transposed, [0, 3, 1, 4, 2, 5]);
        let reversed: Vec<_> = Walk::new(&[3], &[-2], 4).unwrap().collect();
        assert_eq!(reversed, [4, 2, 0]);
        assert_eq!(Walk::new(&[], &[], 7).unwrap().collect::<Vec<_>>(), [7]);
        assert_eq!(Walk::new(&[1 << 62, 0, 1 << 62], &[1, 1, 1], 0).unwrap().count(), 0);
        assert!(Walk::new(&[1 << 62], &[1], 0).is_none());
    }

    #[test]
    fn walks_broadcasts() {
        assert_eq!(
            Walk::broadcast(&[2, 1], &[2, 2, 3]).unwrap().collect::<Vec<_>>(),
            [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]
        );
        assert!(Walk::broadcast(&[2], &[3]).is_none());
        assert!(Walk::broadcast(&[1, 1], &[1]).is_none());
    }

    #[test]
    fn walks_lines() {
        let lines = Lines::new(&[2, 3, 2], 1).unwrap();
        assert_eq!(lines.starts().collect::<Vec<_>>(), [0, 1, 6, 7]);
        assert!(Lines::new(&[0, 1 << 62, 1 << 62], 1).is_none());
    }
}
