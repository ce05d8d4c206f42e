//! Common part of the tables of one input and of a queue.

use std::fmt::Debug;

use super::method::{Heat, Method, Step, Surroundings};
use super::schedule::Schedule;
use crate::model::instance::Instance;
use crate::model::plan;
use crate::model::units::{Bytes, Micros};
use crate::random::Random;

/// Tensor between a task and a predecessor or successor.
#[derive(Clone, Copy, Debug)]
pub struct Arc {
    /// Task at the other end.
    pub(super) task: u32,
    /// Start of the tensor's `devices × devices` table of transfer times, row = producer's device.
    pub(super) hop: u32,
}

/// Tasks, their groups, and the tensors between them.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Number of tasks.
    pub tasks: usize,
    /// Number of devices.
    pub devices: usize,
    /// Groups of co-located tasks; other tasks are groups of their own.
    pub groups: Vec<Vec<usize>>,
    /// True for tasks that are co-located with others.
    pub(super) colocated: Vec<bool>,
    pred_at: Vec<u32>,
    preds: Vec<Arc>,
    succ_at: Vec<u32>,
    succs: Vec<Arc>,
}

impl Graph {
    /// Builds the graph of a problem, with a table of pairs of devices for each tensor.
    pub(super) fn new(instance: &Instance) -> Self {
        let (tasks, devices) = (instance.tasks(), instance.devices());
        let mut arcs = Vec::new();
        for (index, tensor) in instance.tensors().iter().enumerate() {
            let hop = (index * devices * devices) as u32;
            arcs.extend(tensor.consumers.iter().map(|consumer| (tensor.producer as u32, *consumer as u32, hop)));
        }
        let (pred_at, preds) = Self::group(tasks, &arcs, |arc| arc.1, |arc| arc.0);
        let (succ_at, succs) = Self::group(tasks, &arcs, |arc| arc.0, |arc| arc.1);
        let groups = instance.groups().to_vec();
        let colocated = (0..tasks).map(|task| groups[instance.group_of(task)].len() > 1).collect();
        Self { tasks, devices, groups, colocated, pred_at, preds, succ_at, succs }
    }

    /// Returns arcs sorted by one of their ends: offsets by task, and the list.
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

    /// Returns the arcs from predecessors.
    #[inline]
    pub(super) fn preds(&self, task: usize) -> &[Arc] {
        &self.preds[self.pred_at[task] as usize..self.pred_at[task + 1] as usize]
    }

    /// Returns the arcs to successors, one per consumer.
    #[inline]
    pub(super) fn succs(&self, task: usize) -> &[Arc] {
        &self.succs[self.succ_at[task] as usize..self.succ_at[task + 1] as usize]
    }
}

/// Problem as flat tables: of one input, or of a queue.
///
/// A task has a row of cells, one for each possible part: a single one for one input, one per device for a queue.
/// Decisions and times of a schedule are stored by cell.
pub trait Model: Sized + Sync {
    /// Decision of a cell: the device, or the units of the queue that run on the cell's device.
    type Place: Copy + Debug + Send + Sync;
    /// Window of this model.
    type Window: Window<Self>;

    /// Number of tasks in a window.
    const WIDTH: usize;
    /// Number of positions that a window advances by.
    const STRIDE: usize;
    /// Number of trials in a window before it advances.
    const TRIALS: usize;
    /// Number of tasks whose liveness takes as long to check as a trial.
    const TASKS_A_TRIAL: usize;

    /// Returns the graph.
    fn graph(&self) -> &Graph;

    /// Returns the number of cells of a task.
    fn width(&self) -> usize;

    /// Returns the parts of a task: device and cell of each.
    fn parts(&self, places: &[Self::Place], task: usize) -> impl Iterator<Item = (usize, usize)>;

    /// Returns the time of a part; infinite if the device does not support it.
    fn part_time(&self, task: usize, device: usize, part: Self::Place) -> Micros;

    /// Returns the arrival time of what a part reads over an arc, given the producer's places and ends.
    fn arrival(&self, arc: Arc, places: &[Self::Place], ends: &[Micros], device: usize, part: Self::Place) -> Micros;

    /// Returns the makespan of paths over an arc from a part that ends at `end`, given the consumer's places and tails.
    fn path(
        &self,
        arc: Arc,
        places: &[Self::Place],
        tails: &[Micros],
        part: (usize, Self::Place),
        end: Micros,
    ) -> Micros;

    /// Returns the free memory of each device.
    fn room(&self, places: &[Self::Place]) -> Vec<Bytes>;

    /// Returns the peak memory use of each device.
    fn peak_use(&self, instance: &Instance, schedule: &Schedule<Self>) -> Vec<Bytes>;

    /// Changes the row of a group's tasks at random; returns false if no other row is possible.
    fn mutate(&self, group: &[usize], row: &mut [Self::Place], random: &mut Random) -> bool;

    /// Returns the scale of the initial temperature.
    fn heat(&self, method: Method) -> Micros;

    /// Chooses the steps of a sweep's windows.
    fn step(method: Method, random: &mut Random) -> Step;

    /// Returns the plan of a schedule.
    fn plan(&self, schedule: &Schedule<Self>) -> plan::Schedule;
}

/// A few adjacent tasks in the order of a schedule, searched with everything around them fixed.
pub trait Window<M: Model>: Default {
    /// Loads a section of the order. Ends before it and tails behind it must be valid.
    fn load(&mut self, model: &M, schedule: &Schedule<M>, surroundings: &Surroundings);

    /// Searches inside the window. Returns the number of trials.
    fn search(&mut self, model: &M, schedule: &Schedule<M>, step: Step, heat: Heat<'_>, random: &mut Random) -> u64;

    /// Returns the tasks in the window, in the order that it was loaded with.
    fn tasks(&self) -> &[u32];

    /// Returns the current state.
    fn now(&self) -> WindowState<'_, M::Place>;
    /// Returns the best state since the window was loaded.
    fn best(&self) -> WindowState<'_, M::Place>;

    /// Returns the ends in the current state, by cell.
    fn ends(&self) -> &[Micros];
    /// Returns the ends when the window was loaded, by cell.
    fn initial_ends(&self) -> &[Micros];

    /// Returns the free memory of each device.
    fn room(&self) -> &[Bytes];
}

/// State of a window; task indices are those of [`Window::tasks`].
pub struct WindowState<'a, P> {
    pub(super) value: Micros,
    pub(super) order: &'a [u8],
    /// By cell.
    pub(super) places: &'a [P],
}
