//! Rows that programs of one input and of a queue share.

use super::{MOST_PAIRS, too_large};
use crate::mip::{Column, Program};
use crate::model::error::Error;
use crate::model::instance::Instance;

/// Memories are larger by this factor: shares of them are rounded, and a plan that fills one exactly is a solution.
const ROUNDED: f64 = 1.0 + 1e-12;

/// Limits what tasks take from each device's memory (eq. 6): columns of what may be there, with its bytes.
pub fn limit_memory(program: &mut Program, instance: &Instance, held: impl Fn(usize) -> Vec<(Column, f64)>) {
    for device in (0..instance.devices()).filter(|_| instance.memory_binds()) {
        let terms = held(device);
        let (all, room) = (terms.iter().map(|(_, bytes)| bytes).sum::<f64>(), instance.capacity_bytes(device));
        if all > room {
            // In shares of all, so that rounding means the same for small and large memories.
            program.at_most(room / all * ROUNDED, terms.into_iter().map(|(column, bytes)| (column, bytes / all)));
        }
    }
}

/// Connects the places of two groups by flows between pairs of devices: what leaves a device is what is there, and so is what
/// enters one.
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

/// Refuses a program with too many order variables.
pub fn check_orders(count: usize, tasks: usize) -> Result<(), Error> {
    if count > MOST_PAIRS {
        return Err(too_large(format!("{count} order variables for {tasks} tasks; {MOST_PAIRS} at most")));
    }
    Ok(())
}
