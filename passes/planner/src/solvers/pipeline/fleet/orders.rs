//! Search among orders, and sequences of devices: keys for tasks and for devices.

use std::thread;

use super::slice::Slicer;
use super::start::Best;
use super::{Fleet, Pipe};
use crate::model::options::Options;
use crate::model::options::OrderSearch;
use crate::model::units::Micros;
use crate::solvers::chains::cores;
use crate::solvers::pipeline::evolution::{Evolution, Member};
use crate::solvers::pipeline::model::Model;
use crate::solvers::pipeline::order::{by_keys, length};

/// What is worse than the best by this factor is not told apart.
const FAR: f64 = 1.5;

/// How good keys are, and the pipeline that they stand for, if it is not far from the best.
type Look = (f64, Option<(Micros, Pipe)>);

impl Fleet {
    /// The best pipeline that is cut from an order, from one that is known on; none where nothing is better.
    pub(super) fn search_orders(&self, known: &Pipe, least: Micros, options: &Options) -> Option<Pipe> {
        let method = options.order.unwrap_or_default();
        let model = self.at_best();
        let keys = self.working + self.devices;
        let mut evolution = Evolution::new(keys, method != OrderSearch::Random, options, None);
        let mut best = Best::new(self);
        best.take(known.clone());
        let start = best.value();
        while best.value() > least {
            let Some(children) = evolution.next() else { break };
            let far = best.value() * FAR;
            let share = children.len().div_ceil(cores()).max(1);
            let looks: Vec<Look> = thread::scope(|scope| {
                let some = |children: &'_ [Vec<f64>]| {
                    let mut slicer = Slicer::new(self);
                    children.iter().map(|keys| self.look(&model, &mut slicer, keys, far, method)).collect::<Vec<_>>()
                };
                let threads: Vec<_> =
                    children.chunks(share).map(|some_of| scope.spawn(move || some(some_of))).collect();
                // A thread that panicked has nothing to say; the scope passes its panic on.
                threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
            });
            let mut members = Vec::with_capacity(children.len());
            for (keys, (fitness, found)) in children.into_iter().zip(looks) {
                if let Some((value, pipe)) = found.filter(|(value, _)| *value < best.value()) {
                    options.observer.plan(value);
                    best.found = Some((value, pipe));
                }
                members.push(Member { keys, fitness });
            }
            evolution.rank(members);
        }
        best.found.filter(|(value, _)| *value < start).map(|(_, pipe)| pipe)
    }

    fn look(&self, model: &Model, slicer: &mut Slicer<'_>, keys: &[f64], far: Micros, method: OrderSearch) -> Look {
        let order = by_keys(model, &keys[..self.working]);
        let turn = &keys[self.working..];
        let mut sequence: Vec<usize> = (0..self.devices).collect();
        sequence.sort_by(|a, b| turn[*b].total_cmp(&turn[*a]));
        sequence.truncate(self.k);
        slicer.lay(&order);
        let mut best = Best::new(self);
        self.cut(slicer, &order, &sequence, far, &mut best);
        let arranged = method.arranges().then(|| length(model, &order, method == OrderSearch::MlaWeighted));
        (arranged.unwrap_or(best.value()), best.found)
    }
}
