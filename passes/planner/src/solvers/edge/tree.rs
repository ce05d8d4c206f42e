//! Search tree of placements: each level places one layer, on each machine that may improve on the incumbent.

use std::time::Instant;

use super::bounds;
use super::memo::Memo;
use super::model::Model;
use super::state::State;
use crate::model::budget::Budget;
use crate::model::plan::Limit;
use crate::model::units::Micros;

/// Search nodes between checks of the deadline.
const STEPS: u64 = 1024;
/// Relative improvement that counts as better.
const BETTER: f64 = 1.0 - 1e-9;

/// A placement by layers, and its period.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) on: Vec<u32>,
    pub(super) period: Micros,
}

/// Number of explored search nodes, and their budget.
pub(super) struct Effort {
    pub(super) explored: u64,
    budget: Budget,
}

impl Effort {
    pub(super) fn new(limit: Option<Limit>, by_default: u64) -> Self {
        Self { explored: 0, budget: Budget::new(limit, Instant::now(), by_default) }
    }

    /// Returns one of `parts` equal parts of the remaining budget, as absolute limits of nodes and time.
    pub(super) fn part(&self, parts: u32) -> Budget {
        let left = self.budget.iterations.saturating_sub(self.explored);
        let iterations = self.explored + if left > 0 { (left / u64::from(parts)).max(1) } else { 0 };
        Budget { iterations, ..self.budget.share_of_time(1.0 / f64::from(parts)) }
    }

    fn is_spent(&self, until: &Budget) -> bool {
        self.explored >= until.iterations || (self.explored.is_multiple_of(STEPS) && until.is_late())
    }
}

/// Reason for the end of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A better placement was found, and one was enough.
    Found,
    /// No better placement exists.
    Exhausted,
    /// The budget was spent.
    Stopped,
}

/// Goal of a search.
#[derive(Clone, Copy)]
pub(super) struct Goal {
    /// Exclusive upper limit on the period.
    pub(super) below: Micros,
    pub(super) splits: usize,
    /// True if the first such placement is enough.
    pub(super) any: bool,
    pub(super) until: Budget,
}

pub(super) struct Tree<'a> {
    pub(super) model: &'a Model,
    state: State<'a>,
    memo: Memo,
    /// Scratch space.
    rooms: Vec<f64>,
    moving: Vec<Micros>,
}

/// Machines not yet tried for a layer, the next one last.
struct Choices {
    machines: Vec<u32>,
    /// True if there is no alternative; such nodes are not counted.
    forced: bool,
}

impl<'a> Tree<'a> {
    pub(super) fn new(model: &'a Model) -> Self {
        let (state, memo) = (State::new(model), Memo::new(model));
        Self { model, state, memo, rooms: Vec::new(), moving: Vec::new() }
    }

    /// Searches depth first for placements below the goal and passes each improvement to `found`.
    pub(super) fn search(&mut self, mut goal: Goal, effort: &mut Effort, mut found: impl FnMut(Placed)) -> End {
        let layers = self.model.layers();
        self.state = State::new(self.model);
        self.memo.clear();
        goal.splits = goal.splits.min(layers);
        if goal.splits + 1 < layers {
            goal.splits = goal.splits.min(bounds::splits(self.model, goal.below));
        }
        let counts_runs = self.model.counts_runs(goal.splits);
        let mut open = vec![self.choices(goal.splits)];
        while let Some(choices) = open.last_mut() {
            let Some(machine) = choices.machines.pop() else {
                open.pop();
                self.state.undo();
                continue;
            };
            if !choices.forced {
                if effort.is_spent(&goal.until) {
                    return End::Stopped;
                }
                effort.explored += 1;
            }
            self.state.place(machine as usize);
            if self.state.placed() == layers && self.state.value() < goal.below {
                let period = self.state.value();
                found(Placed { on: self.state.on.clone(), period });
                if goal.any {
                    return End::Found;
                }
                goal.below = period * BETTER;
            }
            if self.state.placed() == layers || !self.may_be_better(&goal, counts_runs) {
                self.state.undo();
                continue;
            }
            open.push(self.choices(goal.splits));
        }
        End::Exhausted
    }

    fn may_be_better(&mut self, goal: &Goal, counts_runs: bool) -> bool {
        let (model, state, below) = (self.model, &self.state, goal.below);
        state.value() < below
            && bounds::work_fits(model, state, below, goal.splits, &mut self.rooms)
            && bounds::readers_fit(model, state, below, &mut self.moving)
            && !self.memo.is_dominated(state, counts_runs)
    }

    /// Returns the machines for the next layer: the last layer's machine first, then by increasing load.
    fn choices(&self, splits: usize) -> Choices {
        let (model, state) = (self.model, &self.state);
        let layer = state.placed();
        let leader = model.leader[layer] as usize;
        let current = state.current();
        let may_be = |machine: usize| {
            let runs = state.runs[machine] as usize;
            let enters = current.is_none() || (state.splits < splits && runs < model.threads[machine]);
            // Of identical idle machines, only the first is tried.
            let is_first = runs > 0
                || model.identical_before[machine].is_none_or(|identical_before| state.runs[identical_before] > 0);
            model.time(layer, machine).is_finite()
                && (leader == layer || state.on[leader] as usize == machine)
                && (current == Some(machine) || (enters && is_first))
        };
        let mut machines: Vec<u32> = (0..model.machines as u32).filter(|machine| may_be(*machine as usize)).collect();
        let key = |machine: &u32| {
            let machine = *machine as usize;
            let stays = current == Some(machine);
            (if stays { Micros(-1.0) } else { state.work(machine) + model.time(layer, machine) }, machine)
        };
        machines.sort_by(|one, other| {
            let ((one, first), (other, second)) = (key(one), key(other));
            other.total_cmp(&one).then(second.cmp(&first))
        });
        Choices { forced: machines.len() < 2, machines }
    }
}

/// Returns the exclusive upper limit for placements that improve on a period.
pub(super) fn better_than(period: Micros) -> Micros {
    period * BETTER
}
