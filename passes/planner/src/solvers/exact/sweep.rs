//! One sweep over partial schedules, layer by layer, with a limited number of states per layer (beam search).

use super::Pruning;
use super::context::Context;
use super::extend::Extender;
use super::layer::{Layer, Trace};
use crate::model::budget::Budget;
use crate::model::units::Micros;
use crate::solvers::incumbent::SharedIncumbent;

/// Remaining effort.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort<'a> {
    pub(crate) budget: Budget,
    pub(crate) incumbent: &'a SharedIncumbent,
    pub(crate) pruning: Pruning,
}

impl Effort<'_> {
    fn is_spent(&self) -> bool {
        self.budget.iterations == 0 || self.incumbent.is_over() || self.budget.is_late()
    }

    fn spend(&mut self, extensions: u64) {
        self.budget.iterations = self.budget.iterations.saturating_sub(extensions);
    }
}

/// Result of a sweep.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Tasks and their devices in the order of starts, of the best schedule within the cutoff.
    pub(crate) sequence: Option<Vec<(usize, usize)>>,
    /// Lower bound on schedules that the sweep has not explored.
    pub(crate) bound: Micros,
    /// True if the budget sufficed to reach the last layer.
    pub(crate) finished: bool,
    /// Number of extensions tried.
    pub(crate) extensions: u64,
}

/// Sweeps with at most `width` states per layer. If no state is dropped, the result is exact.
pub(crate) fn sweep<const WORDS: usize>(
    context: &Context<'_, WORDS>,
    width: usize,
    effort: &mut Effort<'_>,
) -> Outcome {
    let devices = context.graph.devices;
    let allowed = effort.budget.iterations;
    let mut extender = Extender::new(context);
    let mut before = Layer::new(context.pruning.rivals);
    let mut layer = context.root();
    let mut traces = vec![layer.trace()];
    let mut bound = Micros::INFINITY;
    for _ in 0..context.graph.tasks {
        let mut next = Layer::new(context.pruning.rivals);
        for place in 0..layer.states.len() {
            if effort.is_spent() {
                let left = layer.states[place..].iter().map(|state| state.bound);
                let reached = next.thin(usize::MAX, devices);
                let open = left.chain(next.states.iter().map(|state| state.bound)).fold(reached, Micros::min);
                return Outcome {
                    sequence: None,
                    bound: bound.min(open),
                    finished: false,
                    extensions: allowed - effort.budget.iterations,
                };
            }
            effort.spend(extender.extend(place, &layer, &before, &mut next));
            // The memory of a layer, dominated states included, is bounded by its width.
            if next.living() > width.saturating_mul(2) {
                bound = bound.min(next.thin(width, devices));
            } else if next.states.len() > width.saturating_mul(4) {
                next.thin(usize::MAX, devices);
            }
        }
        bound = bound.min(next.thin(width, devices));
        traces.push(next.trace());
        before = layer;
        layer = next;
    }
    let best = (0..layer.states.len())
        .min_by(|a, b| layer.states[*a].last_delivery.total_cmp(&layer.states[*b].last_delivery));
    let sequence = best.map(|place| walk_back(&traces, place, devices));
    Outcome { sequence, bound, finished: true, extensions: allowed - effort.budget.iterations }
}

/// Backtracks from a state of the last layer to the first one.
fn walk_back(traces: &[Trace], place: usize, devices: usize) -> Vec<(usize, usize)> {
    let mut places = vec![place];
    for trace in traces.iter().skip(1).rev() {
        let place = places[places.len() - 1];
        places.push(trace.steps[place].parent as usize);
    }
    places.reverse();
    // Equal devices are permuted from state to state: `name[device]` is the original index.
    let mut name: Vec<usize> = (0..devices).collect();
    let mut sequence = Vec::with_capacity(traces.len() - 1);
    for (trace, place) in traces.iter().zip(places).skip(1) {
        if let Some(order) = trace.orders.get(place * devices..(place + 1) * devices).filter(|order| !order.is_empty())
        {
            name = order.iter().map(|old| name[usize::from(*old)]).collect();
        }
        let step = trace.steps[place];
        sequence.push((usize::from(step.task), name[usize::from(step.device)]));
    }
    sequence
}
