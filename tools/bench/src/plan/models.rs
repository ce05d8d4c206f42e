//! Figs. 3 and 5: torchvision's models on the paper's machine. Costs are estimates of divi's cost model; the paper measured
//! them, and its figures have no numbers.

use divi_planner::Objective;
use divi_planner::units::Micros;

use super::Settings;
use crate::models::{VISION, problem};
use crate::runs::run;

/// Models of the paper.
const MODELS: &[&str] = VISION.split_at(10).0;

const ALGORITHMS: [&str; 7] = ["single", "met", "greedy", "heft", "evolve", "anneal", "auto"];

/// Length of the queue, divisible by the preset's batch sizes.
const QUEUE: u32 = 16;

pub(super) fn run_figures(settings: &Settings) -> Result<(), String> {
    println!("Fig. 3: latency of torchvision's models under the preset diviml, ms");
    figure(settings, Objective::Latency, 1, |value| value.0 / 1e3)?;
    println!("the paper has no numbers: no gain on chains, at least 100 % on inception_v3, 150 % on googlenet");
    println!();
    println!("Fig. 5: throughput with queues of {QUEUE} (128 in the paper), inputs per second");
    figure(settings, Objective::Batch, QUEUE, |value| f64::from(QUEUE) / value.0 * 1e6)
}

fn figure(settings: &Settings, objective: Objective, inputs: u32, shown: fn(Micros) -> f64) -> Result<(), String> {
    print!("{:<20}", "model");
    ALGORITHMS.iter().for_each(|algorithm| print!(" {algorithm:>9}"));
    println!(" {:>9} {:>8} {:>12}", "bound", "gap", "over single");
    for model in MODELS {
        let problem = problem(model, "diviml", inputs)?;
        print!("{model:<20}");
        let mut values = Vec::new();
        for algorithm in ALGORITHMS {
            let plan = run(&problem, objective, algorithm, settings.seconds)?.plan;
            print!(" {:>9.2}", shown(plan.value));
            values.push(plan.value);
            if algorithm == "auto" {
                let gained = (values[0] / plan.value - 1.0) * 100.0;
                println!(" {:>9.2} {:>6.2} % {:>10.0} %", shown(plan.bound), plan.gap * 100.0, gained);
            }
        }
    }
    Ok(())
}
