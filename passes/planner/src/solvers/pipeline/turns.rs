//! Equal devices that take turns at a block: a block on r devices takes an r-th of its time for one input.
//!
//! Orders of the tasks are cut into blocks for the least threshold that k devices reach, where a block takes as many
//! devices as its cost needs; annealing then moves tasks between blocks with fixed numbers of devices, which are chosen
//! again for the blocks that it finds. A pipeline with one device of each block is a start.

mod shares;
mod slots;

use std::time::Instant;

use super::model::{Model, stages};
use super::order::{by_keys, random_keys};
use super::state::State;
use super::{anneal, auto, bounds, brief, cost, line::Line};
use crate::model::error::Error;
use crate::model::observer::Observer;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit, Schedule, Turns, closes};
use crate::model::problem::{Pipeline, Problem};
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::Solution;
use crate::solvers::chains::Allowance;

use cost::Blocks;
use shares::{compositions, shares};

/// Number of orders that are cut, and the maximum number of tasks, squared, for all of them.
const ORDERS: u64 = 200;
const MOST_STEPS: usize = 40_000_000;
/// Maximum number of divisions of the devices that are tried one by one.
const FEW_COMPOSITIONS: usize = 64;
/// Annealing moves from each start, and shares of the remaining time.
const MOVES: u64 = 400_000;
const SINGLE_SHARE: f64 = 0.4;
const ORDERS_SHARE: f64 = 0.3;
const ANNEAL_SHARE: f64 = 0.5;
/// Maximum number of rounds of annealing.
const ROUNDS: usize = 6;

/// Pipeline with the number of devices of each block.
#[derive(Clone)]
struct Found {
    block: Vec<u32>,
    order: Vec<u32>,
    replicas: Vec<u32>,
    value: Micros,
}

struct Search<'a> {
    problem: &'a Problem,
    view: &'a Pipeline,
    model: &'a Model,
    /// Number of devices, and the most of a block.
    devices: usize,
    most: usize,
    best: Option<Found>,
    bound: Bound,
    options: &'a Options,
    since: Instant,
}

/// Plans equal devices that take turns.
pub(super) fn plan(problem: &Problem, view: &Pipeline, options: &Options) -> Result<Solution, Error> {
    let since = Instant::now();
    let model = &Model::new(problem, view, options)?;
    let most = options.replicas();
    let devices = stages(view, options)?.min(model.tasks().saturating_mul(most));
    let bound = bound(model, devices, most, options);
    let mut search = Search { problem, view, model, devices, most, best: None, bound, options, since };
    let single =
        Options { max_replicas: None, observer: Observer::default(), ..options.share_since(since, SINGLE_SHARE) };
    let incumbent = auto::solve(model, &single, Instant::now());
    search.take(incumbent.blocks().to_vec(), &incumbent.order);
    search.cut_orders();
    search.try_compositions();
    search.anneal();
    search.solution()
}

/// Returns every bound by name, weakest first.
pub(super) fn all_bounds(problem: &Problem, view: &Pipeline, options: &Options) -> Result<Vec<Bound>, Error> {
    let model = &Model::new(problem, view, options)?;
    let most = options.replicas();
    let devices = stages(view, options)?.min(model.tasks().saturating_mul(most));
    let simple = simple(model, devices, most);
    let best = bound(model, devices, most, options);
    Ok(if best.by == simple.by { vec![simple] } else { vec![simple, best] })
}

/// Longest task divided by the number of its devices, and mean work of a device.
fn simple(model: &Model, devices: usize, most: usize) -> Bound {
    let longest = model.work.iter().copied().fold(Micros::ZERO, Micros::max);
    let share = model.work.iter().sum::<Micros>() / devices as f64;
    Bound::new((longest / most as f64).max(share), "simple")
}

/// Returns the better one of the simple bound and of the cheapest block around each task, on as many devices as allowed.
fn bound(model: &Model, devices: usize, most: usize, options: &Options) -> Bound {
    let simple = simple(model, devices, most);
    let divisor = most.min(devices) as f64;
    let cut = bounds::cut(model, simple.value * divisor, &options.share_since(Instant::now(), ORDERS_SHARE));
    match cut {
        Some(cut) => simple.or(Bound { value: cut.value / divisor, ..cut }),
        None => simple,
    }
}

impl Search<'_> {
    fn value(&self) -> Micros {
        self.best.as_ref().map_or(Micros::INFINITY, |found| found.value)
    }

    fn is_over(&self) -> bool {
        let is_late = matches!(self.options.limit, Some(Limit::Seconds(seconds))
            if self.since.elapsed().as_secs_f64() >= seconds);
        is_late || closes(self.bound.verified_value(), self.value())
    }

    /// Updates the best pipeline, with the best numbers of devices for these blocks.
    fn take(&mut self, mut block: Vec<u32>, order: &[u32]) {
        // Empty blocks need no device.
        let mut used = block.clone();
        used.sort_unstable();
        used.dedup();
        block.iter_mut().for_each(|block| *block = used.binary_search(block).unwrap_or(0) as u32);
        if used.len() > self.devices {
            return;
        }
        let costs = self.costs(&block, order, used.len());
        let replicas = shares(&costs, self.devices, self.most);
        let each = costs.iter().zip(&replicas).map(|(cost, count)| *cost / f64::from(*count));
        let value = each.fold(Micros::ZERO, Micros::max);
        if value < self.value() {
            self.options.observer.of("replicas").plan(value);
            self.best = Some(Found { block, order: order.to_vec(), replicas, value });
        }
    }

    /// Returns the cost of each block on one device.
    fn costs(&self, block: &[u32], order: &[u32], count: usize) -> Vec<Micros> {
        let blocks = self.model.node_blocks(block);
        let order = self.nodes(order);
        let asked = Blocks { block: &blocks, order: &order, k: count };
        cost::costs(self.problem, self.view, self.model.cost, &asked)
    }

    /// Returns the nodes of the tasks in an order.
    fn nodes(&self, order: &[u32]) -> Vec<usize> {
        order.iter().flat_map(|task| self.model.nodes[*task as usize].iter().copied()).collect()
    }

    /// Cuts the given order and random ones.
    fn cut_orders(&mut self) {
        let since = Instant::now();
        let options = self.options.share_since(self.since, ORDERS_SHARE);
        let mut random = Random::new(self.options.seed);
        let steps = self.model.tasks() * self.model.tasks();
        let most = ORDERS.min((MOST_STEPS / steps.max(1)) as u64 + 1);
        let most = match options.limit {
            Some(Limit::Iterations(count)) => most.min(count.max(1)),
            Some(Limit::Seconds(_)) | None => most,
        };
        for index in 0..most {
            let is_late = matches!(options.limit, Some(Limit::Seconds(seconds))
                if since.elapsed().as_secs_f64() >= seconds);
            if self.is_over() || is_late && index > 0 {
                return;
            }
            let order = if index == 0 {
                (0..self.model.tasks() as u32).collect()
            } else {
                by_keys(self.model, &random_keys(self.model, &mut random))
            };
            let line = Line::new(self.model, &order);
            let limits = (self.bound.verified_value(), self.value());
            if let Some(ends) = slots::cut(self.model, &line, self.devices, self.most, limits) {
                self.take(super::slice::blocks(&order, &ends), &order);
            }
        }
    }

    /// Anneals from every division of the devices among blocks, if these are few.
    fn try_compositions(&mut self) {
        let blocks = self.model.tasks();
        let Some(all) = compositions(self.devices, self.most, blocks, FEW_COMPOSITIONS) else { return };
        let order: Vec<u32> = (0..self.model.tasks() as u32).collect();
        let count = all.len();
        for (index, replicas) in all.into_iter().enumerate() {
            if self.is_over() {
                return;
            }
            let start = slots::in_proportion(self.model, &order, &replicas);
            let share = ANNEAL_SHARE / (count - index) as f64;
            self.anneal_from(start, &order, &replicas, &self.options.share_since(self.since, share));
        }
    }

    /// Anneals from the best pipeline as long as that helps.
    fn anneal(&mut self) {
        for _ in 0..ROUNDS {
            let Some(best) = self.best.clone().filter(|_| !self.is_over()) else { return };
            let options = self.options.share_since(self.since, ANNEAL_SHARE);
            self.anneal_from(best.block, &best.order, &best.replicas, &options);
            if self.value() >= best.value {
                return;
            }
        }
    }

    /// Anneals blocks with fixed numbers of devices.
    fn anneal_from(&mut self, block: Vec<u32>, order: &[u32], replicas: &[u32], options: &Options) {
        if replicas.len() < 2 || self.model.tasks() < 2 {
            self.take(block, order);
            return;
        }
        let parts = replicas.iter().map(|count| 1.0 / f64::from(*count)).collect();
        let model = Model { k: replicas.len(), parts, ..self.model.clone() };
        let options = Options { observer: Observer::default(), ..brief(options) };
        let allowance = Allowance::new(&options, MOVES);
        let start = || State::new(&model, block.clone(), order.to_vec());
        if let Some((_, found)) = anneal::anneal(start, self.bound.verified_value(), &allowance) {
            self.take(found, order);
        }
    }

    /// Returns the plan, with all devices: the rest goes to blocks that may have more, then to empty ones.
    fn solution(self) -> Result<Solution, Error> {
        let none = || Error::NotFound("no pipeline of equal devices was found".to_owned());
        let best = self.best.as_ref().ok_or_else(none)?;
        let mut replicas = best.replicas.clone();
        let mut left = self.devices - replicas.iter().sum::<u32>() as usize;
        while left > 0 {
            let more = left.min(self.most);
            replicas.push(more as u32);
            left -= more;
        }
        let block = self.model.node_blocks(&best.block);
        let nodes = self.nodes(&best.order);
        let order = self.model.memory.is_some().then(|| {
            let of_block = |of: usize| nodes.iter().copied().filter(|node| block[*node] == of).collect();
            (0..replicas.len()).map(of_block).collect()
        });
        self.options.observer.taken(best.value, "replicas");
        let (k, bottleneck) = (replicas.len() as u32, best.value);
        let schedule = Schedule::BatchedPipeline { block, k, bottleneck, turns: Turns::Equal { replicas }, order };
        Ok(Solution { schedule, bound: Some(self.bound) })
    }
}
