//! Lower bounds on pipelines without an integer program.

use std::time::Instant;

use super::model::Model;
use super::pack::Effort;
use super::priced;
use super::reach::Reach;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit};
use crate::model::units::{Micros, deadline};

/// Limit on tasks for the transitive closure.
pub(super) const MOST_TASKS: usize = 10_000;
/// Limit of nodes in the search for blocks around one task: ample unless tensors are expensive.
pub(super) const CUT_NODES: u64 = 20_000;
/// Share of a time limit for that search.
const CUT_SHARE: f64 = 0.5;
/// Number of bisection steps, enough for full precision.
const HALVINGS: u32 = 50;
/// Relative tolerance for sums in a different order.
const ROUNDING: f64 = 1e-9;

/// Returns the best of the bounds below and of blocks cut out around one task.
pub(super) fn best(model: &Model, options: &Options) -> Bound {
    let since = Instant::now();
    let simple = simple(model);
    if model.tasks() > MOST_TASKS {
        return simple;
    }
    let windows = windows(model, simple.value);
    let best = if windows.value > simple.value { windows } else { simple };
    cut_since(model, best.value, options, since).unwrap_or(best)
}

/// Returns the bound by blocks cut out around one task if it is above a known one.
pub(super) fn cut(model: &Model, least: Micros, options: &Options) -> Option<Bound> {
    if model.tasks() > MOST_TASKS { None } else { cut_since(model, least, options, Instant::now()) }
}

fn cut_since(model: &Model, least: Micros, options: &Options, since: Instant) -> Option<Bound> {
    let mut effort = Effort::nodes(CUT_NODES);
    if let Some(Limit::Seconds(seconds)) = options.limit {
        effort.budget.deadline = deadline(since, seconds * CUT_SHARE);
    }
    priced::cut(model, least, &mut effort)
}

/// Lemma 3.3: longest task, and mean work per block.
pub(super) fn simple(model: &Model) -> Bound {
    let longest = model.work.iter().copied().fold(Micros::ZERO, Micros::max);
    let share = model.work.iter().sum::<Micros>() / model.k as f64;
    Bound::new(longest.max(share), "simple")
}

/// Blocks of a given length can be numbered topologically; then the work before and behind a task gives the first and
/// the last block that it can be in. Tasks confined to a range of blocks have to fit there.
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
    // Work of tasks by first and last block.
    let mut work = vec![Micros::ZERO; k * k];
    for task in 0..model.tasks() {
        let blocks = |work: Micros| ((work / length - ROUNDING).ceil() as usize).max(1);
        let (first, behind) = (blocks(reach.before[task]), blocks(reach.behind[task]));
        if first + behind > k + 1 {
            return false;
        }
        work[(first - 1) * k + k - behind] += model.work[task];
    }
    (0..k).all(|first| {
        let mut inside = Micros::ZERO;
        (first..k).all(|last| {
            inside += (first..=last).map(|from| work[from * k + last]).sum::<Micros>();
            inside <= length * (last - first + 1) as f64 * (1.0 + ROUNDING)
        })
    })
}
