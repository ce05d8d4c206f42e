//! Lanes of links: transfers that are under way at the same time lie in rows, one above the other.

use std::collections::BTreeMap;

use divi_planner::problem::Problem;

use super::{LinkUse, Transfer};

/// The links that carry these transfers, which are sorted by start, and for each transfer its link and row.
pub(super) fn links(problem: &Problem, transfers: &mut [Transfer]) -> Vec<LinkUse> {
    let pairs: BTreeMap<(usize, usize), String> =
        transfers.iter().map(|moved| ((moved.from, moved.to), name(problem, moved.from, moved.to))).collect();
    // In the order of the devices that they come from, each bus where it is first.
    let mut links: Vec<LinkUse> = Vec::new();
    let mut of_pair = BTreeMap::new();
    for (pair, name) in pairs {
        let index = links.iter().position(|link| link.name == name).unwrap_or_else(|| {
            links.push(LinkUse { name, transfers: 0, bytes: 0.0, busy: 0.0, rows: 0, bottleneck: false });
            links.len() - 1
        });
        of_pair.insert(pair, index);
    }
    // When each row is free again; and until when the link has been busy.
    let mut free: Vec<Vec<f64>> = vec![Vec::new(); links.len()];
    let mut until = vec![0.0_f64; links.len()];
    for transfer in transfers {
        let index = of_pair[&(transfer.from, transfer.to)];
        let (link, free) = (&mut links[index], &mut free[index]);
        let row = free.iter().position(|free| *free <= transfer.start).unwrap_or_else(|| {
            free.push(0.0);
            free.len() - 1
        });
        free[row] = transfer.end;
        (transfer.link, transfer.row) = (Some(index), row);
        link.rows = free.len();
        link.transfers += 1;
        link.bytes += transfer.bytes;
        link.busy += (transfer.end - transfer.start.max(until[index])).max(0.0);
        until[index] = until[index].max(transfer.end);
    }
    links
}

/// The bus, or else who is joined.
pub(super) fn name(problem: &Problem, from: usize, to: usize) -> String {
    let bus = problem.bus.as_ref().and_then(|bus| bus[from][to].clone());
    bus.unwrap_or_else(|| format!("{} → {}", problem.devices[from].name, problem.devices[to].name))
}
