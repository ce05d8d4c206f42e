//! Rejected pipelines of batches: disturbed plans, other terms, and requests that views do not support.

#[path = "small/batches.rs"]
mod batches;
#[path = "small/random_problem.rs"]
mod random_problem;
#[path = "small/refusal.rs"]
mod refusal;

use batches::small;
use divi_planner::plan::{Bound, Limit, Schedule, Turns};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, Micros};
use divi_planner::{Objective, Options, Plan, Problem, Terms, solve, verify_under};
use refusal::{refuses, refuses_under};

/// Number of disturbed plans.
const DISTURBED: usize = 200;

fn options() -> Options {
    Options { limit: Some(Limit::Iterations(500)), max_batch: Some(4), max_replicas: Some(3), ..Options::default() }
}

/// Two tasks of 8 µs, and of 12 µs for two inputs, on two equal devices; a value of 4 bytes at 2 bytes/µs and 2 µs.
fn pair() -> Problem {
    let text = r#"{"format":"divi-problem/1","name":"pair","devices":[
    {"id":0,"name":"a","memory":100,"batch_sizes":[1,2]},{"id":1,"name":"b","memory":100,"batch_sizes":[1,2]}],
    "bandwidth":[[null,2],[2,null]],"link_latency":[[0,2],[2,0]],
    "nodes":[{"id":0,"time":{"1":[8,8],"2":[12,12]},"weight":10,"input":0,"output":4},
    {"id":1,"time":{"1":[8,8],"2":[12,12]},"weight":10,"input":4,"output":0}],"edges":[[0,1]]}"#;
    Problem::read(text).expect("a problem")
}

/// Returns a plan of the two tasks in two blocks.
fn by_hand(problem: &Problem, batch: [u32; 2], devices: [Vec<usize>; 2], bottleneck: f64) -> Plan {
    let turns = Turns::Devices { batch: batch.to_vec(), devices: devices.to_vec() };
    let bottleneck = Micros(bottleneck);
    let schedule = Schedule::BatchedPipeline { block: vec![0, 1], k: 2, bottleneck, turns, order: None };
    let mut plan = Plan::new(problem, "by hand", schedule, Bound::none());
    (plan.max_batch, plan.max_replicas) = (Some(2), Some(2));
    plan
}

fn terms() -> Terms {
    Terms { max_batch: Some(2), max_replicas: Some(2), ..Terms::default() }
}

#[test]
fn values_count_batches_and_transfers_of_what_divides_them() {
    let problem = pair();
    let value = |batch: [u32; 2], value: f64| {
        let plan = by_hand(&problem, batch, [vec![0], vec![1]], value);
        let read = Plan::read(&plan.write()).unwrap();
        assert!(plan.write().starts_with("{\n  \"format\": \"divi-plan/3\""));
        assert_eq!(read, plan);
        verify_under(&problem, &read, &terms()).map_err(|error| error.to_string())
    };
    // 12 / 2 of work, 4 / 2 + 2 / 2 of transfers.
    assert_eq!(value([2, 2], 9.0), Ok(Micros(9.0)));
    // A batch of one pays the latency for each input.
    assert_eq!(value([2, 1], 12.0), Ok(Micros(12.0)));
}

#[test]
fn devices_that_take_turns_divide_work_and_transfers() {
    let mut problem = pair();
    problem.devices.extend([2, 3].map(|id| {
        let mut device = problem.devices[0].clone();
        (device.id, device.name) = (id, format!("c{id}"));
        device
    }));
    problem.bandwidth =
        (0..4).map(|from| (0..4).map(|to| if from == to { None } else { problem.bandwidth[0][1] }).collect()).collect();
    problem.link_latency = None;
    problem.nodes.iter_mut().flat_map(|node| node.time.values_mut()).for_each(|times| *times = vec![times[0]; 4]);
    // 12 / 2 / 2 of work; 4 / 2 of transfers, half of them for each device.
    let plan = by_hand(&problem, [2, 2], [vec![0, 1], vec![2, 3]], 4.0);
    assert_eq!(verify_under(&problem, &plan, &terms()), Ok(Micros(4.0)));
    let refused = |plan: &Plan, expected: &str| refuses_under(&problem, plan, &terms(), expected);
    refused(&by_hand(&problem, [2, 2], [vec![0, 1], vec![1, 3]], 4.0), "has blocks 0, 1, but devices are not shared");
    refused(&by_hand(&problem, [2, 2], [vec![0, 0], vec![2, 3]], 4.0), "block 0 has a device twice");
    refused(&by_hand(&problem, [2, 2], [vec![], vec![2, 3]], 4.0), "block 0 has no device");
    refused(&by_hand(&problem, [2, 2], [vec![0, 9], vec![2, 3]], 4.0), "block 0 is on device 9, but there are 4");
    refused(&by_hand(&problem, [2, 2], [vec![0, 1, 2], vec![3]], 4.0), "has 3 devices, but at most 2 are allowed");
    refused(&by_hand(&problem, [4, 2], [vec![0, 1], vec![2, 3]], 4.0), "takes 4 inputs at once, but at most 2");
    refused(&by_hand(&problem, [0, 2], [vec![0, 1], vec![2, 3]], 4.0), "takes 0 inputs at once");
    let with = |change: &dyn Fn(&mut Problem), expected: &str| {
        let mut other = problem.clone();
        change(&mut other);
        let plan = by_hand(&other, [2, 2], [vec![0, 1], vec![2, 3]], 4.0);
        refuses_under(&other, &plan, &terms(), expected);
    };
    with(&|other| other.devices[1].memory = None, "which have different memory");
    with(&|other| other.devices[1].batch_sizes.push(4), "which have different batch sizes");
    with(&|other| other.bandwidth[0][2] = None, "which have different links");
    with(&|other| other.nodes[0].time.get_mut(&2).unwrap()[1] = Some(Micros(13.0)), "takes different times");
    with(&|other| other.nodes[0].pin = Some(0), "is pinned to device 0");
    with(
        &|other| other.devices.iter_mut().for_each(|device| device.memory = Some(Bytes(17.0))),
        "needs 18 bytes, has 17 bytes",
    );
}

#[test]
fn terms_are_those_of_the_plan() {
    let problem = pair();
    let plan = by_hand(&problem, [2, 2], [vec![0], vec![1]], 9.0);
    refuses(&problem, &plan, "max_batch: is 2 in the plan, but 1");
    let one = Terms { max_batch: Some(2), ..Terms::default() };
    refuses_under(&problem, &plan, &one, "verify it with --replicas=2");
    let more = Terms { max_batch: Some(4), ..terms() };
    refuses_under(&problem, &plan, &more, "but 4 is asked for; verify it with --max-batch=2");
    let text = plan.write();
    let says = |text: &str, expected: &str| {
        let error = Plan::read(text).expect_err("malformed").to_string();
        assert!(error.contains(expected), "{error}");
    };
    says(&text.replace("divi-plan/3", "divi-plan/2"), "need divi-plan/3");
    says(&text.replace("\"batch\"", "\"replicas\""), "replicas: is for equal devices");
    says(&text.replace("\"block_devices\": [[0], [1]]", "\"block_device\": [0, 1]"), "is replaced by block_devices");
}

#[test]
fn unsupported_requests_are_refused() {
    let mut problem = pair();
    let says = |problem: &Problem, algorithm: &str, options: &Options, expected: &str| {
        let error = solve(problem, Objective::Pipeline, algorithm, options).expect_err("no plan").to_string();
        assert!(error.contains(expected), "{error}");
    };
    says(&problem, "anneal", &options(), "auto plans batches and replicas");
    says(&problem, "auto", &Options { shared_devices: true, ..options() }, "are not shared by stages");
    says(&problem, "auto", &Options { max_batch: Some(0), ..options() }, "at least 1, not 0");
    // Without times for one input, the least size is the default.
    problem.devices.iter_mut().for_each(|device| device.batch_sizes = vec![2]);
    problem.nodes.iter_mut().for_each(|node| drop(node.time.remove(&1)));
    says(&problem, "auto", &Options { max_batch: Some(1), ..options() }, "(--max-batch) must be at least 2");
    let plan = solve(&problem, Objective::Pipeline, "auto", &Options::default()).unwrap();
    assert_eq!((plan.value, plan.max_batch), (Micros(9.0), None));
    assert_eq!(verify_under(&problem, &plan, &Terms::default()), Ok(Micros(9.0)));
    let error = solve(&problem, Objective::Latency, "auto", &Options::default()).unwrap_err().to_string();
    assert!(error.contains("objective batch plans its batches of 2"), "{error}");
    let work = vec![Micros(1.0); 2];
    let bandwidth = divi_planner::units::BytesPerMicro(1.0);
    problem.mtpp = Some(divi_planner::problem::Pipeline { work, k: vec![2], bandwidth, memory: None });
    says(&problem, "auto", &options(), "(mtpp) has times of one input only");
}

/// Changes a plan so that it violates a constraint, or does not have its value.
fn disturb(problem: &mut Problem, plan: &mut Plan, kind: usize, random: &mut Random) -> bool {
    let devices_of_all = problem.devices.len();
    let Schedule::BatchedPipeline { bottleneck, turns: Turns::Devices { batch, devices }, .. } = &mut plan.schedule
    else {
        return false;
    };
    let of = random.below(batch.len());
    match kind {
        // A size that the device does not have.
        0 => batch[of] = 3,
        1 => drop(devices.remove(of)),
        2 => {
            let first = devices[of][0];
            devices[of].push(first);
        }
        3 => {
            let Some(on) = devices[of].first().copied() else { return false };
            let fits = |problem: &mut Problem| problem.devices[on].memory = Some(Bytes::ZERO);
            fits(problem);
            plan.problem = problem.hash();
        }
        // Unequal devices.
        4 => {
            let Some(other) = (0..devices_of_all).find(|other| !devices.iter().flatten().any(|on| on == other)) else {
                return false;
            };
            problem.devices[other].memory = Some(Bytes(12345.0));
            plan.problem = problem.hash();
            devices[of].push(other);
        }
        _ => {
            *bottleneck = *bottleneck * 0.9;
            plan.value = *bottleneck;
            plan.bound = plan.bound.min(plan.value);
            plan.gap = if plan.value > Micros::ZERO { (plan.value - plan.bound) / plan.value } else { 0.0 };
        }
    }
    true
}

#[test]
fn disturbed_plans_are_rejected() {
    let mut random = Random::new(41);
    let (mut disturbed, mut kinds) = (0, [0; 6]);
    while disturbed < DISTURBED {
        let mut problem = small(&mut random, 5);
        let Ok(mut plan) = solve(&problem, Objective::Pipeline, "auto", &options()) else { continue };
        let holds = problem.nodes.iter().all(|node| node.weight > Bytes::ZERO);
        if plan.value <= Micros::ZERO || !holds {
            continue;
        }
        assert!(verify_under(&problem, &plan, &Terms::from(&options())).is_ok());
        let kind = disturbed % kinds.len();
        if !disturb(&mut problem, &mut plan, kind, &mut random) {
            continue;
        }
        let refused = verify_under(&problem, &plan, &Terms::from(&options()));
        assert!(refused.is_err(), "kind {kind}: {}\n{}", plan.write(), problem.write());
        // An error of the verifier names a constraint, not the hash.
        assert!(!refused.unwrap_err().to_string().contains("another problem"));
        disturbed += 1;
        kinds[kind] += 1;
    }
    assert!(kinds.iter().all(|count| *count > 20), "{kinds:?}");
}
