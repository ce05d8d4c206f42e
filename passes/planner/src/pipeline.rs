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
mod model;
mod order;
mod slice;
mod state;
#[cfg(test)]
mod test;
mod together;

use crate::error::Error;
use crate::plan::{Bound, Objective, Schedule, Stages};
use crate::problem::Problem;
use crate::search::chains::Allowance;
use crate::solve::{Options, Solution};

pub use choice::{OrderSearch, PipelineCost};
use cost::Blocks;
use model::Model;

/// Moves that annealing tries when nothing is said: about two seconds on two cores.
const MOVES: u64 = 8_000_000;

/// Orders, and the best slicing of each.
pub(crate) fn slicegraph(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let model = Model::new(problem, options)?;
    let bound = bounds::simple(&model);
    let sliced = brkga::search(&model, bound.value, options);
    Ok(solution(problem, &model, &sliced.blocks(), &sliced.order, bound))
}

/// What serves pipelines where no algorithm is asked for.
pub(crate) fn auto(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    anneal(problem, Objective::Pipeline, options)
}

/// Annealing on blocks, from a few orders' best slicing.
pub(crate) fn anneal(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let model = Model::new(problem, options)?;
    let bound = bounds::simple(&model);
    let allowance = Allowance::new(options, MOVES);
    let brief = Options { limit: Some(crate::plan::Limit::Iterations(100)), order: None, ..options.clone() };
    let sliced = brkga::search(&model, bound.value, &brief);
    options.watch.plan(sliced.slicing.value);
    let found = anneal::anneal(&model, &sliced.blocks(), &sliced.order, bound.value, &allowance);
    let blocks = match found {
        Some((value, blocks)) if value < sliced.slicing.value => blocks,
        _ => sliced.blocks(),
    };
    Ok(solution(problem, &model, &blocks, &sliced.order, bound))
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
