//! The (1+1) evolutionary algorithm on the cuts of a queue, in the order of its start.

use super::cut;
use super::groups::{alive_fits, recut};
use super::model::Model;
use super::schedule::{Choice, Schedule};
use crate::model::instance::Instance;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::Budget;
use crate::solvers::search::evolve::gap;
use crate::solvers::search::memory::Limits;

/// One chain: the best value, and the choice that has it.
pub(super) fn run(
    instance: &Instance,
    model: &Model,
    start: &Choice,
    mut random: Random,
    budget: Budget<'_>,
) -> (Micros, Choice) {
    let (devices, groups) = (model.devices, &model.groups);
    let limits = Limits::of(instance);
    let mut schedule = Schedule::new(model, start.clone());
    let mut value = schedule.forward(model);
    let mut parent = start.clone();
    let mut trials = 0;
    while budget.spent(trials) < 1.0 {
        trials += 1;
        let mut next = random.below(groups.len());
        while next < groups.len() {
            let group = &groups[next];
            let mut fresh = parent.cuts[group[0] * devices..][..devices].to_vec();
            cut::mutate(&mut fresh, &mut random);
            if group.iter().all(|task| model.runs(*task, &fresh)) {
                recut(&mut schedule.choice, group, &fresh);
            }
            next += 1 + gap(&mut random, groups.len());
        }
        let fitting = || limits == Limits::None || model.room(&schedule.choice.cuts).iter().all(|room| *room >= 0.0);
        let fitting = fitting();
        let trial = schedule.forward(model);
        if trial <= value && fitting && alive_fits(instance, model, limits, &schedule.choice) {
            value = trial;
            budget.tell(value);
            parent.clone_from(&schedule.choice);
        } else {
            schedule.choice.clone_from(&parent);
        }
    }
    (value, parent)
}
