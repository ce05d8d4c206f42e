//! A bound for many stages: whatever tasks are priced at, some stage has at least a k-th of all prices. So the cheapest block
//! of such a price is a bound (Section 3.2 has it with work as the price), and the best prices make it a good one. They are
//! found as the dual of a linear program over blocks: as long as a block of the threshold's cost has too high a price,
//! prices must change; where none has, no pipeline reaches the threshold.

use super::milp;
use super::model::Model;
use super::pack::{Effort, Packed, Packer, cost};
use crate::mip::{Column, Limits, Program, Relaxation};
use crate::model::error::Error;
use crate::model::options::PipelineCost;
use crate::model::plan::Bound;
use crate::model::units::Micros;

/// Of more tasks it takes too long to say who waits for whom.
const MOST_TASKS: usize = 1000;
/// A price of one.
const ONE: f64 = (1_u64 << 40) as f64;
/// The first step of the threshold, and the last that is tried.
const STEP: f64 = 0.0075;
const LAST_STEP: f64 = 2e-4;
/// Relative distance of a bound from the cost of its block.
const CLOSE: f64 = 1e-9;
/// Distance of prices at first from those that have proven something.
const WIDTH: f64 = 0.05;
const WIDEST: f64 = 10.0;
/// By what share prices must be more than those of k blocks.
const MARGIN: f64 = 1e-6;
/// Blocks that prices are changed for at a time.
const BLOCKS: usize = 24;

/// Least cost of some task's block, whatever else is in it: the most of all tasks. Not below what is known.
pub(super) fn cut(model: &Model, least: Micros, effort: &mut Effort) -> Option<Bound> {
    if !is_priced(model) || least <= 0.0 {
        return None;
    }
    let mut packer = Packer::new(model);
    let mut alone: Vec<(Micros, usize)> = (0..model.tasks()).map(|task| (cost(model, &[task as u32]), task)).collect();
    alone.sort_by(|a, b| b.0.total_cmp(&a.0));
    let bound = |low: Micros| (low > least).then(|| Bound::new(milp::up(model, low, low), "cut"));
    let mut low = least;
    for (mut most, task) in alone {
        if most <= low {
            break;
        }
        // Only this task has a price, so a block of it is looked for: first one that says nothing, then ever cheaper ones.
        let mut prices = vec![0; model.tasks()];
        prices[task] = ONE as i64;
        let mut threshold = low;
        loop {
            match packer.find((&prices, ONE as i64), threshold, 1, effort) {
                Packed::Blocks(blocks) if threshold > low => most = cost(model, &blocks[0]),
                Packed::Nothing if threshold > low => break low = threshold,
                Packed::Nothing => {}
                Packed::Blocks(_) => break,
                Packed::Unknown => return bound(low),
            }
            threshold = most * (1.0 - CLOSE);
            if threshold <= low {
                break;
            }
        }
    }
    bound(low)
}

/// The best threshold that is refuted, from one that is known to be, up to a value that is reached. Tells of every one.
pub(super) fn priced(
    model: &Model,
    least: Micros,
    value: Micros,
    effort: &mut Effort,
    tell: &mut dyn FnMut(&Bound),
) -> Result<Option<Bound>, Error> {
    if !is_priced(model) || least <= 0.0 {
        return Ok(None);
    }
    let mut market = Market::new(model, effort)?;
    let mut best = None;
    let (mut low, mut step) = (least, STEP);
    while step >= LAST_STEP && low < value {
        let threshold = (low * (1.0 + step)).min(value);
        match market.refute(threshold, effort)? {
            Answer::Refuted => {
                low = threshold;
                let bound = Bound::new(milp::up(model, low, value), "priced");
                tell(&bound);
                best = Some(bound);
            }
            Answer::Stands => step /= 2.0,
            Answer::Spent => break,
        }
    }
    Ok(best)
}

/// Where stages work and move tensors at the same time, work and transfers do not add up to what is counted here.
pub(super) fn is_priced(model: &Model) -> bool {
    model.cost == PipelineCost::Serial && model.tasks() <= MOST_TASKS && model.work.iter().any(|work| *work > 0.0)
}

enum Answer {
    Refuted,
    Stands,
    Spent,
}

/// Prices and the blocks that they are for.
struct Market<'a> {
    model: &'a Model,
    packer: Packer<'a>,
    program: Relaxation,
    columns: Vec<Column>,
    /// Blocks with what they cost.
    blocks: Vec<(Micros, Vec<u32>)>,
    /// Prices that have refuted the last threshold: at first work.
    proven: Vec<f64>,
    /// Cost of each task alone.
    scale: Vec<Micros>,
}

impl<'a> Market<'a> {
    fn new(model: &'a Model, effort: &Effort) -> Result<Self, Error> {
        let all: Micros = model.work.iter().sum();
        let proven = model.work.iter().map(|work| work / all * model.k as f64).collect();
        let scale = (0..model.tasks() as u32).map(|task| cost(model, &[task])).collect();
        let (program, columns) = empty(model, effort)?;
        Ok(Self { model, packer: Packer::new(model), program, columns, blocks: Vec::new(), proven, scale })
    }

    fn refute(&mut self, threshold: Micros, effort: &mut Effort) -> Result<Answer, Error> {
        // Blocks that cost more say nothing about this threshold.
        if self.blocks.iter().any(|(cost, _)| *cost > threshold) {
            (self.program, self.columns) = empty(self.model, effort)?;
            self.blocks.retain(|(cost, _)| *cost <= threshold);
            for (_, block) in std::mem::take(&mut self.blocks) {
                self.add(block)?;
            }
        }
        let mut prices = self.proven.clone();
        let mut width = WIDTH;
        self.limit(width)?;
        loop {
            if effort.is_spent() {
                return Ok(Answer::Spent);
            }
            let whole: Vec<i64> = prices.iter().map(|price| (price * ONE) as i64).collect();
            let (all, k) = (whole.iter().sum::<i64>(), self.model.k as i64);
            let need = (all + k - 1) / k;
            match self.packer.find((&whole, need), threshold, BLOCKS, effort) {
                Packed::Nothing => {
                    let share = self.model.k as f64 / prices.iter().sum::<f64>();
                    self.proven = prices.iter().map(|price| price * share).collect();
                    return Ok(Answer::Refuted);
                }
                Packed::Unknown => return Ok(Answer::Spent),
                Packed::Blocks(blocks) => {
                    for block in blocks {
                        self.add(block)?;
                    }
                }
            }
            loop {
                let outcome = self.program.solve()?;
                if let Some(values) = outcome.values.filter(|_| outcome.finished && outcome.bound.is_finite()) {
                    prices = self.columns.iter().map(|column| column.of(&values).max(0.0)).collect();
                    if prices.iter().sum::<f64>() > self.model.k as f64 * (1.0 + MARGIN) {
                        break;
                    }
                }
                if effort.is_spent() {
                    return Ok(Answer::Spent);
                }
                // There are none so near.
                if width > WIDEST {
                    return Ok(Answer::Stands);
                }
                width *= 2.0;
                self.limit(width)?;
            }
        }
    }

    /// Prices stay near those that have proven something.
    fn limit(&mut self, width: f64) -> Result<(), Error> {
        let all: Micros = self.scale.iter().sum();
        for (task, column) in self.columns.iter().enumerate() {
            let (price, room) = (self.proven[task], width * self.scale[task] / all * self.model.k as f64);
            self.program.bound(*column, (price - room).clamp(0.0, 1.0), (price + room).clamp(0.0, 1.0))?;
        }
        Ok(())
    }

    /// Prices are such that this block's are at most one.
    fn add(&mut self, block: Vec<u32>) -> Result<(), Error> {
        let terms: Vec<(Column, f64)> = block.iter().map(|task| (self.columns[*task as usize], -1.0)).collect();
        self.program.at_least(-1.0, &terms)?;
        self.blocks.push((cost(self.model, &block), block));
        Ok(())
    }
}

/// Prices between nothing and one, as high as possible.
fn empty(model: &Model, effort: &Effort) -> Result<(Relaxation, Vec<Column>), Error> {
    let mut program = Program::default();
    let columns = (0..model.tasks()).map(|_| program.column(0.0, 1.0, -1.0)).collect();
    let limits = Limits { seed: 0, iterations: u64::MAX, seconds: effort.budget.seconds_left() };
    Ok((program.relaxation(&limits)?, columns))
}
