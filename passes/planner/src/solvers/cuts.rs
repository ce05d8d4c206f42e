//! Single-task cuts: tasks that are comparable to all others in the precedence order and that no tensor bypasses.
//!
//! When such a task starts, all tasks before it have ended, so every device is idle and later tasks need only the
//! task's own result. DiviML's bridges and articulation points (IV-B) are such tasks wherever the two sides follow each
//! other; a bridge has one at either end.

use std::ops::Range;

use crate::model::instance::Instance;

/// A cut with fewer tasks on one side does not pay for a search for each of its devices.
const LEAST_OUTSIDE: usize = 3;

/// Segment of the topological order from one cut to the next, both included; the first may have no cut before it, the
/// last none after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Positions in the order.
    pub(crate) places: Range<usize>,
    /// True if the first task is the cut that the previous segment ends with.
    pub(crate) entered: bool,
    /// True if the last task is the cut that the next segment begins with.
    pub(crate) left: bool,
}

/// Returns the segments of an instance, in order.
pub(crate) fn segments(instance: &Instance) -> Vec<Segment> {
    let tasks = instance.tasks();
    let mut segments = Vec::new();
    let mut from = 0;
    let mut entered = false;
    for place in cuts(instance) {
        segments.push(Segment { places: from..place + 1, entered, left: true });
        (from, entered) = (place, true);
    }
    segments.push(Segment { places: from..tasks, entered, left: false });
    segments
}

/// Returns positions of the cuts in the topological order: a task that is comparable to all others has the same
/// position in every order.
fn cuts(instance: &Instance) -> Vec<usize> {
    let order = instance.order();
    let tasks = order.len();
    let mut place_of = vec![0; tasks];
    for (place, &task) in order.iter().enumerate() {
        place_of[task] = place;
    }
    // Spans that bypass a position: tensors, and groups whose tasks share a device.
    let mut spans = Vec::new();
    for tensor in instance.tensors() {
        spans.extend(tensor.consumers.iter().map(|consumer| (place_of[tensor.producer], place_of[*consumer])));
    }
    for group in instance.groups() {
        let mut places: Vec<usize> = group.iter().map(|task| place_of[*task]).collect();
        places.sort_unstable();
        spans.extend(places.windows(2).map(|pair| (pair[0], pair[1])));
    }
    // A sink before a position, or a source after it, is not comparable to the task at the position.
    let first_end = order.iter().position(|task| instance.successors(*task).is_empty()).unwrap_or(tasks);
    let last_beginning = order.iter().rposition(|task| instance.predecessors(*task).is_empty()).unwrap_or(0);
    let mut cuts = not_passed(tasks, spans);
    let inside = |place: &usize| *place >= LEAST_OUTSIDE && place + LEAST_OUTSIDE < tasks;
    cuts.retain(|place| inside(place) && *place <= first_end && *place >= last_beginning);
    cuts
}

/// Returns the positions that no span bypasses, that is, begins before and ends after. Linear in both arguments.
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
