//! Lower bounds on the period, and upper bounds on the number of split points.
//!
//! The edge paper pads the placed layers with the last machine. That is no bound where a later layer reads several
//! values: it may be placed next to the one that is expensive to move. Here only placed layers count, and the work of
//! the others.

use super::model::Model;
use super::state::State;
use crate::model::units::{Bytes, Micros};

/// Relative tolerance for sums in a different order.
const ROUNDING: f64 = 1e-9;

/// Returns the period and the index of the best single machine that may run everything.
pub(super) fn single(model: &Model) -> Option<(Micros, usize)> {
    let total = |machine: usize| -> Micros { (0..model.layers()).map(|layer| model.time(layer, machine)).sum() };
    let fits = |machine: &usize| {
        let held: Bytes = model.held.iter().sum();
        model.capacity.get(*machine).is_none_or(|capacity| held <= *capacity)
    };
    let all = (0..model.machines).filter(fits).map(|machine| (total(machine), machine));
    all.filter(|(total, _)| total.is_finite()).min_by(|one, other| one.0.total_cmp(&other.0))
}

/// Longest layer on its fastest machine, and total work over the fastest machines, no more of them than there are runs.
pub(super) fn work(model: &Model, splits: usize) -> Micros {
    let quickest = |layer: usize| (0..model.machines).map(|m| model.time(layer, m)).fold(Micros::INFINITY, Micros::min);
    let longest = (0..model.layers()).map(quickest).filter(|time| time.is_finite()).fold(Micros::ZERO, Micros::max);
    let mut speed = model.speed.clone();
    speed.sort_unstable_by(|one, other| other.total_cmp(one));
    let together: f64 = speed.iter().take(splits.saturating_add(1)).sum();
    longest.max(Micros(model.left[0] / together * (1.0 - ROUNDING)))
}

/// Eqs. (10) and (11): with two machines something moves, which takes at least as long as the smallest value on the
/// fastest link. This requires a connected graph; otherwise components need no link.
pub(super) fn crossing(model: &Model) -> Micros {
    if !is_connected(model) {
        return Micros::ZERO;
    }
    let values = || model.reads.iter().flatten().map(|read| read.bytes);
    let Some(smallest) = values().min_by(Bytes::total_cmp) else { return Micros::ZERO };
    model.links().map(|(from, to)| model.move_time(smallest, from, to)).fold(Micros::INFINITY, Micros::min)
}

/// Returns true if the graph of layers and values is connected.
pub(super) fn is_connected(model: &Model) -> bool {
    let mut reached = vec![false; model.layers()];
    let mut next: Vec<usize> = (0..model.layers().min(1)).collect();
    while let Some(layer) = next.pop() {
        if !std::mem::replace(&mut reached[layer], true) {
            next.extend(model.reads[layer].iter().map(|read| read.with as usize));
            next.extend(model.readers[layer].iter().map(|reader| *reader as usize));
        }
    }
    reached.into_iter().all(|reached| reached)
}

/// Returns the maximum number of split points of a placement with a smaller period: eq. (9), corrected.
///
/// A split point between two layers of which one reads the other's value moves that value over a link. A link has time
/// for a limited number of the smallest such values per period, and links work in parallel. Split points between layers
/// that share no value are free.
pub(super) fn splits(model: &Model, period: Micros) -> usize {
    let of_pair = |layer: usize| {
        let moved = model.reads[layer].iter().filter(|read| read.with as usize + 1 == layer).map(|read| read.bytes);
        moved.min_by(Bytes::total_cmp)
    };
    let pairs: Vec<Option<Bytes>> = (1..model.layers()).map(of_pair).collect();
    let free = pairs.iter().filter(|bytes| bytes.is_none()).count();
    let Some(smallest) = pairs.iter().flatten().copied().min_by(Bytes::total_cmp) else { return free };
    let times = |(from, to): (usize, usize)| {
        let takes = model.move_time(smallest, from, to);
        if takes.is_infinite() {
            return 0.0;
        }
        // Slightly more than a period, to allow for rounding.
        if takes > Micros::ZERO { (period * (1.0 + ROUNDING) / takes).floor() } else { f64::INFINITY }
    };
    let most: f64 = model.links().map(times).sum();
    if most >= (pairs.len() - free) as f64 { pairs.len() } else { free + most as usize }
}

/// Returns true if the remaining work may fit into a period: on the current machine, and on as many others as splits
/// are left.
pub(super) fn work_fits(model: &Model, state: &State<'_>, period: Micros, splits: usize, rooms: &mut Vec<f64>) -> bool {
    let (Some(current), true) = (state.current(), period.is_finite()) else { return true };
    let room = |machine: usize| model.speed[machine] * (period - state.work(machine)).0.max(0.0);
    let others = (0..model.machines)
        .filter(|machine| *machine != current && (state.runs[*machine] as usize) < model.threads[*machine])
        .map(room);
    let most = splits - state.splits;
    let elsewhere: f64 = if most + 1 >= model.machines {
        others.sum()
    } else {
        rooms.clear();
        rooms.extend(others);
        rooms.sort_unstable_by(|one, other| other.total_cmp(one));
        rooms.iter().take(most).sum()
    };
    let all: f64 = model.speed.iter().sum::<f64>() * period.0;
    room(current) + elsewhere >= model.left[state.placed()] - ROUNDING * all
}

/// Returns true if each unplaced layer that shares values with the last layer and with another placed one has a machine
/// on which neither its work nor its transfers exceed a period. Transfers add to the present load of the links.
pub(super) fn readers_fit(model: &Model, state: &State<'_>, period: Micros, moving: &mut Vec<Micros>) -> bool {
    let Some(last) = state.placed().checked_sub(1) else { return true };
    let is_placed = |layer: u32| (layer as usize) < state.placed();
    let mut fits = |layer: usize, machine: usize| {
        if state.work(machine) + model.time(layer, machine) >= period {
            return false;
        }
        // Transfers from each machine, then to each.
        moving.clear();
        moving.resize(2 * model.machines, Micros::ZERO);
        for read in model.reads[layer].iter().filter(|read| is_placed(read.with)) {
            let other = state.on[read.with as usize] as usize;
            if other == machine || read.shared.is_some_and(|value| state.is_delivered(value, machine)) {
                continue;
            }
            let (from, to) = if read.backwards { (machine, other) } else { (other, machine) };
            let moved = &mut moving[if read.backwards { model.machines + other } else { other }];
            *moved += model.move_time(read.bytes, from, to);
            if state.link(from, to) + *moved >= period {
                return false;
            }
        }
        true
    };
    model.readers[last].iter().all(|layer| {
        let layer = *layer as usize;
        let placed = model.reads[layer].iter().filter(|read| is_placed(read.with)).count();
        placed < 2 || (0..model.machines).any(|machine| fits(layer, machine))
    })
}
