//! The latency problem, laid out for fast simulation.

use crate::model::instance::Instance;
use crate::model::units::{Bytes, Micros};

use super::memory::Limits;

/// One tensor that a task waits for, or that it feeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    /// The task at the other end.
    pub(super) task: u32,
    /// Where in [`Model::hops`] the tensor's table of transfer times begins.
    pub(super) hop: u32,
}

/// Who waits for whom.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pred_at: Vec<u32>,
    preds: Vec<Arc>,
    succ_at: Vec<u32>,
    succs: Vec<Arc>,
}

impl Graph {
    /// The graph of a problem, each tensor with a table of pairs of devices.
    pub(super) fn new(instance: &Instance) -> Self {
        let square = instance.devices() * instance.devices();
        let mut arcs = Vec::new();
        for (index, tensor) in instance.tensors().iter().enumerate() {
            let hop = (index * square) as u32;
            arcs.extend(tensor.consumers.iter().map(|consumer| (tensor.producer as u32, *consumer as u32, hop)));
        }
        let (pred_at, preds) = Self::group(instance.tasks(), &arcs, |arc| arc.1, |arc| arc.0);
        let (succ_at, succs) = Self::group(instance.tasks(), &arcs, |arc| arc.0, |arc| arc.1);
        Self { pred_at, preds, succ_at, succs }
    }

    /// Arcs by one of their ends: where each task's begin, and the list.
    fn group(
        tasks: usize,
        arcs: &[(u32, u32, u32)],
        end: fn(&(u32, u32, u32)) -> u32,
        other: fn(&(u32, u32, u32)) -> u32,
    ) -> (Vec<u32>, Vec<Arc>) {
        let mut at = vec![0; tasks + 1];
        for arc in arcs {
            at[end(arc) as usize + 1] += 1;
        }
        for task in 0..tasks {
            at[task + 1] += at[task];
        }
        let mut next = at.clone();
        let mut list = vec![Arc { task: 0, hop: 0 }; arcs.len()];
        for arc in arcs {
            let slot = &mut next[end(arc) as usize];
            list[*slot as usize] = Arc { task: other(arc), hop: arc.2 };
            *slot += 1;
        }
        (at, list)
    }

    /// The tensors a task waits for.
    pub(super) fn preds(&self, task: usize) -> &[Arc] {
        &self.preds[self.pred_at[task] as usize..self.pred_at[task + 1] as usize]
    }

    /// The tensors that wait for a task, one a consumer.
    pub(super) fn succs(&self, task: usize) -> &[Arc] {
        &self.succs[self.succ_at[task] as usize..self.succ_at[task + 1] as usize]
    }
}

/// A latency problem as flat tables: what it costs to run a task and to move a tensor.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) tasks: usize,
    pub(super) devices: usize,
    /// Time in µs of each task on each device, task by task; infinite where the task may not run.
    pub(super) time: Vec<Micros>,
    graph: Graph,
    /// Transfer times in µs, a `devices × devices` table a tensor, row = producer's device; infinite where no link is.
    pub(super) hops: Vec<Micros>,
    /// Whether a task shares its device with others.
    pub(super) together: Vec<bool>,
    /// Tasks that share a device, two and more.
    pub(super) groups: Vec<Vec<usize>>,
    /// What each task takes from its device's memory for sure.
    pub(super) bytes: Vec<Bytes>,
    pub(super) capacity: Vec<Bytes>,
}

impl Model {
    pub(super) fn new(instance: &Instance) -> Self {
        let (tasks, devices) = (instance.tasks(), instance.devices());
        let limits = Limits::of(instance);
        let time = (0..tasks * devices).map(|cell| instance.time(cell / devices, cell % devices));
        let mut hops = Vec::with_capacity(instance.tensors().len() * devices * devices);
        for tensor in 0..instance.tensors().len() {
            for from in 0..devices {
                hops.extend((0..devices).map(|to| instance.transfer(tensor, from, to)));
            }
        }
        let together = |task: &usize| instance.groups()[instance.group_of(*task)].len() > 1;
        Self {
            tasks,
            devices,
            time: time.map(|time| time.unwrap_or(f64::INFINITY)).collect(),
            graph: Graph::new(instance),
            hops,
            together: (0..tasks).map(|task| together(&task)).collect(),
            groups: instance.groups().iter().filter(|group| group.len() > 1).cloned().collect(),
            bytes: (0..tasks).map(|task| limits.bytes(instance, task, 1)).collect(),
            capacity: (0..devices).map(|device| instance.capacity_bytes(device)).collect(),
        }
    }

    /// The tensors a task waits for.
    pub(super) fn preds(&self, task: usize) -> &[Arc] {
        self.graph.preds(task)
    }

    /// The tensors that wait for a task, one a consumer.
    pub(super) fn succs(&self, task: usize) -> &[Arc] {
        self.graph.succs(task)
    }

    /// Time of a task on a device in µs, infinite where it may not run.
    pub(super) fn time(&self, task: usize, device: usize) -> Micros {
        self.time[task * self.devices + device]
    }

    /// Time in µs to bring an arc's tensor from one device to another.
    pub(super) fn hop(&self, arc: Arc, from: usize, to: usize) -> Micros {
        self.hops[arc.hop as usize + from * self.devices + to]
    }

    /// What is left of each device's memory.
    pub(super) fn room(&self, device: &[u8]) -> Vec<Bytes> {
        let mut room = self.capacity.clone();
        for (bytes, device) in self.bytes.iter().zip(device) {
            room[usize::from(*device)] -= bytes;
        }
        room
    }

    /// The mean over tasks of the time on the device that is fastest.
    pub(super) fn mean_time(&self) -> Micros {
        let least =
            |task: usize| self.allowed(task).map(|device| self.time(task, device)).fold(f64::INFINITY, f64::min);
        (0..self.tasks).map(least).sum::<Micros>() / self.tasks.max(1) as f64
    }

    /// The devices on which a task may run.
    pub(super) fn allowed(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.devices).filter(move |&device| self.time(task, device).is_finite())
    }
}
