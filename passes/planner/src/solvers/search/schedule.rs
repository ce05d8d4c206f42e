//! Schedule under search: places of the tasks and one order of all, with ends and tails.

use super::memory::Limits;
use super::model::{Model, WindowState};
use crate::model::instance::Instance;
use crate::model::plan;
use crate::model::units::{Bytes, Micros};

/// Position of a task that is not in the order.
pub(super) const ABSENT: u32 = u32::MAX;

/// Places of all tasks, and one order. A device runs its parts in this order, each as early as possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice<P> {
    /// By cell of [`Model`].
    pub places: Vec<P>,
    /// Topological order; possibly of the first tasks only.
    pub order: Vec<u32>,
}

impl<P: Copy> Choice<P> {
    /// Returns a choice with the tasks of an instance ordered by their starts.
    pub(super) fn by_start(instance: &Instance, places: Vec<P>, start: &[Micros]) -> Self {
        let mut order: Vec<u32> = instance.order().iter().map(|task| *task as u32).collect();
        // The sort is stable: tasks of zero duration stay behind their predecessors.
        order.sort_by(|a, b| start[*a as usize].total_cmp(&start[*b as usize]));
        Self { places, order }
    }

    /// Sets the row of places of every task of a group.
    pub fn set(&mut self, group: &[usize], row: &[P]) {
        for task in group {
            self.places[task * row.len()..][..row.len()].copy_from_slice(row);
        }
    }

    /// Copies a window's state, whose first task is at position `first`; a task has `width` cells.
    pub(super) fn write(&mut self, width: usize, first: usize, tasks: &[u32], state: &WindowState<'_, P>) {
        for (place, &local) in state.order.iter().enumerate() {
            self.order[first + place] = tasks[usize::from(local)];
        }
        for (&task, row) in tasks.iter().zip(state.places.chunks(width)) {
            self.set(&[task as usize], row);
        }
    }
}

/// A choice with its times, by cell.
#[derive(Clone, Debug)]
pub struct Schedule<M: Model> {
    /// Places and order.
    pub choice: Choice<M::Place>,
    /// Position of each task in the order.
    pub(super) place: Vec<u32>,
    /// Start of each part in µs: valid only right after [`Schedule::forward`], while ends follow every change.
    pub(super) start: Vec<Micros>,
    pub(super) end: Vec<Micros>,
    /// Time in µs from a part's start to the makespan on the longest path through it.
    pub(super) tail: Vec<Micros>,
    /// By device.
    scratch: Vec<Micros>,
}

impl<M: Model> Schedule<M> {
    /// Computes the times of a choice.
    pub fn new(model: &M, choice: Choice<M::Place>) -> Self {
        let cells = model.graph().tasks * model.width();
        let mut schedule = Self {
            place: vec![ABSENT; model.graph().tasks],
            start: vec![Micros::ZERO; cells],
            end: vec![Micros::ZERO; cells],
            tail: vec![Micros::ZERO; cells],
            scratch: vec![Micros::ZERO; model.graph().devices],
            choice,
        };
        schedule.number();
        schedule.forward(model);
        schedule
    }

    fn number(&mut self) {
        for (place, &task) in self.choice.order.iter().enumerate() {
            self.place[task as usize] = place as u32;
        }
    }

    /// Computes ends of parts, and returns the makespan.
    pub fn forward(&mut self, model: &M) -> Micros {
        let Self { choice: Choice { places, order }, start: starts, end: ends, scratch, .. } = self;
        let mut makespan = Micros::ZERO;
        scratch.fill(Micros::ZERO);
        for &task in order.iter() {
            let task = task as usize;
            for (device, cell) in model.parts(places, task) {
                let mut start = scratch[device];
                for &arc in model.graph().preds(task) {
                    start = start.max(model.arrival(arc, places, ends, device, places[cell]));
                }
                let end = start + model.part_time(task, device, places[cell]);
                (starts[cell], ends[cell], scratch[device]) = (start, end, end);
                makespan = makespan.max(end);
            }
        }
        makespan
    }

    /// Computes tails of parts.
    pub(super) fn backward(&mut self, model: &M) {
        let Self { choice: Choice { places, order }, tail: tails, scratch, .. } = self;
        scratch.fill(Micros::ZERO);
        for &task in order.iter().rev() {
            let task = task as usize;
            for (device, cell) in model.parts(places, task) {
                let mut after = scratch[device];
                for &arc in model.graph().succs(task) {
                    after = after.max(model.path(arc, places, tails, (device, places[cell]), Micros::ZERO));
                }
                let tail = after + model.part_time(task, device, places[cell]);
                (tails[cell], scratch[device]) = (tail, tail);
            }
        }
    }

    /// Sorts the order by first starts, unless that changes a device's own order, so that tasks close in time are close
    /// in the order.
    pub(super) fn sort_by_start(&mut self, model: &M) {
        let before = self.choice.order.clone();
        // Ends minus times are rounded, and could put a task before its predecessor.
        let value = self.forward(model);
        let Self { choice: Choice { places, order }, start, .. } = self;
        let first =
            |task: usize| model.parts(places, task).map(|(_, cell)| start[cell]).fold(Micros::INFINITY, Micros::min);
        let starts: Vec<Micros> = (0..model.graph().tasks).map(first).collect();
        order.sort_by(|a, b| starts[*a as usize].total_cmp(&starts[*b as usize]));
        // Parts of two tasks may run in different orders on different devices: then sorting gives another schedule.
        if self.forward(model) > value {
            self.choice.order = before;
            self.forward(model);
        }
        self.number();
    }

    /// Returns by device the time from the first start at or behind a position to the makespan; zero if there is none.
    pub(super) fn device_tails(&self, model: &M, place: usize, tails: &mut Vec<Micros>) {
        const UNKNOWN: Micros = Micros(-1.0);
        tails.clear();
        tails.resize(self.scratch.len(), UNKNOWN);
        let mut unknown = tails.len();
        for &task in &self.choice.order[place..] {
            for (device, cell) in model.parts(&self.choice.places, task as usize) {
                if tails[device] == UNKNOWN {
                    tails[device] = self.tail[cell];
                    unknown -= 1;
                }
            }
            if unknown == 0 {
                return;
            }
        }
        tails.iter_mut().for_each(|tail| *tail = tail.max(Micros::ZERO));
    }

    /// Copies a window's state, whose first task is at position `first`, and its ends.
    pub(super) fn write(
        &mut self,
        width: usize,
        first: usize,
        tasks: &[u32],
        state: &WindowState<'_, M::Place>,
        ends: &[Micros],
    ) {
        self.choice.write(width, first, tasks, state);
        for (place, &task) in (first..).zip(&self.choice.order[first..first + tasks.len()]) {
            self.place[task as usize] = place as u32;
        }
        self.write_ends(width, tasks, ends);
    }

    /// Copies the ends of a window's tasks.
    pub(super) fn write_ends(&mut self, width: usize, tasks: &[u32], ends: &[Micros]) {
        for (&task, ends) in tasks.iter().zip(ends.chunks(width)) {
            self.end[task as usize * width..][..width].copy_from_slice(ends);
        }
    }

    /// Returns true if the schedule fits into memory; valid only right after [`Schedule::forward`].
    pub fn fits(&self, instance: &Instance, model: &M, limits: Limits) -> bool {
        limits == Limits::None
            || model.room(&self.choice.places).iter().all(|room| *room >= Bytes::ZERO)
                && self.alive_fits(instance, model, limits)
    }

    /// Returns true if the peak fits into memory, or need not be checked.
    pub(super) fn alive_fits(&self, instance: &Instance, model: &M, limits: Limits) -> bool {
        limits != Limits::Lives || instance.fits(&model.peak_use(instance, self))
    }

    /// Converts to a plan.
    pub fn into_plan(self, model: &M) -> plan::Schedule {
        model.plan(&self)
    }

    /// Returns the end of the last part; valid only right after [`Schedule::forward`].
    pub(super) fn makespan(&self, model: &M) -> Micros {
        let cells = (0..model.graph().tasks).flat_map(|task| model.parts(&self.choice.places, task));
        cells.map(|(_, cell)| self.end[cell]).fold(Micros::ZERO, Micros::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::plan::Objective;
    use crate::model::problem::{Device, Node, Problem};
    use crate::solvers::search::latency::Model;

    /// Tests that a task of zero duration stays before its successor: 0.1 + 0.7 − 0.7 is less than 0.1.
    #[test]
    fn sorted_orders_are_topological() {
        let device = Device { id: 0, name: "cpu0".to_owned(), memory: None, batch_sizes: vec![1] };
        let mut problem = Problem::new("rounded", vec![device], vec![vec![None]]);
        let node = |(id, time): (usize, f64)| Node {
            id,
            name: None,
            time: [(1, vec![Some(Micros(time))])].into(),
            weight: Bytes::ZERO,
            input: Bytes::ZERO,
            output: Some(Bytes(1.0)),
            scratch: Bytes::ZERO,
            pin: None,
            module: None,
        };
        problem.nodes = [0.1, 0.0, 0.7].into_iter().enumerate().map(node).collect();
        problem.edges = Some(vec![(0, 1), (1, 2)]);
        let instance = Instance::new(&problem, Objective::Latency).unwrap();
        let model = Model::new(&instance).unwrap();
        let mut schedule = Schedule::new(&model, Choice { places: vec![0; 3], order: vec![0, 1, 2] });
        assert!(schedule.end[2] - Micros(0.7) < schedule.end[1], "rounding is not what it was");
        schedule.sort_by_start(&model);
        assert_eq!(schedule.choice.order, [0, 1, 2]);
    }
}
