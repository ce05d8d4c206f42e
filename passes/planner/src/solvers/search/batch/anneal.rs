//! Annealing of a queue's schedule: a window slides over the order, again and again, and is searched wherever it stops.

use super::groups::alive_fits;
use super::model::Model;
use super::schedule::{Choice, Schedule, rest};
use super::shake::Shaker;
use super::window::Window;
use crate::model::instance::Instance;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::Budget;
use crate::solvers::search::memory::Limits;
use crate::solvers::search::method::{Around, Heat, Method, exponential_samples, temperature};

/// Places in a window, and how far it moves each time.
const WIDTH: usize = 16;
const STRIDE: usize = 6;
/// How often tasks of a window are put back before it moves on.
const TRIALS: usize = 16;
/// Looking at what is alive takes as long as a trial for so many tasks.
const TASKS_A_TRIAL: usize = 16;
/// Times the temperature that a search of single steps has: here every step ends where nothing near is better. Where memory
/// binds, little can change without making something worse first.
const HEAT: f64 = 0.5;
const HEAT_IF_TIGHT: f64 = 2.0;

/// One chain: the best value, and the choice that has it.
pub(super) fn run(
    instance: &Instance,
    model: &Model,
    start: &Choice,
    random: Random,
    budget: Budget<'_>,
    method: Method,
) -> (Micros, Choice) {
    let mut annealer = Annealer::new(instance, model, start, random);
    annealer.run(budget, &Leg { hot: hot(model, method), ..Leg::default() });
    (annealer.best_value, annealer.best)
}

/// The temperature to begin with. Large neighbourhoods take nothing that is worse.
pub(super) fn hot(model: &Model, method: Method) -> Micros {
    match method {
        Method::Anneal => model.mean_time() * if model.tight { HEAT_IF_TIGHT } else { HEAT },
        Method::Neighbourhoods => 0.0,
    }
}

/// A part of the search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// The first place of the order that it changes.
    pub(super) first: usize,
    /// The share of the budget that is gone when it begins, and when it is over.
    pub(super) begin: f64,
    pub(super) end: f64,
    /// What the temperature begins with; see [`temperature`].
    pub(super) hot: Micros,
}

impl Default for Leg {
    /// Everything, with no heat.
    fn default() -> Self {
        Self { first: 0, begin: 0.0, end: 1.0, hot: 0.0 }
    }
}

pub(super) struct Annealer<'a> {
    instance: &'a Instance,
    pub(super) model: &'a Model,
    limits: Limits,
    pub(super) schedule: Schedule,
    window: Window,
    shaker: Shaker,
    pub(super) around: Around,
    pub(super) random: Random,
    pub(super) exponential: Vec<f64>,
    /// Tasks before the window that are waited for in it or behind it.
    open: Vec<u32>,
    pub(super) best: Choice,
    pub(super) best_value: Micros,
    pub(super) trials: u64,
}

impl<'a> Annealer<'a> {
    pub(super) fn new(instance: &'a Instance, model: &'a Model, start: &Choice, random: Random) -> Self {
        let mut schedule = Schedule::new(model, start.clone());
        Self {
            instance,
            model,
            limits: Limits::of(instance),
            window: Window::default(),
            shaker: Shaker::default(),
            around: Around { room: model.room(&start.cuts), ..Around::default() },
            random,
            exponential: exponential_samples(),
            open: Vec::new(),
            best: start.clone(),
            best_value: schedule.forward(model),
            schedule,
            trials: 0,
        }
    }

    /// Sweeps until the leg's share of the budget is gone.
    pub(super) fn run(&mut self, budget: Budget<'_>, leg: &Leg) {
        // A start that is not a schedule here, for instance because a link is missing, cannot be improved.
        if self.best_value.is_infinite() {
            return;
        }
        for sweeps in 0.. {
            let spent = budget.spent(self.trials);
            if spent >= leg.end {
                break;
            }
            let share = (spent - leg.begin).max(0.0) / (leg.end - leg.begin);
            let temperature = temperature(leg.hot, share, sweeps);
            self.move_groups(temperature);
            self.sweep(budget, temperature, leg);
            if leg.end == 1.0 {
                budget.tell(self.best_value);
            }
        }
    }

    /// Slides the window once over the order, from the leg's first place on.
    fn sweep(&mut self, budget: Budget<'_>, temperature: Micros, leg: &Leg) {
        let tasks = self.schedule.choice.order.len();
        let width = WIDTH.min(tasks);
        self.schedule.sort_by_start(self.model);
        self.schedule.backward(self.model);
        self.open.clear();
        self.around.free.clear();
        self.around.free.resize(self.model.devices, 0.0);
        let mut first = leg.first.min(tasks - width);
        self.pass(0, first);
        loop {
            let last = (first + width).min(tasks);
            (self.around.first, self.around.last) = (first, last);
            self.close(first, last);
            self.schedule.device_tails(last, &mut self.around.device_tail);
            self.visit(temperature);
            if last == tasks || budget.spent(self.trials) >= leg.end {
                break;
            }
            let next = (first + STRIDE).min(tasks - width);
            self.pass(first, next);
            first = next;
        }
        // A sweep cut short leaves ends behind the window that are not right.
        self.schedule.forward(self.model);
    }

    /// Leaves places behind.
    fn pass(&mut self, from: usize, to: usize) {
        let devices = self.model.devices;
        for place in from..to {
            let task = self.schedule.choice.order[place];
            for device in 0..devices {
                let cell = task as usize * devices + device;
                if self.schedule.choice.cuts[cell] != 0 {
                    self.around.free[device] = self.schedule.end[cell];
                }
            }
            self.open.push(task);
        }
    }

    /// Forgets tasks that nobody waits for any more, and finds the makespan over paths that pass by the window.
    fn close(&mut self, first: usize, last: usize) {
        let Self { open, schedule, model, around, .. } = self;
        let devices = model.devices;
        let mut floor: Micros = 0.0;
        open.retain(|&task| {
            let row = task as usize * devices;
            let mut waited_for = false;
            for &arc in model.graph.succs(task as usize) {
                let place = schedule.place[arc.task as usize] as usize;
                waited_for |= place >= first;
                if place >= last {
                    let to = arc.task as usize * devices;
                    let (cut, tails) = (&schedule.choice.cuts[to..to + devices], &schedule.tail[to..to + devices]);
                    for device in 0..devices {
                        let part = schedule.choice.cuts[row + device];
                        if part != 0 {
                            floor = floor.max(schedule.end[row + device] + rest(model, arc, cut, tails, device, part));
                        }
                    }
                }
            }
            waited_for
        });
        around.floor = floor;
    }

    /// Searches inside the window, and takes what it ends with.
    fn visit(&mut self, temperature: Micros) {
        self.window.load(self.model, &self.schedule, &self.around);
        // With lives to check, a window that has gone astray is given up, so it must not go far.
        let trials = if self.limits == Limits::Lives { TRIALS / 4 } else { TRIALS };
        let heat = Heat { temperature, trials, exponential: &self.exponential };
        self.trials += self.shaker.shake(&mut self.window, self.model, &self.schedule, heat, &mut self.random);
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
            self.trials += (self.model.tasks / TASKS_A_TRIAL) as u64;
            let mut candidate = self.schedule.choice.clone();
            self.window.write(first, &mut candidate);
            if !self.alive_fits(&candidate) {
                return self.window.store_ends_of_start(&mut self.schedule);
            }
        }
        self.window.store(&mut self.schedule, first);
        self.around.room.clone_from(&self.window.now.room);
    }

    /// Whether what is alive at once fits into memory, where that has to be looked at.
    pub(super) fn alive_fits(&self, choice: &Choice) -> bool {
        alive_fits(self.instance, self.model, self.limits, choice)
    }

    /// Adds tasks at the end of the order, with their cuts.
    pub(super) fn append(&mut self, tasks: &[u32], cuts: &[u64]) {
        let mut choice = self.schedule.choice.clone();
        for (&task, cut) in tasks.iter().zip(cuts.chunks(self.model.devices)) {
            choice.order.push(task);
            choice.cuts[task as usize * cut.len()..][..cut.len()].copy_from_slice(cut);
        }
        self.restart(choice);
    }

    /// Goes on from a choice.
    pub(super) fn restart(&mut self, choice: Choice) {
        self.around.room = self.model.room(&choice.cuts);
        self.best.clone_from(&choice);
        self.schedule = Schedule::new(self.model, choice);
        self.best_value = self.schedule.forward(self.model);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::observer::Observer;
    use crate::model::plan::Objective;
    use crate::testing::{Rwnn, rwnn};

    #[test]
    fn windows_say_what_whole_schedules_take() {
        for (seed, strong) in [(1, true), (2, false)] {
            let options = Rwnn { modules: 3, channels: 2, strong, seed, inputs: 16, ..Rwnn::default() };
            let instance = Instance::new(&rwnn(&options).unwrap(), Objective::Batch).unwrap();
            let model = Model::new(&instance).unwrap();
            let all = u64::MAX >> (64 - model.units);
            let cuts = (0..model.tasks * model.devices).map(|cell| if cell % model.devices == 1 { all } else { 0 });
            let order = instance.order().iter().map(|task| *task as u32).collect();
            let start = Choice { cuts: cuts.collect(), order };
            let mut annealer = Annealer::new(&instance, &model, &start, Random::new(seed));
            for sweep in 0..8 {
                let heat = if sweep % 2 == 0 { model.mean_time() } else { 0.0 };
                annealer.sweep(Budget::unlimited(&Observer::default()), heat, &Leg::default());
                let whole = annealer.schedule.forward(&model);
                assert!((annealer.window.now.value - whole).abs() < 1e-6, "{} is {whole}", annealer.window.now.value);
            }
            let best = Schedule::new(&model, annealer.best.clone()).forward(&model);
            assert!((annealer.best_value - best).abs() < 1e-6, "{} is {best}", annealer.best_value);
        }
    }
}
