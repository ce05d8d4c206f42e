//! Orders of the tasks in which each comes after those whose values it reads.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::model::Model;
use crate::random::Random;

/// A task that waits for nothing; the highest key first, of equals the lowest number.
struct Ready(f64, u32);

impl Ord for Ready {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}

impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ready {}

/// Kahn's algorithm with priorities (Algorithm 3).
pub(super) fn by_keys(model: &Model, keys: &[f64]) -> Vec<u32> {
    let mut waits: Vec<u32> = model.before.iter().map(|before| before.len() as u32).collect();
    let is_free = |task: &usize| model.before[*task].is_empty();
    let mut ready: BinaryHeap<Ready> =
        (0..model.tasks()).filter(is_free).map(|task| Ready(keys[task], task as u32)).collect();
    let mut order = Vec::with_capacity(model.tasks());
    while let Some(Ready(_, task)) = ready.pop() {
        order.push(task);
        for &after in &model.after[task as usize] {
            waits[after as usize] -= 1;
            if waits[after as usize] == 0 {
                ready.push(Ready(keys[after as usize], after));
            }
        }
    }
    order
}

/// Independent keys.
pub(super) fn random_keys(model: &Model, random: &mut Random) -> Vec<f64> {
    (0..model.tasks()).map(|_| random.unit()).collect()
}

/// What keeps an order's tensors long (MLA): the sum of the ways from maker to reader, with the tensors' times as weights
/// or without.
pub(super) fn length(model: &Model, order: &[u32], weighted: bool) -> f64 {
    let mut place = vec![0_u32; order.len()];
    order.iter().enumerate().for_each(|(position, task)| place[*task as usize] = position as u32);
    let way = |from: u32, to: u32| f64::from(place[to as usize].abs_diff(place[from as usize]));
    let tensor = |tensor: &super::model::Tensor| {
        let ways: f64 = tensor.readers.iter().map(|reader| way(tensor.producer, *reader)).sum();
        if weighted { ways * tensor.time } else { ways }
    };
    model.tensors.iter().map(tensor).sum()
}
