//! The (1+1) evolutionary algorithm on a device for each task, in breadth-first order.

use super::memory::{Limits, fits};
use super::model::Model;
use super::schedule::{Choice, Schedule};
use crate::model::instance::Instance;
use crate::model::plan;
use crate::random::Random;
use crate::solvers::chains::Allowance;
use crate::solvers::list;

/// Improves a placement of one input. None where there is nothing to improve.
pub(super) fn latency(instance: &Instance, device: &[usize], allowance: &Allowance) -> Option<plan::Schedule> {
    if instance.tasks() == 0 || instance.devices() > usize::from(u8::MAX) {
        return None;
    }
    let model = Model::new(instance);
    let choice = Choice {
        device: device.iter().map(|device| *device as u8).collect(),
        order: list::breadth_first(instance).into_iter().map(|task| task as u32).collect(),
    };
    let limits = Limits::of(instance);
    let fitting = |schedule: &Schedule| match limits {
        Limits::None => true,
        Limits::Sums | Limits::Lives if model.room(&schedule.choice.device).iter().any(|room| *room < 0.0) => false,
        Limits::Sums => true,
        Limits::Lives => {
            let (device, start) = schedule.devices_and_starts();
            fits(instance, &instance.peak_use(&device, &start))
        }
    };
    let best = allowance.best_of(|mut random, budget| {
        let mut schedule = Schedule::new(&model, choice.clone());
        let mut value = schedule.forward(&model);
        let mut changed = Vec::new();
        let mut trials = 0;
        while budget.spent(trials) < 1.0 {
            trials += 1;
            mutate(instance, &mut random, &mut schedule.choice.device, &mut changed);
            let trial = schedule.forward(&model);
            if trial <= value && fitting(&schedule) {
                value = trial;
                budget.tell(value);
            } else {
                changed.iter().rev().for_each(|(task, old)| schedule.choice.device[*task] = *old);
            }
        }
        (value, schedule.choice)
    })?;
    Some(Schedule::new(&model, best).into_plan())
}

/// Gives each group of tasks another device with a probability of one in their number; at least one of them.
fn mutate(instance: &Instance, random: &mut Random, device: &mut [u8], changed: &mut Vec<(usize, u8)>) {
    let groups = instance.groups();
    changed.clear();
    // The gaps between successes of such trials are drawn, not the trials.
    let mut next = random.below(groups.len());
    while next < groups.len() {
        let options = instance.allowed(groups[next][0]);
        let chosen = options[random.below(options.len())] as u8;
        for &task in &groups[next] {
            changed.push((task, device[task]));
            device[task] = chosen;
        }
        next += 1 + gap(random, groups.len());
    }
}

/// How many trials fail before one succeeds that does so once in `one_in`.
pub(super) fn gap(random: &mut Random, one_in: usize) -> usize {
    if one_in <= 1 {
        return 0;
    }
    let failure = 1.0 - 1.0 / one_in as f64;
    ((1.0 - random.unit()).ln() / failure.ln()) as usize
}
