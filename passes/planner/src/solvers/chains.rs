//! Effort of a search, and its chains on several cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::model::observer::Observer;
use crate::model::options::Options;
use crate::model::plan::Limit;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::incumbent::SharedIncumbent;

/// Chains that share a number of trials, whatever the number of cores.
const CHAINS: usize = 4;

/// So many trials a chain are not worth a thread.
const SHORT: u64 = 500;

/// Searches gain more for their effort than proofs do, and find most early: how many times the share of the effort they have,
/// and the least share.
const SEARCH_WEIGHT: f64 = 4.0;
const LEAST_SHARE: f64 = 0.25;

/// Effort of a search: chains, and the trials or the time of each; and where its results are reported.
#[derive(Clone, Debug)]
pub struct Allowance {
    seed: u64,
    chains: usize,
    effort: Effort,
    observer: Observer,
    incumbent: SharedIncumbent,
}

#[derive(Clone, Copy, Debug)]
enum Effort {
    /// So many trial schedules.
    Trials(u64),
    /// Until so much time has passed.
    Time { since: Instant, seconds: f64 },
}

impl Allowance {
    /// Effort that the options allow; with no limit, so many trials.
    pub fn new(options: &Options, trials: u64) -> Self {
        let (chains, effort) = match options.limit {
            Some(Limit::Seconds(seconds)) => (cores(), Effort::Time { since: Instant::now(), seconds }),
            Some(Limit::Iterations(trials)) => (CHAINS, Effort::Trials(trials.div_ceil(CHAINS as u64))),
            None => (CHAINS, Effort::Trials(worth(options, trials).div_ceil(CHAINS as u64))),
        };
        Self {
            seed: options.seed,
            chains,
            effort,
            observer: options.observer.clone(),
            incumbent: SharedIncumbent::default(),
        }
    }

    /// So many seconds on all cores, whatever the options allow.
    pub(crate) fn timed(self, seconds: f64) -> Self {
        Self { effort: Effort::Time { since: Instant::now(), seconds }, chains: cores(), ..self }
    }

    /// A share of the trials.
    pub(crate) fn share(mut self, share: f64) -> Self {
        if let Effort::Trials(trials) = &mut self.effort {
            *trials = (*trials as f64 * share).ceil() as u64;
        }
        self
    }

    /// Leaves so many cores to others, where time is what is spent.
    pub(crate) fn beside(mut self, others: usize) -> Self {
        if matches!(self.effort, Effort::Time { .. }) {
            self.chains = self.chains.saturating_sub(others).max(1);
        }
        self
    }

    /// Shares what is found with other searches, and stops when the shared incumbent is optimal.
    pub(crate) fn sharing(self, incumbent: &SharedIncumbent) -> Self {
        Self { incumbent: incumbent.clone(), ..self }
    }

    /// The share of a chain's effort that is gone after so many trials; 1 and above is all of it.
    pub fn spent(&self, trials: u64) -> f64 {
        if self.incumbent.is_over() {
            return 1.0;
        }
        match self.effort {
            Effort::Trials(most) => trials as f64 / most.max(1) as f64,
            Effort::Time { since, seconds } => since.elapsed().as_secs_f64() / seconds.max(1e-9),
        }
    }

    /// Reports the value of a chain's best solution.
    pub fn report(&self, best: Micros) {
        self.observer.plan(best);
        self.incumbent.report(best);
    }

    /// Runs every chain with its random numbers, and gives back the result with the least value; of equals
    /// the first chain's.
    pub fn best_of<T: Send>(&self, run: impl Fn(Random) -> (Micros, T) + Sync) -> Option<T> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::with_capacity(self.chains));
        let work = || {
            loop {
                let chain = next.fetch_add(1, Ordering::Relaxed);
                if chain >= self.chains {
                    break;
                }
                let (value, result) = run(self.random(chain));
                // Poison means that another chain panicked; the scope will say so.
                if let Ok(mut results) = results.lock() {
                    results.push((value, chain, result));
                }
            }
        };
        // The first thread is this one: a short search is over before others have begun.
        let helpers = if self.is_short() { 0 } else { cores().min(self.chains).saturating_sub(1) };
        thread::scope(|scope| {
            for _ in 0..helpers {
                scope.spawn(work);
            }
            work();
        });
        let results = results.into_inner().unwrap_or_default();
        let best = results.into_iter().min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        best.map(|(_, _, result)| result)
    }

    fn is_short(&self) -> bool {
        matches!(self.effort, Effort::Trials(trials) if trials <= SHORT)
    }

    /// A chain's own random numbers.
    fn random(&self, chain: usize) -> Random {
        let mut seeds = Random::new(self.seed);
        let mut seed = seeds.next_u64();
        for _ in 0..chain {
            seed = seeds.next_u64();
        }
        Random::new(seed)
    }
}

/// A default number of trials, less what is not worth the effort.
fn worth(options: &Options, trials: u64) -> u64 {
    (trials as f64 * (options.effort * SEARCH_WEIGHT).clamp(LEAST_SHARE, 1.0)) as u64
}

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
