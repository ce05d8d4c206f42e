//! Sweeps of growing width, in both directions of time, until the optimum is proven or the budget is spent.

use super::bounds::Bounds;
use super::context::Context;
use super::graph::Graph;
use super::masks::Masks;
use super::sweep::{Effort, sweep};
use super::symmetry::Classes;
use crate::model::observer::Observer;
use crate::model::units::Micros;
use crate::solvers::incumbent::SharedIncumbent;

const FIRST_WIDTH: usize = 10;
const GROWTH: usize = 10;
/// Up to this width both directions are tried; then the one with the better bound continues.
const TRIAL_WIDTH: usize = 100;
/// Maximum width of a sweep, and its limit of memory.
const MOST_WIDTH: usize = 300_000;
const MOST_BYTES: usize = 1 << 29;
/// Relative tolerance of equal values.
pub(crate) const SAME: f64 = 1e-9;
/// Cutoff that every finite schedule meets.
pub(crate) const UNLIMITED: Micros = Micros(f64::MAX);

/// Best schedule found, and proven bounds.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Tasks and their devices in an order that yields the schedule if each task starts as early as possible.
    pub(crate) sequence: Option<Vec<(usize, usize)>>,
    /// Infinite if nothing was found.
    pub(crate) value: Micros,
    /// Lower bound on the makespan; infinite if there is no schedule.
    pub(crate) bound: Micros,
    /// Lower bound before the search.
    pub(crate) relaxation: Micros,
    /// Number of extensions that were tried.
    pub(crate) extensions: u64,
}

impl Found {
    /// Returns a result without a schedule.
    pub(crate) fn nothing(bound: Micros) -> Self {
        Self { sequence: None, value: Micros::INFINITY, bound, relaxation: bound, extensions: 0 }
    }
}

/// Goal of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal<'a> {
    /// The best schedule that ends by this time.
    By(Micros),
    /// The best schedule, if it is better than the shared incumbent.
    Beat(&'a SharedIncumbent),
}

impl Goal<'_> {
    /// Returns the upper limit on useful makespans.
    fn cutoff(self) -> Micros {
        match self {
            Self::By(time) => (time * (1.0 + SAME)).min(UNLIMITED),
            Self::Beat(_) => UNLIMITED,
        }
    }

    fn incumbent_value(self) -> Micros {
        match self {
            Self::By(_) => Micros::INFINITY,
            Self::Beat(incumbent) => incumbent.value(),
        }
    }
}

struct Direction<const WORDS: usize> {
    graph: Graph,
    masks: Masks<WORDS>,
    backwards: bool,
    /// Bound of its last sweep, whether it found a better schedule, and its effort.
    proven: Micros,
    improved: bool,
    extensions: u64,
}

impl<const WORDS: usize> Direction<WORDS> {
    fn new(graph: Graph, backwards: bool) -> Self {
        let masks = Masks::new(&graph);
        Self { graph, masks, backwards, proven: Micros::ZERO, improved: false, extensions: 0 }
    }

    /// Returns true if this direction is the better one to continue with.
    fn is_ahead_of(&self, other: &Self) -> bool {
        if self.proven != other.proven {
            return self.proven > other.proven;
        }
        if self.improved != other.improved { self.improved } else { self.extensions < other.extensions }
    }
}

/// Returns the number of states that fit: two layers of figures, and a step for backtracking per task.
fn most_width(graph: &Graph) -> usize {
    let (tasks, devices) = (graph.tasks, graph.devices);
    let figures = size_of::<f64>() * devices * (2 + tasks.min(48));
    let bytes = 2 * (figures + 200) + (8 + devices) * tasks;
    (MOST_BYTES / bytes).clamp(FIRST_WIDTH, MOST_WIDTH)
}

/// Minimizes the makespan.
pub(crate) fn search<const WORDS: usize>(
    graph: &Graph,
    goal: Goal<'_>,
    mut effort: Effort<'_>,
    observer: &Observer,
) -> Found {
    let allowed = effort.budget.iterations;
    let classes = Classes::new(graph);
    let whole = graph.is_whole();
    let mut directions =
        [Direction::<WORDS>::new(graph.clone(), false), Direction::<WORDS>::new(graph.reversed(), true)];
    let mut found = Found::nothing(Micros::ZERO);
    let mut width = FIRST_WIDTH;
    let most_width = most_width(graph);
    let mut chosen = None;
    'widths: while width <= most_width {
        for index in 0..directions.len() {
            if chosen.is_some_and(|chosen| chosen != index) {
                continue;
            }
            let (this, other) = (&directions[index], &directions[1 - index]);
            let best = found.value.min(goal.incumbent_value());
            // Makespans above this are useless.
            let needed = goal.cutoff().min(below(best, whole));
            // Narrow sweeps use only their own cutoff: they then find other schedules, and often better ones.
            let own = goal.cutoff().min(below(found.value, whole));
            let cutoff = if width <= TRIAL_WIDTH { own } else { needed };
            let bounds = Bounds::new::<WORDS>(&this.graph, &other.graph, cutoff);
            // Without an incumbent, an empty set of schedules below the cutoff proves only the cutoff.
            let limit = if bounds.value > needed { beyond(needed, best) } else { bounds.value };
            found.bound = found.bound.max(limit.min(best));
            if found.relaxation == Micros::ZERO {
                found.relaxation = found.bound;
            }
            if bounds.value > needed {
                break 'widths;
            }
            let context = Context {
                graph: &this.graph,
                masks: &this.masks,
                classes: &classes,
                bounds: &bounds,
                cutoff,
                pruning: effort.pruning,
            };
            let outcome = sweep(&context, width, &mut effort);
            let dropped_bound = if whole { next_whole(outcome.bound) } else { outcome.bound };
            let backwards = this.backwards;
            let direction = &mut directions[index];
            (direction.proven, direction.improved, direction.extensions) =
                (dropped_bound, outcome.sequence.is_some(), outcome.extensions);
            if let Some(sequence) = outcome.sequence {
                let sequence = if backwards { reversed_sequence(graph, &sequence) } else { sequence };
                let (_, value) = graph.starts(&sequence);
                if value < found.value {
                    found.value = value;
                    found.sequence = Some(sequence);
                    observer.plan(value);
                }
            }
            let best = best.min(found.value);
            let limit = if dropped_bound.is_infinite() { beyond(cutoff, best) } else { dropped_bound };
            found.bound = found.bound.max(limit.min(best));
            observer.bound(found.bound, "exact");
            if !outcome.finished || dropped_bound > goal.cutoff().min(below(best, whole)) {
                break 'widths;
            }
        }
        if width >= TRIAL_WIDTH && chosen.is_none() {
            chosen = Some(usize::from(directions[1].is_ahead_of(&directions[0])));
        }
        width = if width < most_width { most_width.min(width * GROWTH) } else { most_width + 1 };
    }
    found.extensions = allowed - effort.budget.iterations;
    found
}

/// Returns the least integer that is not below a time, up to rounding.
fn next_whole(time: Micros) -> Micros {
    Micros((time.0 - 1e-6).ceil())
}

/// Returns the cutoff for schedules that improve on a value.
fn below(value: Micros, whole: bool) -> Micros {
    if whole { next_whole(value) - Micros(1.0) } else { value * (1.0 - SAME) }
}

/// Returns the bound that is proven if no schedule ends by the cutoff: infinite with an incumbent or without a cutoff,
/// else the cutoff.
fn beyond(cutoff: Micros, value: Micros) -> Micros {
    if cutoff >= UNLIMITED || value.is_finite() { Micros::INFINITY } else { cutoff }
}

/// Converts a sequence of the reversed graph to one of the graph.
fn reversed_sequence(graph: &Graph, sequence: &[(usize, usize)]) -> Vec<(usize, usize)> {
    sequence.iter().rev().map(|(task, device)| (graph.tasks - 1 - task, *device)).collect()
}
