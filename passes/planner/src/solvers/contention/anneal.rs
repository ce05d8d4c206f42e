//! Simulated annealing over choices: devices, routes of parameters, and the order in which buses and devices are
//! allocated.

use super::choice::{Choice, Job};
use super::memory;
use super::model::{Model, Route};
use super::simulate::{Mark, Simulator};
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::Allowance;

/// Initial temperature in mean times of a launch; it falls to zero. With `MANY` jobs it is halved, since each has fewer
/// trials to cool down in.
const HOT: f64 = 0.5;
const MANY: f64 = 100.0;
/// Trials per checkpoint: jobs before it stay fixed and are not simulated again.
const ROUND: u64 = 100;
/// Number of equal parts of the order at whose beginnings checkpoints are set.
const PARTS: usize = 4;
/// Maximum distance that a job moves in the order.
const FAR: usize = 40;
/// Maximum number of consecutive launches that move together.
const LONG: usize = 12;

/// Returns the best choice of several chains; `None` if none improves on the start.
pub(super) fn anneal(model: &Model<'_>, start: &Choice, allowance: &Allowance) -> Option<Choice> {
    let before = Simulator::of(model, start).value;
    let (value, best) = allowance.best_of(|random| {
        let mut chain = Chain::new(model, start.clone(), 0, start.order.len(), random);
        chain.search(allowance);
        (chain.best_value, (chain.best_value, chain.best))
    })?;
    (value < before).then_some(best)
}

/// One annealing chain. Only jobs in `from..to` of the order change, and later ones are left out.
pub(crate) struct Chain<'a> {
    model: &'a Model<'a>,
    from: usize,
    to: usize,
    choice: Choice,
    value: Micros,
    pub(crate) best: Choice,
    pub(crate) best_value: Micros,
    simulator: Simulator<'a>,
    random: Random,
    binds: bool,
    hot: Micros,
    /// By launch: the devices that it can run on.
    allowed: Vec<Vec<usize>>,
    trials: u64,
}

/// Changes of a trial, so that it can be undone.
#[derive(Default)]
struct Undo {
    placed: Vec<(usize, u16, Route)>,
    rotated: Option<(usize, usize, bool)>,
    toggled: Option<usize>,
}

impl<'a> Chain<'a> {
    pub(crate) fn new(model: &'a Model<'a>, start: Choice, from: usize, to: usize, random: Random) -> Self {
        let mut simulator = Simulator::new(model);
        let value = simulator.run(&start, &start.order[..to]);
        let times = start.order[from..to].iter().map(|job| {
            let launch = job.launch();
            model.time(launch, usize::from(start.device[launch]))
        });
        let count = (to - from).max(1) as f64;
        let hot = HOT / (1.0 + count / MANY) * times.sum::<Micros>() / count;
        let allowed = (0..model.launches.len()).map(|launch| model.allowed(launch)).collect();
        Self {
            model,
            from,
            to,
            best: start.clone(),
            best_value: value,
            choice: start,
            value,
            simulator,
            random,
            binds: memory::binds(model),
            hot,
            allowed,
            trials: 0,
        }
    }

    /// Continues from another choice for the same jobs, if that is better.
    pub(crate) fn start_from(&mut self, choice: Choice) {
        let value = Simulator::new(self.model).run(&choice, &choice.order[..self.to]);
        if value < self.best_value {
            (self.choice, self.value) = (choice.clone(), value);
            (self.best, self.best_value) = (choice, value);
        }
    }

    /// Runs until the budget is spent.
    fn search(&mut self, allowance: &Allowance) {
        let mut reported = Micros::INFINITY;
        loop {
            let spent = allowance.spent(self.trials);
            if spent >= 1.0 || self.to <= self.from {
                break;
            }
            self.round(spent, ROUND);
            if self.best_value < reported {
                reported = self.best_value;
                allowance.report(reported);
            }
        }
    }

    /// Runs a number of trials.
    pub(crate) fn run_trials(&mut self, trials: u64) {
        while self.trials < trials && self.to > self.from {
            self.round(self.trials as f64 / trials as f64, ROUND.min(trials - self.trials));
        }
    }

    /// Runs trials from one checkpoint. The result is evaluated again from the beginning, as changed readers may affect
    /// transfers before the checkpoint.
    fn round(&mut self, spent: f64, trials: u64) {
        let temperature = self.hot * (1.0 - spent) * (1.0 - spent);
        let length = self.to - self.from;
        let first = self.from + length * self.random.below(PARTS) / PARTS;
        let mark = self.begin(first);
        for _ in 0..trials {
            self.trials += 1;
            self.trial(first, &mark, temperature);
        }
        let mark = self.begin(self.from);
        self.value = self.measure(self.from, &mark);
        if self.value.is_infinite() || !self.fits() {
            self.choice.clone_from(&self.best);
            self.value = self.best_value;
        } else if self.value < self.best_value {
            self.best_value = self.value;
            self.best.clone_from(&self.choice);
        }
    }

    /// Simulates the jobs before a position.
    fn begin(&mut self, place: usize) -> Mark {
        self.simulator = Simulator::new(self.model);
        self.simulator.run(&self.choice, &self.choice.order[..place]);
        self.simulator.mark()
    }

    fn measure(&mut self, first: usize, mark: &Mark) -> Micros {
        self.simulator.rewind(mark);
        self.simulator.run(&self.choice, &self.choice.order[first..self.to])
    }

    fn fits(&self) -> bool {
        !self.binds || self.to < self.choice.order.len() || memory::fits(self.model, &self.choice, &self.simulator)
    }

    fn trial(&mut self, first: usize, mark: &Mark, temperature: Micros) {
        let Some(undo) = self.change(first) else { return };
        let limit = self.value - temperature * (1.0 - self.random.unit()).ln();
        let value = self.measure(first, mark);
        if value <= limit && self.fits() {
            self.value = value;
            return;
        }
        self.undo(undo);
    }

    /// Applies a random change at or after a position; `None` if it has no effect.
    fn change(&mut self, first: usize) -> Option<Undo> {
        let place = first + self.random.below(self.to - first);
        let launch = self.choice.order[place].launch();
        match self.random.below(8) {
            0 | 1 => self.relocate(&[launch]),
            2 => {
                let long = 2 + self.random.below(LONG - 1);
                let jobs = &self.choice.order[place..(place + long).min(self.to)];
                let mut some: Vec<usize> = jobs.iter().map(|job| job.launch()).collect();
                some.sort_unstable();
                some.dedup();
                self.relocate(&some)
            }
            3 if self.model.cold.is_some() => self.another_route(launch),
            4 => self.toggle(launch),
            _ => self.shift(place, first),
        }
    }

    /// Moves launches to a device that one of them can run on.
    fn relocate(&mut self, launches: &[usize]) -> Option<Undo> {
        let (model, random) = (self.model, &mut self.random);
        let options = &self.allowed[launches[random.below(launches.len())]];
        let device = options[random.below(options.len())];
        let mut undo = Undo::default();
        for &launch in launches {
            let group = &model.instance.groups()[model.instance.group_of(model.launches[launch].task)];
            // In a split queue, only tasks without co-located ones move: inputs of the others may be on other devices.
            if group.len() > 1 && model.instance.inputs() > 1 {
                continue;
            }
            let members: Vec<usize> = group.iter().flat_map(|task| &model.of_task[*task]).copied().collect();
            let members = if group.len() > 1 { members } else { vec![launch] };
            let taken = |member: usize| {
                let others = &model.of_task[model.launches[member].task];
                others.iter().any(|other| *other != member && usize::from(self.choice.device[*other]) == device)
            };
            if members.iter().any(|member| taken(*member) || !self.allowed[*member].contains(&device)) {
                continue;
            }
            for member in members {
                if usize::from(self.choice.device[member]) == device {
                    continue;
                }
                let routes = model.routes(member, device);
                undo.placed.push((member, self.choice.device[member], self.choice.route[member]));
                self.choice.device[member] = device as u16;
                self.choice.route[member] = routes[self.random.below(routes.len())];
            }
        }
        (!undo.placed.is_empty()).then_some(undo)
    }

    fn another_route(&mut self, launch: usize) -> Option<Undo> {
        let routes = self.model.routes(launch, usize::from(self.choice.device[launch]));
        let route = routes[self.random.below(routes.len())];
        let before = self.choice.route[launch];
        if route == before {
            return None;
        }
        self.choice.route[launch] = route;
        Some(Undo { placed: vec![(launch, self.choice.device[launch], before)], ..Undo::default() })
    }

    fn toggle(&mut self, launch: usize) -> Option<Undo> {
        let made = &self.model.made_by[self.model.launches[launch].task];
        let tensor = *made.get(self.random.below(made.len()))?;
        self.choice.eager[tensor] = !self.choice.eager[tensor];
        Some(Undo { toggled: Some(tensor), ..Undo::default() })
    }

    /// Moves a job earlier or later in the order, as far as precedences allow.
    fn shift(&mut self, place: usize, first: usize) -> Option<Undo> {
        let far = 1 + self.random.below(FAR);
        let order = &mut self.choice.order;
        let job = order[place];
        let later = self.random.chance(0.5);
        let mut to = place;
        if later {
            while to + 1 < self.to && to - place < far && !waits(self.model, order[to + 1], job) {
                to += 1;
            }
            order[place..=to].rotate_left(1);
        } else {
            while to > first && place - to < far && !waits(self.model, job, order[to - 1]) {
                to -= 1;
            }
            order[to..=place].rotate_right(1);
        }
        (to != place).then(|| Undo { rotated: Some((place.min(to), place.max(to), later)), ..Undo::default() })
    }

    fn undo(&mut self, undo: Undo) {
        for (launch, device, route) in undo.placed {
            (self.choice.device[launch], self.choice.route[launch]) = (device, route);
        }
        if let Some(tensor) = undo.toggled {
            self.choice.eager[tensor] = !self.choice.eager[tensor];
        }
        match undo.rotated {
            Some((low, high, true)) => self.choice.order[low..=high].rotate_right(1),
            Some((low, high, false)) => self.choice.order[low..=high].rotate_left(1),
            None => {}
        }
    }
}

/// Returns true if `job` must come after `other`.
fn waits(model: &Model<'_>, job: Job, other: Job) -> bool {
    match (job, other) {
        (Job::Run(launch), Job::Fetch(of)) => launch == of,
        (Job::Run(launch), Job::Run(before)) => {
            let (launch, before) = (launch as usize, before as usize);
            let task = model.launches[before].task;
            model.predecessors(launch).iter().any(|arc| arc.task == task) && model.share_inputs(launch, before)
        }
        (Job::Fetch(_), _) => false,
    }
}
