//! The best way to cut an order into at most k consecutive blocks (Lemma 4.2), without a table of all stretches.
//!
//! The value is found by thresholds. For one threshold, [`Slicer::reach`] finds how few blocks reach each position with
//! none above it. A stretch that grows to the right has ever more work, entering tensors and overflow, so it is given up
//! when these alone are too much; but its leaving tensors come and go, so nothing can be said about the longest stretch
//! that fits, and every end that fits is kept, but for those that another one makes superfluous:
//!
//! *A position r that is reached with at most as many blocks as p < r replaces p, if for every q in p..r the tensors that
//! leave q..r take no longer than its work.* Take blocks from q on to some e > r, with p <= q <= r, in a slicing that
//! passes p. What enters r..e has entered q..e or left q..r, what leaves r..e has left q..e, and overflow never grows when
//! a block shrinks; so cost(r..e) <= cost(q..e) - work(q..r) + leaving(q..r) <= cost(q..e). Let q..e be the first
//! block that ends behind r: with r's blocks instead of those before it the slicing has no more blocks, and none is worse.
//! (Where compute and transfers overlap, work does not make up for what leaves, so the latter has to be nothing.)
//!
//! Where a threshold is too low, so is every other below the least cost that was rejected: the same ends would fit.

use super::line::Line;
use super::model::Model;
use crate::model::options::PipelineCost;
use crate::model::units::Micros;

/// Slicings whose values differ by less than this share are as good as each other.
const SAME: f64 = 1e-12;
/// When what is left of the interval is so small, its lower end is tried.
const NARROW: f64 = 1e-4;
const UNREACHED: u32 = u32::MAX;

/// Where the blocks of a slicing end, and what the worst of them costs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slicing {
    pub(super) ends: Vec<usize>,
    pub(super) value: Micros,
}

/// Room for slicing orders of one model.
pub(super) struct Slicer<'a> {
    model: &'a Model,
    /// How few blocks reach a position, and from where the last of them goes.
    blocks: Vec<u32>,
    parent: Vec<u32>,
    newly: Vec<u32>,
    /// No slicing of any order is better.
    least: Micros,
}

impl<'a> Slicer<'a> {
    pub(super) fn new(model: &'a Model, least: Micros) -> Self {
        let places = model.tasks() + 1;
        Self { model, blocks: vec![UNREACHED; places], parent: vec![0; places], newly: Vec::new(), least }
    }

    /// The best slicing. The guess of its value only makes a difference to how long it takes.
    pub(super) fn best(&mut self, line: &Line, guess: Micros) -> Slicing {
        let mut best = self.whole(line);
        let mut low = self.least.min(best.value);
        let mut threshold = if guess > low { guess } else { low * 1.02 };
        let mut step = 0.01;
        while low < best.value * (1.0 - SAME) {
            // Once there is a slicing near, halve; else go on from the guess in growing steps.
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

    /// A slicing below a value, if there is one.
    pub(super) fn below(&mut self, line: &Line, value: Micros) -> Option<Slicing> {
        self.reach(line, value * (1.0 - SAME)).ok().filter(|found| found.value < value)
    }

    fn whole(&self, line: &Line) -> Slicing {
        let mut all = line.stretch(0);
        (0..line.len()).for_each(|_| all.grow());
        let value = self.model.block_cost(all.work, all.overflow(), all.entering + all.leaving);
        Slicing { ends: vec![line.len()], value }
    }

    /// A slicing with no block above the threshold; or the least threshold that might be enough.
    fn reach(&mut self, line: &Line, threshold: Micros) -> Result<Slicing, Micros> {
        let end = line.len();
        self.blocks.fill(UNREACHED);
        self.blocks[0] = 0;
        let mut next = f64::INFINITY;
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
        let mut stretch = line.stretch(from);
        for to in from + 1..=line.len() {
            stretch.grow();
            let overflow = stretch.overflow();
            let growing = self.model.block_cost(stretch.work, overflow, stretch.entering);
            if growing > threshold {
                *next = next.min(growing);
                break;
            }
            let cost = self.model.block_cost(stretch.work, overflow, stretch.entering + stretch.leaving);
            if cost > threshold {
                *next = next.min(cost);
            } else if self.blocks[to] == UNREACHED {
                self.blocks[to] = count;
                self.parent[to] = from as u32;
                self.newly.push(to as u32);
            }
        }
    }

    /// Of the ends that have just been reached, those that no other replaces.
    fn thin_out(&mut self, line: &Line, front: &mut Vec<u32>) {
        front.clear();
        self.newly.sort_unstable_by(|a, b| b.cmp(a));
        let Some(&first) = self.newly.last() else { return };
        let factor = if self.model.cost == PipelineCost::Serial { 1.0 } else { 0.0 };
        let mut calm = usize::MAX;
        for &place in &self.newly {
            if (place as usize) < calm {
                front.push(place);
                calm = line.calm_before(place as usize, first as usize, factor);
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
        let value = costs(self.model, line, &ends).into_iter().fold(0.0, f64::max);
        Slicing { ends, value }
    }
}

/// Each task's block, in an order that is cut at these ends.
pub(super) fn blocks(order: &[u32], ends: &[usize]) -> Vec<u32> {
    let mut blocks = vec![0; order.len()];
    let mut from = 0;
    for (block, &end) in ends.iter().enumerate() {
        order[from..end].iter().for_each(|task| blocks[*task as usize] = block as u32);
        from = end;
    }
    blocks
}

/// What each block of a slicing costs.
pub(super) fn costs(model: &Model, line: &Line, ends: &[usize]) -> Vec<Micros> {
    let mut from = 0;
    let mut cost = |&end: &usize| {
        let mut stretch = line.stretch(from);
        (from..end).for_each(|_| stretch.grow());
        from = end;
        model.block_cost(stretch.work, stretch.overflow(), stretch.entering + stretch.leaving)
    };
    ends.iter().map(&mut cost).collect()
}
