//! Tables I and IV: all algorithms on networks of ten modules, for one input and for a queue.

use divi_planner::Objective;
use divi_planner::units::Micros;

use super::Settings;
use super::networks::Network;
use crate::runs::{geometric_mean, run};

/// Columns: the paper's algorithms, then ours.
const ALGORITHMS: [(&str, &str); 9] = [
    ("best device", "single"),
    ("MET", "met"),
    ("Greedy", "greedy"),
    ("HEFT", "heft"),
    ("EA", "evolve"),
    ("SA", "anneal"),
    // Replaced by the argument `milp` of `table`.
    ("MILP", "milp"),
    ("MILP-SPLIT", "milp-split"),
    ("auto", "auto"),
];
const HEFT: usize = 3;
const MILP: usize = 6;
const MILP_SPLIT: usize = 7;
const AUTO: usize = 8;

/// A row of the paper: label, channels, strong dependence, values of its eight algorithms, and its bound.
type Row = (&'static str, usize, bool, [f64; 8], f64);

const TABLE_1: [Row; 7] = [
    ("1-chan", 1, true, [211.7, 209.9, 104.4, 99.9, 97.5, 98.9, 80.1, 80.1], 80.1),
    ("sdep, 2-chan", 2, true, [234.9, 219.3, 111.8, 109.3, 103.8, 106.2, 78.9, 79.1], 73.7),
    ("sdep, 3-chan", 3, true, [236.5, 235.4, 114.2, 108.5, 104.7, 106.1, 79.9, 80.3], 68.1),
    ("sdep, 4-chan", 4, true, [250.5, 249.1, 116.3, 111.3, 107.6, 109.5, 79.1, 79.4], 61.3),
    ("wdep, 2-chan", 2, false, [225.2, 223.8, 103.7, 101.7, 97.3, 98.1, 74.3, 77.6], 73.3),
    ("wdep, 3-chan", 3, false, [229.9, 229.3, 107.4, 104.3, 100.9, 103.1, 76.6, 78.7], 71.8),
    ("wdep, 4-chan", 4, false, [242.9, 240.7, 106.8, 104.4, 102.0, 103.6, 71.6, 77.0], 62.1),
];

const TABLE_4: [Row; 7] = [
    ("1-chan", 1, true, [54.0, 56.0, 74.0, 75.0, 84.0, 87.0, 114.0, 135.0], 164.0),
    ("sdep, 2-chan", 2, true, [48.0, 50.0, 67.0, 66.0, 75.0, 78.0, 95.0, 119.0], 180.0),
    ("sdep, 3-chan", 3, true, [49.0, 51.0, 68.0, 70.0, 78.0, 81.0, 116.0, 129.0], 196.0),
    ("sdep, 4-chan", 4, true, [47.0, 48.0, 65.0, 67.0, 76.0, 79.0, 73.0, 126.0], 209.0),
    ("wdep, 2-chan", 2, false, [51.0, 53.0, 76.0, 75.0, 86.0, 87.0, 89.0, 137.0], 182.0),
    ("wdep, 3-chan", 3, false, [49.0, 52.0, 73.0, 73.0, 82.0, 85.0, 72.0, 137.0], 181.0),
    ("wdep, 4-chan", 4, false, [47.0, 50.0, 72.0, 74.0, 82.0, 84.0, 65.0, 138.0], 207.0),
];

const QUEUE: u32 = 16;

pub(super) fn latency(settings: &Settings) -> Result<(), String> {
    println!("Table I: latency of networks of 10 modules, ms; MILP is the paper's own program");
    table(settings, &TABLE_1, Objective::Latency, "milp-paper", |value| value.0 / 1e3)
}

pub(super) fn throughput(settings: &Settings) -> Result<(), String> {
    println!(
        "Table IV: throughput of networks of 10 modules, queues of {QUEUE}, inputs per second; MILP is divi's milp"
    );
    table(settings, &TABLE_4, Objective::Batch, "milp", |value| f64::from(QUEUE) / value.0 * 1e6)
}

fn table(
    settings: &Settings,
    rows: &[Row],
    objective: Objective,
    milp: &str,
    to_unit: fn(Micros) -> f64,
) -> Result<(), String> {
    let Settings { seconds, milp_seconds, .. } = settings;
    println!("time limits: {seconds} s for searches, {milp_seconds} s for the column MILP; (g): a generated network");
    print!("{:<16}", "");
    ALGORITHMS.iter().for_each(|(column, _)| print!(" {column:>11}"));
    println!(" {:>11}  bound by (proof)", "bound");
    let (mut over_heft, mut over_bound) = (Vec::new(), Vec::new());
    for &(label, channels, strong, paper, paper_bound) in rows {
        let inputs = if objective == Objective::Batch { QUEUE } else { 1 };
        let (problem, generated) = Network { modules: 10, channels, strong, inputs }.problem()?;
        print!("{:<16}", if generated { format!("{label} (g)") } else { label.to_owned() });
        let mut values = Vec::new();
        let (mut bound, mut source) = (Micros::ZERO, String::new());
        for (index, (_, algorithm)) in ALGORITHMS.into_iter().enumerate() {
            let (algorithm, limit) = if index == MILP { (milp, *milp_seconds) } else { (algorithm, *seconds) };
            let plan = run(&problem, objective, algorithm, limit)?.plan;
            print!(" {:>11.1}", to_unit(plan.value));
            values.push(plan.value);
            if plan.bound > bound {
                (bound, source) = (plan.bound, format!("{} ({})", plan.bound_by, plan.proof));
            }
        }
        println!(" {:>11.1}  {source}", to_unit(bound));
        print!("{:<16}", "  paper");
        paper.iter().for_each(|value| print!(" {value:>11.1}"));
        println!(" {:>11} {paper_bound:>11.1}", "-");
        over_heft.push(values[HEFT] / values[AUTO]);
        over_bound.push(values[AUTO] / bound);
    }
    // The speedup is the ratio above 1: latencies fall and throughputs rise.
    let paper_over_heft: Vec<f64> =
        rows.iter().map(|row| (row.3[MILP_SPLIT] / row.3[HEFT]).max(row.3[HEFT] / row.3[MILP_SPLIT])).collect();
    println!(
        "geometric means: HEFT / auto {:.3} (the paper's MILP-SPLIT {:.3}), auto / bound {:.4}",
        geometric_mean(&over_heft),
        geometric_mean(&paper_over_heft),
        geometric_mean(&over_bound)
    );
    Ok(())
}
