//! Pipelines on devices of their own, against every pipeline that there is.

#[path = "small/random_problem.rs"]
mod random_problem;

use divi_planner::pipeline::PipelineCost;
use divi_planner::plan::{Limit, Schedule};
use divi_planner::problem::Tensor;
use divi_planner::random::Random;
use divi_planner::{Error, Objective, Options, Plan, Problem, solve, verify};
use random_problem::{Size, problem};

const SLACK: f64 = 1e-6;

fn options(cost: PipelineCost, k: u32) -> Options {
    let limit = Some(Limit::Iterations(3000));
    Options { limit, stages: Some(k), pipeline_cost: Some(cost), ..Options::default() }
}

/// What the slowest device or link takes when tasks are so placed; none where they cannot be.
fn value(problem: &Problem, device: &[usize], cost: PipelineCost) -> Option<f64> {
    let devices = problem.devices.len();
    let (mut compute, mut moving) = (vec![0.0; devices], vec![0.0; devices]);
    let mut links = vec![vec![0.0; devices]; devices];
    let mut held = vec![0.0; devices];
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
        let mut longest: f64 = 0.0;
        for to in (0..devices).filter(|to| *to != home && tensor.to.iter().any(|reader| device[*reader] == *to)) {
            let bandwidth = problem.bandwidth[home][to].unwrap_or(f64::INFINITY);
            if bandwidth == 0.0 {
                return None;
            }
            let latency = problem.link_latency.as_ref().and_then(|latency| latency[home][to]).unwrap_or(0.0);
            let way = tensor.bytes / bandwidth + latency;
            longest = longest.max(way);
            moving[to] += way;
            links[home][to] += way;
        }
        moving[home] += longest;
    }
    Some(match cost {
        PipelineCost::Serial => compute.iter().zip(moving).map(|(a, b)| a + b).fold(0.0, f64::max),
        PipelineCost::Overlap => compute.into_iter().chain(links.into_iter().flatten()).fold(0.0, f64::max),
    })
}

/// The least value of all blocks on all devices.
fn optimum(problem: &Problem, k: usize, cost: PipelineCost) -> Option<f64> {
    let (nodes, devices) = (problem.nodes.len(), problem.devices.len());
    let mut best: Option<f64> = None;
    for code in 0..k.pow(nodes as u32) {
        let block: Vec<usize> = (0..nodes).map(|node| code / k.pow(node as u32) % k).collect();
        if problem.all_tensors().iter().any(|t| t.to.iter().any(|to| block[t.from] > block[*to])) {
            continue;
        }
        for code in 0..devices.pow(k as u32) {
            let device: Vec<usize> = block.iter().map(|of| code / devices.pow(*of as u32) % devices).collect();
            best = value(problem, &device, cost).into_iter().chain(best).reduce(f64::min);
        }
    }
    best
}

#[test]
fn small_pipelines_on_devices_are_mostly_the_best() {
    let mut random = Random::new(11);
    let (mut count, mut found) = (0, 0);
    for round in 0..300 {
        let problem = problem(&Size { nodes: 5, devices: 3, inputs: 1 }, &mut random);
        let (cost, k) = (PipelineCost::ALL[round % 2], 1 + random.below(3));
        let best = optimum(&problem, k.min(problem.nodes.len()), cost);
        match (solve(&problem, Objective::Pipeline, "auto", &options(cost, k as u32)), best) {
            (Ok(plan), Some(best)) => {
                let read = Plan::read(&plan.write()).unwrap();
                assert!(verify(&problem, &read).is_ok());
                assert!(plan.value >= best * (1.0 - SLACK), "{} is below {best}\n{}", plan.value, problem.write());
                assert!(plan.bound <= best * (1.0 + SLACK), "{} is above {best}\n{}", plan.bound, problem.write());
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
    assert!(found * 100 >= count * 90 && count > 100, "{found} of {count}");
}

#[test]
fn plans_repeat_themselves() {
    let mut random = Random::new(12);
    let mut planned = 0;
    for _ in 0..20 {
        let problem = problem(&Size { nodes: 12, devices: 4, inputs: 1 }, &mut random);
        let plan = || solve(&problem, Objective::Pipeline, "anneal", &options(PipelineCost::Serial, 5));
        assert_eq!(plan().map(|plan| plan.write()), plan().map(|plan| plan.write()));
        if let Ok(Plan { schedule: Schedule::Pipeline { stages, k, .. }, .. }) = plan() {
            assert_eq!(stages.and_then(|stages| stages.block_device).map(|devices| devices.len()), Some(k as usize));
            planned += 1;
        }
    }
    assert!(planned > 5);
}
