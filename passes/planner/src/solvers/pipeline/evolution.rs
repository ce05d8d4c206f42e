//! Biased random-key genetic algorithm (BRKGA): each generation consists of the elite of the previous one, crossovers
//! and mutants. It depends on the previous generation only.

use std::panic::resume_unwind;
use std::thread;
use std::time::Instant;

use crate::model::budget::Budget;
use crate::model::options::Options;
use crate::model::units::deadline;
use crate::random::Random;
use crate::solvers::chains::cores;

/// Default number of evaluations.
const EVALUATIONS: u64 = 10_000;
/// Maximum size of the population.
const POPULATION: u64 = 100;
/// Shares of a generation that are elite, and that are mutants.
const ELITE: f64 = 0.2;
const MUTANTS: f64 = 0.15;
/// Probability that a child inherits a key from its elite parent.
const BIAS: f64 = 0.7;

/// A set of keys and its fitness; smaller is better.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) keys: Vec<f64>,
    pub(super) fitness: f64,
}

pub(super) struct Evolution {
    /// Number of keys in a set.
    keys: usize,
    size: usize,
    /// Number of elite members; 0 for a purely random search.
    elite: usize,
    /// Sorted by fitness, best first.
    population: Vec<Member>,
    random: Random,
    budget: Budget,
}

impl Evolution {
    /// Creates a search with the options' limit of evaluations, and at most `seconds`.
    pub(super) fn new(keys: usize, learns: bool, options: &Options, seconds: Option<f64>) -> Self {
        let mut budget = Budget::new(options.limit, Instant::now(), EVALUATIONS);
        if let (Some(seconds), None) = (seconds, budget.deadline) {
            budget.deadline = deadline(Instant::now(), seconds);
        }
        // The paper's sizes: 10 for 100 sets of keys, 100 for 10,000.
        let size = ((budget.iterations as f64).sqrt() as u64).clamp(4, POPULATION) as usize;
        let elite = if learns { ((size as f64 * ELITE) as usize).max(1) } else { 0 };
        Self { keys, size, elite, population: Vec::new(), random: Random::new(options.seed), budget }
    }

    /// Makes the next sets of keys, evaluates them on all cores, and ranks them by the fitness that `evaluate` returns
    /// first. Returns its other results, set by set; `None` if the budget is spent.
    pub(super) fn generation<T: Send>(
        &mut self,
        evaluate: impl Fn(&[Vec<f64>]) -> Vec<(f64, T)> + Sync,
    ) -> Option<impl Iterator<Item = T>> {
        if self.budget.iterations == 0 || self.budget.is_late() {
            return None;
        }
        let kept = self.elite.min(self.population.len());
        let count = self.budget.iterations.min((self.size - kept) as u64) as usize;
        self.budget.iterations -= count as u64;
        let children: Vec<Vec<f64>> = (0..count).map(|index| self.child(kept, index, count)).collect();
        let share = children.len().div_ceil(cores()).max(1);
        let evaluated: Vec<(f64, T)> = thread::scope(|scope| {
            let evaluate = &evaluate;
            let threads: Vec<_> = children.chunks(share).map(|some| scope.spawn(move || evaluate(some))).collect();
            let join =
                |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            threads.into_iter().flat_map(join).collect()
        });
        let (fitness, found): (Vec<f64>, Vec<T>) = evaluated.into_iter().unzip();
        self.population.truncate(self.elite);
        self.population.extend(children.into_iter().zip(fitness).map(|(keys, fitness)| Member { keys, fitness }));
        self.population.sort_by(|a, b| a.fitness.total_cmp(&b.fitness));
        Some(found.into_iter())
    }

    pub(super) fn best(&self) -> Option<&Member> {
        self.population.first()
    }

    /// Returns the keys of a crossover of an elite member with another one, or random keys.
    fn child(&mut self, elite: usize, index: usize, count: usize) -> Vec<f64> {
        let (population, random) = (&self.population, &mut self.random);
        let mutants = (count as f64 * MUTANTS).ceil() as usize;
        if elite == 0 || population.len() <= elite || index < mutants {
            return (0..self.keys).map(|_| random.unit()).collect();
        }
        let (better, other) = (random.below(elite), elite + random.below(population.len() - elite));
        let keys = population[better].keys.iter().zip(&population[other].keys);
        keys.map(|(better, other)| if random.chance(BIAS) { *better } else { *other }).collect()
    }
}
