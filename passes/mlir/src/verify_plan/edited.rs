//! Plans that somebody has changed by hand: devices are new, starts are old.

use super::{
    flow::Handed,
    graph::Graph,
    machine::{Contention, Machine},
    runs::Runs,
};
use divi_planner::units::Micros;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

/// Starts everything anew, as early as possible, each device in the order of the old starts as far as data flow lets it.
pub(super) fn retime(graph: &Graph<'_>, runs: &mut Runs, handed: &[Handed], devices: usize) {
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

/// The same where transfers hinder each other: one after the other, runs get their devices, and what they read its bus, what
/// was there first first. So nothing is in the way of what came before.
pub(super) fn retime_on_buses(graph: &Graph<'_>, runs: &mut Runs, handed: &mut [Handed], machine: &Machine) {
    let count = runs.all.len();
    let mut reads: Vec<Vec<usize>> = vec![vec![]; count];
    let mut readers: Vec<Vec<usize>> = vec![vec![]; count];
    // What goes one way, of all inputs that are read there.
    let mut inputs: BTreeMap<(usize, usize, usize), BTreeSet<i64>> = BTreeMap::new();
    for (index, way) in handed.iter().enumerate() {
        reads[way.to].push(index);
        readers[way.from].push(way.to);
        inputs.entry(way.way(runs)).or_default().extend(&way.inputs);
    }
    let mut waits_for: Vec<usize> = reads.iter().map(Vec::len).collect();
    let key = |runs: &Runs, run: usize| {
        let (start, end) = (runs.all[run].start.max(0.0), runs.all[run].end.max(0.0));
        Reverse((start.to_bits(), end.to_bits(), run))
    };
    let mut ready: BinaryHeap<_> = (0..count).filter(|&run| waits_for[run] == 0).map(|run| key(runs, run)).collect();
    let mut free: Vec<Micros> = vec![0.0; machine.devices.len()];
    let mut buses: BTreeMap<&str, Bus> = BTreeMap::new();
    let mut sent: BTreeMap<(usize, usize, usize), (Micros, Micros)> = BTreeMap::new();
    while let Some(Reverse((_, _, index))) = ready.pop() {
        // Of what has to come, first what is there first.
        reads[index].sort_by(|a, b| runs.all[handed[*a].from].end.total_cmp(&runs.all[handed[*b].from].end));
        let mut there: Micros = 0.0;
        for &way in &reads[index] {
            let (key, end) = (handed[way].way(runs), runs.all[handed[way].from].end);
            let (tensor, from, to) = key;
            handed[way].listed = None;
            if from != to {
                let bytes = graph.tensors[tensor].bytes * inputs[&key].len() as f64;
                let times = *sent.entry(key).or_insert_with(|| {
                    let takes = machine.transfer(from, to, bytes).unwrap_or(0.0);
                    let latency = machine.transfer(from, to, 0.0).unwrap_or(0.0);
                    match machine.bus(from, to).map(|bus| buses.entry(bus).or_default()) {
                        None => (end, end + takes),
                        Some(bus) if machine.contention == Contention::Shared => {
                            (end, bus.share(end + latency, takes - latency))
                        }
                        Some(bus) => bus.hold(end, takes),
                    }
                });
                handed[way].listed = Some(times);
            }
            there = there.max(handed[way].arrives(runs));
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

/// When a bus is taken, from when until when, in order.
#[derive(Default)]
struct Bus(Vec<(Micros, Micros)>);

impl Bus {
    /// Takes it at the first moment at which it is free for so long.
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

    /// Takes whatever is free until that is so long in all; says when it is.
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
