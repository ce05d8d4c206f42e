//! Exact algorithms on the repository's instances, under limits and on infeasible problems.

use std::fs;
use std::path::Path;

use divi_planner::plan::{Limit, Schedule};
use divi_planner::units::Micros;
use divi_planner::{Error, Objective, Options, Plan, Problem, solve};

fn problem(name: &str) -> Problem {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/problems").join(name);
    Problem::read(&fs::read_to_string(path).expect("a problem")).expect("a well-formed problem")
}

fn solved(problem: &Problem, algorithm: &str, limit: Option<Limit>) -> Plan {
    solve(problem, Objective::Latency, algorithm, &Options { limit, ..Options::default() })
        .unwrap_or_else(|error| panic!("{algorithm}: {error}"))
}

/// Optima that were proven elsewhere, and others of the same kind that are first proven here.
#[test]
fn optima_are_proven() {
    let optima = [
        ("rwnn/rwnn_ER_N10_m1_c1_sdep_s1", 10169.0),
        ("rwnn/rwnn_ER_N10_m1_c1_sdep_s3", 23469.0),
        ("rwnn/rwnn_BA_N10_m1_c1_sdep_s1", 16545.0),
        ("rwnn/rwnn_WS_N10_m1_c1_sdep_s1", 10210.0),
        ("rwnn/rwnn_WS_N32_m1_c1_sdep_s1", 37949.0),
        ("msr/msr_lat_layer_bert24_inference", 100218.0),
    ];
    for (name, optimum) in optima {
        for algorithm in ["exact", "milp-split"] {
            let plan = solved(&problem(&format!("{name}.json")), algorithm, None);
            assert_eq!(
                (plan.value, plan.bound, plan.gap),
                (Micros(optimum), Micros(optimum), 0.0),
                "{name} {algorithm}"
            );
        }
    }
}

#[test]
fn single_channels_are_solved_by_parts() {
    let optima = [
        ("ER_N10_m5_c1_sdep_s1", 59907.0),
        ("ER_N10_m10_c1_sdep_s1", 112807.0),
        ("ER_N10_m10_c1_sdep_s4_dom", 118041.0),
        ("ER_N10_m20_c1_sdep_s1", 236170.0),
    ];
    for (name, optimum) in optima {
        let plan = solved(&problem(&format!("rwnn/rwnn_{name}.json")), "milp-split", None);
        assert_eq!((plan.value, plan.bound), (Micros(optimum), Micros(optimum)), "{name}");
        assert_eq!(plan.bound_by, "split", "{name}");
    }
}

/// Tests that every limit gives a plan and a bound, reproducibly, and none that is worse than a list scheduler's.
#[test]
fn limits_are_kept() {
    let problem = problem("rwnn/rwnn_ER_N32_m1_c1_sdep_s1.json");
    let (listed, best) = (solved(&problem, "heft", None).value, Micros(22870.0));
    for iterations in [0, 1, 100, 1000, 5000] {
        for algorithm in ["exact", "milp-split"] {
            let limit = Some(Limit::Iterations(iterations));
            let plan = solved(&problem, algorithm, limit);
            assert_eq!(plan, solved(&problem, algorithm, limit));
            assert!(plan.value <= listed && plan.bound <= best && plan.value >= best, "{iterations}: {plan:?}");
            assert_eq!(plan.limit, limit);
        }
    }
    let plan = solved(&problem, "exact", Some(Limit::Seconds(0.0)));
    assert!(plan.value >= best && plan.bound <= best);
}

/// Tests that a schedule whose tensors are live at different times fits into less memory than the sum of all tensors.
#[test]
fn liveness_is_kept() {
    let mut problem = problem("rwnn/rwnn_ER_N10_m1_c1_sdep_s3.json");
    let static_plan = solved(&problem, "exact", None);
    problem.memory_model = divi_planner::problem::MemoryModel::Liveness;
    let plan = solved(&problem, "exact", None);
    assert!(plan.value <= static_plan.value && plan.bound <= plan.value, "{} {}", plan.value, plan.bound);
}

#[test]
fn no_placement_is_an_error() {
    let text = r#"{"format": "divi-problem/1", "name": "corner",
        "devices": [{"id": 0, "name": "a", "memory": 10}, {"id": 1, "name": "b", "memory": 10}],
        "bandwidth": [[null, 1], [1, null]],
        "nodes": [{"id": 0, "time": {"1": [1, 1]}, "weight": 6, "input": 0, "output": 0},
                  {"id": 1, "time": {"1": [1, 1]}, "weight": 6, "input": 0, "output": 0},
                  {"id": 2, "time": {"1": [1, 1]}, "weight": 6, "input": 0, "output": 0}],
        "edges": [[0, 1], [1, 2]]}"#;
    let problem = Problem::read(text).expect("it is well-formed");
    for algorithm in ["exact", "milp-split"] {
        let error = solve(&problem, Objective::Latency, algorithm, &Options::default()).expect_err("there is no room");
        assert!(matches!(error, Error::Infeasible(_)), "{error}");
    }
}

/// Tests networks without tasks, with one task, and with many in a chain.
#[test]
fn small_and_long_networks() {
    let device = r#"{"id": 0, "name": "a"}, {"id": 1, "name": "b"}"#;
    for tasks in [0_usize, 1, 2, 3, 700, 1500] {
        let node = |id: usize| {
            let times = if id % 7 < 4 { "2, 5" } else { "6, 3" };
            format!(r#"{{"id": {id}, "time": {{"1": [{times}]}}, "weight": 0, "input": 0, "output": 4}}"#)
        };
        let nodes: Vec<String> = (0..tasks).map(node).collect();
        let edges: Vec<String> = (1..tasks).map(|id| format!("[{}, {id}]", id - 1)).collect();
        let text = format!(
            r#"{{"format": "divi-problem/1", "name": "row", "devices": [{device}], "bandwidth": [[null, 4], [4, null]],
                "nodes": [{}], "edges": [{}]}}"#,
            nodes.join(", "),
            edges.join(", ")
        );
        let Ok(problem) = Problem::read(&text) else { continue };
        // Dynamic program over the chain, device by device.
        let mut ends = [Micros::ZERO; 2];
        for id in 0..tasks {
            let times = (if id % 7 < 4 { [2.0, 5.0] } else { [6.0, 3.0] }).map(Micros);
            let wait = if id == 0 { Micros::ZERO } else { Micros(1.0) };
            ends = [0, 1].map(|device| Micros::min(ends[device], ends[1 - device] + wait) + times[device]);
        }
        let best = Micros::min(ends[0], ends[1]);
        let Ok(plan) = solve(&problem, Objective::Latency, "milp-split", &Options::default()) else {
            assert_eq!(tasks, 0);
            continue;
        };
        assert_eq!((plan.value, plan.bound), (best, best), "{tasks} tasks");
        let Schedule::Latency { device, .. } = &plan.schedule else { panic!("not a schedule of one input") };
        assert_eq!(device.len(), tasks);
    }
}
