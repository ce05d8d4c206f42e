//! Small random queues with any number of launches, against enumeration: no bound is above the optimum, no plan below it,
//! and nearly all plans are optimal.

#[path = "small/edges.rs"]
mod edges;
#[path = "small/launches.rs"]
mod launches;
#[path = "small/random_problem.rs"]
mod random_problem;

use divi_planner::plan::{Batch, Bound, LaunchRule, Limit, Schedule};
use divi_planner::problem::{Contention, MemoryModel};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, Micros};
use divi_planner::{Error, Instance, Objective, Options, Plan, Problem, Terms, bounds, solve, verify_under};
use random_problem::{Size, problem};

const SLACK: f64 = 1e-9;
/// Number of problems, and of all of them if `DIVI_ALL` is set.
const SOME: usize = 60;
const ALL: usize = 2000;
/// Of all problems, one in so many is solved with a time limit, too.
const TREE_EVERY: usize = 8;
const TREE_SECONDS: f64 = 0.4;

fn schedule_fits(problem: &Problem, batches: &[Batch]) -> bool {
    if problem.memory_model == MemoryModel::Liveness {
        let time = |batch: &Batch| problem.nodes[batch.node].time[&(batch.inputs.len() as u32)][batch.device];
        let ends = batches.iter().filter_map(|batch| Some(batch.start + time(batch)?));
        let makespan = ends.fold(Micros::ZERO, Micros::max);
        let schedule = Schedule::Batch { batches: batches.to_vec(), makespan };
        let plan = Plan { launches: LaunchRule::Many, ..Plan::new(problem, "all", schedule, Bound::none()) };
        let terms = Terms { launches: Some(LaunchRule::Many), ..Terms::default() };
        return verify_under(problem, &plan, &terms).is_ok();
    }
    let results = |node: usize| {
        let own = problem.tensors.iter().flatten().filter(|tensor| tensor.from == node);
        problem.nodes[node].output.unwrap_or_else(|| own.map(|tensor| tensor.bytes).sum())
    };
    problem.devices.iter().all(|device| {
        let mut held = Bytes::ZERO;
        for node in &problem.nodes {
            let own = batches.iter().filter(|batch| batch.device == device.id && batch.node == node.id);
            let count: usize = own.map(|batch| batch.inputs.len()).sum();
            if count > 0 {
                held += node.weight + (node.input + results(node.id)) * count as f64;
            }
        }
        device.memory.is_none_or(|memory| held <= memory)
    })
}

#[test]
fn plans_and_bounds_agree_with_enumeration() {
    let (count, effort) = if std::env::var_os("DIVI_ALL").is_some() { (ALL, 20_000) } else { (SOME, 2_000) };
    let most_steps = if count == ALL { 20_000_000 } else { 200_000 };
    let mut random = Random::new(7);
    let (mut examined, mut optimal, mut infeasible, mut skipped) = (0, 0, 0, 0);
    while examined < count {
        let size = match random.below(5) {
            0 => Size { nodes: 5, devices: 2, inputs: 2 },
            1 => Size { nodes: 3, devices: 3, inputs: 3 },
            2 => Size { nodes: 2, devices: 2, inputs: 4 },
            3 => Size { nodes: 1, devices: 3, inputs: 6 },
            _ => Size { nodes: 3, devices: 2, inputs: 4 },
        };
        let problem = problem(&size, &mut random);
        let Ok(best) = launches::best(&problem, most_steps, &|batches| schedule_fits(&problem, batches)) else {
            skipped += 1;
            continue;
        };
        examined += 1;
        let options =
            Options { launches: LaunchRule::Many, limit: Some(Limit::Iterations(effort)), ..Options::default() };
        let found = solve(&problem, Objective::Batch, "auto", &options);
        let Some(best) = best else {
            infeasible += 1;
            // With liveness, a launch that waits may fit where others do not.
            let waits = problem.memory_model == MemoryModel::Liveness && found.is_ok();
            assert!(found.is_err() || waits, "a plan of a problem that has none:\n{}", problem.write());
            continue;
        };
        let instance = Instance::under(&problem, Objective::Batch, LaunchRule::Many).expect("an instance");
        for bound in bounds::all(&instance) {
            let is_valid = bound.value <= best * (1.0 + SLACK) || problem.memory_model == MemoryModel::Liveness;
            assert!(is_valid, "{} is {}, above the optimum {best}:\n{}", bound.by, bound.value, problem.write());
        }
        // A time limit adds the bound of a search tree.
        if count == ALL && examined % TREE_EVERY == 0 && problem.memory_model != MemoryModel::Liveness {
            let options = Options { limit: Some(Limit::Seconds(TREE_SECONDS)), ..options };
            let plan = solve(&problem, Objective::Batch, "auto", &options);
            let bound = plan.map_or(Micros::ZERO, |plan| plan.bound);
            assert!(bound <= best * (1.0 + SLACK), "{bound} is above the optimum {best}:\n{}", problem.write());
        }
        match found {
            Ok(plan) => {
                let is_valid = plan.value >= best * (1.0 - SLACK) || problem.memory_model == MemoryModel::Liveness;
                assert!(is_valid, "{} is below the optimum {best}:\n{}", plan.value, problem.write());
                assert!(plan.bound <= plan.value * (1.0 + SLACK));
                optimal += usize::from(plan.value <= best * (1.0 + SLACK));
            }
            Err(Error::NotFound(_)) => {}
            Err(error) => panic!("{error}\n{}", problem.write()),
        }
    }
    println!("{optimal} of {} optimal; {infeasible} infeasible, {skipped} skipped", examined - infeasible);
    let share = optimal as f64 / (examined - infeasible) as f64;
    assert!(share >= if count == ALL { 0.98 } else { 0.9 }, "only {share} are optimal");
}

/// With buses, plans are no better than the optimum without them, and bounds of the relaxed problem hold.
#[test]
fn plans_with_buses_are_verified() {
    let mut random = Random::new(8);
    let mut solved = 0;
    for _ in 0..40 {
        let mut problem = problem(&Size { nodes: 3, devices: 3, inputs: 4 }, &mut random);
        let devices = problem.devices.len();
        problem.contention = if random.chance(0.5) { Contention::Exclusive } else { Contention::Shared };
        problem.bus = Some((0..devices).map(|_| (0..devices).map(|_| Some("bus".to_owned())).collect()).collect());
        let options = Options { launches: LaunchRule::Many, limit: Some(Limit::Iterations(300)), ..Options::default() };
        match solve(&problem, Objective::Batch, "auto", &options) {
            Ok(_) => solved += 1,
            Err(Error::NotFound(_) | Error::Infeasible(_) | Error::Problem(_)) => {}
            Err(error) => panic!("{error}\n{}", problem.write()),
        }
    }
    assert!(solved > 20, "{solved}");
}
