//! Buses: plans of small problems against enumeration, with exclusive and with shared transfers.

#[path = "small/buses.rs"]
mod buses;
#[path = "small/flows.rs"]
mod flows;
#[path = "small/random_problem.rs"]
mod random_problem;
#[path = "small/refusal.rs"]
mod refusal;

use std::collections::BTreeMap;

use buses::{exclusive, shared, tensors};
use divi_planner::plan::{Limit, Schedule};
use divi_planner::problem::Contention;
use divi_planner::random::Random;
use divi_planner::units::{BytesPerMicro, Micros};
use divi_planner::{
    Error, Objective, Options, Plan, Problem, Terms, algorithms, solve, timed_anew, verify, verify_under,
};
use flows::permutations;
use random_problem::{Size, problem};
use refusal::{refuses, refuses_under};

const SLACK: f64 = 1e-9;

fn options(iterations: u64, contention: Contention) -> Options {
    Options { limit: Some(Limit::Iterations(iterations)), contention: Some(contention), ..Options::default() }
}

/// Generates a problem without limits on memory, whose links share few buses.
fn with_buses(size: &Size, random: &mut Random) -> Problem {
    let mut problem = problem(size, random);
    problem.devices.iter_mut().for_each(|device| device.memory = None);
    let devices = problem.devices.len();
    let name = |random: &mut Random| ["a", "a", "b"].get(random.below(4)).map(|name| (*name).to_owned());
    problem.bus = Some((0..devices).map(|_| (0..devices).map(|_| name(random)).collect()).collect());
    problem
}

struct Tally {
    solved: usize,
    best: usize,
}

/// `solve` verifies every plan; none is below the optimum, and no bound above it.
fn examine(size: &Size, contention: Contention, count: usize, seed: u64) -> Tally {
    divi_papers::register();
    let mut random = Random::new(seed);
    let mut tally = Tally { solved: 0, best: 0 };
    let mut examined = 0;
    while examined < count {
        let problem = with_buses(size, &mut random);
        let best = if contention == Contention::Shared { shared(&problem) } else { exclusive(&problem) };
        let objective = if problem.inputs > 1 { Objective::Batch } else { Objective::Latency };
        let Some(best) = best else { continue };
        examined += 1;
        for algorithm in algorithms().iter().filter(|algorithm| algorithm.solver(objective).is_some()) {
            if ["milp-paper", "milp", "evolve", "sortinghat"].contains(&algorithm.name) && examined % 8 != 0 {
                continue;
            }
            let plan = match solve(&problem, objective, algorithm.name, &options(1500, contention)) {
                Ok(plan) => plan,
                Err(Error::NotFound(_)) => continue,
                Err(error) => panic!("{}: {error}\n{}", algorithm.name, problem.write()),
            };
            assert_eq!(plan.contention, Some(contention));
            assert!(
                plan.value >= best * (1.0 - SLACK),
                "{}: {} < {best}\n{}",
                algorithm.name,
                plan.value,
                problem.write()
            );
            assert!(
                plan.bound <= best * (1.0 + SLACK),
                "{}: {} > {best}\n{}",
                algorithm.name,
                plan.bound,
                problem.write()
            );
            assert_eq!(Plan::read(&plan.write()).as_ref(), Ok(&plan));
            if algorithm.name == "auto" {
                tally.solved += 1;
                tally.best += usize::from(plan.value <= best * (1.0 + SLACK));
            }
        }
    }
    tally
}

#[test]
fn transfers_that_exclude_each_other() {
    let tally = examine(&Size { nodes: 4, devices: 3, inputs: 1 }, Contention::Exclusive, 40, 1);
    assert!(tally.solved > 35 && tally.best * 100 >= tally.solved * 95, "{} of {}", tally.best, tally.solved);
}

#[test]
fn transfers_that_share() {
    let tally = examine(&Size { nodes: 4, devices: 2, inputs: 1 }, Contention::Shared, 30, 2);
    assert!(tally.solved > 25 && tally.best * 100 >= tally.solved * 95, "{} of {}", tally.best, tally.solved);
}

#[test]
fn queues() {
    let tally = examine(&Size { nodes: 2, devices: 2, inputs: 2 }, Contention::Exclusive, 30, 3);
    assert!(tally.solved > 25 && tally.best * 100 >= tally.solved * 80, "{} of {}", tally.best, tally.solved);
    examine(&Size { nodes: 2, devices: 2, inputs: 2 }, Contention::Shared, 15, 4);
}

/// Returns the bottleneck of a pipeline, with devices in some order.
fn pipeline_value(problem: &Problem, device: &[usize], overlap: bool) -> Micros {
    let devices = problem.devices.len();
    let (mut work, mut moving) = (vec![Micros::ZERO; devices], vec![Micros::ZERO; devices]);
    let (mut links, mut buses) = (BTreeMap::<(usize, usize), Micros>::new(), BTreeMap::<String, Micros>::new());
    for node in &problem.nodes {
        work[device[node.id]] += node.time[&1][device[node.id]].unwrap_or(Micros::INFINITY);
    }
    for (maker, bytes, readers) in tensors(problem) {
        let home = device[maker];
        let mut to: Vec<usize> = readers.iter().map(|reader| device[*reader]).filter(|on| *on != home).collect();
        to.sort_unstable();
        to.dedup();
        let mut longest = Micros::ZERO;
        for to in to {
            let latency = problem.link_latency.as_ref().and_then(|rows| rows[home][to]).unwrap_or_default();
            let time = bytes / problem.bandwidth[home][to].unwrap_or(BytesPerMicro::INFINITY) + latency;
            longest = longest.max(time);
            moving[to] += time;
            *links.entry((home, to)).or_default() += time;
            if let Some(name) = problem.bus.as_ref().and_then(|rows| rows[home][to].clone()) {
                *buses.entry(name).or_default() += time;
            }
        }
        moving[home] += longest;
    }
    let of_device = |on: usize| if overlap { work[on] } else { work[on] + moving[on] };
    let links = links.into_values().filter(|_| overlap);
    (0..devices).map(of_device).chain(links).chain(buses.into_values()).fold(Micros::ZERO, Micros::max)
}

#[test]
fn pipelines() {
    let mut random = Random::new(5);
    let mut solved = 0;
    while solved < 12 {
        let mut problem = with_buses(&Size { nodes: 5, devices: 3, inputs: 1 }, &mut random);
        // Ports have rules of their own.
        for node in &mut problem.nodes {
            node.time.values_mut().flatten().flatten().for_each(|time| *time += Micros(6.0));
            node.pin = None;
            node.output = node.output.map(|bytes| bytes * 3.0);
        }
        problem.colocate = None;
        problem.bus.iter_mut().flatten().flatten().for_each(|name| *name = Some("a".to_owned()));
        problem
            .bandwidth
            .iter_mut()
            .flatten()
            .for_each(|link| *link = link.map(|bandwidth| bandwidth.max(BytesPerMicro(0.5))));
        let (nodes, devices) = (problem.nodes.len(), problem.devices.len());
        let overlap = random.chance(0.5);
        let edges: Vec<(usize, usize)> = tensors(&problem)
            .iter()
            .flat_map(|(from, _, to)| to.iter().map(|to| (*from, *to)).collect::<Vec<_>>())
            .collect();
        let mut best = Micros::INFINITY;
        for choice in 0..devices.pow(nodes as u32) {
            let device: Vec<usize> = (0..nodes).map(|node| choice / devices.pow(node as u32) % devices).collect();
            let in_turn = |turns: &Vec<usize>| {
                let place = |on: usize| turns.iter().position(|turn| *turn == on);
                edges.iter().all(|(from, to)| place(device[*from]) <= place(device[*to]))
            };
            if permutations(devices).iter().any(in_turn) {
                best = best.min(pipeline_value(&problem, &device, overlap));
            }
        }
        if best.is_infinite() {
            continue;
        }
        for contention in [Contention::Exclusive, Contention::Shared] {
            for algorithm in ["auto", "milp"] {
                let cost = if overlap { "overlap" } else { "serial" };
                let options = Options { pipeline_cost: cost.parse().ok(), ..options(20_000, contention) };
                let plan = solve(&problem, Objective::Pipeline, algorithm, &options).unwrap();
                assert!((plan.value - best).abs() <= SLACK * best, "{algorithm}: {} is {best}", plan.value);
                assert!(plan.bound <= best * (1.0 + SLACK));
            }
        }
        solved += 1;
    }
}

/// Three stages in a chain whose tensors use one bus: 8 and 8, more than any stage or link takes.
#[test]
fn pipelines_on_one_bus() {
    let problem = Problem::read(
        r#"{"format":"divi-problem/1","name":"row",
        "devices":[{"id":0,"name":"a"},{"id":1,"name":"b"},{"id":2,"name":"c"}],
        "bandwidth":[[null,1,1],[1,null,1],[1,1,null]],"bus":[[null,"x","x"],["x",null,"x"],["x","x",null]],
        "nodes":[
        {"id":0,"time":{"1":[10,null,null]},"weight":0,"input":0,"output":8},
        {"id":1,"time":{"1":[null,10,null]},"weight":0,"input":8,"output":8},
        {"id":2,"time":{"1":[null,null,10]},"weight":0,"input":8,"output":0}],
        "edges":[[0,1],[1,2]]}"#,
    )
    .expect("a problem");
    let solved = |contention: Contention| {
        let options = Options { pipeline_cost: "overlap".parse().ok(), ..options(1000, contention) };
        solve(&problem, Objective::Pipeline, "auto", &options).unwrap()
    };
    assert_eq!(solved(Contention::Off).value, Micros(10.0));
    for contention in [Contention::Exclusive, Contention::Shared] {
        let plan = solved(contention);
        assert_eq!((plan.value, plan.contention), (Micros(16.0), Some(contention)));
        let mut off = plan.clone();
        off.contention = None;
        refuses_under(&problem, &off, &Terms::stated_by(&off), "bottleneck: is 16, but the plan takes 10");
    }
}

/// An option without effect is rejected.
#[test]
fn edge_networks_have_no_buses() {
    let chain = divi_papers::generate::chain(&divi_papers::generate::Chain::default()).expect("a problem");
    let solved = |contention| solve(&chain, Objective::Pipeline, "auto", &options(10, contention));
    assert_eq!(solved(Contention::Off).unwrap().contention, None);
    let message = solved(Contention::Shared).unwrap_err().to_string();
    assert!(message.contains("contention shared is for links between devices"), "{message}");
}

/// A fork of two tensors over the same bus.
fn fork() -> Problem {
    Problem::read(
        r#"{"format":"divi-problem/1","name":"fork","contention":"exclusive",
        "devices":[{"id":0,"name":"cpu"},{"id":1,"name":"gpu0"},{"id":2,"name":"gpu1"}],
        "bandwidth":[[null,1,1],[1,null,1],[1,1,null]],"bus":[[null,"pcie","pcie"],["up","x","x"],["up","x","x"]],
        "nodes":[
        {"id":0,"time":{"1":[10,null,null]},"weight":0,"input":0,"output":20},
        {"id":1,"time":{"1":[null,30,null]},"weight":0,"input":20,"output":1},
        {"id":2,"time":{"1":[null,null,30]},"weight":0,"input":20,"output":1}],
        "edges":[[0,1],[0,2]]}"#,
    )
    .expect("a problem")
}

#[test]
fn transfers_on_one_bus() {
    let problem = fork();
    let plan = solve(&problem, Objective::Latency, "heft", &Options::default()).unwrap();
    // One transfer after the other: 10 + 20 + 20 + 30.
    assert_eq!((plan.value, plan.transfers.len(), plan.contention), (Micros(80.0), 2, Some(Contention::Exclusive)));
    let mut both = plan.clone();
    both.transfers[1].start = Micros(20.0);
    both.transfers[1].end = Micros(40.0);
    refuses(
        &problem,
        &both,
        "bus pcie: the transfer of tensor 0 to device 2 (gpu1) starts at 20, while the transfer of tensor 0 to \
         device 1 (gpu0) is on the bus until 30: 10 µs too early",
    );
    let mut early = plan.clone();
    (early.transfers[0].start, early.transfers[0].end) = (Micros(9.0), Micros(29.0));
    refuses(&problem, &early, "transfers[0]: starts at 9, but its tensor is there at 10: 1 µs too early");
    let mut short = plan.clone();
    short.transfers[1].start = Micros(31.0);
    refuses(&problem, &short, "transfers[1]: goes from 31 to 50, but takes 20 µs");
    let mut missing = plan.clone();
    missing.transfers.pop();
    refuses(
        &problem,
        &missing,
        "transfers: tensor 0 has to go from device 0 (cpu) to device 2 (gpu1), and is not listed",
    );
    let mut twice = plan.clone();
    twice.transfers.push(twice.transfers[0].clone());
    refuses(&problem, &twice, "transfers[2]: tensor 0 goes from device 0 (cpu) to device 1 (gpu0) twice");
    let mut unread = plan.clone();
    unread.transfers[0].tensor = 7;
    refuses(&problem, &unread, "transfers[0]: no task on device 1 (gpu0) reads tensor 7 from device 0 (cpu)");
    let mut late = plan.clone();
    let Schedule::Latency { start, .. } = &mut late.schedule else { panic!("a latency plan") };
    start[2] = Micros(49.0);
    refuses(&problem, &late, "node 2: starts at 49 on device 2 (gpu1), but node 0, which it reads, ends at 10");
    for hostile in [f64::NAN, f64::INFINITY, -1.0] {
        let mut plan = plan.clone();
        plan.transfers[0].start = Micros(hostile);
        assert!(verify(&problem, &plan).is_err());
    }
    // Without contention both transfers run at the same time.
    let free = solve(&problem, Objective::Latency, "heft", &options(0, Contention::Off)).unwrap();
    assert_eq!((free.value, free.contention), (Micros(60.0), Some(Contention::Off)));
}

/// Value of a plan on buses that it was planned without.
#[test]
fn plans_are_retimed() {
    let problem = fork();
    let mut free = problem.clone();
    free.contention = Contention::Off;
    let plan = solve(&free, Objective::Latency, "auto", &options(100, Contention::Off)).unwrap();
    let anew = timed_anew(&problem, &plan).unwrap();
    assert_eq!((plan.value, anew.value, anew.transfers.len()), (Micros(60.0), Micros(80.0), 2));
    assert_eq!(verify(&problem, &anew), Ok(Micros(80.0)));
    assert!(timed_anew(&free, &plan).unwrap_err().to_string().contains("contention or a cold start"));
    let mut other = plan.clone();
    other.schedule = Schedule::Latency { device: vec![0, 7, 2], start: vec![Micros::ZERO; 3], makespan: Micros(1.0) };
    assert!(timed_anew(&problem, &other).unwrap_err().to_string().contains("other nodes, devices or inputs"));
    // Readers precede their producers.
    other.schedule = Schedule::Latency {
        device: vec![0, 1, 2],
        start: [9.0, 0.0, 0.0].map(Micros).to_vec(),
        makespan: Micros(39.0),
    };
    assert!(timed_anew(&problem, &other).is_err());
}

#[test]
fn transfers_that_share_a_bus() {
    let problem = fork();
    let plan = solve(&problem, Objective::Latency, "auto", &options(100, Contention::Shared)).unwrap();
    assert_eq!(plan.value, Micros(80.0));
    let shared = Terms::stated_by(&plan);
    // Both at half the rate: each ends at 50, with the same makespan.
    let mut halves = plan.clone();
    for transfer in &mut halves.transfers {
        (transfer.start, transfer.end) = (Micros(10.0), Micros(50.0));
    }
    let Schedule::Latency { start, .. } = &mut halves.schedule else { panic!("a latency plan") };
    (start[1], start[2]) = (Micros(50.0), Micros(50.0));
    assert_eq!(verify_under(&problem, &halves, &shared), Ok(Micros(80.0)));
    halves.transfers[0].end = Micros(40.0);
    assert_eq!(verify_under(&problem, &halves, &shared), Ok(Micros(80.0)));
    halves.transfers[1].end = Micros(49.0);
    refuses_under(
        &problem,
        &halves,
        &shared,
        "bus pcie: the flow between 10 and 49 takes 40 µs with the whole bandwidth: 1 µs too long",
    );
}
