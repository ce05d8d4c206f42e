//! Search over orders and sequences of devices: keys for tasks and for devices.

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

/// Pipelines that are worse than the incumbent by this factor are not evaluated exactly.
const FAR: f64 = 1.5;

/// Fitness of keys, and the pipeline that they encode, unless it is far from the incumbent.
type Evaluation = (f64, Option<(Micros, Pipe)>);

impl Fleet {
    /// Returns the best pipeline sliced from an order; `None` if none is better than `incumbent`.
    pub(super) fn search_orders(&self, incumbent: &Pipe, least: Micros, options: &Options) -> Option<Pipe> {
        let method = options.order.unwrap_or_default();
        let model = self.at_best();
        let keys = self.working + self.devices;
        let mut evolution = Evolution::new(keys, method != OrderSearch::Random, options, None);
        let mut best = Incumbent::new(Bound::none());
        self.offer(incumbent.clone(), &mut best);
        let start = best.value();
        while best.value() > least {
            let far = best.value() * FAR;
            let evaluate = |children: &[Vec<f64>]| {
                let mut slicer = Slicer::new(self);
                children.iter().map(|keys| self.evaluate(&model, &mut slicer, keys, far, method)).collect()
            };
            let Some(found) = evolution.generation(evaluate) else { break };
            for (value, pipe) in found.flatten() {
                if best.take(value, pipe, ORDERED) {
                    options.observer.plan(value);
                }
            }
        }
        let is_better = best.value() < start;
        best.into_parts().0.filter(|_| is_better)
    }

    fn evaluate(
        &self,
        model: &Model,
        slicer: &mut Slicer<'_>,
        keys: &[f64],
        far: Micros,
        method: OrderSearch,
    ) -> Evaluation {
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
        (arranged.unwrap_or(value.0), best.into_parts().0.map(|pipe| (value, pipe)))
    }
}
