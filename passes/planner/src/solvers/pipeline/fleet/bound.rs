//! What no pipeline on these devices can be better than, without an integer program.

use std::ops::ControlFlow;

use super::Fleet;
use crate::mip::{self, Limits, Program};
use crate::model::error::Error;
use crate::model::plan::{Bound, Proof};
use crate::model::units::Micros;

/// Programs of more parts than this take too long.
const MOST_PARTS: usize = 200_000;

impl Fleet {
    /// A task's time where it runs fastest.
    pub(super) fn quickest(&self, task: usize) -> Micros {
        self.times(task).iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The longest task has to be somewhere, and the average device has its share of all work.
    pub(super) fn simple(&self) -> Bound {
        let longest = (0..self.tasks()).map(|task| self.quickest(task)).fold(0.0, f64::max);
        let total: Micros = (0..self.tasks()).map(|task| self.quickest(task)).sum();
        Bound::new(longest.max(total / self.devices.min(self.k) as f64), "simple")
    }

    /// Each task is done in parts, on devices that can run it; the best way to deal them out is a linear program. None where
    /// it is too large, or takes too long. Nothing that takes longer than what is known is of use.
    pub(super) fn parts(&self, most: Micros, limits: &Limits) -> Result<Option<Bound>, Error> {
        if most <= 0.0 || self.tasks() * self.devices > MOST_PARTS {
            return Ok(None);
        }
        let mut program = Program::default();
        // In parts of what is known: what takes longer is no less than that.
        let slowest = program.column(0.0, 1.0, 1.0);
        let mut loads = vec![vec![(slowest, -1.0)]; self.devices];
        for task in 0..self.tasks() {
            let mut parts = Vec::new();
            for (device, time) in self.times(task).iter().enumerate().filter(|(_, time)| **time <= most) {
                let part = program.column(0.0, 1.0, 0.0);
                parts.push((part, 1.0));
                loads[device].push((part, time / most));
            }
            program.exactly(1.0, parts);
        }
        loads.into_iter().for_each(|load| program.at_most(0.0, load));
        let outcome = program.solve(limits, None, &mut |_| ControlFlow::Continue(()))?;
        let bound = mip::rounded(program.safe_bound(&outcome).min(1.0)) * most;
        Ok((bound > 0.0).then(|| Bound::by(bound, "parts", Proof::SafeDual)))
    }
}
