//! Retimes plans that were changed by hand: devices are new, starts are out of date.

use super::{
    flow::Dependence,
    graph::Graph,
    machine::{Contention, Machine},
    runs::{Run, Runs},
};
use crate::tasks::time_key;
use divi_planner::units::{Bytes, Micros};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

/// Recomputes all starts, as early as possible; each device keeps the order of the old starts as far as precedence
/// allows.
pub(super) fn retime(graph: &Graph<'_>, runs: &mut Runs, dependences: &[Dependence], devices: usize) {
    let mut waits_for = vec![0usize; runs.all.len()];
    let mut readers: Vec<Vec<usize>> = vec![vec![]; runs.all.len()];
    for (index, dependence) in dependences.iter().enumerate() {
        waits_for[dependence.to] += 1;
        readers[dependence.from].push(index);
    }
    let mut there: Vec<Micros> = vec![Micros::ZERO; runs.all.len()];
    let mut free: Vec<Micros> = vec![Micros::ZERO; devices];
    // Among ready runs, the one with the earliest old start; ties are in the order of the module.
    let key = |runs: &Runs, run: usize| Reverse((time_key(runs.all[run].start), run));
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
        for &dependence in &readers[index] {
            let dependence = &dependences[dependence];
            there[dependence.to] = there[dependence.to].max(end + dependence.transfer_time);
            waits_for[dependence.to] -= 1;
            if waits_for[dependence.to] == 0 {
                ready.push(key(runs, dependence.to));
            }
        }
    }
}

/// Does the same under contention: one after the other, runs get their devices and their operands a bus, in order of
/// availability. So later transfers do not delay earlier ones.
pub(super) fn retime_on_buses(graph: &Graph<'_>, runs: &mut Runs, dependences: &mut [Dependence], machine: &Machine) {
    let count = runs.all.len();
    let mut reads: Vec<Vec<usize>> = vec![vec![]; count];
    let mut readers: Vec<Vec<usize>> = vec![vec![]; count];
    // Inputs that are read on a device, for each transfer of a tensor.
    let mut inputs: BTreeMap<(usize, usize, usize), BTreeSet<i64>> = BTreeMap::new();
    for (index, dependence) in dependences.iter().enumerate() {
        reads[dependence.to].push(index);
        readers[dependence.from].push(dependence.to);
        inputs.entry(dependence.route(runs)).or_default().extend(&dependence.inputs);
    }
    let mut waits_for: Vec<usize> = reads.iter().map(Vec::len).collect();
    let key = |runs: &Runs, run: usize| {
        let Run { start, end, .. } = runs.all[run];
        Reverse((time_key(start), time_key(end), run))
    };
    let mut ready: BinaryHeap<_> = (0..count).filter(|&run| waits_for[run] == 0).map(|run| key(runs, run)).collect();
    let mut free: Vec<Micros> = vec![Micros::ZERO; machine.devices.len()];
    let mut buses: BTreeMap<&str, Bus> = BTreeMap::new();
    let mut sent: BTreeMap<(usize, usize, usize), (Micros, Micros)> = BTreeMap::new();
    while let Some(Reverse((_, _, index))) = ready.pop() {
        // Transfers in the order in which their tensors are computed.
        reads[index].sort_by(|a, b| runs.all[dependences[*a].from].end.total_cmp(&runs.all[dependences[*b].from].end));
        let mut there = Micros::ZERO;
        for &dependence in &reads[index] {
            let (key, end) = (dependences[dependence].route(runs), runs.all[dependences[dependence].from].end);
            let (tensor, run, to) = key;
            let from = runs.all[run].device;
            dependences[dependence].stated_times = None;
            if from != to {
                let bytes = graph.tensors[tensor].bytes * inputs[&key].len() as f64;
                let times = *sent.entry(key).or_insert_with(|| {
                    let takes = machine.transfer(from, to, bytes).unwrap_or_default();
                    let latency = machine.transfer(from, to, Bytes::ZERO).unwrap_or_default();
                    match machine.bus(from, to).map(|bus| buses.entry(bus).or_default()) {
                        None => (end, end + takes),
                        Some(bus) if machine.contention == Contention::Shared => {
                            (end, bus.share(end + latency, takes - latency))
                        }
                        Some(bus) => bus.hold(end, takes),
                    }
                });
                dependences[dependence].stated_times = Some(times);
            }
            there = there.max(dependences[dependence].arrives(runs));
        }
        let run = &mut runs.all[index];
        let time = run.end - run.start;
        run.start = there;
        if graph.nodes[run.node].task().is_some() {
            run.start = run.start.max(free[run.device]);
            free[run.device] = run.start + time;
        }
        run.end = run.start + time;
        for &reader in &readers[index] {
            waits_for[reader] -= 1;
            if waits_for[reader] == 0 {
                ready.push(key(runs, reader));
            }
        }
    }
}

/// Intervals in which a bus is used, in order.
#[derive(Default)]
struct Bus(Vec<(Micros, Micros)>);

impl Bus {
    /// Reserves the first free interval of length `takes` after `from`.
    fn hold(&mut self, from: Micros, takes: Micros) -> (Micros, Micros) {
        let mut start = from;
        for (begin, end) in &self.0 {
            if start + takes <= *begin {
                break;
            }
            start = start.max(*end);
        }
        self.insert((start, start + takes));
        (start, start + takes)
    }

    /// Reserves all free time after `from` until it amounts to `takes`. Returns the end.
    fn share(&mut self, from: Micros, mut takes: Micros) -> Micros {
        let mut pieces = vec![];
        let mut now = from;
        for &(begin, end) in self.0.iter().filter(|(_, end)| *end > from) {
            if takes <= begin - now {
                break;
            }
            if begin > now {
                pieces.push((now, begin));
                takes -= begin - now;
            }
            now = now.max(end);
        }
        pieces.push((now, now + takes));
        pieces.into_iter().for_each(|piece| self.insert(piece));
        now + takes
    }

    fn insert(&mut self, piece: (Micros, Micros)) {
        if piece.1 > piece.0 {
            let place = self.0.partition_point(|taken| taken.0 < piece.0);
            self.0.insert(place, piece);
        }
    }
}
