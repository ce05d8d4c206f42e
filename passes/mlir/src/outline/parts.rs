//! Where queued inputs are in tensors that are cut and put together.

use super::model::Model;
use crate::rebatch::{Batch, Layout};
use divi_dialect::{NamedAttribute, attr, reshaped_type, tensor_type_of};
use divi_onnx::Dim;
use melior::{ContextRef, ir::Type};

/// The axis that has the inputs, as `divi.slice` and `divi.gather` say it.
#[derive(Clone, Copy)]
pub(super) struct Place(Layout);

/// Returns where a tensor has its inputs; none where it is the same for all of them.
pub(super) fn places(model: &Model<'_>, tensor: usize) -> Option<Place> {
    match model.batch(tensor) {
        Batch::At(layout) => Some(Place(layout)),
        // Those that go from stage to stage are not apart: that has been checked.
        Batch::Same | Batch::Apart => None,
    }
}

impl Place {
    pub(super) fn attributes(self, context: ContextRef<'_>) -> [NamedAttribute<'_>; 2] {
        let Layout { axis, outer } = self.0;
        [attr::AXIS.named(context, axis as i64), attr::OUTER.named(context, outer)]
    }

    /// Returns the type of a tensor of so many inputs for another number of them.
    pub(super) fn resized<'m>(self, context: ContextRef<'m>, original: Type<'m>, from: usize, to: usize) -> Type<'m> {
        let mut ty = tensor_type_of(original).expect("what has an axis for inputs is a tensor");
        if let Some(Dim::Known(size)) = ty.shape.as_mut().and_then(|shape| shape.get_mut(self.0.axis)) {
            *size = *size / from as i64 * to as i64;
        }
        reshaped_type(context, original, &ty)
    }
}
