//! Maximum-throughput pipelines (MTPP): blocks of tasks, one a stage, of which the slowest is to be as fast as possible.
//!
//! [`slicegraph`] is the paper's algorithm: orders of the tasks, each cut at the best places. [`anneal`] moves tasks between
//! blocks, which reaches what orders alone do not.

mod anneal;
mod bounds;
mod brkga;
mod choice;
mod cost;
mod line;
mod milp;
mod model;
mod order;
mod program;
mod reach;
mod slice;
mod state;
#[cfg(test)]
mod test;
mod together;

use std::time::Instant;

use crate::error::Error;
use crate::plan::{Bound, Limit, Objective, Schedule, Stages};
use crate::problem::Problem;
use crate::search::chains::Allowance;
use crate::solve::{Options, Solution};

pub use choice::{OrderSearch, PipelineCost};
use cost::Blocks;
use milp::Known;
use model::Model;

/// Moves that annealing tries when nothing is said: about two seconds on two cores.
const MOVES: u64 = 8_000_000;
/// Orders that it starts from.
const ORDERS: u64 = 100;
/// Shares of the time that go into a start for integer programs: when they are asked for, and when a good plan is.
const START: f64 = 0.1;
const HALF: f64 = 0.5;
/// Integer programs with more places of edges than this are not worth the time it takes to write them down.
const MOST_PLACES: usize = 400_000;

/// Orders, and the best slicing of each.
pub(crate) fn slicegraph(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let model = Model::new(problem, options)?;
    let bound = bounds::simple(&model);
    let sliced = brkga::search(&model, bound.value, options);
    Ok(solution(problem, &model, &sliced.blocks(), &sliced.order, bound))
}

/// Annealing on blocks, from a few orders' best slicing.
pub(crate) fn anneal(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let model = Model::new(problem, options)?;
    let known = annealed(&model, options);
    Ok(solution(problem, &model, &known.blocks, &known.order, known.bound))
}

/// The exact integer program, from a short search.
pub(crate) fn milp(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let since = Instant::now();
    let model = Model::new(problem, options)?;
    let mut known = annealed(&model, &share(options, START));
    milp::exact(&model, &mut known, &milp::limits(options, since), options)?;
    Ok(solution(problem, &model, &known.blocks, &known.order, known.bound))
}

/// What serves pipelines where no algorithm is asked for: annealing, then the integer program for what time is left.
pub(crate) fn auto(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let since = Instant::now();
    let model = Model::new(problem, options)?;
    let mut known = annealed(&model, &share(options, HALF));
    let edges: usize = model.tensors.iter().map(|tensor| tensor.readers.len()).sum();
    if edges * model.k <= MOST_PLACES {
        milp::exact(&model, &mut known, &milp::limits(options, since), options)?;
    }
    Ok(solution(problem, &model, &known.blocks, &known.order, known.bound))
}

/// The same options with a part of the time; iterations are each part's own.
fn share(options: &Options, share: f64) -> Options {
    let limit = options.limit.map(|limit| match limit {
        Limit::Seconds(seconds) => Limit::Seconds(seconds * share),
        Limit::Iterations(count) => Limit::Iterations(count),
    });
    Options { limit, ..options.clone() }
}

fn annealed(model: &Model, options: &Options) -> Known {
    let bound = bounds::simple(model);
    let allowance = Allowance::new(options, MOVES);
    let orders = Options { limit: Some(Limit::Iterations(ORDERS)), order: None, ..options.clone() };
    let sliced = brkga::search(model, bound.value, &orders);
    let value = sliced.slicing.value;
    options.watch.plan(value);
    let found = anneal::anneal(model, &sliced.blocks(), &sliced.order, bound.value, &allowance);
    let (value, blocks) = found.filter(|(found, _)| *found < value).unwrap_or_else(|| (value, sliced.blocks()));
    Known { value, blocks, order: sliced.order, bound }
}

/// The plan for blocks whose tasks run in this order.
fn solution(problem: &Problem, model: &Model, block: &[u32], order: &[u32], bound: Bound) -> Solution {
    let blocks = model.node_blocks(block);
    let nodes: Vec<usize> = order.iter().flat_map(|task| model.nodes[*task as usize].iter().copied()).collect();
    let asked = Blocks { block: &blocks, order: &nodes, k: model.k };
    let bottleneck = problem.mtpp.as_ref().map_or(0.0, |view| cost::bottleneck(problem, view, model.cost, &asked));
    // The order within a block only makes a difference to what it holds.
    let stages = model.memory.is_some().then(|| {
        let of_block = |block: usize| nodes.iter().copied().filter(|node| blocks[*node] == block).collect();
        Stages { block_device: None, order: Some((0..model.k).map(of_block).collect()) }
    });
    let schedule = Schedule::Pipeline { block: blocks, k: model.k as u32, bottleneck, stages };
    Solution { schedule, bound: Some(bound) }
}
