//! What no placement is better than, and how many split points one can have.
//!
//! The edge paper pads the placed layers with the last machine. That is no bound where a layer to come reads several values:
//! it may be put beside the one that is expensive to move. Here only what is placed counts, and work that is not.

use super::model::Model;
use super::state::State;
use crate::model::units::{Bytes, Micros};

/// The share of all work that sums may differ by, added up in another order.
const ROUNDING: f64 = 1e-9;

/// The period of the best single machine that may run everything, and the machine.
pub(super) fn single(model: &Model) -> Option<(Micros, usize)> {
    let total = |machine: usize| -> Micros { (0..model.layers()).map(|layer| model.time(layer, machine)).sum() };
    let fits = |machine: &usize| {
        let held: Bytes = model.held.iter().sum();
        model.capacity.get(*machine).is_none_or(|capacity| held <= *capacity)
    };
    let all = (0..model.machines).filter(fits).map(|machine| (total(machine), machine));
    all.filter(|(total, _)| total.is_finite()).min_by(|one, other| one.0.total_cmp(&other.0))
}

/// The longest layer is somewhere, and the work is dealt out over no more machines than there are runs.
pub(super) fn work(model: &Model, splits: usize) -> Micros {
    let quickest = |layer: usize| (0..model.machines).map(|m| model.time(layer, m)).fold(f64::INFINITY, f64::min);
    let longest = (0..model.layers()).map(quickest).filter(|time| time.is_finite()).fold(0.0, f64::max);
    let mut speed = model.speed.clone();
    speed.sort_unstable_by(|one, other| other.total_cmp(one));
    let together: f64 = speed.iter().take(splits.saturating_add(1)).sum();
    longest.max(model.left[0] / together * (1.0 - ROUNDING))
}

/// Eq. (10) and (11): as soon as there are two machines, something moves, and that takes as long as the smallest value on the
/// fastest way. That is so where the layers hang together; where they do not, parts that share nothing need no way at all.
pub(super) fn crossing(model: &Model) -> Micros {
    if !hangs_together(model) {
        return 0.0;
    }
    let values = || model.reads.iter().flatten().map(|read| read.bytes);
    let Some(smallest) = values().min_by(f64::total_cmp) else { return 0.0 };
    model.ways().map(|(from, to)| model.move_time(smallest, from, to)).fold(f64::INFINITY, f64::min)
}

/// Whether every layer has to do with every other, by way of values.
pub(super) fn hangs_together(model: &Model) -> bool {
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

/// How many split points a placement of a smaller period can have: eq. (9), put right.
///
/// A change of machine between two layers of which one reads the other's value moves that value over a way. A way has time for
/// so many of the smallest such values in a period, and every way has its own. Between layers that share no value the machine
/// changes for nothing.
pub(super) fn splits(model: &Model, period: Micros) -> usize {
    let of_pair = |layer: usize| {
        let moved = model.reads[layer].iter().filter(|read| read.with as usize + 1 == layer).map(|read| read.bytes);
        moved.min_by(f64::total_cmp)
    };
    let pairs: Vec<Option<Bytes>> = (1..model.layers()).map(of_pair).collect();
    let free = pairs.iter().filter(|bytes| bytes.is_none()).count();
    let Some(smallest) = pairs.iter().flatten().copied().min_by(f64::total_cmp) else { return free };
    let times = |(from, to): (usize, usize)| {
        let takes = model.move_time(smallest, from, to);
        if takes.is_infinite() {
            return 0.0;
        }
        // A little more than a period, for sums are rounded.
        if takes > 0.0 { (period * (1.0 + ROUNDING) / takes).floor() } else { f64::INFINITY }
    };
    let most: f64 = model.ways().map(times).sum();
    if most >= (pairs.len() - free) as f64 { pairs.len() } else { free + most as usize }
}

/// Whether what is left may be done within a period: by the current machine, and by as many others as there are splits left.
pub(super) fn has_room(model: &Model, state: &State<'_>, period: Micros, splits: usize, rooms: &mut Vec<f64>) -> bool {
    let (Some(current), true) = (state.current(), period.is_finite()) else { return true };
    let room = |machine: usize| model.speed[machine] * (period - state.work(machine)).max(0.0);
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
    let all: f64 = model.speed.iter().sum::<f64>() * period;
    room(current) + elsewhere >= model.left[state.placed()] - ROUNDING * all
}

/// Whether each layer that has a value in common with the last one, and with another that is placed, has a machine on which
/// neither its work nor what has to move takes a period. What moves adds to what its ways have to do already.
pub(super) fn can_meet(model: &Model, state: &State<'_>, period: Micros, moving: &mut Vec<Micros>) -> bool {
    let Some(last) = state.placed().checked_sub(1) else { return true };
    let is_placed = |layer: u32| (layer as usize) < state.placed();
    let mut fits = |layer: usize, machine: usize| {
        if state.work(machine) + model.time(layer, machine) >= period {
            return false;
        }
        // From each machine, then to each.
        moving.clear();
        moving.resize(2 * model.machines, 0.0);
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
