//! Rows of vertices in layers of fixed order.

use super::Layers;

/// Number of forward and backward rounds.
const ROUNDS: usize = 6;
/// Height of a bend, in rows.
const BEND: f64 = 0.3;
/// Weight of a bend relative to a task: long edges should be straight.
const STRAIGHT: f64 = 4.0;

/// Returns the row of each vertex: vertices of a layer keep their minimal distance, edges are as straight as possible.
pub(super) fn rows(layers: &Layers) -> Vec<f64> {
    let mut rows = vec![0.0; layers.before.len()];
    for members in &layers.members {
        let length = members.len() as f64;
        for (index, member) in members.iter().enumerate() {
            rows[*member] = index as f64 - length / 2.0;
        }
    }
    let count = layers.members.len();
    for _ in 0..ROUNDS {
        (0..count).for_each(|layer| settle(layers, layer, &layers.before, &mut rows));
        (0..count).rev().for_each(|layer| settle(layers, layer, &layers.behind, &mut rows));
    }
    rows
}

/// Moves a layer to minimize the squared distances to its neighbors' barycenters (isotonic regression by pool adjacent
/// violators, after subtraction of the minimal distances).
fn settle(layers: &Layers, layer: usize, neighbours: &[Vec<usize>], rows: &mut [f64]) {
    struct Pool {
        sum: f64,
        weight: f64,
        members: usize,
    }
    let is_bend = |vertex: usize| vertex >= layers.tasks;
    let size = |vertex: usize| if is_bend(vertex) { BEND } else { 1.0 };
    let members = &layers.members[layer];
    let mut offsets = Vec::with_capacity(members.len());
    let mut pools: Vec<Pool> = Vec::new();
    let mut offset = 0.0;
    for (index, &member) in members.iter().enumerate() {
        if index > 0 {
            offset += (size(members[index - 1]) + size(member)) / 2.0;
        }
        offsets.push(offset);
        let all = &neighbours[member];
        let sum: f64 = all.iter().map(|other| rows[*other]).sum();
        let wanted = if all.is_empty() { rows[member] } else { sum / all.len() as f64 };
        let weight = if is_bend(member) { STRAIGHT } else { 1.0 };
        let mut pool = Pool { sum: weight * (wanted - offset), weight, members: 1 };
        while let Some(last) = pools.pop_if(|last| last.sum / last.weight > pool.sum / pool.weight) {
            pool = Pool {
                sum: pool.sum + last.sum,
                weight: pool.weight + last.weight,
                members: pool.members + last.members,
            };
        }
        pools.push(pool);
    }
    let settled = pools.iter().flat_map(|pool| std::iter::repeat_n(pool.sum / pool.weight, pool.members));
    for ((member, offset), at) in members.iter().zip(offsets).zip(settled) {
        rows[*member] = at + offset;
    }
}
