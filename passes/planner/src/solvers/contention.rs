//! Plans with contention between transfers, and plans for cold starts, in which parameters are copied first.
//!
//! A schedule of the relaxed problem (no buses, all parameters resident) is retimed under contention and then improved
//! by annealing over devices, order and parameter routes; buses are allocated like devices. A lower bound of the
//! relaxed problem holds for the problem too, since contention only adds constraints; for cold starts see [`bound`].

mod anneal;
mod bound;
mod choice;
mod greedy;
mod lane;
mod memory;
mod model;
mod simulate;

use std::collections::BTreeSet;

use crate::bounds;
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::{Batch, Bound, LaunchRule, Objective, ParameterCopy, Schedule, Transfer, closes};
use crate::model::problem::{Contention, MemoryModel, Problem};
use crate::model::units::Micros;
use crate::solvers::chains::Allowance;
use crate::solvers::incumbent::Incumbent;
use crate::solvers::list;
use crate::solvers::timing::launches;

pub(crate) use anneal::Chain;
use anneal::anneal;
use bound::cold_bound;
pub(crate) use choice::{Choice, Job, jobs};
use greedy::earliest_finish;
pub(crate) use greedy::extend_earliest_finish;
use model::Launch;
pub(crate) use model::{Model, Route};
pub(crate) use simulate::Simulator;

/// Default product of trials and launches: a few seconds on two cores.
const EFFORT: u64 = 60_000_000;
const MOST_TRIALS: u64 = 400_000;

/// A schedule with its transfers and parameter copies.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Devices and starts of launches.
    pub schedule: Schedule,
    /// Transfers of tensors; empty without contention.
    pub transfers: Vec<Transfer>,
    /// Copies of parameters; empty for a warm start.
    pub copies: Vec<ParameterCopy>,
}

/// A schedule with its transfers, and a lower bound on every schedule.
pub(crate) struct TimedSolution {
    pub(crate) timed: Timed,
    pub(crate) bound: Bound,
}

/// Returns the best bound: of those of this problem and `found`, which a solver proved for the relaxed problem.
pub(crate) fn best_bound(
    problem: &Problem,
    objective: Objective,
    launches: LaunchRule,
    found: Option<Bound>,
) -> Result<Bound, Error> {
    // Transfers that start later shorten live ranges: a plan that does not fit in the relaxation may fit here.
    let by_lives = problem.memory_model == MemoryModel::Liveness
        && found.is_some()
        && Instance::under(&problem.relaxed(), objective, launches)?.memory_binds();
    let found = found.filter(|_| !reads_directly(problem) && !by_lives);
    Ok(all_bounds(problem, objective, launches)?.into_iter().chain(found).fold(Bound::none(), Bound::or))
}

/// Returns all bounds. Those of warm starts without contention hold, as contention only adds constraints and nothing is
/// faster in a cold start. But direct reads keep parameters on the host, so more may fit than in a warm start: then the
/// relaxation drops memory.
pub(crate) fn all_bounds(problem: &Problem, objective: Objective, launches: LaunchRule) -> Result<Vec<Bound>, Error> {
    let free = if reads_directly(problem) { problem.relaxed_without_memory() } else { problem.relaxed() };
    let mut all = bounds::all(&Instance::under(&free, objective, launches)?);
    if problem.cold.is_some() {
        let instance = Instance::new(&problem.relaxed_without_memory(), objective)?;
        all.extend(cold_bound(&Model::new(problem, objective, &instance, &each_once(&instance)))?);
    }
    Ok(all)
}

fn reads_directly(problem: &Problem) -> bool {
    problem.cold.as_ref().is_some_and(|cold| cold.direct.is_some())
}

/// Retimes a schedule. If `search` is given, which is a lower bound, also improves on it.
pub(crate) fn time(
    problem: &Problem,
    start: &Schedule,
    search: Option<Micros>,
    options: &Options,
) -> Result<Timed, Error> {
    time_and(problem, start, |incumbent| {
        if start.objective() == Objective::Latency && (search.is_some() || incumbent.best.solution().is_none()) {
            incumbent.take(starts(incumbent.model));
        }
        search.iter().for_each(|bound| incumbent.anneal(*bound, options));
    })
}

/// Retimes a schedule without other changes. Buses are allocated in the order of starts.
pub fn time_as_it_is(problem: &Problem, start: &Schedule) -> Result<Timed, Error> {
    time_and(problem, start, |_| {})
}

/// Retimes a schedule, applies `improve`, and returns the best plan.
fn time_and(
    problem: &Problem,
    start: &Schedule,
    improve: impl FnOnce(&mut ChoiceIncumbent<'_>),
) -> Result<Timed, Error> {
    let objective = start.objective();
    // The rule makes no difference to the times of given launches.
    let instance = Instance::under(&problem.relaxed_without_memory(), objective, LaunchRule::Many)?;
    let batches = launches(start);
    let model = Model::new(problem, objective, &instance, &batches);
    let mut incumbent = ChoiceIncumbent::new(&model);
    incumbent.take([from_schedule(&model, &batches)]);
    improve(&mut incumbent);
    incumbent.timed()
}

/// Returns the budget of a search.
fn allowance(model: &Model<'_>, options: &Options) -> Allowance {
    Allowance::new(options, (EFFORT / model.launches.len().max(1) as u64).min(MOST_TRIALS))
}

/// Incumbent among feasible choices.
pub(crate) struct ChoiceIncumbent<'a> {
    model: &'a Model<'a>,
    binds: bool,
    best: Incumbent<Choice>,
}

impl<'a> ChoiceIncumbent<'a> {
    pub(crate) fn new(model: &'a Model<'a>) -> Self {
        Self { model, binds: memory::binds(model), best: Incumbent::new(Bound::none()) }
    }

    /// Updates the incumbent with the best of some choices.
    pub(crate) fn take(&mut self, choices: impl IntoIterator<Item = Choice>) {
        for choice in choices {
            let simulator = Simulator::of(self.model, &choice);
            let fits = || !self.binds || memory::fits(self.model, &choice, &simulator);
            if simulator.value < self.best.value() && fits() {
                self.best.take(simulator.value, choice, "buses");
            }
        }
    }

    /// Anneals from the incumbent, unless a bound proves it optimal.
    pub(crate) fn anneal(&mut self, bound: Micros, options: &Options) {
        if let Some(start) = self.best.solution().filter(|_| !closes(bound, self.best.value())) {
            self.take(anneal(self.model, start, &allowance(self.model, options)));
        }
    }

    /// Reports the incumbent's value.
    pub(crate) fn report(&self, options: &Options) {
        options.observer.plan(self.best.value());
    }

    pub(crate) fn timed(self) -> Result<Timed, Error> {
        let none = "no plan was found that keeps to memory and links with the times of buses and copies";
        let value = self.best.value();
        let mut choice = self.best.into_parts().0.ok_or_else(|| Error::NotFound(none.to_owned()))?;
        simplify_routes(self.model, &mut choice, value, self.binds);
        Ok(timed(self.model, &choice))
    }
}

/// Reverts routes of parameters to direct copies from the host where that is no worse.
fn simplify_routes(model: &Model<'_>, choice: &mut Choice, value: Micros, binds: bool) {
    for launch in 0..model.launches.len() {
        let route = choice.route[launch];
        let plain = model.routes(launch, usize::from(choice.device[launch])).first().copied().unwrap_or(route);
        if route == plain || !model.needs_parameters(launch, usize::from(choice.device[launch])) {
            continue;
        }
        choice.route[launch] = plain;
        let simulator = Simulator::of(model, choice);
        if simulator.value > value || (binds && !memory::fits(model, choice, &simulator)) {
            choice.route[launch] = route;
        }
    }
}

/// Returns one launch for each task, on an arbitrary device.
pub(crate) fn each_once(instance: &Instance) -> Vec<Batch> {
    (0..instance.tasks()).map(|node| Batch { node, device: 0, inputs: vec![0], start: Micros::ZERO }).collect()
}

/// Returns the choice that a schedule implies. Launches whose parameters cannot reach their device move to the first
/// device that they can reach.
pub(crate) fn from_schedule(model: &Model<'_>, batches: &[Batch]) -> Choice {
    let mut placed: Vec<&Batch> = batches.iter().collect();
    placed.sort_by_key(|batch| (batch.node, batch.device));
    let start: Vec<Micros> = placed.iter().map(|batch| batch.start).collect();
    let device = |(launch, batch): (usize, &&Batch)| {
        let reaches = !model.routes(launch, batch.device).is_empty();
        let elsewhere = || model.allowed(launch).first().copied();
        if reaches { batch.device } else { elsewhere().unwrap_or(batch.device) }
    };
    let devices = placed.iter().enumerate().map(|placed| device(placed) as u16).collect();
    Choice::new(model, devices, &start)
}

/// Returns bus-aware greedy starts in several orders: on all devices, without the host, and with everything possible on
/// the host, which may be the only one that fits where device memory is small.
pub(crate) fn starts(model: &Model<'_>) -> Vec<Choice> {
    let instance = model.instance;
    let host = model.cold.as_ref().map(|cold| cold.host);
    let mut found = Vec::new();
    for tasks in [instance.order().to_vec(), list::by_upward_rank(instance), list::breadth_first(instance)] {
        let order: Vec<usize> = tasks.iter().flat_map(|task| model.of_task[*task].iter().copied()).collect();
        found.extend(earliest_finish(model, &order, &[]));
        found.extend(host.and_then(|host| earliest_finish(model, &order, &[host])));
    }
    let order: Vec<usize> = instance.order().iter().flat_map(|task| model.of_task[*task].iter().copied()).collect();
    let others = |host: usize| (0..model.devices).filter(|device| *device != host).collect::<Vec<_>>();
    found.extend(host.and_then(|host| earliest_finish(model, &order, &others(host))));
    found
}

/// Builds the plan of a choice.
fn timed(model: &Model<'_>, choice: &Choice) -> Timed {
    let simulator = Simulator::of(model, choice);
    let of = |launch: usize| (usize::from(choice.device[launch]), simulator.start[launch]);
    let makespan = simulator.value;
    let schedule = if model.is_queue() {
        let batch = |(launch, of_launch): (usize, &Launch)| {
            let (device, start) = of(launch);
            Batch { node: of_launch.task, device, inputs: of_launch.inputs.clone(), start }
        };
        Schedule::Batch { batches: model.launches.iter().enumerate().map(batch).collect(), makespan }
    } else {
        let (device, start) = (0..model.launches.len()).map(of).unzip();
        Schedule::Latency { device, start, makespan }
    };
    // Merged classes of inputs may have no input in common.
    let transfer = |moved: &simulate::Move| {
        let simulate::Move { tensor, from, to, start, end, producer, .. } = *moved;
        let Launch { task, inputs, .. } = &model.launches[producer];
        let readers = model.instance.tensors()[tensor].consumers.iter().flat_map(|task| &model.of_task[*task]);
        let here = readers.filter(|reader| usize::from(choice.device[**reader]) == to);
        let read: BTreeSet<u32> = here.flat_map(|reader| &model.launches[*reader].inputs).copied().collect();
        let moved: Vec<u32> = inputs.iter().copied().filter(|input| read.contains(input)).collect();
        // Inputs identify the launch where several compute the tensor on the same device.
        let alike = model.of_task[*task].iter().filter(|other| usize::from(choice.device[**other]) == from).count();
        (!moved.is_empty()).then(|| Transfer { tensor, from, to, inputs: (alike > 1).then_some(moved), start, end })
    };
    let mut transfers: Vec<Transfer> = simulator.moves.iter().filter_map(transfer).collect();
    if model.contention == Contention::Off {
        // Without contention, transfer times follow from the schedule and are not listed.
        transfers.clear();
    }
    transfers.sort_by(|a, b| a.start.total_cmp(&b.start).then((a.tensor, a.to).cmp(&(b.tensor, b.to))));
    let copy = |hop: &simulate::Hop| {
        let simulate::Hop { launch, via, to, start, end } = *hop;
        ParameterCopy { node: model.launches[launch].task, to, via, start, end }
    };
    let mut copies: Vec<ParameterCopy> = simulator.hops.iter().map(copy).collect();
    copies.sort_by(|a, b| a.start.total_cmp(&b.start).then((a.node, a.to).cmp(&(b.node, b.to))));
    Timed { schedule, transfers, copies }
}
