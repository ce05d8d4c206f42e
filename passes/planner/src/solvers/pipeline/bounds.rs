//! Lower bounds on pipelines without an integer program.

use std::time::Instant;

use super::model::Model;
use super::pack::Effort;
use super::priced;
use super::reach::Reach;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit};
use crate::model::units::{Micros, deadline};

/// Of more tasks it takes too long to say who waits for whom.
pub(super) const MOST_TASKS: usize = 10_000;
/// Nodes of the search for blocks that are cut out: more than enough, but where tensors are dear.
pub(super) const CUT_NODES: u64 = 20_000;
/// The share of a time limit that they may take.
const CUT_SHARE: f64 = 0.5;
/// Bisections: as far as numbers differ.
const HALVINGS: u32 = 50;
/// Relative error of sums of times that are added up in another order.
const ROUNDING: f64 = 1e-9;

/// The better of what is below, and of blocks that are cut out around one task.
pub(super) fn best(model: &Model, options: &Options) -> Bound {
    let since = Instant::now();
    let simple = simple(model);
    if model.tasks() > MOST_TASKS {
        return simple;
    }
    let windows = windows(model, simple.value);
    let best = if windows.value > simple.value { windows } else { simple };
    let mut effort = Effort::nodes(CUT_NODES);
    if let Some(Limit::Seconds(seconds)) = options.limit {
        effort.budget.deadline = deadline(since, seconds * CUT_SHARE);
    }
    priced::cut(model, best.value, &mut effort).unwrap_or(best)
}

/// Lemma 3.3: the longest task has to be somewhere, and the average block has its share of all work.
pub(super) fn simple(model: &Model) -> Bound {
    let longest = model.work.iter().copied().fold(0.0, f64::max);
    let share = model.work.iter().sum::<Micros>() / model.k as f64;
    Bound::new(longest.max(share), "simple")
}

/// Blocks of some length can be numbered so that values only go up; then what a task waits for says which is the first
/// that it can be in, and what waits for it, which is the last. What has to be between two blocks has to fit there.
pub(super) fn windows(model: &Model, least: Micros) -> Bound {
    let reach = Reach::new(model);
    let (mut low, mut high) = (least, model.work.iter().sum::<Micros>().max(least));
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        if fits(model, &reach, middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Bound::new(low, "windows")
}

fn fits(model: &Model, reach: &Reach, length: Micros) -> bool {
    let k = model.k;
    // By the first and the last block of tasks, how much work they are.
    let mut work = vec![0.0; k * k];
    for task in 0..model.tasks() {
        let blocks = |work: Micros| ((work / length - ROUNDING).ceil() as usize).max(1);
        let (first, behind) = (blocks(reach.before[task]), blocks(reach.behind[task]));
        if first + behind > k + 1 {
            return false;
        }
        work[(first - 1) * k + k - behind] += model.work[task];
    }
    (0..k).all(|first| {
        let mut inside = 0.0;
        (first..k).all(|last| {
            inside += (first..=last).map(|from| work[from * k + last]).sum::<Micros>();
            inside <= length * (last - first + 1) as f64 * (1.0 + ROUNDING)
        })
    })
}
