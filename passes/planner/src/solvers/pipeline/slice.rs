//! Optimal slicing of an order into at most k consecutive blocks (Lemma 4.2), without a table of all blocks.
//!
//! The value is found by thresholds. For one threshold, [`Slicer::reach`] finds the minimum number of blocks that reach
//! each position with none above it. Work, entering tensors and overflow of a block are monotone as it grows to the
//! right, so it is abandoned when these alone exceed the threshold; but its leaving tensors are not, so every end that
//! fits is kept, except for dominated ones:
//!
//! *A position r that is reached with at most as many blocks as p < r dominates p, if for every q in p..r the tensors
//! that leave q..r take no longer than its work.* Consider the first block q..e that ends behind r, with p <= q <= r <
//! e, in a slicing that passes p. What enters r..e has entered q..e or left q..r, what leaves r..e has left q..e, and
//! overflow never grows when a block shrinks; so cost(r..e) <= cost(q..e) - work(q..r) + leaving(q..r) <= cost(q..e).
//! With r's blocks instead of those before it the slicing has no more blocks, and none is worse. (If compute and
//! transfers overlap, work does not compensate for what leaves, so the latter has to be zero.)
//!
//! If a threshold is too low, so is every other one below the least cost that was rejected: the same ends would fit.

use super::line::Line;
use super::model::Model;
use crate::model::options::PipelineCost;
use crate::model::units::Micros;

/// Relative tolerance of equal values.
const SAME: f64 = 1e-12;
/// Relative width of the interval at which its lower end is tried.
const NARROW: f64 = 1e-4;
const UNREACHED: u32 = u32::MAX;

/// Ends of the blocks of a slicing, and the cost of the worst one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slicing {
    pub(super) ends: Vec<usize>,
    pub(super) value: Micros,
}

/// Buffers for slicing orders of one model.
pub(super) struct Slicer<'a> {
    model: &'a Model,
    /// By position: minimum number of blocks that reach it, and the beginning of the last of them.
    blocks: Vec<u32>,
    parent: Vec<u32>,
    newly: Vec<u32>,
    /// Lower bound on all slicings of all orders.
    least: Micros,
}

impl<'a> Slicer<'a> {
    pub(super) fn new(model: &'a Model, least: Micros) -> Self {
        let places = model.tasks() + 1;
        Self { model, blocks: vec![UNREACHED; places], parent: vec![0; places], newly: Vec::new(), least }
    }

    /// Returns the optimal slicing. The guess of its value affects only the running time.
    pub(super) fn best(&mut self, line: &Line, guess: Micros) -> Slicing {
        let mut best = self.whole(line);
        let mut low = self.least.min(best.value);
        let mut threshold = if guess > low { guess } else { low * 1.02 };
        let mut step = 0.01;
        while low < best.value * (1.0 - SAME) {
            // Bisects once a slicing is near; before, continues from the guess in growing steps.
            threshold = threshold.clamp(low, best.value);
            match self.reach(line, threshold.min(best.value * (1.0 - SAME))) {
                Ok(found) => {
                    best = found;
                    threshold = best.value * (1.0 - step);
                }
                Err(next) => {
                    low = next.max(low);
                    threshold = low * (1.0 + step);
                }
            }
            step *= 2.0;
            if threshold <= low || threshold >= best.value || step > 0.03 {
                let width = best.value - low;
                threshold = if width < NARROW * low { low } else { low + width / 2.0 };
            }
        }
        best
    }

    /// Returns a slicing below a value, if there is one.
    pub(super) fn below(&mut self, line: &Line, value: Micros) -> Option<Slicing> {
        self.reach(line, value * (1.0 - SAME)).ok().filter(|found| found.value < value)
    }

    fn whole(&self, line: &Line) -> Slicing {
        let mut all = line.block(0);
        (0..line.len()).for_each(|_| all.grow());
        let value = self.model.block_cost(all.work, all.overflow(), all.entering + all.leaving);
        Slicing { ends: vec![line.len()], value }
    }

    /// Returns a slicing with no block above the threshold, or the least threshold that might suffice.
    fn reach(&mut self, line: &Line, threshold: Micros) -> Result<Slicing, Micros> {
        let end = line.len();
        self.blocks.fill(UNREACHED);
        self.blocks[0] = 0;
        let mut next = Micros::INFINITY;
        let mut front = vec![0_u32];
        for count in 1..=self.model.k as u32 {
            self.newly.clear();
            for &from in &front {
                self.extend(line, from as usize, count, threshold, &mut next);
                if self.blocks[end] != UNREACHED {
                    return Ok(self.slicing(line));
                }
            }
            self.thin_out(line, &mut front);
        }
        Err(next)
    }

    /// Marks every end of a block that begins here and fits.
    fn extend(&mut self, line: &Line, from: usize, count: u32, threshold: Micros, next: &mut Micros) {
        let mut block = line.block(from);
        for to in from + 1..=line.len() {
            block.grow();
            let overflow = block.overflow();
            let growing = self.model.block_cost(block.work, overflow, block.entering);
            if growing > threshold {
                *next = next.min(growing);
                break;
            }
            let cost = self.model.block_cost(block.work, overflow, block.entering + block.leaving);
            if cost > threshold {
                *next = next.min(cost);
            } else if self.blocks[to] == UNREACHED {
                self.blocks[to] = count;
                self.parent[to] = from as u32;
                self.newly.push(to as u32);
            }
        }
    }

    /// Keeps the newly reached ends that are not dominated.
    fn thin_out(&mut self, line: &Line, front: &mut Vec<u32>) {
        front.clear();
        self.newly.sort_unstable_by(|a, b| b.cmp(a));
        let Some(&first) = self.newly.last() else { return };
        let factor = if self.model.cost == PipelineCost::Serial { 1.0 } else { 0.0 };
        let mut dominated_from = usize::MAX;
        for &place in &self.newly {
            if (place as usize) < dominated_from {
                front.push(place);
                dominated_from = line.dominated_before(place as usize, first as usize, factor);
            }
        }
    }

    fn slicing(&self, line: &Line) -> Slicing {
        let mut ends = Vec::new();
        let mut place = line.len();
        while place > 0 {
            ends.push(place);
            place = self.parent[place] as usize;
        }
        ends.reverse();
        let value = costs(self.model, line, &ends).into_iter().fold(Micros::ZERO, Micros::max);
        Slicing { ends, value }
    }
}

/// Returns each task's block, for an order that is sliced at these ends.
pub(super) fn blocks(order: &[u32], ends: &[usize]) -> Vec<u32> {
    let mut blocks = vec![0; order.len()];
    let mut from = 0;
    for (block, &end) in ends.iter().enumerate() {
        order[from..end].iter().for_each(|task| blocks[*task as usize] = block as u32);
        from = end;
    }
    blocks
}

/// Returns the cost of each block of a slicing.
pub(super) fn costs(model: &Model, line: &Line, ends: &[usize]) -> Vec<Micros> {
    let mut from = 0;
    let mut cost = |&end: &usize| {
        let mut block = line.block(from);
        (from..end).for_each(|_| block.grow());
        from = end;
        model.block_cost(block.work, block.overflow(), block.entering + block.leaving)
    };
    ends.iter().map(&mut cost).collect()
}
