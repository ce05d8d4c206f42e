//! Enumerates blocks of a high total price whose cost is at most a threshold.
//!
//! Tasks are decided one by one, inside or outside, depth first. A block is convex: tasks between two of its tasks are
//! inside. A linear function of the undecided tasks bounds its cost from below. A tensor with an end inside leaves
//! unless all its other ends come in, so each of m open ends saves at most a share of 1/m; one with an end outside
//! enters with the first end that comes in, so each of m open ends adds at least such a share. A tensor with undecided
//! ends only contributes a shift of cost between its ends. With any exchange rate between cost and price, this bounds
//! the price of all completions. All numbers are integers, rounded so that no block is missed.

mod effort;
mod sets;
mod wire;

use super::model::{Model, Tensor};
use crate::model::units::Micros;

pub(super) use effort::Effort;
use sets::{each, reached};
use wire::{Share, Wire};

/// The threshold as an integer, and the cap of larger costs as a multiple of it.
const THRESHOLD: i64 = 1 << 24;
const BEYOND: f64 = 2.0;
/// Maximum exchange rate, so that sums of prices do not overflow.
const MOST_RATE: f64 = (1 << 22) as f64;
/// Exchange rates that are tried, relative to the mean.
const RATES: [f64; 4] = [0.95, 1.0, 1.05, 1.15];
/// Number of passes that shift costs between tasks.
const SWEEPS: usize = 30;
/// Nodes between checks of the budget, and nodes spent on improving a block.
const STRIDE: u64 = 32;
const IMPROVEMENT_NODES: u64 = 300;

/// Result of a search.
pub(super) enum Packed {
    Blocks(Vec<Vec<u32>>),
    /// No block exists.
    Nothing,
    /// The budget is spent.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Open,
    Inside,
    Outside,
}

/// Search for blocks of one model.
pub(super) struct Packer<'a> {
    model: &'a Model,
    wires: Vec<Wire>,
    /// Tensors of each task.
    at: Vec<Vec<u32>>,
    /// Ancestors and descendants of each task as bit sets.
    ancestors: Vec<Vec<u64>>,
    descendants: Vec<Vec<u64>>,
    work: Vec<i64>,
    price: Vec<i64>,
    need: i64,
    threshold: Micros,
    rates: [i64; RATES.len()],
    place: Vec<Place>,
    outside: Vec<u64>,
    /// Ancestors and descendants of the tasks inside.
    above: Vec<u64>,
    below: Vec<u64>,
    /// Cost of each open task in addition to its work.
    more: Vec<i64>,
    /// Total worth of open tasks at each rate.
    worth: [i64; RATES.len()],
    inside: (i64, i64),
    /// Decisions, with the previous additional cost of the task.
    trail: Vec<(u32, i64)>,
    sets: Vec<u64>,
    queue: Vec<(u32, Place)>,
    found: Vec<Vec<u32>>,
    /// The best block with the current first task, and the number of nodes left to improve it.
    best: Option<(i64, Vec<u32>)>,
    improvement_nodes: u64,
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
            threshold: Micros::ZERO,
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
            improvement_nodes: 0,
            effort: Effort::nodes(0),
            over: false,
        }
    }

    /// Finds at most `count` blocks that cost at most the threshold and have at least the price `need`.
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
        // A block whose first task was forced inside has not been collected by the search.
        self.found.extend(self.best.take().map(|(_, tasks)| tasks));
        effort.budget.iterations = self.effort.budget.iterations;
        match std::mem::take(&mut self.found) {
            found if !found.is_empty() => Packed::Blocks(found),
            _ if self.over => Packed::Unknown,
            _ => Packed::Nothing,
        }
    }

    /// Returns the price that a block must have: more than that of the best one so far.
    fn needed(&self) -> i64 {
        self.best.as_ref().map_or(self.need, |(price, _)| price + 1)
    }

    fn search(&mut self, count: usize) {
        let nodes = &mut self.effort.budget.iterations;
        *nodes = nodes.saturating_sub(1);
        self.over |= nodes.is_multiple_of(STRIDE) && self.effort.is_spent();
        self.improvement_nodes = self.improvement_nodes.saturating_sub(1);
        let mark = self.trail.len();
        let Some(next) = self.narrow() else { return self.undo(mark) };
        let (price, least) = self.inside;
        if price >= self.needed() && least <= THRESHOLD {
            let is_inside = |task: &u32| self.place[*task as usize] == Place::Inside;
            let tasks: Vec<u32> = (0..self.model.tasks() as u32).filter(is_inside).collect();
            // Integer costs are rounded down.
            if cost(self.model, &tasks) <= self.threshold {
                self.improvement_nodes = if self.best.is_none() { IMPROVEMENT_NODES } else { self.improvement_nodes };
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
            if self.over || (self.best.is_some() && self.improvement_nodes == 0) {
                break;
            }
        }
        self.undo(mark);
    }

    /// Propagates decisions; returns the next task to decide, if any is open. `None` if no block can result.
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

    /// Decides a task, and queues the implied decisions. Returns false on a contradiction.
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

    /// Tasks beyond a task that is outside stay outside (convexity).
    fn leave_out(&mut self, task: usize, before: bool) {
        let far = if before { &self.ancestors[task] } else { &self.descendants[task] };
        for (word, (far, outside)) in far.iter().zip(&self.outside).enumerate() {
            each(far & !outside, word, |other| self.queue.push((other as u32, Place::Outside)));
        }
    }

    /// Changes the additional cost of an open task.
    fn change(&mut self, task: usize, by: i64) {
        let (price, cost) = (self.price[task], self.work[task] + self.more[task]);
        self.more[task] += by;
        for (worth, rate) in self.worth.iter_mut().zip(self.rates) {
            *worth += (price - rate * (cost + by)).max(0) - (price - rate * cost).max(0);
        }
    }

    /// Shifts costs of tensors between their tasks, so that the cost of each is proportional to its price.
    fn even_out(&mut self, average: f64) {
        self.more.fill(0);
        let mut target: Vec<i64> =
            self.price.iter().zip(&self.work).map(|(price, work)| (*price as f64 / average) as i64 - work).collect();
        for wire in &mut self.wires {
            wire.shift.clear();
            wire.shift.resize(wire.ends.len(), 0);
        }
        for _ in 0..SWEEPS {
            for wire in &mut self.wires {
                let borne: i64 = wire.shift.iter().map(|shift| (*shift).max(0)).sum();
                let gap = |end: &usize| target[wire.ends[*end] as usize];
                let Some(high) = (0..wire.ends.len()).max_by_key(gap) else { continue };
                let Some(low) = (0..wire.ends.len()).min_by_key(gap) else { continue };
                let by = ((gap(&high) - gap(&low)) / 2).min(wire.time - borne);
                wire.shift[high] += by;
                wire.shift[low] -= by;
                target[wire.ends[high] as usize] -= by;
                target[wire.ends[low] as usize] += by;
            }
        }
        for wire in &self.wires {
            wire.ends.iter().zip(&wire.shift).for_each(|(end, shift)| self.more[*end as usize] += shift);
        }
    }

    /// Adds or removes an open task's worth.
    fn value(&mut self, task: usize, sign: i64) {
        let cost = self.work[task] + self.more[task];
        for (worth, rate) in self.worth.iter_mut().zip(self.rates) {
            *worth += sign * (self.price[task] - rate * cost).max(0);
        }
    }

    /// Adds or removes a task at its tensors.
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

    /// Undoes decisions.
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

/// Returns the cost of a block without overflow.
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
