//! Annealing by sweeps: a window slides over the order repeatedly, and is searched at each position.
//!
//! Tails come from one backward pass before each sweep and are valid for everything behind the window; ends are
//! computed on the way. So a trial costs time proportional to its window, and a sweep little more than its trials.

use super::memory::Limits;
use super::method::{Heat, Method, Step, Surroundings, exponential_samples, temperature};
use super::model::{Model, Window};
use super::schedule::{ABSENT, Choice, Schedule};
use crate::model::instance::Instance;
use crate::model::plan;
use crate::model::units::{Bytes, Micros};
use crate::random::Random;
use crate::solvers::chains::Allowance;

/// Improves a schedule. `None` if nothing was searched.
pub(super) fn improve<M: Model>(
    instance: &Instance,
    model: &M,
    start: &Choice<M::Place>,
    allowance: &Allowance,
    method: Method,
) -> Option<plan::Schedule> {
    let best = allowance.best_of(|random| {
        let mut annealer = Annealer::new(instance, model, start, random);
        annealer.run(allowance, &Phase { hot: model.heat(method), ..Phase::new(method) });
        (annealer.best_value, annealer.best)
    })?;
    Some(Schedule::new(model, best).into_plan(model))
}

/// A phase of the search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) method: Method,
    /// First position of the order that it changes.
    pub(super) first: usize,
    /// Shares of the budget that are spent when it begins, and when it ends.
    pub(super) begin: f64,
    pub(super) end: f64,
    /// Scale of the temperature; see [`temperature`].
    pub(super) hot: Micros,
}

impl Phase {
    /// Everything, with no heat.
    pub(super) fn new(method: Method) -> Self {
        Self { method, first: 0, begin: 0.0, end: 1.0, hot: Micros::ZERO }
    }
}

/// One chain of the search.
pub(super) struct Annealer<'a, M: Model> {
    instance: &'a Instance,
    model: &'a M,
    limits: Limits,
    schedule: Schedule<M>,
    window: M::Window,
    surroundings: Surroundings,
    random: Random,
    exponential: Vec<f64>,
    /// Tasks before the window with successors in it or behind it.
    open: Vec<u32>,
    pub(super) best: Choice<M::Place>,
    pub(super) best_value: Micros,
    pub(super) trials: u64,
}

impl<'a, M: Model> Annealer<'a, M> {
    pub(super) fn new(instance: &'a Instance, model: &'a M, start: &Choice<M::Place>, random: Random) -> Self {
        let mut schedule = Schedule::new(model, start.clone());
        Self {
            instance,
            model,
            limits: Limits::of(instance),
            window: M::Window::default(),
            surroundings: Surroundings { room: model.room(&start.places), ..Surroundings::default() },
            random,
            exponential: exponential_samples(),
            open: Vec::new(),
            best: start.clone(),
            best_value: schedule.forward(model),
            schedule,
            trials: 0,
        }
    }

    /// Returns the current choice.
    pub(super) fn current(&self) -> &Choice<M::Place> {
        &self.schedule.choice
    }

    /// Continues from another choice.
    pub(super) fn restart(&mut self, choice: Choice<M::Place>) {
        self.surroundings.room = self.model.room(&choice.places);
        self.best.clone_from(&choice);
        self.schedule = Schedule::new(self.model, choice);
        self.best_value = self.schedule.forward(self.model);
    }

    /// Sweeps until the phase's share of the budget is spent.
    pub(super) fn run(&mut self, allowance: &Allowance, phase: &Phase) {
        // A start that is no schedule here, for instance because a link is missing, cannot be improved.
        if self.best_value.is_infinite() {
            return;
        }
        for sweeps in 0.. {
            let spent = allowance.spent(self.trials);
            if spent >= phase.end {
                break;
            }
            let share = (spent - phase.begin).max(0.0) / (phase.end - phase.begin);
            let temperature = temperature(phase.hot, share, sweeps);
            self.move_groups(temperature);
            self.sweep(allowance, temperature, phase);
            if phase.end == 1.0 {
                allowance.report(self.best_value);
            }
        }
    }

    /// Slides the window once over the order, from the phase's first position on.
    fn sweep(&mut self, allowance: &Allowance, temperature: Micros, phase: &Phase) {
        let step = M::step(phase.method, &mut self.random);
        let tasks = self.schedule.choice.order.len();
        let width = M::WIDTH.min(tasks);
        self.schedule.sort_by_start(self.model);
        self.schedule.backward(self.model);
        self.open.clear();
        self.surroundings.free.clear();
        self.surroundings.free.resize(self.model.graph().devices, Micros::ZERO);
        let mut first = phase.first.min(tasks - width);
        self.pass(0, first);
        loop {
            let last = (first + width).min(tasks);
            (self.surroundings.first, self.surroundings.last) = (first, last);
            self.close(first, last);
            self.schedule.device_tails(self.model, last, &mut self.surroundings.device_tail);
            self.visit(temperature, step);
            if last == tasks || allowance.spent(self.trials) >= phase.end {
                break;
            }
            let next = (first + M::STRIDE).min(tasks - width);
            self.pass(first, next);
            first = next;
        }
        // An interrupted sweep leaves invalid ends behind the window.
        self.schedule.forward(self.model);
    }

    /// Advances past positions of the order.
    fn pass(&mut self, from: usize, to: usize) {
        for &task in &self.schedule.choice.order[from..to] {
            for (device, cell) in self.model.parts(&self.schedule.choice.places, task as usize) {
                self.surroundings.free[device] = self.schedule.end[cell];
            }
            self.open.push(task);
        }
    }

    /// Removes tasks without remaining successors, and computes the makespan over paths that bypass the window.
    fn close(&mut self, first: usize, last: usize) {
        let Self { open, schedule, model, surroundings, .. } = self;
        let places = &schedule.choice.places;
        let mut floor = Micros::ZERO;
        open.retain(|&task| {
            let mut waited_for = false;
            for &arc in model.graph().succs(task as usize) {
                let place = schedule.place[arc.task as usize] as usize;
                waited_for |= place >= first;
                if place >= last {
                    for (device, cell) in model.parts(places, task as usize) {
                        let part = (device, places[cell]);
                        floor = floor.max(model.path(arc, places, &schedule.tail, part, schedule.end[cell]));
                    }
                }
            }
            waited_for
        });
        surroundings.floor = floor;
    }

    /// Searches inside the window, and accepts its result.
    fn visit(&mut self, temperature: Micros, step: Step) {
        let (model, first) = (self.model, self.surroundings.first);
        self.window.load(model, &self.schedule, &self.surroundings);
        // Under the liveness model, a window whose result does not fit is rejected as a whole, so it must not move far.
        let trials = if self.limits == Limits::Lives { M::TRIALS / 4 } else { M::TRIALS };
        let heat = Heat { temperature, trials, exponential: &self.exponential };
        self.trials += self.window.search(model, &self.schedule, step, heat, &mut self.random);
        let tasks = self.window.tasks();
        let (now, best) = (self.window.now(), self.window.best());
        if best.value < self.best_value {
            let mut candidate = self.schedule.choice.clone();
            candidate.write(model.width(), first, tasks, &best);
            if self.alive_fits(&candidate) {
                self.best_value = best.value;
                self.best = candidate;
            }
        }
        if self.limits == Limits::Lives {
            self.trials += (model.graph().tasks / M::TASKS_A_TRIAL) as u64;
            let mut candidate = self.schedule.choice.clone();
            candidate.write(model.width(), first, tasks, &now);
            if !self.alive_fits(&candidate) {
                return self.schedule.write_ends(model.width(), tasks, self.window.initial_ends());
            }
        }
        self.schedule.write(model.width(), first, tasks, &now, self.window.ends());
        self.surroundings.room.clear();
        self.surroundings.room.extend_from_slice(self.window.room());
    }

    /// Returns true if the peak fits into memory, or need not be checked.
    fn alive_fits(&self, choice: &Choice<M::Place>) -> bool {
        let schedule = || Schedule::new(self.model, choice.clone());
        self.limits != Limits::Lives || schedule().alive_fits(self.instance, self.model, self.limits)
    }

    /// Tries other places for each group of co-located tasks: they change together, or not at all.
    fn move_groups(&mut self, temperature: Micros) {
        let model = self.model;
        for group in model.graph().groups.iter().filter(|group| group.len() > 1) {
            let old = self.schedule.choice.places[group[0] * model.width()..][..model.width()].to_vec();
            let mut fresh = old.clone();
            let is_there = group.iter().all(|task| self.schedule.place[*task] != ABSENT);
            if !is_there || !model.mutate(group, &mut fresh, &mut self.random) {
                continue;
            }
            self.trials += 1;
            let before = self.schedule.forward(model);
            self.schedule.choice.set(group, &fresh);
            let room = model.room(&self.schedule.choice.places);
            let overflows =
                room.iter().zip(&self.surroundings.room).any(|(room, before)| *room < Bytes::ZERO && room < before);
            let threshold = |random: &mut Random| temperature * self.exponential[random.below(self.exponential.len())];
            let is_taken = !overflows && {
                let limit = before + threshold(&mut self.random);
                let value = self.schedule.forward(model);
                let is_taken = value <= limit && self.alive_fits(&self.schedule.choice);
                if is_taken && value < self.best_value {
                    self.best_value = value;
                    self.best.clone_from(&self.schedule.choice);
                }
                is_taken
            };
            if is_taken {
                self.surroundings.room = room;
            } else {
                self.schedule.choice.set(group, &old);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::options::Options;
    use crate::model::plan::{Limit, Objective};
    use crate::solvers::search::{batch, latency};
    use crate::testing::{Rwnn, rwnn};

    /// Sweeps from a start, and compares makespans of windows with those of whole schedules.
    fn sweep<M: Model>(instance: &Instance, model: &M, start: Choice<M::Place>, seed: u64) {
        let mut annealer = Annealer::new(instance, model, &start, Random::new(seed));
        let allowance = Allowance::new(&Options { limit: Some(Limit::Iterations(u64::MAX)), ..Options::default() }, 0);
        for sweep in 0..12 {
            let heat = if sweep % 3 == 0 { Micros::ZERO } else { model.heat(Method::Anneal) };
            annealer.sweep(&allowance, heat, &Phase::new(Method::Anneal));
            let (window, whole) = (annealer.window.now().value, annealer.schedule.forward(model));
            assert!((window - whole).abs() < Micros(1e-6), "{window} is not {whole}");
        }
        let best = Schedule::new(model, annealer.best.clone()).forward(model);
        assert!((annealer.best_value - best).abs() < Micros(1e-6), "{} is {best}", annealer.best_value);
        assert!(best < Schedule::new(model, annealer.schedule.choice.clone()).forward(model) + Micros(1e-6));
    }

    /// Tests that a window computes the whole schedule's makespan from its surroundings.
    #[test]
    fn windows_compute_the_makespan_of_whole_schedules() {
        for (seed, strong) in [(1, true), (2, false), (3, false)] {
            let options = Rwnn { modules: 3, channels: 2, strong, seed, ..Rwnn::default() };
            let one = Instance::new(&rwnn(&options).unwrap(), Objective::Latency).unwrap();
            let order = |instance: &Instance| instance.order().iter().map(|task| *task as u32).collect();
            let model = latency::Model::new(&one).unwrap();
            sweep(&one, &model, Choice { places: vec![1; one.tasks()], order: order(&one) }, seed);
            let queue = Instance::new(&rwnn(&Rwnn { inputs: 16, ..options }).unwrap(), Objective::Batch).unwrap();
            let model = batch::Model::new(&queue).unwrap();
            sweep(&queue, &model, Choice { places: model.all_on(1), order: order(&queue) }, seed);
        }
    }
}
