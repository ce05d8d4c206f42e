//! Work that must fit between the earliest time at which it can begin and the latest at which it must have ended.
//!
//! If no task of a set starts before h, and all of them end before a task starts, then that task starts no earlier than h
//! plus what the set pays for time on devices (see [`super::load`]). Taking for the set those ancestors of a task whose
//! own heads are at least h, for each h, heads grow along the graph: after a bottleneck the work behind it is counted from
//! the bottleneck's head on. Tails are the same, backwards.

use super::Ways;
use super::load::Prices;
use crate::instance::{Arc, Instance};
use crate::units::Micros;

/// Beyond so many tasks, ancestors are not looked at: that takes the square of their number.
const MOST_TASKS: usize = 3000;
/// So many heads and tails are tried as ends of a window.
const WINDOW_ENDS: usize = 24;

pub(super) fn bound(instance: &Instance, ways: &Ways, prices: &Prices) -> Micros {
    let tasks = instance.tasks();
    let mut heads: Vec<Micros> = (0..tasks).map(|task| ways.head(instance, task)).collect();
    let mut tails: Vec<Micros> = (0..tasks).map(|task| ways.tail(instance, task)).collect();
    let forwards: Vec<usize> = instance.order().to_vec();
    let backwards: Vec<usize> = forwards.iter().rev().copied().collect();
    if tasks <= MOST_TASKS {
        raise(instance, prices, &forwards, |task| instance.predecessors(task), &mut heads);
        raise(instance, prices, &backwards, |task| instance.successors(task), &mut tails);
    }
    let shortest = |task: usize| {
        let on = |device: &usize| super::quickest(instance, task, *device);
        instance.allowed(task).iter().map(on).fold(f64::INFINITY, f64::min)
    };
    let through = (0..tasks).map(|task| heads[task] + shortest(task) + tails[task]).fold(0.0, f64::max);
    through.max(busiest_window(prices, &heads, &tails))
}

/// Raises each task's head by the work of those that come before it. One launch of each does: for a queue, no more is
/// sure to have happened.
fn raise<'a>(
    instance: &'a Instance,
    prices: &Prices,
    order: &[usize],
    before: impl Fn(usize) -> &'a [Arc],
    heads: &mut [Micros],
) {
    let tasks = instance.tasks();
    let words = tasks.div_ceil(64);
    let mut ancestors = vec![0_u64; tasks * words];
    let shortest = |task: usize| -> Micros {
        let on = |device: &usize| super::quickest(instance, task, *device);
        instance.allowed(task).iter().map(on).fold(f64::INFINITY, f64::min)
    };
    for &task in order {
        for arc in before(task) {
            for word in 0..words {
                let inherited = ancestors[arc.task * words + word];
                ancestors[task * words + word] |= inherited;
            }
            ancestors[task * words + arc.task / 64] |= 1 << (arc.task % 64);
            heads[task] = heads[task].max(heads[arc.task] + shortest(arc.task));
        }
        let mut set: Vec<usize> =
            (0..tasks).filter(|other| ancestors[task * words + other / 64] >> (other % 64) & 1 == 1).collect();
        set.sort_by(|a, b| heads[*b].total_cmp(&heads[*a]));
        for priced in &prices.pool {
            let mut paid = 0.0;
            for &other in &set {
                paid += priced.launch[other];
                heads[task] = heads[task].max(heads[other] + paid);
            }
        }
    }
}

/// The whole queue of those tasks that neither start before a window nor end after it, for several windows.
fn busiest_window(prices: &Prices, heads: &[Micros], tails: &[Micros]) -> Micros {
    let mut busiest: Micros = 0.0;
    for head in ends(heads) {
        for tail in ends(tails) {
            let inside: Vec<usize> =
                (0..heads.len()).filter(|task| heads[*task] >= head && tails[*task] >= tail).collect();
            // An empty window may begin after it ends.
            if inside.is_empty() {
                continue;
            }
            for priced in &prices.pool {
                let paid: Micros = inside.iter().map(|task| priced.queue[*task]).sum();
                busiest = busiest.max(head + paid + tail);
            }
        }
    }
    busiest
}

/// Some of the values, spread evenly over them.
fn ends(values: &[Micros]) -> Vec<Micros> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let step = values.len().div_ceil(WINDOW_ENDS).max(1);
    values.into_iter().step_by(step).collect()
}
