//! How much work has to be done before a task is done, and from when it begins.

use super::model::Model;
use crate::model::units::Micros;

/// For each task the work of all that it waits for, and of all that waits for it; its own included.
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

/// Tasks are worked on by 64 at a time: which of these each task reaches.
fn work(model: &Model, order: &[usize], next: &[Vec<u32>]) -> Vec<Micros> {
    let mut sums = vec![0.0; model.tasks()];
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
