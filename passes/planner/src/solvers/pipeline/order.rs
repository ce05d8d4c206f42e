//! Topological orders of the tasks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::model::Model;
use crate::model::units::Total;
use crate::random::Random;

/// Kahn's algorithm with priorities (Algorithm 3): of the ready tasks the one with the highest key first; ties go to
/// the lowest number.
pub(super) fn by_keys(model: &Model, keys: &[f64]) -> Vec<u32> {
    let mut waits: Vec<u32> = model.before.iter().map(|before| before.len() as u32).collect();
    let is_free = |task: &usize| model.before[*task].is_empty();
    let ready = |task: u32| (Total(keys[task as usize]), Reverse(task));
    let mut heap: BinaryHeap<_> = (0..model.tasks()).filter(is_free).map(|task| ready(task as u32)).collect();
    let mut order = Vec::with_capacity(model.tasks());
    while let Some((_, Reverse(task))) = heap.pop() {
        order.push(task);
        for &after in &model.after[task as usize] {
            waits[after as usize] -= 1;
            if waits[after as usize] == 0 {
                heap.push(ready(after));
            }
        }
    }
    order
}

/// Returns independent random keys.
pub(super) fn random_keys(model: &Model, random: &mut Random) -> Vec<f64> {
    (0..model.tasks()).map(|_| random.unit()).collect()
}

/// Returns the length of an order (minimum linear arrangement): the sum of distances from producers to readers,
/// optionally weighted by the tensors' times.
pub(super) fn length(model: &Model, order: &[u32], weighted: bool) -> f64 {
    let mut place = vec![0_u32; order.len()];
    order.iter().enumerate().for_each(|(position, task)| place[*task as usize] = position as u32);
    let way = |from: u32, to: u32| f64::from(place[to as usize].abs_diff(place[from as usize]));
    let tensor = |tensor: &super::model::Tensor| {
        let ways: f64 = tensor.readers.iter().map(|reader| way(tensor.producer, *reader)).sum();
        if weighted { ways * tensor.time.0 } else { ways }
    };
    model.tensors.iter().map(tensor).sum()
}
