//! Order in which a kernel computes its tiles.

use crate::emit::{Builder, V};

/// Tiles of several images or matrices: each tile is computed for each panel of weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileOrder {
    pub(super) panels: i64,
    /// Tiles of an image.
    pub(super) tiles: i64,
    /// True if all tiles of an image are computed for one panel before the next, so that large weights are read once.
    pub(super) panels_outermost: bool,
}

impl TileOrder {
    /// Emits image, panel and tile of a position in this order.
    pub(super) fn split(self, b: &Builder, number: V) -> (V, V, V) {
        if self.panels_outermost {
            let (rest, tile) = b.div_rem(number, self.tiles);
            let (image, panel) = b.div_rem(rest, self.panels);
            (image, panel, tile)
        } else {
            let (rest, panel) = b.div_rem(number, self.panels);
            let (image, tile) = b.div_rem(rest, self.tiles);
            (image, panel, tile)
        }
    }
}
