//! Each input's own way through the graph. Batches' starts say the same, but only where devices are chosen: relaxed, a
//! third of a task on each of three devices takes no time at all. An input knows how long the batch takes that it is
//! in.

use super::{On, Queue};
use crate::mip::{Column, Program};

impl Queue<'_> {
    pub(super) fn follow_inputs(&mut self, program: &mut Program) {
        let tasks = self.instance.tasks();
        for task in 0..tasks {
            let (head, last) = self.span(task);
            let starts = (0..self.inputs).map(|_| program.column(head, last, 0.0));
            self.input_start.extend(starts);
        }
        for task in 0..tasks {
            for input in 0..self.inputs {
                self.join(program, task, input);
            }
        }
        for (tensor, moved) in self.instance.tensors().iter().enumerate() {
            for &reader in &moved.consumers {
                for input in 0..self.inputs {
                    self.follow(program, tensor, (moved.producer, reader), input);
                }
            }
        }
    }

    /// The earliest and the latest start of a task, in horizons.
    fn span(&self, task: usize) -> (f64, f64) {
        let on = self.on[self.instance.group_of(task)].iter();
        let windows = on.map(|on| (self.window(task, on.device).0, self.latest(task, on.device)));
        windows.fold((1.0, 0.0), |all, one| (f64::min(all.0, one.0), f64::max(all.1, one.1)))
    }

    /// An input starts when its batch does, and from then on both take as long.
    fn join(&self, program: &mut Program, task: usize, input: usize) {
        let start = self.input_start[task * self.inputs + input];
        let (earliest, last) = self.span(task);
        let mut least = vec![(start, 1.0)];
        let mut rest = vec![(self.makespan, 1.0), (start, -1.0)];
        for on in &self.on[self.instance.group_of(task)] {
            let (head, tail) = self.window(task, on.device);
            least.push((on.takes[input], -head));
            rest.push((on.takes[input], -tail));
            let Some(batch) = self.start[task * self.instance.devices() + on.device] else { continue };
            let way = self.latest(task, on.device) - earliest;
            program.at_least(-way, [(start, 1.0), (batch, -1.0), (on.takes[input], -way)]);
            let way = last - head;
            program.at_least(-way, [(batch, 1.0), (start, -1.0), (on.takes[input], -way)]);
        }
        rest.extend(self.time_of(task, input));
        program.at_least(0.0, least);
        program.at_least(0.0, rest);
    }

    /// An input's value moves by itself at least.
    fn follow(&self, program: &mut Program, tensor: usize, (task, reader): (usize, usize), input: usize) {
        let instance = self.instance;
        let groups = (instance.group_of(task), instance.group_of(reader));
        let start = |task: usize| self.input_start[task * self.inputs + input];
        let mut row = vec![(start(reader), 1.0), (start(task), -1.0)];
        row.extend(self.time_of(task, input));
        for flow in self.flows.iter().filter(|flow| flow.groups == groups) {
            let hop = instance.transfer(tensor, flow.devices.0, flow.devices.1) / self.horizon;
            row.push((flow.both[input], -hop));
        }
        program.at_least(0.0, row);
    }

    /// The time of the batch that an input is in, negative.
    pub(super) fn time_of(&self, task: usize, input: usize) -> Vec<(Column, f64)> {
        let on = self.on[self.instance.group_of(task)].iter();
        on.flat_map(|on| self.time_on(task, input, on)).collect()
    }

    /// The same if that batch is on a device.
    pub(super) fn time_on(&self, task: usize, input: usize, on: &On) -> Vec<(Column, f64)> {
        let time = |size: u32| self.instance.time_at(task, on.device, size).unwrap_or(0.0) / self.horizon;
        on.sizes.iter().zip(&on.within).map(|((size, _), within)| (within[input], -time(*size))).collect()
    }
}
