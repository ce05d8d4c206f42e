//! Operators on images.

mod col2im;
mod grid;
mod non_max_suppression;
mod regions;
mod resize;
#[cfg(test)]
mod tests;
mod weights;

use super::Lower;
use divi_onnx::Op;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Resize => resize::resize,
        Op::Upsample => resize::upsample,
        Op::GridSample => grid::grid_sample,
        Op::AffineGrid => grid::affine_grid,
        Op::RoiAlign => regions::roi_align,
        Op::MaxRoiPool => regions::max_roi_pool,
        Op::Col2Im => col2im::col2im,
        Op::NonMaxSuppression => non_max_suppression::non_max_suppression,
        _ => return None,
    })
}
