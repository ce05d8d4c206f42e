//! Pipelines on devices, against enumeration of all pipelines.

#[path = "small/random_problem.rs"]
mod random_problem;

use divi_planner::PipelineCost;
use divi_planner::plan::{Limit, Proof, Schedule};
use divi_planner::problem::Tensor;
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Error, Objective, Options, Plan, Problem, Terms, solve, verify_under};
use random_problem::{Size, problem};

const SLACK: f64 = 1e-6;

/// Options of a request.
struct Asked {
    k: usize,
    cost: PipelineCost,
    shared: bool,
}

impl Asked {
    fn options(&self) -> Options {
        Options {
            limit: Some(Limit::Iterations(3000)),
            stages: Some(self.k as u32),
            pipeline_cost: Some(self.cost),
            shared_devices: self.shared,
            ..Options::default()
        }
    }
}

/// Returns the time of the slowest device or link of a placement; `None` if the placement is invalid.
fn value(problem: &Problem, device: &[usize], cost: PipelineCost) -> Option<Micros> {
    let devices = problem.devices.len();
    let (mut compute, mut moving) = (vec![Micros::ZERO; devices], vec![Micros::ZERO; devices]);
    let mut links = vec![vec![Micros::ZERO; devices]; devices];
    let mut held = vec![Bytes::ZERO; devices];
    let tensors: Vec<Tensor> = problem.all_tensors();
    for node in &problem.nodes {
        let on = device[node.id];
        if node.pin.is_some_and(|pin| pin != on) || !problem.devices[on].batch_sizes.contains(&1) {
            return None;
        }
        compute[on] += node.time.get(&1)?[on]?;
        held[on] += node.weight + node.input + problem.output_bytes()[node.id];
    }
    let fits = |on: usize| problem.devices[on].memory.is_none_or(|memory| held[on] <= memory);
    let together = problem.colocate.iter().flatten().all(|group| group.iter().all(|i| device[*i] == device[group[0]]));
    if !together || !(0..devices).all(fits) {
        return None;
    }
    for tensor in tensors {
        let home = device[tensor.from];
        let mut longest = Micros::ZERO;
        for to in (0..devices).filter(|to| *to != home && tensor.to.iter().any(|reader| device[*reader] == *to)) {
            let bandwidth = problem.bandwidth[home][to].unwrap_or(BytesPerMicro::INFINITY);
            if bandwidth == BytesPerMicro::ZERO {
                return None;
            }
            let latency = problem.link_latency.as_ref().and_then(|latency| latency[home][to]).unwrap_or_default();
            let way = tensor.bytes / bandwidth + latency;
            longest = longest.max(way);
            moving[to] += way;
            links[home][to] += way;
        }
        moving[home] += longest;
    }
    Some(match cost {
        PipelineCost::Serial => compute.iter().zip(moving).map(|(a, b)| *a + b).fold(Micros::ZERO, Micros::max),
        PipelineCost::Overlap => compute.into_iter().chain(links.into_iter().flatten()).fold(Micros::ZERO, Micros::max),
    })
}

/// Returns true if a node only provides an input, or takes an output.
fn is_port(problem: &Problem, node: usize) -> bool {
    let tensors = problem.all_tensors();
    let makes = tensors.iter().any(|tensor| tensor.from == node && !tensor.to.is_empty());
    let reads = tensors.iter().any(|tensor| tensor.to.contains(&node));
    !(makes && reads) && problem.nodes[node].time[&1].iter().flatten().all(|time| *time == Micros::ZERO)
}

/// Returns true if a placement can be divided into at most k stages, one per device unless devices are shared.
fn has_stages(problem: &Problem, device: &[usize], asked: &Asked) -> bool {
    let k = asked.k;
    let working: Vec<usize> = (0..device.len()).filter(|node| !is_port(problem, *node)).collect();
    let edges: Vec<(usize, usize)> = problem
        .all_tensors()
        .iter()
        .flat_map(|tensor| tensor.to.iter().map(|to| (tensor.from, *to)).collect::<Vec<_>>())
        .filter(|(from, to)| working.contains(from) && working.contains(to))
        .collect();
    (0..k.pow(working.len() as u32)).any(|code| {
        let place = |node: usize| working.iter().take_while(|other| **other != node).count();
        let stage = |node: usize| code / k.pow(place(node) as u32) % k;
        let pairs = || working.iter().flat_map(|one| working.iter().map(|other| (*one, *other)));
        edges.iter().all(|(from, to)| stage(*from) <= stage(*to))
            && pairs().all(|(one, other)| stage(one) != stage(other) || device[one] == device[other])
            && (asked.shared || pairs().all(|(one, other)| stage(one) == stage(other) || device[one] != device[other]))
    })
}

/// Returns the least value of all pipelines.
fn optimum(problem: &Problem, asked: &Asked) -> Option<Micros> {
    let (nodes, devices) = (problem.nodes.len(), problem.devices.len());
    let mut best: Option<Micros> = None;
    for code in 0..devices.pow(nodes as u32) {
        let device: Vec<usize> = (0..nodes).map(|node| code / devices.pow(node as u32) % devices).collect();
        let Some(value) = value(problem, &device, asked.cost) else { continue };
        if best.is_none_or(|best| value < best) && has_stages(problem, &device, asked) {
            best = Some(value);
        }
    }
    best
}

/// Turns some of a problem's first and last tasks into inputs and outputs, a few of them pinned.
fn add_ports(problem: &mut Problem, random: &mut Random) {
    for node in 0..problem.nodes.len() {
        let tensors = problem.all_tensors();
        let makes = tensors.iter().any(|tensor| tensor.from == node && !tensor.to.is_empty());
        let reads = tensors.iter().any(|tensor| tensor.to.contains(&node));
        if !(makes && reads) && random.chance(0.5) {
            let times = problem.nodes[node].time.values_mut();
            times.flatten().flatten().for_each(|time| *time = Micros::ZERO);
            let first = problem.nodes[node].time[&1].iter().position(Option::is_some);
            problem.nodes[node].pin = first.filter(|_| random.chance(0.5));
        }
    }
}

/// Generates a problem that is small enough to enumerate all pipelines, with options.
fn small(random: &mut Random, round: usize) -> (Problem, Asked) {
    let mut problem = problem(&Size { nodes: 5, devices: 3, inputs: 1 }, random);
    if random.chance(0.6) {
        add_ports(&mut problem, random);
    }
    if random.chance(0.2) && problem.nodes.len() > 1 {
        problem.colocate = Some(vec![random.sample(problem.nodes.len(), 2)]);
    }
    if random.chance(0.3) {
        // Equal devices, except for pins.
        for times in problem.nodes.iter_mut().flat_map(|node| node.time.values_mut()) {
            let first = times.iter().flatten().next().copied();
            times.fill(first);
        }
        problem.bandwidth.iter_mut().flatten().flatten().for_each(|bandwidth| *bandwidth = BytesPerMicro(2.0));
        problem.link_latency = None;
    }
    let asked = Asked { k: 1 + random.below(3), cost: PipelineCost::ALL[round % 2], shared: random.chance(0.3) };
    (problem, asked)
}

#[test]
fn small_pipelines_on_devices_are_mostly_the_best() {
    for (algorithm, rounds, share) in
        [("auto", 400, 99), ("anneal", 300, 90), ("milp", 200, 95), ("slicegraph", 200, 80)]
    {
        let mut random = Random::new(11);
        let (mut count, mut found, mut unverified) = (0, 0, 0);
        for round in 0..rounds {
            let (problem, asked) = small(&mut random, round);
            let solved = solve(&problem, Objective::Pipeline, algorithm, &asked.options());
            match (solved, optimum(&problem, &asked)) {
                (Ok(plan), Some(best)) => {
                    let read = Plan::read(&plan.write()).unwrap();
                    assert!(verify_under(&problem, &read, &Terms::stated_by(&read)).is_ok());
                    assert!(plan.value >= best * (1.0 - SLACK), "{} is below {best}\n{}", plan.value, problem.write());
                    assert!(plan.bound <= best * (1.0 + SLACK), "{} is above {best}\n{}", plan.bound, problem.write());
                    let verified = plan.bound().verified_value();
                    assert!(verified <= best * (1.0 + SLACK), "{verified} is above {best}\n{}", problem.write());
                    assert!(plan.warnings().is_empty(), "{:?}\n{}", plan.warnings(), problem.write());
                    unverified += usize::from(plan.proof == Proof::Solver);
                    count += 1;
                    found += usize::from(plan.value <= best * (1.0 + SLACK));
                }
                (Ok(plan), None) => panic!("{} though there is no plan\n{}", plan.value, problem.write()),
                (Err(Error::Problem(_) | Error::Infeasible(_)), Some(best)) => {
                    panic!("refused, though it takes {best}\n{}", problem.write());
                }
                (Err(Error::NotFound(_)), Some(_)) => count += 1,
                (Err(Error::Problem(_) | Error::Infeasible(_) | Error::NotFound(_)), _) => {}
                (Err(error), _) => panic!("{error}\n{}", problem.write()),
            }
        }
        assert_eq!(unverified, 0, "{algorithm}");
        assert!(found * 100 >= count * share && count * 2 > rounds, "{algorithm}: {found} of {count}");
    }
}

/// The number and order of a device's stages do not matter, only the placement.
#[test]
fn branch_and_bound_finds_the_best_placement_on_shared_devices() {
    let mut random = Random::new(14);
    let (mut planned, mut refused) = (0, 0);
    for round in 0..400 {
        let (problem, _) = small(&mut random, round);
        let (nodes, devices) = (problem.nodes.len(), problem.devices.len());
        let place = |code: usize| (0..nodes).map(|node| code / devices.pow(node as u32) % devices).collect::<Vec<_>>();
        let values =
            (0..devices.pow(nodes as u32)).filter_map(|code| value(&problem, &place(code), PipelineCost::Overlap));
        let asked = Options { pipeline_cost: Some(PipelineCost::Overlap), shared_devices: true, ..Options::default() };
        match (values.min_by(Micros::total_cmp), solve(&problem, Objective::Pipeline, "branch-and-bound", &asked)) {
            (Some(best), Ok(plan)) => {
                let read = Plan::read(&plan.write()).unwrap();
                assert!(verify_under(&problem, &read, &Terms::stated_by(&read)).is_ok());
                assert!((plan.value - best).abs() <= SLACK * best, "{} is not {best}\n{}", plan.value, problem.write());
                assert!((plan.bound - best).abs() <= SLACK * best, "{} is not {best}\n{}", plan.bound, problem.write());
                planned += 1;
            }
            (None, Err(Error::Infeasible(_) | Error::Problem(_))) => refused += 1,
            (best, plan) => panic!("{best:?}, but {plan:?}\n{}", problem.write()),
        }
    }
    assert!(planned > 200 && refused > 10, "{planned} and {refused}");
    let (problem, _) = small(&mut random, 0);
    let says =
        |options: &Options| solve(&problem, Objective::Pipeline, "branch-and-bound", options).unwrap_err().to_string();
    assert!(says(&Options::default()).contains("needs the pipeline cost overlap and shared devices"));
    let counted = Options { stages: Some(2), ..Options::default() };
    assert!(says(&counted).contains("has no limit on stages or split points"));
}

/// Two values on the first device, of which one is read twice: the last task depends on whether it has been transferred
/// already, though all loads are the same.
#[test]
fn transferred_values_count() {
    let text = r#"{"format":"divi-problem/1","name":"twice","L":1,
    "devices":[{"id":0,"name":"a","memory":null,"batch_sizes":[1]},{"id":1,"name":"b","memory":null,"batch_sizes":[1]}],
    "bandwidth":[[null,1],[1,null]],
    "nodes":[{"id":0,"time":{"1":[4,4]},"weight":0,"input":0,"output":12,"pin":0},
    {"id":1,"time":{"1":[4,4]},"weight":0,"input":0,"output":12,"pin":0},
    {"id":2,"time":{"1":[10,10]},"weight":0,"input":0,"output":0},
    {"id":3,"time":{"1":[10,10]},"weight":0,"input":0,"output":0},
    {"id":4,"time":{"1":[10,10]},"weight":0,"input":0,"output":0,"pin":1}],
    "edges":[[0,2],[0,4],[1,3]]}"#;
    let problem = Problem::read(text).unwrap();
    let asked = Options { pipeline_cost: Some(PipelineCost::Overlap), shared_devices: true, ..Options::default() };
    let plan = solve(&problem, Objective::Pipeline, "branch-and-bound", &asked).unwrap();
    assert_eq!((plan.value, plan.bound), (Micros(20.0), Micros(20.0)));
}

#[test]
fn every_bound_holds() {
    let mut random = Random::new(13);
    for round in 0..200 {
        let (problem, asked) = small(&mut random, round);
        let Some(best) = optimum(&problem, &asked) else { continue };
        for bound in divi_planner::api::bounds(&problem, Objective::Pipeline, &asked.options()).unwrap_or_default() {
            assert!(bound.value <= best * (1.0 + SLACK), "{bound:?} is above {best}\n{}", problem.write());
        }
    }
}

/// A chain of 3, 5 and 7 on equal devices, whose transfers of 5 overlap: each task has its own device, and the last takes
/// 7.
#[test]
fn links_overlap_one_by_one() {
    let text = r#"{"format":"divi-problem/1","name":"chain","L":1,
    "devices":[{"id":0,"name":"a","memory":null,"batch_sizes":[1]},{"id":1,"name":"b","memory":null,"batch_sizes":[1]},
    {"id":2,"name":"c","memory":null,"batch_sizes":[1]}],
    "bandwidth":[[null,1,1],[1,null,1],[1,1,null]],
    "nodes":[{"id":0,"time":{"1":[3,3,3]},"weight":0,"input":0,"output":5},
    {"id":1,"time":{"1":[5,5,5]},"weight":0,"input":0,"output":5},
    {"id":2,"time":{"1":[7,7,7]},"weight":0,"input":0,"output":0}],
    "edges":[[0,1],[1,2]]}"#;
    let problem = Problem::read(text).unwrap();
    let asked = Asked { k: 3, cost: PipelineCost::Overlap, shared: false };
    let plan = solve(&problem, Objective::Pipeline, "auto", &asked.options()).unwrap();
    assert_eq!((plan.value, plan.gap < SLACK), (Micros(7.0), true));
}

#[test]
fn plans_are_reproducible() {
    let mut random = Random::new(12);
    let mut planned = 0;
    for round in 0..10 {
        let problem = problem(&Size { nodes: 12, devices: 4, inputs: 1 }, &mut random);
        let asked = Asked { k: 5, cost: PipelineCost::Serial, shared: round % 2 == 0 };
        let plan = || solve(&problem, Objective::Pipeline, "auto", &asked.options());
        let planned_once = plan();
        assert_eq!(planned_once.as_ref().map(Plan::write), plan().as_ref().map(Plan::write));
        if let Ok(Plan { schedule: Schedule::Pipeline { stages, k, .. }, .. }) = planned_once {
            assert_eq!(stages.and_then(|stages| stages.block_device).map(|devices| devices.len()), Some(k as usize));
            planned += 1;
        }
    }
    assert!(planned > 4, "{planned}");
}

/// Three pairs of equal work on two equal devices without a link: each pair is on one device, and nothing is transferred.
#[test]
fn equal_devices_need_no_links() {
    let nodes: Vec<String> = (0..6)
        .map(|id| format!(r#"{{"id":{id},"time":{{"1":[5,5]}},"weight":0,"input":0,"output":{}}}"#, 1 - id % 2))
        .collect();
    let text = format!(
        r#"{{"format":"divi-problem/1","name":"islands","L":1,
    "devices":[{{"id":0,"name":"a","memory":null,"batch_sizes":[1]}},{{"id":1,"name":"b","memory":null,"batch_sizes":[1]}}],
    "bandwidth":[[null,0],[0,null]],"nodes":[{}],"edges":[[0,1],[2,3],[4,5]]}}"#,
        nodes.join(",")
    );
    let problem = Problem::read(&text).unwrap();
    for limit in [None, Some(Limit::Iterations(1000)), Some(Limit::Seconds(0.5))] {
        let plan = solve(&problem, Objective::Pipeline, "auto", &Options { limit, ..Options::default() }).unwrap();
        assert_eq!(plan.value, Micros(20.0));
        assert!(plan.bound <= Micros(20.0) && plan.warnings().is_empty());
    }
}
