//! Layer of partial schedules with the same number of tasks; dominated ones are removed.

use rustc_hash::FxHashMap;

use super::set::Set;
use crate::model::units::Micros;

/// Partial schedule, reduced to what its future depends on. Its figures are times and bytes; smaller ones are never
/// worse.
#[derive(Clone, Debug)]
pub(crate) struct State<const WORDS: usize> {
    pub(crate) done: Set<WORDS>,
    /// Unfinished tasks with figures of their own.
    pub(crate) front: Set<WORDS>,
    /// Index in the previous layer.
    pub(crate) parent: u32,
    /// Task that was started last, and its device.
    pub(crate) task: u16,
    pub(crate) device: u8,
    /// Start of that task.
    pub(crate) last_start: Micros,
    /// End of the last delivery of finished tasks.
    pub(crate) last_delivery: Micros,
    /// Lower bound on all completions.
    pub(crate) bound: Micros,
    /// Sum of the figures that are times: a dominating state has no larger sum.
    pub(crate) sum: Micros,
}

/// Location of a state's figures, and whether the state is not dominated.
#[derive(Clone, Copy, Debug)]
struct Entry {
    figures: usize,
    length: u32,
    alive: bool,
}

#[derive(Debug)]
pub(crate) struct Layer<const WORDS: usize> {
    pub(crate) states: Vec<State<WORDS>>,
    /// By state.
    entries: Vec<Entry>,
    figures: Vec<f64>,
    /// By state: permutation of the devices relative to its parent; empty if no two devices are equal.
    orders: Vec<u8>,
    /// Non-dominated states by set of finished tasks.
    rivals: FxHashMap<Set<WORDS>, Vec<u32>>,
    living: usize,
    /// Maximum number of states that a new state is compared with.
    most_rivals: usize,
}

impl<const WORDS: usize> Layer<WORDS> {
    pub(crate) fn new(most_rivals: usize) -> Self {
        Self {
            states: Vec::new(),
            entries: Vec::new(),
            figures: Vec::new(),
            orders: Vec::new(),
            rivals: FxHashMap::default(),
            living: 0,
            most_rivals,
        }
    }

    pub(crate) fn figures(&self, place: usize) -> &[f64] {
        let Entry { figures, length, .. } = self.entries[place];
        &self.figures[figures..figures + length as usize]
    }

    pub(crate) fn order(&self, place: usize, devices: usize) -> Option<&[u8]> {
        (!self.orders.is_empty()).then(|| &self.orders[place * devices..(place + 1) * devices])
    }

    pub(crate) fn living(&self) -> usize {
        self.living
    }

    /// Adds a state unless it is dominated; removes the states that it dominates.
    pub(crate) fn add(&mut self, state: State<WORDS>, figures: &[f64], order: &[u8]) {
        let rivals = self.rivals.entry(state.done).or_default();
        let mut index = rivals.len().saturating_sub(self.most_rivals);
        while index < rivals.len() {
            let place = rivals[index] as usize;
            let (rival, entry) = (&self.states[place], &mut self.entries[place]);
            let theirs = &self.figures[entry.figures..entry.figures + figures.len()];
            if rival.sum <= state.sum {
                if rival.last_delivery <= state.bound && no_worse(theirs, figures) {
                    return;
                }
                index += 1;
            } else if state.last_delivery <= rival.bound && no_worse(figures, theirs) {
                entry.alive = false;
                self.living -= 1;
                rivals.swap_remove(index);
            } else {
                index += 1;
            }
        }
        rivals.push(self.states.len() as u32);
        self.entries.push(Entry { figures: self.figures.len(), length: figures.len() as u32, alive: true });
        self.figures.extend_from_slice(figures);
        self.orders.extend_from_slice(order);
        self.living += 1;
        self.states.push(state);
    }

    /// Removes dominated states, and keeps the best ones if there are more than `width`. Returns the least bound of the
    /// dropped states, infinite if none was dropped.
    pub(crate) fn thin(&mut self, width: usize, devices: usize) -> Micros {
        let mut kept: Vec<usize> = (0..self.states.len()).filter(|index| self.entries[*index].alive).collect();
        let mut dropped = Micros::INFINITY;
        if kept.len() > width {
            let rank = |index: &usize| (self.states[*index].bound, self.states[*index].sum);
            kept.sort_by(|a, b| {
                let (a_rank, b_rank) = (rank(a), rank(b));
                a_rank.0.total_cmp(&b_rank.0).then(a_rank.1.total_cmp(&b_rank.1)).then(a.cmp(b))
            });
            dropped = kept[width..].iter().map(|index| self.states[*index].bound).fold(dropped, Micros::min);
            kept.truncate(width);
            kept.sort_unstable();
        }
        let old = std::mem::replace(self, Self::new(self.most_rivals));
        for index in kept {
            let state = old.states[index].clone();
            self.rivals.entry(state.done).or_default().push(self.states.len() as u32);
            let figures = old.figures(index);
            self.entries.push(Entry { figures: self.figures.len(), ..old.entries[index] });
            self.figures.extend_from_slice(figures);
            if let Some(order) = old.order(index, devices) {
                self.orders.extend_from_slice(order);
            }
            self.states.push(state);
        }
        self.living = self.states.len();
        dropped
    }

    /// Returns the data for backtracking.
    pub(crate) fn trace(&self) -> Trace {
        let step = |state: &State<WORDS>| Step { parent: state.parent, task: state.task, device: state.device };
        Trace { steps: self.states.iter().map(step).collect(), orders: self.orders.clone() }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) parent: u32,
    pub(crate) task: u16,
    /// Index in the state's own permutation of devices.
    pub(crate) device: u8,
}

/// Backtracking data of a layer.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) steps: Vec<Step>,
    pub(crate) orders: Vec<u8>,
}

fn no_worse(figures: &[f64], than: &[f64]) -> bool {
    figures.iter().zip(than).all(|(a, b)| a <= b)
}
