//! Conversion between schedules and solutions of the program.

use super::{Flow, Latency, Pair, time};
use crate::mip::{Column, Program};
use crate::model::plan::Batch;
use crate::model::units::Micros;
use crate::solvers::milp::Formulation;

impl Formulation for Latency<'_> {
    fn solution(&self, program: &Program, launches: &[Batch]) -> Option<Vec<f64>> {
        let mut launches = launches.to_vec();
        self.classes.rename(self.instance, &mut launches);
        let mut values = vec![0.0; program.columns()];
        let (mut device, mut start, mut end) =
            (vec![0; launches.len()], vec![Micros::ZERO; launches.len()], vec![Micros::ZERO; launches.len()]);
        for launch in &launches {
            let Batch { node, device: on, .. } = *launch;
            (device[node], start[node]) = (on, launch.start);
            end[node] = start[node] + time(self.instance, node, on);
            self.start[node].set(&mut values, start[node] / self.horizon);
            self.on(self.instance.group_of(node), on)?.set(&mut values, 1.0);
        }
        self.makespan.set(&mut values, end.iter().copied().fold(Micros::ZERO, Micros::max) / self.horizon);
        for Flow { groups: (from, to), columns } in &self.flows {
            let at = |group: usize| device[self.instance.groups()[group][0]];
            let (_, _, column) = columns.iter().find(|(u, v, _)| (*u, *v) == (at(*from), at(*to)))?;
            column.set(&mut values, 1.0);
        }
        for Pair { tasks: (a, b), before } in &self.pairs {
            // Of two simultaneous tasks of zero duration, exactly one comes first.
            let first = (end[*a], *a) < (end[*b], *b);
            if device[*a] == device[*b] && end[*a] <= start[*b] && first {
                before.set(&mut values, 1.0);
            }
        }
        Some(values)
    }

    fn launches(&self, values: &[f64]) -> Vec<Batch> {
        let launch = |task: usize| {
            let on = self.on[self.instance.group_of(task)].iter();
            let largest = on.max_by(|a, b| a.1.of(values).total_cmp(&b.1.of(values)));
            let device = largest.map_or(0, |(device, _)| *device);
            Batch { node: task, device, inputs: vec![0], start: self.start[task].of(values) * self.horizon }
        };
        (0..self.instance.tasks()).map(launch).collect()
    }

    fn decisions(&self, values: &[f64], orders: bool) -> Vec<(Column, bool)> {
        let device = |task: usize| {
            let mut on = self.on[self.instance.group_of(task)].iter();
            on.find(|(_, column)| column.of(values) > 0.5).map(|(device, _)| *device)
        };
        let places = self.on.iter().flatten().map(|(_, column)| *column);
        let meet = |pair: &&Pair| orders && device(pair.tasks.0) == device(pair.tasks.1);
        let firsts = self.pairs.iter().filter(meet).map(|pair| pair.before);
        places.chain(firsts).filter(|column| column.of(values) > 0.5).map(|column| (column, true)).collect()
    }
}
