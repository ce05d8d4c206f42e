//! Thousands of small random problems, solved by enumeration: no bound is above the optimum, no plan below it, no
//! feasible problem is rejected, and the verifier agrees with enumerated schedules.

mod small;

use divi_planner::plan::{Batch, Bound, LaunchRule, Limit, Schedule};
use divi_planner::problem::MemoryModel;
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Error, Instance, Objective, Options, Plan, Problem, algorithms, bounds, solve, verify};
use small::random_problem::{Size, problem};
use small::{brute_force, naive};

const SLACK: f64 = 1e-9;

/// Returns the schedule of a problem's own objective.
fn schedule(problem: &Problem, batches: &[Batch], makespan: Micros) -> Schedule {
    if problem.inputs > 1 {
        return Schedule::Batch { batches: batches.to_vec(), makespan };
    }
    let mut device = vec![0; problem.nodes.len()];
    let mut start = vec![Micros::ZERO; problem.nodes.len()];
    for batch in batches {
        (device[batch.node], start[batch.node]) = (batch.device, batch.start);
    }
    Schedule::Latency { device, start, makespan }
}

/// Checks eq. (6) independently.
fn fits_statically(problem: &Problem, batches: &[Batch]) -> bool {
    let results = |node: usize| {
        let own = problem.tensors.iter().flatten().filter(|tensor| tensor.from == node);
        problem.nodes[node].output.unwrap_or_else(|| own.map(|tensor| tensor.bytes).sum())
    };
    let bytes = |batch: &Batch| {
        let node = &problem.nodes[batch.node];
        node.weight + (node.input + results(batch.node)) * batch.inputs.len() as f64
    };
    problem.devices.iter().all(|device| {
        let held: Bytes = batches.iter().filter(|batch| batch.device == device.id).map(bytes).sum();
        device.memory.is_none_or(|memory| held <= memory)
    })
}

fn makespan(problem: &Problem, batches: &[Batch]) -> Micros {
    let time = |batch: &Batch| problem.nodes[batch.node].time[&(batch.inputs.len() as u32)][batch.device];
    batches.iter().filter_map(|batch| Some(batch.start + time(batch)?)).fold(Micros::ZERO, Micros::max)
}

/// Returns options with little effort.
/// Enumerated schedules launch a task at most once on a device.
fn one_launch() -> Options {
    Options { launches: LaunchRule::One, ..Options::default() }
}

fn briefly() -> Options {
    Options { limit: Some(Limit::Iterations(100)), ..one_launch() }
}

#[derive(Default)]
struct Tally {
    examined: usize,
    solved: usize,
    refused: usize,
    not_found: usize,
    tight: usize,
}

fn examine(problem: &Problem, tally: &mut Tally) {
    divi_papers::register();
    let objective = if problem.inputs > 1 { Objective::Batch } else { Objective::Latency };
    let accept = |batches: &[Batch]| match problem.memory_model {
        MemoryModel::Static => fits_statically(problem, batches),
        MemoryModel::Liveness => {
            let makespan = makespan(problem, batches);
            let plan = Plan::new(problem, "all", schedule(problem, batches, makespan), Bound::none());
            verify(problem, &plan).is_ok()
        }
    };
    let best = brute_force::best(problem, &accept);
    let text = || problem.write();
    let instance = match (Instance::new(problem, objective), &best) {
        (Ok(instance), _) => instance,
        (Err(error), Some((value, _))) => panic!("refused, but it takes {value}: {error}\n{}", text()),
        (Err(Error::Problem(_) | Error::Infeasible(_)), None) => {
            tally.refused += 1;
            return;
        }
        (Err(error), None) => panic!("{error}\n{}", text()),
    };
    assert_eq!(problem.check(), Ok(()));

    if let Some((value, batches)) = &best {
        let plan = Plan::new(problem, "all", schedule(problem, batches, *value), Bound::none());
        assert_eq!(verify(problem, &plan).unwrap_or_else(|error| panic!("{error}\n{}", text())), *value);
        assert_eq!(Plan::read(&plan.write()), Ok(plan));
        let bounds = bounds::all(&instance);
        for bound in &bounds {
            assert!(
                bound.value <= *value * (1.0 + SLACK),
                "{} says {}, but {value}\n{}",
                bound.by,
                bound.value,
                text()
            );
        }
        tally.tight += usize::from(bounds.iter().any(|bound| bound.value >= *value * (1.0 - SLACK)));
    }
    tally.examined += 1;
    for algorithm in algorithms().iter().filter(|algorithm| algorithm.solver(objective).is_some()) {
        // Integer programs take longer than all others together, and have tests of their own; sortinghat is for buses.
        if ["milp", "milp-paper", "sortinghat"].contains(&algorithm.name) && !tally.examined.is_multiple_of(4) {
            continue;
        }
        let exact = match algorithm.name {
            "exact" | "milp" | "milp-paper" => true,
            "milp-split" => objective == Objective::Latency,
            _ => false,
        };
        let options = if exact { one_launch() } else { briefly() };
        match (solve(problem, objective, algorithm.name, &options), &best) {
            (Ok(plan), Some((value, _))) => {
                assert!(plan.value >= *value * (1.0 - SLACK), "{}: {}\n{}", algorithm.name, plan.value, text());
                let highest = *value * (1.0 + SLACK);
                // Live memory may shrink when a task is delayed, which enumeration does not try.
                if problem.memory_model == MemoryModel::Static {
                    assert!(plan.bound <= highest, "{}: {}\n{}", algorithm.name, plan.bound, text());
                    assert!(plan.bound().verified_value() <= highest, "{}\n{}", algorithm.name, text());
                }
                assert!(plan.warnings().is_empty(), "{:?}\n{}", plan.warnings(), text());
                if exact && problem.memory_model == MemoryModel::Static {
                    assert!(plan.value <= *value * (1.0 + SLACK), "{}: {}\n{}", algorithm.name, plan.value, text());
                    assert!(plan.bound >= *value * (1.0 - SLACK), "{}: {}\n{}", algorithm.name, plan.bound, text());
                }
                tally.solved += 1;
            }
            // Only exhaustive algorithms can prove infeasibility.
            (Err(Error::Infeasible(_)), None) => {}
            // Live memory may shrink when a task is delayed, which enumeration does not try.
            (Ok(_), None) => assert_eq!(problem.memory_model, MemoryModel::Liveness, "{}", text()),
            (Err(Error::NotFound(message)), _) => {
                assert!(instance.memory_binds() || best.is_none() || missing_links(problem), "{message}\n{}", text());
                tally.not_found += usize::from(best.is_some());
            }
            (Err(error), _) => panic!("{}: {error}\n{}", algorithm.name, text()),
        }
    }
}

fn missing_links(problem: &Problem) -> bool {
    problem.bandwidth.iter().flatten().any(|bandwidth| *bandwidth == Some(BytesPerMicro::ZERO))
}

fn examine_many(count: usize, size: &Size, seed: u64) -> Tally {
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    for _ in 0..count {
        let problem = problem(size, &mut random);
        examine(&problem, &mut tally);
    }
    tally
}

#[test]
fn one_input() {
    let tally = examine_many(400, &Size { nodes: 4, devices: 3, inputs: 1 }, 1);
    assert!(tally.solved > 2000 && tally.refused > 11 && tally.tight > 200, "{} solved", tally.solved);
    assert!(tally.not_found * 50 < tally.solved, "{} not found", tally.not_found);
}

#[test]
fn one_input_more_tasks() {
    let tally = examine_many(150, &Size { nodes: 6, devices: 2, inputs: 1 }, 2);
    assert!(tally.solved > 180, "{} solved", tally.solved);
}

#[test]
fn queues() {
    let tally = examine_many(300, &Size { nodes: 3, devices: 2, inputs: 2 }, 3);
    assert!(tally.solved > 800, "{} solved", tally.solved);
    let tally = examine_many(100, &Size { nodes: 2, devices: 3, inputs: 3 }, 4);
    assert!(tally.solved > 250, "{} solved", tally.solved);
}

/// Changes one property of one launch.
fn disturb(batches: &mut Vec<Batch>, problem: &Problem, random: &mut Random) {
    let place = random.below(batches.len());
    let other = random.below(batches.len());
    match random.below(if problem.inputs > 1 { 7 } else { 3 }) {
        0 | 1 => batches[place].start += Micros([-3.0, -1.0, -0.25, 0.25, 1.0, 3.0][random.below(6)]),
        2 => batches[place].device = random.below(problem.devices.len()),
        3 => drop(batches.swap_remove(place)),
        4 => drop(batches[place].inputs.pop()),
        5 => batches[place].inputs.push(random.below(problem.inputs as usize) as u32),
        _ => {
            let inputs = batches[other].inputs.clone();
            batches[other].inputs = std::mem::replace(&mut batches[place].inputs, inputs);
        }
    }
}

#[test]
fn disturbed_plans() {
    let mut random = Random::new(5);
    let (mut held, mut broken) = (0, 0);
    while held + broken < 3000 {
        let inputs = if random.chance(0.5) { 1 } else { 2 };
        let problem = problem(&Size { nodes: 3, devices: 2, inputs }, &mut random);
        if problem.memory_model == MemoryModel::Liveness || problem.check().is_err() {
            continue;
        }
        let Some((_, best)) = brute_force::best(&problem, &|_| true) else { continue };
        for _ in 0..20 {
            let mut batches = best.clone();
            for _ in 0..1 + random.below(3) {
                if !batches.is_empty() {
                    disturb(&mut batches, &problem, &mut random);
                }
            }
            let expected = naive::is_schedule(&problem, &batches) && fits_statically(&problem, &batches);
            // A plan for one input has exactly one launch per node.
            if problem.inputs == 1 && batches.len() != problem.nodes.len() {
                continue;
            }
            let makespan = if expected { makespan(&problem, &batches) } else { Micros(1.0) };
            let schedule = schedule(&problem, &batches, makespan);
            let plan = Plan::new(&problem, "disturbed", schedule, Bound::none());
            let verified = verify(&problem, &plan);
            if expected {
                assert_eq!(verified, Ok(makespan), "{}{}", problem.write(), plan.write());
                held += 1;
            } else {
                // The value is not recomputed for such a plan, so it is not among the findings.
                let Err(Error::Plan(findings)) = verified else { panic!("{}{}", problem.write(), plan.write()) };
                let stated = ["value", "makespan", "gap"];
                assert!(findings.iter().any(|finding| !stated.contains(&finding.place.as_str())), "{findings:?}");
                broken += 1;
            }
        }
    }
    assert!(held > 350 && broken > 1500, "{held} held, {broken} broken");
}

/// The instance and the verifier compute peak memory independently, with equal results.
#[test]
fn peak_memory() {
    let mut random = Random::new(6);
    let mut compared = 0;
    while compared < 600 {
        let inputs = if random.chance(0.5) { 1 } else { 3 };
        let mut problem = problem(&Size { nodes: 6, devices: 3, inputs }, &mut random);
        problem.memory_model = MemoryModel::Liveness;
        problem.devices.iter_mut().for_each(|device| device.memory = None);
        let objective = if problem.inputs > 1 { Objective::Batch } else { Objective::Latency };
        let Ok(mut plan) = solve(&problem, objective, "heft", &one_launch()) else { continue };
        let instance = Instance::new(&problem, objective).unwrap();
        let held = match &plan.schedule {
            Schedule::Latency { device, start, .. } => instance.peak_use(device, start),
            Schedule::Batch { batches, .. } => instance.peak_use_of(batches),
            _ => panic!("neither latency nor batch"),
        };
        let device = random.below(held.len());
        let mut holds = |memory: Bytes| {
            problem.devices[device].memory = Some(memory);
            plan.problem = problem.hash();
            verify(&problem, &plan).is_ok()
        };
        assert!(holds(held[device]));
        assert!(held[device] == Bytes::ZERO || !holds(held[device] - Bytes(0.5)));
        compared += 1;
    }
}

/// Too large for enumeration: plans are valid, or there is a reason, and no bound is above any of them.
#[test]
fn larger_problems() {
    divi_papers::register();
    let mut random = Random::new(7);
    let mut solved = 0;
    for round in 0..60 {
        let inputs = if round % 2 == 0 { 1 } else { 5 };
        let problem = problem(&Size { nodes: 16, devices: 4, inputs }, &mut random);
        let objective = if problem.inputs > 1 { Objective::Batch } else { Objective::Latency };
        for algorithm in algorithms().iter().filter(|algorithm| algorithm.solver(objective).is_some()) {
            // An integer program takes as long as everything else together.
            if algorithm.name == "milp" && round % 6 > 1 {
                continue;
            }
            match solve(&problem, objective, algorithm.name, &briefly()) {
                Ok(plan) => {
                    assert!(plan.bound <= plan.value, "{}", problem.write());
                    solved += 1;
                }
                Err(Error::Problem(_) | Error::Infeasible(_) | Error::NotFound(_)) => {}
                Err(error) => panic!("{}: {error}\n{}", algorithm.name, problem.write()),
            }
        }
    }
    assert!(solved > 180, "{solved}");
}
