//! Cuts of an order into blocks, each on as many devices as it needs for a threshold.

use crate::model::units::Micros;
use crate::solvers::pipeline::line::Line;
use crate::solvers::pipeline::model::Model;

/// Number of bisection steps, and the relative tolerance of a number of devices.
const HALVINGS: u32 = 40;
const ROUNDING: f64 = 1e-12;
const UNREACHED: usize = usize::MAX;

/// Returns the ends of the blocks of a cut whose largest cost per device is below the upper limit, if there is one: the
/// least one up to the precision of the bisection. The lower limit is a bound.
pub(super) fn cut(
    model: &Model,
    line: &Line,
    devices: usize,
    most: usize,
    (low, high): (Micros, Micros),
) -> Option<Vec<usize>> {
    let all: Micros = line.work.iter().sum();
    let mut high = if high.is_finite() { high } else { (all + Micros(1.0)) * 4.0 };
    let mut found = reached(model, line, devices, most, high * (1.0 - ROUNDING))?;
    let mut low = low.min(high);
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        match reached(model, line, devices, most, middle) {
            Some(ends) => (found, high) = (ends, middle),
            None => low = middle,
        }
    }
    Some(found)
}

/// Returns the ends of blocks whose costs per device are at most a threshold, with the fewest devices; `None` if these are
/// too many.
fn reached(model: &Model, line: &Line, devices: usize, most: usize, threshold: Micros) -> Option<Vec<usize>> {
    let (end, most) = (line.len(), most.min(devices));
    let limit = threshold * most as f64;
    let mut slots = vec![UNREACHED; end + 1];
    let mut parent = vec![0; end + 1];
    slots[0] = 0;
    for from in 0..end {
        if slots[from] >= devices {
            continue;
        }
        let mut block = line.block(from);
        for to in from + 1..=end {
            block.grow();
            let overflow = block.overflow();
            if model.block_cost(block.work, overflow, block.entering) > limit {
                break;
            }
            let cost = model.block_cost(block.work, overflow, block.entering + block.leaving);
            let needed = ((cost / threshold * (1.0 - ROUNDING)).ceil() as usize).max(1);
            if needed <= most && slots[from] + needed < slots[to] {
                slots[to] = slots[from] + needed;
                parent[to] = from;
            }
        }
    }
    if slots[end] > devices {
        return None;
    }
    let mut ends = vec![end];
    while parent[ends[ends.len() - 1]] > 0 {
        ends.push(parent[ends[ends.len() - 1]]);
    }
    ends.reverse();
    Some(ends)
}

/// Returns blocks of an order with work in proportion to their numbers of devices.
pub(super) fn in_proportion(model: &Model, order: &[u32], replicas: &[u32]) -> Vec<u32> {
    let all: Micros = model.work.iter().sum();
    let devices: u32 = replicas.iter().sum();
    let mut block = vec![0; order.len()];
    let (mut of, mut done, mut given) = (0, Micros::ZERO, replicas[0]);
    for &task in order {
        while of + 1 < replicas.len() && done >= all * (f64::from(given) / f64::from(devices)) && done > Micros::ZERO {
            of += 1;
            given += replicas[of];
        }
        block[task as usize] = of as u32;
        done += model.work[task as usize];
    }
    block
}
