//! Which tasks a block can hold: sets of a high price that cost no more than a threshold.
//!
//! Tasks are decided one after the other, in or out, depth first. A block is convex: what is between two of its tasks is in
//! it. What it costs is at least linear in who else comes in. A tensor that is inside already leaves unless all others at
//! it come in, so each of m others saves at most a share of 1/m; one that is outside already comes in with the first, so
//! each brings at least such a share. One of which nothing is decided costs at least what it takes from some of its tasks
//! to give to others. At any rate of exchange between cost and price, this bounds the price of all that can
//! still be made. All is counted in whole numbers, rounded so that no block is missed.

mod effort;
mod sets;
mod wire;

use super::model::{Model, Tensor};
use crate::model::units::Micros;

pub(super) use effort::Effort;
use sets::{each, reached};
use wire::{Share, Wire};

/// The threshold as a whole number, and the most that is told apart from what is above it.
const THRESHOLD: i64 = 1 << 24;
const BEYOND: f64 = 2.0;
/// The highest rate of exchange, so that no sum of prices is too large to be counted.
const MOST_RATE: f64 = (1 << 22) as f64;
/// Rates of exchange that are tried, in parts of the average.
const RATES: [f64; 4] = [0.95, 1.0, 1.05, 1.15];
/// Number of times that costs are shifted between tasks.
const SWEEPS: usize = 30;
/// Nodes between looks at the clock, and to make something better of a block.
const STRIDE: u64 = 32;
const BETTER: u64 = 300;

/// Result of a search.
pub(super) enum Packed {
    Blocks(Vec<Vec<u32>>),
    /// There is none.
    Nothing,
    /// The effort is spent.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Open,
    Inside,
    Outside,
}

/// A search for blocks of one model.
pub(super) struct Packer<'a> {
    model: &'a Model,
    wires: Vec<Wire>,
    /// The tensors of each task.
    at: Vec<Vec<u32>>,
    /// All that a task waits for, and all that waits for it, as bits.
    ancestors: Vec<Vec<u64>>,
    descendants: Vec<Vec<u64>>,
    work: Vec<i64>,
    price: Vec<i64>,
    need: i64,
    threshold: Micros,
    rates: [i64; RATES.len()],
    place: Vec<Place>,
    outside: Vec<u64>,
    /// Ancestors and descendants of what is inside.
    above: Vec<u64>,
    below: Vec<u64>,
    /// Cost of each open task beyond its work.
    more: Vec<i64>,
    /// Worth of open tasks at each rate.
    worth: [i64; RATES.len()],
    inside: (i64, i64),
    /// Decisions, with what an open task cost more, and what was above and below.
    trail: Vec<(u32, i64)>,
    sets: Vec<u64>,
    queue: Vec<(u32, Place)>,
    found: Vec<Vec<u32>>,
    /// The best block with the first task that is inside, and how many nodes are left to make it better.
    best: Option<(i64, Vec<u32>)>,
    patience: u64,
    effort: Effort,
    over: bool,
}

impl<'a> Packer<'a> {
    pub(super) fn new(model: &'a Model) -> Self {
        let (tasks, words) = (model.tasks(), model.tasks().div_ceil(64));
        let mut at = vec![Vec::new(); tasks];
        let mut wires = Vec::new();
        for tensor in &model.tensors {
            let ends: Vec<u32> = [tensor.producer].iter().chain(&tensor.readers).copied().collect();
            ends.iter().for_each(|task| at[*task as usize].push(wires.len() as u32));
            wires.push(Wire { ends, ..Wire::default() });
        }
        Self {
            model,
            wires,
            at,
            ancestors: reached(&model.before, 0..tasks),
            descendants: reached(&model.after, (0..tasks).rev()),
            work: vec![0; tasks],
            price: vec![0; tasks],
            need: 0,
            threshold: 0.0,
            rates: [0; RATES.len()],
            place: vec![Place::Open; tasks],
            outside: vec![0; words],
            above: vec![0; words],
            below: vec![0; words],
            more: vec![0; tasks],
            worth: [0; RATES.len()],
            inside: (0, 0),
            trail: Vec::new(),
            sets: Vec::new(),
            queue: Vec::new(),
            found: Vec::new(),
            best: None,
            patience: 0,
            effort: Effort::nodes(0),
            over: false,
        }
    }

    /// Blocks that cost at most the threshold and have at least the price that is needed, not more than so many.
    pub(super) fn find(
        &mut self,
        (prices, need): (&[i64], i64),
        threshold: Micros,
        count: usize,
        effort: &mut Effort,
    ) -> Packed {
        let whole = |cost: Micros| ((cost / threshold * (1.0 - 1e-12)).min(BEYOND) * THRESHOLD as f64) as i64;
        self.work = self.model.work.iter().map(|work| whole(*work)).collect();
        self.wires.iter_mut().zip(&self.model.tensors).for_each(|(wire, tensor)| wire.time = whole(tensor.time));
        self.price.copy_from_slice(prices);
        (self.need, self.threshold) = (need, threshold);
        let average = prices.iter().sum::<i64>() as f64 / self.work.iter().sum::<i64>().max(1) as f64;
        self.rates = RATES.map(|rate| (rate * average).min(MOST_RATE) as i64);
        self.even_out(average);
        self.worth = [0; RATES.len()];
        (0..self.model.tasks()).for_each(|task| self.value(task, 1));
        (self.effort, self.over) = (effort.clone(), false);
        self.search(count);
        // What had to be inside from the beginning is not the first of anything.
        self.found.extend(self.best.take().map(|(_, tasks)| tasks));
        effort.budget.iterations = self.effort.budget.iterations;
        match std::mem::take(&mut self.found) {
            found if !found.is_empty() => Packed::Blocks(found),
            _ if self.over => Packed::Unknown,
            _ => Packed::Nothing,
        }
    }

    /// The price that a block must have: that of a better one where there is one.
    fn needed(&self) -> i64 {
        self.best.as_ref().map_or(self.need, |(price, _)| price + 1)
    }

    fn search(&mut self, count: usize) {
        let nodes = &mut self.effort.budget.iterations;
        *nodes = nodes.saturating_sub(1);
        self.over |= nodes.is_multiple_of(STRIDE) && self.effort.is_spent();
        self.patience = self.patience.saturating_sub(1);
        let mark = self.trail.len();
        let Some(next) = self.narrow() else { return self.undo(mark) };
        let (price, least) = self.inside;
        if price >= self.needed() && least <= THRESHOLD {
            let is_inside = |task: &u32| self.place[*task as usize] == Place::Inside;
            let tasks: Vec<u32> = (0..self.model.tasks() as u32).filter(is_inside).collect();
            // Whole numbers are a little too low.
            if cost(self.model, &tasks) <= self.threshold {
                self.patience = if self.best.is_none() { BETTER } else { self.patience };
                self.best = Some((price, tasks));
            }
        }
        let is_empty = self.inside == (0, 0);
        for place in [Place::Inside, Place::Outside] {
            let Some(task) = next else { break };
            let mark = self.trail.len();
            self.queue.push((task, place));
            self.search(count);
            self.undo(mark);
            if is_empty && let Some((_, tasks)) = self.best.take() {
                self.found.push(tasks);
                self.over |= self.found.len() >= count;
            }
            if self.over || (self.best.is_some() && self.patience == 0) {
                break;
            }
        }
        self.undo(mark);
    }

    /// Decides what follows, and says which task to decide next, if any is open. None where no block can come of it.
    fn narrow(&mut self) -> Option<Option<u32>> {
        loop {
            while let Some((task, place)) = self.queue.pop() {
                if !self.decide(task as usize, place) {
                    return None;
                }
            }
            let (price, cost) = self.inside;
            let bound = |index: usize| price + self.rates[index] * (THRESHOLD - cost) + self.worth[index];
            let tightest = (0..RATES.len()).min_by_key(|index| bound(*index))?;
            let slack = bound(tightest) - self.needed();
            if slack < 0 {
                return None;
            }
            let rate = self.rates[tightest];
            let (mut next, mut most) = (None, i64::MIN);
            for task in 0..self.model.tasks() {
                if self.place[task] != Place::Open {
                    continue;
                }
                let worth = self.price[task] - rate * (self.work[task] + self.more[task]);
                if worth > slack {
                    self.queue.push((task as u32, Place::Inside));
                } else if -worth > slack {
                    self.queue.push((task as u32, Place::Outside));
                } else if worth > most {
                    (next, most) = (Some(task as u32), worth);
                }
            }
            if self.queue.is_empty() {
                return Some(next);
            }
        }
    }

    /// Puts a task in its place, and what has to follow into the queue. False where it is elsewhere already.
    fn decide(&mut self, task: usize, place: Place) -> bool {
        if self.place[task] != Place::Open {
            return self.place[task] == place;
        }
        self.trail.push((task as u32, self.more[task]));
        self.value(task, -1);
        self.place[task] = place;
        self.count(task, place, 1);
        if place == Place::Outside {
            let (word, bit) = (task / 64, 1 << (task % 64));
            self.outside[word] |= bit;
            if self.above[word] & bit != 0 {
                self.leave_out(task, true);
            }
            if self.below[word] & bit != 0 {
                self.leave_out(task, false);
            }
            return true;
        }
        self.inside.0 += self.price[task];
        self.inside.1 += self.work[task];
        self.sets.extend_from_slice(&self.above);
        self.sets.extend_from_slice(&self.below);
        for word in 0..self.outside.len() {
            let (above, below) = (self.ancestors[task][word], self.descendants[task][word]);
            self.above[word] |= above;
            self.below[word] |= below;
            each(self.above[word] & self.below[word], word, |between| {
                if self.place[between] != Place::Inside {
                    self.queue.push((between as u32, Place::Inside));
                }
            });
            each(self.outside[word] & above, word, |other| self.leave_out(other, true));
            each(self.outside[word] & below, word, |other| self.leave_out(other, false));
        }
        true
    }

    /// What is on the far side of a task that is outside stays outside.
    fn leave_out(&mut self, task: usize, before: bool) {
        let far = if before { &self.ancestors[task] } else { &self.descendants[task] };
        for (word, (far, outside)) in far.iter().zip(&self.outside).enumerate() {
            each(far & !outside, word, |other| self.queue.push((other as u32, Place::Outside)));
        }
    }

    /// An open task costs more.
    fn change(&mut self, task: usize, by: i64) {
        let (price, cost) = (self.price[task], self.work[task] + self.more[task]);
        self.more[task] += by;
        for (worth, rate) in self.worth.iter_mut().zip(self.rates) {
            *worth += (price - rate * (cost + by)).max(0) - (price - rate * cost).max(0);
        }
    }

    /// Lets tensors shift costs between tasks, so that the cost of each is in proportion to its price.
    fn even_out(&mut self, average: f64) {
        self.more.fill(0);
        let mut wanted: Vec<i64> =
            self.price.iter().zip(&self.work).map(|(price, work)| (*price as f64 / average) as i64 - work).collect();
        for wire in &mut self.wires {
            wire.shift.clear();
            wire.shift.resize(wire.ends.len(), 0);
        }
        for _ in 0..SWEEPS {
            for wire in &mut self.wires {
                let borne: i64 = wire.shift.iter().map(|shift| (*shift).max(0)).sum();
                let want = |end: &usize| wanted[wire.ends[*end] as usize];
                let Some(high) = (0..wire.ends.len()).max_by_key(want) else { continue };
                let Some(low) = (0..wire.ends.len()).min_by_key(want) else { continue };
                let by = ((want(&high) - want(&low)) / 2).min(wire.time - borne);
                wire.shift[high] += by;
                wire.shift[low] -= by;
                wanted[wire.ends[high] as usize] -= by;
                wanted[wire.ends[low] as usize] += by;
            }
        }
        for wire in &self.wires {
            wire.ends.iter().zip(&wire.shift).for_each(|(end, shift)| self.more[*end as usize] += shift);
        }
    }

    /// Counts an open task's worth, or takes it away.
    fn value(&mut self, task: usize, sign: i64) {
        let cost = self.work[task] + self.more[task];
        for (worth, rate) in self.worth.iter_mut().zip(self.rates) {
            *worth += sign * (self.price[task] - rate * cost).max(0);
        }
    }

    /// Counts a task at its tensors, or takes it away.
    fn count(&mut self, task: usize, place: Place, sign: i64) {
        for index in 0..self.at[task].len() {
            let wire = self.at[task][index] as usize;
            let before = self.wires[wire].cost();
            let counted = &mut self.wires[wire];
            *(if place == Place::Inside { &mut counted.inside } else { &mut counted.outside }) += sign;
            let after = self.wires[wire].cost();
            self.inside.1 += after.0 - before.0;
            if after.1 == before.1 {
                continue;
            }
            for end in 0..self.wires[wire].ends.len() {
                let other = self.wires[wire].ends[end] as usize;
                if self.place[other] == Place::Open {
                    let of = |share: Share| match share {
                        Share::Own => self.wires[wire].shift[end],
                        Share::Same(share) => share,
                    };
                    let change = of(after.1) - of(before.1);
                    self.change(other, change);
                }
            }
        }
    }

    /// Takes decisions back.
    fn undo(&mut self, mark: usize) {
        self.queue.clear();
        while self.trail.len() > mark {
            let Some((task, more)) = self.trail.pop() else { return };
            let task = task as usize;
            let place = self.place[task];
            self.count(task, place, -1);
            if place == Place::Inside {
                self.inside.0 -= self.price[task];
                self.inside.1 -= self.work[task];
                let words = self.outside.len();
                let from = self.sets.len() - 2 * words;
                self.above.copy_from_slice(&self.sets[from..from + words]);
                self.below.copy_from_slice(&self.sets[from + words..]);
                self.sets.truncate(from);
            } else {
                self.outside[task / 64] &= !(1 << (task % 64));
            }
            self.place[task] = Place::Open;
            self.more[task] = more;
            self.value(task, 1);
        }
    }
}

/// Cost of a block, but for memory.
pub(super) fn cost(model: &Model, block: &[u32]) -> Micros {
    let mut inside = vec![false; model.tasks()];
    block.iter().for_each(|task| inside[*task as usize] = true);
    let crosses = |tensor: &&Tensor| {
        let made = inside[tensor.producer as usize];
        tensor.readers.iter().any(|reader| inside[*reader as usize] != made)
    };
    let work: Micros = block.iter().map(|task| model.work[*task as usize]).sum();
    work + model.tensors.iter().filter(crosses).map(|tensor| tensor.time).sum::<Micros>()
}
