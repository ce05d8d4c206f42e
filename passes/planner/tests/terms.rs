//! A plan does not decide the model that it is verified under: that is the problem's, or the caller's.

use divi_planner::PipelineCost;
use divi_planner::plan::{Batch, Bound, Schedule, Stages};
use divi_planner::problem::Contention;
use divi_planner::units::Micros;
use divi_planner::{Objective, Plan, Problem, Terms, verify, verify_under};

/// One task reads two values that are transferred over the same bus.
const BUS: &str = r#"{"format":"divi-problem/1","name":"bus",
"devices":[{"id":0,"name":"cpu"},{"id":1,"name":"gpu0"},{"id":2,"name":"gpu1"}],
"bandwidth":[[null,2,2],[2,null,2],[2,2,null]],"bus":[[null,"pcie","pcie"],["pcie",null,"pcie"],["pcie","pcie",null]],
"contention":"exclusive",
"nodes":[
{"id":0,"time":{"1":[10,null,null]},"weight":0,"input":0,"output":40},
{"id":1,"time":{"1":[null,30,null]},"weight":0,"input":40,"output":2},
{"id":2,"time":{"1":[null,null,30]},"weight":0,"input":40,"output":2}],
"edges":[[0,1],[0,2]]}"#;

/// Two tasks in a chain on two devices, with optional views of equal devices and of an edge network.
const ROW: &str = r#"{"format":"divi-problem/1","name":"row","L":2,
"devices":[{"id":0,"name":"a","batch_sizes":[1,2]},{"id":1,"name":"b","batch_sizes":[1,2]}],"bandwidth":[[null,1],[1,null]],
"nodes":[
{"id":0,"time":{"1":[10,10],"2":[15,15]},"weight":0,"input":0,"output":4},
{"id":1,"time":{"1":[20,20],"2":[25,25]},"weight":0,"input":4,"output":1}],
"edges":[[0,1]]VIEW}"#;

const EQUAL: &str = r#","mtpp":{"work":[10,20],"k":[2],"bandwidth":1}"#;
const NETWORK: &str =
    r#","edge":{"flops":[10,20],"rate":[1,1],"bandwidth":[[null,1],[1,null]],"edge_bytes":[4],"splits":0}"#;

fn row(view: &str) -> Problem {
    Problem::read(&ROW.replace("VIEW", view)).expect("a problem")
}

fn plan(problem: &Problem, schedule: Schedule) -> Plan {
    Plan::new(problem, "by hand", schedule, Bound::none())
}

#[track_caller]
fn refused(problem: &Problem, plan: &Plan, terms: &Terms, expected: &str) {
    let error = verify_under(problem, plan, terms).expect_err("a plan that is refused").to_string();
    assert!(error.contains(expected), "says\n{error}\ninstead of\n{expected}");
}

#[test]
fn contention_is_the_problems() {
    let problem = Problem::read(BUS).expect("a problem");
    // Both values take 20 over a link of their own.
    let schedule = Schedule::Latency {
        device: vec![0, 1, 2],
        start: [0.0, 30.0, 30.0].map(Micros).to_vec(),
        makespan: Micros(60.0),
    };
    let mut ignores = plan(&problem, schedule);
    ignores.contention = Some(Contention::Off);
    let own = "contention: is off in the plan, but exclusive in the problem; verify it with --contention=off, or plan it again";
    refused(&problem, &ignores, &Terms::default(), own);
    assert_eq!(verify(&problem, &ignores).map_err(|error| error.to_string().contains(own)), Err(true));
    let terms = Terms { contention: Some(Contention::Off), ..Terms::default() };
    assert_eq!(verify_under(&problem, &ignores, &terms), Ok(Micros(60.0)));
    // A plan that states nothing is verified under the problem's contention.
    ignores.contention = None;
    refused(&problem, &ignores, &Terms::default(), "transfers");
    let shared = Terms { contention: Some(Contention::Shared), ..Terms::default() };
    refused(&problem, &ignores, &shared, "contention: is exclusive in the plan, but shared is asked for");
}

#[test]
fn inputs_are_the_problems() {
    let problem = row("");
    let launch = |node: usize, start: f64| Batch { node, device: 0, inputs: vec![0], start: Micros(start) };
    let mut one =
        plan(&problem, Schedule::Batch { batches: vec![launch(0, 0.0), launch(1, 10.0)], makespan: Micros(30.0) });
    one.inputs = Some(1);
    refused(
        &problem,
        &one,
        &Terms::default(),
        "inputs: is 1 in the plan, but 2 in the problem; verify it with --inputs=1, or plan it again",
    );
    let terms = Terms { inputs: Some(1), ..Terms::default() };
    assert_eq!(verify_under(&problem, &one, &terms), Ok(Micros(30.0)));
    one.inputs = None;
    refused(&problem, &one, &terms, "inputs: is 2 in the plan, but 1 is asked for");
    // One input of a queue may be planned, unless several are requested.
    let latency = plan(
        &problem,
        Schedule::Latency { device: vec![0, 0], start: [0.0, 10.0].map(Micros).to_vec(), makespan: Micros(30.0) },
    );
    assert_eq!(verify(&problem, &latency), Ok(Micros(30.0)));
    refused(&problem, &latency, &Terms { inputs: Some(2), ..Terms::default() }, "inputs: is 1 in the plan, but 2 is");
    let batch = Terms { objective: Some(Objective::Batch), ..Terms::default() };
    refused(&problem, &latency, &batch, "objective: is latency in the plan, but batch is asked for");
}

#[test]
fn stages_are_the_problems() {
    let problem = row(EQUAL);
    let with =
        |k: u32| plan(&problem, Schedule::Pipeline { block: vec![0, 1], k, bottleneck: Micros(24.0), stages: None });
    assert_eq!(verify(&problem, &with(2)), Ok(Micros(24.0)));
    refused(&problem, &with(3), &Terms::default(), "k: is 3 in the plan, but 2 in the problem; verify it with --k=3");
    let three = Terms { stages: Some(3), ..Terms::default() };
    assert_eq!(verify_under(&problem, &with(3), &three), Ok(Micros(24.0)));
    refused(&problem, &with(1), &three, "k: is 1 in the plan, but 3 is asked for");
    // Two tasks make two stages at most: the third one is empty, and not counted.
    assert_eq!(verify_under(&problem, &with(2), &three), Ok(Micros(24.0)));

    let problem = row("");
    let stages = Some(Stages { block_device: Some(vec![0, 1]), order: None });
    let two = plan(&problem, Schedule::Pipeline { block: vec![0, 1], k: 2, bottleneck: Micros(24.0), stages });
    assert_eq!(verify(&problem, &two), Ok(Micros(24.0)));
    let one = Terms { stages: Some(1), ..Terms::default() };
    refused(&problem, &two, &one, "k: the plan has 2 stages, but at most 1 are asked for");
    let mut shared = two.clone();
    shared.shared_devices = true;
    refused(&problem, &shared, &Terms::default(), "shared_devices: devices are shared in the plan, but not by default");
    let terms = Terms { shared_devices: true, ..Terms::default() };
    assert_eq!(verify_under(&problem, &shared, &terms), Ok(Micros(24.0)));
    refused(&problem, &two, &terms, "shared_devices: devices are not shared in the plan");
}

#[test]
fn pipeline_cost_is_serial_unless_stated() {
    let overlap = Terms { pipeline_cost: Some(PipelineCost::Overlap), ..Terms::default() };
    let on_devices = Some(Stages { block_device: Some(vec![0, 1]), order: None });
    for (problem, stages) in [(row(EQUAL), None), (row(""), on_devices)] {
        let with = |bottleneck: f64, cost: Option<&str>| {
            let schedule =
                Schedule::Pipeline { block: vec![0, 1], k: 2, bottleneck: Micros(bottleneck), stages: stages.clone() };
            Plan { pipeline_cost: cost.map(str::to_owned), ..plan(&problem, schedule) }
        };
        refused(
            &problem,
            &with(20.0, Some("overlap")),
            &Terms::default(),
            "pipeline_cost: is overlap in the plan, but serial in the problem; verify it with --pipeline-cost=overlap",
        );
        assert_eq!(verify_under(&problem, &with(20.0, Some("overlap")), &overlap), Ok(Micros(20.0)));
        assert_eq!(verify(&problem, &with(24.0, Some("serial"))), Ok(Micros(24.0)));
        refused(&problem, &with(20.0, None), &Terms::default(), "bottleneck: is 20, but the plan takes 24");
        refused(
            &problem,
            &with(24.0, None),
            &overlap,
            "pipeline_cost: is serial in the plan, but overlap is asked for",
        );
    }
}

#[test]
fn split_points_are_the_problems() {
    let problem = row(NETWORK);
    let mut split = plan(&problem, Schedule::Edge { place: vec![0, 1], period: Micros(20.0) });
    split.splits = Some(1);
    refused(
        &problem,
        &split,
        &Terms::default(),
        "splits: is 1 in the plan, but 0 in the problem; verify it with --splits=1, or plan it again",
    );
    let one = Terms { splits: Some(1), ..Terms::default() };
    assert_eq!(verify_under(&problem, &split, &one), Ok(Micros(20.0)));
    split.splits = None;
    refused(&problem, &split, &Terms::default(), "place: has 1 split points, but at most 0 are allowed");
    refused(&problem, &split, &one, "splits: is 0 in the plan, but 1 is asked for");
    let whole = plan(&problem, Schedule::Edge { place: vec![0, 0], period: Micros(30.0) });
    assert_eq!(verify(&problem, &whole), Ok(Micros(30.0)));
}
