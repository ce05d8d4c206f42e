//! Plans that somebody has changed by hand: devices are new, starts are old.

use super::{flow::Handed, graph::Graph, runs::Runs};
use divi_planner::units::Micros;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Starts everything anew, as early as possible, each device in the order of the old starts as far as data flow lets it.
pub(super) fn retime(graph: &Graph, runs: &mut Runs, handed: &[Handed], devices: usize) {
    let mut waits_for = vec![0usize; runs.all.len()];
    let mut readers: Vec<Vec<usize>> = vec![vec![]; runs.all.len()];
    for (index, way) in handed.iter().enumerate() {
        waits_for[way.to] += 1;
        readers[way.from].push(index);
    }
    let mut there: Vec<Micros> = vec![0.0; runs.all.len()];
    let mut free: Vec<Micros> = vec![0.0; devices];
    // Of those that could run, the one that started first. Times are not negative, so their bits are in their order; what
    // starts at the same time is in the order of the module.
    let key = |runs: &Runs, run: usize| Reverse((runs.all[run].start.max(0.0).to_bits(), run));
    let mut ready: BinaryHeap<_> =
        (0..runs.all.len()).filter(|&run| waits_for[run] == 0).map(|run| key(runs, run)).collect();
    while let Some(Reverse((_, index))) = ready.pop() {
        let run = &mut runs.all[index];
        let time = run.end - run.start;
        run.start = there[index];
        if graph.nodes[run.node].task().is_some() {
            run.start = run.start.max(free[run.device]);
            free[run.device] = run.start + time;
        }
        run.end = run.start + time;
        let end = run.end;
        for &way in &readers[index] {
            let way = &handed[way];
            there[way.to] = there[way.to].max(end + way.moving);
            waits_for[way.to] -= 1;
            if waits_for[way.to] == 0 {
                ready.push(key(runs, way.to));
            }
        }
    }
}
