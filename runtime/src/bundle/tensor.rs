//! Tensors and their layouts in memory.

use crate::dtype::DType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Type of a value. Element types have ONNX's names (`float`, `int64`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    #[serde(rename = "type")]
    pub dtype: String,
    /// Shape as the model has it, whatever the layout is.
    pub shape: Vec<u64>,
    /// Size in memory, with the padding of the layout.
    pub bytes: u64,
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
    /// Dense, the last axis innermost.
    #[default]
    #[serde(rename = "row-major")]
    RowMajor,
    #[serde(rename = "nchwc")]
    Nchwc(Nchwc),
}

/// Blocked layout of a tensor of shape `[N, C, H, W]`: `[N][C / block][H][W][block]` (oneDNN: `nChw16c`). The last block of channels is
/// padded with elements of any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nchwc {
    /// Channels of a block.
    pub block: u64,
    #[serde(default, skip_serializing_if = "Halo::is_empty")]
    pub halo: Halo,
}

/// Pixels around each plane of an image, which windows read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Halo {
    pub top: u64,
    pub left: u64,
    pub bottom: u64,
    pub right: u64,
    #[serde(default, skip_serializing_if = "Fill::is_zero")]
    pub fill: Fill,
}

/// Value of the pixels of a halo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fill {
    #[default]
    #[serde(rename = "zero")]
    Zero,
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
    pub fn is_row_major(&self) -> bool {
        *self == Self::RowMajor
    }
}

impl Tensor {
    /// Returns the size in memory of a tensor with this type, shape and layout; `None` if the layout is not one of the shape, or the size
    /// cannot be counted.
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
