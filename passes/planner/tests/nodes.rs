//! Clusters: nodes of devices, GPT-3 on them, one node's plan repeated, and equal devices and nodes in integer programs.

#[path = "small/brute_force.rs"]
mod brute_force;

use std::collections::BTreeMap;

use divi_papers::generate::{Gpt3, gpt3};
use divi_planner::plan::{Batch, Limit};
use divi_planner::problem::{Device, Node};
use divi_planner::random::Random;
use divi_planner::{
    Error, Instance, Objective, Options, Plan, Problem, Symmetry, bounds, queue_program_size, solve, verify,
};

const SLACK: f64 = 1e-9;

/// A few tasks on two equal nodes of two devices, and a queue of two inputs; often memory binds.
fn cluster(random: &mut Random) -> Problem {
    let twins = random.chance(0.5);
    let memory = [None, Some(12.0), Some(20.0)][random.below(3)];
    let device = |id: usize| Device { id, name: format!("d{id}"), memory, batch_sizes: vec![1, 2] };
    let (inside, between) = (Some(4.0), Some([4.0, 1.0, 0.5][random.below(3)]));
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
                let time = |device: usize| Some((one[device % 2] * (1.0 + more * f64::from(size - 1))).round());
                (0..4).map(time).collect()
            };
            let time: BTreeMap<u32, Vec<Option<f64>>> = [1, 2].into_iter().map(|size| (size, row(size))).collect();
            let (weight, output) = (random.below(9) as f64, random.below(5) as f64);
            Node {
                id,
                name: None,
                time,
                weight,
                input: 1.0,
                output: Some(output),
                scratch: 0.0,
                pin: None,
                module: None,
            }
        })
        .collect();
    let pairs = (0..nodes).flat_map(|to| (0..to).map(move |from| (from, to)));
    problem.edges = Some(pairs.filter(|_| random.chance(0.7)).collect());
    problem
}

/// Eq. (6), once more.
fn fits(problem: &Problem, batches: &[Batch]) -> bool {
    let bytes = |batch: &Batch| {
        let node = &problem.nodes[batch.node];
        node.weight + (node.input + node.output.unwrap_or(0.0)) * batch.inputs.len() as f64
    };
    problem.devices.iter().all(|device| {
        let held: f64 = batches.iter().filter(|batch| batch.device == device.id).map(bytes).sum();
        device.memory.is_none_or(|memory| held <= memory)
    })
}

/// Tests that no criterion takes the optimum away, no bound is above it, and no plan below.
#[test]
fn clusters_by_trying_everything() {
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
            let plan = solve(&problem, Objective::Batch, "milp", &Options { symmetry, ..Options::default() }).unwrap();
            assert!((plan.value - optimum).abs() <= SLACK * optimum, "{symmetry}: {optimum}\n{}", plan.write());
            assert!((plan.bound - optimum).abs() <= SLACK * optimum, "{symmetry}: {optimum}\n{}", plan.write());
        }
        for algorithm in ["priced", "replicated", "auto"] {
            let options = Options { limit: Some(Limit::Iterations(200)), ..Options::default() };
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
        // Two pairs of equal devices in each of two nodes, and the nodes.
        assert_eq!(size(symmetry), (variables, constraints + 5), "{symmetry}");
    }
    assert!(size(Symmetry::FirstUse).1 > constraints + 5);
}

/// Tests that the bound of mean ways is reached where it says all: a chain whose copies have to share memory.
#[test]
fn copies_are_worth_their_memory() {
    // Four tasks on three devices with room for six copies: two tasks have two, and each input waits for the rest.
    let device = |id: usize| Device { id, name: format!("d{id}"), memory: Some(20.0), batch_sizes: vec![1, 2] };
    let bandwidth = (0..3).map(|from| (0..3).map(|to| (from != to).then_some(1e9)).collect()).collect();
    let mut problem = Problem::new("chain", (0..3).map(device).collect(), bandwidth);
    problem.inputs = 2;
    let time: BTreeMap<u32, Vec<Option<f64>>> = BTreeMap::from([(1, vec![Some(10.0); 3]), (2, vec![Some(20.0); 3])]);
    let node = |id: usize| Node {
        id,
        name: None,
        time: time.clone(),
        weight: 10.0,
        input: 0.0,
        output: Some(0.0),
        scratch: 0.0,
        pin: None,
        module: None,
    };
    problem.nodes = (0..4).map(node).collect();
    problem.edges = Some(vec![(0, 1), (1, 2), (2, 3)]);
    let plan = solve(&problem, Objective::Batch, "priced", &Options::default()).unwrap();
    assert_eq!((plan.value, plan.bound_by.as_str()), (60.0, "mean-way"));
    assert!(plan.bound > 59.9 && plan.bound <= 60.0, "{}", plan.bound);
}

/// Tests that GPT-3 has the parameters that it is known for, and is the same every time.
#[test]
fn gpt3_is_itself() {
    let problem = gpt3(&Gpt3::default()).unwrap();
    assert_eq!(problem.nodes.len(), 96 * 5 + 2);
    assert_eq!(Problem::read(&problem.write()).as_ref(), Ok(&problem));
    assert_eq!(gpt3(&Gpt3::default()).unwrap().write(), problem.write());
    problem.check().unwrap();
    // The words' table is there twice, biases and norms are left out.
    let head = problem.nodes.last().unwrap().weight;
    let parameters = (problem.nodes.iter().map(|node| node.weight).sum::<f64>() - head) / 2.0;
    assert!((174.5e9..174.7e9).contains(&parameters), "{parameters}");
    // A block of a full batch on an A100: 2 · 12 · d² · 320 operations at 312 TFLOPS, and five launches.
    let block = |size: u32| -> f64 { problem.nodes[1..6].iter().filter_map(|node| node.time[&size][0]).sum() };
    let products = 2.0 * 12.0 * 12288.0 * 12288.0 * 320.0 / 312e6;
    assert!((block(16) - products - 25.0).abs() < 25.0, "{}", block(16));
    // A small batch waits for its parameters: 24 · d² bytes at 1935 GB/s.
    let parameters = 24.0 * 12288.0 * 12288.0 / 1.935e6;
    assert!((block(4) - parameters - 25.0).abs() < 25.0, "{}", block(4));
    for bad in [Gpt3 { blocks: 0, ..Gpt3::default() }, Gpt3 { tokens: 4096, ..Gpt3::default() }] {
        assert!(matches!(gpt3(&bad), Err(Error::Unsupported(_))));
    }
    assert!(matches!(gpt3(&Gpt3 { batch_sizes: vec![0], ..Gpt3::default() }), Err(Error::Problem(_))));
}

fn planned(problem: &Problem, algorithm: &str) -> Plan {
    let options = Options { limit: Some(Limit::Iterations(400)), ..Options::default() };
    let plan = solve(problem, Objective::Batch, algorithm, &options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(verify(problem, &plan), Ok(plan.value));
    plan
}

/// The same, twice.
fn planned_again(problem: &Problem, algorithm: &str) -> Plan {
    let plan = planned(problem, algorithm);
    assert_eq!(planned(problem, algorithm).write(), plan.write());
    plan
}

/// Tests that a part of GPT-3 on two nodes gains from both of them, with a bound that is near.
#[test]
fn nodes_are_better_together() {
    let problem = gpt3(&Gpt3 { blocks: 24, machines: 2, ..Gpt3::default() }).unwrap();
    let (alone, together) = (planned(&problem, "replicated"), planned(&problem, "priced"));
    assert!(together.value < 0.92 * alone.value, "{} and {}", together.value, alone.value);
    assert!(together.gap < 0.1 && alone.bound <= together.value, "{}", together.gap);
}

/// Tests that plans that are repeated are those of parts, one after the other, or of shares of the inputs.
#[test]
fn parts_and_shares() {
    let options = Gpt3 { blocks: 4, machines: 2, inputs: 8, batch_sizes: vec![4, 8], ..Gpt3::default() };
    let problem = gpt3(&options).unwrap();
    let Plan { schedule: divi_planner::plan::Schedule::Batch { batches, .. }, .. } =
        planned_again(&problem, "replicated")
    else {
        panic!("not a queue");
    };
    // All of it fits on one node, so both nodes have all of it, and half of the inputs each.
    for batch in &batches {
        assert!(batch.inputs.iter().all(|input| (*input < 4) == (batch.device < 4)), "{batch:?}");
    }
    planned_again(&problem, "priced");
    let mut alone = problem.clone();
    alone.machines = None;
    assert!(planned(&alone, "replicated").value <= planned(&problem, "single").value);
}

/// Tests that inputs and outputs stay where they are, whatever node has the parts that read and make them.
#[test]
fn inputs_and_outputs_are_on_no_part() {
    let mut problem = gpt3(&Gpt3 { blocks: 4, machines: 2, inputs: 8, ..Gpt3::default() }).unwrap();
    let (devices, inputs, tasks) = (problem.devices.len(), problem.inputs, problem.nodes.len());
    // The queue as a whole is a batch that only such tasks take.
    let sizes = &mut problem.devices[0].batch_sizes;
    sizes.extend((!sizes.contains(&inputs)).then_some(inputs));
    sizes.sort_unstable();
    let tensors = problem.all_tensors();
    let last =
        (0..tasks).find(|node| tensors.iter().all(|tensor| tensor.from != *node || tensor.to.is_empty())).unwrap();
    for (id, edge) in [(tasks, (tasks, 0)), (tasks + 1, (last, tasks + 1))] {
        let times: Vec<Option<f64>> = (0..devices).map(|device| (device == 0).then_some(0.0)).collect();
        let time = problem.devices[0].batch_sizes.iter().map(|size| (*size, times.clone())).collect();
        let like = problem.nodes[0].clone();
        let name = problem.nodes[0].name.as_ref().map(|_| format!("port {id}"));
        problem.nodes.push(Node { id, name, time, weight: 0.0, pin: Some(0), ..like });
        problem.edges.as_mut().expect("gpt3 has edges").push(edge);
    }
    let plan = planned(&problem, "replicated");
    let places = plan.schedule.places(problem.nodes.len());
    assert_eq!(places[tasks + 1], [0]);
    assert!(places.iter().flatten().any(|device| *device >= 4), "only the first node is used");
}

/// Tests what nodes must not say.
#[test]
fn bad_machines() {
    let problem = gpt3(&Gpt3 { blocks: 1, machines: 2, ..Gpt3::default() }).unwrap();
    for (machines, message) in [
        (vec![vec![0, 1], vec![1, 2]], "machines[1]: device 1 is there twice"),
        (vec![vec![0], vec![8]], "machines[1]: there is no device 8; there are 8"),
        (vec![vec![]], "machines[0]: has no devices"),
    ] {
        let mut problem = problem.clone();
        problem.machines = Some(machines);
        let error = divi_planner::check(&problem).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}
