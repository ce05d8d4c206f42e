//! Peaks of memory against a simulation, and against the planner's verifier.

use divi_papers::generate::{Rwnn, rwnn};
use divi_planner::plan::Plan;
use divi_planner::problem::MemoryModel;
use divi_planner::{Error, Objective, Options, Problem, Terms, solve, verify_under};
use divi_report::Timeline;

/// What a device holds at a moment: looked up launch by launch, tensor by tensor.
fn held(problem: &Problem, timeline: &Timeline, device: usize, now: f64) -> f64 {
    let here = |task: usize| timeline.launches.iter().find(|launch| (launch.task, launch.device) == (task, device));
    let mut sum = 0.0;
    for launch in timeline.launches.iter().filter(|launch| launch.device == device) {
        sum += problem.nodes[launch.task].weight;
        if launch.start <= now && now < launch.end {
            sum += problem.nodes[launch.task].scratch * launch.inputs.len() as f64;
        }
    }
    for (index, tensor) in problem.all_tensors().iter().enumerate() {
        let common = |a: &[u32], b: &[u32]| a.iter().filter(|input| b.contains(input)).count();
        let moved = |transfer: &&divi_report::Transfer| transfer.tensor == Some(index);
        if let Some(made) = here(tensor.from) {
            let read = tensor.to.iter().filter_map(|to| here(*to)).filter(|to| common(&made.inputs, &to.inputs) > 0);
            let gone = timeline.transfers.iter().filter(moved).filter(|transfer| transfer.from == device);
            let ends = read.map(|reader| reader.end).chain(gone.map(|transfer| transfer.end));
            if made.start <= now && now < ends.fold(made.end, f64::max) {
                sum += tensor.bytes * made.inputs.len() as f64;
            }
        }
        for transfer in timeline.transfers.iter().filter(moved).filter(|transfer| transfer.to == device) {
            let from = timeline.launches.iter().find(|made| (made.task, made.device) == (tensor.from, transfer.from));
            let from = from.expect("what moves has been computed");
            let read = tensor.to.iter().filter_map(|to| here(*to)).filter(|to| common(&from.inputs, &to.inputs) > 0);
            if transfer.start <= now && now < read.map(|reader| reader.end).fold(0.0, f64::max) {
                sum += transfer.bytes;
            }
        }
    }
    sum
}

fn plans() -> Vec<(Problem, Plan)> {
    let mut plans = Vec::new();
    for (seed, inputs) in [(1, 1), (2, 1), (3, 4), (4, 8)] {
        let mut problem =
            rwnn(&Rwnn { nodes: 10, modules: 2, channels: 2, inputs, seed, ..Rwnn::default() }).expect("it is small");
        problem.memory_model = MemoryModel::Liveness;
        for (index, node) in problem.nodes.iter_mut().enumerate() {
            node.scratch = (index % 3) as f64 * 1e6;
        }
        let objective = if inputs > 1 { Objective::Batch } else { Objective::Latency };
        for algorithm in ["greedy", "heft"] {
            let plan = solve(&problem, objective, algorithm, &Options::default()).expect("it has a plan");
            plans.push((problem.clone(), plan));
        }
    }
    plans
}

#[test]
fn peaks_are_those_of_a_simulation() {
    for (problem, plan) in plans() {
        let timeline = Timeline::of(&problem, &plan).unwrap();
        // Between any two things that happen nothing changes. Moments closer than rounding are one.
        let launches = timeline.launches.iter().flat_map(|launch| [launch.start, launch.end]);
        let moves = timeline.transfers.iter().flat_map(|transfer| [transfer.start, transfer.end]);
        let mut moments: Vec<f64> = launches.chain(moves).collect();
        moments.sort_by(f64::total_cmp);
        moments.dedup_by(|later, earlier| *later - *earlier < 1e-6);
        for (index, device) in timeline.devices.iter().enumerate() {
            let between = moments.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
            let peak = between.map(|now| held(&problem, &timeline, index, now)).fold(0.0, f64::max);
            assert_eq!(device.memory.peak, peak.max(device.memory.weights), "{}", device.name);
        }
    }
}

#[test]
fn the_verifier_needs_as_much_and_no_less() {
    for (problem, plan) in plans() {
        for model in [MemoryModel::Liveness, MemoryModel::Static] {
            let mut problem = problem.clone();
            problem.memory_model = model;
            let timeline = Timeline::of(&problem, &plan).unwrap();
            let mut with = |device: usize, memory: f64| {
                problem.devices.iter_mut().for_each(|device| device.memory = None);
                problem.devices[device].memory = Some(memory);
                let plan = Plan { problem: problem.hash(), ..plan.clone() };
                verify_under(&problem, &plan, &Terms::stated_by(&plan))
            };
            for (index, device) in timeline.devices.iter().enumerate() {
                let counted = device.memory.counted;
                assert!(with(index, counted).is_ok());
                let Err(Error::Plan(findings)) = with(index, counted * (1.0 - 1e-6)) else { panic!("too little") };
                assert!(findings[0].message.starts_with("needs"), "{findings:?}");
            }
        }
    }
}
