//! Searches: valid plans, none worse than the start, reproducible, and mostly the optimum of an enumeration.

mod small;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use divi_papers::generate::{Rwnn, rwnn};
use divi_planner::PipelineCost;
use divi_planner::plan::{Batch, LaunchRule, Limit};
use divi_planner::problem::MemoryModel;
use divi_planner::random::Random;
use divi_planner::units::{Bytes, Micros};
use divi_planner::{Error, Objective, Observer, Options, Plan, Problem, SolverEvent, algorithms, solve};
use small::random_problem::{Size, problem};
use small::{brute_force, naive};

const SEARCHES: [&str; 3] = ["anneal", "lns", "evolve"];

fn limited(iterations: u64, seed: u64) -> Options {
    Options { seed, limit: Some(Limit::Iterations(iterations)), ..Options::default() }
}

fn objective(problem: &Problem) -> Objective {
    if problem.inputs > 1 { Objective::Batch } else { Objective::Latency }
}

/// Returns the value of an algorithm's plan; `None` if it finds none.
fn value(problem: &Problem, algorithm: &str, options: &Options) -> Option<Micros> {
    divi_papers::register();
    match solve(problem, objective(problem), algorithm, options) {
        Ok(plan) => Some(plan.value),
        Err(Error::NotFound(_) | Error::Problem(_) | Error::Infeasible(_)) => None,
        Err(error) => panic!("{algorithm}: {error}\n{}", problem.write()),
    }
}

/// Returns the number of problems that were compared with their optimum, and for how many of them each search found it.
fn compare(count: usize, size: &Size, seed: u64) -> (usize, [usize; 3]) {
    let mut random = Random::new(seed);
    let (mut compared, mut found) = (0, [0; 3]);
    for _ in 0..count {
        let problem = problem(size, &mut random);
        let starts = ["heft", "greedy", "met", "single"].map(|start| value(&problem, start, &Options::default()));
        // Memory is covered by the tests of plans; here the optimum is that of schedules.
        let unlimited = problem.devices.iter().all(|device| device.memory.is_none());
        let optimum = brute_force::best(&problem, &|_| true).filter(|_| unlimited).map(|(value, _)| value);
        compared += usize::from(optimum.is_some() && starts[0].is_some());
        for (index, search) in SEARCHES.into_iter().enumerate() {
            let start = if search == "evolve" { starts[2] } else { starts.into_iter().flatten().reduce(Micros::min) };
            let value = value(&problem, search, &limited(600, seed));
            assert_eq!(value.is_some(), start.is_some(), "{search}\n{}", problem.write());
            let (Some(value), Some(start)) = (value, start) else { continue };
            assert!(value <= start, "{search}: {value} is worse than {start}\n{}", problem.write());
            if let Some(optimum) = optimum {
                assert!(value >= optimum * (1.0 - 1e-9), "{search}: {value} is below {optimum}\n{}", problem.write());
                found[index] += usize::from(value <= optimum * (1.0 + 1e-9));
            }
        }
    }
    (compared, found)
}

#[test]
fn the_optimum_of_one_input() {
    let (compared, [anneal, lns, evolve]) = compare(300, &Size { nodes: 5, devices: 3, inputs: 1 }, 11);
    assert!(compared > 100, "{compared}");
    assert!(anneal * 100 >= compared * 98 && lns * 100 >= compared * 98, "{anneal}, {lns} of {compared}");
    // A fixed order without backtracking: the paper's own limits.
    assert!(evolve * 100 >= compared * 70, "{evolve} of {compared}");
}

#[test]
fn the_optimum_of_queues() {
    let (compared, [anneal, lns, evolve]) = compare(150, &Size { nodes: 3, devices: 2, inputs: 3 }, 12);
    assert!(compared > 60, "{compared}");
    assert!(anneal * 100 >= compared * 95 && lns * 100 >= compared * 95, "{anneal}, {lns} of {compared}");
    assert!(evolve * 100 >= compared * 70, "{evolve} of {compared}");
}

/// Larger problems with all features of the format: results are schedules by the naive check, too.
#[test]
fn plans_hold() {
    let mut random = Random::new(13);
    let mut held = 0;
    for round in 0..40_u64 {
        let inputs = if round % 2 == 0 { 1 } else { 6 };
        let problem = problem(&Size { nodes: 24, devices: 4, inputs }, &mut random);
        for search in SEARCHES {
            let Ok(plan) = solve(&problem, objective(&problem), search, &limited(400, round)) else { continue };
            assert!(naive::is_schedule(&problem, &batches(&plan)), "{search}\n{}{}", problem.write(), plan.write());
            assert!(plan.bound <= plan.value);
            held += 1;
        }
    }
    assert!(held > 60, "{held}");
}

fn batches(plan: &Plan) -> Vec<Batch> {
    match &plan.schedule {
        divi_planner::plan::Schedule::Batch { batches, .. } => batches.clone(),
        divi_planner::plan::Schedule::Latency { device, start, .. } => {
            let batch = |(node, (device, start)): (usize, (&usize, &Micros))| Batch {
                node,
                device: *device,
                inputs: vec![0],
                start: *start,
            };
            device.iter().zip(start).enumerate().map(batch).collect()
        }
        _ => panic!("neither latency nor batch"),
    }
}

fn instance(name: &str) -> Problem {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/problems").join(name);
    Problem::read(&fs::read_to_string(path).expect("a problem")).expect("a well-formed problem")
}

#[test]
fn the_same_every_time_and_better_than_heft() {
    for (name, most) in [
        ("rwnn/rwnn_ER_N10_m5_c2_wdep_s1.json", 0.94),
        ("rwnn/rwnn_ER_N32_m1_c1_sdep_s2_ccr1.0.json", 0.94),
        ("batch/rwnn_ER_N10_m1_c1_sdep_s1_L16.json", 0.9),
        ("batch/rwnn_ER_N10_m5_c1_sdep_s1_L16.json", 0.92),
        ("batch/rwnn_ER_N10_m10_c1_sdep_s6_L16_mem.json", 0.87),
    ] {
        let problem = instance(name);
        let heft = value(&problem, "heft", &Options::default()).expect("a plan");
        let queue = problem.inputs > 1;
        let trials = if queue { 6_000 } else { 20_000 };
        for search in ["anneal", "lns", "milp-split"].into_iter().filter(|search| queue || *search != "milp-split") {
            let plan =
                |seed: u64| solve(&problem, objective(&problem), search, &limited(trials, seed)).expect("a plan");
            let first = plan(1);
            assert_eq!(first.write(), plan(1).write(), "{name} {search}");
            assert!(first.value <= heft * most, "{name} {search}: {} of {heft}", first.value);
        }
        let met = value(&problem, "met", &Options::default()).expect("a plan");
        let evolve = value(&problem, "evolve", &limited(400, 1)).expect("a plan");
        assert!(evolve < met, "{name}: {evolve} of {met}");
    }
}

/// Segment by segment, with more cuts than are all evaluated: tasks that are not placed yet have no influence.
#[test]
fn queues_of_single_inputs_in_segments() {
    for seed in 1..=3 {
        let mut problem = rwnn(&Rwnn { modules: 3, nodes: 4, inputs: 16, seed, ..Rwnn::default() }).unwrap();
        problem.devices.iter_mut().for_each(|device| device.batch_sizes.insert(0, 1));
        for node in &mut problem.nodes {
            let single = node.time[&4].iter().map(|time| time.map(|time| time * 0.4)).collect();
            node.time.insert(1, single);
        }
        let heft = value(&problem, "heft", &Options::default()).expect("a plan");
        for algorithm in ["milp-split", "auto"] {
            let options = Options { launches: LaunchRule::One, ..limited(4_000, seed) };
            let plan = solve(&problem, Objective::Batch, algorithm, &options).expect("a plan");
            assert!(naive::is_schedule(&problem, &batches(&plan)), "{algorithm}\n{}", plan.write());
            assert!(plan.value <= heft, "{algorithm}: {} of {heft}", plan.value);
        }
    }
}

/// Peak memory depends on the order: a search over devices alone would exceed it.
#[test]
fn live_tensors_fit() {
    let mut problem = instance("rwnn/rwnn_ER_N10_m5_c1_sdep_s1.json");
    problem.memory_model = MemoryModel::Liveness;
    let total: Bytes = problem.nodes.iter().map(|node| node.weight + node.output.unwrap_or_default()).sum();
    for share in [0.6, 0.45] {
        problem.devices.iter_mut().for_each(|device| device.memory = Some(Bytes((total.0 * share).round())));
        let heft = value(&problem, "heft", &Options::default()).expect("a plan");
        for search in ["anneal", "lns"] {
            let value = value(&problem, search, &limited(8_000, 3)).expect("a plan that fits");
            assert!(value < heft, "{search} with {share}: {value} of {heft}");
        }
    }
}

/// Events end with the value of the plan, under the name of an algorithm or of a part of the portfolio, and no reported bound
/// is above it.
#[test]
fn events_lead_to_the_plan() {
    divi_papers::register();
    let problem = rwnn(&Rwnn { modules: 3, channels: 2, seed: 7, ..Rwnn::default() }).unwrap();
    for objective in Objective::ALL {
        for algorithm in algorithms().iter().filter(|algorithm| algorithm.solver(objective).is_some()) {
            let algorithm = algorithm.name;
            let heard = Arc::new(Mutex::new(Vec::new()));
            let ear = Arc::clone(&heard);
            let observer = Observer::new(move |event| ear.lock().unwrap().push(event));
            let mut options = Options { limit: Some(Limit::Iterations(2_000)), observer, ..Options::default() };
            if algorithm == "branch-and-bound" {
                (options.pipeline_cost, options.shared_devices) = (Some(PipelineCost::Overlap), true);
            }
            let plan = solve(&problem, objective, algorithm, &options).unwrap();
            let heard = heard.lock().unwrap();
            let mut least = (Micros::INFINITY, "nothing");
            for event in heard.iter() {
                match *event {
                    SolverEvent::Plan(value, by) => {
                        let is_known = by == "microbatch" || algorithms().iter().any(|known| known.name == by);
                        assert!(is_known, "{objective} {algorithm}: '{by}'");
                        assert_ne!(by, "auto", "{objective}");
                        if value < least.0 {
                            least = (value, by);
                        }
                    }
                    SolverEvent::Bound(bound, _) => {
                        assert!(
                            bound <= plan.value + Micros(1e-6),
                            "{objective} {algorithm}: {bound} is above {}",
                            plan.value
                        );
                    }
                    SolverEvent::Failed(part) => panic!("{objective} {algorithm}: {part} has failed"),
                    SolverEvent::Explored(count, _) => assert!(count > 0, "{objective} {algorithm}"),
                    SolverEvent::Taken(part) => {
                        assert_eq!(algorithm, "auto", "{objective} {part}");
                        let of_part = |event: &SolverEvent| matches!(event, SolverEvent::Plan(value, by) if *by == part && (*value - plan.value).abs() < Micros(1e-6));
                        assert!(heard.iter().any(of_part), "{objective}: {part} has told of no such plan");
                    }
                }
            }
            let (value, by) = least;
            let told = format!("{objective} {algorithm}: told of {value} by {by}, answered {}", plan.value);
            assert!((value - plan.value).abs() < Micros(1e-6), "{told}");
            let taken = heard.iter().filter(|event| matches!(event, SolverEvent::Taken(_))).count();
            assert_eq!(taken, usize::from(algorithm == "auto"), "{objective} {algorithm}");
        }
    }
}
