//! Budget of a local search, and its independent chains on several cores.

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

/// Number of chains that share the trials, independent of the number of cores.
const CHAINS: usize = 4;

/// Chains with at most this many trials run on the calling thread.
const SHORT: u64 = 500;

/// Weight of the user's effort for searches, and the minimum share: searches gain more per unit of effort than proofs
/// do, and most of it early.
const SEARCH_WEIGHT: f64 = 4.0;
const LEAST_SHARE: f64 = 0.25;

/// Budget of a search (chains, and the trials or the time of each) and the recipients of its results.
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
    /// Number of trial schedules.
    Trials(u64),
    /// Time limit.
    Time { since: Instant, seconds: f64 },
}

impl Allowance {
    /// Returns the budget that the options allow; without a limit, `trials` scaled by the effort.
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

    /// Replaces the budget by a time limit on all cores.
    pub(crate) fn timed(self, seconds: f64) -> Self {
        Self { effort: Effort::Time { since: Instant::now(), seconds }, chains: cores(), ..self }
    }

    /// Reduces the number of trials to a share of it.
    pub(crate) fn share(mut self, share: f64) -> Self {
        if let Effort::Trials(trials) = &mut self.effort {
            *trials = (*trials as f64 * share).ceil() as u64;
        }
        self
    }

    /// Leaves cores to concurrent solvers, if the budget is a time limit.
    pub(crate) fn beside(mut self, others: usize) -> Self {
        if matches!(self.effort, Effort::Time { .. }) {
            self.chains = self.chains.saturating_sub(others).max(1);
        }
        self
    }

    /// Shares the incumbent with other searches, and stops when it is proven optimal.
    pub(crate) fn sharing(self, incumbent: &SharedIncumbent) -> Self {
        Self { incumbent: incumbent.clone(), ..self }
    }

    /// Returns the share of a chain's budget that is spent after `trials` trials; 1 or more means exhausted.
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

    /// Runs every chain with its own random generator and returns the result with the least value; ties go to the first
    /// chain.
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
                // A poisoned lock means that another chain has panicked; the scope propagates the panic.
                if let Ok(mut results) = results.lock() {
                    results.push((value, chain, result));
                }
            }
        };
        // The calling thread takes part: a short search ends before other threads have started.
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

    /// Returns the random generator of a chain.
    fn random(&self, chain: usize) -> Random {
        let mut seeds = Random::new(self.seed);
        let mut seed = seeds.next_u64();
        for _ in 0..chain {
            seed = seeds.next_u64();
        }
        Random::new(seed)
    }
}

/// Scales a default number of trials by the effort.
fn worth(options: &Options, trials: u64) -> u64 {
    (trials as f64 * (options.effort * SEARCH_WEIGHT).clamp(LEAST_SHARE, 1.0)) as u64
}

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
