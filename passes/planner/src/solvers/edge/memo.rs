//! What has been looked at: of two ways to place the first layers, one that takes no more of anything makes the other
//! superfluous, as long as what is to come sees no difference.

use rustc_hash::FxHashMap;

use super::model::Model;
use super::state::State;

/// More machines have too many ways between them to compare.
const MOST_MACHINES: usize = 16;
/// Layers whose machines what is to come depends on, over all depths.
const MOST_ALIVE: usize = 4_000_000;
/// Loads that are kept.
const MOST_KEPT: usize = 1 << 22;
/// Ways to place the same layers that are compared.
const MOST_ALIKE: usize = 24;

pub(super) struct Memo {
    /// For each number of layers, those of them that layers to come read from, or share a machine with.
    alive: Vec<Vec<u32>>,
    /// And the values that move once to each machine and that layers to come read: where they are already makes a difference.
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

    /// Whether something that was here before makes this superfluous. If not, it is remembered: by the time that anything
    /// else comes to the same depth, all that begins like this has been looked at.
    pub(super) fn is_superfluous(&mut self, state: &State<'_>, counts_runs: bool) -> bool {
        let Some(alive) = self.alive.get(state.placed()) else { return false };
        self.key.clear();
        self.key.push(state.placed() as u32);
        // What a change of machine costs depends on the machine of the last layer.
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

/// For each value that moves once to each machine, the layer that makes it, and the last that reads it.
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
