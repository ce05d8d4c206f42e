//! Table V: one node's plan replicated, and all nodes planned jointly, for queues of different lengths.

use std::time::Instant;

use divi_papers::generate::{Gpt3, gpt3};
use divi_planner::replicated_ways;
use divi_planner::solvers::replicated::Way;
use divi_planner::units::Micros;
use divi_planner::{Objective, Options, Problem};

use crate::runs::run_with;

const QUEUES: [u32; 5] = [6, 12, 24, 48, 96];
/// Batch sizes; those up to the length of the queue are allowed.
const SIZES: [u32; 10] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 96];

pub(super) fn run(_: f64) -> Result<(), String> {
    println!(
        "GPT-3, 96 blocks, half precision, prompts of 20 tokens, on six nodes of two A100 and two T4: inputs per second.\n\
         The paper has 5.7 for one node's plan replicated, 6.3 for all nodes planned jointly (1.11 times), at most 9.9.\n"
    );
    the_papers_queue()?;
    println!();
    longer_and_shorter()
}

/// The generator's default queue and batch sizes, with all ways to replicate a node's plan.
fn the_papers_queue() -> Result<(), String> {
    let problem = gpt3(&Gpt3::default()).map_err(|error| error.to_string())?;
    println!("{} inputs, batches of 4, 8, 12 and 16", problem.inputs);
    println!("{:<34} {:>10} {:>10} {:>10} {:>7} {:>8}", "plan", "µs", "inputs/s", "bound", "gap", "seconds");
    let Repeated { ways, seconds } = Repeated::new(&problem)?;
    for Way { parts, copies, value } in &ways {
        let name = format!("replicated, {parts} parts × {copies} shares");
        match value {
            Ok(value) => println!("{name:<34} {value:>10.0} {:>10.1}", throughput(&problem, *value)),
            Err(error) => println!("{name:<34} {:>10}  {}", "none", first_sentence(&error.to_string())),
        }
    }
    println!("{:<34} {:>47.1}", "", seconds);
    let best = best_of(&ways).map_or(Micros::INFINITY, |(value, _)| value);
    for algorithm in ["priced", "auto"] {
        let run = run_with(&problem, Objective::Batch, algorithm, Options::default())?;
        let plan = &run.plan;
        println!(
            "{:<34} {:>10.0} {:>10.1} {:>10.0} {:>6.2}% {:>8.1}",
            format!("together, {algorithm}"),
            plan.value,
            throughput(&problem, plan.value),
            plan.bound,
            100.0 * plan.gap,
            run.seconds
        );
        println!("{:<34} {:>10.3} times the throughput of the best replicated plan", "", best / plan.value);
    }
    Ok(())
}

/// Other queues, with more batch sizes, so that each can be split.
fn longer_and_shorter() -> Result<(), String> {
    println!(
        "queues of several lengths, batches of {SIZES:?}; gain: joint over replicated, and upper bound on the gain"
    );
    println!(
        "{:>6} {:>9} {:>9} {:>8} {:>9} {:>7} {:>8} {:>7} {:>9}",
        "inputs", "replic.", "as", "seconds", "joint", "gap", "seconds", "gain", "at most"
    );
    for inputs in QUEUES {
        let batch_sizes = SIZES.into_iter().filter(|size| *size <= inputs).collect();
        let problem = gpt3(&Gpt3 { inputs, batch_sizes, ..Gpt3::default() }).map_err(|error| error.to_string())?;
        let repeated = Repeated::new(&problem)?;
        let (value, way) = best_of(&repeated.ways).ok_or("no plan can be replicated")?;
        let run = run_with(&problem, Objective::Batch, "auto", Options::default())?;
        println!(
            "{inputs:>6} {:>9.1} {:>9} {:>8.1} {:>9.1} {:>6.2}% {:>8.1} {:>7.3} {:>9.3}",
            throughput(&problem, value),
            format!("{} × {}", way.parts, way.copies),
            repeated.seconds,
            throughput(&problem, run.plan.value),
            100.0 * run.plan.gap,
            run.seconds,
            value / run.plan.value,
            value / run.plan.bound,
        );
    }
    Ok(())
}

/// All ways to replicate one node's plan, and the time to find them.
struct Repeated {
    ways: Vec<Way>,
    seconds: f64,
}

impl Repeated {
    fn new(problem: &Problem) -> Result<Self, String> {
        let started = Instant::now();
        let ways = replicated_ways(problem, &Options::default()).map_err(|error| error.to_string())?;
        Ok(Self { ways, seconds: started.elapsed().as_secs_f64() })
    }
}

fn best_of(ways: &[Way]) -> Option<(Micros, &Way)> {
    let found = ways.iter().filter_map(|way| Some((*way.value.as_ref().ok()?, way)));
    found.min_by(|a, b| a.0.total_cmp(&b.0))
}

fn throughput(problem: &Problem, value: Micros) -> f64 {
    f64::from(problem.inputs) * 1e6 / value.0
}

/// Truncates a message, which may list every device.
fn first_sentence(message: &str) -> String {
    let short: String = message.chars().take(60).collect();
    if short.len() < message.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_cost::system::System;
    use divi_planner::units::{Bytes, BytesPerMicro};

    /// Tests that the generator's machine is the preset's.
    #[test]
    fn the_machine_is_the_preset() {
        let problem = gpt3(&Gpt3::default()).unwrap();
        let system = System::load("gpt3-6x4").unwrap();
        assert_eq!(problem.devices.len(), system.devices.len());
        for (device, described) in problem.devices.iter().zip(&system.devices) {
            assert_eq!((&device.name, device.memory), (&described.id, Some(Bytes(described.memory.0 as f64))));
            let machines = problem.machines.as_ref().unwrap();
            let node = machines.iter().position(|devices| devices.contains(&device.id)).unwrap();
            assert_eq!(described.node, Some(format!("n{node}")));
            assert!(device.batch_sizes.iter().all(|size| described.batch_sizes.contains(size)));
            // Time of a block implies rates and bandwidths.
            let time = |size: u32, node: usize| problem.nodes[node].time[&size][device.id].unwrap().0 - 5.0;
            let operations = 16.0 * 20.0 * 8.0 * 12288.0 * 12288.0;
            assert!((time(16, 4) / 1e6 - operations / described.rates.f16.0).abs() < 2e-6, "{}", device.name);
            let bytes = 8.0 * 12288.0 * 12288.0 + 4.0 * 5.0 * 20.0 * 12288.0 * 2.0;
            assert!((time(4, 4) / 1e6 - bytes / described.rates.bandwidth.0).abs() < 2e-6, "{}", device.name);
        }
        let latency = problem.link_latency.as_ref().unwrap();
        for link in &system.links {
            assert_eq!(problem.bandwidth[link.from][link.to], Some(BytesPerMicro(link.bandwidth.0 / 1e6)));
            assert!((latency[link.from][link.to].unwrap().0 - link.latency.0 * 1e6).abs() < 1e-9);
        }
        assert_eq!(system.links.len(), 24 * 23);
    }
}
