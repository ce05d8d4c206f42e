//! Conversion between plans and choices of a queue.

use super::model::Model;
use crate::model::instance::Instance;
use crate::model::plan::Batch;
use crate::model::units::Micros;
use crate::solvers::search::schedule::{Choice, Schedule};

impl Model {
    /// Returns the choice of a plan; `None` if its batches do not consist of whole units.
    pub fn choice(&self, instance: &Instance, batches: &[Batch]) -> Option<Choice<u64>> {
        let devices = self.graph.devices;
        let mut cuts = vec![0_u64; self.graph.tasks * devices];
        let mut start = vec![Micros::INFINITY; self.graph.tasks];
        for batch in batches {
            let mut counts = vec![0; self.units as usize];
            batch.inputs.iter().for_each(|input| counts[(input / self.unit) as usize] += 1);
            for (unit, count) in counts.into_iter().enumerate() {
                if count == self.unit {
                    cuts[batch.node * devices + batch.device] |= 1 << unit;
                } else if count != 0 {
                    return None;
                }
            }
            start[batch.node] = start[batch.node].min(batch.start);
        }
        Some(Choice::by_start(instance, cuts, &start))
    }

    /// Returns the launches of a schedule.
    pub(super) fn batches(&self, schedule: &Schedule<Self>) -> Vec<Batch> {
        let mut batches = Vec::new();
        for (cell, &part) in schedule.choice.places.iter().enumerate().filter(|(_, part)| **part != 0) {
            let units = (0..self.units).filter(|unit| part >> unit & 1 == 1);
            batches.push(Batch {
                node: cell / self.graph.devices,
                device: cell % self.graph.devices,
                inputs: units.flat_map(|unit| unit * self.unit..(unit + 1) * self.unit).collect(),
                start: schedule.start[cell],
            });
        }
        batches
    }

    /// Returns cuts with everything on one device.
    #[cfg(test)]
    pub(crate) fn all_on(&self, device: usize) -> Vec<u64> {
        let all = u64::MAX >> (64 - self.units);
        (0..self.graph.tasks * self.graph.devices)
            .map(|cell| if cell % self.graph.devices == device { all } else { 0 })
            .collect()
    }
}
