//! Memory constraints of a search.

use crate::model::instance::Instance;
use crate::model::problem::MemoryModel;
use crate::model::units::Bytes;

/// Kind of memory constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// Everything fits everywhere.
    None,
    /// Memory use is additive: each change is checked by itself.
    Sums,
    /// Weights are additive; the peak of activations is known from whole schedules only.
    Lives,
}

impl Limits {
    /// Returns the kind of an instance.
    pub fn of(instance: &Instance) -> Self {
        match (instance.memory_binds(), instance.memory_model()) {
            (false, _) => Self::None,
            (true, MemoryModel::Static) => Self::Sums,
            (true, MemoryModel::Liveness) => Self::Lives,
        }
    }

    /// Returns a lower bound on the bytes of a task with `count` inputs.
    pub(super) fn bytes(self, instance: &Instance, task: usize, count: u32) -> Bytes {
        match self {
            Self::None => Bytes::ZERO,
            Self::Sums => instance.static_bytes(task, count),
            Self::Lives => instance.weight_bytes(task),
        }
    }
}
