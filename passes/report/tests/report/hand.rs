//! A problem small enough to verify by hand, and plans for it.

use divi_planner::plan::{Bound, Plan, Schedule, Stages};
use divi_planner::units::Micros;
use divi_planner::{Problem, Terms, verify, verify_under};

/// An input passes through a convolution on the GPU, then two branches, one on the CPU, which join on the GPU.
/// A transfer takes 2 µs plus 1 µs per 100 bytes.
pub(crate) fn problem() -> Problem {
    Problem::read(
        r#"{
  "format": "divi-problem/1", "name": "by hand", "L": 1,
  "devices": [
    {"id": 0, "name": "cpu0", "memory": 100000, "batch_sizes": [1]},
    {"id": 1, "name": "gpu0", "memory": null, "batch_sizes": [1]}
  ],
  "bandwidth": [[null, 100], [100, null]],
  "link_latency": [[null, 2], [2, null]],
  "bus": [[null, "pcie"], ["pcie.reverse", null]],
  "memory_model": "liveness",
  "nodes": [
    {"id": 0, "name": "in", "time": {"1": [0, null]}, "weight": 0, "input": 0, "output": 1000, "pin": 0},
    {"id": 1, "name": "conv", "time": {"1": [90, 10]}, "weight": 5000, "input": 1000, "output": 400},
    {"id": 2, "name": "left", "time": {"1": [30, 4]}, "weight": 0, "input": 400, "output": 200, "scratch": 50},
    {"id": 3, "name": "right", "time": {"1": [20, 25]}, "weight": 70, "input": 400, "output": 300},
    {"id": 4, "name": "add", "time": {"1": [6, 5]}, "weight": 0, "input": 500, "output": 100},
    {"id": 5, "name": "out", "time": {"1": [0, null]}, "weight": 0, "input": 100, "output": 0, "pin": 0}
  ],
  "edges": [[0, 1], [1, 2], [1, 3], [2, 4], [3, 4], [4, 5]]
}"#,
    )
    .expect("it is well-formed")
}

/// All tasks on the GPU except `right`; the plan is valid.
pub(crate) fn plan(problem: &Problem) -> Plan {
    let device = vec![0, 1, 1, 0, 1, 0];
    let start = [0.0, 12.0, 22.0, 28.0, 53.0, 61.0].map(Micros).to_vec();
    let plan = Plan::new(
        problem,
        "hand",
        Schedule::Latency { device, start, makespan: Micros(61.0) },
        Bound::new(Micros(58.0), "hand"),
    );
    assert_eq!(verify(problem, &plan), Ok(Micros(61.0)));
    plan
}

/// `conv` and `left` on the GPU, then `right` and `add` on the CPU, with the model inputs and outputs.
pub(crate) fn pipeline(problem: &Problem, cost: &str, value: f64) -> Plan {
    let stages = Some(Stages { block_device: Some(vec![0, 1, 0, 0]), order: None });
    let schedule = Schedule::Pipeline { block: vec![0, 1, 1, 2, 2, 3], k: 4, bottleneck: Micros(value), stages };
    let mut plan = Plan::new(problem, "hand", schedule, Bound::new(Micros(20.0), "hand"));
    plan.pipeline_cost = Some(cost.to_owned());
    assert_eq!(verify_under(problem, &plan, &Terms::stated_by(&plan)), Ok(Micros(value)));
    plan
}
