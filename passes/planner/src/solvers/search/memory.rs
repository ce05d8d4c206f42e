//! What is left of the devices' memory while a schedule changes.

use crate::model::instance::Instance;
use crate::model::problem::MemoryModel;
use crate::model::units::Bytes;

/// How memory limits a search.
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

    /// What a task with so many inputs takes for sure.
    pub(super) fn bytes(self, instance: &Instance, task: usize, count: u32) -> Bytes {
        match self {
            Self::None => 0.0,
            Self::Sums => instance.static_bytes(task, count),
            Self::Lives => instance.weight_bytes(task),
        }
    }
}

/// Whether what devices hold fits into them.
pub fn fits(instance: &Instance, held: &[Bytes]) -> bool {
    held.iter().enumerate().all(|(device, held)| *held <= instance.capacity_bytes(device))
}
