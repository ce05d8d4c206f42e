//! A schedule under search: places of the tasks and one order of all, with heads and tails.

use super::memory::Limits;
use super::model::{Model, WindowState};
use crate::model::instance::Instance;
use crate::model::plan;
use crate::model::units::Micros;

/// Place of a task that is not in the order.
pub(super) const ABSENT: u32 = u32::MAX;

/// Places of all tasks, and one order. A device runs its parts in this order, each as early as it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice<P> {
    /// By cell of [`Model`].
    pub places: Vec<P>,
    /// Every task after the tasks that it waits for. It may have the first tasks only.
    pub order: Vec<u32>,
}

impl<P: Copy> Choice<P> {
    /// Places and the tasks of an instance by their starts.
    pub(super) fn by_start(instance: &Instance, places: Vec<P>, start: &[Micros]) -> Self {
        let mut order: Vec<u32> = instance.order().iter().map(|task| *task as u32).collect();
        // Stable: tasks that take no time stay behind those they wait for.
        order.sort_by(|a, b| start[*a as usize].total_cmp(&start[*b as usize]));
        Self { places, order }
    }

    /// Gives every task of a group a row of places.
    pub fn set(&mut self, group: &[usize], row: &[P]) {
        for task in group {
            self.places[task * row.len()..][..row.len()].copy_from_slice(row);
        }
    }

    /// Takes over a window's state, the first task of which is at a place; a task has so many cells.
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
    pub choice: Choice<M::Place>,
    /// Where in the order a task stands.
    pub(super) place: Vec<u32>,
    /// When a part starts, in µs: right after [`Schedule::forward`] only, while ends follow every change.
    pub(super) start: Vec<Micros>,
    pub(super) end: Vec<Micros>,
    /// From a part's start to the end of the plan on the longest path through it, in µs.
    pub(super) tail: Vec<Micros>,
    /// By device.
    scratch: Vec<Micros>,
}

impl<M: Model> Schedule<M> {
    pub fn new(model: &M, choice: Choice<M::Place>) -> Self {
        let cells = model.graph().tasks * model.width();
        let mut schedule = Self {
            place: vec![ABSENT; model.graph().tasks],
            start: vec![0.0; cells],
            end: vec![0.0; cells],
            tail: vec![0.0; cells],
            scratch: vec![0.0; model.graph().devices],
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

    /// Computes when each part ends, and returns when the last does.
    pub fn forward(&mut self, model: &M) -> Micros {
        let Self { choice: Choice { places, order }, start: starts, end: ends, scratch, .. } = self;
        let mut makespan: Micros = 0.0;
        scratch.fill(0.0);
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

    /// Computes each part's tail.
    pub(super) fn backward(&mut self, model: &M) {
        let Self { choice: Choice { places, order }, tail: tails, scratch, .. } = self;
        scratch.fill(0.0);
        for &task in order.iter().rev() {
            let task = task as usize;
            for (device, cell) in model.parts(places, task) {
                let mut after = scratch[device];
                for &arc in model.graph().succs(task) {
                    after = after.max(model.path(arc, places, tails, (device, places[cell]), 0.0));
                }
                let tail = after + model.part_time(task, device, places[cell]);
                (tails[cell], scratch[device]) = (tail, tail);
            }
        }
    }

    /// Brings the order into the order of first starts, where that changes no device's own order; else leaves it. Neighbours in
    /// time become neighbours in the order.
    pub(super) fn sort_by_start(&mut self, model: &M) {
        let before = self.choice.order.clone();
        // Ends less times are rounded, and could put a task before one that it waits for.
        let value = self.forward(model);
        let Self { choice: Choice { places, order }, start, .. } = self;
        let first = |task: usize| model.parts(places, task).map(|(_, cell)| start[cell]).fold(f64::INFINITY, f64::min);
        let starts: Vec<Micros> = (0..model.graph().tasks).map(first).collect();
        order.sort_by(|a, b| starts[*a as usize].total_cmp(&starts[*b as usize]));
        // Parts of two tasks may run in one order here and in the other there: then sorting makes another schedule.
        if self.forward(model) > value {
            self.choice.order = before;
            self.forward(model);
        }
        self.number();
    }

    /// From the first start on each device at or behind a place to the end of the plan; nothing where there is none.
    pub(super) fn device_tails(&self, model: &M, place: usize, tails: &mut Vec<Micros>) {
        const UNKNOWN: Micros = -1.0;
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
        tails.iter_mut().for_each(|tail| *tail = tail.max(0.0));
    }

    /// Takes over a window's state, the first task of which is at a place.
    pub(super) fn write(&mut self, width: usize, first: usize, tasks: &[u32], state: &WindowState<'_, M::Place>) {
        self.choice.write(width, first, tasks, state);
        for (place, &task) in (first..).zip(&self.choice.order[first..first + tasks.len()]) {
            self.place[task as usize] = place as u32;
        }
        self.write_ends(width, tasks, state.end);
    }

    /// Takes over ends of a window's tasks.
    pub(super) fn write_ends(&mut self, width: usize, tasks: &[u32], ends: &[Micros]) {
        for (&task, ends) in tasks.iter().zip(ends.chunks(width)) {
            self.end[task as usize * width..][..width].copy_from_slice(ends);
        }
    }

    /// True if devices have memory for the schedule; right after [`Schedule::forward`] only.
    pub fn fits(&self, instance: &Instance, model: &M, limits: Limits) -> bool {
        limits == Limits::None
            || model.room(&self.choice.places).iter().all(|room| *room >= 0.0)
                && self.alive_fits(instance, model, limits)
    }

    /// True if what is alive at once fits into memory, where that has to be looked at.
    pub(super) fn alive_fits(&self, instance: &Instance, model: &M, limits: Limits) -> bool {
        limits != Limits::Lives || instance.fits(&model.peak_use(instance, self))
    }

    pub fn into_plan(self, model: &M) -> plan::Schedule {
        model.plan(&self)
    }

    /// The end of the last part; right after [`Schedule::forward`] only.
    pub(super) fn makespan(&self, model: &M) -> Micros {
        let cells = (0..model.graph().tasks).flat_map(|task| model.parts(&self.choice.places, task));
        cells.map(|(_, cell)| self.end[cell]).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::plan::Objective;
    use crate::model::problem::{Device, Node, Problem};
    use crate::solvers::search::latency::Model;

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
        let model = Model::new(&instance).unwrap();
        let mut schedule = Schedule::new(&model, Choice { places: vec![0; 3], order: vec![0, 1, 2] });
        assert!(schedule.end[2] - 0.7 < schedule.end[1], "rounding is not what it was");
        schedule.sort_by_start(&model);
        assert_eq!(schedule.choice.order, [0, 1, 2]);
    }
}
