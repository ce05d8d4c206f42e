//! Dominance memo: of two placements of the first layers, one with no larger load anywhere makes the other redundant if
//! later layers cannot distinguish them.

use rustc_hash::FxHashMap;

use super::model::Model;
use super::state::State;

/// With more machines there are too many links to compare.
const MAX_MACHINES: usize = 16;
/// Limit on the total number of live layers over all depths.
const MAX_LIVE: usize = 4_000_000;
/// Limit on the total length of stored load vectors.
const MAX_STORED: usize = 1 << 22;
/// Limit on stored placements with the same key.
const MAX_PER_KEY: usize = 24;

pub(super) struct Memo {
    /// By depth: placed layers that later ones read from or share a machine with.
    live: Vec<Vec<u32>>,
    /// By depth: values that move once to each machine and have later readers; the machines that have them are part of
    /// the key.
    moved: Vec<Vec<u32>>,
    /// By key: load vectors of stored placements.
    seen: FxHashMap<Vec<u32>, Vec<Vec<f64>>>,
    /// Total length of the stored vectors.
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
        let (mut live, mut moved) = (Vec::new(), Vec::new());
        if model.machines <= MAX_MACHINES && all <= MAX_LIVE {
            live = vec![Vec::new(); layers + 1];
            for (layer, until) in until.into_iter().enumerate() {
                (layer + 1..=until).for_each(|depth| live[depth].push(layer as u32));
            }
            moved = vec![Vec::new(); layers + 1];
            for (value, (from, until)) in values.into_iter().enumerate() {
                (from + 1..=until).for_each(|depth| moved[depth].push(value as u32));
            }
        }
        Self { live, moved, seen: FxHashMap::default(), kept: 0, key: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.seen.clear();
        self.kept = 0;
    }

    /// Returns true if an earlier placement dominates this one. Otherwise stores it: the search is depth first, so all
    /// of its completions are explored before the next placement of this depth.
    pub(super) fn is_dominated(&mut self, state: &State<'_>, counts_runs: bool) -> bool {
        let Some(live) = self.live.get(state.placed()) else { return false };
        self.key.clear();
        self.key.push(state.placed() as u32);
        // The cost of a change of machine depends on the last layer's machine.
        self.key.extend(counts_runs.then(|| state.on.last().copied()).flatten());
        self.key.extend(live.iter().map(|layer| state.on[*layer as usize]));
        self.key.extend(self.moved[state.placed()].iter().map(|value| state.delivered_to(*value)));
        let mut vector = state.loads.clone();
        if counts_runs {
            vector.push(state.splits as f64);
            vector.extend(state.runs.iter().map(|runs| f64::from(*runs)));
        }
        if let Some(others) = self.seen.get_mut(&self.key) {
            if others.iter().any(|other| other.iter().zip(&vector).all(|(other, this)| other <= this)) {
                return true;
            }
            if others.len() < MAX_PER_KEY && self.kept + vector.len() <= MAX_STORED {
                self.kept += vector.len();
                others.push(vector);
            }
        } else if self.kept + vector.len() <= MAX_STORED {
            self.kept += vector.len();
            self.seen.insert(self.key.clone(), vec![vector]);
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
