//! Bound for many stages: for any prices of tasks, some stage has at least a k-th of the total price. So the cheapest
//! block with such a price is a bound (Section 3.2 uses work as the price). Good prices are dual solutions of a linear
//! program over blocks (column generation): as long as a block within the threshold has too high a price, prices
//! change; if there is none, no pipeline reaches the threshold.

use super::milp;
use super::model::Model;
use super::pack::{Effort, Packed, Packer, cost};
use crate::mip::{Column, Limits, Program, Relaxation};
use crate::model::error::Error;
use crate::model::options::PipelineCost;
use crate::model::plan::Bound;
use crate::model::units::Micros;

/// Limit on tasks for the transitive closure.
const MOST_TASKS: usize = 1000;
/// Fixed-point representation of the price one.
const ONE: f64 = (1_u64 << 40) as f64;
/// First step of the threshold, and the smallest one.
const STEP: f64 = 0.0075;
const LAST_STEP: f64 = 2e-4;
/// Relative distance of a bound from the cost of its block.
const CLOSE: f64 = 1e-9;
/// Initial and maximum width of the box around the prices of the last proof.
const WIDTH: f64 = 0.05;
const WIDEST: f64 = 10.0;
/// Relative excess of total price required for a refutation.
const MARGIN: f64 = 1e-6;
/// Blocks added per iteration.
const BLOCKS: usize = 24;

/// Maximum over tasks of the minimum cost of a block that contains the task. `least` is a known lower bound.
pub(super) fn cut(model: &Model, least: Micros, effort: &mut Effort) -> Option<Bound> {
    if !is_priced(model) || least <= Micros::ZERO {
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
        // Only this task has a price, so blocks that contain it are found: first a test at the known bound, then ever
        // cheaper ones.
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

/// Returns the best threshold that is refuted, starting from a known bound, up to the incumbent's value. Reports every
/// improvement.
pub(super) fn priced(
    model: &Model,
    least: Micros,
    value: Micros,
    effort: &mut Effort,
    report: &mut dyn FnMut(&Bound),
) -> Result<Option<Bound>, Error> {
    if !is_priced(model) || least <= Micros::ZERO {
        return Ok(None);
    }
    let mut pricing = Pricing::new(model, effort)?;
    let mut best = None;
    let (mut low, mut step) = (least, STEP);
    while step >= LAST_STEP && low < value {
        let threshold = (low * (1.0 + step)).min(value);
        match pricing.refute(threshold, effort)? {
            Answer::Refuted => {
                low = threshold;
                let bound = Bound::new(milp::up(model, low, value), "priced");
                report(&bound);
                best = Some(bound);
            }
            Answer::Stands => step /= 2.0,
            Answer::Spent => break,
        }
    }
    Ok(best)
}

/// Returns true if prices apply: with overlap, work and transfers do not add up.
pub(super) fn is_priced(model: &Model) -> bool {
    model.cost == PipelineCost::Serial
        && model.tasks() <= MOST_TASKS
        && model.work.iter().any(|work| *work > Micros::ZERO)
}

enum Answer {
    Refuted,
    Stands,
    Spent,
}

/// Prices, and the blocks that constrain them.
struct Pricing<'a> {
    model: &'a Model,
    packer: Packer<'a>,
    program: Relaxation,
    columns: Vec<Column>,
    /// Blocks with their costs.
    blocks: Vec<(Micros, Vec<u32>)>,
    /// Prices that refuted the last threshold; initially proportional to work.
    proven: Vec<f64>,
    /// Cost of each task as a block of its own.
    scale: Vec<Micros>,
}

impl<'a> Pricing<'a> {
    fn new(model: &'a Model, effort: &Effort) -> Result<Self, Error> {
        let all: Micros = model.work.iter().sum();
        let proven = model.work.iter().map(|work| *work / all * model.k as f64).collect();
        let scale = (0..model.tasks() as u32).map(|task| cost(model, &[task])).collect();
        let (program, columns) = empty(model, effort)?;
        Ok(Self { model, packer: Packer::new(model), program, columns, blocks: Vec::new(), proven, scale })
    }

    fn refute(&mut self, threshold: Micros, effort: &mut Effort) -> Result<Answer, Error> {
        // Blocks that cost more than the threshold do not constrain its prices.
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
                // No refuting prices within the box.
                if width > WIDEST {
                    return Ok(Answer::Stands);
                }
                width *= 2.0;
                self.limit(width)?;
            }
        }
    }

    /// Limits prices to a box around those of the last proof (stabilization).
    fn limit(&mut self, width: f64) -> Result<(), Error> {
        let all: Micros = self.scale.iter().sum();
        for (task, column) in self.columns.iter().enumerate() {
            let (price, room) = (self.proven[task], width * self.scale[task] / all * self.model.k as f64);
            self.program.bound(*column, (price - room).clamp(0.0, 1.0), (price + room).clamp(0.0, 1.0))?;
        }
        Ok(())
    }

    /// Adds the constraint that the total price of a block is at most one.
    fn add(&mut self, block: Vec<u32>) -> Result<(), Error> {
        let terms: Vec<(Column, f64)> = block.iter().map(|task| (self.columns[*task as usize], -1.0)).collect();
        self.program.at_least(-1.0, &terms)?;
        self.blocks.push((cost(self.model, &block), block));
        Ok(())
    }
}

/// Returns a program that maximizes the sum of prices between zero and one.
fn empty(model: &Model, effort: &Effort) -> Result<(Relaxation, Vec<Column>), Error> {
    let mut program = Program::default();
    let columns = (0..model.tasks()).map(|_| program.column(0.0, 1.0, -1.0)).collect();
    let limits = Limits { seed: 0, iterations: u64::MAX, seconds: effort.budget.seconds_left() };
    Ok((program.relaxation(&limits)?, columns))
}
