//! Lower bounds on pipelines of these devices without an integer program.

use std::ops::ControlFlow;

use super::Fleet;
use crate::mip::{self, Limits, Program};
use crate::model::error::Error;
use crate::model::plan::{Bound, Proof};
use crate::model::units::Micros;

/// Larger linear programs take too long.
const MOST_PARTS: usize = 200_000;

impl Fleet {
    /// Returns a task's time on its fastest device.
    pub(super) fn quickest(&self, task: usize) -> Micros {
        self.times(task).iter().copied().fold(Micros::INFINITY, Micros::min)
    }

    /// Longest task, and mean work per device.
    pub(super) fn simple(&self) -> Bound {
        let longest = (0..self.tasks()).map(|task| self.quickest(task)).fold(Micros::ZERO, Micros::max);
        let total: Micros = (0..self.tasks()).map(|task| self.quickest(task)).sum();
        // Replicas of a stage divide its work.
        let replicas = self.scaling.replicas;
        let used = (self.k as f64 * replicas).min(self.devices as f64);
        Bound::new((longest / replicas).max(total / used), "simple")
    }

    /// Linear relaxation: tasks are divided arbitrarily between devices that can run them. `None` if the program is too
    /// large, or takes too long. `most` is the incumbent's value: longer times are useless.
    pub(super) fn parts(&self, most: Micros, limits: &Limits) -> Result<Option<Bound>, Error> {
        if most <= Micros::ZERO || self.tasks() * self.devices > MOST_PARTS {
            return Ok(None);
        }
        let mut program = Program::default();
        let replicas = self.scaling.replicas;
        // In units of `most`.
        let slowest = program.column(0.0, 1.0, 1.0);
        let mut loads = vec![vec![(slowest, -1.0)]; self.devices];
        for task in 0..self.tasks() {
            let mut parts = Vec::new();
            for (device, time) in self.times(task).iter().enumerate().filter(|(_, time)| **time <= most * replicas) {
                let part = program.column(0.0, 1.0, 0.0);
                parts.push((part, 1.0));
                loads[device].push((part, *time / most));
            }
            program.exactly(1.0, parts);
        }
        loads.into_iter().for_each(|load| program.at_most(0.0, load));
        let outcome = program.solve(limits, None, &mut |_| ControlFlow::Continue(()))?;
        let bound = mip::rounded(program.safe_bound(&outcome).min(1.0)) * most;
        Ok((bound > Micros::ZERO).then(|| Bound::by(bound, "parts", Proof::SafeDual)))
    }
}
