//! Runs of an algorithm on a problem, with a record of its incumbents.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use divi_planner::plan::Limit;
use divi_planner::units::Micros;
use divi_planner::{Objective, Observer, Options, Plan, Problem, SolverEvent};

/// Relative difference up to which values are equal.
pub(crate) const SAME: f64 = 1e-6;

pub(crate) struct Run {
    pub(crate) plan: Plan,
    pub(crate) seconds: f64,
    /// Time of each incumbent in seconds, and its value.
    pub(crate) found: Vec<(f64, Micros)>,
}

impl Run {
    /// Returns the time of the first plan of at most this value.
    pub(crate) fn reached(&self, value: Micros) -> Option<f64> {
        self.found.iter().find(|(_, found)| *found <= value * (1.0 + SAME)).map(|(seconds, _)| *seconds)
    }
}

/// Solves with a time limit in seconds.
pub(crate) fn run(problem: &Problem, objective: Objective, algorithm: &str, seconds: f64) -> Result<Run, String> {
    run_with(problem, objective, algorithm, Options { limit: Some(Limit::Seconds(seconds)), ..Options::default() })
}

/// Solves with options, whose observer is replaced.
pub(crate) fn run_with(
    problem: &Problem,
    objective: Objective,
    algorithm: &str,
    options: Options,
) -> Result<Run, String> {
    let found: Arc<Mutex<Vec<(f64, Micros)>>> = Arc::default();
    let started = Instant::now();
    let observer = {
        let found = Arc::clone(&found);
        Observer::new(move |event| {
            let (SolverEvent::Plan(value, _), Ok(mut found)) = (event, found.lock()) else { return };
            if found.last().is_none_or(|(_, best)| value < *best) {
                found.push((started.elapsed().as_secs_f64(), value));
            }
        })
    };
    let plan = divi_planner::solve(problem, objective, algorithm, &Options { observer, ..options })
        .map_err(|error| format!("{}: {algorithm}: {error}", problem.name))?;
    let seconds = started.elapsed().as_secs_f64();
    let found = found.lock().map(|mut found| std::mem::take(&mut *found)).unwrap_or_default();
    Ok(Run { plan, seconds, found })
}

pub(crate) fn geometric_mean(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (sum / values.len().max(1) as f64).exp()
}

pub(crate) fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
