//! Start times by input. They are implied by the starts of batches in integer solutions, but tighten the relaxation:
//! there, a third of a task on each of three devices may take no time. An input's duration is that of the batch that
//! contains it.

use super::{Assignment, Queue};
use crate::mip::{Column, Program};
use crate::model::units::Micros;

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

    /// Returns the earliest and the latest start of a task, in horizons.
    fn span(&self, task: usize) -> (f64, f64) {
        let on = self.on[self.instance.group_of(task)].iter();
        let windows = on.map(|on| (self.window(task, on.device).0, self.latest(task, on.device)));
        windows.fold((1.0, 0.0), |all, one| (f64::min(all.0, one.0), f64::max(all.1, one.1)))
    }

    /// Links the start of an input to that of its batch.
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
            let big_m = self.latest(task, on.device) - earliest;
            program.at_least(-big_m, [(start, 1.0), (batch, -1.0), (on.takes[input], -big_m)]);
            let big_m = last - head;
            program.at_least(-big_m, [(batch, 1.0), (start, -1.0), (on.takes[input], -big_m)]);
        }
        rest.extend(self.time_of(task, input));
        program.at_least(0.0, least);
        program.at_least(0.0, rest);
    }

    /// Adds the precedence of one input: the transfer takes at least as long as that of the input alone.
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

    /// Returns the negated duration of the batch that contains an input.
    pub(super) fn time_of(&self, task: usize, input: usize) -> Vec<(Column, f64)> {
        let on = self.on[self.instance.group_of(task)].iter();
        on.flat_map(|on| self.time_on(task, input, on)).collect()
    }

    /// Returns the same for a batch on a device.
    pub(super) fn time_on(&self, task: usize, input: usize, on: &Assignment) -> Vec<(Column, f64)> {
        let time = |size: u32| self.instance.time_at(task, on.device, size).unwrap_or(Micros::ZERO) / self.horizon;
        on.sizes.iter().zip(&on.within).map(|((size, _), within)| (within[input], -time(*size))).collect()
    }
}
