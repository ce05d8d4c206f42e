//! Relaxations of a problem: what every plan of the problem is a plan of, or is no better than one of.

use super::{Contention, Problem};
use crate::model::plan::Objective;

impl Problem {
    /// True if a plan has to list its transfers or copies with their times: with contention, or from a cold start.
    /// Plans of pipelines never do, since the cost of a stage includes its transfers.
    pub fn lists_transfers(&self, objective: Objective) -> bool {
        objective != Objective::Pipeline && (self.contention != Contention::Off || self.cold.is_some())
    }

    /// The problem without contention and from a warm start. Parameters that some device can read in the host's memory
    /// take no room, since a plan of a cold start need not copy them.
    pub(crate) fn relaxed(&self) -> Self {
        let mut warm = Self { contention: Contention::Off, cold: None, ..self.clone() };
        if let Some(cold) = &self.cold {
            for node in &mut warm.nodes {
                if (0..self.devices.len()).any(|device| cold.direct_time(node.id, device).is_some()) {
                    node.weight = 0.0;
                }
            }
        }
        warm
    }

    /// The problem without contention, from a warm start, with unlimited memory.
    pub(crate) fn relaxed_without_memory(&self) -> Self {
        let mut relaxed = Self { contention: Contention::Off, cold: None, ..self.clone() };
        relaxed.devices.iter_mut().for_each(|device| device.memory = None);
        relaxed
    }
}
