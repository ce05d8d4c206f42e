//! Search among orders: random keys for the tasks, Kahn's order by them, its best slicing (Algorithm 2); keys at random, or
//! by a biased random-key genetic algorithm. The same on any number of cores: what a generation is depends on the last one
//! alone, and cores only share the work of looking at it.

use std::thread;
use std::time::Instant;

use super::choice::OrderSearch;
use super::line::Line;
use super::model::Model;
use super::order;
use super::slice::{Slicer, Slicing};
use crate::plan::Limit;
use crate::random::Random;
use crate::search::chains::cores;
use crate::solve::Options;
use crate::units::Micros;

/// Orders that are looked at when nothing is said.
const ORDERS: u64 = 10_000;
/// The largest population.
const POPULATION: u64 = 100;
/// Shares of a generation that live on, and that are new.
const ELITE: f64 = 0.2;
const MUTANTS: f64 = 0.15;
/// How often a child has a key of its better parent.
const BIAS: f64 = 0.7;

/// An order with its best slicing.
#[derive(Clone, Debug)]
pub(super) struct Sliced {
    pub(super) order: Vec<u32>,
    pub(super) slicing: Slicing,
}

impl Sliced {
    /// Each task's block.
    pub(super) fn blocks(&self) -> Vec<u32> {
        let mut blocks = vec![0; self.order.len()];
        let mut from = 0;
        for (block, &end) in self.slicing.ends.iter().enumerate() {
            self.order[from..end].iter().for_each(|task| blocks[*task as usize] = block as u32);
            from = end;
        }
        blocks
    }
}

/// One set of keys, and how good it is: the slicing's value, or the length of the arrangement.
#[derive(Clone)]
struct Member {
    keys: Vec<f64>,
    fitness: f64,
}

/// How much is left.
struct Effort {
    orders: u64,
    until: Option<(Instant, f64)>,
}

impl Effort {
    fn new(options: &Options, seconds: Option<f64>) -> Self {
        let until = seconds.map(|seconds| (Instant::now(), seconds));
        match options.limit {
            Some(Limit::Iterations(orders)) => Self { orders, until },
            Some(Limit::Seconds(seconds)) => Self { orders: u64::MAX, until: Some((Instant::now(), seconds)) },
            None => Self { orders: ORDERS, until },
        }
    }

    fn is_left(&self) -> bool {
        self.orders > 0 && self.until.is_none_or(|(since, seconds)| since.elapsed().as_secs_f64() < seconds)
    }

    /// Takes at most so many.
    fn take(&mut self, most: usize) -> usize {
        let taken = self.orders.min(most as u64);
        self.orders -= taken;
        taken as usize
    }
}

/// The best slicing of the orders that are looked at: as many as the options say, and no longer than so many seconds.
/// Nothing is better than the least value.
pub(super) fn search(model: &Model, least: Micros, options: &Options, seconds: Option<f64>) -> Sliced {
    let method = options.order.unwrap_or_default();
    let mut random = Random::new(options.seed);
    let mut effort = Effort::new(options, seconds);
    // The paper's sizes: 10 for 100 orders, 100 for 10,000.
    let size = ((effort.orders as f64).sqrt() as u64).clamp(4, POPULATION) as usize;
    let looker = Looker { model, least, method };
    // The order that is there anyway, so that there always is one.
    let first: Vec<u32> = (0..model.tasks() as u32).collect();
    let mut best = Sliced { slicing: Slicer::new(model, least).best(&Line::new(model, &first), least), order: first };
    let mut population: Vec<Member> = Vec::new();
    let mut shortest = f64::INFINITY;
    while effort.is_left() && best.slicing.value > least {
        let kept = if method == OrderSearch::Random { 0 } else { elite(size).min(population.len()) };
        let count = effort.take(size - kept);
        let children: Vec<Vec<f64>> =
            (0..count).map(|index| child(model, &population, kept, index, count, &mut random)).collect();
        let seen = looker.look(&children, best.slicing.value);
        population.truncate(kept);
        for (keys, (fitness, sliced)) in children.into_iter().zip(seen) {
            if let Some(sliced) = sliced.filter(|sliced| sliced.slicing.value < best.slicing.value) {
                best = sliced;
                options.watch.plan(best.slicing.value);
            }
            population.push(Member { keys, fitness });
        }
        population.sort_by(|a, b| a.fitness.total_cmp(&b.fitness));
        if method.arranges() && population.first().is_some_and(|member| member.fitness < shortest) {
            shortest = population[0].fitness;
            let order = order::by_keys(model, &population[0].keys);
            let slicing = Slicer::new(model, least).best(&Line::new(model, &order), best.slicing.value);
            // The arrangement is what is asked for; its slicing is what it is.
            best = Sliced { order, slicing };
        }
    }
    best
}

fn elite(size: usize) -> usize {
    ((size as f64 * ELITE) as usize).max(1)
}

/// New keys: those of a child of an elite member and another one, or random ones.
fn child(
    model: &Model,
    population: &[Member],
    elite: usize,
    index: usize,
    count: usize,
    random: &mut Random,
) -> Vec<f64> {
    let mutants = (count as f64 * MUTANTS).ceil() as usize;
    if elite == 0 || population.len() <= elite || index < mutants {
        return order::random_keys(model, random);
    }
    let (better, other) = (random.below(elite), elite + random.below(population.len() - elite));
    let keys = population[better].keys.iter().zip(&population[other].keys);
    keys.map(|(better, other)| if random.chance(BIAS) { *better } else { *other }).collect()
}

/// How good keys are.
struct Looker<'a> {
    model: &'a Model,
    least: Micros,
    method: OrderSearch,
}

impl Looker<'_> {
    /// The fitness of each set of keys, and its slicing where that was made.
    fn look(&self, children: &[Vec<f64>], best: Micros) -> Vec<(f64, Option<Sliced>)> {
        let share = children.len().div_ceil(cores()).max(1);
        thread::scope(|scope| {
            let some = |keys| scope.spawn(move || self.look_at(keys, best));
            let threads: Vec<_> = children.chunks(share).map(some).collect();
            // A thread that panicked has nothing to say; the scope passes its panic on.
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        })
    }

    fn look_at(&self, children: &[Vec<f64>], best: Micros) -> Vec<(f64, Option<Sliced>)> {
        let mut slicer = Slicer::new(self.model, self.least);
        let mut line = Line::default();
        let mut look = |keys: &Vec<f64>| {
            let order = order::by_keys(self.model, keys);
            if self.method.arranges() {
                return (order::length(self.model, &order, self.method == OrderSearch::MlaWeighted), None);
            }
            line.lay(self.model, &order);
            if self.method == OrderSearch::Random && slicer.below(&line, best).is_none() {
                return (f64::INFINITY, None);
            }
            // Every guess is the same, whichever core makes it: equally good slicings may differ.
            let slicing = slicer.best(&line, best);
            (slicing.value, Some(Sliced { order, slicing }))
        };
        children.iter().map(&mut look).collect()
    }
}
