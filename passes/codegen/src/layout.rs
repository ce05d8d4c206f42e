//! Layouts of values in memory: row-major, or images in blocks of channels (NCHWc).
//!
//! Blocked images lie as `[batch][channel blocks][rows][columns][lanes]`: a register's worth of channels side by side for each pixel,
//! and a halo around each image. The halo has what a window reads beyond the image, so that kernels need no bounds checks. Lanes beyond
//! the last channel hold anything: only kernels that compute other such lanes read them.

use crate::emit::{Builder, V};
use divi_runtime::bundle::{self, Fill, Nchwc};

/// Pixels around an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Halo {
    pub(crate) top: i64,
    pub(crate) left: i64,
    pub(crate) bottom: i64,
    pub(crate) right: i64,
    /// True if they are less than all numbers, instead of zero.
    pub(crate) is_lowest: bool,
}

impl Halo {
    /// No pixels.
    pub(crate) const NONE: Self = Self { top: 0, left: 0, bottom: 0, right: 0, is_lowest: false };

    pub(crate) fn is_empty(&self) -> bool {
        self.top == 0 && self.left == 0 && self.bottom == 0 && self.right == 0
    }

    /// Value of its pixels.
    pub(crate) fn value(&self) -> f64 {
        if self.is_lowest { f64::NEG_INFINITY } else { 0.0 }
    }

    /// Returns true if a kernel that needs `other` can read a value with this halo.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let is_wide = self.top >= other.top
            && self.left >= other.left
            && self.bottom >= other.bottom
            && self.right >= other.right;
        is_wide && (other.is_empty() || self.is_lowest == other.is_lowest)
    }

    /// The least halo that covers both, if they have the same pixels in them.
    pub(crate) fn union(&self, other: &Self) -> Option<Self> {
        if !self.is_empty() && !other.is_empty() && self.is_lowest != other.is_lowest {
            return None;
        }
        Some(Self {
            top: self.top.max(other.top),
            left: self.left.max(other.left),
            bottom: self.bottom.max(other.bottom),
            right: self.right.max(other.right),
            is_lowest: [self, other].into_iter().any(|halo| halo.is_lowest && !halo.is_empty()),
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
    /// The layout of a shape; `None` if it is no image.
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

    /// Planes of single channels, with a halo.
    pub(crate) fn planes(shape: &[i64], halo: Halo) -> Self {
        Self::of(shape, 1, halo).expect("convolutions are of images")
    }

    pub(crate) fn blocks(&self) -> i64 {
        (self.channels + self.lanes - 1) / self.lanes
    }

    /// Elements of a row.
    pub(crate) fn row(&self) -> i64 {
        (self.width + self.halo.left + self.halo.right) * self.lanes
    }

    /// Elements of a block of channels of one image.
    pub(crate) fn plane(&self) -> i64 {
        (self.height + self.halo.top + self.halo.bottom) * self.row()
    }

    /// Elements of one image.
    pub(crate) fn image(&self) -> i64 {
        self.blocks() * self.plane()
    }

    /// Offset of the first pixel of a plane.
    pub(crate) fn origin(&self) -> i64 {
        self.halo.top * self.row() + self.halo.left * self.lanes
    }

    pub(crate) fn elements(&self) -> i64 {
        self.batch * self.image()
    }

    /// Returns true if the layout is of use at a stage boundary: lanes are filled, and there are pixels to reorder.
    pub(crate) fn is_worth_it(&self) -> bool {
        self.channels >= self.lanes && self.height * self.width > 1
    }

    /// Shape of the same bytes as a dense tensor: `[batch, blocks, rows, columns, lanes]`, with the halo.
    pub(crate) fn shape(&self) -> Vec<i64> {
        let Halo { top, left, bottom, right, .. } = self.halo;
        vec![self.batch, self.blocks(), self.height + top + bottom, self.width + left + right, self.lanes]
    }

    /// Returns the layout as bundles describe it.
    pub(crate) fn described(&self) -> bundle::Layout {
        let Halo { top, left, bottom, right, is_lowest } = self.halo;
        let [top, left, bottom, right] = [top, left, bottom, right].map(|size| size as u64);
        let fill = if is_lowest && !self.halo.is_empty() { Fill::NegativeInfinity } else { Fill::Zero };
        bundle::Layout::Nchwc(Nchwc { block: self.lanes as u64, halo: bundle::Halo { top, left, bottom, right, fill } })
    }

    /// The element at a pixel of plane number `plane`, counted over all images.
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
    /// The same layout, or `preferred` if none is assigned.
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
    /// Row-major inputs and outputs.
    pub(crate) fn row_major(inputs: usize, outputs: usize) -> Self {
        Self { inputs: vec![Layout::RowMajor; inputs], outputs: vec![Layout::RowMajor; outputs] }
    }
}
