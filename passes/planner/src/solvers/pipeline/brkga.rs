//! Search among orders: random keys for the tasks, Kahn's order by them, its best slicing (Algorithm 2); keys at random, or
//! by a biased random-key genetic algorithm. The same on any number of cores, which only share the work of looking at orders.

use super::evolution::Evolution;
use super::line::Line;
use super::model::Model;
use super::order;
use super::slice::{Slicer, Slicing, blocks};
use crate::model::options::Options;
use crate::model::options::OrderSearch;
use crate::model::units::Micros;

/// An order with its best slicing.
#[derive(Clone, Debug)]
pub(super) struct Sliced {
    pub(super) order: Vec<u32>,
    pub(super) slicing: Slicing,
}

impl Sliced {
    /// Each task's block.
    pub(super) fn blocks(&self) -> Vec<u32> {
        blocks(&self.order, &self.slicing.ends)
    }
}

/// The best slicing of the orders that are looked at: as many as the options say, and no longer than so many seconds.
/// Nothing is better than the least value.
pub(super) fn search(model: &Model, least: Micros, options: &Options, seconds: Option<f64>) -> Sliced {
    let method = options.order.unwrap_or_default();
    let mut evolution = Evolution::new(model.tasks(), method != OrderSearch::Random, options, seconds);
    let looker = Looker { model, least, method };
    // The order that is there anyway, so that there always is one.
    let first: Vec<u32> = (0..model.tasks() as u32).collect();
    let mut best = Sliced { slicing: Slicer::new(model, least).best(&Line::new(model, &first), least), order: first };
    let mut shortest = f64::INFINITY;
    while best.slicing.value > least {
        let value = best.slicing.value;
        let Some(found) = evolution.generation(|keys| looker.look_at(keys, value)) else { break };
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
            // The arrangement is what is asked for; its slicing is what it is.
            best = Sliced { order, slicing };
        }
    }
    best
}

/// Evaluates keys.
struct Looker<'a> {
    model: &'a Model,
    least: Micros,
    method: OrderSearch,
}

impl Looker<'_> {
    /// The fitness of each set of keys, and its slicing where that was made.
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
