//! One input: a start for each task, a device for each group of tasks, an order for each pair that might meet.
//!
//! Times are counted in horizons, so that all is between zero and one. What lies between two groups on their devices is a
//! flow from the one's choice to the other's: that makes the price of transfers as sharp as it can be. Which of two tasks
//! is first is asked only where the graph leaves it open and both may be on one device at the same time.

use super::Formulation;
use super::symmetry::Classes;
use super::times::Times;
use super::{MOST_FLOWS, MOST_PAIRS, ROUNDING, too_large};
use crate::error::Error;
use crate::instance::Instance;
use crate::mip::{Column, Program};
use crate::plan::Batch;
use crate::problem::MemoryModel;
use crate::units::Micros;

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
    pub(super) fn new(instance: &'a Instance, horizon: Micros, program: &mut Program) -> Result<Self, Error> {
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
        let classes = Classes::new(instance);
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
        for device in (0..instance.devices()).filter(|_| instance.memory_binds()) {
            let here = |group: usize| Some((self.on(group, device)?, bytes(group)));
            let terms: Vec<(Column, f64)> = (0..self.on.len()).filter_map(here).collect();
            let (all, room) = (terms.iter().map(|(_, bytes)| bytes).sum::<f64>(), instance.capacity_bytes(device));
            if all > room {
                // In shares of all, so that rounding means the same for small and large memories.
                program.at_most(room / all, terms.into_iter().map(|(column, bytes)| (column, bytes / all)));
            }
        }
        let used = |group: usize, device: usize| find(&self.on[group], device).into_iter().collect();
        self.classes.break_ties(program, used);
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

    /// What passes between the end of one task and the arrival of its values at another, negative.
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

    /// Of two tasks on one device, one is first.
    fn sequence(&mut self, program: &mut Program) -> Result<(), Error> {
        let tasks = self.instance.tasks();
        let meeting: Vec<(usize, usize)> =
            (0..tasks).flat_map(|a| (0..a).map(move |b| (b, a))).filter(|(a, b)| self.may_meet(*a, *b)).collect();
        if meeting.len() > MOST_PAIRS / 2 {
            let message = format!("{} order variables for {tasks} tasks; {MOST_PAIRS} at most", 2 * meeting.len());
            return Err(too_large(message));
        }
        for (a, b) in meeting {
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

    /// Whether two tasks could be on one device at the same time, as far as the graph and the horizon tell.
    fn may_meet(&self, a: usize, b: usize) -> bool {
        let (of_a, of_b) = (self.instance.group_of(a), self.instance.group_of(b));
        let share = || self.on[of_a].iter().any(|(device, _)| self.on(of_b, *device).is_some());
        !self.times.comparable(a, b) && self.overlap(a, b) > 0.0 && self.overlap(b, a) > 0.0 && share()
    }

    /// How much later than a task's start another one can end: what a row must give way by.
    fn overlap(&self, a: usize, b: usize) -> Micros {
        self.horizon - self.times.least_tail(a) - self.times.least_head(b)
    }

    fn pair(&mut self, program: &mut Program, a: usize, b: usize) -> Column {
        let before = program.choice();
        let shortest = self.instance.allowed(a).iter().map(|device| time(self.instance, a, *device));
        let soonest = self.times.least_head(a) + shortest.fold(f64::INFINITY, f64::min);
        let last = self
            .instance
            .allowed(b)
            .iter()
            .map(|device| self.horizon - time(self.instance, b, *device) - self.times.tail(b, *device));
        if soonest > last.fold(f64::NEG_INFINITY, f64::max) + self.horizon * ROUNDING {
            program.fix(before, 0.0);
        } else {
            let way = self.overlap(a, b) / self.horizon;
            let mut row = vec![(self.start[b], 1.0), (self.start[a], -1.0), (before, -way)];
            row.extend(self.duration(a, -1.0));
            program.at_least(-way, row);
        }
        self.pairs.push(Pair { tasks: (a, b), before });
        before
    }

    /// A task's time where it is, times a factor.
    pub(super) fn duration(&self, task: usize, factor: f64) -> Vec<(Column, f64)> {
        let on = self.on[self.instance.group_of(task)].iter();
        on.map(|(device, column)| (*column, factor * time(self.instance, task, *device) / self.horizon)).collect()
    }

    /// Whether a group is on a device; none where it cannot be.
    pub(super) fn on(&self, group: usize, device: usize) -> Option<Column> {
        find(&self.on[group], device)
    }
}

fn find(on: &[(usize, Column)], device: usize) -> Option<Column> {
    on.iter().find(|(other, _)| *other == device).map(|(_, column)| *column)
}

impl Formulation for Latency<'_> {
    fn solution(&self, program: &Program, launches: &[Batch]) -> Option<Vec<f64>> {
        let mut launches = launches.to_vec();
        self.classes.rename(self.instance, &mut launches);
        let mut values = vec![0.0; program.columns()];
        let (mut device, mut start, mut end) =
            (vec![0; launches.len()], vec![0.0; launches.len()], vec![0.0; launches.len()]);
        for launch in &launches {
            let Batch { node, device: on, .. } = *launch;
            (device[node], start[node]) = (on, launch.start);
            end[node] = start[node] + time(self.instance, node, on);
            self.start[node].set(&mut values, start[node] / self.horizon);
            self.on(self.instance.group_of(node), on)?.set(&mut values, 1.0);
        }
        self.makespan.set(&mut values, end.iter().copied().fold(0.0, f64::max) / self.horizon);
        for Flow { groups: (from, to), columns } in &self.flows {
            let at = |group: usize| device[self.instance.groups()[group][0]];
            let (_, _, column) = columns.iter().find(|(u, v, _)| (*u, *v) == (at(*from), at(*to)))?;
            column.set(&mut values, 1.0);
        }
        for Pair { tasks: (a, b), before } in &self.pairs {
            // Of two that take no time at the same time, either may be called the first, but not both.
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
            let likeliest = on.max_by(|a, b| a.1.of(values).total_cmp(&b.1.of(values)));
            let device = likeliest.map_or(0, |(device, _)| *device);
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
    for (u, here) in from {
        let out = columns.iter().filter(|(from, ..)| from == u).map(|(.., column)| (*column, 1.0));
        program.exactly(0.0, out.chain([(*here, -1.0)]));
    }
    for (v, here) in to {
        let into = columns.iter().filter(|(_, to, _)| to == v).map(|(.., column)| (*column, 1.0));
        program.exactly(0.0, into.chain([(*here, -1.0)]));
    }
    columns
}

fn time(instance: &Instance, task: usize, device: usize) -> Micros {
    instance.time(task, device).unwrap_or(f64::INFINITY)
}
