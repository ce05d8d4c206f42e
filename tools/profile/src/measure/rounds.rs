//! Runs in rounds, until they say nothing new.
//!
//! Other processes only ever make things slower, and for a while. So of each round the lower quartile counts, which a few runs
//! that were disturbed do not change, and of all rounds the best. It is believed when other rounds come close to it.

use divi_runtime::{Recording, Runtime, Span, TensorData, TensorRef, Ticket, random_input};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

/// About how long a round takes: short enough to find a time when nothing else runs.
const ROUND: Duration = Duration::from_millis(200);

/// Runs of a round.
const RUNS: std::ops::RangeInclusive<f64> = 5.0..=1000.0;

/// There are so many rounds at least, unless time is up.
const LEAST_ROUNDS: usize = 6;

/// How little two more rounds must change.
const CHANGE: f64 = 0.01;

/// How close to the best other rounds must come, and how many.
const CLOSE: f64 = 0.05;
const WITNESSES: usize = 3;

/// Rounds in which whole runs are measured.
const WHOLE_ROUNDS: usize = 5;

/// Requests in flight of those that are handed from thread to thread.
pub(super) const IN_LINE: usize = 2;

/// What was measured, in microseconds.
pub(super) struct Stable {
    /// What was asked for.
    pub(super) times: Vec<f64>,
    pub(super) rounds: usize,
    pub(super) runs: usize,
    /// Whether rounds agreed before time was up.
    pub(super) is_sure: bool,
}

/// A bundle that is run again and again.
pub(super) struct Rounds<'a> {
    runtime: &'a Runtime,
    inputs: Vec<(&'a str, Arc<TensorData>)>,
    /// Of a round.
    runs: usize,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(runtime: &'a Runtime) -> Result<Self, String> {
        // What they are changes nothing but numbers.
        let make = |(name, tensor)| Ok((name, Arc::new(runtime.adopt(random_input(name, tensor, 0)?)?)));
        let inputs: Result<Vec<(&str, Arc<TensorData>)>, divi_runtime::Error> = runtime.inputs().map(make).collect();
        let inputs = inputs.map_err(|error| error.to_string())?;
        let mut rounds = Self { runtime, inputs, runs: 1 };
        // The first finds cold caches and pages that are not there.
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

    /// Until the times that `read` finds in a round's spans are stable or time is up. `tell` is told the share of the time that
    /// has passed, and how much the times are together.
    pub(super) fn until_stable(
        &self,
        limit: Duration,
        read: impl Fn(&[Span]) -> Vec<f64>,
        tell: impl Fn(f64, f64),
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
            tell(start.elapsed().div_duration_f64(limit.max(ROUND)), best);
            stable.is_sure = history.is_stable();
            if stable.is_sure || start.elapsed() >= limit {
                return Ok(stable);
            }
        }
    }

    /// What a whole run takes in the mean of the median round, in microseconds, without clocks that are read between tasks: that
    /// threads which help each other are late now and then belongs to it.
    pub(super) fn whole_run(&self) -> Result<f64, String> {
        let mut rounds = vec![];
        for _ in 0..WHOLE_ROUNDS {
            let start = Instant::now();
            (0..self.runs).try_for_each(|_| self.run())?;
            rounds.push(start.elapsed().as_secs_f64() * 1e6 / self.runs as f64);
        }
        Ok(at(rounds, 0.5))
    }

    /// The same where requests are handed from thread to thread, as on several devices, and each comes in while the one before is
    /// being computed. Others wait for a device that is late, and do not wait less for one that is early, so what counts is what
    /// nine of ten requests take at most.
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
        Ok(at(takes.collect(), 0.9))
    }
}

fn finish(ticket: Ticket) -> Result<(), String> {
    ticket.wait().map(|_| ()).map_err(|error| error.to_string())
}

/// What all times are together.
#[derive(Default)]
struct History {
    /// In each round.
    rounds: Vec<f64>,
    /// At their best, after each round.
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

/// Zero of none.
pub(super) fn lower_quartile(times: Vec<f64>) -> f64 {
    at(times, 0.25)
}

/// The time that a share of all does not exceed; zero of none.
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
    }
}
