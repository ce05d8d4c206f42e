//! Subproblem of some tasks, with everything around them fixed.
//!
//! Tasks before are represented by release times: arrivals of operands, and times at which devices are free. Tasks
//! after are represented by delivery times: the time from a task's end to the makespan, over readers of its result and
//! over later tasks of its device. So minimizing the subproblem's makespan minimizes the whole.

use crate::model::instance::{Arc, Instance};
use crate::model::units::{Bytes, Micros};
use crate::solvers::exact::graph::{Footprint, Graph};

/// A complete or partial schedule.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) instance: &'a Instance,
    /// Device of each task; `None` if not placed.
    pub(crate) device: Vec<Option<usize>>,
    pub(crate) end: Vec<Micros>,
    /// Time from each placed task's start to the makespan, for tasks after the subproblem.
    pub(crate) tail: Vec<Micros>,
    /// Times at which devices are free for the subproblem.
    pub(crate) free: Vec<Micros>,
    /// By device: time that its later tasks take to the makespan.
    pub(crate) device_tail: Vec<Micros>,
    /// By task and device: lower bound on the time from a start there to the makespan.
    pub(crate) ahead: Vec<Micros>,
}

impl<'a> Surroundings<'a> {
    /// Nothing is placed yet.
    pub(crate) fn new(instance: &'a Instance) -> Self {
        let (tasks, devices) = (instance.tasks(), instance.devices());
        Self {
            instance,
            device: vec![None; tasks],
            end: vec![Micros::ZERO; tasks],
            tail: vec![Micros::ZERO; tasks],
            free: vec![Micros::ZERO; devices],
            device_tail: vec![Micros::ZERO; devices],
            ahead: longest_paths(instance),
        }
    }

    /// Returns the subproblem of some tasks, in topological order. Their predecessors must be placed or among them.
    pub(crate) fn graph(&self, tasks: &[usize]) -> Graph {
        let instance = self.instance;
        let devices = instance.devices();
        let mut inside = vec![false; instance.tasks()];
        tasks.iter().for_each(|task| inside[*task] = true);
        let mut graph = Graph::new(instance, tasks, Footprint::Least);
        for (local, &task) in tasks.iter().enumerate() {
            let colocated = &instance.groups()[instance.group_of(task)];
            let bound_to = colocated.iter().filter(|other| !inside[**other]).find_map(|other| self.device[*other]);
            for device in 0..devices {
                let outside = |arc: &&Arc| !inside[arc.task];
                let arrival = |arc: &Arc| self.arrival(arc, device);
                let release = instance
                    .predecessors(task)
                    .iter()
                    .filter(outside)
                    .map(arrival)
                    .fold(self.free[device], Micros::max);
                let rest = |arc: &Arc| self.rest(arc, device);
                let delivery = instance
                    .successors(task)
                    .iter()
                    .filter(outside)
                    .map(rest)
                    .fold(self.device_tail[device], Micros::max);
                let at = local * devices + device;
                if release.is_infinite() || delivery.is_infinite() || bound_to.is_some_and(|only| only != device) {
                    graph.time_us[at] = Micros::INFINITY;
                } else {
                    (graph.release_us[at], graph.delivery_us[at]) = (release, delivery);
                }
            }
        }
        let mut room: Vec<Bytes> = (0..devices).map(|device| instance.capacity_bytes(device)).collect();
        for (task, device) in self.device.iter().enumerate().filter(|(task, _)| !inside[*task]) {
            device.iter().for_each(|device| room[*device] -= Footprint::Least.of(instance, task));
        }
        graph.limit(room);
        graph
    }

    /// Returns the arrival of an operand; zero if its producer is not placed, which does not occur.
    fn arrival(&self, arc: &Arc, device: usize) -> Micros {
        self.device[arc.task]
            .map_or(Micros::ZERO, |from| self.end[arc.task] + self.instance.transfer(arc.tensor, from, device))
    }

    /// Returns the minimum time from a task's end to the makespan, over one reader of its result.
    fn rest(&self, arc: &Arc, device: usize) -> Micros {
        let after = |to: usize, tail: Micros| self.instance.transfer(arc.tensor, device, to) + tail;
        match self.device[arc.task] {
            Some(to) => after(to, self.tail[arc.task]),
            None => {
                let devices = self.instance.devices();
                let on = |to: &usize| after(*to, self.ahead[arc.task * devices + to]);
                self.instance.allowed(arc.task).iter().map(on).fold(Micros::INFINITY, Micros::min)
            }
        }
    }
}

/// Returns by task and device the length of the longest path from a start there, with each task on its best device.
fn longest_paths(instance: &Instance) -> Vec<Micros> {
    let devices = instance.devices();
    let mut ahead = vec![Micros::INFINITY; instance.tasks() * devices];
    for &task in instance.order().iter().rev() {
        for &device in instance.allowed(task) {
            let after = |arc: &Arc| {
                let on = |to: &usize| instance.transfer(arc.tensor, device, *to) + ahead[arc.task * devices + to];
                instance.allowed(arc.task).iter().map(on).fold(Micros::INFINITY, Micros::min)
            };
            let rest = instance.successors(task).iter().map(after).fold(Micros::ZERO, Micros::max);
            ahead[task * devices + device] = rest + instance.time(task, device).unwrap_or(Micros::INFINITY);
        }
    }
    ahead
}
