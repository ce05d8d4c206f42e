//! Partial schedules of the same number of tasks: kept only while none of them is at least as good in every respect.

use rustc_hash::FxHashMap;

use super::set::Set;
use crate::model::units::Micros;

/// A partial schedule, as far as its future depends on it. What the numbers in its figures are, the sweep knows: smaller
/// ones are never worse.
#[derive(Clone, Debug)]
pub(crate) struct State<const WORDS: usize> {
    pub(crate) done: Set<WORDS>,
    /// Undone tasks that have figures of their own.
    pub(crate) front: Set<WORDS>,
    /// Its place in the layer before.
    pub(crate) parent: u32,
    /// The task that was started last, and where.
    pub(crate) task: u16,
    pub(crate) device: u8,
    /// When that was.
    pub(crate) begun: Micros,
    /// When the last delivery of what is done is over.
    pub(crate) reach: Micros,
    /// No completion ends before this.
    pub(crate) bound: Micros,
    /// The sum of the figures that are times: a state that is at least as good as another has no larger one.
    pub(crate) sum: f64,
}

/// What a layer knows of a state: where its figures are, and whether no other is at least as good.
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
    /// For each state the order of its devices in terms of its parent's; empty where no two devices are equal.
    orders: Vec<u8>,
    /// Living states by what is done.
    rivals: FxHashMap<Set<WORDS>, Vec<u32>>,
    living: usize,
    /// Number of others that a state is compared with at most.
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

    /// Adds a state unless another is at least as good; those that it is at least as good as die.
    pub(crate) fn add(&mut self, state: State<WORDS>, figures: &[f64], order: &[u8]) {
        let rivals = self.rivals.entry(state.done).or_default();
        let mut index = rivals.len().saturating_sub(self.most_rivals);
        while index < rivals.len() {
            let place = rivals[index] as usize;
            let (rival, entry) = (&self.states[place], &mut self.entries[place]);
            let theirs = &self.figures[entry.figures..entry.figures + figures.len()];
            if rival.sum <= state.sum {
                if rival.reach <= state.bound && no_worse(theirs, figures) {
                    return;
                }
                index += 1;
            } else if state.reach <= rival.bound && no_worse(figures, theirs) {
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

    /// Buries the dead, and keeps the most promising states if there are more than `width`. Returns the least bound of
    /// what was given up, infinite if nothing was.
    pub(crate) fn thin(&mut self, width: usize, devices: usize) -> Micros {
        let mut kept: Vec<usize> = (0..self.states.len()).filter(|index| self.entries[*index].alive).collect();
        let mut given_up = f64::INFINITY;
        if kept.len() > width {
            let rank = |index: &usize| (self.states[*index].bound, self.states[*index].sum);
            kept.sort_by(|a, b| {
                let (a_rank, b_rank) = (rank(a), rank(b));
                a_rank.0.total_cmp(&b_rank.0).then(a_rank.1.total_cmp(&b_rank.1)).then(a.cmp(b))
            });
            given_up = kept[width..].iter().map(|index| self.states[*index].bound).fold(given_up, f64::min);
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
        given_up
    }

    /// What it takes to find the way back later.
    pub(crate) fn trace(&self) -> Trace {
        let step = |state: &State<WORDS>| Step { parent: state.parent, task: state.task, device: state.device };
        Trace { steps: self.states.iter().map(step).collect(), orders: self.orders.clone() }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) parent: u32,
    pub(crate) task: u16,
    /// In terms of the state's own order of devices.
    pub(crate) device: u8,
}

/// A layer without what only its successors need.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) steps: Vec<Step>,
    pub(crate) orders: Vec<u8>,
}

fn no_worse(figures: &[f64], than: &[f64]) -> bool {
    figures.iter().zip(than).all(|(a, b)| a <= b)
}
