//! Some tasks as a problem of their own, with everything around them held still.
//!
//! What comes before reaches them as release times: when operands arrive, and when devices are free. What comes after
//! reaches them as delivery times: how long it takes from a task's end to the end of all, over what waits for its result
//! and over what waits for its device. So the schedule that ends first is the one that is best for the whole.

use crate::model::instance::{Arc, Instance};
use crate::model::units::Micros;
use crate::solvers::exact::graph::{Footprint, Graph};

/// A schedule, or the beginning of one.
#[derive(Clone, Debug)]
pub(crate) struct Around<'a> {
    pub(crate) instance: &'a Instance,
    /// Where each task is; none where that is still open.
    pub(crate) device: Vec<Option<usize>>,
    pub(crate) end: Vec<Micros>,
    /// From each placed task's start to the end of all, where it comes after.
    pub(crate) tail: Vec<Micros>,
    /// When devices are free for the tasks that are looked at, and how long what they run afterwards takes to the end.
    pub(crate) free: Vec<Micros>,
    pub(crate) device_tail: Vec<Micros>,
    /// By task and device: no less time between a start there and the end of all.
    pub(crate) ahead: Vec<Micros>,
}

impl<'a> Around<'a> {
    /// Nothing is placed yet.
    pub(crate) fn new(instance: &'a Instance) -> Self {
        let (tasks, devices) = (instance.tasks(), instance.devices());
        Self {
            instance,
            device: vec![None; tasks],
            end: vec![0.0; tasks],
            tail: vec![0.0; tasks],
            free: vec![0.0; devices],
            device_tail: vec![0.0; devices],
            ahead: longest_paths(instance),
        }
    }

    /// The problem of some tasks, in a topological order. What they read must be placed or among them.
    pub(crate) fn graph(&self, tasks: &[usize]) -> Graph {
        let instance = self.instance;
        let devices = instance.devices();
        let mut inside = vec![false; instance.tasks()];
        tasks.iter().for_each(|task| inside[*task] = true);
        let mut graph = Graph::new(instance, tasks, Footprint::Least);
        for (local, &task) in tasks.iter().enumerate() {
            let mates = &instance.groups()[instance.group_of(task)];
            let bound_to = mates.iter().filter(|mate| !inside[**mate]).find_map(|mate| self.device[*mate]);
            for device in 0..devices {
                let outside = |arc: &&Arc| !inside[arc.task];
                let arrival = |arc: &Arc| self.arrival(arc, device);
                let release =
                    instance.predecessors(task).iter().filter(outside).map(arrival).fold(self.free[device], f64::max);
                let rest = |arc: &Arc| self.rest(arc, device);
                let delivery =
                    instance.successors(task).iter().filter(outside).map(rest).fold(self.device_tail[device], f64::max);
                let at = local * devices + device;
                if release.is_infinite() || delivery.is_infinite() || bound_to.is_some_and(|only| only != device) {
                    graph.time_us[at] = f64::INFINITY;
                } else {
                    (graph.release_us[at], graph.delivery_us[at]) = (release, delivery);
                }
            }
        }
        let mut room: Vec<f64> = (0..devices).map(|device| instance.capacity_bytes(device)).collect();
        for (task, device) in self.device.iter().enumerate().filter(|(task, _)| !inside[*task]) {
            device.iter().for_each(|device| room[*device] -= Footprint::Least.of(instance, task));
        }
        graph.limit(room);
        graph
    }

    /// When an operand is there; at once if its task is not placed, which is not asked for.
    fn arrival(&self, arc: &Arc, device: usize) -> Micros {
        self.device[arc.task].map_or(0.0, |from| self.end[arc.task] + self.instance.transfer(arc.tensor, from, device))
    }

    /// The least time from a task's end to the end of all, over one that reads its result.
    fn rest(&self, arc: &Arc, device: usize) -> Micros {
        let after = |to: usize, tail: Micros| self.instance.transfer(arc.tensor, device, to) + tail;
        match self.device[arc.task] {
            Some(to) => after(to, self.tail[arc.task]),
            None => {
                let devices = self.instance.devices();
                let on = |to: &usize| after(*to, self.ahead[arc.task * devices + to]);
                self.instance.allowed(arc.task).iter().map(on).fold(f64::INFINITY, f64::min)
            }
        }
    }
}

/// By task and device: the longest way from a start there to the end, each task of it on its best device.
fn longest_paths(instance: &Instance) -> Vec<Micros> {
    let devices = instance.devices();
    let mut ahead = vec![f64::INFINITY; instance.tasks() * devices];
    for &task in instance.order().iter().rev() {
        for &device in instance.allowed(task) {
            let after = |arc: &Arc| {
                let on = |to: &usize| instance.transfer(arc.tensor, device, *to) + ahead[arc.task * devices + to];
                instance.allowed(arc.task).iter().map(on).fold(f64::INFINITY, f64::min)
            };
            let rest = instance.successors(task).iter().map(after).fold(0.0, f64::max);
            ahead[task * devices + device] = rest + instance.time(task, device).unwrap_or(f64::INFINITY);
        }
    }
    ahead
}
