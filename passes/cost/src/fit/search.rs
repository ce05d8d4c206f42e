//! Coordinate descent with adaptive steps, which minimizes the error of the estimates.
//!
//! Deterministic on all platforms: no randomness, and only IEEE 754 operations that are correctly rounded (sums, products,
//! quotients and square roots).

use crate::model::overlap;

/// Measured times, and the coefficients to fit.
pub(super) struct Problem {
    pub(super) rows: Vec<Row>,
    pub(super) columns: Vec<Column>,
    /// Weight of the distance to the priors, relative to the mean error.
    pub(super) prior_weight: f64,
    /// False if no launch overlaps with the work.
    pub(super) has_floor: bool,
}

pub(super) struct Row {
    /// Time of each column at coefficient one, in microseconds.
    pub(super) features: Vec<f64>,
    pub(super) micros: f64,
    pub(super) weight: f64,
    /// True if the floor applies to this row; rows borrowed from other classes only affect the terms.
    pub(super) is_own: bool,
}

/// Coefficient to fit.
pub(super) enum Column {
    /// Coefficient of a term, with its prior.
    Term(f64),
    /// Part of a launch, without a prior.
    Launch,
    /// Time of a call on the host, in microseconds.
    Call,
}

pub(super) struct Solution {
    /// Time of a launch on the host, which overlaps with the device's work.
    pub(super) floor: f64,
    pub(super) coefficients: Vec<f64>,
}

const SWEEPS: usize = 60;
/// The search ends when all steps are below this.
const SMALLEST_STEP: f64 = 1e-3;
const LARGEST_STEP: f64 = 2.0;
/// Errors below this are quadratic (Huber loss), so that exact matches of few samples have no advantage.
const TOLERANCE: f64 = 0.1;
/// First time of a call on the host, in microseconds.
const ASSUMED_CALL: f64 = 1.0;
/// Longest time of a call on the host, in microseconds: more is not due to the call.
const LONGEST_CALL: f64 = 3.0;
/// Minimum improvement for which a step is accepted.
const IMPROVEMENT: f64 = 1e-9;

/// State of the search. `bodies` are the estimates of all rows without the floor, updated with the coefficients.
struct State<'a> {
    problem: &'a Problem,
    total: f64,
    floor: f64,
    coefficients: Vec<f64>,
    bodies: Vec<f64>,
    error: f64,
}

pub(super) fn solve(problem: &Problem) -> Solution {
    let floor = if problem.has_floor { low_time(problem) } else { 0.0 };
    let coefficients: Vec<f64> = problem
        .columns
        .iter()
        .map(|column| match column {
            Column::Term(assumed) => *assumed,
            Column::Launch => floor / 4.0,
            Column::Call => ASSUMED_CALL,
        })
        .collect();
    let body = |row: &Row| row.features.iter().zip(&coefficients).map(|(feature, it)| feature * it).sum();
    let mut state = State {
        problem,
        total: problem.rows.iter().map(|row| row.weight).sum(),
        floor,
        bodies: problem.rows.iter().map(body).collect(),
        coefficients,
        error: 0.0,
    };
    state.error = state.mean_error(floor, None) + state.distance();
    let mut steps = vec![1.0; problem.columns.len() + 1];
    for _ in 0..SWEEPS {
        for (index, step) in steps.iter_mut().enumerate() {
            let moved =
                if index == problem.columns.len() { state.move_floor(*step) } else { state.move_one(index, *step) };
            *step = if moved { (*step * 1.5).min(LARGEST_STEP) } else { *step / 2.0 };
        }
        if steps.iter().all(|step| *step < SMALLEST_STEP) {
            break;
        }
    }
    Solution { floor: state.floor, coefficients: state.coefficients }
}

/// Returns the 20th percentile of the times, which is close to the time of a launch.
fn low_time(problem: &Problem) -> f64 {
    let mut times: Vec<f64> = problem.rows.iter().filter(|row| row.is_own).map(|row| row.micros).collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 5).copied().unwrap_or(1.0)
}

impl State<'_> {
    fn move_floor(&mut self, step: f64) -> bool {
        let distance = self.distance();
        for floor in [self.floor * (1.0 + step), self.floor / (1.0 + step)] {
            let error = self.mean_error(floor, None) + distance;
            if error < self.error - IMPROVEMENT {
                (self.floor, self.error) = (floor, error);
                return true;
            }
        }
        false
    }

    fn move_one(&mut self, column: usize, step: f64) -> bool {
        let current = self.coefficients[column];
        let start = match self.problem.columns[column] {
            Column::Term(assumed) => 0.1 * step * assumed,
            Column::Launch | Column::Call => step,
        };
        let most = if matches!(self.problem.columns[column], Column::Call) { LONGEST_CALL } else { f64::INFINITY };
        let increase_decrease_zero = [current * (1.0 + step), current / (1.0 + step), 0.0];
        let candidates = if current > 0.0 { &increase_decrease_zero[..] } else { &[start][..] };
        for candidate in candidates.iter().map(|candidate| candidate.min(most)) {
            self.coefficients[column] = candidate;
            let error = self.mean_error(self.floor, Some((column, candidate - current))) + self.distance();
            if error < self.error - IMPROVEMENT {
                for (row, body) in self.problem.rows.iter().zip(&mut self.bodies) {
                    *body += (candidate - current) * row.features[column];
                }
                self.error = error;
                return true;
            }
        }
        self.coefficients[column] = current;
        false
    }

    /// Returns the mean error of the rows, after an optional change of one coefficient.
    fn mean_error(&self, floor: f64, change: Option<(usize, f64)>) -> f64 {
        let errors = self.problem.rows.iter().zip(&self.bodies).map(|(row, body)| {
            let body = body + change.map_or(0.0, |(column, by)| by * row.features[column]);
            let estimate = if row.is_own { overlap(floor, body) } else { body };
            row.weight * error(estimate, row.micros)
        });
        errors.sum::<f64>() / self.total
    }

    /// Returns the weighted distance of the coefficients from their priors, which determines coefficients that the
    /// measurements do not.
    fn distance(&self) -> f64 {
        let distances = self.problem.columns.iter().zip(&self.coefficients).map(|(column, coefficient)| match column {
            Column::Term(assumed) => {
                let ratio = (coefficient / assumed + 0.05) / 1.05;
                ratio + 1.0 / ratio - 2.0
            }
            Column::Launch | Column::Call => 0.0,
        });
        self.problem.prior_weight * distances.sum::<f64>()
    }
}

/// Returns the difference relative to the mean of both. It is at most 2, so that outliers do not dominate.
pub(super) fn error(estimate: f64, measured: f64) -> f64 {
    let error = 2.0 * (estimate - measured).abs() / (estimate + measured);
    if error < TOLERANCE { error * error / (2.0 * TOLERANCE) + TOLERANCE / 2.0 } else { error }
}
