//! Memory peaks compared with a simulation and with the planner's verifier.

use divi_papers::generate::{Rwnn, rwnn};
use divi_planner::plan::Plan;
use divi_planner::problem::MemoryModel;
use divi_planner::units::{Bytes, Micros};
use divi_planner::{Error, Objective, Options, Problem, Terms, solve, verify_under};
use divi_report::Timeline;

/// Returns the bytes in use on a device at a time, by a direct scan of launches and tensors.
fn held(problem: &Problem, timeline: &Timeline, device: usize, now: Micros) -> Bytes {
    let here = |task: usize| timeline.launches.iter().find(|launch| (launch.task, launch.device) == (task, device));
    let mut sum = Bytes::ZERO;
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
            if made.start <= now && now < ends.fold(made.end, Micros::max) {
                sum += tensor.bytes * made.inputs.len() as f64;
            }
        }
        for transfer in timeline.transfers.iter().filter(moved).filter(|transfer| transfer.to == device) {
            let from = timeline.launches.iter().find(|made| (made.task, made.device) == (tensor.from, transfer.from));
            let from = from.expect("a transferred tensor has a producer");
            let read = tensor.to.iter().filter_map(|to| here(*to)).filter(|to| common(&from.inputs, &to.inputs) > 0);
            if transfer.start <= now && now < read.map(|reader| reader.end).fold(Micros::ZERO, Micros::max) {
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
            node.scratch = Bytes((index % 3) as f64 * 1e6);
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
fn peaks_match_a_simulation() {
    for (problem, plan) in plans() {
        let timeline = Timeline::of(&problem, &plan).unwrap();
        // Usage is constant between consecutive events. Times that differ only by rounding are merged.
        let launches = timeline.launches.iter().flat_map(|launch| [launch.start, launch.end]);
        let moves = timeline.transfers.iter().flat_map(|transfer| [transfer.start, transfer.end]);
        let mut moments: Vec<Micros> = launches.chain(moves).collect();
        moments.sort_by(Micros::total_cmp);
        moments.dedup_by(|later, earlier| *later - *earlier < Micros(1e-6));
        for (index, device) in timeline.devices.iter().enumerate() {
            let between = moments.windows(2).map(|pair| Micros(pair[0].0.midpoint(pair[1].0)));
            let peak = between.map(|now| held(&problem, &timeline, index, now)).fold(Bytes::ZERO, Bytes::max);
            assert_eq!(device.memory.peak, peak.max(device.memory.weights), "{}", device.name);
        }
    }
}

#[test]
fn the_verifier_accepts_exactly_the_counted_capacity() {
    for (problem, plan) in plans() {
        for model in [MemoryModel::Liveness, MemoryModel::Static] {
            let mut problem = problem.clone();
            problem.memory_model = model;
            let timeline = Timeline::of(&problem, &plan).unwrap();
            let mut with = |device: usize, memory: Bytes| {
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
