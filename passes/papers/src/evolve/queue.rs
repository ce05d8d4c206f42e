//! (1+1) evolutionary algorithm for a queue of inputs: mutates the batches; the task order is that of the start schedule.

use divi_planner::Instance;
use divi_planner::plan::{self, Batch};
use divi_planner::random::Random;
use divi_planner::solvers::chains::Allowance;
use divi_planner::solvers::search::batch::Model;
use divi_planner::solvers::search::memory::Limits;
use divi_planner::solvers::search::model::Model as _;
use divi_planner::solvers::search::schedule::{Choice, Schedule};
use divi_planner::units::Micros;

use super::gap;

/// Improves a schedule of a queue. Returns `None` if the instance does not fit the search model.
pub(super) fn batch(instance: &Instance, start: &[Batch], allowance: &Allowance) -> Option<plan::Schedule> {
    let model = Model::new(instance)?;
    let start = model.choice(instance, start)?;
    let best = allowance.best_of(|random| run(instance, &model, &start, random, allowance))?;
    Some(Schedule::new(&model, best).into_plan(&model))
}

/// Runs one chain; returns its best value and the choice that attains it.
fn run(
    instance: &Instance,
    model: &Model,
    start: &Choice<u64>,
    mut random: Random,
    allowance: &Allowance,
) -> (Micros, Choice<u64>) {
    let (devices, groups) = (model.graph().devices, &model.graph().groups);
    let limits = Limits::of(instance);
    let mut schedule = Schedule::new(model, start.clone());
    let mut value = schedule.forward(model);
    let mut parent = start.clone();
    let mut trials = 0;
    while allowance.spent(trials) < 1.0 {
        trials += 1;
        let mut next = random.below(groups.len());
        while next < groups.len() {
            let group = &groups[next];
            let mut fresh = parent.places[group[0] * devices..][..devices].to_vec();
            if model.mutate(group, &mut fresh, &mut random) {
                schedule.choice.set(group, &fresh);
            }
            next += 1 + gap(&mut random, groups.len());
        }
        let trial = schedule.forward(model);
        if trial <= value && schedule.fits(instance, model, limits) {
            value = trial;
            allowance.report(value);
            parent.clone_from(&schedule.choice);
        } else {
            schedule.choice.clone_from(&parent);
        }
    }
    (value, parent)
}
