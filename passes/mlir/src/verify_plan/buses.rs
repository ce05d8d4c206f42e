//! What is on a bus at the same time.

use super::{
    Findings, exceeds,
    machine::{Contention, Machine},
    micros,
};
use divi_dialect::Operation;
use divi_planner::units::{Bytes, Micros};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

/// A tensor, or parameters, on a bus, from start to end.
struct Use<'m> {
    /// The operation that says so.
    at: Operation<'m>,
    /// What messages call it.
    what: String,
    start: Micros,
    end: Micros,
    /// What passes before anything flows.
    latency: Micros,
    /// How long all of it takes with the bus for itself.
    flow: Micros,
}

pub(super) struct Buses<'a, 'm> {
    machine: &'a Machine,
    uses: BTreeMap<&'a str, Vec<Use<'m>>>,
}

impl<'a, 'm> Buses<'a, 'm> {
    pub(super) fn new(machine: &'a Machine) -> Self {
        Self { machine, uses: BTreeMap::new() }
    }

    /// Takes the bus between two devices for some bytes, if there is one.
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

    /// Takes it for a task that reads so many bytes while it runs, or as many as it has time for.
    pub(super) fn read(
        &mut self,
        (from, to): (usize, usize),
        bytes: Bytes,
        (start, end): (Micros, Micros),
        at: Operation<'m>,
        what: String,
    ) {
        let (_, flow) = self.alone((from, to), bytes);
        self.add((from, to), Use { at, what, start, end, latency: 0.0, flow: flow.min(end - start) });
    }

    /// What passes before anything flows from one device to another, and how long all of it takes then.
    fn alone(&self, (from, to): (usize, usize), bytes: Bytes) -> (Micros, Micros) {
        let takes = |bytes| self.machine.transfer(from, to, bytes).unwrap_or(0.0);
        (takes(0.0), takes(bytes) - takes(0.0))
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

/// What is wrong with something that goes from `start` to `end`, and takes longer than that.
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

/// One at a time. What takes no time is in nobody's way.
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

/// All of them side by side, at rates that may change: nothing flows before a transfer's latency has passed, and all of it has
/// when it ends. If that can be at all, then by giving the whole bus to whichever ends first of those that could flow.
fn check_together(bus: &str, uses: &[Use<'_>], findings: &mut Findings) {
    let mut begins: Vec<(Micros, usize)> =
        uses.iter().enumerate().map(|(index, one)| (one.start + one.latency, index)).collect();
    begins.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut begins = begins.into_iter().peekable();
    let mut left: Vec<Micros> = uses.iter().map(|one| one.flow).collect();
    let mut flowing: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut now: Micros = 0.0;
    loop {
        while let Some((_, index)) = begins.next_if(|(begin, _)| *begin <= now) {
            // Times are not negative, so their bits are in their order.
            flowing.push(Reverse((uses[index].end.max(0.0).to_bits(), index)));
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
                "{} ends at {} on bus \"{bus}\", but with all that has to flow there until then it takes until {}: end it {} \
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
