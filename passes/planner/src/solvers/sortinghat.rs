//! SortingHat: one input on a machine with contended buses, with parameters that are still in the host's memory.
//!
//! The network is cut at its dominators and planned piece by piece; each piece starts from the state of devices, buses,
//! tensors and memory after the previous pieces. A piece is planned by the paper's integer program if that is small,
//! and by annealing, which has the same model of buses but no slots and turns. Then the whole is annealed, which
//! recovers losses due to the cuts.

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
    Chain, Choice, ChoiceIncumbent, Job, Model, Simulator, TimedSolution, best_bound, each_once,
    extend_earliest_finish, from_schedule, jobs, starts,
};
use crate::solvers::dominators::submodels;
use crate::solvers::timing::launches;

/// Dominators per piece: the paper finds one to be enough.
const DOMINATORS: usize = 1;
/// Trials for each job of a piece.
const TRIALS_EACH: u64 = 60;
/// Share of the time after which pieces are no longer searched, only appended.
const PIECES_SHARE: f64 = 0.3;

/// Solves the problem as an algorithm of its own; without contention and cold start it is plain annealing.
pub(crate) fn sortinghat(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let TimedSolution { timed, bound } = solve(problem, options, None)?;
    Ok(Solution { schedule: timed.schedule, bound: Some(bound) })
}

/// Returns the plan with its transfers and copies. `warm` is an optional start that ignores them.
pub(crate) fn solve(problem: &Problem, options: &Options, warm: Option<Solution>) -> Result<TimedSolution, Error> {
    let since = Instant::now();
    problem.relaxed().check_for(Objective::Latency)?;
    let instance = Instance::new(&problem.relaxed_without_memory(), Objective::Latency)?;
    let model = Model::new(problem, Objective::Latency, &instance, &each_once(&instance));
    let mut incumbent = ChoiceIncumbent::new(&model);
    incumbent.take(starts(&model));
    let listed = baseline::best(&problem.relaxed(), Objective::Latency).ok().map(|(listed, _)| listed);
    let others = listed.iter().chain(warm.iter().map(|warm| &warm.schedule));
    incumbent.take(others.map(|other| from_schedule(&model, &launches(other))));
    incumbent.report(options);
    incumbent.take(piece_by_piece(&model, options, since));
    incumbent.report(options);
    let bound = best_bound(problem, Objective::Latency, options.launches, warm.and_then(|warm| warm.bound))?;
    incumbent.anneal(bound.value, &options.left_since(since));
    Ok(TimedSolution { timed: incumbent.timed()?, bound })
}

/// Plans pieces one after the other.
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
        extend_earliest_finish(model, &mut choice, &mut simulator, launches, &[])?;
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
        chain.run_trials(trials);
        choice = chain.best;
        // State after the piece.
        simulator = Simulator::new(model);
        simulator.run(&choice, &choice.order);
    }
    debug_assert!(choice.order.iter().filter(|job| matches!(job, Job::Run(_))).count() == model.launches.len());
    Some(choice)
}
