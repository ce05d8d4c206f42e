//! A graph beyond the reach of exact methods: 5,000 tasks on 8 devices.

use divi_papers::generate::{Rwnn, rwnn};
use divi_planner::problem::Device;
use divi_planner::random::Random;
use divi_planner::units::{BytesPerMicro, Micros};
use divi_planner::{Objective, Problem};

use super::Settings;
use crate::runs::run;

const NODES: usize = 32;
const MODULES: usize = 157;
const DEVICES: usize = 8;

pub(super) fn large(settings: &Settings) -> Result<(), String> {
    let problem = problem()?;
    let (tasks, devices) = (problem.nodes.len(), problem.devices.len());
    println!("{tasks} tasks on {devices} devices, one input, {} s", settings.seconds);
    println!("{:<10} {:>14} {:>10} {:>8}", "algorithm", "latency (ms)", "of HEFT", "seconds");
    let mut heft = Micros::ZERO;
    for algorithm in ["heft", "greedy", "auto"] {
        let found = run(&problem, Objective::Latency, algorithm, settings.seconds)?;
        if algorithm == "heft" {
            heft = found.plan.value;
        }
        println!(
            "{algorithm:<10} {:>14.1} {:>10.4} {:>8.2}",
            found.plan.value / 1e3,
            found.plan.value / heft,
            found.seconds
        );
    }
    Ok(())
}

/// Builds a network with random times on devices of different speeds, fully connected.
fn problem() -> Result<Problem, String> {
    let network = Rwnn { nodes: NODES, modules: MODULES, channels: 3, strong: false, seed: 5, ..Rwnn::default() };
    let mut problem = rwnn(&network).map_err(|error| error.to_string())?;
    let mut random = Random::new(8);
    let bandwidth = problem.bandwidth.iter().flatten().flatten().copied().fold(BytesPerMicro::ZERO, BytesPerMicro::max);
    for node in &mut problem.nodes {
        for times in node.time.values_mut() {
            let fastest = times.iter().flatten().copied().fold(Micros::INFINITY, Micros::min);
            let time = |device: usize| {
                let time = fastest * (1.0 + 0.4 * device as f64) * (0.7 + 0.6 * random.unit());
                Some(Micros(time.0.ceil()))
            };
            *times = (0..DEVICES).map(time).collect();
        }
    }
    let sizes = problem.devices[0].batch_sizes.clone();
    let device = |id: usize| Device { id, name: format!("d{id}"), memory: None, batch_sizes: sizes.clone() };
    problem.devices = (0..DEVICES).map(device).collect();
    let row = |from: usize| (0..DEVICES).map(|to| (from != to).then_some(bandwidth)).collect();
    problem.bandwidth = (0..DEVICES).map(row).collect();
    Ok(problem)
}
