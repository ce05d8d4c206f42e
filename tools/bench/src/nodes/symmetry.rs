//! Effect of each symmetry-breaking criterion on integer programs: explored nodes, time, bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use divi_papers::generate::{Gpt3, gpt3};
use divi_planner::plan::Limit;
use divi_planner::{Objective, Observer, Options, SolverEvent, Symmetry, queue_program_size, solve};

pub(super) fn run(limit: f64) -> Result<(), String> {
    // Long prompts make it worthwhile to split the inputs; otherwise one batch on one device is optimal.
    let small = Gpt3 { blocks: 1, machines: 1, tokens: 400, inputs: 3, batch_sizes: vec![1, 2] };
    let medium = Gpt3 { machines: 2, inputs: 4, ..small.clone() };
    let large = Gpt3 { machines: 1, inputs: 8, batch_sizes: vec![1, 2, 3, 4], ..small.clone() };
    println!("Integer programs, at most {limit} s each\n");
    println!(
        "{:<20} {:<10} {:>9} {:>11} {:>8} {:>8} {:>7} {:>9} {:>8}",
        "instance", "symmetry", "variables", "constraints", "µs", "bound", "gap", "explored", "seconds"
    );
    for options in [small, medium, large] {
        let problem = gpt3(&options).map_err(|error| error.to_string())?;
        for symmetry in Symmetry::ALL {
            let explored = Arc::new(AtomicU64::new(0));
            let count = Arc::clone(&explored);
            let observer = Observer::new(move |event| {
                if let SolverEvent::Explored(nodes, _) = event {
                    count.fetch_add(nodes, Ordering::Relaxed);
                }
            });
            let options = Options { limit: Some(Limit::Seconds(limit)), symmetry, observer, ..Options::default() };
            let started = Instant::now();
            let plan = solve(&problem, Objective::Batch, "milp", &options).map_err(|error| error.to_string())?;
            let (variables, constraints) = queue_program_size(&problem, symmetry).map_err(|error| error.to_string())?;
            println!(
                "{:<20} {:<10} {variables:>9} {constraints:>11} {:>8.0} {:>8.0} {:>6.2}% {:>9} {:>8.1}",
                problem.name,
                symmetry.name(),
                plan.value,
                plan.bound,
                100.0 * plan.gap,
                explored.load(Ordering::Relaxed),
                started.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}
