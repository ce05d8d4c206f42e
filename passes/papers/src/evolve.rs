//! (1+1) evolutionary algorithm that assigns a device to each task; tasks are scheduled in breadth-first order.

mod queue;

use divi_planner::random::Random;
use divi_planner::solvers::chains::Allowance;
use divi_planner::solvers::list;
use divi_planner::solvers::search::latency::Model;
use divi_planner::solvers::search::memory::Limits;
use divi_planner::solvers::search::schedule::{Choice, Schedule};
use divi_planner::{Error, Instance, Objective, Options, Problem, Solution, algorithm, plan};

/// Number of trial schedules if the options set no limit.
const TRIALS: u64 = 200_000;

/// Runs the biased (1+1) evolutionary algorithm: starts from MET (each task on its fastest device), mutates one task on
/// average per trial, and accepts a trial that is no worse.
pub(crate) fn evolve(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let (_, met) = algorithm("met", objective)?;
    let start = met(problem, objective, options)?.schedule;
    let allowance = Allowance::new(options, TRIALS);
    let found = match &start {
        plan::Schedule::Latency { device, .. } => latency(&instance, device, &allowance),
        plan::Schedule::Batch { batches, .. } => queue::batch(&instance, batches, &allowance),
        plan::Schedule::Pipeline { .. } | plan::Schedule::BatchedPipeline { .. } | plan::Schedule::Edge { .. } => None,
    };
    let schedule = found.filter(|found| found.value() < start.value()).unwrap_or(start);
    Ok(Solution { schedule, bound: None })
}

/// Improves a placement of one input. Returns `None` if there is nothing to improve.
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

/// Reassigns each group of tasks with probability 1 / (number of groups), and at least one group.
fn mutate(instance: &Instance, random: &mut Random, device: &mut [u8], changed: &mut Vec<(usize, u8)>) {
    let groups = instance.groups();
    changed.clear();
    // Draws geometrically distributed gaps instead of one Bernoulli trial per group.
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

/// Draws the number of failures before the first success of Bernoulli trials with probability 1 / `one_in`.
fn gap(random: &mut Random, one_in: usize) -> usize {
    if one_in <= 1 {
        return 0;
    }
    let failure = 1.0 - 1.0 / one_in as f64;
    ((1.0 - random.unit()).ln() / failure.ln()) as usize
}
