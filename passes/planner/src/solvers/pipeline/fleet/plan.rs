//! Planning of pipelines on different devices.

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

/// Default number of annealing moves.
const MOVES: u64 = 4_000_000;
/// Iterations of a program that finds any pipeline.
const START_ITERATIONS: u64 = 10_000;
/// Limit on tasks for programs in feasibility checks, which are frequent.
const FEW_TASKS: usize = 40;
/// Sequences of devices tried for stages of equal devices.
const SEQUENCES: usize = 100;
/// Shares of the remaining time for a first attempt at a proof, and then for a longer search.
const PROOF_SHARE: f64 = 0.3;
const SEARCH_SHARE: f64 = 0.5;
/// Share of a preliminary search without shared devices.
const ALONE_SHARE: f64 = 0.3;

/// Names of algorithms that find pipelines.
const ANNEAL: &str = "anneal";
const PROGRAM: &str = "milp";

/// State of the planner.
pub(super) struct Plans<'a> {
    fleet: Fleet,
    options: &'a Options,
    since: Instant,
    best: Incumbent<Pipe>,
    proof: Proof,
    /// Incumbent's value at the last attempt at a proof.
    tried: Option<Micros>,
}

/// Runs a short search, an attempt at a proof, a longer search, and a proof or at least a bound in the remaining time.
/// With shared devices, first searches without sharing, which gives a good start.
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

/// Annealing only.
pub(in crate::solvers::pipeline) fn annealed(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let mut plans = Plans::new(problem, options)?;
    plans.prove_simple()?;
    plans.anneal(&options.left_since(plans.since));
    Ok(plans.solution())
}

/// Searches orders, sliced among devices.
pub(in crate::solvers::pipeline) fn slicegraph(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let mut plans = Plans::new(problem, options)?;
    plans.prove_simple()?;
    if plans.fleet.is_even() && plans.fleet.working > 0 {
        let model = plans.fleet.at_best();
        // Without ports, values are not those of the plan.
        let bounds_only = Options { observer: options.observer.of_bounds(), ..options.clone() };
        let sliced = brkga::search(&model, plans.best.bound().verified_value(), &bounds_only, None);
        plans.take_stages(&sliced.blocks(), ORDERED);
    } else if let Some(pipe) = plans.fleet.search_orders(plans.pipe(), plans.best.bound().verified_value(), options) {
        plans.take(pipe, ORDERED);
    }
    Ok(plans.solution())
}

/// Integer program, with the result of a short search as the warm start.
pub(in crate::solvers::pipeline) fn exact(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let mut plans = Plans::new(problem, options)?;
    plans.prove_simple()?;
    plans.anneal(&brief(options));
    plans.exact(1.0)?;
    Ok(plans.solution())
}

/// Returns true if some pipeline is found; for few tasks, also by a program.
pub(super) fn has_plan(problem: &Problem, options: &Options) -> bool {
    if problem.nodes.len() > FEW_TASKS {
        return Fleet::new(problem, options).is_ok_and(|fleet| fleet.start(options.seed).is_some());
    }
    let options = Options { limit: Some(Limit::Iterations(START_ITERATIONS)), ..options.clone() };
    Plans::new(problem, &options).is_ok()
}

/// Returns every bound by name, weakest first.
pub(crate) fn all_bounds(problem: &Problem, options: &Options) -> Result<Vec<Bound>, Error> {
    Plans::new(problem, options)?.all_bounds()
}

/// Returns limits for finding a start, which is not part of the search: a minimum number of iterations is guaranteed.
fn starting(options: &Options, since: Instant) -> Limits {
    let limits = milp::limits(options, since, 1.0);
    Limits { iterations: limits.iterations.max(START_ITERATIONS), ..limits }
}

/// Returns a pipeline without shared devices if none was found with them.
fn without_sharing(problem: &Problem, fleet: &Fleet, options: &Options, error: Error) -> Result<Pipe, Error> {
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
                (any.or_else(|error| without_sharing(problem, &fleet, options, error))?, PROGRAM)
            }
        };
        Self::from(fleet, (pipe, by), options, since)
    }

    /// Plans on a fleet. Without a start, searches for one.
    pub(super) fn on(fleet: Fleet, start: Option<Pipe>, options: &'a Options) -> Result<Self, Error> {
        let since = Instant::now();
        let start = match start.or_else(|| fleet.start(options.seed)) {
            Some(pipe) => (pipe, ORDERED),
            None => (fleet.any(&starting(options, since), &options.named(PROGRAM))?, PROGRAM),
        };
        Self::from(fleet, start, options, since)
    }

    fn from(fleet: Fleet, start: (Pipe, &'static str), options: &'a Options, since: Instant) -> Result<Self, Error> {
        let (pipe, by) = start;
        let (proof, mut best) = (Proof::new(&fleet), Incumbent::new(fleet.simple()));
        if !best.take(fleet.value(&pipe), pipe, by) {
            return Err(Error::NotFound("no pipeline was found that keeps to links and memory".to_owned()));
        }
        options.observer.of(by).plan(best.value());
        Ok(Self { fleet, options, since, best, proof, tried: None })
    }

    /// Returns every bound by name, weakest first.
    pub(super) fn all_bounds(mut self) -> Result<Vec<Bound>, Error> {
        let mut all = vec![self.best.bound().clone()];
        let parts = self.fleet.parts(self.best.value(), &self.limits(1.0))?;
        all.extend(parts.clone());
        parts.into_iter().for_each(|bound| self.best.prove(bound));
        self.prove_as_equal();
        self.anneal(&brief(self.options));
        self.solve_as_equal();
        self.exact(1.0)?;
        if all.iter().all(|bound| bound.by != self.best.bound().by) {
            all.push(self.best.bound().clone());
        }
        Ok(all)
    }

    pub(super) fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Returns the algorithm that found the pipeline.
    pub(super) fn by(&self) -> &'static str {
        self.best.by()
    }

    pub(super) fn bound(&self) -> &Bound {
        self.best.bound()
    }

    /// Improves the plan and the bound. A failure of the solver is reported and leaves both unchanged.
    pub(super) fn search(&mut self) {
        let observer = self.options.observer.of(PROGRAM);
        observer.unless_failed(self.prove_simple());
        self.solve_as_equal();
        self.anneal(&brief(self.options));
        observer.unless_failed(self.exact(PROOF_SHARE));
        self.anneal(&self.worth().share_since(self.since, SEARCH_SHARE));
        observer.unless_failed(self.exact(1.0));
    }

    pub(super) fn pipe(&self) -> &Pipe {
        self.best.solution().expect("a search starts from a pipeline")
    }

    /// Converts the pipeline to the stages of another fleet.
    fn translated(&self, fleet: &Fleet) -> Option<Pipe> {
        let mut on: BTreeMap<usize, usize> = BTreeMap::new();
        for (nodes, device) in self.fleet.nodes.iter().zip(self.pipe().devices()) {
            on.extend(nodes.iter().map(|node| (*node, device)));
        }
        let devices: Vec<usize> = fleet.nodes.iter().map(|nodes| on[&nodes[0]]).collect();
        fleet.pipe_on(&devices)
    }

    /// Returns true if a verified bound proves optimality. Unverified bounds of a solver do not end a search.
    fn is_closed(&self) -> bool {
        milp::closes(self.best.bound().verified_value(), self.best.value())
    }

    fn limits(&self, share: f64) -> Limits {
        milp::limits(&self.worth(), self.since, share)
    }

    /// Returns the options with an effort that depends on the gap.
    fn worth(&self) -> Options {
        self.options.for_gap(self.best.value(), self.best.bound().value)
    }

    /// Proves the linear bound on work, and the bound for equal devices, each as fast as the best.
    fn prove_simple(&mut self) -> Result<(), Error> {
        if !self.is_closed() {
            let parts = self.fleet.parts(self.best.value(), &self.limits(PROOF_SHARE))?;
            parts.into_iter().for_each(|bound| self.best.prove(bound));
        }
        self.prove_as_equal();
        Ok(())
    }

    fn prove_as_equal(&mut self) {
        if self.is_closed() || self.fleet.shared || self.fleet.working == 0 {
            return;
        }
        let replicas = self.fleet.scaling.replicas;
        if replicas > 1.0 {
            // A stage on several devices takes at least its cost divided by their number.
            let bound = bounds::cut(&self.fleet.at_best(), self.best.bound().value * replicas, self.options);
            bound.into_iter().for_each(|bound| self.best.prove(Bound { value: bound.value / replicas, ..bound }));
        } else {
            self.best.prove(bounds::best(&self.fleet.at_best(), &self.options.left_since(self.since)));
        }
    }

    /// Anneals within the limit of the options.
    pub(super) fn anneal(&mut self, options: &Options) {
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

    /// If devices differ only by ports: a solution for equal devices is a start, and its bound is valid, since ports
    /// only add cost.
    fn solve_as_equal(&mut self) {
        if self.is_closed() || !self.fleet.is_even() || self.fleet.working < 2 {
            return;
        }
        let model = self.fleet.at_best();
        // Without ports, bounds are valid but values are not those of the plan.
        let bounds_only = Options {
            observer: self.options.observer.of_bounds(),
            ..self.worth().share_since(self.since, PROOF_SHARE)
        };
        let equal = alike::solve(&model, &bounds_only, Instant::now());
        self.take_stages(equal.blocks(), equal.best.by());
        self.best.prove(equal.best.bound().clone());
    }

    /// Takes blocks of equal devices as stages, with devices in every distinct sequence.
    fn take_stages(&mut self, blocks: &[u32], by: &'static str) {
        let mut random = Random::new(self.options.seed);
        for sequence in self.fleet.sequences(SEQUENCES, &mut random) {
            self.take(self.fleet.pipe(blocks.to_vec(), sequence), by);
        }
    }

    fn exact(&mut self, share: f64) -> Result<(), Error> {
        if self.fleet.scaling.replicas > 1.0 {
            // Programs do not divide stages.
            return Ok(());
        }
        let (limits, fleet) = (self.limits(share), &self.fleet);
        // With the same number of iterations, a repetition helps only with a better incumbent.
        let again = self.tried == Some(self.best.value()) && limits.seconds.is_none();
        if self.is_closed() || self.best.value() <= Micros::ZERO || !fleet.is_provable(self.worth().effort) || again {
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
