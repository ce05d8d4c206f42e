//! Invalid plans are rejected with a message that names the object, the place and the amount.

#[path = "small/refusal.rs"]
mod refusal;

use divi_planner::plan::{Batch, Bound, Limit, Proof, Schedule, Stages};
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Plan, Problem, Terms, verify, verify_under};
use refusal::refuses;

/// A diamond on two devices; the second task only runs on the gpu, the last is pinned to the cpu.
const PROBLEM: &str = r#"{"format":"divi-problem/1","name":"diamond",
"devices":[{"id":0,"name":"cpu","memory":100,"batch_sizes":[1]},{"id":1,"name":"gpu","memory":60,"batch_sizes":[1]}],
"bandwidth":[[null,2],[4,null]],"link_latency":[[null,1],[1,null]],
"nodes":[
{"id":0,"name":"in","time":{"1":[10,10]},"weight":1,"input":2,"output":8},
{"id":1,"name":"left","time":{"1":[null,20]},"weight":4,"input":8,"output":16},
{"id":2,"name":"right","time":{"1":[30,40]},"weight":7,"input":8,"output":4},
{"id":3,"name":"out","time":{"1":[5,5]},"weight":0,"input":20,"output":1,"pin":0}],
"edges":[[0,1],[0,2],[1,3],[2,3]]}"#;

fn problem(replacements: &[(&str, &str)]) -> Problem {
    let text = replacements.iter().fold(PROBLEM.to_owned(), |text, (old, new)| text.replacen(old, new, 1));
    Problem::read(&text).expect("a problem")
}

/// `in` and `right` on the cpu, `left` on the gpu: the result of `in` arrives there at 10 + 8/2 + 1 = 15.
fn plan(problem: &Problem) -> Plan {
    let schedule = Schedule::Latency {
        device: vec![0, 1, 0, 0],
        start: [0.0, 15.0, 10.0, 40.0].map(Micros).to_vec(),
        makespan: Micros(45.0),
    };
    Plan::new(problem, "by hand", schedule, Bound::new(Micros(40.0), "thinking"))
}

fn change(plan: &mut Plan, task: usize, to_device: usize, to_start: f64) {
    let Schedule::Latency { device, start, .. } = &mut plan.schedule else { panic!("a latency plan") };
    (device[task], start[task]) = (to_device, Micros(to_start));
}

#[test]
fn valid_plans_are_accepted() {
    let problem = problem(&[]);
    let plan = plan(&problem);
    assert_eq!(verify(&problem, &plan), Ok(Micros(45.0)));
    assert_eq!(Plan::read(&plan.write()), Ok(plan));
}

#[test]
fn precedence() {
    let problem = problem(&[]);
    let mut early = plan(&problem);
    change(&mut early, 1, 1, 14.0);
    refuses(
        &problem,
        &early,
        "node 1 (left): starts at 14 on device 1 (gpu), but node 0 (in), which it reads, ends at 10 on device 0 (cpu) \
         and arrives at 15: 1 µs too early",
    );
    let mut rounded = plan(&problem);
    change(&mut rounded, 1, 1, 15.0 - 1e-8);
    assert_eq!(verify(&problem, &rounded), Ok(Micros(45.0)));
    let mut sooner = plan(&problem);
    change(&mut sooner, 2, 0, 9.0);
    refuses(
        &problem,
        &sooner,
        "node 2 (right): starts at 9 on device 0 (cpu), but node 0 (in), which it reads, ends at 10",
    );
}

#[test]
fn links_that_are_missing() {
    let problem = problem(&[("[4,null]", "[0,null]")]);
    refuses(
        &problem,
        &plan(&problem),
        "node 3 (out): reads on device 0 (cpu) what node 1 (left) computes on device 1 (gpu), but no link leads there",
    );
}

#[test]
fn overlaps() {
    let problem = problem(&[]);
    let mut both = plan(&problem);
    change(&mut both, 2, 1, 20.0);
    refuses(
        &problem,
        &both,
        "node 2 (right): starts at 20 on device 1 (gpu), where node 1 (left) runs until 35: 15 µs too early",
    );
}

/// Two tasks, of three seconds and of two microseconds on one device: the short one is below a millionth of the plan.
fn short_task(start: f64, memory: u32) -> (Problem, Plan) {
    let text = format!(
        r#"{{"format":"divi-problem/1","name":"short","memory_model":"liveness",
        "devices":[{{"id":0,"name":"cpu","memory":{memory}}}],"bandwidth":[[null]],
        "nodes":[{{"id":0,"name":"long","time":{{"1":[3000000]}},"weight":1,"input":0,"output":0}},
        {{"id":1,"name":"short","time":{{"1":[2]}},"weight":1,"input":0,"output":500,"scratch":500}}]}}"#
    );
    let problem = Problem::read(&text).expect("a problem");
    let makespan = Micros(f64::max(3e6, start + 2.0));
    let schedule = Schedule::Latency { device: vec![0, 0], start: [0.0, start].map(Micros).to_vec(), makespan };
    let plan = Plan::new(&problem, "by hand", schedule, Bound::none());
    (problem, plan)
}

#[test]
fn short_tasks_take_time_and_room() {
    let (problem, plan) = short_task(3e6, 1002);
    assert_eq!(verify(&problem, &plan), Ok(Micros(3_000_002.0)));
    let (problem, plan) = short_task(3e6 - 2.0, 1002);
    refuses(&problem, &plan, "node 1 (short): starts at 2999998 on device 0 (cpu), where node 0 (long) runs until");
    let (problem, plan) = short_task(3e6, 1001);
    refuses(&problem, &plan, "device 0 (cpu): needs 1002 bytes, has 1001 bytes: 1 byte short");
}

#[test]
fn where_tasks_may_run() {
    let problem = problem(&[]);
    let mut unsupported = plan(&problem);
    change(&mut unsupported, 1, 0, 100.0);
    refuses(&problem, &unsupported, "node 1 (left): runs on device 0 (cpu), which does not support it in a batch of 1");
    let mut unpinned = plan(&problem);
    change(&mut unpinned, 3, 1, 100.0);
    refuses(&problem, &unpinned, "node 3 (out): runs on device 1 (gpu), but is pinned to device 0 (cpu)");
    let mut nowhere = plan(&problem);
    change(&mut nowhere, 0, 5, 0.0);
    refuses(&problem, &nowhere, "node 0 (in): runs on device 5, but there are 2");
    let mut before = plan(&problem);
    change(&mut before, 0, 0, -1.0);
    refuses(&problem, &before, "node 0 (in): starts at -1 on device 0 (cpu)");
}

#[test]
fn colocation() {
    let problem = problem(&[("\"edges\"", "\"colocate\":[[2,1]],\"edges\"")]);
    refuses(
        &problem,
        &plan(&problem),
        "node 1 (left): runs on device 1 (gpu), but shares a device with node 2 (right)",
    );
}

#[test]
fn static_memory() {
    let problem = problem(&[("\"memory\":60", "\"memory\":27")]);
    refuses(&problem, &plan(&problem), "device 1 (gpu): needs 28 bytes, has 27 bytes: 1 byte short");
}

#[test]
fn live_memory() {
    // On the gpu: weights 4, the copy of the result of `in` (8) and the result of `left` (16) at once.
    let enough =
        problem(&[("\"memory\":60", "\"memory\":28"), ("\"edges\"", "\"memory_model\":\"liveness\",\"edges\"")]);
    assert_eq!(verify(&enough, &plan(&enough)), Ok(Micros(45.0)));
    let short =
        problem(&[("\"memory\":60", "\"memory\":27"), ("\"edges\"", "\"memory_model\":\"liveness\",\"edges\"")]);
    refuses(&short, &plan(&short), "device 1 (gpu): needs 28 bytes, has 27 bytes: 1 byte short");
    // On the cpu: weights 8; while `out` runs, the copy of the result of `left` (16), that of `right` (4) and its own
    // (1): 29. Scratch of `right` adds to the results of `in` (8), of `right` (4) and, from 35 on, to the copy of `left`
    // (16).
    let scratch = |bytes: u32, memory: u32| {
        let right = format!("\"scratch\":{bytes},\"weight\":7");
        let room = format!("\"memory\":{memory}");
        problem(&[
            ("\"weight\":7", &right),
            ("\"memory\":100", &room),
            ("\"edges\"", "\"memory_model\":\"liveness\",\"edges\""),
        ])
    };
    assert_eq!(verify(&scratch(9, 45), &plan(&scratch(9, 45))), Ok(Micros(45.0)));
    refuses(&scratch(9, 44), &plan(&scratch(9, 44)), "device 0 (cpu): needs 45 bytes, has 44 bytes: 1 byte short");
}

#[test]
fn certificates() {
    let problem = problem(&[]);
    let with = |edit: &dyn Fn(&mut Plan)| {
        let mut plan = plan(&problem);
        edit(&mut plan);
        plan
    };
    refuses(&problem, &with(&|plan| plan.value = Micros(44.0)), "value: is 44, but the plan takes 45: off by 1");
    refuses(&problem, &with(&|plan| plan.bound = Micros(46.0)), "bound: 46 is above the plan's own value 45: off by 1");
    refuses(&problem, &with(&|plan| plan.bound = Micros(f64::NAN)), "bound: NaN is not a valid time");
    let solver =
        |verified: f64| with(&|plan| (plan.proof, plan.verified_bound) = (Proof::Solver, Some(Micros(verified))));
    assert_eq!(verify(&problem, &solver(30.0)), Ok(Micros(45.0)));
    refuses(&problem, &solver(41.0), "verified_bound: 41 is above the bound 40");
    refuses(&problem, &solver(f64::INFINITY), "verified_bound: inf is not a valid time");
    let exact = with(&|plan| plan.verified_bound = Some(Micros(30.0)));
    refuses(&problem, &exact, "verified_bound: is for bounds whose proof is solver; this one's is exact");
    refuses(&problem, &with(&|plan| plan.gap = 0.5), "gap: is 0.5, but (value - bound) / value is 0.111");
    refuses(&problem, &with(&|plan| plan.problem = "sha256:0".to_owned()), "problem: the plan is for another problem");
    refuses(
        &problem,
        &with(&|plan| plan.names = Some(vec!["in".to_owned()])),
        "names: there are 1, but the problem has 4 nodes",
    );
    let renamed = |plan: &mut Plan| plan.names.as_mut().unwrap()[2] = "wrong".to_owned();
    refuses(&problem, &with(&renamed), "names[2]: is \"wrong\", but the problem's is \"right\"");
    refuses(
        &problem,
        &with(&|plan| plan.inputs = Some(2)),
        "inputs: 2 queued inputs; at least 1, at most 1 for objective latency",
    );
    let shorter = |plan: &mut Plan| {
        plan.schedule =
            Schedule::Latency { device: vec![0], start: [0.0].map(Micros).to_vec(), makespan: Micros(45.0) };
    };
    refuses(&problem, &with(&shorter), "device: has 1 entries, but there are 4 nodes");
}

#[test]
fn unverifiable_plans_are_rejected() {
    let problem = problem(&[]);
    let mut pipeline = plan(&problem);
    pipeline.objective = divi_planner::Objective::Pipeline;
    pipeline.schedule = Schedule::Edge { place: vec![0, 0, 1, 1], period: Micros(9.0) };
    refuses(&problem, &pipeline, "place: is there, but the problem has no edge network (edge)");
    pipeline.limit = Some(Limit::Seconds(1.5));
    assert_eq!(Plan::read(&pipeline.write()), Ok(pipeline));
}

/// The diamond as a pipeline: `in`, `left`, `right` and `out` take 10, 20, 30 and 5; transfers at 2 bytes per
/// microsecond.
#[test]
fn pipelines() {
    let view = "\"mtpp\":{\"work\":[10,20,30,5],\"k\":[2,3],\"bandwidth\":2},\"edges\"";
    let diamond = problem(&[("\"edges\"", view)]);
    let with = |problem: &Problem, block: &[usize], bottleneck: f64| {
        let bottleneck = Micros(bottleneck);
        let schedule = Schedule::Pipeline { block: block.to_vec(), k: 3, bottleneck, stages: None };
        Plan::new(problem, "by hand", schedule, Bound::none())
    };
    // The result of `in` goes out once, and into one block once: 10 + 8/2 and 8/2 + 20 + 30 + 5.
    assert_eq!(verify(&diamond, &with(&diamond, &[2, 0, 0, 0], 59.0)), Ok(Micros(59.0)));
    // `in` and `left`: 10 + 20 + 8/2 + 16/2; `right` and `out`: 8/2 + 16/2 + 30 + 5.
    assert_eq!(verify(&diamond, &with(&diamond, &[0, 0, 1, 1], 47.0)), Ok(Micros(47.0)));
    refuses(&diamond, &with(&diamond, &[0, 0, 1, 1], 46.0), "bottleneck: is 46, but the plan takes 47: off by 1");
    refuses(&diamond, &with(&diamond, &[0, 1, 0, 1], 3.0), "bottleneck: is 3");
    refuses(&diamond, &with(&diamond, &[0, 1, 1, 0], 47.0), "block: blocks form a cycle, among 0, 1");
    refuses(
        &diamond,
        &with(&diamond, &[0, 0, 3, 3], 47.0),
        "node 2 (right): is in block 3, but there are 3, from 0 on",
    );
    refuses(&diamond, &with(&diamond, &[0, 0], 47.0), "block: has 2 entries, but there are 4 nodes");
    let together = problem(&[("\"edges\"", &format!("\"colocate\":[[0,3]],{view}"))]);
    refuses(
        &together,
        &with(&together, &[0, 0, 1, 1], 47.0),
        "node 3 (out): is in block 1, but shares a device with node 0",
    );
    let mut overlapping = with(&diamond, &[0, 0, 1, 1], 35.0);
    overlapping.pipeline_cost = Some("overlap".to_owned());
    // 10 + 20 against 8/2 + 16/2, and 30 + 5 against the same.
    let terms = Terms::stated_by(&overlapping);
    assert_eq!(verify_under(&diamond, &overlapping, &terms), Ok(Micros(35.0)));
    overlapping.pipeline_cost = Some("free".to_owned());
    refuses(&diamond, &overlapping, "pipeline_cost: unknown pipeline cost 'free'; expected one of serial, overlap");
}

/// The diamond on its own devices: `in` on a, `left` and `right` on b, `out` on a again; all but `left` could run on a.
#[test]
fn pipelines_on_devices() {
    let diamond = problem(&[]);
    let with = |block: &[usize], devices: &[usize], bottleneck: Micros| {
        let stages = Some(Stages { block_device: Some(devices.to_vec()), order: None });
        let schedule = Schedule::Pipeline { block: block.to_vec(), k: 3, bottleneck, stages };
        Plan::new(&diamond, "by hand", schedule, Bound::none())
    };
    let time = |node: usize, device: usize| diamond.nodes[node].time[&1][device].unwrap();
    let way = |node: usize, from: usize, to: usize| {
        let latency = diamond.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default();
        diamond.nodes[node].output.unwrap() / diamond.bandwidth[from][to].unwrap() + latency
    };
    // Transfers of a: the result of `in` once, those of `left` and `right`.
    let moved = way(0, 0, 1) + way(1, 1, 0) + way(2, 1, 0);
    let (a, b) = (time(0, 0) + time(3, 0), time(1, 1) + time(2, 1));
    let mut plan = with(&[0, 1, 1, 2], &[0, 1, 0], moved + Micros::max(a, b));
    refuses(&diamond, &plan, "device 0 (cpu): has blocks 0, 2, but devices are not shared");
    plan.shared_devices = true;
    assert_eq!(verify_under(&diamond, &plan, &Terms::stated_by(&plan)), Ok(moved + Micros::max(a, b)));
    assert_eq!(Plan::read(&plan.write()), Ok(plan.clone()));
    let mut overlapping = plan.clone();
    overlapping.pipeline_cost = Some("overlap".to_owned());
    let slowest = [a, b, way(0, 0, 1), way(1, 1, 0) + way(2, 1, 0)].into_iter().fold(Micros::ZERO, Micros::max);
    let error = verify_under(&diamond, &overlapping, &Terms::stated_by(&overlapping)).unwrap_err().to_string();
    assert!(error.contains(&format!("but the plan takes {slowest}: off by")), "{error}");
    refuses(
        &diamond,
        &with(&[0, 1, 1, 2], &[0, 1], Micros(9.0)),
        "block_device: has 2 entries, but there are 3 blocks",
    );
    refuses(
        &diamond,
        &with(&[0, 1, 1, 2], &[0, 7, 0], Micros(9.0)),
        "block_device: block 1 is on device 7, but there are 2",
    );
    refuses(&diamond, &with(&[0, 1, 1, 2], &[0, 0, 0], Micros(9.0)), "node 1 (left): is on device 0");
    refuses(&diamond, &with(&[0, 1, 1, 2], &[0, 1, 1], Micros(9.0)), "node 3 (out): is on device 1");
    let schedule = Schedule::Pipeline { block: vec![0, 0, 1, 1], k: 2, bottleneck: Micros(9.0), stages: None };
    let nowhere = Plan::new(&diamond, "by hand", schedule, Bound::none());
    refuses(&diamond, &nowhere, "block_device: is missing, and the problem has no pipeline view (mtpp)");
    // Nodes that only provide an input or take an output are no stage.
    let mut ported = diamond.clone();
    for node in [0, 3] {
        ported.nodes[node].time.values_mut().flatten().flatten().for_each(|time| *time = Micros::ZERO);
    }
    let stages = Some(Stages { block_device: Some(vec![0, 1, 0]), order: None });
    let schedule = Schedule::Pipeline { block: vec![0, 1, 1, 2], k: 3, bottleneck: moved + b, stages };
    let plan = Plan::new(&ported, "by hand", schedule, Bound::none());
    assert_eq!(verify(&ported, &plan), Ok(moved + b));
}

/// The same with fast memory of 30 bytes, which is too little for the second block.
#[test]
fn pipelines_that_overflow() {
    let view = "\"mtpp\":{\"work\":[10,20,30,5],\"k\":[2],\"bandwidth\":2,\"memory\":30},\"edges\"";
    let diamond = problem(&[("\"edges\"", view)]);
    let with = |order: Option<Vec<Vec<usize>>>, bottleneck: Micros| {
        let stages = Some(Stages { block_device: None, order });
        let schedule = Schedule::Pipeline { block: vec![0, 0, 1, 1], k: 2, bottleneck, stages };
        Plan::new(&diamond, "by hand", schedule, Bound::none())
    };
    let weights: Bytes = diamond.nodes[2..].iter().map(|node| node.weight).sum();
    let sizes: Vec<Bytes> = diamond.nodes.iter().map(|node| node.output.unwrap()).collect();
    // `right` runs while its own and both other results are live, `out` while its own and its operands are.
    let right = sizes[0] + sizes[1] + sizes[2];
    let out = sizes[1] + sizes[2] + sizes[3];
    let overflow = (weights + Bytes::max(right, out) - Bytes(30.0)).max(Bytes::ZERO);
    let value = Micros(47.0) + overflow / BytesPerMicro(2.0);
    assert!(value > Micros(47.0));
    let plan = with(Some(vec![vec![0, 1], vec![2, 3]]), value);
    assert_eq!(verify(&diamond, &plan), Ok(value));
    assert_eq!(Plan::read(&plan.write()), Ok(plan));
    refuses(&diamond, &with(Some(vec![vec![0, 1], vec![2, 3]]), Micros(47.0)), "bottleneck: is 47, but the plan takes");
    refuses(&diamond, &with(None, value), "order: is missing: what a block's memory has to hold depends on it");
    refuses(&diamond, &with(Some(vec![vec![0, 1]]), value), "order: has 1 blocks, but there are 2");
    refuses(&diamond, &with(Some(vec![vec![0], vec![2, 3]]), value), "order: node 1 (left) is missing");
    refuses(&diamond, &with(Some(vec![vec![0, 1, 2], vec![3]]), value), "order: node 2 (right) is not in block 0");
    refuses(&diamond, &with(Some(vec![vec![0, 1, 1], vec![2, 3]]), value), "order: duplicate node 1 (left)");
    refuses(
        &diamond,
        &with(Some(vec![vec![0, 1], vec![3, 2]]), value),
        "order: node 3 (out) is before node 2 (right), whose value it reads",
    );
}

/// A chain of two tasks, a queue of three inputs, two devices with batches of one or two.
const QUEUE: &str = r#"{"format":"divi-problem/1","name":"queue","L":3,
"devices":[{"id":0,"name":"a","memory":40,"batch_sizes":[1,2]},{"id":1,"name":"b","memory":null,"batch_sizes":[1,2]}],
"bandwidth":[[null,2],[2,null]],
"nodes":[{"id":0,"time":{"1":[10,20],"2":[15,30]},"weight":1,"input":2,"output":4},
{"id":1,"time":{"1":[10,20],"2":[15,null]},"weight":1,"input":4,"output":6}],
"edges":[[0,1]]}"#;

fn batch(node: usize, device: usize, inputs: &[u32], start: f64) -> Batch {
    Batch { node, device, inputs: inputs.to_vec(), start: Micros(start) }
}

/// Task 0: inputs 0 and 1 on a until 15, input 2 on b until 20. Task 1: inputs 0 and 2 on a, input 1 on b. Input 2
/// arrives on a at 20 + 4/2 = 22, input 1 on b at 15 + 2 = 17.
fn batches() -> Vec<Batch> {
    vec![batch(0, 0, &[0, 1], 0.0), batch(0, 1, &[2], 0.0), batch(1, 0, &[0, 2], 22.0), batch(1, 1, &[1], 20.0)]
}

#[track_caller]
fn queue_says(edit: impl Fn(&mut Vec<Batch>), makespan: f64, expected: &str) {
    let problem = Problem::read(QUEUE).expect("a problem");
    let mut batches = batches();
    edit(&mut batches);
    let plan = Plan::new(&problem, "by hand", Schedule::Batch { batches, makespan: Micros(makespan) }, Bound::none());
    match verify(&problem, &plan) {
        Ok(value) => assert_eq!(expected, value.to_string()),
        Err(error) => assert!(error.to_string().contains(expected), "says\n{error}\ninstead of\n{expected}"),
    }
}

#[test]
fn queues() {
    queue_says(|_| {}, 40.0, "40");
    queue_says(
        |batches| batches[2].start = Micros(21.0),
        40.0,
        "node 1: starts at 21 on device 0 (a), but node 0, which it reads, ends at 20 on device 1 (b) and arrives at 22: 1 µs too early",
    );
    queue_says(
        |batches| batches[3].inputs = vec![2],
        40.0,
        "node 1: takes input 2 on device 0 (a) and on device 1 (b)",
    );
    queue_says(|batches| drop(batches.pop()), 40.0, "node 1: does not run for input 1");
    queue_says(
        |batches| batches[3].inputs = vec![1, 0],
        40.0,
        "node 1: runs on device 1 (b), which does not support it in a batch of 2",
    );
    queue_says(
        |batches| batches[0].inputs = vec![0, 1, 2],
        40.0,
        "node 0: a batch of 3 on device 0 (a), which takes [1, 2]",
    );
    queue_says(|batches| batches[0].inputs = vec![0, 0], 40.0, "node 0: takes input 0 twice on device 0 (a)");
    queue_says(
        |batches| batches[0].inputs = vec![0, 7],
        40.0,
        "node 0: takes input 7 on device 0 (a), but 3 are queued",
    );
    queue_says(|batches| batches[1].device = 0, 40.0, "node 0: launches more than once on device 0 (a)");
    queue_says(|batches| batches[1].node = 4, 40.0, "batches[1]: there is no node 4; there are 2");
    queue_says(
        |batches| batches[3].start = Micros(10.0),
        40.0,
        "node 1: starts at 10 on device 1 (b), where node 0 runs until 20: 10 µs too early",
    );
    queue_says(|_| {}, 39.0, "makespan: is 39, but the plan takes 40: off by 1");
}

#[test]
fn queues_with_too_many_inputs() {
    let problem = Problem::read(QUEUE).expect("a problem");
    let schedule = Schedule::Batch { batches: batches(), makespan: Micros(1.0) };
    let mut plan = Plan::new(&problem, "by hand", schedule, Bound::none());
    for inputs in [0, u32::MAX] {
        plan.inputs = Some(inputs);
        refuses(&problem, &plan, &format!("inputs: {inputs} queued inputs; at least 1, at most 1048576"));
    }
}

#[test]
fn memory_of_queues() {
    // On a: 1 + 2·6 for task 0 and 1 + 2·10 for task 1.
    let held = QUEUE.replace("\"memory\":40", "\"memory\":33");
    let problem = Problem::read(&held).unwrap();
    let schedule = Schedule::Batch { batches: batches(), makespan: Micros(40.0) };
    let plan = Plan::new(&problem, "by hand", schedule, Bound::none());
    refuses(&problem, &plan, "device 0 (a): needs 34 bytes, has 33 bytes: 1 byte short");
}

#[test]
fn proofs_survive_writing_and_reading() {
    let problem = problem(&[]);
    for proof in Proof::ALL {
        let mut plan = plan(&problem);
        plan.prove(Bound::by(Micros(40.0), "milp", proof));
        plan.verified_bound = (proof == Proof::Solver).then_some(Micros(30.0));
        assert_eq!(Plan::read(&plan.write()).unwrap(), plan);
        let text = plan.write();
        assert!(text.contains(&format!("\"proof\": \"{proof}\"")), "{text}");
        // The first version does not state the kind of proof.
        let line = |key: &str| text.lines().find(|line| line.contains(key)).map(|line| format!("{line}\n"));
        let old = text.replace("divi-plan/2", "divi-plan/1").replace(&line("\"proof\"").unwrap(), "");
        let old = old.replace(&line("\"verified_bound\"").unwrap_or_default(), "");
        let old = Plan::read(&old).unwrap();
        assert_eq!((old.bound, old.proof, old.verified_bound), (Micros(40.0), Proof::Solver, None));
        assert_eq!(verify(&problem, &old), Ok(Micros(45.0)));
    }
    let text = plan(&problem).write();
    let missing = Plan::read(&text.replace("  \"proof\": \"exact\",\n", "")).unwrap_err().to_string();
    assert_eq!(missing, "not divi-plan/2: proof: is missing");
    let text = text.replace("\"exact\"", "\"trust me\"");
    let error = Plan::read(&text).unwrap_err().to_string();
    assert!(error.contains("proof: unknown proof 'trust me'; expected one of exact, safe-dual, solver"), "{error}");
}

/// A bound above the value of a valid plan is wrong: it is dropped, and the plan remains.
#[test]
fn contradictions_are_dropped_with_a_warning() {
    let problem = problem(&[]);
    let (claim, weaker) =
        (Bound::by(Micros(46.0), "milp", Proof::Solver), Bound::by(Micros(41.0), "cuts", Proof::SafeDual));
    let mut plan = plan(&problem);
    plan.prove(Bound::new(Micros(30.0), "load").or(claim.clone()).or(weaker.clone()));
    assert_eq!((plan.bound, plan.bound_by.as_str(), plan.proof), (Micros(41.0), "cuts", Proof::SafeDual));
    assert_eq!((plan.verified_bound, plan.dropped.len()), (None, 1));
    assert_eq!(verify(&problem, &plan), Ok(Micros(45.0)));
    let [warning] = plan.warnings().try_into().unwrap();
    let expected =
        "the bound 46 by milp (claimed by the solver, not verified) is above the value 45 of a plan that was verified";
    assert!(warning.starts_with(expected) && warning.contains("the bound is 41 by cuts now"), "{warning}");
    // No bound is left if the only one contradicts, whatever its proof.
    for (proof, value) in Proof::ALL.into_iter().flat_map(|proof| [(proof, Micros(46.0)), (proof, Micros::INFINITY)]) {
        plan.prove(Bound::by(value, "milp", proof));
        assert_eq!((plan.bound, plan.bound_by.as_str(), plan.gap), (Micros::ZERO, "nothing", 1.0));
        assert_eq!(verify(&problem, &plan), Ok(Micros(45.0)));
    }
    // Rounding errors are no contradiction.
    plan.dropped.clear();
    plan.prove(Bound::by(Micros(45.0) * (1.0 + 1e-12), "milp", Proof::SafeDual));
    assert_eq!((plan.bound, plan.is_optimal(), plan.warnings().len()), (Micros(45.0), true, 0));
}

/// A solver's claim is never reported as optimal or proven.
#[test]
fn a_solvers_claim_is_not_optimal() {
    let problem = problem(&[]);
    let mut plan = plan(&problem);
    plan.prove(Bound::by(Micros(45.0), "milp", Proof::Solver));
    assert_eq!((plan.gap, plan.is_optimal()), (0.0, false));
    assert_eq!(plan.bound_remark(), " (claimed by the solver, not verified)");
    plan.prove(Bound::by(Micros(45.0), "milp", Proof::Solver).or(Bound::new(Micros(30.0), "load")));
    assert_eq!(plan.bound_remark(), " (claimed by the solver, not verified; verified: 30.0 µs)");
    plan.prove(Bound::by(Micros(45.0), "milp", Proof::Solver).or(Bound::by(Micros(45.0), "milp", Proof::SafeDual)));
    assert_eq!((plan.bound_remark().as_str(), plan.is_optimal()), ("", true));
}

#[test]
fn malformed_plans() {
    let problem = problem(&[]);
    let text = plan(&problem).write();
    let says = |text: &str, expected: &str| {
        let error = Plan::read(text).unwrap_err().to_string();
        assert!(error.contains(expected), "says\n{error}\ninstead of\n{expected}");
    };
    says(&text.replace("divi-plan/2", "divi-plan/4"), "format: unknown variant `divi-plan/4`");
    let newer = text.replace("  \"format\": \"divi-plan/2\"", "  \"version\": 3,\n  \"format\": \"divi-plan/4\"");
    says(
        &newer,
        "not divi-plan/2: format: unknown variant `divi-plan/4`, expected one of `divi-plan/1`, `divi-plan/2`, `divi-plan/3`",
    );
    says(&newer.replace("divi-plan/4", "divi-plan/2"), "version: unknown field `version`");
    says(&text.replace("\"start\"", "\"starts\""), "unknown field `starts`");
    says(&text.replace("\"start\": [0, 15, 10, 40]", "\"seed\": 3"), "duplicate field `seed`");
    says(&text.replace(",\n  \"start\": [0, 15, 10, 40]", ""), "start: is missing");
    says(
        &text.replace("\"start\"", "\"batches\": [], \"start\""),
        "batches: belongs to another kind of plan than 'device'",
    );
    says(&text.replace("\"latency\"", "\"batch\""), "objective: the keys are those of objective latency, not batch");
    let with = |key: &str| text.replace("\"seed\"", &format!("{key}, \"seed\""));
    says(&with("\"limit\": {\"seconds\": -0.5}"), "limit.seconds: -0.5 is negative");
    says(&with("\"limit\": {\"iterations\": -5}"), "limit.iterations: invalid value: integer `-5`");
    says(&with("\"pipeline_cost\": \"serial\""), "pipeline_cost: is for objective pipeline, not latency");
}

#[test]
fn pipeline_costs_are_read() {
    let problem = problem(&[]);
    let schedule = Schedule::Pipeline { block: vec![0; 4], k: 1, bottleneck: Micros(65.0), stages: None };
    let mut plan = Plan::new(&problem, "by hand", schedule, Bound::none());
    plan.pipeline_cost = Some("overlap".to_owned());
    assert_eq!(Plan::read(&plan.write()).unwrap(), plan);
    let error = Plan::read(&plan.write().replace("overlap", "free")).unwrap_err().to_string();
    let expected = "pipeline_cost: unknown pipeline cost 'free'; expected one of serial, overlap";
    assert_eq!(error, format!("not divi-plan/2: {expected}"));
}

#[test]
fn invalid_options_are_rejected() {
    let problem = problem(&[]);
    let with = |limit: Option<Limit>, cost: Option<&str>| Plan {
        limit,
        pipeline_cost: cost.map(str::to_owned),
        ..plan(&problem)
    };
    assert_eq!(verify(&problem, &with(Some(Limit::Seconds(0.0)), None)), Ok(Micros(45.0)));
    for seconds in [-1.0, f64::NAN] {
        let expected = format!("limit: {seconds} is not a valid number of seconds");
        refuses(&problem, &with(Some(Limit::Seconds(seconds)), None), &expected);
    }
    for cost in ["serial", "free"] {
        let expected = "pipeline_cost: is for objective pipeline; this plan is for latency";
        refuses(&problem, &with(None, Some(cost)), expected);
    }
}
