//! Program for a queue of inputs: each group of tasks has at most one batch on each device, with a supported size.
//!
//! The joint assignment of two groups is a flow for each input; the sum over inputs gives the moved bytes. Comparable
//! tasks need an order on a device, too: their batches there may have different inputs. Inputs are interchangeable, so
//! those of the first group are assigned to devices in ascending order.

mod capacity;
mod flow;
mod inputs;
mod order;
mod solution;

use super::rows::limit_memory;
use super::symmetry::Classes;
use super::times::{Times, quickest};
use super::{MOST_FLOWS, ROUNDING, too_large};
use crate::mip::{Column, Program};
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::Symmetry;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

pub(super) struct Queue<'a> {
    instance: &'a Instance,
    times: Times,
    horizon: Micros,
    inputs: usize,
    makespan: Column,
    /// By group.
    on: Vec<Vec<Assignment>>,
    /// By task and device; `None` if the task cannot run there.
    start: Vec<Option<Column>>,
    /// By task and input: start of the batch that contains the input.
    input_start: Vec<Column>,
    flows: Vec<Flow>,
    pairs: Vec<Pair>,
    classes: Classes,
}

/// Variables of a group on a device.
struct Assignment {
    device: usize,
    /// By input.
    takes: Vec<Column>,
    sizes: Vec<(u32, Column)>,
    /// By size and input: one if the input is in a batch of that size.
    within: Vec<Vec<Column>>,
}

/// Joint assignment: inputs that one group has on one device and another group on another.
struct Flow {
    groups: (usize, usize),
    devices: (usize, usize),
    /// By input.
    both: Vec<Column>,
    any: Column,
}

/// Two tasks on a device, and a binary that is one if the first ends before the second starts.
struct Pair {
    tasks: (usize, usize),
    device: usize,
    before: Column,
}

impl<'a> Queue<'a> {
    /// Builds the program whose solutions are all schedules within the horizon.
    pub(super) fn new(
        instance: &'a Instance,
        horizon: Micros,
        symmetry: Symmetry,
        program: &mut Program,
    ) -> Result<Self, Error> {
        let times = Times::new(instance);
        let makespan = program.column(0.0, 1.0, 1.0);
        let inputs = instance.inputs() as usize;
        let classes = Classes::new(instance, symmetry);
        let (on, start, input_start) = (Vec::new(), Vec::new(), Vec::new());
        let (flows, pairs) = (Vec::new(), Vec::new());
        let mut model =
            Self { instance, times, horizon, inputs, makespan, on, start, input_start, flows, pairs, classes };
        model.check_size()?;
        model.place(program);
        model.limit_memory(program);
        model.break_ties(program);
        model.bound_starts(program);
        model.connect(program);
        model.follow_inputs(program);
        model.add_capacity_cuts(program);
        model.sequence(program)?;
        Ok(model)
    }

    /// Rejects programs that are too large, before building them.
    fn check_size(&self) -> Result<(), Error> {
        let instance = self.instance;
        let links = |tensor: &crate::model::instance::Tensor| {
            let readers = tensor.consumers.iter().map(|reader| instance.allowed(*reader).len());
            instance.allowed(tensor.producer).len() * readers.sum::<usize>()
        };
        let flows = self.inputs * instance.tensors().iter().map(links).sum::<usize>();
        let devices = (0..instance.tasks()).map(|task| instance.allowed(task).len()).sum::<usize>();
        let takes = self.inputs * devices;
        if flows + takes > MOST_FLOWS {
            let message = format!("{} variables for who takes which input; {MOST_FLOWS} at most", flows + takes);
            return Err(too_large(message));
        }
        Ok(())
    }

    /// Assigns each input of each group to one device; the inputs of a group on a device form a batch of a supported
    /// size.
    fn place(&mut self, program: &mut Program) {
        let instance = self.instance;
        for group in instance.groups() {
            let on: Vec<Assignment> = instance
                .allowed(group[0])
                .iter()
                .filter_map(|device| {
                    let runs =
                        |size: &&u32| group.iter().all(|task| instance.time_at(*task, *device, **size).is_some());
                    let sizes: Vec<u32> = instance.batch_sizes(*device).iter().filter(runs).copied().collect();
                    let in_time = |task: &usize| {
                        let through = self.times.head(*task, *device) + quickest(instance, *task, *device);
                        through + self.times.tail(*task, *device) <= self.horizon * (1.0 + ROUNDING)
                    };
                    if sizes.is_empty() || !group.iter().all(in_time) {
                        return None;
                    }
                    let mut each = || (0..self.inputs).map(|_| program.column(0.0, 1.0, 0.0)).collect();
                    let within = sizes.iter().map(|_| each()).collect();
                    let takes = (0..self.inputs).map(|_| program.binary()).collect();
                    let sizes = sizes.into_iter().map(|size| (size, program.binary())).collect();
                    Some(Assignment { device: *device, takes, sizes, within })
                })
                .collect();
            for input in 0..self.inputs {
                program.exactly(1.0, on.iter().map(|on| (on.takes[input], 1.0)));
            }
            for on in &on {
                program.at_most(1.0, on.used(1.0));
                for (input, take) in on.takes.iter().enumerate() {
                    let within = on.within.iter().map(|within| (within[input], 1.0));
                    program.exactly(0.0, within.chain([(*take, -1.0)]));
                }
                // Eq. (5) without big-M; eq. (4) follows.
                for ((size, chosen), within) in on.sizes.iter().zip(&on.within) {
                    let inputs = within.iter().map(|within| (*within, 1.0));
                    program.exactly(0.0, inputs.chain([(*chosen, -f64::from(*size))]));
                    within.iter().for_each(|within| program.at_least(0.0, [(*chosen, 1.0), (*within, -1.0)]));
                }
            }
            self.on.push(on);
        }
    }

    /// Eq. (6); under the liveness model, weights only.
    fn limit_memory(&self, program: &mut Program) {
        let instance = self.instance;
        limit_memory(program, instance, |device| {
            let mut terms: Vec<(Column, Bytes)> = Vec::new();
            for (group, members) in instance.groups().iter().enumerate() {
                let Some(on) = self.on(group, device) else { continue };
                let weights: Bytes = members.iter().map(|task| instance.weight_bytes(*task)).sum();
                terms.extend(on.used(weights));
                if instance.memory_model() == MemoryModel::Static {
                    let moved = |task: &usize| instance.input_bytes(*task) + instance.output_bytes(*task);
                    let each: Bytes = members.iter().map(moved).sum();
                    terms.extend(on.takes.iter().map(|take| (*take, each)));
                }
            }
            terms
        });
    }

    fn break_ties(&self, program: &mut Program) {
        let used = |group: usize, device: usize| {
            self.on(group, device).map_or(Vec::new(), |on| on.sizes.iter().map(|(_, column)| *column).collect())
        };
        self.classes.break_ties(program, used, |criterion, device| self.has(criterion, device));
        let Some(first) = self.classes.first_group() else { return };
        for upto in 1..self.on[first].len() {
            for input in 1..self.inputs {
                let earlier = self.on[first][..upto].iter().map(|on| (on.takes[input - 1], 1.0));
                let later = self.on[first][..upto].iter().map(|on| (on.takes[input], -1.0));
                program.at_least(0.0, earlier.chain(later));
            }
        }
    }

    /// Returns the terms by which equal devices are ordered.
    fn has(&self, criterion: Symmetry, device: usize) -> Vec<(Column, f64)> {
        let mut terms = Vec::new();
        for (group, members) in self.instance.groups().iter().enumerate() {
            let Some(on) = self.on(group, device) else { continue };
            let tasks = members.len() as f64;
            match criterion {
                Symmetry::Batches => terms.extend(on.used(tasks)),
                Symmetry::Tasks => terms.extend(on.takes.iter().map(|take| (*take, tasks))),
                Symmetry::Time => terms.extend(members.iter().flat_map(|task| self.duration(*task, on, 1.0))),
                Symmetry::Off | Symmetry::FirstUse => {}
            }
        }
        terms
    }

    /// Adds heads and tails. An unused launch starts at its head.
    fn bound_starts(&mut self, program: &mut Program) {
        let (instance, devices) = (self.instance, self.instance.devices());
        self.start = vec![None; instance.tasks() * devices];
        for task in 0..instance.tasks() {
            for on in &self.on[instance.group_of(task)] {
                let (head, tail) = self.window(task, on.device);
                let start = program.column(head, self.latest(task, on.device), 0.0);
                self.start[task * devices + on.device] = Some(start);
                let row = [(self.makespan, 1.0), (start, -1.0)];
                let rest = self.duration(task, on, -1.0).into_iter().chain(on.used(-tail - head));
                program.at_least(-head, row.into_iter().chain(rest));
            }
        }
    }

    /// Returns head and tail of a task on a device, in horizons.
    fn window(&self, task: usize, device: usize) -> (f64, f64) {
        (self.times.head(task, device) / self.horizon, self.times.tail(task, device) / self.horizon)
    }

    /// Returns the latest start of a task on a device, in horizons.
    fn latest(&self, task: usize, device: usize) -> f64 {
        let (head, tail) = self.window(task, device);
        head.max(1.0 - tail - quickest(self.instance, task, device) / self.horizon)
    }

    /// Returns the big-M of a precedence: the maximum time by which one launch can end after another starts.
    fn big_m(&self, first: usize, on: usize, then: usize, at: usize) -> f64 {
        1.0 - self.window(first, on).1 - self.window(then, at).0
    }

    /// Returns the terms of the time from the end of one launch to the start of another.
    fn after(&self, first: usize, on: &Assignment, then: usize, at: usize) -> Vec<(Column, f64)> {
        let start = |task: usize, device: usize, sign: f64| {
            self.start[task * self.instance.devices() + device].map(|column| (column, sign))
        };
        let starts = start(then, at, 1.0).into_iter().chain(start(first, on.device, -1.0));
        starts.chain(self.duration(first, on, -1.0)).collect()
    }

    /// Returns the duration of a task's batch on a device, times a factor.
    fn duration(&self, task: usize, on: &Assignment, factor: f64) -> Vec<(Column, f64)> {
        let time = |size: u32| self.instance.time_at(task, on.device, size).unwrap_or(Micros::ZERO) / self.horizon;
        on.sizes.iter().map(|(size, column)| (*column, factor * time(*size))).collect()
    }

    fn on(&self, group: usize, device: usize) -> Option<&Assignment> {
        self.on[group].iter().find(|on| on.device == device)
    }
}

impl Assignment {
    /// Returns terms that sum to one if the group uses the device, times a factor.
    fn used<T: Copy>(&self, factor: T) -> impl Iterator<Item = (Column, T)> {
        self.sizes.iter().map(move |(_, column)| (*column, factor))
    }
}
