//! Operators on images.

mod col2im;
mod grid;
mod regions;
mod resize;
mod suppress;
#[cfg(test)]
mod tests;
mod weights;

use super::Lower;

pub(super) fn find(op: &str) -> Option<Lower> {
    Some(match op {
        "Resize" => resize::resize,
        "Upsample" => resize::upsample,
        "GridSample" => grid::grid_sample,
        "AffineGrid" => grid::affine_grid,
        "RoiAlign" => regions::roi_align,
        "MaxRoiPool" => regions::max_roi_pool,
        "Col2Im" => col2im::col2im,
        "NonMaxSuppression" => suppress::non_max_suppression,
        _ => return None,
    })
}
