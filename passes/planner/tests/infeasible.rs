//! Infeasible problems: each reported remedy makes the problem feasible, no smaller one does, and no feasible problem is
//! reported as infeasible.

mod small;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use divi_planner::infeasible::{Remedy, remedies};
use divi_planner::plan::{Batch, Bound, LaunchRule, Limit, Schedule};
use divi_planner::problem::{Device, MemoryModel, Node};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Error, Objective, Observer, Options, Plan, Problem, SolverEvent, solve, verify};
use small::random_problem::{Size, problem};
use small::{brute_force, naive};

fn briefly() -> Options {
    Options { limit: Some(Limit::Iterations(300)), launches: LaunchRule::One, ..Options::default() }
}

fn batches(plan: &Plan) -> Vec<Batch> {
    match &plan.schedule {
        Schedule::Batch { batches, .. } => batches.clone(),
        Schedule::Latency { device, start, .. } => {
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

/// Returns true if enumeration finds a schedule that the verifier accepts.
fn is_possible(problem: &Problem, objective: Objective) -> bool {
    let accept = |batches: &[Batch]| {
        let time = |batch: &Batch| problem.nodes[batch.node].time[&(batch.inputs.len() as u32)][batch.device];
        let makespan =
            batches.iter().filter_map(|batch| Some(batch.start + time(batch)?)).fold(Micros::ZERO, Micros::max);
        let schedule = if objective == Objective::Batch {
            Schedule::Batch { batches: batches.to_vec(), makespan }
        } else {
            let mut of: Vec<&Batch> = batches.iter().collect();
            of.sort_by_key(|batch| batch.node);
            let (device, start) = of.iter().map(|batch| (batch.device, batch.start)).unzip();
            Schedule::Latency { device, start, makespan }
        };
        verify(problem, &Plan::new(problem, "all", schedule, Bound::none())).is_ok()
    };
    brute_force::best(problem, &accept).is_some()
}

/// Generates a problem with pins, co-location, missing links and little memory, mostly overconstrained.
fn tight(size: &Size, random: &mut Random) -> Problem {
    let mut problem = problem(size, random);
    let (nodes, devices) = (problem.nodes.len(), problem.devices.len());
    for node in &mut problem.nodes {
        let runs: Vec<usize> = (0..devices).filter(|device| node.time.values().all(|t| t[*device].is_some())).collect();
        node.pin = node.pin.filter(|pin| runs.contains(pin));
        if !runs.is_empty() && random.chance(0.4) {
            node.pin = Some(runs[random.below(runs.len())]);
        }
    }
    if nodes > 2 && random.chance(0.4) {
        problem.colocate = Some((0..1 + random.below(2)).map(|_| random.sample(nodes, 2)).collect());
    }
    for (from, row) in problem.bandwidth.iter_mut().enumerate() {
        let missing = (0..devices).filter(|to| *to != from && random.chance(0.15)).collect::<Vec<_>>();
        missing.into_iter().for_each(|to| row[to] = Some(BytesPerMicro::ZERO));
    }
    if random.chance(0.7) {
        let total: Bytes =
            problem.nodes.iter().map(|node| node.weight + node.input + node.output.unwrap_or(Bytes(6.0))).sum();
        for device in &mut problem.devices {
            device.memory = random.chance(0.8).then(|| Bytes((total.0 * random.unit() * 0.8).round()));
        }
        problem.memory_model = if random.chance(0.5) { MemoryModel::Liveness } else { MemoryModel::Static };
    }
    problem
}

fn kind(remedy: &Remedy) -> &'static str {
    match remedy {
        Remedy::Unpinned(_) => "pins",
        Remedy::Apart(_) => "groups",
        Remedy::Linked(_) => "links",
        Remedy::Memory(..) => "memory",
        Remedy::MemoryOfEach(_) => "memory of each",
        Remedy::BatchSize(..) => "batch size",
        Remedy::Inputs(_) => "inputs",
        Remedy::Stages(_) => "stages",
        Remedy::SharedDevices => "shared devices",
        Remedy::All(_) => "all",
    }
}

/// Returns smaller remedies, by one element or one byte.
fn less(remedy: &Remedy) -> Vec<Remedy> {
    fn without<T: Clone>(all: &[T], of: impl Fn(Vec<T>) -> Remedy) -> Vec<Remedy> {
        let fewer =
            |index: usize| all.iter().enumerate().filter(move |(at, _)| *at != index).map(|(_, one)| one.clone());
        (0..all.len()).map(|index| of(fewer(index).collect())).collect()
    }
    match remedy {
        Remedy::Unpinned(nodes) => without(nodes, Remedy::Unpinned),
        Remedy::Apart(lists) => without(lists, Remedy::Apart),
        Remedy::Linked(links) => without(links, Remedy::Linked),
        Remedy::Memory(device, bytes) => vec![Remedy::Memory(*device, *bytes - Bytes(1.0))],
        Remedy::MemoryOfEach(bytes) => vec![Remedy::MemoryOfEach(*bytes - Bytes(1.0))],
        _ => Vec::new(),
    }
}

fn changed(problem: &Problem, options: &Options, remedy: &Remedy) -> (Problem, Options) {
    let (mut problem, mut options) = (problem.clone(), options.clone());
    remedy.apply(&mut problem, &mut options);
    (problem, options)
}

/// Counts remedies by kind, and feasible problems.
fn examine(count: usize, size: &Size, seed: u64) -> (BTreeMap<&'static str, usize>, usize) {
    let mut random = Random::new(seed);
    let mut said: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut planned = 0;
    for _ in 0..count {
        let problem = tight(size, &mut random);
        let objective = if problem.inputs > 1 { Objective::Batch } else { Objective::Latency };
        let text = || problem.write();
        let error = match solve(&problem, objective, "auto", &briefly()) {
            Ok(plan) => {
                assert!(naive::is_schedule(&problem, &batches(&plan)), "{}{}", text(), plan.write());
                planned += 1;
                continue;
            }
            Err(Error::Problem(_)) => continue,
            Err(error @ (Error::Infeasible(_) | Error::NotFound(_))) => error,
            Err(error) => panic!("{error}\n{}", text()),
        };
        let possible = is_possible(&problem, objective);
        assert!(!possible || matches!(error, Error::NotFound(_)), "there is a plan, but: {error}\n{}", text());
        let found = remedies(&problem, objective, &briefly());
        assert_eq!(found.is_empty(), !error.to_string().contains("there is a plan "), "{error}\n{}", text());
        for remedy in found {
            let (other, options) = changed(&problem, &briefly(), &remedy);
            let plan = solve(&other, objective, "auto", &options);
            assert!(plan.is_ok(), "{remedy:?} does not help: {plan:?}\n{}", text());
            // Live memory may shrink when a task is delayed, which enumeration does not try.
            let is_certain = problem.memory_model == MemoryModel::Static && objective == Objective::Latency;
            for less in less(&remedy).into_iter().filter(|_| is_certain) {
                let (other, _) = changed(&problem, &briefly(), &less);
                assert!(!is_possible(&other, objective), "{remedy:?}, but {less:?} is enough\n{}", text());
            }
            *said.entry(kind(&remedy)).or_default() += 1;
        }
    }
    (said, planned)
}

#[test]
fn remedies_for_one_input() {
    let (said, planned) = examine(200, &Size { nodes: 5, devices: 3, inputs: 1 }, 21);
    let expected = ["all", "groups", "links", "memory", "memory of each", "pins"];
    assert!(expected.iter().all(|kind| said.contains_key(kind)) && planned > 15, "{said:?}, {planned}");
}

#[test]
fn remedies_for_queues() {
    let (said, planned) = examine(120, &Size { nodes: 3, devices: 2, inputs: 3 }, 22);
    let expected = ["inputs", "links", "memory", "pins"];
    assert!(expected.iter().all(|kind| said.contains_key(kind)) && planned > 10, "{said:?}, {planned}");
}

/// Pins, unsupported devices, co-location and liveness, in all parts of a pipeline's portfolio.
#[test]
fn remedies_for_pipelines() {
    let mut random = Random::new(23);
    let mut said: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut planned = 0;
    for round in 0..150 {
        let problem = tight(&Size { nodes: 6, devices: 3, inputs: 1 }, &mut random);
        let options = Options { stages: Some(1 + round % 3), ..briefly() };
        let error = match solve(&problem, Objective::Pipeline, "auto", &options) {
            Ok(_) => {
                planned += 1;
                continue;
            }
            Err(error @ (Error::Infeasible(_) | Error::NotFound(_))) => error,
            Err(_) => continue,
        };
        for remedy in remedies(&problem, Objective::Pipeline, &options) {
            let (other, asked) = changed(&problem, &options, &remedy);
            let plan = solve(&other, Objective::Pipeline, "auto", &asked);
            assert!(plan.is_ok(), "{error}: {remedy:?} does not help: {plan:?}\n{}", problem.write());
            *said.entry(kind(&remedy)).or_default() += 1;
        }
    }
    let expected = ["links", "memory", "pins", "shared devices", "stages"];
    assert!(expected.iter().all(|kind| said.contains_key(kind)) && planned > 10, "{said:?}, {planned}");
}

const MIB: Bytes = Bytes(1024.0 * 1024.0);

/// Two devices and a chain of named tasks with sizes in MiB.
fn chain(memory: [f64; 2], tasks: &[(&str, f64, Option<usize>)]) -> Problem {
    let device = |(id, memory): (usize, f64)| Device {
        id,
        name: ["cpu0", "gpu0"][id].to_owned(),
        memory: Some(memory * MIB),
        batch_sizes: vec![1, 2],
    };
    let devices = memory.into_iter().enumerate().map(device).collect();
    let link = Some(BytesPerMicro(1000.0));
    let mut problem = Problem::new("chain", devices, vec![vec![None, link], vec![link, None]]);
    problem.nodes = tasks
        .iter()
        .enumerate()
        .map(|(id, (name, mebibytes, pin))| Node {
            id,
            name: Some((*name).to_owned()),
            time: [(1, [9.0, 2.0]), (2, [18.0, 3.0])]
                .map(|(size, times)| (size, times.map(|time| Some(Micros(time))).to_vec()))
                .into(),
            weight: *mebibytes * MIB,
            input: Bytes::ZERO,
            output: Some(Bytes::ZERO),
            scratch: Bytes::ZERO,
            pin: *pin,
            module: None,
        })
        .collect();
    problem.edges = Some((1..tasks.len()).map(|to| (to - 1, to)).collect());
    problem
}

#[track_caller]
fn says(problem: &Problem, objective: Objective, options: &Options, expected: &str) {
    let error = solve(problem, objective, "auto", options).expect_err("no plan").to_string();
    assert_eq!(error, expected);
}

#[test]
fn messages() {
    let plain = Options::default();
    let layers = [
        ("/stem", 2.0, None),
        ("/layer4/conv1", 3.0, Some(1)),
        ("/layer4/conv2", 4.0, Some(1)),
        ("/layer4/conv3", 3.5, Some(1)),
        ("/head", 1.0, Some(0)),
    ];
    let short = "the problem has no plan: device 1 (gpu0): tasks that can run nowhere else need 10.50 MiB, it has 8.00 MiB: \
                 2.50 MiB short; pins on /layer4/* hold 10.50 MiB of it; node 2 (/layer4/conv2) alone needs 4.00 MiB of it; \
                 there is a plan ";
    says(
        &chain([8.0, 8.0], &layers),
        Objective::Latency,
        &plain,
        &format!("{short}without the pin of /layer4/conv2, or with 10.50 MiB on gpu0, 2.50 MiB more"),
    );
    // One stage per device: the stem cannot be on cpu0 with the head behind it there.
    says(
        &chain([8.0, 8.0], &layers),
        Objective::Pipeline,
        &plain,
        &format!("{short}with 12.50 MiB on gpu0, 4.50 MiB more"),
    );
    says(
        &chain([4.0, 4.0], &[("/a", 3.0, None), ("/b", 5.0, None)]),
        Objective::Latency,
        &plain,
        "the problem has no plan: node 1 (/b): needs 5.00 MiB, the roomiest device that it may run on has 4.00 MiB: 1.00 MiB \
         short; there is a plan with 5.00 MiB on cpu0, 1.00 MiB more",
    );
    let mut apart = chain([40.0, 40.0], &[("/a", 3.0, Some(0)), ("/b", 5.0, Some(1))]);
    apart.bandwidth[0][1] = Some(BytesPerMicro::ZERO);
    says(
        &apart,
        Objective::Latency,
        &plain,
        "the problem has no plan: edge [0, 1]: no link leads from where node 0 (/a) may run (cpu0) to where node 1 (/b) may \
         run (gpu0); there is a plan without the pin of /b, or with a link from cpu0 to gpu0",
    );
    let mut shared = chain([40.0, 40.0], &[("/a", 3.0, Some(0)), ("/b", 5.0, Some(1))]);
    shared.colocate = Some(vec![vec![0, 1]]);
    says(
        &shared,
        Objective::Latency,
        &plain,
        "the problem has no plan: colocate: tasks that share a device have none in common: node 0 (/a) on cpu0; node 1 (/b) \
         on gpu0; there is a plan without the pin of /b, or if /a and /b need not share a device",
    );
    let queue = Options { inputs: Some(7), launches: LaunchRule::One, ..Options::default() };
    says(
        &chain([40.0, 40.0], &[("/a", 3.0, None)]),
        Objective::Batch,
        &queue,
        "the problem has no plan: node 0 (/a): 7 inputs cannot be cut into one batch a device: cpu0 takes [1, 2], gpu0 takes \
         [1, 2] (batch_sizes); there is a plan with 4 inputs",
    );
    says(
        &chain([40.0, 40.0], &[("/a", 3.0, None), ("/b", 3.0, None), ("/c", 3.0, None)]),
        Objective::Batch,
        &queue,
        "the problem has no plan: node 0 (/a) and 2 more: 7 inputs cannot be cut into one batch a device: cpu0 takes [1, 2], \
         gpu0 takes [1, 2] (batch_sizes); there is a plan with 4 inputs",
    );
    says(
        &chain([8.0, 8.0], &[("/a", 12.0, None), ("/b", 11.0, None)]),
        Objective::Pipeline,
        &plain,
        "the problem has no plan:\n  node 0 (/a): needs 12.00 MiB, the roomiest device that it may run on has 8.00 MiB: 4.00 \
         MiB short\n  node 1 (/b): needs 11.00 MiB, the roomiest device that it may run on has 8.00 MiB: 3.00 MiB short\n  \
         remedy: there is a plan with 23.00 MiB on cpu0, 15.00 MiB more",
    );
}

/// Tests that remedies for a network of many tasks take few trials, that each is reported, and that they are valid.
#[test]
fn remedies_of_large_networks_are_found_with_few_trials() {
    let names: Vec<String> = (0..600).map(|task| format!("/task{task}")).collect();
    let tasks: Vec<(&str, f64, Option<usize>)> = names.iter().map(|name| (name.as_str(), 1.0, None)).collect();
    let problem = chain([200.0, 100.0], &tasks);
    let trials = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&trials);
    let observer = Observer::new(move |event| {
        if let SolverEvent::Explored(count, "remedies") = event {
            counted.fetch_add(count, Ordering::Relaxed);
        }
    });
    let error =
        solve(&problem, Objective::Latency, "auto", &Options { observer, ..Options::default() }).expect_err("no plan");
    let text = error.to_string();
    let short =
        "the tasks need 600.00 MiB, all devices together have 300.00 MiB: 300.00 MiB short; there is a plan with ";
    let (_, remedy) = text.split_once(short).unwrap_or_else(|| panic!("{text}"));
    let bytes: f64 = remedy.split(' ').next().and_then(|number| number.parse().ok()).expect("a size");
    // 500 MiB on the first device are just enough.
    assert!(remedy.contains(" MiB on cpu0, ") && (500.0..=510.0).contains(&bytes), "{text}");
    let trials = trials.load(Ordering::Relaxed);
    assert!((1..=50).contains(&trials), "{trials} trials");
}
