//! Conversion between schedules and solutions of the program.

use super::{Assignment, Queue};
use crate::mip::{Column, Program};
use crate::model::plan::Batch;
use crate::model::units::Micros;
use crate::solvers::milp::Formulation;

impl Formulation for Queue<'_> {
    fn solution(&self, program: &Program, launches: &[Batch]) -> Option<Vec<f64>> {
        let (instance, devices) = (self.instance, self.instance.devices());
        let mut launches = launches.to_vec();
        self.classes.rename(instance, &mut launches);
        self.deal_in_order(&mut launches);
        let mut values = vec![0.0; program.columns()];
        for (cell, start) in self.start.iter().enumerate() {
            start.iter().for_each(|start| start.set(&mut values, self.window(cell / devices, cell % devices).0));
        }
        let mut spans = vec![None; instance.tasks() * devices];
        let mut makespan = Micros::ZERO;
        for launch in &launches {
            let cell = launch.node * devices + launch.device;
            let on = self.on(instance.group_of(launch.node), launch.device)?;
            let size = u32::try_from(launch.inputs.len()).ok()?;
            let kind = on.sizes.iter().position(|(other, _)| *other == size)?;
            on.sizes[kind].1.set(&mut values, 1.0);
            for input in launch.inputs.iter().map(|input| *input as usize) {
                on.takes[input].set(&mut values, 1.0);
                on.within[kind][input].set(&mut values, 1.0);
                self.input_start[launch.node * self.inputs + input].set(&mut values, launch.start / self.horizon);
            }
            self.start[cell]?.set(&mut values, launch.start / self.horizon);
            let end = launch.start + instance.time_at(launch.node, launch.device, size)?;
            spans[cell] = Some((launch.start, end));
            makespan = makespan.max(end);
        }
        self.makespan.set(&mut values, makespan / self.horizon);
        for flow in &self.flows {
            let (from, to) = (self.on(flow.groups.0, flow.devices.0)?, self.on(flow.groups.1, flow.devices.1)?);
            for (input, both) in flow.both.iter().enumerate() {
                if from.takes[input].of(&values) > 0.5 && to.takes[input].of(&values) > 0.5 {
                    both.set(&mut values, 1.0);
                    flow.any.set(&mut values, 1.0);
                }
            }
        }
        for pair in &self.pairs {
            let (a, b) = pair.tasks;
            if let (Some(first), Some(then)) = (spans[a * devices + pair.device], spans[b * devices + pair.device]) {
                // Of two simultaneous batches of zero duration, exactly one comes first.
                let before = first.1 <= then.0 && (first.1, a) < (then.1, b);
                pair.before.set(&mut values, if before { 1.0 } else { 0.0 });
            }
        }
        Some(values)
    }

    fn launches(&self, values: &[f64]) -> Vec<Batch> {
        let launch = |node: usize, on: &Assignment| {
            let taken = |input: &usize| on.takes[*input].of(values) > 0.5;
            let inputs: Vec<u32> = (0..self.inputs).filter(taken).map(|input| input as u32).collect();
            let start = self.start[node * self.instance.devices() + on.device]?.of(values) * self.horizon;
            (!inputs.is_empty()).then_some(Batch { node, device: on.device, inputs, start })
        };
        let launches =
            |task: usize| self.on[self.instance.group_of(task)].iter().filter_map(move |on| launch(task, on));
        (0..self.instance.tasks()).flat_map(launches).collect()
    }

    fn decisions(&self, values: &[f64], orders: bool) -> Vec<(Column, bool)> {
        let here = |task: usize, device: usize| {
            let on = self.on(self.instance.group_of(task), device);
            on.is_some_and(|on| on.takes.iter().any(|take| take.of(values) > 0.5))
        };
        let places = self.on.iter().flatten().flat_map(|on| on.takes.iter().copied());
        let meet = |device: usize, (a, b): (usize, usize)| orders && here(a, device) && here(b, device);
        let firsts = self.pairs.iter().filter(|pair| meet(pair.device, pair.tasks)).map(|pair| pair.before);
        places.chain(firsts).filter(|column| column.of(values) > 0.5).map(|column| (column, true)).collect()
    }
}

impl Queue<'_> {
    /// Renumbers inputs so that the first group's go to devices in ascending order.
    fn deal_in_order(&self, launches: &mut [Batch]) {
        let Some(first) = self.classes.first_group() else { return };
        let task = self.instance.groups()[first][0];
        let mut device_of = vec![0; self.inputs];
        for launch in launches.iter().filter(|launch| launch.node == task) {
            launch.inputs.iter().for_each(|input| device_of[*input as usize] = launch.device);
        }
        let mut order: Vec<usize> = (0..self.inputs).collect();
        order.sort_by_key(|input| device_of[*input]);
        let mut number = vec![0; self.inputs];
        order.iter().enumerate().for_each(|(new, old)| number[*old] = new as u32);
        for launch in launches {
            launch.inputs.iter_mut().for_each(|input| *input = number[*input as usize]);
            launch.inputs.sort_unstable();
        }
    }
}
