//! Values between stages: their tensors, inputs, devices and times.

use divi_planner::units::Micros;

/// Tensor of the model, for one of the queued inputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    /// Number of the model input or launch result.
    pub(super) origin: usize,
    /// `None` if all inputs share it.
    pub(super) input: Option<i64>,
}

/// Value on a device.
#[derive(Clone)]
pub(super) struct Located {
    pub(super) device: usize,
    /// In the order of the value.
    pub(super) parts: Vec<Part>,
    /// Buffers that hold it: a slice is in those of its operand.
    pub(super) buffers: Vec<usize>,
    pub(super) ready: Micros,
}

impl Located {
    /// Returns the inputs that the value is for, in order; `None` if all inputs share it.
    pub(super) fn inputs(&self) -> Option<Vec<i64>> {
        self.parts.iter().map(|part| part.input).collect()
    }
}
