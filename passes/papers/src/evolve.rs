//! The (1+1) evolutionary algorithm on a device for each task, in breadth-first order.

mod queue;

use divi_planner::random::Random;
use divi_planner::solvers::chains::Allowance;
use divi_planner::solvers::list;
use divi_planner::solvers::search::latency::Model;
use divi_planner::solvers::search::memory::Limits;
use divi_planner::solvers::search::schedule::{Choice, Schedule};
use divi_planner::{Error, Instance, Objective, Options, Problem, Solution, algorithm, plan};

/// Trial schedules without a limit.
const TRIALS: u64 = 200_000;

/// The biased (1+1) evolutionary algorithm: starts with each task where it runs fastest, changes about one task at a time,
/// and keeps what is no worse.
pub(crate) fn evolve(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let (_, met) = algorithm("met", objective)?;
    let start = met(problem, objective, options)?.schedule;
    let allowance = Allowance::new(options, TRIALS);
    let found = match &start {
        plan::Schedule::Latency { device, .. } => latency(&instance, device, &allowance),
        plan::Schedule::Batch { batches, .. } => queue::batch(&instance, batches, &allowance),
        plan::Schedule::Pipeline { .. } | plan::Schedule::Edge { .. } => None,
    };
    let schedule = found.filter(|found| found.value() < start.value()).unwrap_or(start);
    Ok(Solution { schedule, bound: None })
}

/// Improves a placement of one input. None where there is nothing to improve.
fn latency(instance: &Instance, device: &[usize], allowance: &Allowance) -> Option<plan::Schedule> {
    let model = Model::new(instance)?;
    let choice = Choice {
        places: device.iter().map(|device| *device as u8).collect(),
        order: list::breadth_first(instance).into_iter().map(|task| task as u32).collect(),
    };
    let limits = Limits::of(instance);
    let best = allowance.best_of(|mut random| {
        let mut schedule = Schedule::new(&model, choice.clone());
        let mut value = schedule.forward(&model);
        let mut changed = Vec::new();
        let mut trials = 0;
        while allowance.spent(trials) < 1.0 {
            trials += 1;
            mutate(instance, &mut random, &mut schedule.choice.places, &mut changed);
            let trial = schedule.forward(&model);
            if trial <= value && schedule.fits(instance, &model, limits) {
                value = trial;
                allowance.report(value);
            } else {
                changed.iter().rev().for_each(|(task, old)| schedule.choice.places[*task] = *old);
            }
        }
        (value, schedule.choice)
    })?;
    Some(Schedule::new(&model, best).into_plan(&model))
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

/// Draws the number of failures before a success, of trials that succeed once in `one_in`.
fn gap(random: &mut Random, one_in: usize) -> usize {
    if one_in <= 1 {
        return 0;
    }
    let failure = 1.0 - 1.0 / one_in as f64;
    ((1.0 - random.unit()).ln() / failure.ln()) as usize
}
