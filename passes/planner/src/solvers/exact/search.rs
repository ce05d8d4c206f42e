//! Sweeps of growing width, in both directions of time, until nothing is left to look at.

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
/// Up to this width both directions are tried, then the one that proves more.
const TRIAL_WIDTH: usize = 100;
/// The widest sweep, and what it may take of the machine's memory.
const MOST_WIDTH: usize = 300_000;
const MOST_BYTES: usize = 1 << 29;
/// Two values this close, as a share, are the same.
pub(crate) const SAME: f64 = 1e-9;

/// The best schedule found, and what is proven.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Tasks and their devices in an order in which all run as early as they can.
    pub(crate) sequence: Option<Vec<(usize, usize)>>,
    /// Infinite if nothing was found.
    pub(crate) value: Micros,
    /// No schedule ends before this; infinite if there is none.
    pub(crate) bound: Micros,
    /// Bound that is known without a search.
    pub(crate) relaxation: Micros,
    /// Number of extensions that were tried.
    pub(crate) extensions: u64,
}

impl Found {
    /// No schedule, but a bound.
    pub(crate) fn nothing(bound: Micros) -> Self {
        Self { sequence: None, value: f64::INFINITY, bound, relaxation: bound, extensions: 0 }
    }
}

/// Goal of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal<'a> {
    /// The best that ends by this time: later ends are of no use.
    By(Micros),
    /// The best schedule, if it is better than the shared incumbent.
    Beat(&'a SharedIncumbent),
}

impl Goal<'_> {
    /// No schedule that ends later is of use.
    fn cutoff(self) -> Micros {
        match self {
            Self::By(time) => (time * (1.0 + SAME)).min(f64::MAX),
            Self::Beat(_) => f64::MAX,
        }
    }

    fn in_hand(self) -> Micros {
        match self {
            Self::By(_) => f64::INFINITY,
            Self::Beat(incumbent) => incumbent.value(),
        }
    }
}

struct Direction<const WORDS: usize> {
    graph: Graph,
    masks: Masks<WORDS>,
    backwards: bool,
    /// Bound of its last sweep, whether that found a better schedule, and its effort.
    proven: Micros,
    improved: bool,
    extensions: u64,
}

impl<const WORDS: usize> Direction<WORDS> {
    fn new(graph: Graph, backwards: bool) -> Self {
        let masks = Masks::new(&graph);
        Self { graph, masks, backwards, proven: 0.0, improved: false, extensions: 0 }
    }

    /// True if this is the direction to go on with.
    fn is_ahead_of(&self, other: &Self) -> bool {
        if self.proven != other.proven {
            return self.proven > other.proven;
        }
        if self.improved != other.improved { self.improved } else { self.extensions < other.extensions }
    }
}

/// As many states as fit: two layers of figures, and for each task a step back.
fn most_width(graph: &Graph) -> usize {
    let (tasks, devices) = (graph.tasks, graph.devices);
    let figures = size_of::<f64>() * devices * (2 + tasks.min(48));
    let bytes = 2 * (figures + 200) + (8 + devices) * tasks;
    (MOST_BYTES / bytes).clamp(FIRST_WIDTH, MOST_WIDTH)
}

/// Looks for the schedule that ends first.
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
    let mut found = Found::nothing(0.0);
    let mut width = FIRST_WIDTH;
    let most_width = most_width(graph);
    let mut chosen = None;
    'widths: while width <= most_width {
        for index in 0..directions.len() {
            if chosen.is_some_and(|chosen| chosen != index) {
                continue;
            }
            let (this, other) = (&directions[index], &directions[1 - index]);
            let best = found.value.min(goal.in_hand());
            // What ends later is of no use.
            let needed = goal.cutoff().min(below(best, whole));
            // Narrow sweeps find other schedules, and often better ones, if they only have their own to beat.
            let own = goal.cutoff().min(below(found.value, whole));
            let cutoff = if width <= TRIAL_WIDTH { own } else { needed };
            let bounds = Bounds::new::<WORDS>(&this.graph, &other.graph, cutoff);
            // Without a schedule in hand, what a cutoff excludes is not known to be all.
            let limit = if bounds.value > needed { beyond(needed, best) } else { bounds.value };
            found.bound = found.bound.max(limit.min(best));
            if found.relaxation == 0.0 {
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
            let unseen = if whole { (outcome.bound - 1e-6).ceil() } else { outcome.bound };
            let backwards = this.backwards;
            let direction = &mut directions[index];
            (direction.proven, direction.improved, direction.extensions) =
                (unseen, outcome.sequence.is_some(), outcome.extensions);
            if let Some(sequence) = outcome.sequence {
                let sequence = if backwards { turned(graph, &sequence) } else { sequence };
                let (_, value) = graph.starts(&sequence);
                if value < found.value {
                    found.value = value;
                    found.sequence = Some(sequence);
                    observer.plan(value);
                }
            }
            let best = best.min(found.value);
            let limit = if unseen.is_infinite() { beyond(cutoff, best) } else { unseen };
            found.bound = found.bound.max(limit.min(best));
            observer.bound(found.bound, "exact");
            if !outcome.finished || unseen > goal.cutoff().min(below(best, whole)) {
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

/// Schedules that end by this time are better.
fn below(value: Micros, whole: bool) -> Micros {
    if whole { (value - 1e-6).ceil() - 1.0 } else { value * (1.0 - SAME) }
}

/// Bound that is proven when no schedule ends by the cutoff: that it is passed, or that the one in hand is best.
fn beyond(cutoff: Micros, value: Micros) -> Micros {
    if cutoff >= f64::MAX || value.is_finite() { f64::INFINITY } else { cutoff }
}

/// A sequence of the reversed graph as one of the graph.
fn turned(graph: &Graph, sequence: &[(usize, usize)]) -> Vec<(usize, usize)> {
    sequence.iter().rev().map(|(task, device)| (graph.tasks - 1 - task, *device)).collect()
}
