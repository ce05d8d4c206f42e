//! Values between stages: which tensors they are, for which inputs, where they are and since when.

use divi_planner::units::Micros;

/// A tensor of the model, for one of the queued inputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    /// Counts the model's inputs and what launches return.
    pub(super) origin: usize,
    /// `None` where it is the same for all.
    pub(super) input: Option<i64>,
}

/// A value on a device.
#[derive(Clone)]
pub(super) struct Located {
    pub(super) device: usize,
    /// In the order in which they are in the value.
    pub(super) parts: Vec<Part>,
    /// The memory that it is in: a slice is in that of what it is taken from.
    pub(super) buffers: Vec<usize>,
    pub(super) ready: Micros,
}

impl Located {
    /// The inputs that it is for, in order; `None` where it is the same for all.
    pub(super) fn inputs(&self) -> Option<Vec<i64>> {
        self.parts.iter().map(|part| part.input).collect()
    }
}

/// A list of inputs as messages have it: `0, 1, 2` or, where it is long, `0 … 15 (16 of them)`.
pub(super) fn list(inputs: &[i64]) -> String {
    match inputs {
        [first, .., last] if inputs.len() > 8 => format!("{first} … {last} ({} of them)", inputs.len()),
        _ => inputs.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
    }
}
