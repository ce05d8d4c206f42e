//! Networks with several channels, module by module and window by window.

use super::around::Around;
use super::borders::Borders;
use super::{repair, rolling};
use crate::model::instance::Instance;
use crate::model::plan::{Bound, Objective, Plan};
use crate::model::problem::{MemoryModel, Problem};
use crate::solvers::exact::graph::{Footprint, Graph};
use crate::solvers::exact::search::Goal;
use crate::solvers::exact::{self, Limits, Timetable};
use crate::testing::{Rwnn, rwnn};
use crate::verify::verify;

fn network(seed: u64, modules: usize, strong: bool) -> Problem {
    rwnn(&Rwnn { nodes: 6, modules, channels: 2, strong, seed, ..Rwnn::default() }).expect("a network")
}

fn verified(problem: &Problem, schedule: &Timetable) {
    let plan = Plan::new(problem, "milp-split", schedule.clone().into_schedule(), Bound::new(0.0, "nothing"));
    let value = verify(problem, &plan).expect("the plan holds");
    assert!((value - schedule.value).abs() < 1e-6);
}

/// Tests that modules one after the other are a schedule, that repair makes it better, and that both are the same each
/// time; with memory too.
#[test]
fn modules_follow_each_other_and_are_repaired() {
    let (mut rolled_sum, mut repaired_sum) = (0.0, 0.0);
    for seed in 0..6 {
        let mut problem = network(seed, 4, seed % 2 == 0);
        if seed % 3 == 0 {
            problem.memory_model = if seed % 2 == 0 { MemoryModel::Static } else { MemoryModel::Liveness };
            let all: f64 = problem.nodes.iter().map(|node| node.weight + node.input + node.output.unwrap_or(0.0)).sum();
            problem.devices.iter_mut().for_each(|device| device.memory = Some((all * 0.6).round()));
        }
        let instance = Instance::new(&problem, Objective::Latency).expect("an instance");
        let borders = Borders::new(&instance);
        let limits = Limits { extensions: 12_000, ..Limits::default() };
        let (rolled, _) = rolling::solve(&instance, &borders, &limits);
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

/// Tests that the effort is the limit: without any there is no schedule, and nothing is repaired.
#[test]
fn no_effort_changes_nothing() {
    let problem = network(1, 4, true);
    let instance = Instance::new(&problem, Objective::Latency).expect("an instance");
    let none = Limits { extensions: 0, ..Limits::default() };
    assert_eq!(rolling::solve(&instance, &Borders::new(&instance), &none).0, None);
    let start = rolling::solve(&instance, &Borders::new(&instance), &Limits::default()).0.expect("a schedule");
    assert_eq!(repair::improve(&instance, start.clone(), &[], &none), start);
}

/// Tests that with nothing around them, all tasks are the whole problem.
#[test]
fn a_window_of_everything_is_the_whole() {
    for seed in 0..10 {
        let problem = network(seed, 2, seed % 2 == 0);
        let instance = Instance::new(&problem, Objective::Latency).expect("an instance");
        let whole = Graph::new(&instance, instance.order(), Footprint::Least);
        let window = Around::new(&instance).graph(instance.order());
        let value = |graph: &Graph| exact::search(graph, Goal::By(f64::INFINITY), &Limits::default()).value;
        assert_eq!(value(&whole), value(&window), "seed {seed}");
    }
}

/// Tests that equal modules in the same situation are solved once: many of them take hardly more effort than some.
#[test]
fn equal_modules_are_rolled_once() {
    let effort = |repeats: usize| {
        let problem = repeated(repeats);
        let instance = Instance::new(&problem, Objective::Latency).expect("an instance");
        let borders = Borders::new(&instance);
        assert!(borders.modules.len() >= repeats / 3, "{} modules", borders.modules.len());
        rolling::solve(&instance, &borders, &Limits { extensions: 1_000_000, ..Limits::default() }).1
    };
    let (some, many) = (effort(10), effort(60));
    assert!(many < 4 * some, "{many} after {some}");
}

/// The same ten tasks again and again, with two tensors from each to the next.
fn repeated(repeats: usize) -> Problem {
    let mut problem = network(1, 1, true);
    let mut node = problem.nodes[0].clone();
    (problem.nodes, problem.modules) = (Vec::new(), None);
    let mut edges = Vec::new();
    for module in 0..repeats {
        let first = module * 10;
        for (task, time) in [3.0, 4.0, 2.0, 5.0, 4.0, 3.0, 2.0, 2.0, 6.0, 3.0].into_iter().enumerate() {
            node.id = first + task;
            node.time = [(1, vec![Some(time); problem.devices.len()])].into();
            node.output = Some(32_000.0);
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
