//! Maximum-throughput pipelines (MTPP): blocks of tasks, one a stage, of which the slowest is to be as fast as possible.
//!
//! On equal devices, `slicegraph` is the paper's algorithm: orders of the tasks, each cut at the best places. `anneal` moves
//! tasks between blocks, which reaches what orders alone do not; `milp` and `priced` prove. Where devices differ, or a
//! model's inputs and outputs have their place, `fleet` has the same: orders, annealing, an integer program.

mod anneal;
mod auto;
mod bounds;
mod brkga;
mod cost;
mod equal;
mod evolution;
mod fleet;
mod known;
mod line;
mod meeting;
mod milp;
mod model;
mod order;
mod pack;
mod priced;
mod program;
mod proof;
mod reach;
mod slice;
mod state;
#[cfg(test)]
mod test;
mod together;

use std::time::Instant;

use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit, Objective, Schedule, Stages};
use crate::model::problem::{Pipeline, Problem, View, ViewKind};
use crate::solvers::Solution;

use cost::Blocks;
pub(crate) use fleet::{all_bounds as bounds_on_devices, auto as auto_on_devices};
use known::Known;
use meeting::Meeting;
use model::Model;
use pack::Effort;

/// Views that pipelines are planned on, the preferred one first.
pub(crate) const VIEWS: &[ViewKind] = &[ViewKind::Homogeneous, ViewKind::Devices];

/// A first start for integer programs: seconds, their share of all time, moves.
const BRIEF_SECONDS: f64 = 0.5;
const BRIEF_SHARE: f64 = 0.1;
const BRIEF_MOVES: u64 = 400_000;

/// Orders, and the best slicing of each.
pub(crate) fn slicegraph(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let View::Homogeneous(view) = problem.view_among(VIEWS) else {
        return fleet::slicegraph(problem, options);
    };
    let model = Model::new(problem, view, options)?;
    let bound = bounds::best(&model, options);
    let sliced = brkga::search(&model, bound.value, options, None);
    Ok(solution(problem, view, &model, &sliced.blocks(), &sliced.order, bound))
}

/// Annealing on blocks, from a few orders' best slicing.
pub(crate) fn anneal(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let View::Homogeneous(view) = problem.view_among(VIEWS) else {
        return fleet::annealed(problem, options);
    };
    let model = Model::new(problem, view, options)?;
    let mut known = Known::start(&model, options);
    known.anneal(&model, options, &Meeting::new(&known.best), 0);
    Ok(answer(problem, view, &model, known))
}

/// The exact integer program, from a short search.
pub(crate) fn milp(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let View::Homogeneous(view) = problem.view_among(VIEWS) else {
        return fleet::exact(problem, options);
    };
    let since = Instant::now();
    let model = Model::new(problem, view, options)?;
    let (mut known, meeting) = Known::briefly(&model, options);
    milp::exact(&model, &mut known, &milp::limits(options, since, 1.0), options, &meeting)?;
    Ok(answer(problem, view, &model, known))
}

/// A portfolio for equal devices.
pub(crate) fn auto(problem: &Problem, view: &Pipeline, options: &Options) -> Result<Solution, Error> {
    let since = Instant::now();
    let model = Model::new(problem, view, options)?;
    let known = auto::solve(&model, options, since);
    options.observer.taken(known.best.value(), known.best.by());
    Ok(answer(problem, view, &model, known))
}

/// True if some pipeline is found, on devices of their own.
pub(crate) fn has_plan(problem: &Problem, options: &Options) -> bool {
    problem.mtpp.is_none() && fleet::has_plan(problem, options)
}

/// Every bound for equal devices by name, weakest first, each with its share of the limit.
pub(crate) fn all_bounds(problem: &Problem, view: &Pipeline, options: &Options) -> Result<Vec<Bound>, Error> {
    let since = Instant::now();
    let model = Model::new(problem, view, options)?;
    let (mut known, meeting) = Known::briefly(&model, options);
    let simple = bounds::simple(&model);
    let mut all = vec![simple.clone()];
    all.extend((model.tasks() <= bounds::MOST_TASKS).then(|| bounds::windows(&model, simple.value)));
    all.extend(priced::cut(&model, simple.value, &mut Effort::nodes(bounds::CUT_NODES)));
    all.push(milp::bottleneck(&model, &known, &milp::limits(options, since, 0.2))?);
    all.push(milp::bottleneck_guess(&model, &known, &milp::limits(options, since, 0.3))?);
    let mut effort = proof::effort(options, since, 0.5, &meeting);
    all.extend(priced::priced(&model, simple.value, known.best.value(), &mut effort, &mut |_| {})?);
    milp::exact(&model, &mut known, &milp::limits(options, since, 1.0), options, &meeting)?;
    if all.iter().all(|bound| bound.by != known.best.bound().by) {
        all.push(known.best.bound().clone());
    }
    Ok(all)
}

/// The same options with little to do.
fn brief(options: &Options) -> Options {
    let limit = match options.limit {
        Some(Limit::Seconds(seconds)) => Limit::Seconds((seconds * BRIEF_SHARE).min(BRIEF_SECONDS)),
        Some(Limit::Iterations(count)) => Limit::Iterations(count.min(BRIEF_MOVES)),
        None => Limit::Iterations(BRIEF_MOVES),
    };
    Options { limit: Some(limit), ..options.clone() }
}

fn answer(problem: &Problem, view: &Pipeline, model: &Model, known: Known) -> Solution {
    solution(problem, view, model, known.blocks(), &known.order, known.best.bound().clone())
}

/// The plan for blocks whose tasks run in this order.
fn solution(problem: &Problem, view: &Pipeline, model: &Model, block: &[u32], order: &[u32], bound: Bound) -> Solution {
    let blocks = model.node_blocks(block);
    let nodes: Vec<usize> = order.iter().flat_map(|task| model.nodes[*task as usize].iter().copied()).collect();
    let asked = Blocks { block: &blocks, order: &nodes, k: model.k };
    let bottleneck = cost::bottleneck(problem, view, model.cost, &asked);
    // The order within a block only makes a difference to what it holds.
    let stages = model.memory.is_some().then(|| {
        let of_block = |block: usize| nodes.iter().copied().filter(|node| blocks[*node] == block).collect();
        Stages { block_device: None, order: Some((0..model.k).map(of_block).collect()) }
    });
    let schedule = Schedule::Pipeline { block: blocks, k: model.k as u32, bottleneck, stages };
    Solution { schedule, bound: Some(bound) }
}
