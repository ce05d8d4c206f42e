//! Cold starts on SortingHat's three servers: language models whose parameters are still in host memory.

use divi_planner::plan::{Limit, Schedule};
use divi_planner::problem::Contention;
use divi_planner::units::{Bytes, Micros};
use divi_planner::{Objective, Options, Plan, Problem, timed_anew};

use super::Settings;
use crate::models::cold_problem;
use crate::runs::run_with;

const MODELS: [&str; 2] = ["openllama_3b_1x128", "gpt2_large_1x128"];
const SYSTEMS: [&str; 3] = ["v100-dgx", "a6000", "v100-hetero"];
/// Limit for plans without copies and contention: more trials do not improve the retimed plans.
const WARM_TRIALS: u64 = 50_000;

pub(super) fn run(_: &Settings) -> Result<(), String> {
    println!(
        "Cold starts: milliseconds until one input is done, speedup over a single GPU, and gigabytes of parameters copied to each\n\
         GPU, transferred over each of the host's buses, read by GPUs from host memory, and used by the CPU.\n\
         A single GPU overlaps copies and computation; the paper's copies everything first. Table lookups read only the rows they need.\n\
         Warm plans are made without copies, free ones without contention; both are retimed with them. Gain in the paper: 2.28 on\n\
         average, over a single GPU that copies first.\n"
    );
    for system in SYSTEMS {
        for model in MODELS {
            let all = cold_problem(model, system)?;
            for is_with_cpu in [true, false] {
                let cold = if is_with_cpu { all.clone() } else { without_host(&all) };
                let mut warm = cold.clone();
                warm.cold = None;
                let devices = if is_with_cpu { "CPU and GPUs compute" } else { "GPUs compute" };
                println!("{model} on {system}, {devices}");
                table(&warm, &cold)?;
                println!();
            }
        }
    }
    Ok(())
}

/// Restricts the host to tasks that no other device supports.
fn without_host(problem: &Problem) -> Problem {
    let mut problem = problem.clone();
    for times in problem.nodes.iter_mut().flat_map(|node| node.time.values_mut()) {
        if times[1..].iter().any(Option::is_some) {
            times[0] = None;
        }
    }
    problem
}

fn table(warm: &Problem, cold: &Problem) -> Result<(), String> {
    let heading: Vec<String> = columns(cold).iter().map(|name| format!("{name:>6}")).collect();
    println!("{:<30} {:>8} {:>6} {:>7} {:>8}  {}", "plan", "ms", "gain", "gap", "seconds", heading.join(" "));
    let single = run_with(cold, Objective::Latency, "single", Options::default())?;
    let alone = single.plan.value;
    let line = |name: &str, plan: &Plan, seconds: f64| {
        let bytes: Vec<String> = shares(cold, plan).iter().map(|bytes| format!("{:>6.2}", *bytes / 1e9)).collect();
        println!(
            "{name:<30} {:>8.1} {:>6.2} {:>6.2}% {seconds:>8.1}  {}",
            plan.value / 1e3,
            alone / plan.value,
            100.0 * plan.gap,
            bytes.join(" ")
        );
    };
    let first = copies_first(cold, &single.plan)?;
    println!("{:<30} {:>8.1} {:>6.2}", "single GPU, copies first", first / 1e3, alone / first);
    line("single GPU", &single.plan, single.seconds);
    let (mut free, mut unaware) = (warm.clone(), cold.clone());
    (free.contention, unaware.contention) = (Contention::Off, Contention::Off);
    for (name, problem, algorithm) in [
        ("HEFT, warm and free", &free, "heft"),
        ("auto, warm and free", &free, "auto"),
        ("sortinghat, free", &unaware, "sortinghat"),
    ] {
        let limit = (algorithm == "auto").then_some(Limit::Iterations(WARM_TRIALS));
        let run = run_with(problem, Objective::Latency, algorithm, Options { limit, ..Options::default() })?;
        let plan = timed_anew(cold, &run.plan).map_err(|error| error.to_string())?;
        line(name, &plan, run.seconds);
    }
    for algorithm in ["auto", "sortinghat"] {
        let run = run_with(cold, Objective::Latency, algorithm, Options::default())?;
        line(algorithm, &run.plan, run.seconds);
        if algorithm == "sortinghat" {
            println!(
                "{:<30} {:>8} {:>6.2}   over copies first; upper bounds {:.2} and {:.2}, by {} ({})",
                "",
                "",
                first / run.plan.value,
                alone / run.plan.bound,
                first / run.plan.bound,
                run.plan.bound_by,
                run.plan.proof
            );
        }
    }
    Ok(())
}

/// Returns the time of a single GPU that copies all parameters before it computes.
fn copies_first(cold: &Problem, single: &Plan) -> Result<Micros, String> {
    let mut warm = cold.clone();
    warm.cold = None;
    let mut there = single.clone();
    there.copies.clear();
    let computes = timed_anew(&warm, &there).map_err(|error| error.to_string())?.value;
    Ok(computes + single.copies.iter().map(|copy| copy.end - copy.start).sum::<Micros>())
}

/// Returns the column names: devices except the host, the host's buses, parameters read from host memory, and the CPU.
fn columns(problem: &Problem) -> Vec<String> {
    let devices = problem.devices.iter().skip(1).map(|device| device.name.clone());
    devices.chain(buses(problem)).chain(["read".to_owned(), "cpu".to_owned()]).collect()
}

fn buses(problem: &Problem) -> Vec<String> {
    let mut names: Vec<String> = problem.bus.iter().flat_map(|rows| rows[0].iter().flatten().cloned()).collect();
    names.dedup();
    names
}

/// Returns the bytes of parameters in each column.
fn shares(problem: &Problem, plan: &Plan) -> Vec<Bytes> {
    let Schedule::Latency { device, .. } = &plan.schedule else { return Vec::new() };
    let (devices, buses) = (problem.devices.len() - 1, buses(problem));
    let mut shares = vec![Bytes::ZERO; devices + buses.len() + 2];
    let copied = |node: usize| plan.copies.iter().any(|copy| copy.node == node && copy.to == device[node]);
    for node in &problem.nodes {
        let column = match device[node.id] {
            0 => devices + buses.len() + 1,
            _ if !copied(node.id) => devices + buses.len(),
            on => on - 1,
        };
        shares[column] += node.weight;
    }
    for copy in plan.copies.iter().filter(|copy| copy.via.is_none()) {
        let name = problem.bus.as_ref().and_then(|rows| rows[0][copy.to].as_ref());
        let bus = buses.iter().position(|bus| Some(bus) == name);
        bus.into_iter().for_each(|bus| shares[devices + bus] += problem.nodes[copy.node].weight);
    }
    shares
}
