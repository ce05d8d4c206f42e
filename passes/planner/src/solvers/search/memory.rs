//! Memory as a limit of a search.

use crate::model::instance::Instance;
use crate::model::problem::MemoryModel;
use crate::model::units::Bytes;

/// Limit that memory is for a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// Everything fits everywhere.
    None,
    /// What tasks take adds up: each change is checked by itself.
    Sums,
    /// Weights add up; what else is alive at once is known from whole schedules only.
    Lives,
}

impl Limits {
    pub fn of(instance: &Instance) -> Self {
        match (instance.memory_binds(), instance.memory_model()) {
            (false, _) => Self::None,
            (true, MemoryModel::Static) => Self::Sums,
            (true, MemoryModel::Liveness) => Self::Lives,
        }
    }

    /// Bytes that a task with so many inputs takes for sure.
    pub(super) fn bytes(self, instance: &Instance, task: usize, count: u32) -> Bytes {
        match self {
            Self::None => 0.0,
            Self::Sums => instance.static_bytes(task, count),
            Self::Lives => instance.weight_bytes(task),
        }
    }
}
