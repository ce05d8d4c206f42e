//! Tensors and their layouts in memory.

use crate::dtype::DType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Type and layout of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    /// ONNX name of the element type (`float`, `int64`).
    #[serde(rename = "type")]
    pub dtype: String,
    /// Logical shape, independent of the layout.
    pub shape: Vec<u64>,
    /// Size in bytes, including the padding of the layout.
    pub bytes: u64,
    /// Order of the elements in memory.
    #[serde(default, skip_serializing_if = "Layout::is_row_major")]
    pub layout: Layout,
}

impl fmt::Display for Tensor {
    /// Writes `float [1, 3, 224, 224]`, and the layout if it is not row-major.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.dtype, self.shape)?;
        if self.layout.is_row_major() { Ok(()) } else { write!(f, " in {}", self.layout) }
    }
}

/// Order of the elements of a tensor in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layout {
    /// Dense, with the last axis innermost.
    #[default]
    #[serde(rename = "row-major")]
    RowMajor,
    /// Blocked by channels.
    #[serde(rename = "nchwc")]
    Nchwc(Nchwc),
}

/// Blocked layout of a tensor of shape `[N, C, H, W]`: `[N][C / block][H][W][block]` (oneDNN: `nChw16c`). The padding of the
/// last block of channels is unspecified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nchwc {
    /// Channels per block.
    pub block: u64,
    /// Padding around each plane.
    #[serde(default, skip_serializing_if = "Halo::is_empty")]
    pub halo: Halo,
}

/// Padding around each plane of an image, so that windows need no bounds checks. Sizes are in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Halo {
    /// Rows above the plane.
    pub top: u64,
    /// Columns on the left.
    pub left: u64,
    /// Rows below the plane.
    pub bottom: u64,
    /// Columns on the right.
    pub right: u64,
    /// Value of the padding.
    #[serde(default, skip_serializing_if = "Fill::is_zero")]
    pub fill: Fill,
}

/// Value of the pixels of a halo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fill {
    /// Zero, for convolutions and sums.
    #[default]
    #[serde(rename = "zero")]
    Zero,
    /// Negative infinity, for maxima.
    #[serde(rename = "-inf")]
    NegativeInfinity,
}

impl Fill {
    fn is_zero(&self) -> bool {
        *self == Self::Zero
    }
}

impl Halo {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Layout {
    /// Returns true for the dense layout.
    pub fn is_row_major(&self) -> bool {
        *self == Self::RowMajor
    }
}

impl Tensor {
    /// Computes the size in bytes from element type, shape and layout; `None` if the layout does not apply to the shape or
    /// the size overflows.
    pub(super) fn layout_bytes(&self, dtype: DType) -> Option<u64> {
        let Layout::Nchwc(Nchwc { block, halo }) = self.layout else { return dtype.bytes_of(&self.shape) };
        let &[batch, channels, height, width] = &self.shape[..] else { return None };
        let blocks = channels.checked_add(block.checked_sub(1)?)? / block;
        let rows = height.checked_add(halo.top)?.checked_add(halo.bottom)?;
        let columns = width.checked_add(halo.left)?.checked_add(halo.right)?;
        dtype.bytes_of(&[batch, blocks, rows, columns, block])
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Nchwc(Nchwc { block, halo }) = self else { return f.write_str("row-major") };
        write!(f, "nChw{block}c")?;
        let Halo { top, left, bottom, right, .. } = halo;
        if halo.is_empty() { Ok(()) } else { write!(f, " with halo [{top}, {left}, {bottom}, {right}]") }
    }
}
