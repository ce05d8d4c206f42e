//! Search over batch sizes: for few configurations all of them, else uniform ones, whose sizes are then chosen again for
//! the tasks that each device has, in turn with a search over the tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::config::{Config, Group, Space};
use super::ports::{Evaluator, Units};
use crate::model::error::Error;
use crate::model::observer::Observer;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit, Schedule, Turns, closes};
use crate::model::units::Micros;
use crate::solvers::Solution;
use crate::solvers::pipeline::fleet::{Fleet, Pipe, Plans, plan};

/// Maximum number of configurations that are tried one by one, with these tasks, and moves for each.
const FEW_CONFIGS: usize = 512;
pub(super) const FEW_TASKS: usize = 40;
const FEW_MOVES: u64 = 4_000;
/// Number of the best starts that are annealed, and the share of the remaining time for all of them.
const BEST_STARTS: usize = 3;
const STARTS_SHARE: f64 = 0.3;
/// Share of the remaining time for a plan of single inputs.
const SINGLE_SHARE: f64 = 0.25;
/// Share of the remaining time for the first complete search on the best configuration, and for each later one.
const FIRST_SHARE: f64 = 0.4;
const LATER_SHARE: f64 = 0.5;
/// Maximum number of rounds of choosing sizes and moving tasks, and of those without an improvement.
pub(super) const ROUNDS: usize = 8;
const IDLE_ROUNDS: usize = 2;

/// Pipeline under a configuration.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) config: Config,
    /// First device of the group of each node, with ports on groups.
    pub(super) home: Vec<usize>,
    /// Group of each node, with ports placed on their own.
    pub(super) units: Units,
    pub(super) value: Micros,
    pub(super) by: &'static str,
}

/// Configuration with its model and a pipeline.
struct Start {
    config: Config,
    fleet: Fleet,
    pipe: Option<Pipe>,
    value: Micros,
}

pub(super) struct Search<'a> {
    pub(super) space: &'a Space<'a>,
    pub(super) options: &'a Options,
    pub(super) since: Instant,
    pub(super) evaluator: Evaluator<'a>,
    pub(super) best: Option<Found>,
    pub(super) bound: Bound,
}

impl<'a> Search<'a> {
    pub(super) fn new(space: &'a Space<'a>, options: &'a Options, since: Instant) -> Self {
        Self { space, options, since, evaluator: Evaluator::new(space), best: None, bound: Bound::none() }
    }

    /// Proves bounds on the relaxation. An error is a proof that there is no plan.
    pub(super) fn prove(&mut self, options: &Options) -> Result<(), Error> {
        let options = Options { observer: options.observer.of_bounds(), ..options.clone() };
        let fleet = self.space.relaxed()?;
        self.bound = fleet.simple();
        match Plans::on(fleet, None, &options) {
            Ok(mut plans) => {
                plans.search();
                self.bound = std::mem::replace(&mut self.bound, Bound::none()).or(plans.bound().clone());
                Ok(())
            }
            Err(error @ Error::Infeasible(_)) => Err(error),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn value(&self) -> Micros {
        self.best.as_ref().map_or(Micros::INFINITY, |found| found.value)
    }

    pub(super) fn is_closed(&self) -> bool {
        closes(self.bound.verified_value(), self.value())
    }

    /// Returns true if a time limit is exceeded.
    pub(super) fn is_late(&self, options: &Options, since: Instant) -> bool {
        matches!(options.limit, Some(Limit::Seconds(seconds)) if since.elapsed().as_secs_f64() >= seconds)
    }

    /// Updates the best pipeline if this one is better. Its ports are placed again.
    pub(super) fn take(&mut self, config: &Config, home: Vec<usize>, by: &'static str) {
        let Some((units, value)) = self.evaluator.with_ports(config, &home) else { return };
        if value < self.value() * (1.0 - 1e-12) {
            self.options.observer.of(by).plan(value);
            self.best = Some(Found { config: config.clone(), home, units, value, by });
        }
    }

    /// Plans single inputs on single devices, if all tasks have times for one.
    pub(super) fn plan_single_inputs(&mut self) {
        let space = self.space;
        let config = space.alone(|device| space.sizes[device].contains(&1).then_some(1));
        let options = Options {
            max_batch: None,
            max_replicas: None,
            observer: Observer::default(),
            ..self.options.share_since(self.since, SINGLE_SHARE)
        };
        if space.problem.default_batch() > 1 {
            return;
        }
        let Ok(solution) = plan::auto(space.problem, &options) else { return };
        let Schedule::Pipeline { block, stages: Some(stages), .. } = solution.schedule else { return };
        let Some(devices) = stages.block_device else { return };
        let home = block.iter().map(|of| devices[*of]).collect();
        self.take(&config, home, "single inputs");
    }

    /// Plans batches on single devices, in a share of the remaining time.
    pub(super) fn plan_batches(&mut self, share: f64) {
        let options = self.options.share_since(self.since, share);
        let since = Instant::now();
        let every = self.every_config(1);
        let is_small = self.space.problem.nodes.len() <= FEW_TASKS;
        match every.filter(|_| is_small) {
            Some(every) => self.try_all(every, &options, since),
            None => self.try_some(self.space.uniform(), &options, since),
        }
        self.improve(&options, since);
    }

    /// Returns all configurations; `None` if there are too many.
    pub(super) fn every_config(&self, replicas: usize) -> Option<Vec<Config>> {
        let mut all: Vec<Config> = vec![Vec::new()];
        for device in 0..self.space.sizes.len() {
            let sizes = self.space.tried(device);
            let mut next = Vec::new();
            for config in &all {
                for &size in &sizes {
                    next.push([config.as_slice(), &[Group { devices: vec![device], size }]].concat());
                }
                for group in 0..config.len() {
                    if replicas > config[group].devices.len() && sizes.contains(&config[group].size) {
                        let mut joined = config.clone();
                        joined[group].devices.push(device);
                        next.push(joined);
                    }
                }
                // Other devices may be alike only if this one is not used.
                if replicas > 1 || sizes.is_empty() {
                    next.push(config.clone());
                }
            }
            if next.len() > 4 * FEW_CONFIGS {
                return None;
            }
            all = next;
        }
        all.retain(|config| !config.is_empty() && self.space.is_valid(config));
        let is_replicated = |config: &Config| config.iter().any(|group| group.devices.len() > 1);
        all.retain(|config| replicas == 1 || is_replicated(config));
        (all.len() <= FEW_CONFIGS).then_some(all)
    }

    /// Searches each configuration that may be better, the most promising ones first.
    pub(super) fn try_all(&mut self, configs: Vec<Config>, options: &Options, since: Instant) {
        let mut starts = self.starts(configs, options, since);
        starts.sort_by(|a, b| a.value.total_cmp(&b.value));
        for start in starts {
            if self.is_closed() || self.is_late(options, since) {
                return;
            }
            if start.fleet.simple().value >= self.value() {
                continue;
            }
            let brief = match options.limit {
                Some(Limit::Seconds(_)) => options.share_since(since, STARTS_SHARE),
                Some(Limit::Iterations(count)) => with_moves(options, count.min(FEW_MOVES)),
                None => with_moves(options, FEW_MOVES),
            };
            let brief = Options { limit: brief.limit.map(|limit| limit.with_seconds(|left| left.min(0.1))), ..brief };
            self.search_on(start, &brief, false);
        }
    }

    /// Anneals the best starts, and searches the best of them completely.
    pub(super) fn try_some(&mut self, configs: Vec<Config>, options: &Options, since: Instant) {
        let mut starts = self.starts(configs, &options.share_since(since, STARTS_SHARE), since);
        starts.sort_by(|a, b| a.value.total_cmp(&b.value));
        starts.truncate(BEST_STARTS);
        let count = starts.len();
        for (index, start) in starts.into_iter().enumerate() {
            if self.is_closed() {
                return;
            }
            let share = STARTS_SHARE / (count - index) as f64;
            self.search_on(start, &options.share_since(since, share), false);
        }
    }

    /// Returns models and first pipelines of configurations that may be better than the best one.
    fn starts(&self, configs: Vec<Config>, options: &Options, since: Instant) -> Vec<Start> {
        let mut starts = Vec::new();
        for config in configs {
            if !starts.is_empty() && self.is_late(options, since) {
                break;
            }
            let Ok(fleet) = self.space.fleet(&config) else { continue };
            if fleet.simple().value >= self.value() {
                continue;
            }
            let pipe = fleet.start(self.options.seed);
            let value = pipe.as_ref().map_or(Micros::INFINITY, |pipe| fleet.value(pipe));
            starts.push(Start { config, fleet, pipe, value });
        }
        starts
    }

    /// Searches tasks and devices under a configuration: by annealing, or by everything.
    fn search_on(&mut self, start: Start, options: &Options, completely: bool) {
        let options = Options { observer: Observer::default(), ..options.clone() };
        let Ok(mut plans) = Plans::on(start.fleet, start.pipe, &options) else { return };
        if completely {
            plans.search();
        } else {
            plans.anneal(&options);
        }
        let home = homes(&start.config, plans.fleet(), plans.pipe());
        self.take(&start.config, home, plans.by());
    }

    /// Chooses sizes again and searches tasks in turn, from the best pipeline.
    pub(super) fn improve(&mut self, options: &Options, since: Instant) {
        let mut idle = 0;
        for round in 0..ROUNDS {
            if self.is_closed() || self.is_late(options, since) || idle >= IDLE_ROUNDS {
                return;
            }
            let Some(best) = self.best.clone() else { return };
            let resized = self.resized(&best);
            let share = if round == 0 { FIRST_SHARE } else { LATER_SHARE };
            let before = self.value();
            if let Ok(fleet) = self.space.fleet(&resized.config) {
                let pipe = placed(&resized.config, &fleet, &resized.home);
                let value = resized.value;
                self.take(&resized.config, resized.home.clone(), resized.by);
                let start = Start { config: resized.config, fleet, pipe, value };
                self.search_on(start, &options.share_since(since, share), round == 0);
            }
            idle = if self.value() < before { 0 } else { idle + 1 };
        }
    }

    /// Returns the plan.
    pub(super) fn solution(self) -> Result<Solution, Error> {
        let none = || Error::NotFound("no pipeline was found that keeps to batch sizes, links and memory".to_owned());
        let Some(best) = self.best else { return Err(none()) };
        let fleet = self.space.fleet(&best.config)?;
        let pipe = placed(&best.config, &fleet, &best.home).ok_or_else(none)?;
        // Ports have blocks of their own, sources before all stages and sinks behind them.
        let mut place = vec![0_i64; best.home.len()];
        for (task, nodes) in fleet.nodes.iter().enumerate() {
            let at = match pipe.stage.get(task) {
                Some(stage) => i64::from(*stage),
                None if fleet.reads[task].is_empty() => -1,
                None => fleet.k as i64,
            };
            nodes.iter().for_each(|node| place[*node] = at);
        }
        let blocks: BTreeSet<(i64, &Group)> = place.iter().copied().zip(&best.units).collect();
        let numbers: BTreeMap<(i64, &Group), usize> = blocks.iter().copied().zip(0..).collect();
        let block = place.iter().copied().zip(&best.units).map(|key| numbers[&key]).collect();
        let turns = Turns::Devices {
            batch: blocks.iter().map(|(_, group)| group.size).collect(),
            devices: blocks.iter().map(|(_, group)| group.devices.clone()).collect(),
        };
        self.options.observer.taken(best.value, best.by);
        let (k, bottleneck) = (blocks.len() as u32, best.value);
        let schedule = Schedule::BatchedPipeline { block, k, bottleneck, turns, order: None };
        Ok(Solution { schedule, bound: Some(self.bound) })
    }
}

/// Returns options with a number of moves.
pub(super) fn with_moves(options: &Options, moves: u64) -> Options {
    Options { limit: Some(Limit::Iterations(moves)), ..options.clone() }
}

/// Returns the first device of the group of each node.
pub(super) fn homes(config: &Config, fleet: &Fleet, pipe: &Pipe) -> Vec<usize> {
    let mut home: BTreeMap<usize, usize> = BTreeMap::new();
    for (nodes, group) in fleet.nodes.iter().zip(pipe.devices()) {
        home.extend(nodes.iter().map(|node| (*node, config[group].devices[0])));
    }
    home.into_values().collect()
}

/// Returns the pipeline of each node on the group of a device; `None` if that is impossible.
pub(super) fn placed(config: &Config, fleet: &Fleet, home: &[usize]) -> Option<Pipe> {
    let group_of = |device: usize| config.iter().position(|group| group.devices.contains(&device));
    let used: BTreeSet<usize> = home.iter().copied().collect();
    let groups: BTreeMap<usize, usize> =
        used.into_iter().map(|device| Some((device, group_of(device)?))).collect::<Option<_>>()?;
    let on: Vec<usize> = fleet.nodes.iter().map(|nodes| groups[&home[nodes[0]]]).collect();
    fleet.pipe_on(&on)
}
