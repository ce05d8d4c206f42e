//! Where queued inputs are in tensors that are cut and put together.

use super::model::Model;
use crate::{
    ir::reshaped_type,
    rebatch::{Batch, Layout},
};
use divi_dialect::tensor_type_of;
use divi_onnx::Dim;
use melior::{Context, ir::Type};
use mlir_sys::*;

/// The axis that has the inputs, as `divi.slice` and `divi.gather` say it.
#[derive(Clone, Copy)]
pub(super) struct Place(Layout);

/// Where a tensor has its inputs; none where it is the same for all of them.
pub(super) fn places(model: &Model<'_>, tensor: usize) -> Option<Place> {
    match model.batch(tensor) {
        Batch::At(layout) => Some(Place(layout)),
        // Those that go from stage to stage are not apart: that has been checked.
        Batch::Same | Batch::Apart => None,
    }
}

impl Place {
    pub(super) fn attributes(self, model: &Model<'_>) -> [MlirNamedAttribute; 2] {
        let Layout { axis, outer } = self.0;
        [model.integer("axis", axis as i64), model.integer("outer", outer)]
    }

    /// The type of a tensor of so many inputs for another number of them.
    pub(super) fn resized(self, context: &Context, original: MlirType, from: usize, to: usize) -> MlirType {
        // SAFETY: the type is alive.
        let ty = tensor_type_of(unsafe { Type::from_raw(original) });
        let mut ty = ty.expect("what has an axis for inputs is a tensor");
        if let Some(Dim::Known(size)) = ty.shape.as_mut().and_then(|shape| shape.get_mut(self.0.axis)) {
            *size = *size / from as i64 * to as i64;
        }
        reshaped_type(context, original, &ty)
    }
}
