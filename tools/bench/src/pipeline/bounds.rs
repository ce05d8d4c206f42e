//! Table 3: lower bounds of pipelines, relative to the best known value.

use std::sync::{Arc, Mutex, PoisonError};

use divi_planner::api;
use divi_planner::plan::{Bound, Limit};
use divi_planner::units::Micros;
use divi_planner::{Objective, Observer, Options, Problem, SolverEvent};

use super::Settings;
use super::best::Best;
use super::graphs::graphs;
use super::progress::Progress;
use super::table::{self, DIGITS, ONE, STAGES};
use crate::runs::{SAME, geometric_mean, run_with};

/// The paper's rows for its own REGAL graphs, weakest first.
const PAPER: [(&str, [f64; STAGES.len()]); 4] = [
    ("simple", [0.9579, 0.8795, 0.7911, 0.5821, 0.4087, 0.3336]),
    ("bottleneck", [0.9794, 0.8818, 0.7918, 0.5824, 0.4090, 0.3338]),
    ("bottleneck-guess", [0.9804, 0.8826, 0.7918, 0.5824, 0.4090, 0.3338]),
    (EXACT, [0.9804, 0.9579, 0.9407, 0.8929, 0.5910, 0.3810]),
];
const EXACT: &str = "exact";
/// All rows of the table.
const ROWS: [&str; 7] = ["simple", "windows", "cut", "bottleneck", "bottleneck-guess", "priced", EXACT];

/// For each row and number of stages, the relative bounds of all graphs.
type Rows = Vec<(&'static str, Vec<Vec<f64>>)>;

pub(super) fn bounds(settings: &Settings, best: &mut Best) -> Result<(), String> {
    let graphs = graphs(settings)?;
    let Settings { milp_seconds, stages, .. } = settings;
    println!(
        "Table 3: bounds to the best value, geometric means of {} graphs; {milp_seconds} s per graph",
        graphs.len()
    );
    let (rows, proven) = rows(settings, &graphs, best)?;
    table::header("", stages, ONE);
    for (name, shares) in &rows {
        table::row(name, shares.iter().map(|shares| format!("{:.DIGITS$}", geometric_mean(shares))), ONE);
        if let Some((_, paper)) = PAPER.iter().find(|(other, _)| other == name) {
            table::paper_row(stages, paper, DIGITS);
        }
    }
    table::row("proven optimal", proven.iter().map(|count| format!("{count}/{}", graphs.len())), ONE);
    println!("each row is the best of itself and the paper's rows above it; exact is the best of all");
    println!(
        "the paper has 1,000 other graphs generated in the same way, 15 to 60 minutes of Gurobi or SCIP per bound, BRKGA's values"
    );
    Ok(())
}

/// Computes the rows, and for each number of stages the number of graphs whose best value is proven optimal.
fn rows(settings: &Settings, graphs: &[Problem], best: &mut Best) -> Result<(Rows, Vec<usize>), String> {
    let progress = Progress::on_terminal();
    let mut rows = Rows::new();
    let mut proven = vec![0; settings.stages.len()];
    for (column, &k) in settings.stages.iter().enumerate() {
        for (index, graph) in graphs.iter().enumerate() {
            progress.show(&format!("k = {k}: graph {} of {}", index + 1, graphs.len()));
            if best.of(&graph.name, k).is_none() {
                let options =
                    Options { stages: Some(k), limit: Some(Limit::Seconds(settings.seconds)), ..Options::default() };
                best.report(&graph.name, k, run_with(graph, Objective::Pipeline, "anneal", options)?.plan.value);
            }
            let (bounds, found) = bounds_of(graph, k, settings.milp_seconds)?;
            let value = best.of(&graph.name, k).map_or(found, |best| best.min(found));
            if let Some(bound) = bounds.iter().find(|bound| bound.value > value * (1.0 + SAME)) {
                return Err(format!("{}, k = {k}: {bound:?}, but there is a plan of {value}", graph.name));
            }
            proven[column] += usize::from(bounds.last().is_some_and(|bound| bound.value >= value * (1.0 - SAME)));
            for (name, bound) in best_so_far(&bounds) {
                let row = rows.iter().position(|(other, _)| *other == name).unwrap_or(rows.len());
                if row == rows.len() {
                    rows.push((name, vec![Vec::new(); settings.stages.len()]));
                }
                rows[row].1[column].push(bound / value);
            }
        }
    }
    Ok((rows, proven))
}

/// Returns all bounds, the best verified one last, and the value of the best plan found.
fn bounds_of(problem: &Problem, k: u32, seconds: f64) -> Result<(Vec<Bound>, Micros), String> {
    let found = Arc::new(Mutex::new(Micros::INFINITY));
    let observer = {
        let found = Arc::clone(&found);
        Observer::new(move |event| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if let SolverEvent::Plan(value, _) = event {
                *found = found.min(value);
            }
        })
    };
    let options = Options { stages: Some(k), limit: Some(Limit::Seconds(seconds)), observer, ..Options::default() };
    let mut bounds = api::bounds(problem, Objective::Pipeline, &options)
        .map_err(|error| format!("{}, k = {k}: {error}", problem.name))?;
    let best = bounds.iter().map(Bound::verified_value).fold(Micros::ZERO, Micros::max);
    bounds.retain(|bound| bound.by != EXACT);
    bounds.push(Bound::new(best, EXACT));
    let found = *found.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((bounds, found))
}

/// Returns the value of each row: the best of the bound itself and of the paper's weaker bounds.
fn best_so_far(bounds: &[Bound]) -> Vec<(&'static str, Micros)> {
    let mut above = Micros::ZERO;
    let mut shown = |name: &'static str| {
        let value = bounds.iter().filter(|bound| bound.by == name).map(|bound| bound.value).fold(above, Micros::max);
        if PAPER.iter().any(|(other, _)| *other == name) {
            above = value;
        }
        (name, value)
    };
    ROWS.into_iter().map(&mut shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_papers::generate::{Regal, regal};

    #[test]
    fn rows_include_weaker_bounds_of_the_paper_only() {
        let bounds = [("simple", 5.0), ("windows", 7.0), ("bottleneck", 0.0), ("bottleneck-guess", 6.0), (EXACT, 8.0)];
        // A bound that proves nothing is replaced by a weaker one.
        let shown = best_so_far(&bounds.map(|(by, value)| Bound::new(Micros(value), by)));
        let values: Vec<Micros> = shown.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [5.0, 7.0, 5.0, 5.0, 6.0, 6.0, 8.0].map(Micros));
    }

    #[test]
    fn small_graphs_are_proven() {
        let problem = regal(&Regal { nodes: 12, ..Regal::default() }).unwrap();
        let (bounds, found) = bounds_of(&problem, 3, 20.0).unwrap();
        let exact = bounds.last().unwrap();
        assert_eq!((exact.by.as_str(), exact.value), (EXACT, found));
        assert_eq!(bounds[0].value, crate::pipeline::graphs::simple_bound(&problem, 3));
    }
}
