//! Networks with several channels, by modules and by windows.

use super::partition::Partition;
use super::surroundings::Surroundings;
use super::{repair, rolling};
use crate::model::instance::Instance;
use crate::model::plan::{Bound, Objective, Plan};
use crate::model::problem::{MemoryModel, Problem};
use crate::model::units::{Bytes, Micros};
use crate::solvers::exact::graph::{Footprint, Graph};
use crate::solvers::exact::search::Goal;
use crate::solvers::exact::{self, Limits, Timetable};
use crate::testing::{Rwnn, rwnn};
use crate::verify::verify;

fn network(seed: u64, modules: usize, strong: bool) -> Problem {
    rwnn(&Rwnn { nodes: 6, modules, channels: 2, strong, seed, ..Rwnn::default() }).expect("a network")
}

fn verified(problem: &Problem, schedule: &Timetable) {
    let plan = Plan::new(problem, "milp-split", schedule.clone().into_schedule(), Bound::none());
    let value = verify(problem, &plan).expect("the plan holds");
    assert!((value - schedule.value).abs() < Micros(1e-6));
}

/// Tests that rolling yields a schedule, that repair improves it, and that both are deterministic; also with memory
/// limits.
#[test]
fn modules_follow_each_other_and_are_repaired() {
    let (mut rolled_sum, mut repaired_sum) = (Micros::ZERO, Micros::ZERO);
    for seed in 0..6 {
        let mut problem = network(seed, 4, seed % 2 == 0);
        if seed % 3 == 0 {
            problem.memory_model = if seed % 2 == 0 { MemoryModel::Static } else { MemoryModel::Liveness };
            let all: Bytes =
                problem.nodes.iter().map(|node| node.weight + node.input + node.output.unwrap_or(Bytes::ZERO)).sum();
            problem.devices.iter_mut().for_each(|device| device.memory = Some(Bytes((all.0 * 0.6).round())));
        }
        let instance = Instance::new(&problem, Objective::Latency).expect("an instance");
        let partition = Partition::new(&instance);
        let limits = Limits { extensions: 12_000, ..Limits::default() };
        let (rolled, _) = rolling::solve(&instance, &partition, &limits);
        let rolled = rolled.unwrap_or_else(|| panic!("seed {seed} has no schedule"));
        verified(&problem, &rolled);
        let repair = || repair::improve(&instance, rolled.clone(), &[8, 20], &limits);
        let repaired = repair();
        verified(&problem, &repaired);
        assert!(repaired.value <= rolled.value, "seed {seed}: {} after {}", repaired.value, rolled.value);
        assert_eq!(repaired, repair(), "seed {seed}");
        rolled_sum += rolled.value;
        repaired_sum += repaired.value;
    }
    assert!(repaired_sum < 0.995 * rolled_sum, "{repaired_sum} after {rolled_sum}");
}

/// Tests that without effort there is no schedule, and repair changes nothing.
#[test]
fn no_effort_changes_nothing() {
    let problem = network(1, 4, true);
    let instance = Instance::new(&problem, Objective::Latency).expect("an instance");
    let none = Limits { extensions: 0, ..Limits::default() };
    assert_eq!(rolling::solve(&instance, &Partition::new(&instance), &none).0, None);
    let start = rolling::solve(&instance, &Partition::new(&instance), &Limits::default()).0.expect("a schedule");
    assert_eq!(repair::improve(&instance, start.clone(), &[], &none), start);
}

/// Tests that the subproblem of all tasks is the whole problem.
#[test]
fn a_window_of_everything_is_the_whole() {
    for seed in 0..10 {
        let problem = network(seed, 2, seed % 2 == 0);
        let instance = Instance::new(&problem, Objective::Latency).expect("an instance");
        let whole = Graph::new(&instance, instance.order(), Footprint::Least);
        let window = Surroundings::new(&instance).graph(instance.order());
        let value = |graph: &Graph| exact::search(graph, Goal::By(Micros::INFINITY), &Limits::default()).value;
        assert_eq!(value(&whole), value(&window), "seed {seed}");
    }
}

/// Tests that equal modules in equal states are solved once: many of them take hardly more effort than some.
#[test]
fn equal_modules_are_rolled_once() {
    let effort = |repeats: usize| {
        let problem = repeated(repeats);
        let instance = Instance::new(&problem, Objective::Latency).expect("an instance");
        let partition = Partition::new(&instance);
        assert!(partition.modules.len() >= repeats / 3, "{} modules", partition.modules.len());
        rolling::solve(&instance, &partition, &Limits { extensions: 1_000_000, ..Limits::default() }).1
    };
    let (some, many) = (effort(10), effort(60));
    assert!(many < 4 * some, "{many} after {some}");
}

/// Returns a problem that repeats ten tasks, with two tensors from each module to the next.
fn repeated(repeats: usize) -> Problem {
    let mut problem = network(1, 1, true);
    let mut node = problem.nodes[0].clone();
    (problem.nodes, problem.modules) = (Vec::new(), None);
    let mut edges = Vec::new();
    for module in 0..repeats {
        let first = module * 10;
        for (task, time) in [3.0, 4.0, 2.0, 5.0, 4.0, 3.0, 2.0, 2.0, 6.0, 3.0].into_iter().enumerate() {
            node.id = first + task;
            node.time = [(1, vec![Some(Micros(time)); problem.devices.len()])].into();
            node.output = Some(Bytes(32_000.0));
            problem.nodes.push(node.clone());
        }
        let inside = [(0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7), (2, 8), (3, 8), (4, 8), (5, 8)];
        edges.extend(inside.map(|(from, to)| (first + from, first + to)));
        edges.extend([4, 5, 6, 7].map(|from| (first + from, first + 9)));
        if module > 0 {
            edges.extend([(first - 2, first), (first - 1, first + 1)]);
        }
    }
    problem.edges = Some(edges);
    problem
}
