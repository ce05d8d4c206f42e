//! A biased random-key genetic algorithm: generations of keys, of which the best live on, are mixed with others, and are joined
//! by new ones. What a generation is depends on the last one alone.

use std::time::Instant;

use crate::model::options::Options;
use crate::model::plan::Limit;
use crate::random::Random;

/// Sets of keys that are looked at when nothing is said.
const LOOKS: u64 = 10_000;
/// The largest population.
const POPULATION: u64 = 100;
/// Shares of a generation that live on, and that are new.
const ELITE: f64 = 0.2;
const MUTANTS: f64 = 0.15;
/// How often a child has a key of its better parent.
const BIAS: f64 = 0.7;

/// One set of keys, and how good it is: less is better.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) keys: Vec<f64>,
    pub(super) fitness: f64,
}

pub(super) struct Evolution {
    /// How many keys a set has.
    keys: usize,
    size: usize,
    /// How many live on; none where all are new.
    elite: usize,
    /// The best first.
    population: Vec<Member>,
    random: Random,
    effort: Effort,
}

/// How much is left.
struct Effort {
    looks: u64,
    until: Option<(Instant, f64)>,
}

impl Effort {
    fn new(options: &Options, seconds: Option<f64>) -> Self {
        let until = seconds.map(|seconds| (Instant::now(), seconds));
        match options.limit {
            Some(Limit::Iterations(looks)) => Self { looks, until },
            Some(Limit::Seconds(seconds)) => Self { looks: u64::MAX, until: Some((Instant::now(), seconds)) },
            None => Self { looks: LOOKS, until },
        }
    }

    fn is_left(&self) -> bool {
        self.looks > 0 && self.until.is_none_or(|(since, seconds)| since.elapsed().as_secs_f64() < seconds)
    }

    /// Takes at most so many.
    fn take(&mut self, most: usize) -> usize {
        let taken = self.looks.min(most as u64);
        self.looks -= taken;
        taken as usize
    }
}

impl Evolution {
    /// Looks at as many sets of keys as the options say, and no longer than so many seconds.
    pub(super) fn new(keys: usize, learns: bool, options: &Options, seconds: Option<f64>) -> Self {
        let effort = Effort::new(options, seconds);
        // The paper's sizes: 10 for 100 sets of keys, 100 for 10,000.
        let size = ((effort.looks as f64).sqrt() as u64).clamp(4, POPULATION) as usize;
        let elite = if learns { ((size as f64 * ELITE) as usize).max(1) } else { 0 };
        Self { keys, size, elite, population: Vec::new(), random: Random::new(options.seed), effort }
    }

    /// The next sets of keys to be looked at; none when nothing is left to be spent.
    pub(super) fn next(&mut self) -> Option<Vec<Vec<f64>>> {
        if !self.effort.is_left() {
            return None;
        }
        let kept = self.elite.min(self.population.len());
        let count = self.effort.take(self.size - kept);
        Some((0..count).map(|index| self.child(kept, index, count)).collect())
    }

    /// Takes what was looked at.
    pub(super) fn rank(&mut self, looked_at: impl IntoIterator<Item = Member>) {
        self.population.truncate(self.elite);
        self.population.extend(looked_at);
        self.population.sort_by(|a, b| a.fitness.total_cmp(&b.fitness));
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
