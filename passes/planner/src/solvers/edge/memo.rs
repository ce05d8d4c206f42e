//! Dominance memo: of two placements of the first layers, one with no larger load anywhere makes the other redundant if
//! later layers cannot distinguish them.

use rustc_hash::FxHashMap;

use super::model::Model;
use super::state::State;

/// With more machines there are too many links to compare.
const MOST_MACHINES: usize = 16;
/// Limit on the total number of live layers over all depths.
const MOST_ALIVE: usize = 4_000_000;
/// Limit on stored loads.
const MOST_KEPT: usize = 1 << 22;
/// Limit on stored placements with the same key.
const MOST_ALIKE: usize = 24;

pub(super) struct Memo {
    /// By depth: placed layers that later ones read from or share a machine with.
    alive: Vec<Vec<u32>>,
    /// By depth: values that move once to each machine and have later readers; the machines that have them are part of
    /// the key.
    moved: Vec<Vec<u32>>,
    seen: FxHashMap<Vec<u32>, Vec<Vec<f64>>>,
    kept: usize,
    key: Vec<u32>,
}

impl Memo {
    pub(super) fn new(model: &Model) -> Self {
        let layers = model.layers();
        let mut until: Vec<usize> = model
            .readers
            .iter()
            .enumerate()
            .map(|(layer, readers)| readers.last().map_or(layer, |last| *last as usize))
            .collect();
        for (layer, leader) in model.leader.iter().enumerate() {
            until[*leader as usize] = until[*leader as usize].max(layer);
        }
        let all: usize = until.iter().enumerate().map(|(layer, until)| until - layer).sum();
        let values = values(model);
        let all = all + values.iter().map(|(from, until)| until - from).sum::<usize>();
        let (mut alive, mut moved) = (Vec::new(), Vec::new());
        if model.machines <= MOST_MACHINES && all <= MOST_ALIVE {
            alive = vec![Vec::new(); layers + 1];
            for (layer, until) in until.into_iter().enumerate() {
                (layer + 1..=until).for_each(|depth| alive[depth].push(layer as u32));
            }
            moved = vec![Vec::new(); layers + 1];
            for (value, (from, until)) in values.into_iter().enumerate() {
                (from + 1..=until).for_each(|depth| moved[depth].push(value as u32));
            }
        }
        Self { alive, moved, seen: FxHashMap::default(), kept: 0, key: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.seen.clear();
        self.kept = 0;
    }

    /// Returns true if an earlier placement dominates this one. If not, it is stored: when the search reaches this
    /// depth again, all its completions have been explored.
    pub(super) fn is_dominated(&mut self, state: &State<'_>, counts_runs: bool) -> bool {
        let Some(alive) = self.alive.get(state.placed()) else { return false };
        self.key.clear();
        self.key.push(state.placed() as u32);
        // The cost of a change of machine depends on the last layer's machine.
        self.key.extend(counts_runs.then(|| state.on.last().copied()).flatten());
        self.key.extend(alive.iter().map(|layer| state.on[*layer as usize]));
        self.key.extend(self.moved[state.placed()].iter().map(|value| state.delivered_to(*value)));
        let takes = |state: &State<'_>| -> Vec<f64> {
            let mut takes = state.loads.clone();
            if counts_runs {
                takes.push(state.splits as f64);
                takes.extend(state.runs.iter().map(|runs| f64::from(*runs)));
            }
            takes
        };
        let takes = takes(state);
        if let Some(others) = self.seen.get_mut(&self.key) {
            if others.iter().any(|other| other.iter().zip(&takes).all(|(other, this)| other <= this)) {
                return true;
            }
            if others.len() < MOST_ALIKE && self.kept + takes.len() <= MOST_KEPT {
                self.kept += takes.len();
                others.push(takes);
            }
        } else if self.kept + takes.len() <= MOST_KEPT {
            self.kept += takes.len();
            self.seen.insert(self.key.clone(), vec![takes]);
        }
        false
    }
}

/// Returns for each value that moves once to each machine the layer that produces it and its last reader.
fn values(model: &Model) -> Vec<(usize, usize)> {
    let mut values = vec![(0, 0); model.shared];
    for (layer, reads) in model.reads.iter().enumerate() {
        for read in reads {
            if let Some(value) = read.shared {
                values[value as usize] = (read.with as usize, layer);
            }
        }
    }
    values
}
