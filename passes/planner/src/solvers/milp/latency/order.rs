//! Disjunctive order of tasks on a device (eq. 7).

use super::{Latency, Pair, time};
use crate::mip::{Column, Program};
use crate::model::error::Error;
use crate::model::units::Micros;
use crate::solvers::milp::ROUNDING;
use crate::solvers::milp::rows::check_orders;

impl Latency<'_> {
    /// Adds for each pair of tasks that may overlap on a device the disjunction of their two orders.
    pub(super) fn sequence(&mut self, program: &mut Program) -> Result<(), Error> {
        let tasks = self.instance.tasks();
        let overlapping: Vec<(usize, usize)> =
            (0..tasks).flat_map(|a| (0..a).map(move |b| (b, a))).filter(|(a, b)| self.may_meet(*a, *b)).collect();
        check_orders(2 * overlapping.len(), tasks)?;
        for (a, b) in overlapping {
            let (first, second) = (self.pair(program, a, b), self.pair(program, b, a));
            program.at_most(1.0, [(first, 1.0), (second, 1.0)]);
            let (of_a, of_b) = (self.instance.group_of(a), self.instance.group_of(b));
            if of_a == of_b {
                program.at_least(1.0, [(first, 1.0), (second, 1.0)]);
                continue;
            }
            for (device, column) in self.on[of_a].clone() {
                if let Some(other) = self.on(of_b, device) {
                    let row = [(first, 1.0), (second, 1.0), (column, -1.0), (other, -1.0)];
                    program.at_least(-1.0, row);
                }
            }
        }
        Ok(())
    }

    /// Returns true if two tasks may be on the same device at the same time, given the graph and the horizon.
    fn may_meet(&self, a: usize, b: usize) -> bool {
        let (of_a, of_b) = (self.instance.group_of(a), self.instance.group_of(b));
        let share = || self.on[of_a].iter().any(|(device, _)| self.on(of_b, *device).is_some());
        !self.times.comparable(a, b)
            && self.overlap(a, b) > Micros::ZERO
            && self.overlap(b, a) > Micros::ZERO
            && share()
    }

    /// Returns the maximum time by which task `a` can end after the start of task `b`: the big-M of their order.
    fn overlap(&self, a: usize, b: usize) -> Micros {
        self.horizon - self.times.least_tail(a) - self.times.least_head(b)
    }

    fn pair(&mut self, program: &mut Program, a: usize, b: usize) -> Column {
        let before = program.binary();
        let shortest = self.instance.allowed(a).iter().map(|device| time(self.instance, a, *device));
        let soonest = self.times.least_head(a) + shortest.fold(Micros::INFINITY, Micros::min);
        let last = self
            .instance
            .allowed(b)
            .iter()
            .map(|device| self.horizon - time(self.instance, b, *device) - self.times.tail(b, *device));
        if soonest > last.fold(Micros(f64::NEG_INFINITY), Micros::max) + self.horizon * ROUNDING {
            program.fix(before, 0.0);
        } else {
            let big_m = self.overlap(a, b) / self.horizon;
            let mut row = vec![(self.start[b], 1.0), (self.start[a], -1.0), (before, -big_m)];
            row.extend(self.duration(a, -1.0));
            program.at_least(-big_m, row);
        }
        self.pairs.push(Pair { tasks: (a, b), before });
        before
    }
}
