//! Solves modules in parallel, each at most once for each pair of devices at its ends, and only where it matters.
//!
//! Every pair has an initial bound. The shortest chain of bounds determines the pairs to solve next: when all on it are
//! solved, no other chain is shorter. The best chain of schedules gives a cutoff for each pair.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::chain::{self, Table};
use super::module::{Ends, Module};
use crate::model::units::Micros;
use crate::solvers::exact::bounds::longest_path;
use crate::solvers::exact::graph::Graph;
use crate::solvers::exact::search::{Found, Goal, SAME};
use crate::solvers::exact::{Limits, search};

/// A module with devices at its ends, and its best results.
struct Job {
    /// One of the modules that share this job.
    module: usize,
    ends: Ends,
    found: Found,
    /// True if no useful improvement is possible.
    closed: bool,
    /// Maximum effort spent so far; `None` if only its longest path is known.
    given: Option<u64>,
}

/// All modules with all their ends, and the results for each.
pub(crate) struct Solved<'a> {
    modules: &'a [Module],
    jobs: Vec<Job>,
    /// By module and ends: index of the job, and the renaming of devices.
    index: BTreeMap<(usize, Ends), (usize, Vec<usize>)>,
}

impl<'a> Solved<'a> {
    /// Solves the relevant jobs; the result does not depend on the number of threads.
    pub(crate) fn new(modules: &'a [Module], limits: &Limits) -> Self {
        let mut solved = Self::gather(modules);
        let limits = limits.quiet();
        let all: Vec<usize> = (0..solved.jobs.len()).collect();
        let paths = in_parallel(&all, limits.threads, |job| longest_path(&solved.graph(job)));
        for (job, path) in solved.jobs.iter_mut().zip(paths) {
            job.found.bound = path;
        }
        let mut left = limits.extensions;
        while let Some(open) = solved.open().filter(|_| !limits.are_passed()) {
            // Most pairs are never on the shortest chain, so each is evaluated closely when it first is.
            let fresh: Vec<usize> = open.iter().copied().filter(|job| solved.jobs[*job].given.is_none()).collect();
            let share = if fresh.is_empty() { left / open.len() as u64 } else { 0 };
            // A repetition is only worthwhile with much more effort.
            let worth = |job: &usize| solved.jobs[*job].given.is_some_and(|given| share > given.saturating_mul(2));
            let open: Vec<usize> = if fresh.is_empty() { open.into_iter().filter(worth).collect() } else { fresh };
            if open.is_empty() {
                break;
            }
            let useful = solved.useful();
            let limits = Limits { extensions: share, ..limits.clone() };
            let results =
                in_parallel(&open, limits.threads, |job| search(&solved.graph(job), Goal::By(useful[job]), &limits));
            for (job, found) in open.into_iter().zip(results) {
                left = left.saturating_sub(found.extensions);
                solved.jobs[job].keep(found, useful[job], share);
            }
        }
        solved
    }

    /// Creates one job for all modules and ends that are the same problem.
    fn gather(modules: &'a [Module]) -> Self {
        let mut first_with: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
        let mut job_of: BTreeMap<(usize, Ends), usize> = BTreeMap::new();
        let mut solved = Self { modules, jobs: Vec::new(), index: BTreeMap::new() };
        for (number, module) in modules.iter().enumerate() {
            let same = *first_with.entry(module.key()).or_insert(number);
            for ends in module.ends().into_iter().filter(|ends| module.direct(*ends).is_none()) {
                let (representative, names) = module.representative(ends);
                let job = *job_of.entry((same, representative)).or_insert_with(|| {
                    let found = Found::nothing(Micros::ZERO);
                    solved.jobs.push(Job { module: same, ends: representative, found, closed: false, given: None });
                    solved.jobs.len() - 1
                });
                solved.index.insert((number, ends), (job, names));
            }
        }
        solved
    }

    fn graph(&self, job: usize) -> Graph {
        let Job { module, ends, .. } = &self.jobs[job];
        self.modules[*module].pinned(*ends)
    }

    /// Returns the open jobs on the shortest chain of bounds; `None` if there is no chain, if it is as long as the best
    /// chain of schedules, or if all on it are closed.
    fn open(&self) -> Option<Vec<usize>> {
        let tables = self.tables(|found| found.bound);
        let (bound, path) = self.shortest(&tables)?;
        if self.shortest(&self.tables(|found| found.value)).is_some_and(|(value, _)| bound >= value * (1.0 - SAME)) {
            return None;
        }
        let on_path = path.iter().zip(&tables).enumerate();
        let jobs = on_path.filter_map(|(number, (index, table))| self.index.get(&(number, table[*index].0)));
        let mut open: Vec<usize> = jobs.map(|(job, _)| *job).filter(|job| !self.jobs[*job].closed).collect();
        open.sort_unstable();
        open.dedup();
        (!open.is_empty()).then_some(open)
    }

    /// Returns the cutoff of each job: the maximum time for which a chain through it is shorter than the best chain of
    /// schedules.
    fn useful(&self) -> Vec<Micros> {
        let Some((best, _)) = self.shortest(&self.tables(|found| found.value)) else {
            return vec![Micros::INFINITY; self.jobs.len()];
        };
        let tables = self.tables(|found| found.bound);
        let mut useful = vec![Micros::ZERO; self.jobs.len()];
        for (number, (table, others)) in tables.iter().zip(chain::others(&tables, self.devices())).enumerate() {
            for ((ends, _), other) in table.iter().zip(others) {
                if let Some((job, _)) = self.index.get(&(number, *ends)) {
                    useful[*job] = Micros::max(useful[*job], best - other);
                }
            }
        }
        useful
    }

    fn devices(&self) -> usize {
        self.modules[0].graph.devices
    }

    pub(crate) fn shortest(&self, tables: &[Table]) -> Option<(Micros, Vec<usize>)> {
        chain::shortest(tables, self.devices())
    }

    /// Returns a figure for each module and ends.
    pub(crate) fn tables(&self, figure: impl Fn(&Found) -> Micros) -> Vec<Table> {
        let table = |(number, module): (usize, &Module)| {
            let time = |ends| module.direct(ends).or_else(|| self.get(number, ends).map(|(found, _)| figure(found)));
            module.ends().into_iter().map(|ends| (ends, time(ends).unwrap_or(Micros::INFINITY))).collect()
        };
        self.modules.iter().enumerate().map(table).collect()
    }

    /// Returns the results for a module, and the renaming of its devices; `None` if there is nothing to solve.
    pub(crate) fn get(&self, module: usize, ends: Ends) -> Option<(&Found, &[usize])> {
        let (job, names) = self.index.get(&(module, ends))?;
        Some((&self.jobs[*job].found, names.as_slice()))
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.jobs.len()
    }
}

impl Job {
    /// Updates schedule and bound from a search with the cutoff `useful`.
    fn keep(&mut self, found: Found, useful: Micros, given: u64) {
        self.given = Some(given);
        self.found.bound = self.found.bound.max(found.bound);
        if found.value < self.found.value {
            (self.found.value, self.found.sequence) = (found.value, found.sequence);
        }
        self.closed = self.found.bound >= Micros::min(self.found.value, useful) * (1.0 - SAME);
    }
}

/// Maps a function over inputs on several threads; results are in order.
fn in_parallel<T: Send>(inputs: &[usize], threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if threads < 2 || inputs.len() < 2 {
        return inputs.iter().map(|input| work(*input)).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<BTreeMap<usize, T>> = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.min(inputs.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(input) = inputs.get(index) else { break };
                    let result = work(*input);
                    results.lock().expect("no thread panics while it holds the lock").insert(index, result);
                }
            });
        }
    });
    results.into_inner().expect("no thread panics while it holds the lock").into_values().collect()
}
