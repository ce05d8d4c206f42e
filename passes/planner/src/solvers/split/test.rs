//! Chains of small modules, compared with the search over the whole and with brute force.

use super::jobs::Solved;
use super::module::Module;
use super::solve;
use crate::model::instance::Instance;
use crate::model::plan::{Bound, Objective, Plan, Schedule};
use crate::model::problem::{Device, Node, Problem};
use crate::model::units::{Bytes, BytesPerMicro, Micros};
use crate::random::Random;
use crate::solvers::cuts::segments;
use crate::solvers::exact::graph::{Footprint, Graph};
use crate::solvers::exact::test::optimum;
use crate::solvers::exact::{self, Limits};
use crate::verify::verify;

struct Shape {
    modules: usize,
    /// Parallel tasks in a module.
    width: usize,
    devices: usize,
    equal_devices: bool,
    /// True if modules are joined by an edge between two tasks, false if they share a task.
    bridges: bool,
    memory: Option<Bytes>,
    /// Number of sinks of the network.
    ends: usize,
}

/// Returns a chain of modules, each a fan of tasks with some edges between neighbors.
fn chain(shape: &Shape, seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let devices = shape.devices;
    let device = |id: usize| Device { id, name: format!("d{id}"), memory: shape.memory, batch_sizes: vec![1] };
    let bandwidth = |from: usize, to: usize| match (from == to, shape.equal_devices) {
        (true, _) => None,
        (_, true) => Some(BytesPerMicro(2.0)),
        _ => {
            let choice = if from + to == 1 { 0 } else { 1 + (from + 2 * to + seed as usize) % 3 };
            Some(BytesPerMicro([1.0, 2.0, 4.0, 0.0][choice]))
        }
    };
    let rows = (0..devices).map(|from| (0..devices).map(|to| bandwidth(from, to)).collect()).collect();
    let mut problem = Problem::new("chain", (0..devices).map(device).collect(), rows);
    let mut edges = Vec::new();
    let mut node = |problem: &mut Problem| {
        let id = problem.nodes.len();
        let first = Micros(1.0 + random.below(20) as f64);
        let time = |device: usize, random: &mut Random| match device {
            0 => Some(first),
            _ if shape.equal_devices => Some(first),
            _ => (!random.chance(0.15)).then(|| Micros(1.0 + random.below(20) as f64)),
        };
        let times = (0..devices).map(|device| time(device, &mut random)).collect();
        problem.nodes.push(Node {
            id,
            name: None,
            time: [(1, times)].into(),
            weight: Bytes(1.0),
            input: Bytes::ZERO,
            output: Some(Bytes(random.below(16) as f64)),
            scratch: Bytes::ZERO,
            pin: None,
            module: None,
        });
        id
    };
    let mut cut = node(&mut problem);
    for module in 0..shape.modules {
        let width = if module + 1 == shape.modules { shape.ends.max(1) } else { shape.width };
        let fan: Vec<usize> = (0..width).map(|_| node(&mut problem)).collect();
        edges.extend(fan.iter().map(|task| (cut, *task)));
        if module + 1 == shape.modules && shape.ends > 0 {
            break;
        }
        for pair in fan.windows(2).step_by(2) {
            edges.push((pair[0], pair[1]));
        }
        let end = node(&mut problem);
        edges.extend(fan.iter().map(|task| (*task, end)));
        cut = end;
        if shape.bridges {
            let next = node(&mut problem);
            edges.push((end, next));
            cut = next;
        }
    }
    problem.edges = Some(edges);
    problem
}

fn shape(seed: u64) -> Shape {
    let choice = seed as usize;
    Shape {
        modules: 2 + choice % 2,
        width: 1 + choice % 3,
        devices: 2 + choice / 3 % 2,
        equal_devices: choice.is_multiple_of(5),
        bridges: choice % 4 == 1,
        memory: None,
        ends: choice / 2 % 3,
    }
}

fn verified(problem: &Problem, solution: &exact::Answer) -> Micros {
    let schedule = solution.schedule.clone().expect("there is a schedule");
    let schedule = Schedule::Latency { device: schedule.device, start: schedule.start, makespan: schedule.value };
    let plan = Plan::new(problem, "milp-split", schedule, Bound::new(solution.bound, solution.bound_by));
    verify(problem, &plan).expect("the plan holds")
}

/// Tests that the chain of modules is as good as the search over the whole, and that both are optimal.
#[test]
fn split_equals_the_search_over_the_whole() {
    let mut several = 0;
    for seed in 0..300 {
        let problem = chain(&shape(seed), seed);
        let Ok(instance) = Instance::new(&problem, Objective::Latency) else { continue };
        several += usize::from(segments(&instance).len() > 1);
        let (split, whole) = (solve(&instance, &Limits::default(), None), exact::solve(&instance, &Limits::default()));
        assert_eq!(split.schedule.is_some(), whole.schedule.is_some(), "seed {seed}");
        if split.schedule.is_some() {
            assert!(split.is_optimal() && whole.is_optimal(), "seed {seed}: {split:?} {whole:?}");
            assert_eq!(verified(&problem, &split), verified(&problem, &whole), "seed {seed}");
        }
    }
    assert!(several > 100, "only {several} had a cut");
}

#[test]
fn split_equals_brute_force() {
    for seed in 0..120 {
        let problem = chain(&Shape { modules: 2, width: 1 + seed as usize % 2, ends: 1, ..shape(seed) }, seed);
        let Ok(instance) = Instance::new(&problem, Objective::Latency) else { continue };
        let best = optimum(&Graph::new(&instance, instance.order(), Footprint::Least));
        let split = solve(&instance, &Limits::default(), None);
        assert_eq!(split.schedule.map_or(Micros::INFINITY, |schedule| schedule.value), best, "seed {seed}");
    }
}

/// Tests that the result does not depend on the number of threads.
#[test]
fn split_is_deterministic() {
    for seed in 0..20 {
        let problem = chain(&Shape { modules: 6, ..shape(seed) }, seed);
        let Ok(instance) = Instance::new(&problem, Objective::Latency) else { continue };
        for extensions in [0, 100, 1000, 1_000_000] {
            let one = solve(&instance, &Limits { extensions, ..Limits::default() }, None);
            let four = solve(&instance, &Limits { extensions, threads: 4, ..Limits::default() }, None);
            assert_eq!(one, four, "seed {seed}, {extensions} extensions");
            let best = solve(&instance, &Limits::default(), None).schedule.map_or(Micros::INFINITY, |best| best.value);
            assert!(one.bound <= best, "seed {seed}, {extensions} extensions");
        }
    }
}

/// Tests that if memory couples modules, the plan fits and is optimal.
#[test]
fn memory_limits_are_respected() {
    let mut coupled = 0;
    for seed in 0..60 {
        let free = chain(&shape(seed), seed);
        let tasks = free.nodes.len() as f64;
        let bytes: Bytes = free.nodes.iter().map(|node| node.weight + node.output.unwrap_or(Bytes::ZERO)).sum();
        let room = Bytes((bytes.0 / shape(seed).devices as f64 * 1.15 + tasks).ceil());
        let problem = chain(&Shape { memory: Some(room), ..shape(seed) }, seed);
        let Ok(instance) = Instance::new(&problem, Objective::Latency) else { continue };
        let (split, whole) = (solve(&instance, &Limits::default(), None), exact::solve(&instance, &Limits::default()));
        let Some(best) = whole.schedule.as_ref().map(|schedule| schedule.value) else {
            assert_eq!(split.schedule, None, "seed {seed}");
            continue;
        };
        assert!(whole.is_optimal(), "seed {seed}");
        assert_eq!(verified(&problem, &split), best, "seed {seed}");
        let unlimited = Instance::new(&free, Objective::Latency).expect("it is as before");
        let without = solve(&unlimited, &Limits::default(), None).schedule.expect("it is as before").value;
        coupled += usize::from(without < best);
    }
    assert!(coupled > 5, "only {coupled} were coupled");
}

/// Tests that modules that are equal up to numbering are solved once, and equal devices once for all.
#[test]
fn equal_modules_are_solved_once() {
    let names = ["a", "b"];
    let device = |id: usize| Device { id, name: names[id].to_owned(), memory: None, batch_sizes: vec![1] };
    let rows = vec![vec![None, Some(BytesPerMicro(1.0))], vec![Some(BytesPerMicro(1.0)), None]];
    let mut problem = Problem::new("repeated", (0..2).map(device).collect(), rows);
    let mut edges = Vec::new();
    let times = [4.0, 3.0, 9.0, 5.0, 4.0, 9.0, 3.0, 5.0, 4.0, 3.0, 5.0, 9.0, 4.0, 9.0, 5.0, 3.0, 4.0];
    for (id, time) in times.into_iter().enumerate() {
        problem.nodes.push(Node {
            id,
            name: None,
            time: [(1, vec![Some(Micros(time)); 2])].into(),
            weight: Bytes::ZERO,
            input: Bytes::ZERO,
            output: Some(Bytes(2.0)),
            scratch: Bytes::ZERO,
            pin: None,
            module: None,
        });
    }
    for cut in [0, 4, 8, 12] {
        edges.extend((1..4).flat_map(|task| [(cut, cut + task), (cut + task, cut + 4)]));
    }
    problem.edges = Some(edges);
    let instance = Instance::new(&problem, Objective::Latency).expect("it is well-formed");
    let modules: Vec<Module> = segments(&instance).iter().map(|segment| Module::new(&instance, segment)).collect();
    let [first, second, third, last] = modules.as_slice() else { panic!("{} modules", modules.len()) };
    // The first includes its source, the last has no exit; those between have their ends on one device or on two.
    assert!(first.key() != second.key() && second.key() == third.key() && third.key() != last.key());
    assert_eq!(Solved::new(&modules, &Limits::default()).count(), 1 + 2 + 1);
    let solution = solve(&instance, &Limits::default(), None);
    assert_eq!(verified(&problem, &solution), Micros(4.0 + 4.0 * (9.0 + 2.0 + 4.0)));
    assert!(solution.is_optimal());
}
