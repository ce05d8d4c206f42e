//! One input: a start for each task, a device for each group of tasks, an order for each pair that might meet.
//!
//! Times are counted in horizons, so that all is between zero and one. What lies between two groups on their devices is
//! a flow from the one's choice to the other's: that makes the price of transfers as sharp as it can be. Which of two
//! tasks is first is asked only where the graph leaves it open and both may be on one device at the same time.

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
use crate::model::units::Micros;

pub(super) struct Latency<'a> {
    pub(super) instance: &'a Instance,
    pub(super) times: Times,
    pub(super) horizon: Micros,
    pub(super) makespan: Column,
    pub(super) start: Vec<Column>,
    /// By group: the devices that are open to it.
    pub(super) on: Vec<Vec<(usize, Column)>>,
    flows: Vec<Flow>,
    pairs: Vec<Pair>,
    classes: Classes,
}

/// Where two groups are, together.
struct Flow {
    groups: (usize, usize),
    /// By pair of devices.
    columns: Vec<(usize, usize, Column)>,
}

/// Two tasks, and whether the first is over when the second starts.
struct Pair {
    tasks: (usize, usize),
    before: Column,
}

impl<'a> Latency<'a> {
    /// The program whose solutions are all schedules within the horizon.
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
            1.0 - left.fold(f64::INFINITY, f64::min) / horizon
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
            devices.map(|device| (*device, program.choice())).collect()
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

    /// Each group on one device, and devices no fuller than they may be.
    fn place(&mut self, program: &mut Program) {
        for on in &self.on {
            program.exactly(1.0, on.iter().map(|(_, column)| (*column, 1.0)));
        }
        let instance = self.instance;
        let bytes = |group: usize| -> f64 {
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

    /// Terms of a device that equal devices are put into order by.
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

    /// A task starts when those before it are over and their values are there.
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

    /// Time between the end of one task and the arrival of its values at another, negative.
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
            tensors.iter().map(|tensor| instance.transfer(*tensor, u, v)).fold(0.0, f64::max) / self.horizon
        };
        let known = self.flows.iter().position(|flow| flow.groups == (from, to));
        let flow = match known {
            Some(known) => &self.flows[known],
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

    /// Heads and tails where each task is.
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

    /// A task's time where it is, times a factor.
    pub(super) fn duration(&self, task: usize, factor: f64) -> Vec<(Column, f64)> {
        let on = self.on[self.instance.group_of(task)].iter();
        on.map(|(device, column)| (*column, factor * time(self.instance, task, *device) / self.horizon)).collect()
    }

    /// A task's time if it is on a device, times a factor; none where it cannot be.
    pub(super) fn duration_on(&self, task: usize, device: usize, factor: f64) -> Option<(Column, f64)> {
        let on = self.on(self.instance.group_of(task), device)?;
        Some((on, factor * time(self.instance, task, device) / self.horizon))
    }

    /// The column that is one if a group is on a device; none where it cannot be.
    pub(super) fn on(&self, group: usize, device: usize) -> Option<Column> {
        find(&self.on[group], device)
    }
}

fn find(on: &[(usize, Column)], device: usize) -> Option<Column> {
    on.iter().find(|(other, _)| *other == device).map(|(_, column)| *column)
}

/// A column for each pair of linked devices of two groups, which is one where the groups are on them.
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
    instance.time(task, device).unwrap_or(f64::INFINITY)
}
