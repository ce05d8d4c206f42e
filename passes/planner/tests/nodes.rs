//! Clusters of hosts: GPT-3 on them, one host's plan repeated, and equal devices and hosts in integer programs.

#[path = "small/brute_force.rs"]
mod brute_force;
#[path = "small/edges.rs"]
mod edges;

use std::collections::BTreeMap;

use divi_papers::generate::{Gpt3, gpt3};
use divi_planner::plan::{Batch, LaunchRule, Limit};
use divi_planner::problem::{Device, Node};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{
    Error, Instance, Objective, Options, Plan, Problem, Symmetry, bounds, queue_program_size, solve, verify,
};

const SLACK: f64 = 1e-9;

/// Hosts are enumerated with at most one launch of a task on a device.
fn one_launch() -> Options {
    Options { launches: LaunchRule::One, ..Options::default() }
}

/// Generates a few tasks on two equal hosts of two devices, and a queue of two inputs; memory often binds.
fn cluster(random: &mut Random) -> Problem {
    let twins = random.chance(0.5);
    let memory = [None, Some(Bytes(12.0)), Some(Bytes(20.0))][random.below(3)];
    let device = |id: usize| Device { id, name: format!("d{id}"), memory, batch_sizes: vec![1, 2] };
    let (inside, between) = (Some(BytesPerMicro(4.0)), Some(BytesPerMicro([4.0, 1.0, 0.5][random.below(3)])));
    let link = |from: usize, to: usize| match (from == to, from / 2 == to / 2) {
        (true, _) => None,
        (false, near) => {
            if near {
                inside
            } else {
                between
            }
        }
    };
    let bandwidth = (0..4).map(|from| (0..4).map(|to| link(from, to)).collect()).collect();
    let mut problem = Problem::new("cluster", (0..4).map(device).collect(), bandwidth);
    problem.machines = Some(vec![vec![0, 1], vec![2, 3]]);
    problem.inputs = 2;
    let nodes = 2 + random.below(2);
    problem.nodes = (0..nodes)
        .map(|id| {
            let one: Vec<f64> = (0..2).map(|_| 1.0 + random.below(12) as f64).collect();
            let one = if twins { [one[0], one[0]] } else { [one[0], one[1]] };
            let more = random.unit();
            let row = |size: u32| {
                let time = |device: usize| Some(Micros((one[device % 2] * (1.0 + more * f64::from(size - 1))).round()));
                (0..4).map(time).collect()
            };
            let time: BTreeMap<u32, Vec<Option<Micros>>> = [1, 2].into_iter().map(|size| (size, row(size))).collect();
            let (weight, output) = (Bytes(random.below(9) as f64), Bytes(random.below(5) as f64));
            Node {
                id,
                name: None,
                time,
                weight,
                input: Bytes(1.0),
                output: Some(output),
                scratch: Bytes::ZERO,
                pin: None,
                module: None,
            }
        })
        .collect();
    let pairs = (0..nodes).flat_map(|to| (0..to).map(move |from| (from, to)));
    problem.edges = Some(pairs.filter(|_| random.chance(0.7)).collect());
    problem
}

/// Checks eq. (6) independently.
fn fits(problem: &Problem, batches: &[Batch]) -> bool {
    let bytes = |batch: &Batch| {
        let node = &problem.nodes[batch.node];
        node.weight + (node.input + node.output.unwrap_or_default()) * batch.inputs.len() as f64
    };
    problem.devices.iter().all(|device| {
        let held: Bytes = batches.iter().filter(|batch| batch.device == device.id).map(bytes).sum();
        device.memory.is_none_or(|memory| held <= memory)
    })
}

/// Tests that no criterion excludes the optimum, no bound is above it, and no plan below.
#[test]
fn clusters_against_enumeration() {
    let mut random = Random::new(3);
    let (mut compared, mut scarce) = (0, 0);
    while compared < 24 {
        let problem = cluster(&mut random);
        let Some((optimum, _)) = brute_force::best(&problem, &|batches| fits(&problem, batches)) else { continue };
        let Ok(instance) = Instance::new(&problem, Objective::Batch) else { panic!("{}", problem.write()) };
        for bound in bounds::all(&instance) {
            assert!(bound.value <= optimum * (1.0 + SLACK), "{bound:?}, but {optimum}\n{}", problem.write());
        }
        for symmetry in Symmetry::ALL {
            let plan = solve(&problem, Objective::Batch, "milp", &Options { symmetry, ..one_launch() }).unwrap();
            assert!((plan.value - optimum).abs() <= SLACK * optimum, "{symmetry}: {optimum}\n{}", plan.write());
            assert!((plan.bound - optimum).abs() <= SLACK * optimum, "{symmetry}: {optimum}\n{}", plan.write());
        }
        for algorithm in ["priced", "replicated", "auto"] {
            let options = Options { limit: Some(Limit::Iterations(200)), ..one_launch() };
            match solve(&problem, Objective::Batch, algorithm, &options) {
                Ok(plan) => assert!(plan.value >= optimum * (1.0 - SLACK), "{algorithm}: {optimum}\n{}", plan.write()),
                Err(error) => {
                    assert!(matches!(error, Error::NotFound(_)) && instance.memory_binds(), "{algorithm}: {error}");
                }
            }
        }
        scarce += usize::from(instance.memory_binds());
        compared += 1;
    }
    assert!(scarce > 6, "{scarce}");
}

/// Tests that criteria add constraints, and no variables.
#[test]
fn criteria_are_constraints() {
    let options = Gpt3 { blocks: 1, machines: 2, inputs: 2, batch_sizes: vec![1, 2], ..Gpt3::default() };
    let problem = gpt3(&options).unwrap();
    let size = |symmetry: Symmetry| queue_program_size(&problem, symmetry).unwrap();
    let (variables, constraints) = size(Symmetry::Off);
    for symmetry in [Symmetry::Batches, Symmetry::Tasks, Symmetry::Time] {
        // Two pairs of equal devices in each of two hosts, and the hosts.
        assert_eq!(size(symmetry), (variables, constraints + 5), "{symmetry}");
    }
    assert!(size(Symmetry::FirstUse).1 > constraints + 5);
}

/// Tests that the bound `mean-way` is tight on a chain whose replicas have to share memory.
#[test]
fn copies_are_worth_their_memory() {
    // Four tasks on three devices with space for six replicas: two tasks have two, and each input waits for the rest.
    let device = |id: usize| Device { id, name: format!("d{id}"), memory: Some(Bytes(20.0)), batch_sizes: vec![1, 2] };
    let bandwidth = (0..3).map(|from| (0..3).map(|to| (from != to).then_some(BytesPerMicro(1e9))).collect()).collect();
    let mut problem = Problem::new("chain", (0..3).map(device).collect(), bandwidth);
    problem.inputs = 2;
    let time: BTreeMap<u32, Vec<Option<Micros>>> =
        BTreeMap::from([(1, vec![Some(Micros(10.0)); 3]), (2, vec![Some(Micros(20.0)); 3])]);
    let node = |id: usize| Node {
        id,
        name: None,
        time: time.clone(),
        weight: Bytes(10.0),
        input: Bytes::ZERO,
        output: Some(Bytes::ZERO),
        scratch: Bytes::ZERO,
        pin: None,
        module: None,
    };
    problem.nodes = (0..4).map(node).collect();
    problem.edges = Some(vec![(0, 1), (1, 2), (2, 3)]);
    let plan = solve(&problem, Objective::Batch, "priced", &one_launch()).unwrap();
    assert_eq!((plan.value, plan.bound_by.as_str()), (Micros(60.0), "mean-way"));
    assert!(plan.bound > Micros(59.9) && plan.bound <= Micros(60.0), "{}", plan.bound);
}

/// Tests that GPT-3 has its published number of parameters, and is reproducible.
#[test]
fn gpt3_has_its_parameters() {
    let problem = gpt3(&Gpt3::default()).unwrap();
    assert_eq!(problem.nodes.len(), 96 * 5 + 2);
    assert_eq!(Problem::read(&problem.write()).as_ref(), Ok(&problem));
    assert_eq!(gpt3(&Gpt3::default()).unwrap().write(), problem.write());
    problem.check().unwrap();
    // The embedding table occurs twice; biases and norms are omitted.
    let head = problem.nodes.last().unwrap().weight;
    let parameters = (problem.nodes.iter().map(|node| node.weight).sum::<Bytes>() - head) / 2.0;
    assert!((174.5e9..174.7e9).contains(&parameters.0), "{parameters}");
    // A block of a full batch on an A100: 2 · 12 · d² · 320 operations at 312 TFLOPS, and five launches.
    let block = |size: u32| -> Micros { problem.nodes[1..6].iter().filter_map(|node| node.time[&size][0]).sum() };
    let products = 2.0 * 12.0 * 12288.0 * 12288.0 * 320.0 / 312e6;
    assert!((block(16).0 - products - 25.0).abs() < 25.0, "{}", block(16));
    // A small batch is bound by its parameters: 24 · d² bytes at 1935 GB/s.
    let parameters = 24.0 * 12288.0 * 12288.0 / 1.935e6;
    assert!((block(4).0 - parameters - 25.0).abs() < 25.0, "{}", block(4));
    for bad in [Gpt3 { blocks: 0, ..Gpt3::default() }, Gpt3 { tokens: 4096, ..Gpt3::default() }] {
        assert!(matches!(gpt3(&bad), Err(Error::Unsupported(_))));
    }
    assert!(matches!(gpt3(&Gpt3 { batch_sizes: vec![0], ..Gpt3::default() }), Err(Error::Problem(_))));
}

fn planned(problem: &Problem, algorithm: &str) -> Plan {
    let options = Options { limit: Some(Limit::Iterations(400)), ..one_launch() };
    let plan = solve(problem, Objective::Batch, algorithm, &options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(verify(problem, &plan), Ok(plan.value));
    plan
}

/// Plans twice, with equal results.
fn planned_again(problem: &Problem, algorithm: &str) -> Plan {
    let plan = planned(problem, algorithm);
    assert_eq!(planned(problem, algorithm).write(), plan.write());
    plan
}

/// Tests that a part of GPT-3 on two hosts gains from both of them, with a small gap.
#[test]
fn nodes_are_better_together() {
    let problem = gpt3(&Gpt3 { blocks: 24, machines: 2, ..Gpt3::default() }).unwrap();
    let (alone, together) = (planned(&problem, "replicated"), planned(&problem, "priced"));
    assert!(together.value < 0.92 * alone.value, "{} and {}", together.value, alone.value);
    assert!(together.gap < 0.1 && alone.bound <= together.value, "{}", together.gap);
}

/// Tests that repeated plans are those of parts in sequence, or of shares of the inputs.
#[test]
fn parts_and_shares() {
    let options = Gpt3 { blocks: 4, machines: 2, inputs: 8, batch_sizes: vec![4, 8], ..Gpt3::default() };
    let problem = gpt3(&options).unwrap();
    let Plan { schedule: divi_planner::plan::Schedule::Batch { batches, .. }, .. } =
        planned_again(&problem, "replicated")
    else {
        panic!("not a queue");
    };
    // The whole network fits on one host, so both hosts have all of it, and half of the inputs each.
    for batch in &batches {
        assert!(batch.inputs.iter().all(|input| (*input < 4) == (batch.device < 4)), "{batch:?}");
    }
    planned_again(&problem, "priced");
    let mut alone = problem.clone();
    alone.machines = None;
    assert!(planned(&alone, "replicated").value <= planned(&problem, "single").value);
}

/// Tests that inputs and outputs keep their devices, whichever host has the parts that read and compute them.
#[test]
fn inputs_and_outputs_are_on_no_part() {
    let mut problem = gpt3(&Gpt3 { blocks: 4, machines: 2, inputs: 8, ..Gpt3::default() }).unwrap();
    let (devices, inputs, tasks) = (problem.devices.len(), problem.inputs, problem.nodes.len());
    // Only such tasks have a batch of the whole queue.
    let sizes = &mut problem.devices[0].batch_sizes;
    sizes.extend((!sizes.contains(&inputs)).then_some(inputs));
    sizes.sort_unstable();
    let tensors = problem.all_tensors();
    let last =
        (0..tasks).find(|node| tensors.iter().all(|tensor| tensor.from != *node || tensor.to.is_empty())).unwrap();
    for (id, edge) in [(tasks, (tasks, 0)), (tasks + 1, (last, tasks + 1))] {
        let times: Vec<Option<Micros>> = (0..devices).map(|device| (device == 0).then_some(Micros::ZERO)).collect();
        let time = problem.devices[0].batch_sizes.iter().map(|size| (*size, times.clone())).collect();
        let like = problem.nodes[0].clone();
        let name = problem.nodes[0].name.as_ref().map(|_| format!("port {id}"));
        problem.nodes.push(Node { id, name, time, weight: Bytes::ZERO, pin: Some(0), ..like });
        problem.edges.as_mut().expect("gpt3 has edges").push(edge);
    }
    let plan = planned(&problem, "replicated");
    let places = plan.schedule.places(problem.nodes.len());
    assert_eq!(places[tasks + 1], [0]);
    assert!(places.iter().flatten().any(|device| *device >= 4), "only the first node is used");
}

/// Tests that invalid hosts are rejected.
#[test]
fn bad_machines() {
    let problem = gpt3(&Gpt3 { blocks: 1, machines: 2, ..Gpt3::default() }).unwrap();
    for (machines, message) in [
        (vec![vec![0, 1], vec![1, 2]], "machines[1]: duplicate device 1"),
        (vec![vec![0], vec![8]], "machines[1]: there is no device 8; there are 8"),
        (vec![vec![]], "machines[0]: has no devices"),
    ] {
        let mut problem = problem.clone();
        problem.machines = Some(machines);
        let error = divi_planner::check(&problem).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}
