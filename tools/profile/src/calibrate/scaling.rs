//! Times on several threads compared with those on one.

use super::median;
use crate::measure::record::is_same;
use divi_cost::profile::Entry;
use std::ops::Range;

/// Shortest and longest time in microseconds on one thread of tasks that show the time to distribute them to several threads.
const FORKED: Range<f64> = 30.0..300.0;
/// The same of tasks for which that time is negligible.
const LONG: Range<f64> = 1000.0..f64::INFINITY;

/// Least share of the first thread's rate that each further one adds if nothing else runs.
const LEAST_SCALING: f64 = 0.25;

/// Properties of several threads.
#[derive(Debug, PartialEq)]
pub(super) struct Scaling {
    /// Time in microseconds to distribute a task to the threads, if it can be determined.
    pub(super) fork: Option<f64>,
    /// Share of the first thread's rate that each further one adds, if it can be determined.
    pub(super) scaling: Option<f64>,
    /// Note if the threads have no cores of their own.
    pub(super) note: Option<String>,
}

impl Scaling {
    /// Compares the entries of equal tasks.
    pub(super) fn of(single: &[Entry], several: &[Entry], threads: u32) -> Self {
        let micros = |entry: &Entry| entry.micros.values().next().copied();
        let pairs: Vec<(f64, f64)> = single
            .iter()
            .filter_map(|entry| {
                let other = several.iter().find(|other| is_same(entry, other))?;
                Some((micros(entry)?, micros(other)?))
            })
            .collect();
        let of = |range: Range<f64>| pairs.iter().filter(move |(alone, _)| range.contains(alone));
        let round = |value: f64| (value * 100.0).round() / 100.0;
        let speedup = median(of(LONG).map(|(alone, shared)| alone / shared).collect());
        let further = f64::from(threads.max(2) - 1);
        let scaling = speedup.map(|speedup| round(((speedup - 1.0) / further).min(1.0)));
        if let Some((speedup, _)) = speedup.zip(scaling).filter(|(_, scaling)| *scaling < LEAST_SCALING) {
            let note = format!(
                "note: {threads} threads were {speedup:.1} times as fast as one: other processes use the cores, or threads share \
                 them; predictions for several threads will be too short"
            );
            return Self { fork: None, scaling: None, note: Some(note) };
        }
        // Time beyond the share of the time on one thread.
        let speedup = 1.0 + further * scaling.unwrap_or(1.0);
        let fork = median(of(FORKED).map(|(alone, shared)| shared - alone / speedup).collect());
        Self { fork: fork.map(|fork| round(fork.max(0.0))), scaling, note: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_cost::profile::Profile;

    /// Builds entries of distinct tasks with some times.
    fn entries(micros: &[f64]) -> Vec<Entry> {
        let entry = |(index, micros): (usize, &f64)| {
            let shape = format!("[1, {}]", index + 1);
            format!(r#"{{"ops": ["Relu"], "in": [{shape}], "out": {shape}, "dtype": "f32", "us": {{"1": {micros}}}}}"#)
        };
        let entries: Vec<String> = micros.iter().enumerate().map(entry).collect();
        let entries = entries.join(", ");
        let text = format!(r#"{{"format": "divi-profile/1", "device": "d", "runtime": "r", "entries": [{entries}]}}"#);
        Profile::from_json(&text).unwrap().entries().to_vec()
    }

    const SINGLE: [f64; 5] = [10.0, 40.0, 100.0, 200.0, 2000.0];

    #[test]
    fn fork_is_the_median_overhead_of_short_tasks() {
        let scaling = Scaling::of(&entries(&SINGLE), &entries(&[9.0, 24.0, 55.5, 190.0, 1000.0]), 2);
        assert_eq!(scaling, Scaling { fork: Some(5.5), scaling: Some(1.0), note: None });
        assert_eq!(Scaling::of(&entries(&SINGLE), &[], 2), Scaling { fork: None, scaling: None, note: None });
    }

    /// Threads of one core, or cores that share power, add less than the first one.
    #[test]
    fn scaling_is_the_median_of_long_tasks() {
        let scaling = Scaling::of(&entries(&SINGLE), &entries(&[9.0, 30.0, 71.5, 140.0, 1250.0]), 2);
        assert_eq!(scaling, Scaling { fork: Some(9.0), scaling: Some(0.6), note: None });
        let scaling = Scaling::of(&entries(&SINGLE), &entries(&[9.0, 30.0, 71.5, 140.0, 1000.0]), 5);
        assert_eq!(scaling.scaling, Some(0.25));
    }

    /// If another process uses a core, the overhead is not that of the distribution.
    #[test]
    fn cores_that_are_not_free_are_reported() {
        let Scaling { fork, scaling, note } =
            Scaling::of(&entries(&SINGLE), &entries(&[9.0, 41.0, 102.0, 201.0, 1900.0]), 2);
        assert_eq!((fork, scaling), (None, None));
        assert!(note.unwrap().starts_with("note: 2 threads were 1.1 times as fast as one: "));
    }
}
