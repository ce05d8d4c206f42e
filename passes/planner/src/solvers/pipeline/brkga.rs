//! Search over orders: random keys for the tasks, Kahn's order by them, its optimal slicing (Algorithm 2). Keys are
//! random, or from a biased random-key genetic algorithm. Results do not depend on the number of cores, which only
//! share the evaluation.

use super::evolution::Evolution;
use super::line::Line;
use super::model::Model;
use super::order;
use super::slice::{Slicer, Slicing, blocks};
use crate::model::options::Options;
use crate::model::options::OrderSearch;
use crate::model::units::Micros;

/// An order with its optimal slicing.
#[derive(Clone, Debug)]
pub(super) struct Sliced {
    pub(super) order: Vec<u32>,
    pub(super) slicing: Slicing,
}

impl Sliced {
    /// Returns each task's block.
    pub(super) fn blocks(&self) -> Vec<u32> {
        blocks(&self.order, &self.slicing.ends)
    }
}

/// Returns the best slicing of the orders that are evaluated, within the options' limit and at most `seconds`. `least`
/// is a lower bound.
pub(super) fn search(model: &Model, least: Micros, options: &Options, seconds: Option<f64>) -> Sliced {
    let method = options.order.unwrap_or_default();
    let mut evolution = Evolution::new(model.tasks(), method != OrderSearch::Random, options, seconds);
    let evaluator = Evaluator { model, least, method };
    // The given order, so that there is always a result.
    let first: Vec<u32> = (0..model.tasks() as u32).collect();
    let mut best = Sliced { slicing: Slicer::new(model, least).best(&Line::new(model, &first), least), order: first };
    let mut shortest = f64::INFINITY;
    while best.slicing.value > least {
        let value = best.slicing.value;
        let Some(found) = evolution.generation(|keys| evaluator.evaluate(keys, value)) else { break };
        for sliced in found.flatten() {
            if sliced.slicing.value < best.slicing.value {
                best = sliced;
                options.observer.plan(best.slicing.value);
            }
        }
        if let Some(member) = evolution.best().filter(|member| method.arranges() && member.fitness < shortest) {
            shortest = member.fitness;
            let order = order::by_keys(model, &member.keys);
            let slicing = Slicer::new(model, least).best(&Line::new(model, &order), best.slicing.value);
            // The best arrangement is the result, whatever the value of its slicing.
            best = Sliced { order, slicing };
        }
    }
    best
}

/// Evaluates keys.
struct Evaluator<'a> {
    model: &'a Model,
    least: Micros,
    method: OrderSearch,
}

impl Evaluator<'_> {
    /// Returns the fitness of each set of keys, and its slicing if it was computed.
    fn evaluate(&self, children: &[Vec<f64>], best: Micros) -> Vec<(f64, Option<Sliced>)> {
        let mut slicer = Slicer::new(self.model, self.least);
        let mut line = Line::default();
        let mut evaluate_one = |keys: &Vec<f64>| {
            let order = order::by_keys(self.model, keys);
            if self.method.arranges() {
                return (order::length(self.model, &order, self.method == OrderSearch::MlaWeighted), None);
            }
            line.lay(self.model, &order);
            if self.method == OrderSearch::Random && slicer.below(&line, best).is_none() {
                return (f64::INFINITY, None);
            }
            // Each evaluation is independent of the core that makes it: equally good slicings may differ.
            let slicing = slicer.best(&line, best);
            (slicing.value.0, Some(Sliced { order, slicing }))
        };
        children.iter().map(&mut evaluate_one).collect()
    }
}
