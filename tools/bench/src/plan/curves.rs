//! Fig. 7: throughput of each algorithm's incumbent over time.

use std::fs;

use divi_planner::Objective;
use divi_planner::units::Micros;

use super::Settings;
use super::networks::Network;
use super::svg::{Chart, Line, Panel};
use crate::runs::run;

/// Networks of the paper's figure: ten modules, queued inputs.
const PANELS: [(&str, usize, bool); 4] = [
    ("1 channel", 1, true),
    ("2 channels, sdep", 2, true),
    ("3 channels, wdep", 3, false),
    ("4 channels, wdep", 4, false),
];
const ALGORITHMS: [&str; 6] = ["heft", "evolve", "anneal", "milp", "milp-split", "auto"];
const QUEUE: u32 = 16;

pub(super) fn curves(settings: &Settings) -> Result<(), String> {
    let limit = settings.milp_seconds;
    println!("Fig. 7: throughput over {limit} s, queues of {QUEUE}");
    let throughput = |value: Micros| f64::from(QUEUE) / value.0 * 1e6;
    let mut panels = Vec::new();
    for (title, channels, strong) in PANELS {
        let (problem, _) = Network { modules: 10, channels, strong, inputs: QUEUE }.problem()?;
        let mut lines = Vec::new();
        let mut bound = Micros::ZERO;
        for algorithm in ALGORITHMS {
            let found = run(&problem, Objective::Batch, algorithm, limit)?;
            bound = bound.max(found.plan.bound);
            let points: Vec<(f64, f64)> = found.found.iter().map(|(at, value)| (*at, throughput(*value))).collect();
            println!("{title:<18} {algorithm:<11} {:>8.2} inputs per second", throughput(found.plan.value));
            lines.push(Line { name: algorithm, points });
        }
        println!("{title:<18} {:<11} {:>8.2}", "bound", throughput(bound));
        panels.push(Panel { title, lines, limit: throughput(bound) });
    }
    let chart = Chart { panels, seconds: limit, value: "inputs per second" };
    if let Some(folder) = settings.svg.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    fs::write(&settings.svg, chart.svg()).map_err(|error| format!("{}: {error}", settings.svg.display()))?;
    println!("written to {}", settings.svg.display());
    Ok(())
}
