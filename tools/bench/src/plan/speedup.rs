//! Table III: speedup of milp-split over the paper's integer program, in time until an equally good plan is found.

use divi_planner::Objective;

use super::Settings;
use super::networks::Network;
use crate::runs;

/// Modules, channels, strong dependence, and the paper's seconds for MILP and MILP-SPLIT.
const ROWS: [(usize, usize, bool, f64, f64); 6] = [
    (5, 1, true, 82.69, 2.26),
    (10, 1, true, 232.24, 4.83),
    (20, 1, true, 1907.12, 13.49),
    (5, 2, false, 129.08, 2.45),
    (10, 4, false, 271.66, 5.00),
    (20, 2, false, 5850.37, 14.81),
];

/// Number of repetitions of short runs, of which the median counts.
const REPEATS: usize = 5;
/// Maximum duration of a short run, in seconds.
const SHORT: f64 = 1.0;

pub(super) fn run(settings: &Settings) -> Result<(), String> {
    println!("Table III: seconds until milp-split has its plan, and until the paper's MILP has one as good");
    println!(
        "{:<20} {:>11} {:>8} {:>11} {:>11} {:>9}   the paper's",
        "network", "value (µs)", "gap", "MILP", "MILP-SPLIT", "factor"
    );
    for (modules, channels, strong, paper_milp, paper_split) in ROWS {
        let (problem, generated) = Network { modules, channels, strong, inputs: 1 }.problem()?;
        let split = runs::run(&problem, Objective::Latency, "milp-split", settings.seconds)?;
        let value = split.plan.value;
        let mut times = vec![split.reached(value).unwrap_or(split.seconds)];
        while times.len() < REPEATS && times[0] < SHORT {
            let again = runs::run(&problem, Objective::Latency, "milp-split", settings.seconds)?;
            times.push(again.reached(value).unwrap_or(again.seconds));
        }
        times.sort_by(f64::total_cmp);
        let ours = times[times.len() / 2];
        let milp = runs::run(&problem, Objective::Latency, "milp-paper", settings.milp_seconds)?;
        let reached = milp.reached(value);
        let than = if reached.is_some() { "" } else { ">" };
        let theirs = reached.unwrap_or(milp.seconds);
        let label = format!("{modules} modules, {}{channels}", if strong { "sdep " } else { "wdep " });
        println!(
            "{:<20} {value:>11.0} {:>6.2} % {:>9} s {:>9} s {:>9}   {paper_milp} s, {paper_split} s, {:.0}x",
            if generated { format!("{label} (g)") } else { label },
            split.plan.gap * 100.0,
            format!("{than}{theirs:.2}"),
            format!("{ours:.3}"),
            format!("{than}{:.0}x", theirs / ours),
            paper_milp / paper_split
        );
        if reached.is_none() {
            let best = milp.plan.value;
            println!("{:<20} the MILP reached its time limit at {best:.0}, {:.3} times the value", "", best / value);
        }
    }
    Ok(())
}
