//! Memory layouts of values: row-major, or blocked by channels (NCHWc).
//!
//! Blocked images are stored as `[batch][channel blocks][rows][columns][lanes]`: each pixel has one vector of consecutive
//! channels, and each image is surrounded by a halo. The halo contains the padding that windows read, so kernels need no bounds checks.
//! Lanes beyond the last channel are undefined: kernels compute other such lanes from them, or multiply them by zero if they are known to be
//! finite.

use crate::emit::{Builder, V};
use divi_runtime::bundle::{self, Fill, Nchwc};

/// Padding pixels around each plane of a blocked image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Halo {
    pub(crate) top: i64,
    pub(crate) left: i64,
    pub(crate) bottom: i64,
    pub(crate) right: i64,
    /// True if the padding value is negative infinity (max pooling) instead of zero.
    pub(crate) is_negative_infinity: bool,
}

impl Halo {
    /// Empty halo.
    pub(crate) const NONE: Self = Self { top: 0, left: 0, bottom: 0, right: 0, is_negative_infinity: false };

    pub(crate) fn is_empty(&self) -> bool {
        self.top == 0 && self.left == 0 && self.bottom == 0 && self.right == 0
    }

    /// Returns the padding value.
    pub(crate) fn value(&self) -> f64 {
        if self.is_negative_infinity { f64::NEG_INFINITY } else { 0.0 }
    }

    /// Returns true if a kernel that requires the halo `other` can read a value with this halo.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let is_wide = self.top >= other.top
            && self.left >= other.left
            && self.bottom >= other.bottom
            && self.right >= other.right;
        is_wide && (other.is_empty() || self.is_negative_infinity == other.is_negative_infinity)
    }

    /// Returns the smallest halo that covers both; `None` if their padding values differ.
    pub(crate) fn union(&self, other: &Self) -> Option<Self> {
        if !self.is_empty() && !other.is_empty() && self.is_negative_infinity != other.is_negative_infinity {
            return None;
        }
        Some(Self {
            top: self.top.max(other.top),
            left: self.left.max(other.left),
            bottom: self.bottom.max(other.bottom),
            right: self.right.max(other.right),
            is_negative_infinity: [self, other].into_iter().any(|halo| halo.is_negative_infinity && !halo.is_empty()),
        })
    }
}

/// Blocked layout (NCHWc) of a value of shape `[batch, channels, height, width]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub(crate) batch: i64,
    pub(crate) channels: i64,
    pub(crate) height: i64,
    pub(crate) width: i64,
    pub(crate) halo: Halo,
    pub(crate) lanes: i64,
}

impl Blocked {
    /// Returns the layout of a shape; `None` if it is not that of a non-empty image.
    pub(crate) fn of(shape: &[i64], lanes: usize, halo: Halo) -> Option<Self> {
        let &[batch, channels, height, width] = shape else { return None };
        (batch > 0 && channels > 0 && height > 0 && width > 0).then_some(Self {
            batch,
            channels,
            height,
            width,
            halo,
            lanes: lanes as i64,
        })
    }

    /// Returns the layout with one channel per block: NCHW with a halo.
    pub(crate) fn planes(shape: &[i64], halo: Halo) -> Self {
        Self::of(shape, 1, halo).expect("convolutions are of images")
    }

    /// Returns the number of channel blocks of an image.
    pub(crate) fn blocks(&self) -> i64 {
        (self.channels + self.lanes - 1) / self.lanes
    }

    /// Returns the number of elements of a row, including the halo.
    pub(crate) fn row(&self) -> i64 {
        (self.width + self.halo.left + self.halo.right) * self.lanes
    }

    /// Returns the number of elements of a channel block of one image, including the halo.
    pub(crate) fn plane(&self) -> i64 {
        (self.height + self.halo.top + self.halo.bottom) * self.row()
    }

    /// Returns the number of elements of one image.
    pub(crate) fn image(&self) -> i64 {
        self.blocks() * self.plane()
    }

    /// Returns the offset, in elements, of the first pixel of a plane inside the halo.
    pub(crate) fn origin(&self) -> i64 {
        self.halo.top * self.row() + self.halo.left * self.lanes
    }

    /// Returns the number of elements of the value.
    pub(crate) fn elements(&self) -> i64 {
        self.batch * self.image()
    }

    /// Returns true if the layout pays off at a stage boundary: at least one block is full, and there is more than one pixel.
    pub(crate) fn is_profitable(&self) -> bool {
        self.channels >= self.lanes && self.height * self.width > 1
    }

    /// Returns the shape of the same bytes as a row-major tensor: `[batch, blocks, rows, columns, lanes]`, including the halo.
    pub(crate) fn shape(&self) -> Vec<i64> {
        let Halo { top, left, bottom, right, .. } = self.halo;
        vec![self.batch, self.blocks(), self.height + top + bottom, self.width + left + right, self.lanes]
    }

    /// Returns the layout in the bundle format.
    pub(crate) fn to_bundle(self) -> bundle::Layout {
        let Halo { top, left, bottom, right, is_negative_infinity } = self.halo;
        let [top, left, bottom, right] = [top, left, bottom, right].map(|size| size as u64);
        let fill = if is_negative_infinity && !self.halo.is_empty() { Fill::NegativeInfinity } else { Fill::Zero };
        bundle::Layout::Nchwc(Nchwc { block: self.lanes as u64, halo: bundle::Halo { top, left, bottom, right, fill } })
    }

    /// Emits the offset of the first lane of a pixel. `plane` is the index of the channel block over all images.
    pub(crate) fn at(&self, b: &Builder, plane: V, y: V, x: V) -> V {
        let rows = b.add(b.times(plane, self.plane()), b.times(y, self.row()));
        b.plus(b.add(rows, b.times(x, self.lanes)), self.origin())
    }
}

/// Layout of a value at a stage boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Unassigned,
    RowMajor,
    Blocked(Blocked),
}

impl Layout {
    /// Returns this layout; if it is unassigned, `preferred`, or row-major if there is no preference.
    pub(crate) fn or(self, preferred: Option<Blocked>) -> Self {
        match self {
            Self::Unassigned => preferred.map_or(Self::RowMajor, Self::Blocked),
            layout => layout,
        }
    }
}

/// Layouts of the inputs and outputs of a stage.
#[derive(Clone, Debug)]
pub(crate) struct StageLayouts {
    pub(crate) inputs: Vec<Layout>,
    pub(crate) outputs: Vec<Layout>,
}

impl StageLayouts {
    /// Returns row-major layouts for these numbers of inputs and outputs.
    pub(crate) fn row_major(inputs: usize, outputs: usize) -> Self {
        Self { inputs: vec![Layout::RowMajor; inputs], outputs: vec![Layout::RowMajor; outputs] }
    }
}
