//! Stages of plans for random problems of every kind; their times are recomputed here from the stages alone.

#[path = "../../planner/tests/small/batches.rs"]
mod batches;
#[path = "../../planner/tests/small/random_problem.rs"]
mod random_problem;

use std::collections::{BTreeMap, BTreeSet};

use divi_planner::plan::{Limit, Schedule};
use divi_planner::problem::Tensor;
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Error, Objective, Options, PipelineCost, Plan, Problem, Terms, solve, verify_under};
use divi_stages::{Source, StageOptions, Staged, TurnStages, in_stage_order, retime, stages};
use random_problem::{Size, problem};

const SLACK: f64 = 1e-9;
const ALGORITHMS: [&str; 5] = ["single", "met", "greedy", "heft", "anneal"];

fn near(a: Micros, b: Micros) -> bool {
    (a - b).abs() <= SLACK * a.abs().max(b.abs())
}

/// Turns some of the first and last tasks into model inputs and outputs.
fn add_ports(problem: &mut Problem, random: &mut Random) {
    let tensors = problem.all_tensors();
    let host = random.below(problem.devices.len());
    for node in 0..problem.nodes.len() {
        let is_end = ends(&tensors, node);
        if (is_end.0 || is_end.1) && random.chance(0.6) {
            let node = &mut problem.nodes[node];
            for times in node.time.values_mut() {
                times.iter_mut().enumerate().for_each(|(on, time)| *time = (on == host).then_some(Micros::ZERO));
            }
            node.pin = Some(host);
        }
    }
}

/// Returns whether a node has no predecessors, and whether it has no successors.
fn ends(tensors: &[Tensor], node: usize) -> (bool, bool) {
    let reads = tensors.iter().any(|tensor| tensor.to.contains(&node));
    let makes = tensors.iter().any(|tensor| tensor.from == node && !tensor.to.is_empty());
    (!reads, !makes)
}

/// Returns the model inputs and the model outputs.
fn ports(problem: &Problem) -> (Vec<usize>, Vec<usize>) {
    let tensors = problem.all_tensors();
    let mut found = (Vec::new(), Vec::new());
    for node in &problem.nodes {
        let (first, last) = ends(&tensors, node.id);
        let free = node.time.values().flatten().flatten().all(|time| *time == Micros::ZERO);
        if free && node.pin.is_some() && (first || last) {
            if first { found.0.push(node.id) } else { found.1.push(node.id) }
        }
    }
    found
}

/// Generates a problem and a plan; `None` if there is no plan.
fn planned(random: &mut Random, objective: Objective, algorithm: &str, nodes: usize) -> Option<(Problem, Plan)> {
    let inputs = if objective == Objective::Batch { 4 } else { 1 };
    let mut problem = problem(&Size { nodes, devices: 3, inputs }, random);
    if random.chance(0.7) {
        add_ports(&mut problem, random);
    }
    let shared_devices = objective == Objective::Pipeline && random.chance(0.3);
    let limit = Some(Limit::Iterations(if objective == Objective::Pipeline { 300 } else { 200 }));
    let options = Options { limit, shared_devices, seed: random.next_u64() >> 40, ..Options::default() };
    match solve(&problem, objective, algorithm, &options) {
        Ok(plan) => Some((problem, plan)),
        Err(Error::Bug(error)) => panic!("{error}"),
        Err(_) => None,
    }
}

fn moving(problem: &Problem, from: usize, to: usize, bytes: Bytes) -> Micros {
    if from == to {
        return Micros::ZERO;
    }
    let latency = problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default();
    bytes / problem.bandwidth[from][to].unwrap_or(BytesPerMicro::INFINITY) + latency
}

/// Checks all invariants of stages, recomputed from the problem and the stages.
fn check(problem: &Problem, plan: &Plan, staged: &Staged, min_tasks: usize) {
    let context = || format!("{min_tasks}\n{}\n{}\n{staged:#?}", problem.write(), plan.write());
    let value = verify_under(problem, &staged.plan, &Terms::stated_by(&staged.plan))
        .unwrap_or_else(|error| panic!("{error}\n{}", context()));
    assert!(near(value, staged.plan.value) || value == staged.plan.value);
    assert_eq!(staged.plan.bound, plan.bound);
    if staged.merged == 0 {
        assert!(value <= plan.value * (1.0 + SLACK), "{value} {}\n{}", plan.value, context());
    }
    assert_eq!(staged.small, staged.stages.iter().filter(|stage| stage.tasks.len() < min_tasks).count());

    // Each task runs each input in exactly one stage, on that stage's device; ports are in none.
    let queued = staged.inputs;
    let own = plan.inputs.unwrap_or(if plan.objective == Objective::Batch { problem.inputs } else { 1 });
    assert!(queued == own || matches!(plan.schedule, Schedule::BatchedPipeline { .. }));
    let (inputs, outputs) = ports(problem);
    let mut stage_of: BTreeMap<(usize, u32), usize> = BTreeMap::new();
    for (index, stage) in staged.stages.iter().enumerate() {
        assert!(!stage.tasks.is_empty() && stage.inputs.is_sorted());
        for (task, input) in stage.tasks.iter().flat_map(|task| stage.inputs.iter().map(move |input| (*task, *input))) {
            assert!(stage_of.insert((task, input), index).is_none(), "{}", context());
        }
    }
    let is_port = |node: &usize| inputs.contains(node) || outputs.contains(node);
    let tasks: Vec<usize> = (0..problem.nodes.len()).filter(|node| !is_port(node)).collect();
    assert_eq!(stage_of.len(), tasks.len() * queued as usize, "{}", context());
    assert!(tasks.iter().all(|task| stage_of.contains_key(&(*task, 0))));

    // Each stage starts as early as its operands and its device allow, in the order of the list.
    let tensors = problem.all_tensors();
    let device = |node: usize, input: u32| match stage_of.get(&(node, input)) {
        Some(stage) => staged.stages[*stage].device,
        None => problem.nodes[node].pin.expect("ports are pinned"),
    };
    let planned = |node: usize| match &staged.plan.schedule {
        Schedule::Latency { start, .. } => start[node],
        Schedule::Batch { batches, .. } => {
            batches.iter().find(|batch| batch.node == node).map_or(Micros::ZERO, |b| b.start)
        }
        _ => Micros::ZERO,
    };
    let mut free = vec![Micros::ZERO; problem.devices.len()];
    let mut crossing = 0;
    let mut wanted: BTreeMap<(usize, usize, Option<usize>), BTreeSet<u32>> = BTreeMap::new();
    let mut arrivals: BTreeMap<usize, Micros> = BTreeMap::new();
    let readers = staged
        .stages
        .iter()
        .enumerate()
        .flat_map(|(index, stage)| stage.tasks.iter().map(move |task| (Some(index), *task, stage.inputs.clone())));
    let takers = outputs.iter().map(|node| (None, *node, (0..queued).collect::<Vec<u32>>()));
    for (index, task, own) in readers.chain(takers) {
        let to = device(task, own[0]);
        for (tensor, read) in tensors.iter().enumerate().filter(|(_, tensor)| tensor.to.contains(&task)) {
            let mut sources: BTreeMap<Option<usize>, Vec<u32>> = BTreeMap::new();
            for input in &own {
                sources.entry(stage_of.get(&(read.from, *input)).copied()).or_default().push(*input);
            }
            for (source, shared) in sources.into_iter().filter(|(source, _)| source.is_none() || *source != index) {
                assert!(index.is_none() || source < index, "a stage reads a result of a later stage\n{}", context());
                let from = device(read.from, shared[0]);
                let done = source.map_or_else(|| planned(read.from), |source| staged.stages[source].end);
                let arrival = done + moving(problem, from, to, read.bytes * shared.len() as f64);
                let latest = arrivals.entry(index.unwrap_or(usize::MAX - task)).or_default();
                *latest = latest.max(arrival);
                if from != to {
                    crossing += 1;
                    wanted.entry((tensor, to, source)).or_default().extend(shared);
                }
            }
        }
    }
    let as_planned = |index: usize| planned(staged.stages[index].tasks[0]);
    for (index, stage) in staged.stages.iter().enumerate() {
        let earliest = arrivals.get(&index).copied().unwrap_or_default().max(free[stage.device]);
        let waits = plan.objective == Objective::Latency && near(stage.start, as_planned(index));
        assert!(near(earliest, stage.start) || (waits && stage.start > earliest), "{index} {earliest}\n{}", context());
        let size = stage.inputs.len() as u32;
        let work: Micros =
            stage.tasks.iter().map(|task| problem.nodes[*task].time[&size][stage.device].expect("it runs there")).sum();
        assert!((stage.end - stage.start - work).abs() < Micros(1e-6), "{index}\n{}", context());
        free[stage.device] = stage.end;
    }
    if plan.objective != Objective::Pipeline {
        let last = free.iter().copied().chain(outputs.iter().map(|node| arrivals[&(usize::MAX - node)]));
        assert!(value + Micros(1e-6) >= last.fold(Micros::ZERO, Micros::max), "{}", context());
        assert!(staged.stages.is_sorted_by(|a, b| a.start <= b.start));
    }

    // One transfer for each tensor, device and input.
    let mut moved: BTreeMap<(usize, usize, Option<usize>), BTreeSet<u32>> = BTreeMap::new();
    for step in &staged.moves {
        let source = match step.source {
            Source::Stage(stage) => Some(stage),
            Source::Input(node) => (node == tensors[step.tensor].from).then_some(None).expect("the input's own tensor"),
        };
        let known = moved.entry((step.tensor, step.to, source)).or_default();
        assert!(step.inputs.iter().all(|input| known.insert(*input)), "{}", context());
        assert!(!step.inputs.is_empty() && step.from != step.to);
        let bytes = tensors[step.tensor].bytes * step.inputs.len() as f64;
        assert!((step.end - step.start - moving(problem, step.from, step.to, bytes)).abs() < Micros(1e-6));
        if let Source::Stage(stage) = step.source {
            assert_eq!((step.start, step.from), (staged.stages[stage].end, staged.stages[stage].device));
        }
    }
    assert_eq!(moved, wanted, "{}", context());
    assert_eq!(staged.elided + staged.moves.len(), crossing);
}

#[test]
fn requests_of_pipelines_of_batches_satisfy_the_invariants() {
    let mut random = Random::new(31);
    let (mut several, mut replicas) = (0, 0);
    for round in 0..80 {
        let problem = batches::small(&mut random, [3, 4, 6][round % 3]);
        let options = Options {
            limit: Some(Limit::Iterations(20)),
            max_batch: Some([2, 4][round % 2]),
            max_replicas: Some(2),
            shared_devices: random.chance(0.3),
            pipeline_cost: random.chance(0.5).then_some(PipelineCost::Overlap),
            ..Options::default()
        };
        let Ok(plan) = solve(&problem, Objective::Pipeline, "auto", &options) else { continue };
        let (in_order, turns) = in_stage_order(&problem, plan.clone(), None).unwrap();
        assert_eq!(TurnStages::of(&problem, &in_order, None).unwrap(), turns, "stages are already in order");
        let staged = stages(&problem, &plan, &StageOptions::default()).unwrap();
        check(&problem, &plan, &staged, 0);
        // Partitioning again changes nothing.
        let again = stages(&problem, &staged.plan, &StageOptions::default()).unwrap();
        assert_eq!((&again.stages, &again.plan), (&staged.stages, &staged.plan));
        let turns = TurnStages::of(&problem, &staged.plan, None).unwrap().expect("it is a pipeline of batches");
        several += usize::from(turns.batch.iter().any(|batch| *batch > 1));
        replicas += usize::from(turns.devices.iter().any(|devices| devices.len() > 1));
        let launches: usize =
            turns.order.iter().zip(&turns.batch).map(|(_, batch)| (staged.inputs / batch) as usize).sum();
        assert_eq!(launches, staged.stages.len());
    }
    assert!(several > 10 && replicas > 5, "{several} with batches, {replicas} with replicas");
}

#[test]
fn long_requests_are_rejected() {
    let batch = vec![64, 65];
    let stages = TurnStages { stage: vec![], batch, devices: vec![vec![0], vec![1]], order: vec![vec![], vec![]] };
    let error = stages.request_inputs().unwrap_err().to_string();
    assert!(
        error.contains("repeat only after more than 4096 inputs (stage 1 takes batches of 65 on 1 device)"),
        "{error}"
    );
}

#[test]
fn stages_satisfy_their_invariants() {
    let mut random = Random::new(21);
    let mut count = BTreeMap::new();
    for round in 0..700 {
        let objective = if round % 2 == 0 { Objective::Latency } else { Objective::Batch };
        let algorithm = ALGORITHMS[round / 2 % ALGORITHMS.len()];
        let nodes = [6, 12, 25][round % 3];
        let Some((problem, plan)) = planned(&mut random, objective, algorithm, nodes) else { continue };
        for min_tasks in [0, 1, 2, 4, 100] {
            let options = StageOptions { min_tasks, ..StageOptions::default() };
            let staged = stages(&problem, &plan, &options).unwrap_or_else(|e| panic!("{e}\n{}", plan.write()));
            assert!(min_tasks > 1 || staged.merged == 0);
            check(&problem, &plan, &staged, min_tasks);
            *count.entry((objective.name(), min_tasks, staged.merged > 0)).or_insert(0) += 1;
        }
    }
    for objective in ["latency", "batch"] {
        assert!(count[&(objective, 4, true)] > 70, "{count:?}");
    }
}

#[test]
fn blocks_of_pipelines_become_stages() {
    let mut random = Random::new(22);
    let mut count = 0;
    for round in 0..400 {
        let algorithm = ["anneal", "slicegraph"][round % 2];
        let Some((problem, plan)) = planned(&mut random, Objective::Pipeline, algorithm, 9) else { continue };
        for min_tasks in [1, 3, 100] {
            let options = StageOptions { min_tasks, ..StageOptions::default() };
            let staged = stages(&problem, &plan, &options).unwrap_or_else(|e| panic!("{e}\n{}", plan.write()));
            if min_tasks == 1 {
                assert!(near(staged.plan.value, plan.value) || staged.plan.value == plan.value);
            }
            check(&problem, &plan, &staged, min_tasks);
            count += usize::from(staged.stages.len() > 1);
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn without_constraints_no_small_stage_is_left() {
    let mut random = Random::new(23);
    let mut merged = 0;
    for round in 0..600 {
        let mut problem = problem(&Size { nodes: 20, devices: 3, inputs: 1 }, &mut random);
        problem.colocate = None;
        for device in &mut problem.devices {
            device.memory = None;
        }
        for bandwidth in problem.bandwidth.iter_mut().flatten().flatten() {
            *bandwidth = bandwidth.max(BytesPerMicro(0.5));
        }
        for node in &mut problem.nodes {
            node.pin = None;
            for time in node.time.values_mut().flatten() {
                *time = Some(time.map_or(Micros(7.0), |time| time + Micros(1.0)));
            }
        }
        let plan = solve(&problem, Objective::Latency, ALGORITHMS[round % 4], &Options::default()).unwrap();
        let options = StageOptions { min_tasks: 3, ..StageOptions::default() };
        let staged = stages(&problem, &plan, &options).unwrap();
        check(&problem, &plan, &staged, 3);
        merged += staged.merged;
        let devices: Vec<usize> = staged.stages.iter().map(|stage| stage.device).collect();
        for stage in staged.stages.iter().filter(|stage| stage.tasks.len() < 3) {
            let joined = problem.all_tensors().iter().any(|tensor| {
                let inside = |node: &usize| stage.tasks.contains(node);
                tensor.to.iter().any(|to| inside(to) != inside(&tensor.from))
            });
            assert!(!joined && devices.iter().filter(|device| **device == stage.device).count() == 1, "{staged:#?}");
        }
    }
    assert!(merged > 500, "{merged}");
}

#[test]
fn stale_starts_are_recomputed() {
    let mut random = Random::new(24);
    let (mut count, mut refused) = (0, 0);
    for round in 0..1500 {
        let objective = if round % 2 == 0 { Objective::Latency } else { Objective::Batch };
        let Some((problem, plan)) = planned(&mut random, objective, ALGORITHMS[round % 4], 14) else { continue };
        let fresh = retime(&problem, &plan).unwrap();
        assert!(fresh.value <= plan.value * (1.0 + SLACK));
        assert_eq!(verify_under(&problem, &fresh, &Terms::stated_by(&fresh)), Ok(fresh.value));
        assert_eq!(retime(&problem, &fresh).unwrap(), fresh);

        let mut stale = plan.clone();
        let mut spoil = |start: &mut Micros| *start = Micros(random.below(30) as f64);
        match &mut stale.schedule {
            Schedule::Latency { start, .. } => start.iter_mut().for_each(&mut spoil),
            Schedule::Batch { batches, .. } => batches.iter_mut().for_each(|batch| spoil(&mut batch.start)),
            _ => unreachable!("only latency and batch are planned"),
        }
        match retime(&problem, &stale) {
            Ok(fresh) => {
                assert_eq!(verify_under(&problem, &fresh, &Terms::stated_by(&fresh)), Ok(fresh.value));
                check(&problem, &fresh, &stages(&problem, &stale, &StageOptions::default()).unwrap(), 0);
                count += 1;
            }
            Err(Error::Plan(findings)) => {
                assert!(findings.iter().all(|finding| finding.message.contains("short")), "{findings:?}");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(count > 800 && refused < 100, "{count} {refused}");
}

/// Two devices: a, b and d on the first, c on the second; the results of a and c are transferred.
fn diamond() -> (Problem, Plan) {
    let text = r#"{"format":"divi-problem/1","name":"diamond","L":1,
    "devices":[{"id":0,"name":"a","memory":null,"batch_sizes":[1]},{"id":1,"name":"b","memory":null,"batch_sizes":[1]}],
    "bandwidth":[[null,1],[1,null]],
    "nodes":[{"id":0,"time":{"1":[3,9]},"weight":0,"input":0,"output":2},
    {"id":1,"time":{"1":[10,30]},"weight":0,"input":0,"output":2},
    {"id":2,"time":{"1":[9,5]},"weight":0,"input":0,"output":2},
    {"id":3,"time":{"1":[1,5]},"weight":0,"input":0,"output":0}],
    "edges":[[0,1],[0,2],[1,3],[2,3]]}"#;
    let problem = Problem::read(text).expect("is well-formed");
    let plan = solve(&problem, Objective::Latency, "heft", &Options::default()).expect("has a plan");
    assert!(matches!(&plan.schedule, Schedule::Latency { device, .. } if *device == [0, 0, 1, 0]));
    (problem, plan)
}

#[test]
fn transfers_cut_a_device() {
    let (problem, plan) = diamond();
    let staged = stages(&problem, &plan, &StageOptions::default()).unwrap();
    let tasks: Vec<Vec<usize>> = staged.stages.iter().map(|stage| stage.tasks.clone()).collect();
    assert_eq!(tasks, [vec![0], vec![1], vec![2], vec![3]]);
    let times: Vec<(Micros, Micros)> = staged.moves.iter().map(|step| (step.start, step.end)).collect();
    assert_eq!(times, [(3.0, 5.0), (10.0, 12.0)].map(|(start, end)| (Micros(start), Micros(end))));
    assert_eq!(staged.plan.value, Micros(14.0));
}

#[test]
fn small_stages_are_merged() {
    let (problem, plan) = diamond();
    let staged = stages(&problem, &plan, &StageOptions { min_tasks: 2, ports: None }).unwrap();
    let sizes: Vec<usize> = staged.stages.iter().map(|stage| stage.tasks.len()).collect();
    // All tasks on the first device take 23; any two stages of two tasks take longer.
    assert_eq!((sizes, staged.plan.value, staged.merged, staged.small), (vec![4], Micros(23.0), 3, 0));
}

/// Tasks that read a few earlier ones, on random devices.
fn scattered(nodes: usize) -> (Problem, Plan) {
    let mut random = Random::new(25);
    let devices = 4;
    let node = |id: usize, random: &mut Random| {
        let times: Vec<String> = (0..devices).map(|_| format!("{}", 1 + random.below(20))).collect();
        let times = times.join(",");
        format!(r#"{{"id":{id},"time":{{"1":[{times}]}},"weight":0,"input":0,"output":{}}}"#, random.below(50))
    };
    let list: Vec<String> = (0..nodes).map(|id| node(id, &mut random)).collect();
    let mut edges = Vec::new();
    for to in 1..nodes {
        let mut from: Vec<usize> = (0..2).map(|_| to - 1 - random.below(to.min(12))).collect();
        from.dedup();
        edges.extend(from.into_iter().map(|from| format!("[{from},{to}]")));
    }
    let machines: Vec<String> =
        (0..devices).map(|id| format!(r#"{{"id":{id},"name":"d{id}","batch_sizes":[1]}}"#)).collect();
    let row = |from: usize| {
        let row: Vec<&str> = (0..devices).map(|to| if from == to { "null" } else { "10" }).collect();
        format!("[{}]", row.join(","))
    };
    let rows: Vec<String> = (0..devices).map(row).collect();
    let text = format!(
        r#"{{"format":"divi-problem/1","name":"scattered","devices":[{}],"bandwidth":[{}],"nodes":[{}],"edges":[{}]}}"#,
        machines.join(","),
        rows.join(","),
        list.join(","),
        edges.join(",")
    );
    let problem = Problem::read(&text).expect("is well-formed");
    let mut plan = solve(&problem, Objective::Latency, "single", &Options::default()).expect("has a plan");
    if let Schedule::Latency { device, .. } = &mut plan.schedule {
        device.iter_mut().for_each(|device| *device = random.below(devices));
    }
    (problem.clone(), retime(&problem, &plan).expect("starts are repaired"))
}

#[test]
fn many_small_stages_are_merged_quickly() {
    let (problem, plan) = scattered(if cfg!(debug_assertions) { 600 } else { 5000 });
    let many = stages(&problem, &plan, &StageOptions::default()).unwrap();
    assert!(many.stages.len() > 300);
    let staged = stages(&problem, &plan, &StageOptions { min_tasks: 20, ports: None }).unwrap();
    check(&problem, &plan, &staged, 20);
    assert_eq!(staged.small, 0);
    assert_eq!(staged, stages(&problem, &plan, &StageOptions { min_tasks: 20, ports: None }).unwrap());
}

#[test]
fn equal_devices_have_no_stages() {
    let (mut problem, _) = diamond();
    problem.mtpp = Some(divi_planner::problem::Pipeline {
        work: vec![Micros(1.0); 4],
        k: vec![2],
        bandwidth: BytesPerMicro(1.0),
        memory: None,
    });
    let plan = solve(&problem, Objective::Pipeline, "slicegraph", &Options::default()).unwrap();
    assert!(retime(&problem, &plan).is_err());
    let options = Options { max_replicas: Some(2), limit: Some(Limit::Iterations(20)), ..Options::default() };
    let with_turns = solve(&problem, Objective::Pipeline, "auto", &options).unwrap();
    assert!(matches!(with_turns.schedule, Schedule::BatchedPipeline { .. }));
    for plan in [plan, with_turns] {
        let error = stages(&problem, &plan, &StageOptions::default()).unwrap_err().to_string();
        assert!(error.contains("equal devices"), "{error}");
    }
}
