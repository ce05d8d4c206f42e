//! Checks the transfers on each bus.

use super::{
    Findings, exceeds,
    machine::{Contention, Machine},
    micros,
};
use crate::tasks::time_key;
use divi_dialect::Operation;
use divi_planner::units::{Bytes, Micros};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

/// Use of a bus by a tensor or by parameters, from start to end.
struct Use<'m> {
    /// Operation that states it.
    at: Operation<'m>,
    /// Name in messages.
    what: String,
    start: Micros,
    end: Micros,
    /// Time before any data flow.
    latency: Micros,
    /// Duration of the flow with the bus exclusively.
    flow: Micros,
}

/// Uses of all buses.
pub(super) struct Buses<'a, 'm> {
    machine: &'a Machine,
    uses: BTreeMap<&'a str, Vec<Use<'m>>>,
}

impl<'a, 'm> Buses<'a, 'm> {
    pub(super) fn new(machine: &'a Machine) -> Self {
        Self { machine, uses: BTreeMap::new() }
    }

    /// Adds a transfer of some bytes to the bus between two devices, if there is one.
    pub(super) fn take(
        &mut self,
        (from, to): (usize, usize),
        bytes: Bytes,
        (start, end): (Micros, Micros),
        at: Operation<'m>,
        what: String,
    ) {
        let (latency, flow) = self.alone((from, to), bytes);
        self.add((from, to), Use { at, what, start, end, latency, flow });
    }

    /// Adds a task that reads some bytes while it runs, or as many as fit into its time.
    pub(super) fn read(
        &mut self,
        (from, to): (usize, usize),
        bytes: Bytes,
        (start, end): (Micros, Micros),
        at: Operation<'m>,
        what: String,
    ) {
        let (_, flow) = self.alone((from, to), bytes);
        self.add((from, to), Use { at, what, start, end, latency: Micros::ZERO, flow: flow.min(end - start) });
    }

    /// Returns the latency of a transfer, and the duration of its flow on an idle bus.
    fn alone(&self, (from, to): (usize, usize), bytes: Bytes) -> (Micros, Micros) {
        let takes = |bytes| self.machine.transfer(from, to, bytes).unwrap_or_default();
        (takes(Bytes::ZERO), takes(bytes) - takes(Bytes::ZERO))
    }

    fn add(&mut self, (from, to): (usize, usize), one: Use<'m>) {
        if let Some(bus) = self.machine.bus(from, to) {
            self.uses.entry(bus).or_default().push(one);
        }
    }

    pub(super) fn check(&self, findings: &mut Findings) {
        for (bus, uses) in &self.uses {
            match self.machine.contention {
                Contention::Off => {}
                Contention::Exclusive => check_alone(bus, uses, findings),
                Contention::Shared => check_together(bus, uses, findings),
            }
        }
    }
}

/// Describes the error of a use from `start` to `end` that takes longer than that.
pub(super) fn too_short((start, end): (Micros, Micros), takes: Micros) -> Option<String> {
    exceeds(start + takes, end).then(|| {
        format!(
            "from {} until {}, but takes {}: let it take {} longer",
            micros(start),
            micros(end),
            micros(takes),
            micros(start + takes - end)
        )
    })
}

/// Checks that uses of an exclusive bus do not overlap. Uses of no duration do not conflict.
fn check_alone(bus: &str, uses: &[Use<'_>], findings: &mut Findings) {
    let mut order: Vec<&Use<'_>> = uses.iter().filter(|one| one.end > one.start).collect();
    order.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
    let mut last: Option<&Use<'_>> = None;
    for one in order {
        if let Some(before) = last.filter(|before| exceeds(before.end, one.start)) {
            let message = format!(
                "{} starts at {} on bus \"{bus}\", where {} is until {}: start it {} later",
                one.what,
                micros(one.start),
                before.what,
                micros(before.end),
                micros(before.end - one.start)
            );
            findings.add(one.at, &message);
        }
        if last.is_none_or(|before| one.end > before.end) {
            last = Some(one);
        }
    }
}

/// Checks that uses of a shared bus, at rates that may change, are feasible: no data flow before a transfer's latency
/// has passed, and all have when it ends. A feasible set is feasible with earliest deadline first: the whole bus goes
/// to the use that ends first.
fn check_together(bus: &str, uses: &[Use<'_>], findings: &mut Findings) {
    let mut begins: Vec<(Micros, usize)> =
        uses.iter().enumerate().map(|(index, one)| (one.start + one.latency, index)).collect();
    begins.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut begins = begins.into_iter().peekable();
    let mut left: Vec<Micros> = uses.iter().map(|one| one.flow).collect();
    let mut flowing: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut now = Micros::ZERO;
    loop {
        while let Some((_, index)) = begins.next_if(|(begin, _)| *begin <= now) {
            flowing.push(Reverse((time_key(uses[index].end), index)));
        }
        let next = begins.peek().map(|(begin, _)| *begin);
        let Some(&Reverse((_, index))) = flowing.peek() else {
            match next {
                Some(begin) => now = begin,
                None => return,
            }
            continue;
        };
        let done = now + left[index];
        if let Some(begin) = next.filter(|begin| *begin < done) {
            left[index] = done - begin;
            now = begin;
            continue;
        }
        now = done;
        flowing.pop();
        let one = &uses[index];
        if exceeds(done, one.end) {
            let message = format!(
                "{} ends at {} on bus \"{bus}\", but with the other transfers there it cannot end before {}: end it {} \
                 later",
                one.what,
                micros(one.end),
                micros(done),
                micros(done - one.end)
            );
            findings.add(one.at, &message);
        }
    }
}
