//! Integer programs on the repository's instances, on problems with equal devices, and under limits.

mod small;

use std::fs;
use std::path::Path;

use divi_papers::generate::{Rwnn, rwnn};
use divi_planner::plan::{LaunchRule, Limit};
use divi_planner::random::Random;
use divi_planner::units::Micros;
use divi_planner::{Error, Objective, Options, Plan, Problem, solve};
use small::random_problem::{self, Size};
use small::{brute_force, naive};

fn problem(name: &str) -> Problem {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/problems").join(name);
    Problem::read(&fs::read_to_string(path).expect("a problem")).expect("a well-formed problem")
}

fn objective(problem: &Problem) -> Objective {
    if problem.inputs > 1 { Objective::Batch } else { Objective::Latency }
}

fn solved(problem: &Problem, algorithm: &str, limit: Option<Limit>) -> Plan {
    divi_papers::register();
    solve(problem, objective(problem), algorithm, &Options { limit, launches: LaunchRule::One, ..Options::default() })
        .unwrap_or_else(|error| panic!("{algorithm}: {error}"))
}

#[test]
fn modules_are_proven() {
    let optima = [
        ("ER_N10_m1_c1_sdep_s1", 10169.0),
        ("ER_N10_m1_c1_sdep_s3", 23469.0),
        ("BA_N10_m1_c1_sdep_s1", 16545.0),
        ("WS_N10_m1_c1_sdep_s1", 10210.0),
    ];
    for (name, optimum) in optima {
        let problem = problem(&format!("rwnn/rwnn_{name}.json"));
        // The paper's program of the first network takes a minute.
        let algorithms = if name.starts_with("ER_N10_m1_c1_sdep_s1") { &["milp"][..] } else { &["milp", "milp-paper"] };
        for &algorithm in algorithms {
            let plan = solved(&problem, algorithm, None);
            assert_eq!(
                (plan.value, plan.bound, plan.gap),
                (Micros(optimum), Micros(optimum), 0.0),
                "{name} {algorithm}"
            );
            // The paper's program is weak: its bound may remain a claim of the solver.
            assert!(plan.is_optimal() || algorithm == "milp-paper", "{name} {algorithm}");
        }
    }
}

/// Makes the second device equal to the first.
fn twins(problem: &mut Problem) {
    problem.devices[1].batch_sizes = problem.devices[0].batch_sizes.clone();
    problem.devices[1].memory = problem.devices[0].memory;
    for times in problem.nodes.iter_mut().flat_map(|node| node.time.values_mut()) {
        times[1] = times[0];
    }
    twin_links(&mut problem.bandwidth);
    problem.link_latency.iter_mut().for_each(|latency| twin_links(latency));
}

fn twin_links<T: Copy>(matrix: &mut [Vec<T>]) {
    matrix[1][0] = matrix[0][1];
    let to_others = matrix[0][2..].to_vec();
    matrix[1][2..].copy_from_slice(&to_others);
    matrix.iter_mut().skip(2).for_each(|row| row[1] = row[0]);
}

/// Tests that symmetry breaking does not exclude all optima.
#[test]
fn equal_devices() {
    let mut random = Random::new(1);
    let mut compared = 0;
    while compared < 200 {
        let size = if random.chance(0.5) {
            Size { nodes: 4, devices: 3, inputs: 1 }
        } else {
            Size { nodes: 2, devices: 3, inputs: 3 }
        };
        let mut problem = random_problem::problem(&size, &mut random);
        if problem.devices.len() < 2 || problem.devices.iter().any(|device| device.memory.is_some()) {
            continue;
        }
        twins(&mut problem);
        let Some((optimum, batches)) = brute_force::best(&problem, &|_| true) else { continue };
        assert!(naive::is_schedule(&problem, &batches));
        let plan = solved(&problem, "milp", None);
        assert!((plan.value - optimum).abs() <= 1e-9 * optimum, "{} {optimum}\n{}", plan.value, problem.write());
        assert!((plan.bound - optimum).abs() <= 1e-9 * optimum, "{} {optimum}\n{}", plan.bound, problem.write());
        assert!(plan.is_optimal(), "{}", problem.write());
        compared += 1;
    }
}

/// Tests that every limit gives a plan and a bound, reproducibly, and none that is worse than a list scheduler's.
#[test]
fn limits_are_kept() {
    for name in ["rwnn/rwnn_ER_N32_m1_c1_sdep_s1.json", "batch/rwnn_ER_N6_m1_c1_sdep_s5_L4.json"] {
        let problem = problem(name);
        let listed = solved(&problem, "heft", None).value;
        for algorithm in ["milp", "milp-paper"] {
            if algorithm == "milp-paper" && problem.inputs > 1 {
                continue;
            }
            for iterations in [0, 1, 800] {
                let plan = solved(&problem, algorithm, Some(Limit::Iterations(iterations)));
                assert!(plan.value <= listed && plan.bound <= plan.value, "{name} {algorithm} {iterations}");
                let again = solved(&problem, algorithm, Some(Limit::Iterations(iterations)));
                assert_eq!(plan.write(), again.write(), "{name} {algorithm} {iterations}");
            }
            let plan = solved(&problem, algorithm, Some(Limit::Seconds(0.0)));
            assert!(plan.value <= listed && plan.bound <= plan.value, "{name} {algorithm}");
        }
    }
}

/// Tests that the bound of an unsolved program is valid, and better than paths and loads.
#[test]
fn unsolved_networks() {
    let problem = problem("rwnn/rwnn_ER_N10_m5_c1_sdep_s1.json");
    let plan = solved(&problem, "milp", Some(Limit::Iterations(8000)));
    assert!(plan.bound <= Micros(59907.0) && plan.bound > Micros(57000.0) && plan.bound_by == "milp", "{}", plan.bound);
}

#[test]
fn too_large_programs_are_rejected() {
    divi_papers::register();
    let mut many = rwnn(&Rwnn { nodes: 900, ..Rwnn::default() }).unwrap();
    many.edges = Some(Vec::new());
    let queue = rwnn(&Rwnn { modules: 10, inputs: 400, ..Rwnn::default() }).unwrap();
    for (problem, algorithm, what) in [
        (&many, "milp", "812702 order variables for 902 tasks; 100000 at most"),
        (&many, "milp-paper", "406351 order variables for 902 tasks; 100000 at most"),
        (&queue, "milp", "variables for who takes which input; 200000 at most"),
    ] {
        let options = Options { limit: Some(Limit::Iterations(1)), ..Options::default() };
        let error = solve(problem, objective(problem), algorithm, &options).unwrap_err();
        assert!(matches!(&error, Error::Unsupported(message) if message.contains(what)), "{algorithm}: {error}");
    }
}
