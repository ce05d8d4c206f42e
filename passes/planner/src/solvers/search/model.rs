//! Problems as flat tables for fast simulation: what one input and a queue have in common.

use std::fmt::Debug;

use super::method::{Around, Heat, Method, Step};
use super::schedule::Schedule;
use crate::model::instance::Instance;
use crate::model::plan;
use crate::model::units::{Bytes, Micros};
use crate::random::Random;

/// One tensor that a task waits for, or that it feeds.
#[derive(Clone, Copy, Debug)]
pub struct Arc {
    /// The task at the other end.
    pub(super) task: u32,
    /// Start of the tensor's `devices × devices` table of transfer times, row = producer's device.
    pub(super) hop: u32,
}

/// Tasks, groups of them, and the tensors between them.
#[derive(Clone, Debug)]
pub struct Graph {
    pub tasks: usize,
    pub devices: usize,
    /// Tasks that share devices; a task without company is a group of its own.
    pub groups: Vec<Vec<usize>>,
    /// True for tasks that share devices with others.
    pub(super) together: Vec<bool>,
    pred_at: Vec<u32>,
    preds: Vec<Arc>,
    succ_at: Vec<u32>,
    succs: Vec<Arc>,
}

impl Graph {
    /// The graph of a problem, each tensor with a table of pairs of devices.
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
        let together = (0..tasks).map(|task| groups[instance.group_of(task)].len() > 1).collect();
        Self { tasks, devices, groups, together, pred_at, preds, succ_at, succs }
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
    #[inline]
    pub(super) fn preds(&self, task: usize) -> &[Arc] {
        &self.preds[self.pred_at[task] as usize..self.pred_at[task + 1] as usize]
    }

    /// The tensors that wait for a task, one a consumer.
    #[inline]
    pub(super) fn succs(&self, task: usize) -> &[Arc] {
        &self.succs[self.succ_at[task] as usize..self.succ_at[task + 1] as usize]
    }
}

/// Problem as flat tables: of one input, or of a queue.
///
/// A task has a row of cells, one for each part that it may have: a single one for one input, one a device for a queue.
/// Decisions and times of a schedule are kept by cell.
pub trait Model: Sized + Sync {
    /// Decision of a cell: the device, or the units of the queue that the cell's device takes.
    type Place: Copy + Debug + Send + Sync;
    type Window: Window<Self>;

    /// Tasks in a window, how far it moves each time, and how many trials it makes before it does.
    const WIDTH: usize;
    const STRIDE: usize;
    const TRIALS: usize;
    /// Number of tasks whose liveness takes as long to check as a trial.
    const TASKS_A_TRIAL: usize;

    fn graph(&self) -> &Graph;

    /// Number of cells of a task.
    fn width(&self) -> usize;

    /// Parts that a task has: the device and the cell of each.
    fn parts(&self, places: &[Self::Place], task: usize) -> impl Iterator<Item = (usize, usize)>;

    /// Returns the time of a part; infinite where the device does not run it.
    fn part_time(&self, task: usize, device: usize, part: Self::Place) -> Micros;

    /// Returns when what a part reads over an arc is on its device, the producer having these places and ends.
    fn arrival(&self, arc: Arc, places: &[Self::Place], ends: &[Micros], device: usize, part: Self::Place) -> Micros;

    /// Returns the makespan of paths over an arc from a part that ends at `end`, the consumer having these places and tails.
    fn path(
        &self,
        arc: Arc,
        places: &[Self::Place],
        tails: &[Micros],
        part: (usize, Self::Place),
        end: Micros,
    ) -> Micros;

    /// Returns what is left of each device's memory.
    fn room(&self, places: &[Self::Place]) -> Vec<Bytes>;

    /// Returns what each device holds at most at the same time.
    fn peak_use(&self, instance: &Instance, schedule: &Schedule<Self>) -> Vec<Bytes>;

    /// Changes the row of a group's tasks at random; false where no other row is possible.
    fn mutate(&self, group: &[usize], row: &mut [Self::Place], random: &mut Random) -> bool;

    /// Returns the scale of the temperature to begin with.
    fn heat(&self, method: Method) -> Micros;

    /// Chooses the steps of a sweep's windows.
    fn step(method: Method, random: &mut Random) -> Step;

    fn plan(&self, schedule: &Schedule<Self>) -> plan::Schedule;
}

/// A few neighbours in the order of a schedule, searched with everything around them held still.
pub trait Window<M: Model>: Default {
    /// Takes the window's part of the order. Ends before it and tails behind it must be right.
    fn load(&mut self, model: &M, schedule: &Schedule<M>, around: &Around);

    /// Searches inside the window. Returns the number of trials.
    fn search(&mut self, model: &M, schedule: &Schedule<M>, step: Step, heat: Heat<'_>, random: &mut Random) -> u64;

    /// The tasks in the window, in the order that it was loaded with.
    fn tasks(&self) -> &[u32];

    /// The current state, and the best since the window was loaded.
    fn now(&self) -> WindowState<'_, M::Place>;
    fn best(&self) -> WindowState<'_, M::Place>;

    /// Ends when the window was loaded.
    fn ends_at_start(&self) -> &[Micros];

    /// Memory that is left on each device.
    fn room(&self) -> &[Bytes];
}

/// State of a window; numbers of tasks are those of [`Window::tasks`].
pub struct WindowState<'a, P> {
    pub(super) value: Micros,
    pub(super) order: &'a [u8],
    /// By cell.
    pub(super) places: &'a [P],
    pub(super) end: &'a [Micros],
}
