//! Layered drawing of the task graph (Sugiyama): each task is in a layer behind all its predecessors.
//!
//! Layers by longest path, orders within layers by the barycenter heuristic, then rows as straight as the order allows.

mod place;

use divi_planner::problem::Problem;

use crate::order::{edges, topological};

/// Number of forward and backward sweeps of the ordering.
const SWEEPS: usize = 6;
/// Maximum number of bends of long edges that take part in the ordering; the shortest edges come first.
const MOST_BENDS: usize = 30_000;

/// Positions of tasks and edges, in layers and rows.
pub(crate) struct Layout {
    /// Layer of each task.
    pub(crate) layer: Vec<usize>,
    /// Row of each task within its layer; rows are at least one apart.
    pub(crate) row: Vec<f64>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) layers: usize,
    /// Upper end of the range of rows, which starts at zero.
    pub(crate) height: f64,
}

pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Rows at the layers in between; empty if there are none, or if the edge exceeds the limit on bends.
    pub(crate) bends: Vec<f64>,
}

/// Tasks and bends (dummy vertices of long edges) by layer.
struct Layers {
    /// Vertices of each layer, in order.
    members: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    behind: Vec<Vec<usize>>,
    /// Position of each vertex in its layer.
    index: Vec<usize>,
    /// Number of tasks; all further vertices are bends.
    tasks: usize,
}

impl Layout {
    pub(crate) fn of(problem: &Problem) -> Self {
        let edges = edges(problem);
        let layer = longest_paths(problem.nodes.len(), &edges);
        let count = layer.iter().map(|layer| layer + 1).max().unwrap_or(0);
        let (mut layers, bends) = Layers::of(&layer, count, &edges);
        for _ in 0..SWEEPS {
            layers.sweep();
        }
        let rows = place::rows(&layers);
        let lowest = rows.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = rows.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let row = |vertex: &usize| rows[*vertex] - lowest;
        let edges = edges.iter().zip(&bends);
        Self {
            row: (0..layer.len()).map(|task| row(&task)).collect(),
            edges: edges
                .map(|((from, to), bends)| Edge { from: *from, to: *to, bends: bends.iter().map(row).collect() })
                .collect(),
            layers: count,
            height: (highest - lowest).max(0.0),
            layer,
        }
    }
}

/// Returns the longest-path layer of each task; tasks without predecessors are placed right before their first consumer.
fn longest_paths(tasks: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut behind = vec![Vec::new(); tasks];
    let mut reads = vec![false; tasks];
    for &(from, to) in edges {
        behind[from].push(to);
        reads[to] = true;
    }
    let mut layer = vec![0; tasks];
    for task in topological(tasks, edges.iter().copied()) {
        for &next in &behind[task] {
            layer[next] = layer[next].max(layer[task] + 1);
        }
    }
    for task in (0..tasks).filter(|task| !reads[*task]) {
        layer[task] = behind[task].iter().map(|next| layer[*next] - 1).min().unwrap_or(0);
    }
    layer
}

impl Layers {
    /// Builds the layers in the order of the tasks' numbers; returns them with the bends of each edge.
    fn of(layer: &[usize], count: usize, edges: &[(usize, usize)]) -> (Self, Vec<Vec<usize>>) {
        let tasks = layer.len();
        let mut layers = Self {
            members: vec![Vec::new(); count],
            before: vec![Vec::new(); tasks],
            behind: vec![Vec::new(); tasks],
            index: Vec::new(),
            tasks,
        };
        (0..tasks).for_each(|task| layers.members[layer[task]].push(task));
        let mut by_length: Vec<usize> = (0..edges.len()).collect();
        let length = |edge: usize| layer[edges[edge].1] - layer[edges[edge].0];
        by_length.sort_by_key(|edge| length(*edge));
        let mut bends = vec![Vec::new(); edges.len()];
        for edge in by_length {
            let (from, to) = edges[edge];
            if layers.before.len() - tasks + length(edge).saturating_sub(1) > MOST_BENDS {
                continue;
            }
            let mut last = from;
            for between in layer[from] + 1..layer[to] {
                let bend = layers.before.len();
                layers.before.push(Vec::new());
                layers.behind.push(Vec::new());
                layers.members[between].push(bend);
                layers.join(last, bend);
                bends[edge].push(bend);
                last = bend;
            }
            layers.join(last, to);
        }
        layers.index = vec![0; layers.before.len()];
        (0..count).for_each(|layer| layers.number(layer));
        (layers, bends)
    }

    fn join(&mut self, from: usize, to: usize) {
        self.behind[from].push(to);
        self.before[to].push(from);
    }

    fn number(&mut self, layer: usize) {
        for (index, member) in self.members[layer].iter().enumerate() {
            self.index[*member] = index;
        }
    }

    /// Sorts each layer by the barycenter of its predecessors (forward), then of its successors (backward).
    fn sweep(&mut self) {
        for layer in 1..self.members.len() {
            self.sort(layer, false);
        }
        for layer in (0..self.members.len().saturating_sub(1)).rev() {
            self.sort(layer, true);
        }
    }

    fn sort(&mut self, layer: usize, backwards: bool) {
        let neighbours = if backwards { &self.behind } else { &self.before };
        let middle = |member: usize| {
            let all = &neighbours[member];
            // A vertex without neighbors keeps its position.
            let sum: usize = all.iter().map(|other| self.index[*other]).sum();
            if all.is_empty() { self.index[member] as f64 } else { sum as f64 / all.len() as f64 }
        };
        let mut members: Vec<(f64, usize)> =
            self.members[layer].iter().map(|member| (middle(*member), *member)).collect();
        members.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.members[layer] = members.into_iter().map(|(_, member)| member).collect();
        self.number(layer);
    }
}

#[cfg(test)]
mod tests;
