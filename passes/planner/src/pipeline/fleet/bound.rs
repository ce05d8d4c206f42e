//! What no pipeline on these devices can be better than: work alone, dealt out in parts.

use std::ops::ControlFlow;

use super::Fleet;
use crate::error::Error;
use crate::mip::{Limits, Program};
use crate::plan::Bound;
use crate::solve::Options;
use crate::units::Micros;

/// Programs of more parts than this take too long.
const MOST_PARTS: usize = 200_000;
/// Tolerances of the solver.
const SLACK: f64 = 1e-7;

impl Fleet {
    /// Each task is done in parts, on devices that can run it; the best way to deal them out is a linear program. And the
    /// longest task has to be somewhere as a whole.
    pub(super) fn bound(&self, options: &Options) -> Result<Bound, Error> {
        let quickest = |task: usize| self.times(task).iter().copied().fold(f64::INFINITY, f64::min);
        let longest = (0..self.tasks()).map(quickest).fold(0.0, f64::max);
        let total: Micros = (0..self.tasks()).map(quickest).sum();
        let share = total / self.devices.min(self.k) as f64;
        let simple = Bound::new(longest.max(share), "simple");
        if total <= 0.0 || self.tasks() * self.devices > MOST_PARTS {
            return Ok(simple);
        }
        let mut program = Program::default();
        let slowest = program.column(0.0, f64::INFINITY, 1.0);
        let mut loads = vec![vec![(slowest, -1.0)]; self.devices];
        for task in 0..self.tasks() {
            let mut parts = Vec::new();
            for (device, time) in self.times(task).iter().enumerate().filter(|(_, time)| time.is_finite()) {
                let part = program.column(0.0, 1.0, 0.0);
                parts.push((part, 1.0));
                loads[device].push((part, time / total));
            }
            program.exactly(1.0, parts);
        }
        loads.into_iter().for_each(|load| program.at_most(0.0, load));
        let limits = Limits { seed: options.seed, iterations: u64::MAX, seconds: None };
        let outcome = program.solve(&limits, None, &mut |_| ControlFlow::Continue(()))?;
        let dealt = (outcome.bound - SLACK) * total;
        let proven = outcome.finished && outcome.bound.is_finite() && dealt > simple.value;
        Ok(if proven { Bound::new(dealt, "parts") } else { simple })
    }
}
