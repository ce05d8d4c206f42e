//! Equal devices that take turns at a block (mtpp), against enumeration of all pipelines.

use std::collections::{BTreeMap, BTreeSet};

use divi_planner::api::bounds;
use divi_planner::plan::{Limit, Schedule, Turns};
use divi_planner::problem::{Device, Node, Pipeline, Tensor};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Objective, Options, PipelineCost, Plan, Problem, Terms, solve, verify_under};

const SLACK: f64 = 1e-9;
/// Number of problems, and of all of them if `DIVI_ALL` is set.
const SOME: usize = 60;
const ALL: usize = 400;

/// Generates a graph of few tasks, some of them co-located, some tensors large.
fn small(random: &mut Random) -> Problem {
    let nodes = 1 + random.below(5);
    let device = Device { id: 0, name: "cu".to_owned(), memory: None, batch_sizes: vec![1] };
    let mut problem = Problem::new("small", vec![device], vec![vec![None]]);
    let mut tensors = Vec::new();
    for id in 0..nodes {
        problem.nodes.push(Node {
            id,
            name: None,
            time: BTreeMap::from([(1, vec![Some(Micros(1.0))])]),
            weight: Bytes(random.below(6) as f64),
            input: Bytes::ZERO,
            output: None,
            scratch: Bytes::ZERO,
            pin: None,
            module: None,
        });
        for _ in 0..random.below(3) {
            let to: Vec<usize> = (id + 1..nodes).filter(|_| random.chance(0.4)).collect();
            tensors.push(Tensor { from: id, bytes: Bytes(random.below(8) as f64), to });
        }
    }
    problem.tensors = Some(tensors);
    if random.chance(0.3) && nodes > 1 {
        problem.colocate = Some(vec![random.sample(nodes, 2)]);
    }
    let work = (0..nodes).map(|_| Micros(random.below(12) as f64)).collect();
    let k = vec![1 + random.below(5) as u32];
    problem.mtpp = Some(Pipeline { work, k, bandwidth: BytesPerMicro(0.5), memory: None });
    problem
}

/// Returns the optimum, by enumeration of all assignments of tasks to blocks and of devices to blocks.
fn optimum(problem: &Problem, model: PipelineCost, most: u32) -> Micros {
    let view = problem.mtpp.as_ref().expect("a view");
    let (nodes, k) = (problem.nodes.len(), view.k[0] as usize);
    let tensors = problem.tensors.as_ref().expect("tensors");
    let blocks = k.min(nodes);
    let mut best = Micros::INFINITY;
    for code in 0..blocks.pow(nodes as u32) {
        let block: Vec<usize> = (0..nodes).map(|node| code / blocks.pow(node as u32) % blocks).collect();
        let forwards = tensors.iter().all(|tensor| tensor.to.iter().all(|to| block[tensor.from] <= block[*to]));
        let together = problem.colocate.iter().flatten().all(|group| block[group[0]] == block[group[1]]);
        if !forwards || !together {
            continue;
        }
        let used: BTreeSet<usize> = block.iter().copied().collect();
        let costs: Vec<Micros> = used
            .into_iter()
            .map(|of| {
                let crosses = |tensor: &&Tensor| {
                    let inside = tensor.to.iter().filter(|to| block[**to] == of).count();
                    if block[tensor.from] == of { inside < tensor.to.len() } else { inside > 0 }
                };
                let bytes: Bytes = tensors.iter().filter(crosses).map(|tensor| tensor.bytes).sum();
                let work: Micros = (0..nodes).filter(|node| block[*node] == of).map(|node| view.work[node]).sum();
                match model {
                    PipelineCost::Serial => work + bytes / view.bandwidth,
                    PipelineCost::Overlap => work.max(bytes / view.bandwidth),
                }
            })
            .collect();
        best = best.min(least(&costs, k, most));
    }
    best
}

/// Returns the least maximum of costs per device, by enumeration of the numbers of devices.
fn least(costs: &[Micros], devices: usize, most: u32) -> Micros {
    let Some((first, rest)) = costs.split_first() else { return Micros::ZERO };
    let counts = 1..=most.min((devices.saturating_sub(rest.len())) as u32);
    let each = counts.map(|count| (*first / f64::from(count)).max(least(rest, devices - count as usize, most)));
    each.fold(Micros::INFINITY, Micros::min)
}

#[test]
fn replicas_are_mostly_the_best() {
    let mut random = Random::new(31);
    let rounds = if std::env::var_os("DIVI_ALL").is_some() { ALL } else { SOME };
    let mut found = 0;
    for round in 0..rounds {
        let problem = small(&mut random);
        let (cost, most) = (PipelineCost::ALL[round % 2], 2 + random.below(2) as u32);
        let options = Options {
            limit: Some(Limit::Iterations(2000)),
            pipeline_cost: Some(cost),
            max_replicas: Some(most),
            ..Options::default()
        };
        let best = optimum(&problem, cost, most);
        let plan = solve(&problem, Objective::Pipeline, "auto", &options)
            .unwrap_or_else(|error| panic!("{error}\n{}", problem.write()));
        assert_eq!(plan.write(), solve(&problem, Objective::Pipeline, "auto", &options).unwrap().write());
        let read = Plan::read(&plan.write()).unwrap();
        for terms in [Terms::stated_by(&read), Terms::from(&options)] {
            let value = verify_under(&problem, &read, &terms).map_err(|error| error.to_string());
            assert!(value.as_ref().is_ok_and(|value| (*value - plan.value).abs() <= 1e-6 * *value), "{value:?}");
        }
        let value = plan.value;
        assert!(value >= best * (1.0 - SLACK), "{value} is below {best}\n{}", problem.write());
        for bound in bounds(&problem, Objective::Pipeline, &options).unwrap().into_iter().chain([plan.bound()]) {
            assert!(bound.value <= best * (1.0 + SLACK), "{bound:?} is above {best}\n{}", problem.write());
        }
        let single = Options { max_replicas: None, ..options };
        let single = solve(&problem, Objective::Pipeline, "auto", &single).unwrap();
        assert!(value <= single.value * (1.0 + SLACK), "{value} is above {}\n{}", single.value, problem.write());
        found += usize::from(value <= best * (1.0 + SLACK));
    }
    eprintln!("{found} of {rounds} optimal");
    assert!(found * 100 >= rounds * 95, "{found} of {rounds}");
}

/// Weights of 10 bytes in a memory of 4: a block streams 6 bytes for each of its inputs, at 0.5 bytes per microsecond.
#[test]
fn devices_that_take_turns_stream_for_their_own_inputs() {
    let mut problem = small(&mut Random::new(1));
    problem.nodes.truncate(1);
    problem.nodes[0].weight = Bytes(10.0);
    (problem.tensors, problem.colocate) = (Some(Vec::new()), None);
    let view =
        Pipeline { work: vec![Micros(6.0)], k: vec![3], bandwidth: BytesPerMicro(0.5), memory: Some(Bytes(4.0)) };
    problem.mtpp = Some(view);
    let options = Options { max_replicas: Some(2), ..Options::default() };
    let plan = solve(&problem, Objective::Pipeline, "auto", &options).unwrap();
    assert_eq!(plan.value, Micros(9.0));
    let Schedule::BatchedPipeline { turns: Turns::Equal { replicas }, .. } = &plan.schedule else { panic!() };
    assert_eq!(replicas, &[2]);
}
