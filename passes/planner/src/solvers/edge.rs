//! Pipelines on edge networks (the edge paper): assigns layers to machines so that the slowest machine or link, which
//! determines the period, is as fast as possible.
//!
//! A machine takes the sum of its layers' times, in any number of threads of consecutive layers; a link takes the sum
//! of its transfers. Split points are changes of machine along the layers' order, which is the topological order with
//! the lowest number first.
//!
//! `branch-and-bound` is the paper's tree with a bound that holds for any graph. For a problem without an edge network,
//! its devices are the machines.

mod bounds;
mod memo;
mod model;
mod region;
mod state;
mod symmetry;
mod tree;

use crate::model::error::{Error, Finding};
use crate::model::options::{Options, PipelineCost};
use crate::model::plan::{Bound, Objective, Schedule, Stages};
use crate::model::problem::{EdgeNetwork, Problem, View, ViewKind};
use crate::model::units::Micros;
use crate::solvers::Solution;
use crate::solvers::incumbent::Incumbent;

use model::Model;
pub use region::{Boundaries, Point, Region, Zone};
use tree::{Effort, End, Goal, Placed, Tree, better_than};

/// Name of the algorithm.
pub(crate) const NAME: &str = "branch-and-bound";

/// Default limit of search nodes.
const NODES: u64 = 2_000_000;
/// Each attempt to halve the gap gets this fraction (one over) of the remaining budget.
const ATTEMPT: u32 = 32;
/// Maximum number of consecutive attempts.
const ATTEMPTS: usize = 16;
/// Relative gap that is left to the complete tree.
const NARROW: f64 = 1e-3;
/// Position of an attempt's target in the gap, and the position beyond which attempts end.
const HALF: f64 = 0.5;
const MOST_SHARE: f64 = 0.95;

type Best = Incumbent<Placed>;

/// Updates the incumbent.
fn take(best: &mut Best, placed: Placed, options: &Options) {
    options.observer.plan(placed.period);
    best.take(placed.period, placed, NAME);
}

/// Updates the lower bound.
fn prove(best: &mut Best, value: Micros, by: &str) {
    if value > best.bound().value {
        best.prove(Bound::new(value, by));
    }
}

/// Views that `branch-and-bound` plans, the preferred one first.
pub(crate) const VIEWS: &[ViewKind] = &[ViewKind::Network, ViewKind::Devices];

/// Rejects options that an edge network does not support.
pub(crate) fn check_options(options: &Options) -> Result<(), Error> {
    let unsupported = |message: &str| Err(Error::Unsupported(message.to_owned()));
    if options.pipeline_cost == Some(PipelineCost::Serial) {
        return unsupported("machines of an edge network compute and send at the same time: the cost is overlap");
    }
    if options.stages.is_some() {
        return unsupported("an edge network has split points, not a number of stages; k stages are k - 1 splits");
    }
    Ok(())
}

/// Returns the best placement on the problem's network, or on its devices where it has none.
pub(crate) fn branch_and_bound(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let view = problem.view_among(VIEWS);
    let model = match view {
        View::Network(network) => Model::of_view(problem, network, options.splits)?,
        View::Devices | View::Homogeneous(_) => Model::of_devices(problem)?,
    };
    let (best, explored) = solve(&model, options)?;
    options.observer.explored(explored);
    let (placed, bound) = best.into_parts();
    let Some(placed) = placed else {
        return Err(Error::Bug("a search without an error has no placement".to_owned()));
    };
    let on_network = matches!(view, View::Network(_));
    let schedule = if on_network { network(&model, &placed) } else { stages(&model, &placed) };
    Ok(Solution { schedule, bound: Some(bound) })
}

/// Runs [`branch_and_bound`] as part of a portfolio.
pub(crate) fn auto(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let solution = branch_and_bound(problem, Objective::Pipeline, &options.named(NAME))?;
    options.observer.taken(solution.schedule.value(), NAME);
    Ok(solution)
}

/// Returns every bound by name, weakest first. The problem's form has been checked.
pub(crate) fn all_bounds(problem: &Problem, view: &EdgeNetwork, options: &Options) -> Result<Vec<Bound>, Error> {
    check_options(options)?;
    let model = Model::of_view(problem, view, options.splits)?;
    let single = bounds::single(&model).map_or(Micros::INFINITY, |(period, _)| period);
    let work = Bound::new(bounds::work(&model, model.splits), "work");
    let links = Bound::new(single.min(bounds::crossing(&model)), "links");
    let (best, _) = solve(&model, options)?;
    Ok(vec![work, links, Bound::new(best.bound().value, NAME)])
}

/// Starts with everything on one machine, then halves the gap, with few split points at first, then searches the
/// complete tree. If the order of layers does not matter, half of the budget is for a tree with the longest layers
/// first. Also returns the number of explored nodes.
fn solve(model: &Model, options: &Options) -> Result<(Best, u64), Error> {
    let mut effort = Effort::new(options.limit, NODES);
    let mut best = Best::new(Bound::new(bounds::work(model, model.splits), "work"));
    if let Some((period, machine)) = bounds::single(model) {
        take(&mut best, Placed { on: vec![machine as u32; model.layers()], period }, options);
    }
    let links = best.value().min(bounds::crossing(model));
    prove(&mut best, links, "links");
    let mut tree = Tree::new(model);
    if best.solution().is_none() {
        let goal = Goal { below: Micros::INFINITY, splits: model.splits, any: true, until: effort.part(1) };
        first(tree.search(goal, &mut effort, |placed| take(&mut best, placed, options)))?;
    }
    let mut few = 1;
    while few < model.splits.min(model.layers()) && !best.is_closed() {
        narrow(&mut tree, &mut best, few, &mut effort, options);
        few *= 2;
    }
    let longest_first = if best.is_closed() { None } else { model.longest_first() };
    let parts = if longest_first.is_some() { 2 } else { 1 };
    finish(&mut tree, &mut best, &mut effort, parts, options);
    if let Some(sorted) = longest_first.filter(|_| !best.is_closed()) {
        best = best.map(|placed| sorted.placed_as_in(model, &placed));
        finish(&mut Tree::new(&sorted), &mut best, &mut effort, 1, options);
        best = best.map(|placed| model.placed_as_in(&sorted, &placed));
    }
    options.observer.bound(best.bound().value, NAME);
    Ok((best, effort.explored))
}

/// Halves the gap, then searches the complete tree, with one of `parts` parts of the remaining budget.
fn finish(tree: &mut Tree<'_>, best: &mut Best, effort: &mut Effort, parts: u32, options: &Options) {
    let splits = tree.model.splits;
    narrow(tree, best, splits, effort, options);
    if best.is_closed() {
        return;
    }
    let goal = Goal { below: better_than(best.value()), splits, any: false, until: effort.part(parts) };
    if tree.search(goal, effort, |placed| take(best, placed, options)) == End::Exhausted {
        let value = best.value();
        prove(best, value, NAME);
    }
}

/// Converts the end of the search for any placement to a result.
fn first(end: End) -> Result<(), Error> {
    match end {
        End::Found => Ok(()),
        End::Exhausted => {
            let message = "no placement keeps to pins, memory, links, split points and threads together";
            Err(Error::Infeasible(vec![Finding::new("network", message)]))
        }
        End::Stopped => Err(Error::NotFound("no placement was found within the limit".to_owned())),
    }
}

/// Bisects the gap as long as attempts finish quickly, with a placement in the lower part or a proof that it is empty.
/// If an attempt is stopped, the target moves up.
fn narrow(tree: &mut Tree<'_>, best: &mut Best, splits: usize, effort: &mut Effort, options: &Options) {
    // With fewer split points than allowed, a proof is valid for those only.
    let proves = splits >= tree.model.splits;
    let (mut low, mut share) = (best.bound().value, HALF);
    for _ in 0..ATTEMPTS {
        let high = best.value();
        if best.is_closed() || high - low <= NARROW * high || share > MOST_SHARE {
            return;
        }
        let below = low + (high - low) * share;
        let goal = Goal { below, splits, any: true, until: effort.part(ATTEMPT) };
        match tree.search(goal, effort, |placed| take(best, placed, options)) {
            End::Found => share = HALF,
            End::Exhausted => {
                low = below;
                if proves {
                    prove(best, below, NAME);
                    options.observer.bound(best.bound().value, NAME);
                }
            }
            End::Stopped => share = (1.0 + share) / 2.0,
        }
    }
}

/// Returns the machine of each node.
fn network(model: &Model, placed: &Placed) -> Schedule {
    let mut place = vec![0; model.layers()];
    for (node, machine) in model.nodes.iter().zip(&placed.on) {
        place[*node] = *machine as usize;
    }
    Schedule::Edge { place, period: placed.period }
}

/// Returns a stage for each run of layers on one device.
fn stages(model: &Model, placed: &Placed) -> Schedule {
    let mut block = vec![0; model.layers()];
    let mut devices: Vec<usize> = Vec::new();
    for (node, machine) in model.nodes.iter().zip(&placed.on) {
        if devices.last() != Some(&(*machine as usize)) {
            devices.push(*machine as usize);
        }
        block[*node] = devices.len() - 1;
    }
    let k = devices.len() as u32;
    let stages = Some(Stages { block_device: Some(devices), order: None });
    Schedule::Pipeline { block, k, bottleneck: placed.period, stages }
}
