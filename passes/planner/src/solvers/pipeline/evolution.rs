//! A biased random-key genetic algorithm: generations of keys, of which the best live on, are mixed with others, and are joined
//! by new ones. What a generation is depends on the last one alone.

use std::panic::resume_unwind;
use std::thread;
use std::time::Instant;

use crate::model::budget::Budget;
use crate::model::options::Options;
use crate::model::units::deadline;
use crate::random::Random;
use crate::solvers::chains::cores;

/// Sets of keys that are looked at when nothing is said.
const LOOKS: u64 = 10_000;
/// The largest population.
const POPULATION: u64 = 100;
/// Shares of a generation that live on, and that are new.
const ELITE: f64 = 0.2;
const MUTANTS: f64 = 0.15;
/// Probability that a child has a key of its better parent.
const BIAS: f64 = 0.7;

/// One set of keys, and how good it is: less is better.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) keys: Vec<f64>,
    pub(super) fitness: f64,
}

pub(super) struct Evolution {
    /// Number of keys in a set.
    keys: usize,
    size: usize,
    /// Number of members that live on; none where all are new.
    elite: usize,
    /// The best first.
    population: Vec<Member>,
    random: Random,
    budget: Budget,
}

impl Evolution {
    /// Looks at as many sets of keys as the options say, and no longer than so many seconds.
    pub(super) fn new(keys: usize, learns: bool, options: &Options, seconds: Option<f64>) -> Self {
        let mut budget = Budget::new(options.limit, Instant::now(), LOOKS);
        if let (Some(seconds), None) = (seconds, budget.deadline) {
            budget.deadline = deadline(Instant::now(), seconds);
        }
        // The paper's sizes: 10 for 100 sets of keys, 100 for 10,000.
        let size = ((budget.iterations as f64).sqrt() as u64).clamp(4, POPULATION) as usize;
        let elite = if learns { ((size as f64 * ELITE) as usize).max(1) } else { 0 };
        Self { keys, size, elite, population: Vec::new(), random: Random::new(options.seed), budget }
    }

    /// Makes the next sets of keys, looks at them on all cores, and ranks them by the fitness that `look` returns first. Returns what
    /// else it returns, set by set; none when nothing is left to be spent.
    pub(super) fn generation<T: Send>(
        &mut self,
        look: impl Fn(&[Vec<f64>]) -> Vec<(f64, T)> + Sync,
    ) -> Option<impl Iterator<Item = T>> {
        if self.budget.iterations == 0 || self.budget.is_late() {
            return None;
        }
        let kept = self.elite.min(self.population.len());
        let count = self.budget.iterations.min((self.size - kept) as u64) as usize;
        self.budget.iterations -= count as u64;
        let children: Vec<Vec<f64>> = (0..count).map(|index| self.child(kept, index, count)).collect();
        let share = children.len().div_ceil(cores()).max(1);
        let looks: Vec<(f64, T)> = thread::scope(|scope| {
            let look = &look;
            let threads: Vec<_> = children.chunks(share).map(|some| scope.spawn(move || look(some))).collect();
            let join =
                |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            threads.into_iter().flat_map(join).collect()
        });
        let (fitness, found): (Vec<f64>, Vec<T>) = looks.into_iter().unzip();
        self.population.truncate(self.elite);
        self.population.extend(children.into_iter().zip(fitness).map(|(keys, fitness)| Member { keys, fitness }));
        self.population.sort_by(|a, b| a.fitness.total_cmp(&b.fitness));
        Some(found.into_iter())
    }

    pub(super) fn best(&self) -> Option<&Member> {
        self.population.first()
    }

    /// New keys: those of a child of an elite member and another one, or random ones.
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
