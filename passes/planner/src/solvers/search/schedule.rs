//! A schedule under search: a device a task and one order of all tasks, with heads and tails.

use super::model::Model;
use crate::model::instance::Instance;
use crate::model::plan;
use crate::model::units::Micros;

/// Which device runs each task, and in which order. A device runs its tasks in this order, each as early as it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) device: Vec<u8>,
    /// Every task after the tasks it waits for.
    pub(super) order: Vec<u32>,
}

impl Choice {
    /// What a schedule chose: its devices, and its tasks by start.
    pub(super) fn of_schedule(instance: &Instance, device: &[usize], start: &[Micros]) -> Self {
        let mut order: Vec<u32> = instance.order().iter().map(|task| *task as u32).collect();
        // Stable: tasks that take no time stay behind those they wait for.
        order.sort_by(|a, b| start[*a as usize].total_cmp(&start[*b as usize]));
        Self { device: device.iter().map(|device| *device as u8).collect(), order }
    }
}

/// A choice with its times.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) choice: Choice,
    /// Where in the order a task stands.
    pub(super) place: Vec<u32>,
    /// When a task starts, in µs: right after [`Schedule::forward`] only, while ends follow every change.
    start: Vec<Micros>,
    /// When a task ends, in µs.
    pub(super) end: Vec<Micros>,
    /// From a task's start to the end of the plan on the longest path through it, in µs.
    pub(super) tail: Vec<Micros>,
    scratch: Vec<Micros>,
}

impl Schedule {
    pub(super) fn new(model: &Model, choice: Choice) -> Self {
        let mut schedule = Self {
            place: vec![0; model.tasks],
            start: vec![0.0; model.tasks],
            end: vec![0.0; model.tasks],
            tail: vec![0.0; model.tasks],
            scratch: vec![0.0; model.devices],
            choice,
        };
        schedule.number();
        schedule.forward(model);
        schedule.backward(model);
        schedule
    }

    pub(super) fn number(&mut self) {
        for (place, &task) in self.choice.order.iter().enumerate() {
            self.place[task as usize] = place as u32;
        }
    }

    /// Computes when each task ends, and returns when the last does.
    pub(super) fn forward(&mut self, model: &Model) -> Micros {
        let mut makespan = 0.0_f64;
        self.scratch.fill(0.0);
        for &task in &self.choice.order {
            let task = task as usize;
            let device = usize::from(self.choice.device[task]);
            let mut start = self.scratch[device];
            for &arc in model.preds(task) {
                let from = arc.task as usize;
                start = start.max(self.end[from] + model.hop(arc, usize::from(self.choice.device[from]), device));
            }
            let end = start + model.time(task, device);
            self.start[task] = start;
            self.end[task] = end;
            self.scratch[device] = end;
            makespan = makespan.max(end);
        }
        makespan
    }

    /// Computes each task's tail, and returns the longest.
    pub(super) fn backward(&mut self, model: &Model) -> Micros {
        let mut makespan = 0.0_f64;
        self.scratch.fill(0.0);
        for &task in self.choice.order.iter().rev() {
            let task = task as usize;
            let device = usize::from(self.choice.device[task]);
            let mut tail = self.scratch[device];
            for &arc in model.succs(task) {
                let to = arc.task as usize;
                tail = tail.max(self.tail[to] + model.hop(arc, device, usize::from(self.choice.device[to])));
            }
            let tail = tail + model.time(task, device);
            self.tail[task] = tail;
            self.scratch[device] = tail;
            makespan = makespan.max(tail);
        }
        makespan
    }

    /// Brings the order into the order of starts. The plan stays as it is; neighbours in time become neighbours in the order.
    pub(super) fn sort_by_start(&mut self, model: &Model) {
        // Ends less times are rounded, and could put a task before one that it waits for.
        self.forward(model);
        let Self { choice: Choice { order, .. }, start, .. } = self;
        order.sort_by(|a, b| start[*a as usize].total_cmp(&start[*b as usize]));
        self.number();
    }

    /// From the first start on each device at or behind a place to the end of the plan; nothing where there is none.
    pub(super) fn device_tails(&self, place: usize, tails: &mut Vec<Micros>) {
        const UNKNOWN: Micros = -1.0;
        let devices = self.scratch.len();
        tails.clear();
        tails.resize(devices, UNKNOWN);
        let mut unknown = devices;
        for &task in &self.choice.order[place..] {
            let tail = &mut tails[usize::from(self.choice.device[task as usize])];
            if *tail == UNKNOWN {
                *tail = self.tail[task as usize];
                unknown -= 1;
                if unknown == 0 {
                    return;
                }
            }
        }
        tails.iter_mut().for_each(|tail| *tail = tail.max(0.0));
    }

    /// Where and when each task runs.
    pub(super) fn devices_and_starts(&self) -> (Vec<usize>, Vec<Micros>) {
        let device: Vec<usize> = self.choice.device.iter().map(|device| usize::from(*device)).collect();
        (device, self.start.clone())
    }

    pub(super) fn into_plan(self) -> plan::Schedule {
        let (device, start) = self.devices_and_starts();
        plan::Schedule::Latency { device, start, makespan: self.end.iter().copied().fold(0.0, f64::max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::plan::Objective;
    use crate::model::problem::{Device, Node, Problem};

    /// A task that takes no time stays before one that waits for it: 0.1 + 0.7 − 0.7 is less than 0.1.
    #[test]
    fn sorted_orders_are_topological() {
        let device = Device { id: 0, name: "cpu0".to_owned(), memory: None, batch_sizes: vec![1] };
        let mut problem = Problem::new("rounded", vec![device], vec![vec![None]]);
        let node = |(id, time): (usize, f64)| Node {
            id,
            name: None,
            time: [(1, vec![Some(time)])].into(),
            weight: 0.0,
            input: 0.0,
            output: Some(1.0),
            scratch: 0.0,
            pin: None,
            module: None,
        };
        problem.nodes = [0.1, 0.0, 0.7].into_iter().enumerate().map(node).collect();
        problem.edges = Some(vec![(0, 1), (1, 2)]);
        let instance = Instance::new(&problem, Objective::Latency).unwrap();
        let model = Model::new(&instance);
        let mut schedule = Schedule::new(&model, Choice { device: vec![0; 3], order: vec![0, 1, 2] });
        assert!(schedule.end[2] - 0.7 < schedule.end[1], "rounding is not what it was");
        schedule.sort_by_start(&model);
        assert_eq!(schedule.choice.order, [0, 1, 2]);
    }
}
