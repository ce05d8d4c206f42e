//! Valid inequalities: a device runs one task at a time.
//!
//! All descendants of one task that are ancestors of another run between the two, so on each device their total time is
//! at most the time between them. The same holds between time zero, or a common head of a set, and a task, and between
//! a task and the makespan. There are many such rows; those that the relaxation's solution violates are added.

use std::time::Instant;

use super::latency::Latency;
use crate::mip::{Column, Limits, Program};
use crate::model::error::Error;

/// Minimum violation of a row, in horizons.
const BROKEN: f64 = 1e-4;
/// Maximum number of rounds.
const ROUNDS: usize = 30;
/// A round that improves the bound by less is the last.
const GAIN: f64 = 1e-4;

/// Result of adding rows.
pub(super) struct Relaxed {
    /// Verified lower bound on the objective.
    pub(super) bound: f64,
    pub(super) iterations: u64,
}

/// Adds violated rows until the relaxation violates none, or its bound stalls.
pub(super) fn add(model: &Latency<'_>, program: &mut Program, limits: &Limits) -> Result<Relaxed, Error> {
    let since = Instant::now();
    let is_over = || limits.seconds.is_some_and(|seconds| since.elapsed().as_secs_f64() >= seconds);
    let mut relaxation = program.relaxation(limits)?;
    let mut relaxed = Relaxed { bound: 0.0, iterations: 0 };
    for _ in 0..ROUNDS {
        let outcome = relaxation.solve()?;
        relaxed.iterations += outcome.iterations;
        // The relaxation has the program's rows.
        let bound = program.safe_bound(&outcome);
        let Some(values) = outcome.values.filter(|_| outcome.finished) else { break };
        let gain = bound - relaxed.bound;
        relaxed.bound = relaxed.bound.max(bound);
        let rows = violated(model, &values, &is_over);
        if rows.is_empty() || is_over() || gain < GAIN || relaxed.iterations >= limits.iterations {
            break;
        }
        for row in rows {
            relaxation.at_least(row.least, &row.terms)?;
            program.at_least(row.least, row.terms);
        }
    }
    Ok(relaxed)
}

/// `terms ≥ least`.
struct Row {
    least: f64,
    terms: Vec<(Column, f64)>,
}

/// Returns for each device the most violated row of each task, and of the makespan.
fn violated(model: &Latency<'_>, values: &[f64], is_over: &dyn Fn() -> bool) -> Vec<Row> {
    let instance = model.instance;
    let tasks: Vec<usize> = (0..instance.tasks()).collect();
    let mut rows = Vec::new();
    for device in 0..instance.devices() {
        let work = Work::new(model, values, device);
        for &task in &tasks {
            if is_over() {
                return rows;
            }
            let before: Vec<usize> = tasks.iter().copied().filter(|other| model.times.before(*other, task)).collect();
            let after: Vec<usize> = tasks.iter().copied().filter(|other| model.times.before(task, *other)).collect();
            let until = |least: f64, set: Vec<usize>, from: Option<usize>| work.row(Some(task), from, least, &set);
            rows.extend(work.worst_before(task, &before).map(|(least, set, from)| until(least, set, from)));
            rows.extend(work.worst_after(task, &after).map(|(least, set)| work.row(None, Some(task), least, &set)));
        }
        rows.extend(work.worst_window(&tasks).map(|(least, set)| work.row(None, None, least, &set)));
    }
    rows
}

/// Work of one device in a solution of the relaxation.
struct Work<'a> {
    model: &'a Latency<'a>,
    device: usize,
    /// By task: time on the device.
    here: Vec<f64>,
    start: Vec<f64>,
    end: Vec<f64>,
    makespan: f64,
}

impl<'a> Work<'a> {
    fn new(model: &'a Latency<'a>, values: &[f64], device: usize) -> Self {
        let sum = |terms: Vec<(Column, f64)>| terms.iter().map(|(column, time)| column.of(values) * time).sum::<f64>();
        let tasks = 0..model.instance.tasks();
        let start: Vec<f64> = tasks.clone().map(|task| model.start[task].of(values)).collect();
        let end = tasks.clone().map(|task| start[task] + sum(model.duration(task, 1.0))).collect();
        let here = tasks.map(|task| sum(model.duration_on(task, device, 1.0).into_iter().collect())).collect();
        Self { model, device, here, start, end, makespan: model.makespan.of(values) }
    }

    /// Returns the most violated row for the ancestors of a task: a time or another task, and the set that runs after
    /// it.
    fn worst_before(&self, task: usize, before: &[usize]) -> Option<(f64, Vec<usize>, Option<usize>)> {
        let mut worst = (self.start[task] + BROKEN, None);
        let after = |first: usize| before.iter().copied().filter(move |other| self.model.times.before(first, *other));
        for &first in before {
            let needed = self.end[first] + after(first).map(|other| self.here[other]).sum::<f64>();
            if needed > worst.0 {
                worst = (needed, Some((0.0, Some(first))));
            }
        }
        for (head, work) in self.by_head(before) {
            if head + work > worst.0 {
                worst = (head + work, Some((head, None)));
            }
        }
        let (least, from) = worst.1?;
        let set = match from {
            Some(first) => after(first).collect(),
            None => before.iter().copied().filter(|other| self.head(*other) >= least).collect(),
        };
        Some((least, set, from))
    }

    /// Returns the most violated row for the descendants of a task: a tail, and the set of tasks with at least that
    /// tail.
    fn worst_after(&self, task: usize, after: &[usize]) -> Option<(f64, Vec<usize>)> {
        let mut worst = (self.makespan + BROKEN, None);
        for (tail, work) in self.by_tail(after) {
            if self.end[task] + work + tail > worst.0 {
                worst = (self.end[task] + work + tail, Some(tail));
            }
        }
        let least = worst.1?;
        Some((least, after.iter().copied().filter(|other| self.tail(*other) >= least).collect()))
    }

    /// Returns the most violated row for a window between a head and a tail.
    fn worst_window(&self, tasks: &[usize]) -> Option<(f64, Vec<usize>)> {
        let mut worst = (self.makespan + BROKEN, None);
        for &first in tasks {
            let head = self.head(first);
            let inside: Vec<usize> = tasks.iter().copied().filter(|other| self.head(*other) >= head).collect();
            for (tail, work) in self.by_tail(&inside) {
                if head + work + tail > worst.0 {
                    worst = (head + work + tail, Some((head, tail)));
                }
            }
        }
        let (head, tail) = worst.1?;
        let inside = |other: &usize| self.head(*other) >= head && self.tail(*other) >= tail;
        Some((head + tail, tasks.iter().copied().filter(inside).collect()))
    }

    /// Returns each head with the total work of the tasks with this head or a later one.
    fn by_head(&self, set: &[usize]) -> Vec<(f64, f64)> {
        self.falling(set, |task| self.head(task))
    }

    fn by_tail(&self, set: &[usize]) -> Vec<(f64, f64)> {
        self.falling(set, |task| self.tail(task))
    }

    fn falling(&self, set: &[usize], key: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
        let mut sorted: Vec<(f64, f64)> = set.iter().map(|task| (key(*task), self.here[*task])).collect();
        sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut sum = 0.0;
        sorted.iter_mut().for_each(|(_, work)| {
            sum += *work;
            *work = sum;
        });
        sorted
    }

    fn head(&self, task: usize) -> f64 {
        self.model.times.least_head(task) / self.model.horizon
    }

    fn tail(&self, task: usize) -> f64 {
        self.model.times.least_tail(task) / self.model.horizon
    }

    /// Builds the row: from the end of `from` (or time zero) to the start of `until` (or the makespan) there is at
    /// least `least` plus the set's work.
    fn row(&self, until: Option<usize>, from: Option<usize>, least: f64, set: &[usize]) -> Row {
        let end = until.map_or(self.model.makespan, |task| self.model.start[task]);
        let mut terms = vec![(end, 1.0)];
        if let Some(from) = from {
            terms.push((self.model.start[from], -1.0));
            terms.extend(self.model.duration(from, -1.0));
        }
        terms.extend(set.iter().filter_map(|task| self.model.duration_on(*task, self.device, -1.0)));
        Row { least, terms }
    }
}
