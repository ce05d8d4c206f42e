//! SortingHat: one input on a machine whose buses matter, with parameters that are still in the host's memory.
//!
//! The network is cut at its dominators, and planned piece by piece; each piece knows when devices and buses are free, what is
//! where and who holds what after the pieces before it. A piece is planned by the paper's integer program where that is
//! small, and by search, which has the same model of buses and is not bound to slots and turns. Then the whole is searched,
//! which takes back what cutting has cost.

mod program;
#[cfg(test)]
mod test;

use std::time::Instant;

use crate::model::budget::Budget;
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::Objective;
use crate::model::problem::Problem;
use crate::random::Random;
use crate::solvers::Solution;
use crate::solvers::baseline;
use crate::solvers::contention::{
    Chain, Choice, Job, Known, Model, Simulator, TimedSolution, as_it_is, best_bound, each_once, extend_first_to_end,
    jobs, starts,
};
use crate::solvers::dominators::submodels;
use crate::solvers::timing::launches;

/// Dominators in a piece: the paper finds one to be enough.
const DOMINATORS: usize = 1;
/// Trials for each job of a piece.
const TRIALS_EACH: u64 = 60;
/// The share of the time after which pieces are not searched any more, but put together as they are.
const PIECES_SHARE: f64 = 0.3;

/// Without contention and with all parameters at hand, it is a search like others.
pub(crate) fn sortinghat(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let TimedSolution { timed, bound } = solve(problem, options, None)?;
    Ok(Solution { schedule: timed.schedule, bound: Some(bound) })
}

/// The plan, with its transfers and copies. Another that knows nothing of them may be one of those that it starts from.
pub(crate) fn solve(problem: &Problem, options: &Options, warm: Option<Solution>) -> Result<TimedSolution, Error> {
    let since = Instant::now();
    problem.relaxed().check_for(Objective::Latency)?;
    let instance = Instance::new(&problem.relaxed_without_memory(), Objective::Latency)?;
    let model = Model::new(problem, Objective::Latency, &instance, &each_once(&instance));
    let mut known = Known::new(&model);
    known.take(starts(&model));
    let listed = baseline::best(&problem.relaxed(), Objective::Latency).ok().map(|(listed, _)| listed);
    let others = listed.iter().chain(warm.iter().map(|warm| &warm.schedule));
    known.take(others.map(|other| as_it_is(&model, &launches(other))));
    known.report(options);
    known.take(piece_by_piece(&model, options, since));
    known.report(options);
    let bound = best_bound(problem, Objective::Latency, warm.and_then(|warm| warm.bound))?;
    known.anneal(bound.value, &options.left_since(since));
    Ok(TimedSolution { timed: known.timed()?, bound })
}

/// Pieces one after the other.
fn piece_by_piece(model: &Model<'_>, options: &Options, since: Instant) -> Option<Choice> {
    let order: Vec<usize> =
        model.instance.order().iter().flat_map(|task| model.of_task[*task].iter().copied()).collect();
    let pieces = submodels(model.instance, DOMINATORS);
    let count = pieces.len();
    let mut choice = Choice::empty(model);
    let mut simulator = Simulator::new(model);
    let mut random = Random::new(options.seed);
    let budget = Budget::new(options.limit, since, u64::MAX).share_of_time(PIECES_SHARE);
    for piece in pieces {
        let launches = &order[piece];
        let from = choice.order.len();
        extend_first_to_end(model, &mut choice, &mut simulator, launches, &[])?;
        let steps = jobs(model, launches);
        let to = from + steps.len();
        choice.order.extend(steps);
        if budget.is_late() {
            continue;
        }
        let trials = (TRIALS_EACH * (to - from) as u64).min(budget.iterations);
        let mut chain = Chain::new(model, choice.clone(), from, to, Random::new(random.next_u64()));
        if let Some(planned) = program::plan(model, &choice, from, launches, count, options) {
            chain.start_from(planned);
        }
        chain.try_out(trials);
        choice = chain.best;
        // Where things are after the piece.
        simulator = Simulator::new(model);
        simulator.run(&choice, &choice.order);
    }
    debug_assert!(choice.order.iter().filter(|job| matches!(job, Job::Run(_))).count() == model.launches.len());
    Some(choice)
}
