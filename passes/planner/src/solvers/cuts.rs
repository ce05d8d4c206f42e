//! Where a network is one task wide: everything else comes before that task or after it, and nothing passes by.
//!
//! When such a task starts, all that comes before it has ended, so every device is free and all that later tasks need is
//! the task's own result. DiviML's bridges and articulation points (IV-B) are such tasks wherever the two sides follow
//! each other; a bridge has one at either end.

use std::ops::Range;

use crate::model::instance::Instance;

/// A cut with fewer tasks on one side of it is not worth a search for each device that it may be on.
const LEAST_OUTSIDE: usize = 3;

/// A stretch of the topological order from one cut to the next, both included; the first may have no cut before it, the
/// last none after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Places in the order.
    pub(crate) places: Range<usize>,
    /// True if the first task is the cut that the stretch before ends with.
    pub(crate) entered: bool,
    /// True if the last task is the cut that the next stretch begins with.
    pub(crate) left: bool,
}

/// The stretches of an instance, in order.
pub(crate) fn stretches(instance: &Instance) -> Vec<Stretch> {
    let tasks = instance.tasks();
    let mut stretches = Vec::new();
    let mut from = 0;
    let mut entered = false;
    for place in cuts(instance) {
        stretches.push(Stretch { places: from..place + 1, entered, left: true });
        (from, entered) = (place, true);
    }
    stretches.push(Stretch { places: from..tasks, entered, left: false });
    stretches
}

/// Places of the cuts in the topological order: a task that is comparable to all others has the same place in each.
fn cuts(instance: &Instance) -> Vec<usize> {
    let order = instance.order();
    let tasks = order.len();
    let mut place_of = vec![0; tasks];
    for (place, &task) in order.iter().enumerate() {
        place_of[task] = place;
    }
    // What passes by a place: tensors, and groups whose tasks have to agree on a device.
    let mut spans = Vec::new();
    for tensor in instance.tensors() {
        spans.extend(tensor.consumers.iter().map(|consumer| (place_of[tensor.producer], place_of[*consumer])));
    }
    for group in instance.groups() {
        let mut places: Vec<usize> = group.iter().map(|task| place_of[*task]).collect();
        places.sort_unstable();
        spans.extend(places.windows(2).map(|pair| (pair[0], pair[1])));
    }
    // An end of the network before a place, or a beginning after it, is not comparable to what is there.
    let first_end = order.iter().position(|task| instance.successors(*task).is_empty()).unwrap_or(tasks);
    let last_beginning = order.iter().rposition(|task| instance.predecessors(*task).is_empty()).unwrap_or(0);
    let mut cuts = not_passed(tasks, spans);
    let inside = |place: &usize| *place >= LEAST_OUTSIDE && place + LEAST_OUTSIDE < tasks;
    cuts.retain(|place| inside(place) && *place <= first_end && *place >= last_beginning);
    cuts
}

/// Places that no span passes by: none begins before one of them and ends behind it. Linear in both.
pub(crate) fn not_passed(places: usize, spans: impl IntoIterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut change = vec![0_isize; places + 1];
    for (from, to) in spans.into_iter().filter(|(from, to)| from + 1 < *to) {
        change[from + 1] += 1;
        change[to] -= 1;
    }
    let mut passing = 0;
    let is_free = |place: &usize| {
        passing += change[*place];
        passing == 0
    };
    (0..places).filter(is_free).collect()
}
