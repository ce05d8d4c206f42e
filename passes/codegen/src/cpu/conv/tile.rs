//! Register tile of a convolution: selection of its size and of the loop order.

use super::Geometry;

/// Register tile of pixels by vectors of filters, and the loop order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    /// Vectors of filters, which form a panel of weights.
    pub(crate) vectors: usize,
    pub(crate) rows: i64,
    pub(crate) columns: i64,
    /// Number of filter blocks.
    pub(crate) blocks: i64,
    /// Rows and columns that are tiled; if `is_flat`, one row of all pixels.
    pub(crate) output: (i64, i64),
    /// True if rows are contiguous in all buffers, so that the image is treated as one row.
    pub(crate) is_flat: bool,
    /// True if the loop over panels is outside the loop over tiles of pixels.
    pub(crate) panels_outermost: bool,
}

/// Bytes of weights that stay in the L2 cache while all of them are read for each tile.
const SMALL_WEIGHTS: i64 = 300 * 1024;
/// Bytes of a panel of four vectors above which the next panel does not fit into the L2 cache as well: narrower panels are used.
const LARGE_PANEL: i64 = 600 * 1024;
/// Pixels up to which tiles have more pixels and fewer vectors.
const SMALL_IMAGE: i64 = 64;

impl Tile {
    /// Selects the tile of a convolution. `has_gaps` is true if rows of an image are not contiguous in some buffer.
    pub(crate) fn of(geometry: &Geometry, lanes: usize, registers: usize, is_planar: bool, has_gaps: bool) -> Self {
        let lanes = lanes as i64;
        let blocks = (geometry.filters + lanes - 1) / lanes;
        let group_blocks = blocks / geometry.groups.min(blocks);
        let pixels = geometry.output.0 * geometry.output.1;
        let is_flat = geometry.kernel == (1, 1)
            && geometry.strides == (1, 1)
            && geometry.padding == (0, 0)
            && !has_gaps
            && !geometry.is_depthwise;
        let output = if is_flat { (1, pixels) } else { geometry.output };
        if geometry.is_depthwise {
            let most = if registers >= 32 { 14 } else { 6 };
            let columns = balanced(output.1, most);
            return Self { vectors: 1, rows: 1, columns, blocks, output, is_flat, panels_outermost: true };
        }
        let panel = geometry.channels * geometry.kernel.0 * geometry.kernel.1 * 4 * lanes * 4;
        let is_small = pixels <= SMALL_IMAGE || panel > LARGE_PANEL || is_planar;
        let (vectors, most) = if geometry.has_narrow_groups {
            (1, if registers >= 32 { 14 } else { 6 })
        } else if registers >= 32 {
            let vectors = match group_blocks {
                1 => 1,
                _ if is_small => 2,
                count if count % 4 == 0 => 4,
                count if count % 3 == 0 => 3,
                count if count >= 8 && geometry.groups == 1 => 4,
                _ => 2,
            };
            // With four vectors, a seventh pixel would leave too few registers for the weights.
            (vectors, [14, 14, 14, 9, 6][vectors])
        } else {
            let vectors = if group_blocks == 1 { 1 } else { 2 };
            (vectors, [12, 12, 6][vectors])
        };
        // A panel must not span groups.
        let vectors = if geometry.groups > 1 && group_blocks % vectors as i64 != 0 { 1 } else { vectors };
        let columns = balanced(output.1, most);
        let rows = if columns == output.1 { (most / columns).clamp(1, output.0) } else { 1 };
        let panels_outermost = geometry.has_narrow_groups || geometry.weight_bytes() > SMALL_WEIGHTS;
        Self { vectors, rows, columns, blocks, output, is_flat, panels_outermost }
    }

    /// Returns the number of panels, the last of which may have fewer vectors.
    pub(crate) fn panels(&self) -> i64 {
        let vectors = self.vectors as i64;
        (self.blocks + vectors - 1) / vectors
    }

    /// Returns the number of tiles of an image, vertically and horizontally.
    pub(crate) fn grid(&self) -> (i64, i64) {
        ((self.output.0 + self.rows - 1) / self.rows, (self.output.1 + self.columns - 1) / self.columns)
    }
}

/// Returns the tile width of at most `most` pixels for the minimal number of tiles of about equal width.
fn balanced(width: i64, most: i64) -> i64 {
    let tiles = (width + most - 1) / most;
    (width + tiles - 1) / tiles
}

#[cfg(test)]
mod tests {
    use super::balanced;

    #[test]
    fn tiles_are_balanced() {
        assert_eq!([balanced(56, 7), balanced(17, 7), balanced(35, 9), balanced(3, 7)], [7, 6, 9, 3]);
    }
}
