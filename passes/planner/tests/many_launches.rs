//! Queues with any number of launches (`divi-plan/3`): the verifier accepts valid plans and rejects disturbed ones.

#[path = "small/refusal.rs"]
mod refusal;

use divi_planner::plan::{Batch, Bound, LaunchRule, Limit, Objective, Proof, Schedule, Transfer};
use divi_planner::random::Random;
use divi_planner::units::Micros;
use divi_planner::{Options, Plan, Problem, Terms, solve, verify, verify_under};
use refusal::{refuses, refuses_under};

/// Terms of plans with any number of launches.
fn many() -> Terms {
    Terms { objective: Some(Objective::Batch), launches: Some(LaunchRule::Many), ..Terms::default() }
}

fn plan(problem: &Problem, batches: Vec<Batch>, makespan: Micros) -> Plan {
    let schedule = Schedule::Batch { batches, makespan };
    Plan { launches: LaunchRule::Many, ..Plan::new(problem, "by hand", schedule, Bound::none()) }
}

/// A chain of equal blocks on equal devices, each with memory for its share of the blocks. A launch of n inputs takes
/// 200 + 800 n µs.
fn chain(blocks: usize, devices: usize, inputs: u32) -> Problem {
    let list = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(",");
    let times = |size: u32| format!("\"{size}\":[{}]", list(devices, &|_| (200 + 800 * size).to_string()));
    let times = [1, 2, 4, 8, 16].map(times).join(",");
    let memory = blocks / devices * 1_000_000 + 300_000;
    let text = format!(
        r#"{{"format":"divi-problem/1","name":"chain","L":{inputs},"devices":[{}],"bandwidth":[{}],"nodes":[{}],"edges":[{}]}}"#,
        list(devices, &|id| format!(r#"{{"id":{id},"name":"gpu{id}","memory":{memory},"batch_sizes":[1,2,4,8,16]}}"#)),
        list(devices, &|from| format!(
            "[{}]",
            list(devices, &|to| if from == to { "null".to_owned() } else { "10".to_owned() })
        )),
        list(blocks, &|id| format!(r#"{{"id":{id},"time":{{{times}}},"weight":1000000,"input":100,"output":100}}"#)),
        list(blocks - 1, &|id| format!("[{id},{}]", id + 1)),
    );
    Problem::read(&text).expect("a problem")
}

/// Blocks in turn on all devices; inputs in groups of two. Each device runs first what was ready first.
fn interleaved(problem: &Problem) -> (Vec<Batch>, Micros) {
    let (blocks, devices) = (problem.nodes.len(), problem.devices.len());
    let groups = problem.inputs as usize / 2;
    let mut free = vec![Micros::ZERO; devices];
    let mut ready = vec![Micros::ZERO; groups];
    let mut next = vec![0; groups];
    let mut batches = Vec::new();
    while batches.len() < groups * blocks {
        let start = |group: &usize| ready[*group].max(free[next[*group] % devices]);
        let waiting = (0..groups).filter(|group| next[*group] < blocks);
        let earlier = |a: &usize, b: &usize| start(a).total_cmp(&start(b)).then(ready[*a].total_cmp(&ready[*b]));
        let group = waiting.min_by(earlier).expect("some group is not done");
        let (node, device) = (next[group], next[group] % devices);
        let start = start(&group);
        batches.push(Batch { node, device, inputs: vec![2 * group as u32, 2 * group as u32 + 1], start });
        free[device] = start + Micros(1800.0);
        // 200 bytes at 10 bytes per microsecond.
        ready[group] = start + Micros(1820.0);
        next[group] += 1;
    }
    (batches, free.into_iter().fold(Micros::ZERO, Micros::max))
}

#[test]
fn groups_overlap() {
    let problem = chain(16, 4, 16);
    let (batches, makespan) = interleaved(&problem);
    let plan = plan(&problem, batches, makespan);
    assert_eq!(verify_under(&problem, &plan, &many()), Ok(makespan));
    assert!(makespan < Micros(64_000.0), "{makespan}");
    let text = plan.write();
    assert!(text.contains("\"format\": \"divi-plan/3\""));
    assert_eq!(Plan::read(&text), Ok(plan.clone()));
    // Bounds depend on the rule. The default is the rule of the plan.
    assert_eq!(verify(&problem, &plan), Ok(makespan));
    refuses_under(
        &problem,
        &plan,
        &Terms { launches: Some(LaunchRule::One), ..Terms::default() },
        "launches: many of a task on each device in the plan, but one here; verify it with --launches=many, or plan it \
         again",
    );
    let one = Plan { launches: LaunchRule::One, ..plan };
    refuses_under(&problem, &one, &many(), "launches: one of a task on each device in the plan, but many here");
    refuses(&problem, &one, "node 0: launches more than once on device 0 (gpu0)");
}

#[test]
fn disturbed_plans_are_rejected() {
    let problem = chain(16, 4, 16);
    let (batches, makespan) = interleaved(&problem);
    let mut random = Random::new(1);
    for _ in 0..400 {
        let mut other = batches.clone();
        let place = random.below(other.len());
        let what = random.below(7);
        match what {
            // Dropped.
            0 => drop(other.swap_remove(place)),
            // Doubled, at the end.
            1 => other.push(Batch { start: makespan, ..other[place].clone() }),
            // Earlier than operands and device allow.
            2 => other[place].start -= Micros([1.0, 100.0, 5000.0][random.below(3)]),
            // Reordered: a group before the one whose results it reads.
            3 => {
                let inputs = other[place].inputs.clone();
                let same = |batch: &&mut Batch| batch.inputs == inputs;
                let mut of_group: Vec<&mut Batch> = other.iter_mut().filter(same).collect();
                let first = random.below(of_group.len() - 1);
                let start = of_group[first].start;
                of_group[first].start = of_group[first + 1].start;
                of_group[first + 1].start = start;
            }
            // On a device without memory for one more block.
            4 => other[place].device = (other[place].device + 1 + random.below(3)) % 4,
            // More inputs than were computed, or a size that does not exist.
            5 => {
                let extra = (other[place].inputs[1] + 1 + random.below(14) as u32) % 16;
                other[place].inputs.push(extra);
            }
            // One input of another group.
            _ => other[place].inputs[0] = (other[place].inputs[0] + 2) % 16,
        }
        let end = other.iter().map(|batch| batch.start + Micros(1800.0)).fold(Micros::ZERO, Micros::max);
        let plan = plan(&problem, other, end);
        assert!(verify_under(&problem, &plan, &many()).is_err(), "disturbance {what} of launch {place}");
    }
}

/// With liveness, weights count once for all launches of a task, and results of a launch until they are read.
#[test]
fn memory_of_launches() {
    let text = r#"{"format":"divi-problem/1","name":"two","L":2,"memory_model":"liveness",
"devices":[{"id":0,"name":"a","memory":140,"batch_sizes":[1]}],"bandwidth":[[null]],
"nodes":[{"id":0,"time":{"1":[10]},"weight":50,"input":0,"output":30},{"id":1,"time":{"1":[10]},"weight":50,"input":30,"output":10}],
"edges":[[0,1]]}"#;
    let problem = Problem::read(text).expect("a problem");
    let of = |node: usize, input: u32, start: f64| Batch { node, device: 0, inputs: vec![input], start: Micros(start) };
    // Weights of 100; the results of one input at a time.
    let in_turn = vec![of(0, 0, 0.0), of(1, 0, 10.0), of(0, 1, 20.0), of(1, 1, 30.0)];
    assert_eq!(verify_under(&problem, &plan(&problem, in_turn, Micros(40.0)), &many()), Ok(Micros(40.0)));
    let by_task = vec![of(0, 0, 0.0), of(0, 1, 10.0), of(1, 0, 20.0), of(1, 1, 30.0)];
    let by_task = plan(&problem, by_task, Micros(40.0));
    refuses_under(&problem, &by_task, &many(), "device 0 (a): needs 170 bytes, has 140 bytes: 30 bytes short");
}

/// On a bus, each launch has its own transfer, which its inputs identify.
#[test]
fn transfers_of_launches() {
    let text = r#"{"format":"divi-problem/1","name":"bus","L":2,"contention":"exclusive",
"devices":[{"id":0,"name":"a","batch_sizes":[1]},{"id":1,"name":"b","batch_sizes":[1]}],
"bandwidth":[[null,1],[1,null]],"bus":[[null,"pcie"],["pcie",null]],
"nodes":[{"id":0,"time":{"1":[5,5]},"weight":0,"input":0,"output":10,"pin":0},{"id":1,"time":{"1":[5,5]},"weight":0,"input":10,"output":0,"pin":1}],
"edges":[[0,1]]}"#;
    let problem = Problem::read(text).expect("a problem");
    let of =
        |node: usize, input: u32, start: f64| Batch { node, device: node, inputs: vec![input], start: Micros(start) };
    let transfer = |inputs: Option<Vec<u32>>, start: f64| Transfer {
        tensor: 0,
        from: 0,
        to: 1,
        inputs,
        start: Micros(start),
        end: Micros(start + 10.0),
    };
    let batches = vec![of(0, 0, 0.0), of(0, 1, 5.0), of(1, 0, 15.0), of(1, 1, 25.0)];
    let with = |transfers: Vec<Transfer>| Plan { transfers, ..plan(&problem, batches.clone(), Micros(30.0)) };
    let valid = with(vec![transfer(Some(vec![0]), 5.0), transfer(Some(vec![1]), 15.0)]);
    assert_eq!(verify_under(&problem, &valid, &many()), Ok(Micros(30.0)));
    assert_eq!(Plan::read(&valid.write()), Ok(valid));
    let cases = [
        (vec![transfer(None, 5.0), transfer(Some(vec![1]), 15.0)], "several launches on device 0 (a) compute tensor 0"),
        (vec![transfer(Some(vec![0]), 5.0)], "tensor 0 has to go from device 0 (a) to device 1 (b), and is not listed"),
        (
            vec![transfer(Some(vec![0]), 5.0), transfer(Some(vec![0]), 15.0)],
            "goes from device 0 (a) to device 1 (b) twice",
        ),
        (vec![transfer(Some(vec![0, 1]), 10.0)], "for exactly these inputs that device 1 (b) reads"),
        (vec![transfer(Some(vec![0, 0]), 5.0), transfer(Some(vec![1]), 15.0)], "for exactly these inputs"),
        (vec![transfer(Some(vec![0]), 4.0), transfer(Some(vec![1]), 15.0)], "its tensor is there at 5: 1 µs too early"),
        (vec![transfer(Some(vec![0]), 5.0), transfer(Some(vec![1]), 14.0)], "bus pcie"),
    ];
    for (transfers, message) in cases {
        refuses_under(&problem, &with(transfers), &many(), message);
    }
}

/// Blocks that fill the memory of all devices are interleaved, and inputs pass in groups: 208 ms with one launch.
#[test]
fn groups_are_planned() {
    let problem = chain(16, 4, 16);
    let options = Options { launches: LaunchRule::Many, limit: Some(Limit::Iterations(500)), ..Options::default() };
    let plan = solve(&problem, Objective::Batch, "auto", &options).expect("a plan");
    assert!(plan.value <= Micros(66_300.0) && plan.bound >= Micros(56_400.0), "{} {}", plan.value, plan.bound);
    assert_eq!((plan.bound_by.as_str(), plan.proof), ("linear-relaxation", Proof::SafeDual));
    assert_eq!(solve(&problem, Objective::Batch, "auto", &options), Ok(plan.clone()), "not reproducible");
    let one = Options { launches: LaunchRule::One, ..options.clone() };
    assert!(solve(&problem, Objective::Batch, "auto", &one).expect("a plan").value > Micros(200_000.0));
    // Algorithms with one launch are judged by the bound for any number.
    let listed = solve(&problem, Objective::Batch, "met", &options).expect("a plan");
    assert_eq!((listed.bound, listed.launches), (plan.bound, LaunchRule::Many));
    // These plan several launches, too.
    for name in ["priced", "replicated"] {
        let found = solve(&problem, Objective::Batch, name, &options).expect("a plan");
        assert!(found.value < Micros(100_000.0), "{name}: {}", found.value);
    }
}

/// A queue that no algorithm with one launch takes.
#[test]
fn executed_plans_keep_inputs_on_a_device() {
    // Two tasks that take turns in times by batch size, as noisy measurements have it: cutting micro-batches from task to task
    // would gain 8 %, and balancing the devices by single launches 1 %.
    let mut problem = chain(12, 2, 16);
    problem.devices.iter_mut().for_each(|device| device.memory = None);
    for (task, node) in problem.nodes.iter_mut().enumerate() {
        for (size, times) in &mut node.time {
            let is_faster = (size.ilog2() as usize + task).is_multiple_of(2);
            let noise = if is_faster { 0.92 } else { 1.0 };
            times.iter_mut().flatten().for_each(|time| *time = *time * noise);
        }
    }
    let solved = |is_executed: bool| {
        let options = Options { limit: Some(Limit::Iterations(2000)), is_executed, ..Options::default() };
        solve(&problem, Objective::Batch, "auto", &options).expect("a plan")
    };
    let (executed, shortest) = (solved(true), solved(false));
    assert!(shortest.schedule.value() <= executed.schedule.value());
    let Schedule::Batch { batches, .. } = &executed.schedule else { panic!("the objective is batch") };
    let mut groups: Vec<(usize, &[u32])> = batches.iter().map(|launch| (launch.device, &*launch.inputs)).collect();
    groups.sort_unstable();
    groups.dedup();
    let inputs: usize = groups.iter().map(|(_, inputs)| inputs.len()).sum();
    assert_eq!(inputs, 16, "every group stays on its device: {groups:?}");
}

#[test]
fn long_queues_are_planned_with_a_price_on_memory() {
    let problem = chain(8, 4, 640);
    let options = Options { launches: LaunchRule::Many, ..Options::default() };
    let plan = solve(&problem, Objective::Batch, "priced", &options).expect("a plan");
    assert!(plan.gap < 0.5, "{} {}", plan.value, plan.bound);
}

/// A queue of hundreds of inputs takes as long to plan as its pattern.
#[test]
fn long_queues_repeat_a_pattern() {
    let problem = chain(8, 4, 640);
    let options = Options { launches: LaunchRule::Many, limit: Some(Limit::Iterations(50)), ..Options::default() };
    let plan = solve(&problem, Objective::Batch, "auto", &options).expect("a plan");
    assert!(plan.gap < 0.1, "{} {}", plan.value, plan.bound);
    // Four devices take at most 64 inputs in one launch each.
    let error = solve(&problem, Objective::Batch, "met", &options).expect_err("one launch");
    assert!(error.to_string().contains("640 inputs cannot be cut into one batch a device"), "{error}");
}

#[test]
fn other_objectives_have_one_launch() {
    let problem = chain(2, 2, 1);
    let schedule =
        Schedule::Latency { device: vec![0, 1], start: vec![Micros(0.0), Micros(1010.0)], makespan: Micros(2010.0) };
    let text = Plan::new(&problem, "by hand", schedule, Bound::none()).write();
    let error = Plan::read(&text.replace("divi-plan/2", "divi-plan/3")).expect_err("no queue");
    assert!(error.to_string().contains("divi-plan/3 is for objectives batch and pipeline, not latency"), "{error}");
}
