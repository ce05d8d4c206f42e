//! Relaxations of a problem: the optimum of a relaxation is a lower bound on that of the problem.

use super::{Contention, Problem};
use crate::model::plan::Objective;
use crate::model::units::Bytes;

impl Problem {
    /// Returns true if a plan lists its transfers or copies with their times: with contention, or from a cold start.
    /// Plans of pipelines never do, since the cost of a stage includes its transfers.
    pub fn lists_transfers(&self, objective: Objective) -> bool {
        objective != Objective::Pipeline && (self.contention != Contention::Off || self.cold.is_some())
    }

    /// Returns the problem without contention and from a warm start. Parameters that some device can read in the host's
    /// memory take no memory, since a plan of a cold start need not copy them.
    pub(crate) fn relaxed(&self) -> Self {
        let mut warm = Self { contention: Contention::Off, cold: None, ..self.clone() };
        if let Some(cold) = &self.cold {
            for node in &mut warm.nodes {
                if (0..self.devices.len()).any(|device| cold.direct_time(node.id, device).is_some()) {
                    node.weight = Bytes::ZERO;
                }
            }
        }
        warm
    }

    /// Returns the problem without contention, from a warm start, with unlimited memory.
    pub(crate) fn relaxed_without_memory(&self) -> Self {
        let mut relaxed = Self { contention: Contention::Off, cold: None, ..self.clone() };
        relaxed.devices.iter_mut().for_each(|device| device.memory = None);
        relaxed
    }
}
