//! Disjunctive order of batches on a device (eq. 7).

use super::{Pair, Queue};
use crate::mip::Program;
use crate::model::error::Error;
use crate::solvers::milp::rows::check_orders;

impl Queue<'_> {
    /// Adds for each pair of batches that may overlap on a device the disjunction of their two orders.
    pub(super) fn sequence(&mut self, program: &mut Program) -> Result<(), Error> {
        let (instance, tasks) = (self.instance, self.instance.tasks());
        let may_overlap = |device: usize, a: usize, b: usize| {
            let here = |task: usize| self.on(instance.group_of(task), device).is_some();
            let same = instance.group_of(a) == instance.group_of(b) && self.times.comparable(a, b);
            let open = self.big_m(a, device, b, device) > 0.0 && self.big_m(b, device, a, device) > 0.0;
            here(a) && here(b) && !same && open
        };
        let pairs = || (0..tasks).flat_map(|a| (0..a).map(move |b| (b, a)));
        let all = (0..instance.devices()).flat_map(|device| pairs().map(move |(a, b)| (device, a, b)));
        let overlapping: Vec<(usize, usize, usize)> =
            all.filter(|(device, a, b)| may_overlap(*device, *a, *b)).collect();
        check_orders(2 * overlapping.len(), tasks)?;
        for (device, a, b) in overlapping {
            let both = [program.binary(), program.binary()];
            for ((first, then), before) in [(a, b), (b, a)].into_iter().zip(both) {
                let Some(on) = self.on(instance.group_of(first), device) else { continue };
                let big_m = self.big_m(first, device, then, device);
                let mut row = self.after(first, on, then, device);
                row.push((before, -big_m));
                program.at_least(-big_m, row);
                self.pairs.push(Pair { tasks: (first, then), device, before });
            }
            program.at_most(1.0, both.map(|before| (before, 1.0)));
            let used = [a, b].into_iter().filter_map(|task| self.on(instance.group_of(task), device));
            let used = used.flat_map(|on| on.used(-1.0));
            program.at_least(-1.0, both.map(|before| (before, 1.0)).into_iter().chain(used));
        }
        Ok(())
    }
}
