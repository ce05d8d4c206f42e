//! Search among orders, and sequences of devices: keys for tasks and for devices.

use super::slice::Slicer;
use super::start::ORDERED;
use super::{Fleet, Pipe};
use crate::model::options::Options;
use crate::model::options::OrderSearch;
use crate::model::plan::Bound;
use crate::model::units::Micros;
use crate::solvers::incumbent::Incumbent;
use crate::solvers::pipeline::evolution::Evolution;
use crate::solvers::pipeline::model::Model;
use crate::solvers::pipeline::order::{by_keys, length};

/// Pipelines that are worse than the best by this factor are not told apart.
const FAR: f64 = 1.5;

/// Fitness of keys, and the pipeline that they stand for, if it is not far from the best.
type Look = (f64, Option<(Micros, Pipe)>);

impl Fleet {
    /// The best pipeline that is cut from an order, from one that is known on; none where nothing is better.
    pub(super) fn search_orders(&self, known: &Pipe, least: Micros, options: &Options) -> Option<Pipe> {
        let method = options.order.unwrap_or_default();
        let model = self.at_best();
        let keys = self.working + self.devices;
        let mut evolution = Evolution::new(keys, method != OrderSearch::Random, options, None);
        let mut best = Incumbent::new(Bound::none());
        self.offer(known.clone(), &mut best);
        let start = best.value();
        while best.value() > least {
            let far = best.value() * FAR;
            let look = |children: &[Vec<f64>]| {
                let mut slicer = Slicer::new(self);
                children.iter().map(|keys| self.look(&model, &mut slicer, keys, far, method)).collect()
            };
            let Some(found) = evolution.generation(look) else { break };
            for (value, pipe) in found.flatten() {
                if best.take(value, pipe, ORDERED) {
                    options.observer.plan(value);
                }
            }
        }
        let is_better = best.value() < start;
        best.into_parts().0.filter(|_| is_better)
    }

    fn look(&self, model: &Model, slicer: &mut Slicer<'_>, keys: &[f64], far: Micros, method: OrderSearch) -> Look {
        let order = by_keys(model, &keys[..self.working]);
        let turn = &keys[self.working..];
        let mut sequence: Vec<usize> = (0..self.devices).collect();
        sequence.sort_by(|a, b| turn[*b].total_cmp(&turn[*a]));
        sequence.truncate(self.k);
        slicer.lay(&order);
        let mut best = Incumbent::new(Bound::none());
        self.cut(slicer, &order, &sequence, far, &mut best);
        let arranged = method.arranges().then(|| length(model, &order, method == OrderSearch::MlaWeighted));
        let value = best.value();
        (arranged.unwrap_or(value), best.into_parts().0.map(|pipe| (value, pipe)))
    }
}
