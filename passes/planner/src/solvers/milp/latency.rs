//! Program for one input: a start for each task, a device for each group of tasks, an order for each pair of tasks that
//! may overlap.
//!
//! Times are in units of the horizon, so all variables are between zero and one. Pairs of devices of adjacent groups
//! are modeled as flows from the assignment of one group to that of the other, which is the tightest linear formulation
//! of transfers. Order variables exist only for pairs that are incomparable in the graph and may be on the same device
//! at the same time.

mod order;
mod solution;

use super::rows::{conserve, limit_memory};
use super::symmetry::Classes;
use super::times::Times;
use super::{MOST_FLOWS, ROUNDING, too_large};
use crate::mip::{Column, Program};
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::Symmetry;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

pub(super) struct Latency<'a> {
    pub(super) instance: &'a Instance,
    pub(super) times: Times,
    pub(super) horizon: Micros,
    pub(super) makespan: Column,
    pub(super) start: Vec<Column>,
    /// By group: the devices that it may be on.
    pub(super) on: Vec<Vec<(usize, Column)>>,
    flows: Vec<Flow>,
    pairs: Vec<Pair>,
    classes: Classes,
}

/// Joint assignment of two groups.
struct Flow {
    groups: (usize, usize),
    /// By pair of devices.
    columns: Vec<(usize, usize, Column)>,
}

/// Two tasks, and a binary that is one if the first ends before the second starts.
struct Pair {
    tasks: (usize, usize),
    before: Column,
}

impl<'a> Latency<'a> {
    /// Builds the program whose solutions are all schedules within the horizon.
    pub(super) fn new(
        instance: &'a Instance,
        horizon: Micros,
        symmetry: Symmetry,
        program: &mut Program,
    ) -> Result<Self, Error> {
        let times = Times::new(instance);
        let makespan = program.column(0.0, 1.0, 1.0);
        let latest = |task: usize| {
            let devices = instance.allowed(task).iter();
            let left = devices.map(|device| time(instance, task, *device) + times.tail(task, *device));
            1.0 - left.fold(Micros::INFINITY, Micros::min) / horizon
        };
        let start = |task: usize| {
            let earliest = times.least_head(task) / horizon;
            program.column(earliest, latest(task).max(earliest), 0.0)
        };
        let start: Vec<Column> = (0..instance.tasks()).map(start).collect();
        let open = |group: &Vec<usize>| {
            let in_time = |device: &usize| {
                group.iter().all(|task| {
                    let through = times.head(*task, *device) + time(instance, *task, *device);
                    through + times.tail(*task, *device) <= horizon * (1.0 + ROUNDING)
                })
            };
            let devices = instance.allowed(group[0]).iter().filter(|device| in_time(device));
            devices.map(|device| (*device, program.binary())).collect()
        };
        let on: Vec<Vec<(usize, Column)>> = instance.groups().iter().map(open).collect();
        let classes = Classes::new(instance, symmetry);
        let (flows, pairs) = (Vec::new(), Vec::new());
        let mut model = Self { instance, times, horizon, makespan, start, on, flows, pairs, classes };
        model.place(program);
        model.connect(program)?;
        model.bound_starts(program);
        model.sequence(program)?;
        Ok(model)
    }

    /// Adds assignment, memory and symmetry-breaking rows.
    fn place(&mut self, program: &mut Program) {
        for on in &self.on {
            program.exactly(1.0, on.iter().map(|(_, column)| (*column, 1.0)));
        }
        let instance = self.instance;
        let bytes = |group: usize| -> Bytes {
            let of = |task: &usize| match instance.memory_model() {
                MemoryModel::Static => instance.static_bytes(*task, 1),
                MemoryModel::Liveness => instance.weight_bytes(*task),
            };
            instance.groups()[group].iter().map(of).sum()
        };
        limit_memory(program, instance, |device| {
            (0..self.on.len()).filter_map(|group| Some((self.on(group, device)?, bytes(group)))).collect()
        });
        let used = |group: usize, device: usize| find(&self.on[group], device).into_iter().collect();
        self.classes.break_ties(program, used, |criterion, device| self.has(criterion, device));
    }

    /// Returns the terms by which equal devices are ordered.
    fn has(&self, criterion: Symmetry, device: usize) -> Vec<(Column, f64)> {
        let amount = |group: usize| {
            let members = self.instance.groups()[group].iter();
            match criterion {
                Symmetry::Batches | Symmetry::Tasks => members.len() as f64,
                Symmetry::Time => members.map(|task| time(self.instance, *task, device) / self.horizon).sum(),
                Symmetry::Off | Symmetry::FirstUse => 0.0,
            }
        };
        (0..self.on.len()).filter_map(|group| Some((self.on(group, device)?, amount(group)))).collect()
    }

    /// Adds precedence rows: a task starts when its predecessors have ended and their values have arrived.
    fn connect(&mut self, program: &mut Program) -> Result<(), Error> {
        let instance = self.instance;
        for tensor in instance.tensors() {
            for &reader in &tensor.consumers {
                let (from, to) = (instance.group_of(tensor.producer), instance.group_of(reader));
                let terms =
                    if from == to { Vec::new() } else { self.delay(program, from, to, tensor.producer, reader)? };
                let mut row = vec![(self.start[reader], 1.0), (self.start[tensor.producer], -1.0)];
                row.extend(self.duration(tensor.producer, -1.0));
                row.extend(terms);
                program.at_least(0.0, row);
            }
        }
        Ok(())
    }

    /// Returns the negated time between the end of a task and the arrival of its values at a reader.
    fn delay(
        &mut self,
        program: &mut Program,
        from: usize,
        to: usize,
        task: usize,
        reader: usize,
    ) -> Result<Vec<(Column, f64)>, Error> {
        let instance = self.instance;
        let arcs = instance.predecessors(reader).iter().filter(|arc| arc.task == task);
        let tensors: Vec<usize> = arcs.map(|arc| arc.tensor).collect();
        let hop = |u: usize, v: usize| {
            tensors.iter().map(|tensor| instance.transfer(*tensor, u, v)).fold(Micros::ZERO, Micros::max) / self.horizon
        };
        let existing = self.flows.iter().position(|flow| flow.groups == (from, to));
        let flow = match existing {
            Some(existing) => &self.flows[existing],
            None => {
                let columns = flow(program, instance, &self.on[from], &self.on[to]);
                let count: usize = self.flows.iter().map(|flow| flow.columns.len()).sum();
                if count + columns.len() > MOST_FLOWS {
                    return Err(too_large(format!("more than {MOST_FLOWS} flows between tasks")));
                }
                self.flows.push(Flow { groups: (from, to), columns });
                &self.flows[self.flows.len() - 1]
            }
        };
        Ok(flow.columns.iter().map(|(u, v, column)| (*column, -hop(*u, *v))).collect())
    }

    /// Adds heads and tails by device.
    fn bound_starts(&mut self, program: &mut Program) {
        for task in 0..self.instance.tasks() {
            let on = self.on[self.instance.group_of(task)].clone();
            let heads = on.iter().map(|(device, column)| (*column, -self.times.head(task, *device) / self.horizon));
            let head = [(self.start[task], 1.0)].into_iter().chain(heads);
            let rest = |device: usize| time(self.instance, task, device) + self.times.tail(task, device);
            let rests = on.iter().map(|(device, column)| (*column, -rest(*device) / self.horizon));
            let tail = [(self.makespan, 1.0), (self.start[task], -1.0)].into_iter().chain(rests);
            program.at_least(0.0, head);
            program.at_least(0.0, tail);
        }
    }

    /// Returns a task's duration, times a factor.
    pub(super) fn duration(&self, task: usize, factor: f64) -> Vec<(Column, f64)> {
        let on = self.on[self.instance.group_of(task)].iter();
        on.map(|(device, column)| (*column, factor * time(self.instance, task, *device) / self.horizon)).collect()
    }

    /// Returns a task's duration if it is on a device, times a factor; `None` if it cannot be there.
    pub(super) fn duration_on(&self, task: usize, device: usize, factor: f64) -> Option<(Column, f64)> {
        let on = self.on(self.instance.group_of(task), device)?;
        Some((on, factor * time(self.instance, task, device) / self.horizon))
    }

    /// Returns the binary that is one if a group is on a device; `None` if it cannot be there.
    pub(super) fn on(&self, group: usize, device: usize) -> Option<Column> {
        find(&self.on[group], device)
    }
}

fn find(on: &[(usize, Column)], device: usize) -> Option<Column> {
    on.iter().find(|(other, _)| *other == device).map(|(_, column)| *column)
}

/// Returns a variable for each pair of linked devices of two groups, which is one if the groups are on them.
fn flow(
    program: &mut Program,
    instance: &Instance,
    from: &[(usize, Column)],
    to: &[(usize, Column)],
) -> Vec<(usize, usize, Column)> {
    let mut columns = Vec::new();
    for (u, _) in from {
        for (v, _) in to.iter().filter(|(v, _)| instance.linked(*u, *v)) {
            columns.push((*u, *v, program.column(0.0, 1.0, 0.0)));
        }
    }
    conserve(program, &columns, from.iter().copied(), to.iter().copied());
    columns
}

fn time(instance: &Instance, task: usize, device: usize) -> Micros {
    instance.time(task, device).unwrap_or(Micros::INFINITY)
}
