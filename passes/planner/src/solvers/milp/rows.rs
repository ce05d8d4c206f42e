//! Constraints that the programs of one input and of a queue share.

use super::{MOST_PAIRS, too_large};
use crate::mip::{Column, Program};
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::units::Bytes;

/// Tolerance factor of capacities: shares are rounded, and a plan that fills a memory exactly must stay feasible.
const ROUNDED: f64 = 1.0 + 1e-12;

/// Limits the memory use of each device (eq. 6). `held` returns the variables of a device with their bytes.
pub fn limit_memory(program: &mut Program, instance: &Instance, held: impl Fn(usize) -> Vec<(Column, Bytes)>) {
    for device in (0..instance.devices()).filter(|_| instance.memory_binds()) {
        let terms = held(device);
        let (all, room) = (terms.iter().map(|(_, bytes)| bytes).sum::<Bytes>(), instance.capacity_bytes(device));
        if all > room {
            // Normalized by the sum, so that tolerances are relative.
            program.at_most(room / all * ROUNDED, terms.into_iter().map(|(column, bytes)| (column, bytes / all)));
        }
    }
}

/// Links the assignments of two groups by flow conservation: outflow of a device equals the first group's assignment,
/// inflow the second's.
pub(super) fn conserve(
    program: &mut Program,
    flows: &[(usize, usize, Column)],
    from: impl IntoIterator<Item = (usize, Column)>,
    to: impl IntoIterator<Item = (usize, Column)>,
) {
    for (u, here) in from {
        let out = flows.iter().filter(|(from, ..)| *from == u).map(|(.., column)| (*column, 1.0));
        program.exactly(0.0, out.chain([(here, -1.0)]));
    }
    for (v, here) in to {
        let into = flows.iter().filter(|(_, to, _)| *to == v).map(|(.., column)| (*column, 1.0));
        program.exactly(0.0, into.chain([(here, -1.0)]));
    }
}

/// Rejects a program with too many order variables.
pub fn check_orders(count: usize, tasks: usize) -> Result<(), Error> {
    if count > MOST_PAIRS {
        return Err(too_large(format!("{count} order variables for {tasks} tasks; {MOST_PAIRS} at most")));
    }
    Ok(())
}
