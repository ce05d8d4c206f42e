//! Bound propagation: tighter bounds of variables that follow from rows, rounded to the safe side.

use super::Program;
use super::safe::{Bounds, down, up};

/// Relative slack of rows for rounded coefficients; absolute for small bounds.
const MARGIN: f64 = 1e-11;
/// Integrality tolerance of a derived bound.
const INTEGRAL: f64 = 1e-9;
/// Minimum relative reduction of a continuous variable's domain.
const GAIN: f64 = 0.01;

/// Program by rows and by columns, and a queue of rows to propagate.
pub(super) struct Propagator<'a> {
    program: &'a Program,
    rows_of: Vec<Vec<u32>>,
    queue: Vec<u32>,
    is_queued: Vec<bool>,
}

/// Minimum activity of a row: sum of the finite terms, and number of infinite ones.
struct Activity {
    finite: f64,
    infinite: usize,
}

impl<'a> Propagator<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        let mut rows_of = vec![Vec::new(); program.columns()];
        for row in 0..program.rows() {
            program.entries(row).for_each(|(column, _)| rows_of[column].push(row as u32));
        }
        Self { program, rows_of, queue: Vec::new(), is_queued: vec![false; program.rows()] }
    }

    /// Propagates all rows. Returns false if there is no solution within the bounds.
    pub(super) fn all(&mut self, bounds: &mut Bounds) -> bool {
        (0..self.program.rows()).rev().for_each(|row| self.push(row as u32));
        self.run(bounds)
    }

    /// Propagates after the bounds of some columns have changed. Returns false if there is no solution within them.
    pub(super) fn after(&mut self, changed: &[usize], bounds: &mut Bounds) -> bool {
        changed.iter().for_each(|column| self.touch(*column));
        self.run(bounds)
    }

    fn touch(&mut self, column: usize) {
        for index in 0..self.rows_of[column].len() {
            self.push(self.rows_of[column][index]);
        }
    }

    fn push(&mut self, row: u32) {
        if !std::mem::replace(&mut self.is_queued[row as usize], true) {
            self.queue.push(row);
        }
    }

    fn run(&mut self, bounds: &mut Bounds) -> bool {
        // Long chains of small reductions are cut off.
        let mut steps = 20 * self.program.rows() + 1000;
        let mut is_open = true;
        while let Some(row) = self.queue.pop() {
            self.is_queued[row as usize] = false;
            let row = row as usize;
            if steps == 0 || !is_open {
                continue;
            }
            steps -= 1;
            // `sum ≤ upper`, and `−sum ≤ −lower`.
            let (lower, upper) = (self.program.row_lower[row], self.program.row_upper[row]);
            is_open = self.at_most(row, 1.0, upper, bounds) && self.at_most(row, -1.0, -lower, bounds);
        }
        is_open
    }

    fn at_most(&mut self, row: usize, sign: f64, most: f64, bounds: &mut Bounds) -> bool {
        if most == f64::INFINITY {
            return true;
        }
        let most = up(most + MARGIN * most.abs().max(1.0));
        let program = self.program;
        let mut least = Activity { finite: 0.0, infinite: 0 };
        for (column, value) in program.entries(row) {
            match term(sign * value, column, bounds) {
                end if end.is_finite() => least.finite = down(least.finite + end),
                _ => least.infinite += 1,
            }
        }
        if least.infinite == 0 && least.finite > most {
            return false;
        }
        if least.infinite > 1 {
            return true;
        }
        for (column, value) in program.entries(row) {
            let value = sign * value;
            let own = term(value, column, bounds);
            let others = match (own.is_finite(), least.infinite) {
                (true, 0) => down(least.finite - up(up(own))),
                (false, 1) => least.finite,
                _ => continue,
            };
            let rest = up(most - others);
            let is_changed = if value > 0.0 {
                self.below(column, up(rest / value), bounds)
            } else {
                self.above(column, down(rest / value), bounds)
            };
            if is_changed {
                if bounds.lower[column] > bounds.upper[column] {
                    return false;
                }
                self.touch(column);
            }
        }
        true
    }

    fn below(&self, column: usize, limit: f64, bounds: &mut Bounds) -> bool {
        let (lower, upper) = (bounds.lower[column], &mut bounds.upper[column]);
        let limit = if self.program.is_integer[column] { (limit + INTEGRAL).floor() } else { limit };
        let is_changed = is_gain(*upper - limit, *upper - lower, self.program.is_integer[column]) && limit < *upper;
        if is_changed {
            *upper = if self.program.is_integer[column] { limit } else { limit.max(lower) };
        }
        is_changed
    }

    fn above(&self, column: usize, limit: f64, bounds: &mut Bounds) -> bool {
        let (lower, upper) = (&mut bounds.lower[column], bounds.upper[column]);
        let limit = if self.program.is_integer[column] { (limit - INTEGRAL).ceil() } else { limit };
        let is_changed = is_gain(limit - *lower, upper - *lower, self.program.is_integer[column]) && limit > *lower;
        if is_changed {
            *lower = if self.program.is_integer[column] { limit } else { limit.min(upper) };
        }
        is_changed
    }
}

fn is_gain(by: f64, of: f64, is_integer: bool) -> bool {
    is_integer || of.is_infinite() || by > GAIN * of
}

/// Returns the minimum of a term, rounded down.
fn term(value: f64, column: usize, bounds: &Bounds) -> f64 {
    let limit = if value > 0.0 { bounds.lower[column] } else { bounds.upper[column] };
    if limit == 0.0 { 0.0 } else { down(value * limit) }
}
