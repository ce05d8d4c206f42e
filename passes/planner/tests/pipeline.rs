//! Pipelines on equal devices: valid plans, no bound above the optimum and no plan below it, mostly the optimum of an
//! enumeration, and reproducible.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use divi_papers::generate::{Kind, Regal, regal};
use divi_planner::plan::{Bound, Limit, Proof, Schedule};
use divi_planner::problem::{Device, Node, Pipeline, Tensor};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Error, Objective, Options, Plan, Problem, Terms, solve, verify_under};
use divi_planner::{OrderSearch, PipelineCost};

const SLACK: f64 = 1e-9;
const SEARCHES: [&str; 4] = ["slicegraph", "anneal", "milp", "auto"];

fn limited(iterations: u64) -> Options {
    Options { limit: Some(Limit::Iterations(iterations)), ..Options::default() }
}

fn pipeline(problem: &Problem, algorithm: &str, options: &Options) -> Plan {
    let plan = solve(problem, Objective::Pipeline, algorithm, options);
    let plan = plan.unwrap_or_else(|error| panic!("{algorithm}: {error}\n{}", problem.write()));
    // The verifier also accepts the plan after writing and reading.
    let read = Plan::read(&plan.write()).expect("a plan");
    assert_eq!(
        verify_under(problem, &read, &Terms::stated_by(&read)).map_err(|error| error.to_string()),
        Ok(plan.value)
    );
    plan
}

/// Generates a graph of few tasks, some of them co-located, some tensors large.
fn small(random: &mut Random, memory: bool) -> Problem {
    let nodes = 2 + random.below(if memory { 4 } else { 6 });
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
            scratch: Bytes(random.below(4) as f64),
            pin: None,
            module: None,
        });
        for _ in 0..random.below(3) {
            let to: Vec<usize> = (id + 1..nodes).filter(|_| random.chance(0.4)).collect();
            tensors.push(Tensor { from: id, bytes: Bytes(random.below(8) as f64), to });
        }
    }
    problem.tensors = Some(tensors);
    if random.chance(0.3) {
        problem.colocate = Some(vec![random.sample(nodes, 2)]);
    }
    let work = (0..nodes).map(|_| Micros(random.below(12) as f64)).collect();
    let memory = memory.then(|| Bytes(random.below(25) as f64));
    problem.mtpp = Some(Pipeline { work, k: vec![1 + random.below(4) as u32], bandwidth: BytesPerMicro(0.5), memory });
    problem
}

/// Returns the cost of a set of tasks by eq. (3); with memory, the minimum over all orders.
fn cost(problem: &Problem, set: &BTreeSet<usize>, cost: PipelineCost) -> Micros {
    let view = problem.mtpp.as_ref().expect("a view");
    let tensors = problem.tensors.as_ref().expect("tensors");
    let enters = |t: &&Tensor| !set.contains(&t.from) && t.to.iter().any(|to| set.contains(to));
    let leaves = |t: &&Tensor| set.contains(&t.from) && t.to.iter().any(|to| !set.contains(to));
    let bytes: Bytes = tensors.iter().filter(|t| enters(t) || leaves(t)).map(|t| t.bytes).sum();
    let work: Micros = set.iter().map(|task| view.work[*task]).sum();
    let overflow = view.memory.map_or(Micros::ZERO, |memory| {
        let weights: Bytes = set.iter().map(|task| problem.nodes[*task].weight).sum();
        let peak = least_peak(problem, set, &mut Vec::new());
        (weights + peak - memory).max(Bytes::ZERO) / view.bandwidth
    });
    match cost {
        PipelineCost::Serial => work + overflow + bytes / view.bandwidth,
        PipelineCost::Overlap => Micros::max(work + overflow, bytes / view.bandwidth),
    }
}

/// Returns the least peak memory of every order of a set that starts with `run`.
fn least_peak(problem: &Problem, set: &BTreeSet<usize>, run: &mut Vec<usize>) -> Bytes {
    let tensors = problem.tensors.as_ref().expect("tensors");
    if run.len() == set.len() {
        return Bytes::ZERO;
    }
    let mut least = Bytes::INFINITY;
    for &task in set.iter().filter(|task| !run.contains(task)).collect::<Vec<_>>() {
        let is_ready = tensors.iter().all(|t| !t.to.contains(&task) || !set.contains(&t.from) || run.contains(&t.from));
        if !is_ready {
            continue;
        }
        let to_come = |other: &usize| set.contains(other) && !run.contains(other);
        let alive = |t: &&Tensor| {
            let inside = set.contains(&t.from);
            let is_there = !inside || run.contains(&t.from) || t.from == task;
            let out = inside && t.to.iter().any(|to| !set.contains(to));
            is_there && (out || t.from == task || t.to.iter().any(to_come))
        };
        let now = tensors.iter().filter(alive).map(|t| t.bytes).sum::<Bytes>() + problem.nodes[task].scratch;
        run.push(task);
        least = least.min(now.max(least_peak(problem, set, run)));
        run.pop();
    }
    least
}

/// Returns the optimum, by enumeration of all assignments of tasks to blocks.
fn optimum(problem: &Problem, model: PipelineCost) -> Micros {
    let view = problem.mtpp.as_ref().expect("a view");
    let (nodes, k) = (problem.nodes.len(), view.k[0] as usize);
    let mut known: BTreeMap<BTreeSet<usize>, Micros> = BTreeMap::new();
    let mut best = Micros::INFINITY;
    for code in 0..k.pow(nodes as u32) {
        let block: Vec<usize> = (0..nodes).map(|node| code / k.pow(node as u32) % k).collect();
        // Any acyclic quotient can be numbered so that tensors only go to higher numbers.
        let forwards = problem.tensors.iter().flatten().all(|t| t.to.iter().all(|to| block[t.from] <= block[*to]));
        let together = problem.colocate.iter().flatten().all(|group| block[group[0]] == block[group[1]]);
        if !forwards || !together {
            continue;
        }
        let mut value = Micros::ZERO;
        for of in 0..k {
            let set: BTreeSet<usize> = (0..nodes).filter(|node| block[*node] == of).collect();
            if !set.is_empty() && value < best {
                let cost = *known.entry(set.clone()).or_insert_with(|| cost(problem, &set, model));
                value = value.max(cost);
            }
        }
        best = best.min(value);
    }
    best
}

#[test]
fn small_pipelines_are_mostly_the_best() {
    let mut random = Random::new(7);
    let (mut count, mut found, mut unverified) = (0, [0; SEARCHES.len()], 0);
    for round in 0..120 {
        let memory = round % 4 == 3;
        let problem = small(&mut random, memory);
        let model = PipelineCost::ALL[round % 2];
        let best = optimum(&problem, model);
        count += usize::from(!memory);
        for (index, search) in SEARCHES.into_iter().enumerate() {
            let limit = if search == "milp" { 20_000 } else { 1000 };
            let plan = pipeline(&problem, search, &Options { pipeline_cost: Some(model), ..limited(limit) });
            assert_eq!(plan.pipeline_cost.as_deref(), Some(model.name()));
            let (value, bound) = (plan.value, plan.bound);
            assert!(value >= best * (1.0 - SLACK), "{search}: {value} is below {best}\n{}", problem.write());
            assert!(bound <= best * (1.0 + SLACK), "{search}: {bound} is above {best}\n{}", problem.write());
            let verified = plan.bound().verified_value();
            assert!(verified <= best * (1.0 + SLACK), "{search}: {verified} is above {best}\n{}", problem.write());
            if search == "milp" && !memory {
                unverified += usize::from(plan.proof == Proof::Solver);
            }
            found[index] += usize::from(!memory && value <= best * (1.0 + SLACK));
            // An integer program that ends has proven its plan optimal, unless memory matters.
            let proven = search == "milp" && !memory;
            assert!(!proven || bound >= best * (1.0 - 1e-6), "{search}: {bound}, not {best}\n{}", problem.write());
        }
        let options = Options { pipeline_cost: Some(model), ..limited(1000) };
        for bound in divi_planner::api::bounds(&problem, Objective::Pipeline, &options).expect("bounds") {
            let verified = bound.verified_value();
            assert!(verified <= best * (1.0 + SLACK), "{verified} is above {best}\n{}", problem.write());
            let Bound { value, by, .. } = bound;
            assert!(value <= best * (1.0 + SLACK), "{by}: {value} is above {best}\n{}", problem.write());
        }
    }
    assert_eq!(unverified, 0);
    for (search, found) in SEARCHES.into_iter().zip(found) {
        assert!(found * 100 >= count * 97, "{search}: {found} of {count}");
    }
}

#[test]
fn every_order_search_is_reproducible() {
    let problem = regal(&Regal { kind: Kind::ErdosRenyi, nodes: 40, seed: 3 }).unwrap();
    let first = pipeline(&problem, "slicegraph", &Options { stages: Some(4), ..limited(0) });
    for order in OrderSearch::ALL {
        let options = Options { order: Some(order), stages: Some(4), seed: 5, ..limited(300) };
        let plan = pipeline(&problem, "slicegraph", &options);
        assert_eq!(plan.write(), pipeline(&problem, "slicegraph", &options).write());
        if matches!(order, OrderSearch::Brkga | OrderSearch::Random) {
            assert!(plan.value < first.value, "{order}: {} after {}", plan.value, first.value);
        }
    }
    for search in ["anneal", "milp", "auto"] {
        let options = Options { stages: Some(4), seed: 5, ..limited(1500) };
        let plan = pipeline(&problem, search, &options);
        assert_eq!(plan.write(), pipeline(&problem, search, &options).write());
        assert!(plan.value <= first.value);
    }
}

#[test]
fn moves_reach_what_orders_do_not() {
    let problem = regal(&Regal { kind: Kind::BarabasiAlbert, nodes: 60, seed: 2 }).unwrap();
    let orders = pipeline(&problem, "slicegraph", &Options { stages: Some(4), ..limited(1000) });
    let moves = pipeline(&problem, "anneal", &Options { stages: Some(4), ..limited(100_000) });
    assert!(moves.value < orders.value, "{} is no better than {}", moves.value, orders.value);
}

#[test]
fn known_optima_are_found_and_proven() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/problems/msr");
    for (name, optimum) in [("layer_bert24", 17_790.0), ("layer_gnmt", 32_910.0), ("op_bert_l-3", 27_186.0)] {
        let text = std::fs::read_to_string(folder.join(format!("msr_tp_{name}_inference.json"))).unwrap();
        let problem = Problem::read(&text).unwrap();
        let plan = pipeline(&problem, "auto", &limited(40_000));
        assert_eq!((plan.value, plan.bound), (Micros(optimum), Micros(optimum)), "{name}");
    }
}

#[test]
fn overflow_is_proven() {
    // Parameters of 10 and scratch of 2 in a memory of 4: a task alone streams 8 bytes at 0.5 bytes per microsecond.
    let mut problem = regal(&Regal { nodes: 6, ..Regal::default() }).unwrap();
    problem.edges = Some(Vec::new());
    for node in &mut problem.nodes {
        (node.weight, node.scratch, node.output) = (Bytes(10.0), Bytes(2.0), Some(Bytes::ZERO));
    }
    let (work, bandwidth, memory) = (vec![Micros(1.0); 6], BytesPerMicro(0.5), Some(Bytes(4.0)));
    problem.mtpp = Some(Pipeline { work, k: vec![3], bandwidth, memory });
    let plan = pipeline(&problem, "milp", &limited(20_000));
    let best = Micros(2.0) + Bytes(20.0 + 2.0 - 4.0) / bandwidth;
    assert!(
        (plan.value - best).abs() < Micros(SLACK) && plan.bound > best * (1.0 - 1e-6),
        "{} {}",
        plan.value,
        plan.bound
    );
}

#[test]
fn invalid_requests_are_rejected() {
    let mut problem = regal(&Regal { nodes: 10, ..Regal::default() }).unwrap();
    let says = |problem: &Problem, options: &Options, expected: &str| {
        let error = solve(problem, Objective::Pipeline, "slicegraph", options).expect_err("no plan");
        assert!(matches!(error, Error::Unsupported(_)) && error.to_string().contains(expected), "{error}");
    };
    says(&problem, &Options::default(), "k = [2, 4, 8, 16]; choose one with --k");
    says(&problem, &Options { stages: Some(0), ..limited(1) }, "at least one stage, not 0");
    // More stages than tasks are allowed, and left empty.
    let plan = pipeline(&problem, "auto", &Options { stages: Some(99), ..limited(100) });
    assert!(matches!(plan.schedule, Schedule::Pipeline { k: 10, .. }));
    // Without the view, the times of the devices count.
    problem.mtpp = None;
    says(&problem, &Options { stages: Some(0), ..limited(1) }, "at least one stage, not 0");
    assert!(solve(&problem, Objective::Pipeline, "slicegraph", &limited(1)).is_ok());
}

/// Tasks without work that overflow memory, and a time limit that the clock cannot represent.
#[test]
fn extreme_numbers_are_planned() {
    let mut problem = small(&mut Random::new(5), true);
    let view = problem.mtpp.as_mut().unwrap();
    view.work.iter_mut().for_each(|work| *work = Micros::ZERO);
    for limit in [None, Some(Limit::Iterations(1000)), Some(Limit::Seconds(1.0))] {
        pipeline(&problem, "auto", &Options { limit, stages: Some(4), ..Options::default() });
    }
    let timeless = Options { limit: Some(Limit::Seconds(1e20)), stages: Some(4), ..Options::default() };
    pipeline(&small(&mut Random::new(6), false), "auto", &timeless);
}
