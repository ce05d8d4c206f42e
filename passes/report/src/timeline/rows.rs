//! Lanes of links: simultaneous transfers are stacked in rows.

use std::collections::BTreeMap;

use divi_planner::problem::Problem;
use divi_planner::units::{Bytes, Micros};

use super::{LinkUse, Transfer};

/// Assigns a link and a row to each transfer; the transfers must be sorted by start. Returns the links in use.
pub(super) fn links(problem: &Problem, transfers: &mut [Transfer]) -> Vec<LinkUse> {
    let pairs: BTreeMap<(usize, usize), String> =
        transfers.iter().map(|moved| ((moved.from, moved.to), name(problem, moved.from, moved.to))).collect();
    // Ordered by sending device; a shared bus takes the position of its first pair.
    let mut links: Vec<LinkUse> = Vec::new();
    let mut of_pair = BTreeMap::new();
    for (pair, name) in pairs {
        let index = links.iter().position(|link| link.name == name).unwrap_or_else(|| {
            links.push(LinkUse {
                name,
                transfers: 0,
                bytes: Bytes::ZERO,
                busy: Micros::ZERO,
                rows: 0,
                bottleneck: false,
            });
            links.len() - 1
        });
        of_pair.insert(pair, index);
    }
    // Time from which each row is free, and time until which each link is busy.
    let mut free: Vec<Vec<Micros>> = vec![Vec::new(); links.len()];
    let mut until = vec![Micros::ZERO; links.len()];
    for transfer in transfers {
        let index = of_pair[&(transfer.from, transfer.to)];
        let (link, free) = (&mut links[index], &mut free[index]);
        let row = free.iter().position(|free| *free <= transfer.start).unwrap_or_else(|| {
            free.push(Micros::ZERO);
            free.len() - 1
        });
        free[row] = transfer.end;
        (transfer.link, transfer.row) = (Some(index), row);
        link.rows = free.len();
        link.transfers += 1;
        link.bytes += transfer.bytes;
        link.busy += (transfer.end - transfer.start.max(until[index])).max(Micros::ZERO);
        until[index] = until[index].max(transfer.end);
    }
    links
}

/// Returns the name of the bus, or else of the pair of devices.
pub(super) fn name(problem: &Problem, from: usize, to: usize) -> String {
    let bus = problem.bus.as_ref().and_then(|bus| bus[from][to].clone());
    bus.unwrap_or_else(|| format!("{} → {}", problem.devices[from].name, problem.devices[to].name))
}
