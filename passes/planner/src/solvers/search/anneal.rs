//! Annealing by sweeps: a window slides over the order, again and again, and anneals what it covers.
//!
//! Tails come from one pass backwards before each sweep and hold for all that lies behind the window; ends are made on the
//! way. So a trial costs what its window costs, and a sweep a little more than its trials.

use super::memory::{Limits, fits};
use super::method::{Around, Heat, Method, Step, exponential_samples, temperature};
use super::model::Model;
use super::schedule::{Choice, Schedule};
use super::window::{WIDEST, Window};
use crate::model::instance::Instance;
use crate::model::plan;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::{Allowance, Budget};

/// Tasks in a window, how far it moves, and how many trials it makes before it does.
const WIDTH: usize = 14;
const STRIDE: usize = 5;
const TRIALS: usize = 100;
const _: () = assert!(WIDTH <= WIDEST);

/// Improves a schedule of one input. None where nothing better was found.
pub(super) fn latency(
    instance: &Instance,
    device: &[usize],
    start: &[Micros],
    allowance: &Allowance,
    method: Method,
) -> Option<plan::Schedule> {
    if instance.tasks() == 0 || instance.devices() > usize::from(u8::MAX) {
        return None;
    }
    let model = Model::new(instance);
    let choice = Choice::of_schedule(instance, device, start);
    let best = allowance.best_of(|random, budget| {
        let mut annealer = Annealer::new(instance, &model, choice.clone(), random);
        annealer.run(budget, method);
        (annealer.best_value, annealer.best)
    })?;
    Some(Schedule::new(&model, best).into_plan())
}

/// One chain of the search.
struct Annealer<'a> {
    instance: &'a Instance,
    model: &'a Model,
    limits: Limits,
    schedule: Schedule,
    window: Window,
    around: Around,
    random: Random,
    exponential: Vec<f64>,
    /// Tasks before the window that are waited for in it or behind it.
    open: Vec<u32>,
    best: Choice,
    best_value: Micros,
    trials: u64,
}

impl<'a> Annealer<'a> {
    fn new(instance: &'a Instance, model: &'a Model, start: Choice, random: Random) -> Self {
        let mut schedule = Schedule::new(model, start);
        let best_value = schedule.forward(model);
        Self {
            instance,
            model,
            limits: Limits::of(instance),
            window: Window::default(),
            around: Around { room: model.room(&schedule.choice.device), ..Around::default() },
            random,
            exponential: exponential_samples(),
            open: Vec::new(),
            best: schedule.choice.clone(),
            best_value,
            schedule,
            trials: 0,
        }
    }

    fn run(&mut self, budget: Budget<'_>, method: Method) {
        let mean_time = self.model.mean_time();
        for sweeps in 0.. {
            let spent = budget.spent(self.trials);
            if spent >= 1.0 {
                break;
            }
            let temperature = temperature(mean_time, spent, sweeps);
            self.move_groups(temperature);
            let step = method.of_sweep(&mut self.random);
            self.sweep(budget, temperature, step);
            budget.tell(self.best_value);
        }
    }

    /// Slides the window over the whole order once.
    fn sweep(&mut self, budget: Budget<'_>, temperature: Micros, step: Step) {
        let tasks = self.model.tasks;
        let width = WIDTH.min(tasks);
        self.schedule.sort_by_start(self.model);
        self.schedule.backward(self.model);
        self.open.clear();
        self.around.free.clear();
        self.around.free.resize(self.model.devices, 0.0);
        let mut first = 0;
        loop {
            let last = (first + width).min(tasks);
            (self.around.first, self.around.last) = (first, last);
            self.close(first, last);
            self.schedule.device_tails(last, &mut self.around.device_tail);
            self.visit(temperature, step);
            if last == tasks || budget.spent(self.trials) >= 1.0 {
                break;
            }
            let next = (first + STRIDE).min(tasks - width);
            for place in first..next {
                let task = self.schedule.choice.order[place];
                let device = usize::from(self.schedule.choice.device[task as usize]);
                self.around.free[device] = self.schedule.end[task as usize];
                self.open.push(task);
            }
            first = next;
        }
        // A sweep cut short leaves ends behind the window that are not right.
        self.schedule.forward(self.model);
    }

    /// Forgets tasks that nobody waits for any more, and finds the makespan over paths that pass by the window.
    fn close(&mut self, first: usize, last: usize) {
        let Self { open, schedule, model, around, .. } = self;
        let mut floor: Micros = 0.0;
        open.retain(|&task| {
            let task = task as usize;
            let device = usize::from(schedule.choice.device[task]);
            let mut waited_for = false;
            for &arc in model.succs(task) {
                let to = arc.task as usize;
                let place = schedule.place[to] as usize;
                waited_for |= place >= first;
                if place >= last {
                    let hop = model.hop(arc, device, usize::from(schedule.choice.device[to]));
                    floor = floor.max(schedule.end[task] + hop + schedule.tail[to]);
                }
            }
            waited_for
        });
        around.floor = floor;
    }

    /// Searches inside the window, and takes what it ends with.
    fn visit(&mut self, temperature: Micros, step: Step) {
        self.window.load(self.model, &self.schedule, &self.around);
        // With lives to check, a window that has gone astray is given up, so it must not go far.
        let trials = if self.limits == Limits::Lives { TRIALS / 4 } else { TRIALS };
        let heat = Heat { temperature, trials, exponential: &self.exponential };
        self.trials += match step {
            Step::One => self.window.anneal(self.model, heat, &mut self.random),
            Step::Several => self.window.rebuild(self.model, heat, &mut self.random),
        };
        let first = self.around.first;
        if self.window.best() < self.best_value {
            let mut candidate = self.schedule.choice.clone();
            self.window.write_best(first, &mut candidate);
            if self.alive_fits(&candidate) {
                self.best_value = self.window.best();
                self.best = candidate;
            }
        }
        if self.limits == Limits::Lives {
            let mut candidate = self.schedule.choice.clone();
            self.window.write(first, &mut candidate);
            if !self.alive_fits(&candidate) {
                return self.window.store_ends_of_start(&mut self.schedule);
            }
        }
        self.window.store(&mut self.schedule, first);
        self.around.room.clone_from(&self.window.room);
    }

    /// Whether what is alive at once fits into memory, where that has to be looked at.
    fn alive_fits(&self, choice: &Choice) -> bool {
        if self.limits != Limits::Lives {
            return true;
        }
        let schedule = Schedule::new(self.model, choice.clone());
        let (device, start) = schedule.devices_and_starts();
        fits(self.instance, &self.instance.peak_use(&device, &start))
    }

    /// Tries another device for each group of tasks that share one.
    fn move_groups(&mut self, temperature: Micros) {
        let model = self.model;
        for group in &model.groups {
            let old = self.schedule.choice.device[group[0]];
            let options: Vec<usize> = model.allowed(group[0]).filter(|device| *device != usize::from(old)).collect();
            if options.is_empty() {
                continue;
            }
            self.trials += 1;
            let device = options[self.random.below(options.len())];
            let bytes: f64 = group.iter().map(|task| model.bytes[*task]).sum();
            if bytes > self.around.room[device] {
                continue;
            }
            let before = self.schedule.forward(model);
            let limit = before + temperature * self.exponential[self.random.below(self.exponential.len())];
            group.iter().for_each(|task| self.schedule.choice.device[*task] = device as u8);
            let value = self.schedule.forward(model);
            if value <= limit && self.alive_fits(&self.schedule.choice) {
                self.around.room[device] -= bytes;
                self.around.room[usize::from(old)] += bytes;
                if value < self.best_value {
                    self.best_value = value;
                    self.best.clone_from(&self.schedule.choice);
                }
            } else {
                group.iter().for_each(|task| self.schedule.choice.device[*task] = old);
                self.schedule.forward(model);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::observer::Observer;
    use crate::model::plan::Objective;
    use crate::testing::{Rwnn, rwnn};

    /// A window knows the whole schedule's makespan by what lies around it.
    #[test]
    fn windows_say_what_whole_schedules_take() {
        for (seed, strong) in [(1, true), (2, false), (3, false)] {
            let problem = rwnn(&Rwnn { modules: 4, channels: 2, strong, seed, ..Rwnn::default() }).unwrap();
            let instance = Instance::new(&problem, Objective::Latency).unwrap();
            let model = Model::new(&instance);
            let tasks = instance.tasks();
            let start = Choice { device: vec![1; tasks], order: instance.order().iter().map(|t| *t as u32).collect() };
            let mut annealer = Annealer::new(&instance, &model, start, Random::new(seed));
            let observer = Observer::default();
            let budget = Budget::unlimited(&observer);
            for sweep in 0..12 {
                let step = if sweep % 2 == 0 { Step::One } else { Step::Several };
                annealer.sweep(budget, model.mean_time(), step);
                let whole = annealer.schedule.forward(&model);
                assert!((annealer.window.value - whole).abs() < 1e-6, "{} is {whole}", annealer.window.value);
            }
            let best = Schedule::new(&model, annealer.best.clone()).forward(&model);
            assert!((annealer.best_value - best).abs() < 1e-6, "{} is {best}", annealer.best_value);
            assert!(best < Schedule::new(&model, annealer.schedule.choice.clone()).forward(&model) + 1e-6);
        }
    }
}
