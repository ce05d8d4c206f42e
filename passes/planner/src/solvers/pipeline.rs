//! Maximum-throughput pipelines (MTPP): blocks of tasks, one per stage, that minimize the time of the slowest stage.
//!
//! On equal devices, `slicegraph` is the paper's algorithm: orders of the tasks, each sliced optimally. `anneal` moves
//! tasks between blocks, which reaches partitions that slicing does not; `milp` and `priced` prove bounds. `fleet` has
//! the same methods for devices that differ, or models with inputs and outputs at fixed places.

mod anneal;
mod auto;
mod bounds;
mod brkga;
mod cost;
mod equal;
mod evolution;
mod fleet;
mod incumbent;
mod line;
mod merge;
mod milp;
mod model;
mod order;
mod pack;
mod priced;
mod program;
mod proof;
mod reach;
mod shared;
mod slice;
mod state;
#[cfg(test)]
mod test;
mod turns;

use std::time::Instant;

use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit, Objective, Schedule, Stages};
use crate::model::problem::{Pipeline, Problem, View, ViewKind};
use crate::solvers::Solution;

use cost::Blocks;
pub(crate) use fleet::{all_bounds as bounds_on_devices, auto as auto_on_devices};
use incumbent::PipelineIncumbent;
use model::Model;
use pack::Effort;
use shared::SharedSolution;

/// Views that pipelines are planned on, the preferred one first.
pub(crate) const VIEWS: &[ViewKind] = &[ViewKind::Homogeneous, ViewKind::Devices];

/// Search for warm starts of integer programs: maximum seconds, maximum share of the time limit, moves.
const BRIEF_SECONDS: f64 = 0.5;
const BRIEF_SHARE: f64 = 0.1;
const BRIEF_MOVES: u64 = 400_000;

/// Searches orders, each with its optimal slicing.
pub(crate) fn slicegraph(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let View::Homogeneous(view) = problem.view_among(VIEWS) else {
        return fleet::slicegraph(problem, options);
    };
    let model = Model::new(problem, view, options)?;
    let bound = bounds::best(&model, options);
    let sliced = brkga::search(&model, bound.value, options, None);
    Ok(solution(problem, view, &model, &sliced.blocks(), &sliced.order, bound))
}

/// Annealing over blocks, starting from the best slicing of a few orders.
pub(crate) fn anneal(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let View::Homogeneous(view) = problem.view_among(VIEWS) else {
        return fleet::annealed(problem, options);
    };
    let model = Model::new(problem, view, options)?;
    let mut incumbent = PipelineIncumbent::start(&model, options);
    incumbent.anneal(&model, options, &SharedSolution::new(&incumbent.best), 0);
    Ok(answer(problem, view, &model, incumbent))
}

/// Exact integer program, with the result of a short search as the warm start.
pub(crate) fn milp(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let View::Homogeneous(view) = problem.view_among(VIEWS) else {
        return fleet::exact(problem, options);
    };
    let since = Instant::now();
    let model = Model::new(problem, view, options)?;
    let (mut incumbent, shared) = PipelineIncumbent::short_search(&model, options);
    milp::exact(&model, &mut incumbent, &milp::limits(options, since, 1.0), options, &shared)?;
    Ok(answer(problem, view, &model, incumbent))
}

/// Portfolio for equal devices.
pub(crate) fn auto(problem: &Problem, view: &Pipeline, options: &Options) -> Result<Solution, Error> {
    if options.replicas() > 1 {
        return turns::plan(problem, view, options);
    }
    let since = Instant::now();
    let model = Model::new(problem, view, options)?;
    let incumbent = auto::solve(&model, options, since);
    options.observer.taken(incumbent.best.value(), incumbent.best.by());
    Ok(answer(problem, view, &model, incumbent))
}

/// Returns true if some pipeline on different devices is found.
pub(crate) fn has_plan(problem: &Problem, options: &Options) -> bool {
    problem.mtpp.is_none() && fleet::has_plan(problem, options)
}

/// Returns every bound for equal devices by name, weakest first, each with its share of the limit.
pub(crate) fn all_bounds(problem: &Problem, view: &Pipeline, options: &Options) -> Result<Vec<Bound>, Error> {
    if options.replicas() > 1 {
        return turns::all_bounds(problem, view, options);
    }
    let since = Instant::now();
    let model = Model::new(problem, view, options)?;
    let (mut incumbent, shared) = PipelineIncumbent::short_search(&model, options);
    let simple = bounds::simple(&model);
    let mut all = vec![simple.clone()];
    all.extend((model.tasks() <= bounds::MOST_TASKS).then(|| bounds::windows(&model, simple.value)));
    all.extend(priced::cut(&model, simple.value, &mut Effort::nodes(bounds::CUT_NODES)));
    all.push(milp::bottleneck(&model, &incumbent, &milp::limits(options, since, 0.2))?);
    all.push(milp::bottleneck_guess(&model, &incumbent, &milp::limits(options, since, 0.3))?);
    let mut effort = proof::effort(options, since, 0.5, &shared);
    all.extend(priced::priced(&model, simple.value, incumbent.best.value(), &mut effort, &mut |_| {})?);
    milp::exact(&model, &mut incumbent, &milp::limits(options, since, 1.0), options, &shared)?;
    if all.iter().all(|bound| bound.by != incumbent.best.bound().by) {
        all.push(incumbent.best.bound().clone());
    }
    Ok(all)
}

/// Returns options with a small budget.
fn brief(options: &Options) -> Options {
    let limit = match options.limit {
        Some(Limit::Seconds(seconds)) => Limit::Seconds((seconds * BRIEF_SHARE).min(BRIEF_SECONDS)),
        Some(Limit::Iterations(count)) => Limit::Iterations(count.min(BRIEF_MOVES)),
        None => Limit::Iterations(BRIEF_MOVES),
    };
    Options { limit: Some(limit), ..options.clone() }
}

fn answer(problem: &Problem, view: &Pipeline, model: &Model, incumbent: PipelineIncumbent) -> Solution {
    solution(problem, view, model, incumbent.blocks(), &incumbent.order, incumbent.best.bound().clone())
}

/// Builds the plan for blocks whose tasks run in this order.
fn solution(problem: &Problem, view: &Pipeline, model: &Model, block: &[u32], order: &[u32], bound: Bound) -> Solution {
    let blocks = model.node_blocks(block);
    let nodes: Vec<usize> = order.iter().flat_map(|task| model.nodes[*task as usize].iter().copied()).collect();
    let asked = Blocks { block: &blocks, order: &nodes, k: model.k };
    let bottleneck = cost::bottleneck(problem, view, model.cost, &asked);
    // The order within a block only affects its peak memory.
    let stages = model.memory.is_some().then(|| {
        let of_block = |block: usize| nodes.iter().copied().filter(|node| blocks[*node] == block).collect();
        Stages { block_device: None, order: Some((0..model.k).map(of_block).collect()) }
    });
    let schedule = Schedule::Pipeline { block: blocks, k: model.k as u32, bottleneck, stages };
    Solution { schedule, bound: Some(bound) }
}
