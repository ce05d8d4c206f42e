//! Total work of ancestors and of descendants.

use super::model::Model;
use crate::model::units::Micros;

/// By task: total work of all ancestors, and of all descendants; its own included.
pub(super) struct Reach {
    pub(super) before: Vec<Micros>,
    pub(super) behind: Vec<Micros>,
}

impl Reach {
    pub(super) fn new(model: &Model) -> Self {
        let order: Vec<usize> = (0..model.tasks()).collect();
        let backwards: Vec<usize> = order.iter().rev().copied().collect();
        Self { before: work(model, &order, &model.before), behind: work(model, &backwards, &model.after) }
    }
}

/// Processes 64 tasks at a time as bits of a word. O(tasks · edges / 64).
fn work(model: &Model, order: &[usize], next: &[Vec<u32>]) -> Vec<Micros> {
    let mut sums = vec![Micros::ZERO; model.tasks()];
    let mut reached = vec![0_u64; model.tasks()];
    for first in (0..model.tasks()).step_by(64) {
        let some = first..(first + 64).min(model.tasks());
        for &task in order {
            let own = if some.contains(&task) { 1 << (task - first) } else { 0 };
            reached[task] = next[task].iter().fold(own, |set, other| set | reached[*other as usize]);
            let mut set = reached[task];
            while set != 0 {
                sums[task] += model.work[first + set.trailing_zeros() as usize];
                set &= set - 1;
            }
        }
    }
    sums
}
