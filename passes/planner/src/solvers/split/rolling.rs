//! Rolling horizon: solves modules one after the other, each with those before it fixed and without regard to those
//! behind it.

use std::collections::BTreeMap;

use super::partition::Partition;
use super::surroundings::Surroundings;
use crate::model::instance::Instance;
use crate::model::units::Micros;
use crate::solvers::exact::graph::Graph;
use crate::solvers::exact::search::Goal;
use crate::solvers::exact::{self, Limits, Timetable};

/// Limit of extensions per module.
const EXTENSIONS: u64 = 20_000;

/// Index of each task in its module, and its device, in the order of starts.
type Sequence = Vec<(usize, usize)>;

/// Returns a schedule of the whole, and the extensions spent; `None` if memory or time do not suffice.
pub(crate) fn solve(instance: &Instance, partition: &Partition, limits: &Limits) -> (Option<Timetable>, u64) {
    let mut surroundings = Surroundings::new(instance);
    let mut solved: BTreeMap<Vec<u64>, Option<Sequence>> = BTreeMap::new();
    let mut order = Vec::with_capacity(instance.tasks());
    let mut spent = 0;
    for module in &partition.modules {
        let tasks = &partition.order[module.clone()];
        let mut graph = surroundings.graph(tasks);
        let begin = shift_to_zero(&mut graph);
        let sequence = solved.entry(key(&graph)).or_insert_with(|| {
            let allowed = EXTENSIONS.min(limits.extensions.saturating_sub(spent));
            let found =
                exact::search(&graph, Goal::By(Micros::INFINITY), &Limits { extensions: allowed, ..limits.quiet() });
            spent += found.extensions;
            found.sequence
        });
        let Some(sequence) = sequence else { return (None, spent) };
        let (start, _) = graph.starts(sequence);
        for &(local, device) in sequence.iter() {
            let task = tasks[local];
            let end = begin + start[local] + instance.time(task, device).unwrap_or(Micros::INFINITY);
            surroundings.device[task] = Some(device);
            surroundings.end[task] = end;
            surroundings.free[device] = surroundings.free[device].max(end);
            order.push((task, device));
        }
    }
    (Some(exact::in_sequence(instance, &order)).filter(|schedule| exact::fits(instance, schedule)), spent)
}

/// Shifts release times to zero and delivery times to their minimum, so that equal modules in equal states are equal
/// problems; returns the shift of the beginning.
fn shift_to_zero(graph: &mut Graph) -> Micros {
    let begin = graph.release_us.iter().copied().fold(Micros::INFINITY, Micros::min);
    // Results that leave the module have the longest deliveries; those inside have none.
    let leaving = graph.delivery_us.iter().copied().filter(|delivery| *delivery > Micros::ZERO);
    let rest = leaving.fold(Micros::INFINITY, Micros::min);
    // Integers stay exact; other values are not shifted, to avoid rounding.
    if begin.0.fract() != 0.0 || !begin.is_finite() {
        return Micros::ZERO;
    }
    graph.release_us.iter_mut().for_each(|release| *release -= begin);
    if rest.is_finite() {
        graph.delivery_us.iter_mut().for_each(|delivery| *delivery = (*delivery - rest).max(Micros::ZERO));
    }
    begin
}

/// Returns a key of the subproblem. Tasks of equal modules have the same order if it was constructed in the same way.
fn key(graph: &Graph) -> Vec<u64> {
    let mut key = graph.key();
    for table in [&graph.release_us, &graph.delivery_us] {
        key.extend(table.iter().map(|time| time.0.to_bits()));
    }
    key
}
