//! Rounds of runs, until their times are stable.
//!
//! Other processes only ever slow runs down, and temporarily. Therefore each round is represented by its lower quartile, which a
//! few disturbed runs do not affect, and the result is the minimum over all rounds. It is accepted if other rounds come close.

use divi_runtime::{Recording, Runtime, Span, TensorData, TensorRef, Ticket, random_input};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

/// Approximate duration of a round: short enough to find an undisturbed period.
const ROUND: Duration = Duration::from_millis(200);

/// Number of runs of a round.
const RUNS: std::ops::RangeInclusive<f64> = 5.0..=1000.0;

/// Minimum number of runs of each part of a burst.
const LEAST_RUNS: usize = 4;

/// Minimum number of rounds, unless the time limit is reached.
const LEAST_ROUNDS: usize = 6;

/// Maximum relative change by the last two rounds.
const CHANGE: f64 = 0.01;

/// Relative distance from the minimum that counts as close.
const CLOSE: f64 = 0.05;
/// Minimum number of close rounds.
const WITNESSES: usize = 3;

/// Number of rounds of whole runs.
const WHOLE_ROUNDS: usize = 5;

/// Duration in microseconds from which a request is long: several times a delay by the scheduler of the operating system.
const LONG: f64 = 10_000.0;

/// Requests in flight in a measurement of pipelined requests.
pub(super) const IN_LINE: usize = 2;

/// Measured times, in microseconds.
pub(super) struct Stable {
    /// Times that were read from the spans.
    pub(super) times: Vec<f64>,
    pub(super) rounds: usize,
    pub(super) runs: usize,
    /// True if rounds agreed before the time limit.
    pub(super) is_sure: bool,
}

/// A bundle that is run repeatedly.
pub(crate) struct Rounds<'a> {
    runtime: &'a Runtime,
    inputs: Vec<(&'a str, Arc<TensorData>)>,
    /// Number of runs of a round.
    runs: usize,
}

impl<'a> Rounds<'a> {
    pub(crate) fn new(runtime: &'a Runtime) -> Result<Self, String> {
        // The values of inputs do not affect times.
        let make = |(name, tensor)| Ok((name, Arc::new(runtime.adopt(random_input(name, tensor, 0)?)?)));
        let inputs: Result<Vec<(&str, Arc<TensorData>)>, divi_runtime::Error> = runtime.inputs().map(make).collect();
        let inputs = inputs.map_err(|error| error.to_string())?;
        let mut rounds = Self { runtime, inputs, runs: 1 };
        // The first run meets cold caches and page faults.
        rounds.run()?;
        let start = Instant::now();
        rounds.run()?;
        let runs = ROUND.div_duration_f64(start.elapsed().max(Duration::from_nanos(1)));
        rounds.runs = runs.clamp(*RUNS.start(), *RUNS.end()) as usize;
        Ok(rounds)
    }

    fn run(&self) -> Result<(), String> {
        let views: Vec<(&str, TensorRef<'_>)> =
            self.inputs.iter().map(|(name, tensor)| (*name, tensor.view())).collect();
        self.runtime.run(&views).map(|_| ()).map_err(|error| error.to_string())
    }

    /// Runs rounds until the times that `read` extracts from a round's spans are stable, or the time limit is reached. Calls
    /// `notify` with the elapsed share of the limit and the sum of the times.
    pub(super) fn until_stable(
        &self,
        limit: Duration,
        read: impl Fn(&[Span]) -> Vec<f64>,
        notify: impl Fn(f64, f64),
    ) -> Result<Stable, String> {
        let start = Instant::now();
        let mut stable = Stable { times: vec![], rounds: 0, runs: 0, is_sure: false };
        let mut history = History::default();
        loop {
            self.runtime.record(Recording::Tasks);
            let mut runs = 0;
            while runs < self.runs && (runs < *RUNS.start() as usize || start.elapsed() < limit) {
                self.run()?;
                runs += 1;
            }
            self.runtime.record(Recording::Off);
            let (spans, _) = self.runtime.take_spans();
            stable.rounds += 1;
            stable.runs += runs;
            let times = read(&spans);
            history.rounds.push(times.iter().sum());
            if stable.times.is_empty() {
                stable.times = times;
            } else {
                stable.times.iter_mut().zip(times).for_each(|(best, time)| *best = best.min(time));
            }
            let best = stable.times.iter().sum();
            history.best.push(best);
            notify(start.elapsed().div_duration_f64(limit.max(ROUND)), best);
            stable.is_sure = history.is_stable();
            if stable.is_sure || start.elapsed() >= limit {
                return Ok(stable);
            }
        }
    }

    /// Runs for about twice the duration, and at least a few times: with the times of tasks, which `read` extracts from the
    /// spans, then without. Returns the times of tasks and the lower quartile of the times of whole runs, in microseconds.
    pub(crate) fn burst(
        &self,
        duration: Duration,
        read: impl Fn(&[Span]) -> Vec<f64>,
    ) -> Result<(Vec<f64>, f64), String> {
        let timed = || {
            let (mut runs, start) = (vec![], Instant::now());
            while runs.len() < LEAST_RUNS || start.elapsed() < duration {
                let start = Instant::now();
                self.run()?;
                runs.push(start.elapsed().as_secs_f64() * 1e6);
            }
            Ok::<_, String>(runs)
        };
        // Other bundles ran in between: threads sleep, and caches are cold.
        self.run()?;
        self.runtime.record(Recording::Tasks);
        let recorded = timed();
        self.runtime.record(Recording::Off);
        let (spans, _) = self.runtime.take_spans();
        recorded?;
        Ok((read(&spans), lower_quartile(timed()?)))
    }

    /// Returns the mean time of a whole run in the median round, in microseconds, without clock reads between tasks. It includes
    /// occasional delays between cooperating threads.
    pub(super) fn whole_run(&self) -> Result<f64, String> {
        let mut rounds = vec![];
        for _ in 0..WHOLE_ROUNDS {
            let start = Instant::now();
            (0..self.runs).try_for_each(|_| self.run())?;
            rounds.push(start.elapsed().as_secs_f64() * 1e6 / self.runs as f64);
        }
        Ok(at(rounds, 0.5))
    }

    /// Returns the 90th percentile of the time per request if requests are pipelined through threads, as on several devices, and
    /// each is submitted while the previous one runs. Other devices wait for a late device, but gain nothing from an early one.
    /// Delays average out in long requests, so for these it is the median.
    pub(super) fn whole_run_of_a_line(&self) -> Result<f64, String> {
        let (mut line, mut ends) = (VecDeque::new(), vec![]);
        let start = Instant::now();
        for _ in 0..self.runs * WHOLE_ROUNDS {
            if line.len() == IN_LINE {
                line.pop_front().map_or(Ok(()), finish)?;
                ends.push(start.elapsed().as_secs_f64() * 1e6);
            }
            line.push_back(self.runtime.submit_shared(&self.inputs).map_err(|error| error.to_string())?);
        }
        line.into_iter().try_for_each(finish)?;
        let takes = ends.windows(IN_LINE + 1).map(|ends| (ends[IN_LINE] - ends[0]) / IN_LINE as f64);
        Ok(late(takes.collect()))
    }
}

fn finish(ticket: Ticket) -> Result<(), String> {
    ticket.wait().map(|_| ()).map_err(|error| error.to_string())
}

/// Sums of all times.
#[derive(Default)]
struct History {
    /// Sum in each round.
    rounds: Vec<f64>,
    /// Sum of the minima, after each round.
    best: Vec<f64>,
}

impl History {
    fn is_stable(&self) -> bool {
        let [.., before, _, best] = self.best[..] else { return false };
        let is_close = |round: &&f64| **round <= (1.0 + CLOSE) * best;
        self.rounds.len() >= LEAST_ROUNDS
            && before - best <= CHANGE * best
            && self.rounds.iter().filter(is_close).count() >= WITNESSES
    }
}

/// Returns the lower quartile; zero for an empty list.
pub(super) fn lower_quartile(times: Vec<f64>) -> f64 {
    at(times, 0.25)
}

/// Returns the 90th percentile of short requests, and the median of long ones.
fn late(times: Vec<f64>) -> f64 {
    let median = at(times.clone(), 0.5);
    if median < LONG { at(times, 0.9) } else { median }
}

/// Returns a quantile; zero for an empty list.
fn at(mut times: Vec<f64>, share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get((times.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_stable_when_they_agree() {
        let is_stable = |rounds: &[f64], best: &[f64]| History { rounds: rounds.into(), best: best.into() }.is_stable();
        let quiet = [100.0; 6];
        assert!(is_stable(&quiet, &quiet));
        assert!(!is_stable(&quiet[..5], &quiet[..5]), "too few");
        assert!(!is_stable(&quiet, &[110.0, 110.0, 110.0, 102.0, 101.0, 100.0]), "still changes");
        assert!(!is_stable(&[100.0, 104.0, 150.0, 180.0, 120.0, 160.0], &quiet), "no other round is as good");
        assert!(is_stable(&[100.0, 104.0, 150.0, 180.0, 120.0, 103.0], &quiet));
    }

    #[test]
    fn disturbed_runs_do_not_count() {
        assert_eq!(lower_quartile(vec![90.0, 11.0, 10.0, 10.5, 70.0]), 10.5);
        assert_eq!(lower_quartile(vec![5.0]), 5.0);
        assert_eq!(lower_quartile(vec![]), 0.0);
        let times = |unit: f64| (1..=11).map(|time| f64::from(time) * unit).collect();
        assert_eq!((late(times(1.0)), late(times(10_000.0))), (10.0, 60_000.0));
    }
}
