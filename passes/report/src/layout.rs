//! Where tasks are in a picture of their graph: in layers, each behind all that it reads, with few crossings.
//!
//! Layers by longest path; orders within layers by barycentres; places as close to the neighbours' as the order allows.

mod place;

use divi_planner::problem::Problem;

use crate::order::{edges, topological};

/// How often the order of all layers is improved, there and back.
const SWEEPS: usize = 6;
/// Bends of long edges take part in the ordering while there are no more than these; the shortest edges come first.
const MOST_BENDS: usize = 30_000;

/// A picture of a graph, in layers and rows.
pub(crate) struct Layout {
    /// Of each task.
    pub(crate) layer: Vec<usize>,
    /// Of each task, within its layer; rows are at least one apart.
    pub(crate) row: Vec<f64>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) layers: usize,
    /// All rows are between zero and this.
    pub(crate) height: f64,
}

pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The rows where it passes the layers between; empty where it passes none, or has no place of its own there.
    pub(crate) bends: Vec<f64>,
}

/// Tasks and bends, layer by layer.
struct Layers {
    /// Of each layer, in order.
    members: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    behind: Vec<Vec<usize>>,
    /// The place of each in its layer.
    index: Vec<usize>,
    /// So many are tasks, the rest are bends.
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

/// The longest way to each task; those that nothing is before stand right before their first reader.
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
    /// The layers in the order of the tasks' numbers, and the bends of each edge.
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

    /// Sorts each layer by the middle of what is before it, then by that of what is behind.
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
            // What has no neighbours stays where it is.
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
