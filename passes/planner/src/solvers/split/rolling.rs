//! Modules one after the other: each begins with what those before have left, and does not know those behind it.

use std::collections::BTreeMap;

use super::around::Around;
use super::borders::Borders;
use crate::model::instance::Instance;
use crate::model::units::Micros;
use crate::solvers::exact::graph::Graph;
use crate::solvers::exact::search::Goal;
use crate::solvers::exact::{self, Limits, Timetable};

/// How often a module's search may put a task at the end of a partial schedule.
const EXTENSIONS: u64 = 20_000;

/// Each task's place in its module, and its device, in the order of starts.
type Sequence = Vec<(usize, usize)>;

/// A schedule of the whole, and the effort that it took; none where the devices' memory or the time did not suffice.
pub(crate) fn solve(instance: &Instance, borders: &Borders, limits: &Limits) -> (Option<Timetable>, u64) {
    let mut around = Around::new(instance);
    let mut known: BTreeMap<Vec<u64>, Option<Sequence>> = BTreeMap::new();
    let mut order = Vec::with_capacity(instance.tasks());
    let mut spent = 0;
    for module in &borders.modules {
        let tasks = &borders.order[module.clone()];
        let mut graph = around.graph(tasks);
        let begin = to_begin(&mut graph);
        let sequence = known.entry(key(&graph)).or_insert_with(|| {
            let allowed = EXTENSIONS.min(limits.extensions.saturating_sub(spent));
            let found =
                exact::search(&graph, Goal::By(f64::INFINITY), &Limits { extensions: allowed, ..limits.quiet() });
            spent += found.extensions;
            found.sequence
        });
        let Some(sequence) = sequence else { return (None, spent) };
        let (start, _) = graph.starts(sequence);
        for &(local, device) in sequence.iter() {
            let task = tasks[local];
            let end = begin + start[local] + instance.time(task, device).unwrap_or(f64::INFINITY);
            around.device[task] = Some(device);
            around.end[task] = end;
            around.free[device] = around.free[device].max(end);
            order.push((task, device));
        }
    }
    (Some(exact::in_sequence(instance, &order)).filter(|schedule| exact::fits(instance, schedule)), spent)
}

/// Lets time begin when the first task can and end when the last delivery begins, so that the same module in the same
/// situation is the same problem wherever it is; says how much later the beginning is.
fn to_begin(graph: &mut Graph) -> Micros {
    let begin = graph.release_us.iter().copied().fold(f64::INFINITY, f64::min);
    // Results that leave the module have the longest deliveries; those inside have none.
    let leaving = graph.delivery_us.iter().copied().filter(|delivery| *delivery > 0.0);
    let rest = leaving.fold(f64::INFINITY, f64::min);
    // Whole numbers stay exact; others are left as they are rather than rounded.
    if begin.fract() != 0.0 || !begin.is_finite() {
        return 0.0;
    }
    graph.release_us.iter_mut().for_each(|release| *release -= begin);
    if rest.is_finite() {
        graph.delivery_us.iter_mut().for_each(|delivery| *delivery = (*delivery - rest).max(0.0));
    }
    begin
}

/// All that a solution depends on. Tasks of equal modules are in the same order wherever it was made the same way.
fn key(graph: &Graph) -> Vec<u64> {
    let mut key = graph.key();
    for table in [&graph.release_us, &graph.delivery_us] {
        key.extend(table.iter().map(|time| time.to_bits()));
    }
    key
}
