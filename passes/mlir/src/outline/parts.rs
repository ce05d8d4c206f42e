//! Position of queued inputs in tensors that are sliced and gathered.

use super::model::Model;
use crate::rebatch::{Batch, Layout};
use divi_dialect::{NamedAttribute, attr, reshaped_type, tensor_type_of};
use divi_onnx::Dim;
use melior::{ContextRef, ir::Type};

/// Axis of the inputs, as in `divi.slice` and `divi.gather`.
#[derive(Clone, Copy)]
pub(super) struct Place(Layout);

/// Returns the axis of the inputs in a tensor; `None` if all inputs share it.
pub(super) fn places(model: &Model<'_>, tensor: usize) -> Option<Place> {
    match model.batch(tensor) {
        Batch::At(layout) => Some(Place(layout)),
        // Values between stages have been checked not to be `Separate`.
        Batch::Same | Batch::Separate => None,
    }
}

impl Place {
    pub(super) fn attributes(self, context: ContextRef<'_>) -> [NamedAttribute<'_>; 2] {
        let Layout { axis, outer } = self.0;
        [attr::AXIS.named(context, axis as i64), attr::OUTER.named(context, outer)]
    }

    /// Returns the type of a tensor of `from` inputs for `to` inputs.
    pub(super) fn resized<'m>(self, context: ContextRef<'m>, original: Type<'m>, from: usize, to: usize) -> Type<'m> {
        let mut ty = tensor_type_of(original).expect("only tensors have an axis of inputs");
        if let Some(Dim::Known(size)) = ty.shape.as_mut().and_then(|shape| shape.get_mut(self.0.axis)) {
            *size = *size / from as i64 * to as i64;
        }
        reshaped_type(context, original, &ty)
    }
}
