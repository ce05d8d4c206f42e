//! Planning of pipelines on devices of their own.

use std::collections::BTreeMap;
use std::time::Instant;

use super::Fleet;
use super::anneal::anneal;
use super::pipe::Pipe;
use super::proof::Proof;
use super::start::ORDERED;
use crate::mip::Limits;
use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit, Proof as Rests, Schedule, Stages};
use crate::model::problem::Problem;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::Solution;
use crate::solvers::chains::Allowance;
use crate::solvers::incumbent::Incumbent;
use crate::solvers::pipeline::{auto as alike, bounds, brief, brkga, milp};

/// Moves that annealing tries when nothing is said.
const MOVES: u64 = 4_000_000;
/// Iterations of a program that looks for any pipeline.
const START_ITERATIONS: u64 = 10_000;
/// Of more tasks, programs take too long for a question that is asked many times.
const FEW_TASKS: usize = 40;
/// Sequences of devices that are tried on stages of equal ones.
const SEQUENCES: usize = 100;
/// Shares of the time that is left: for a first attempt at a proof, and then for a longer search.
const PROOF_SHARE: f64 = 0.3;
const SEARCH_SHARE: f64 = 0.5;
/// The share of a search without shared devices, where they are.
const ALONE_SHARE: f64 = 0.3;

/// Algorithms that find pipelines.
const ANNEAL: &str = "anneal";
const PROGRAM: &str = "milp";

/// State while a pipeline is planned.
struct Plans<'a> {
    fleet: Fleet,
    options: &'a Options,
    since: Instant,
    best: Incumbent<Pipe>,
    proof: Proof,
    /// The value when a proof was last tried.
    tried: Option<Micros>,
}

/// A short search, an attempt at a proof, a longer search, and what time is left for a proof or at least a bound. Where devices
/// are shared, first the same without, which is a good start.
pub(crate) fn auto(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let mut plans = Plans::new(problem, options)?;
    if options.shared_devices {
        let alone = Options { shared_devices: false, ..options.share_since(plans.since, ALONE_SHARE) };
        // Without sharing there may be no plan.
        if let Ok(mut others) = Plans::new(problem, &alone) {
            others.search();
            others.translated(&plans.fleet).into_iter().for_each(|pipe| plans.take(pipe, others.best.by()));
        }
    }
    plans.search();
    options.observer.taken(plans.best.value(), plans.best.by());
    Ok(plans.solution())
}

/// Annealing alone.
pub(in crate::solvers::pipeline) fn annealed(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let mut plans = Plans::new(problem, options)?;
    plans.simply()?;
    plans.anneal(&options.left_since(plans.since));
    Ok(plans.solution())
}

/// Orders, cut among devices.
pub(in crate::solvers::pipeline) fn slicegraph(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let mut plans = Plans::new(problem, options)?;
    plans.simply()?;
    if plans.fleet.is_even() && plans.fleet.working > 0 {
        let model = plans.fleet.at_best();
        // Without ports, values are not those of the plan.
        let unheard = Options { observer: options.observer.of_bounds(), ..options.clone() };
        let sliced = brkga::search(&model, plans.best.bound().verified_value(), &unheard, None);
        plans.take_stages(&sliced.blocks(), ORDERED);
    } else if let Some(pipe) = plans.fleet.search_orders(plans.pipe(), plans.best.bound().verified_value(), options) {
        plans.take(pipe, ORDERED);
    }
    Ok(plans.solution())
}

/// The integer program, from a short search.
pub(in crate::solvers::pipeline) fn exact(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let mut plans = Plans::new(problem, options)?;
    plans.simply()?;
    plans.anneal(&brief(options));
    plans.exact(1.0)?;
    Ok(plans.solution())
}

/// True if some pipeline is found; of few tasks by a program, too.
pub(in crate::solvers::pipeline) fn has_plan(problem: &Problem, options: &Options) -> bool {
    if problem.nodes.len() > FEW_TASKS {
        return Fleet::new(problem, options).is_ok_and(|fleet| fleet.start(options.seed).is_some());
    }
    let options = Options { limit: Some(Limit::Iterations(START_ITERATIONS)), ..options.clone() };
    Plans::new(problem, &options).is_ok()
}

/// Every bound by name, weakest first.
pub(crate) fn all_bounds(problem: &Problem, options: &Options) -> Result<Vec<Bound>, Error> {
    let mut plans = Plans::new(problem, options)?;
    let mut all = vec![plans.best.bound().clone()];
    let parts = plans.fleet.parts(plans.best.value(), &plans.limits(1.0))?;
    all.extend(parts.clone());
    parts.into_iter().for_each(|bound| plans.best.prove(bound));
    plans.as_if_equal();
    plans.anneal(&brief(options));
    plans.evenly();
    plans.exact(1.0)?;
    if all.iter().all(|bound| bound.by != plans.best.bound().by) {
        all.push(plans.best.bound().clone());
    }
    Ok(all)
}

/// Something to start from is not part of the search: it has some iterations, however few that has.
fn starting(options: &Options, since: Instant) -> Limits {
    let limits = milp::limits(options, since, 1.0);
    Limits { iterations: limits.iterations.max(START_ITERATIONS), ..limits }
}

/// A pipeline without shared devices, where none was found with them.
fn alone(problem: &Problem, fleet: &Fleet, options: &Options, error: Error) -> Result<Pipe, Error> {
    if !fleet.shared || !matches!(error, Error::NotFound(_)) {
        return Err(error);
    }
    let others = Options { shared_devices: false, ..options.clone() };
    Plans::new(problem, &others).ok().and_then(|others| others.translated(fleet)).ok_or(error)
}

impl<'a> Plans<'a> {
    fn new(problem: &Problem, options: &'a Options) -> Result<Self, Error> {
        let since = Instant::now();
        let fleet = Fleet::new(problem, options)?;
        let (pipe, by) = match fleet.start(options.seed) {
            Some(pipe) => (pipe, ORDERED),
            None => {
                let any = fleet.any(&starting(options, since), &options.named(PROGRAM));
                (any.or_else(|error| alone(problem, &fleet, options, error))?, PROGRAM)
            }
        };
        let (proof, mut best) = (Proof::new(&fleet), Incumbent::new(fleet.simple()));
        if !best.take(fleet.value(&pipe), pipe, by) {
            return Err(Error::NotFound("no pipeline was found that keeps to links and memory".to_owned()));
        }
        options.observer.of(by).plan(best.value());
        Ok(Self { fleet, options, since, best, proof, tried: None })
    }

    /// Improves the plan and the bound. A proof that the solver fails at is reported and leaves both as they are.
    fn search(&mut self) {
        let observer = self.options.observer.of(PROGRAM);
        observer.unless_failed(self.simply());
        self.evenly();
        self.anneal(&brief(self.options));
        observer.unless_failed(self.exact(PROOF_SHARE));
        self.anneal(&self.worth().share_since(self.since, SEARCH_SHARE));
        observer.unless_failed(self.exact(1.0));
    }

    fn pipe(&self) -> &Pipe {
        self.best.solution().expect("a search starts from a pipeline")
    }

    /// The same pipeline with other rules for stages.
    fn translated(&self, fleet: &Fleet) -> Option<Pipe> {
        let mut on: BTreeMap<usize, usize> = BTreeMap::new();
        for (nodes, device) in self.fleet.nodes.iter().zip(self.pipe().devices()) {
            on.extend(nodes.iter().map(|node| (*node, device)));
        }
        let devices: Vec<usize> = fleet.nodes.iter().map(|nodes| on[&nodes[0]]).collect();
        fleet.pipe_on(&devices)
    }

    /// True if it is verified that nothing is better. A solver's word ends no search.
    fn is_closed(&self) -> bool {
        milp::closes(self.best.bound().verified_value(), self.best.value())
    }

    fn limits(&self, share: f64) -> Limits {
        milp::limits(&self.worth(), self.since, share)
    }

    /// The options with an effort that is worth what can still be gained.
    fn worth(&self) -> Options {
        self.options.for_gap(self.best.value(), self.best.bound().value)
    }

    /// Work alone, dealt out in parts; and what holds for equal devices, if each were the best.
    fn simply(&mut self) -> Result<(), Error> {
        if !self.is_closed() {
            let parts = self.fleet.parts(self.best.value(), &self.limits(PROOF_SHARE))?;
            parts.into_iter().for_each(|bound| self.best.prove(bound));
        }
        self.as_if_equal();
        Ok(())
    }

    fn as_if_equal(&mut self) {
        if !self.is_closed() && !self.fleet.shared && self.fleet.working > 0 {
            self.best.prove(bounds::best(&self.fleet.at_best(), &self.options.left_since(self.since)));
        }
    }

    fn anneal(&mut self, options: &Options) {
        if self.is_closed() {
            return;
        }
        let allowance = Allowance::new(&options.named(ANNEAL), MOVES);
        if let Some(pipe) = anneal(&self.fleet, self.pipe(), self.best.bound().verified_value(), &allowance) {
            self.take(pipe, ANNEAL);
        }
    }

    fn take(&mut self, pipe: Pipe, by: &'static str) {
        if self.best.take(self.fleet.value(&pipe), pipe, by) {
            self.options.observer.of(by).plan(self.best.value());
        }
    }

    /// Devices that only differ by ports: what is known of equal ones is a start, and without ports nothing is worse.
    fn evenly(&mut self) {
        if self.is_closed() || !self.fleet.is_even() || self.fleet.working < 2 {
            return;
        }
        let model = self.fleet.at_best();
        // Without ports, bounds hold and values are not those of the plan.
        let unheard = Options {
            observer: self.options.observer.of_bounds(),
            ..self.worth().share_since(self.since, PROOF_SHARE)
        };
        let known = alike::solve(&model, &unheard, Instant::now());
        self.take_stages(known.blocks(), known.best.by());
        self.best.prove(known.best.bound().clone());
    }

    /// Blocks of equal devices as stages, with the devices in every sequence that makes a difference.
    fn take_stages(&mut self, blocks: &[u32], by: &'static str) {
        let mut random = Random::new(self.options.seed);
        for sequence in self.fleet.sequences(SEQUENCES, &mut random) {
            self.take(self.fleet.pipe(blocks.to_vec(), sequence), by);
        }
    }

    fn exact(&mut self, share: f64) -> Result<(), Error> {
        let (limits, fleet) = (self.limits(share), &self.fleet);
        // With as many iterations as before, only something better to begin with makes a difference.
        let again = self.tried == Some(self.best.value()) && limits.seconds.is_none();
        if self.is_closed() || self.best.value() <= 0.0 || !fleet.is_provable(self.worth().effort) || again {
            return Ok(());
        }
        let observer = self.options.observer.of(PROGRAM);
        let found =
            self.proof.go_on(fleet, self.best.value(), self.best.bound().verified_value(), &limits, &observer)?;
        found.better.into_iter().for_each(|(_, pipe)| self.take(pipe, PROGRAM));
        let verified = Bound::by(found.verified, "exact", Rests::SafeDual);
        self.best.prove(verified.or(Bound::by(found.claimed, "exact", Rests::Solver)));
        self.tried = Some(self.best.value());
        self.options.observer.bound(self.best.bound().value, "exact");
        Ok(())
    }

    fn solution(self) -> Solution {
        let blocks = self.pipe().blocks(&self.fleet);
        let k = blocks.device.len() as u32;
        let stages = Some(Stages { block_device: Some(blocks.device), order: None });
        let schedule = Schedule::Pipeline { block: blocks.block, k, bottleneck: self.best.value(), stages };
        Solution { schedule, bound: Some(self.best.bound().clone()) }
    }
}
