//! SortingHat's integer program (3.3), for one piece between dominators.
//!
//! Each device has slots that it executes in order, in pairs: in the first slot of a pair, tasks read their parameters
//! from the host's memory, in the second they have them (eqs. 21 and 22). Parameters are assigned to slots, too; a bus
//! copies those of the first slot of each of its devices, then those of the second, and so on (12 to 14). Parameters in
//! a slot of another device are forwarded from there, which counts as part of the slot that needs them, like all other
//! values from other devices.
//!
//! The program only proposes devices, orders and routes of parameters. The proposal is evaluated by the common
//! simulator, so the constants that the paper adjusts (3.4) and the restrictions of slots and turns do not affect the
//! result.

mod build;
mod decode;
mod slots;

use std::ops::ControlFlow;

use crate::mip::Limits;
use crate::model::options::Options;
use crate::model::plan::Limit;
use crate::solvers::contention::{Choice, Model};

use build::Formulation;
use slots::Slots;

/// Limit on launches times slots.
const MOST_CELLS: usize = 60;
/// Slots per device, with which the paper does best; and, if that is too many, the fewest that allow all routes.
const SLOTS_EACH: usize = 6;
const FEWEST_EACH: usize = 2;
/// Simplex iterations for all pieces together, and for each at least and at most; and the share of a time limit.
const ALL_ITERATIONS: u64 = 30_000;
const LEAST_ITERATIONS: u64 = 300;
const MOST_ITERATIONS: u64 = 5_000;
const SHARE: f64 = 0.2;

/// Returns the program's proposal for the launches from position `from` of the choice's order on, one of `pieces`
/// pieces; `None` if the program is too large, or finds nothing.
pub(super) fn plan(
    model: &Model<'_>,
    choice: &Choice,
    from: usize,
    launches: &[usize],
    pieces: usize,
    options: &Options,
) -> Option<Choice> {
    // Without buses and cold start, slots and turns are meaningless.
    if model.cold.is_none() && model.buses == 0 {
        return None;
    }
    let devices = (0..model.devices).filter(|on| launches.iter().any(|launch| model.time(*launch, *on).is_finite()));
    let devices: Vec<usize> = devices.collect();
    let fits = |each: &usize| launches.len() * devices.len() * each <= MOST_CELLS;
    let each = [SLOTS_EACH, FEWEST_EACH].into_iter().find(fits)?;
    let slots = Slots::new(model, choice, from, launches, devices, each)?;
    let formulation = Formulation::new(model, &slots);
    let share = (ALL_ITERATIONS / pieces.max(1) as u64).clamp(LEAST_ITERATIONS, MOST_ITERATIONS);
    let (iterations, seconds) = match options.limit {
        Some(Limit::Seconds(seconds)) => (u64::MAX, Some(seconds * SHARE / pieces.max(1) as f64)),
        Some(Limit::Iterations(count)) => (count.min(share), None),
        None => (share, None),
    };
    let limits = Limits { seed: options.seed, iterations, seconds };
    let outcome = formulation.program.solve(&limits, None, &mut |_| ControlFlow::Continue(())).ok()?;
    formulation.decode(model, &slots, choice, from, &outcome.values?)
}
