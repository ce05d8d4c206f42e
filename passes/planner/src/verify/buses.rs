//! What is on a bus at the same time.
//!
//! A transfer has its bus from its start to its end. With contention `exclusive` no two have it at once. With `shared` they
//! share it: while latency passes nothing flows, then the bytes flow at rates that may change, so that the bus is never asked
//! for more than it has. Some such rates exist if, and only if, within each span of time what must flow inside it takes no
//! longer than the span, at full speed one after the other (that is when earliest deadline first succeeds).

use std::collections::BTreeMap;

use super::{Judged, ROUNDING, exceeds};
use crate::model::error::Finding;
use crate::model::problem::{Contention, Problem};
use crate::model::units::{Micros, number};

/// Something that uses a bus for some time.
pub(super) struct Use {
    /// Whose it is, as messages say it.
    pub(super) what: String,
    pub(super) start: Micros,
    pub(super) end: Micros,
    /// What passes before anything flows.
    pub(super) latency: Micros,
    /// How long it takes all that is to flow, with the bus for itself.
    pub(super) flow: Micros,
}

pub(super) struct Buses<'a> {
    contention: Contention,
    names: Option<&'a Vec<Vec<Option<String>>>>,
    uses: BTreeMap<&'a str, Vec<Use>>,
}

impl<'a> Buses<'a> {
    pub(super) fn new(problem: &'a Problem, judged: &Judged) -> Self {
        Self { contention: judged.contention, names: problem.bus.as_ref(), uses: BTreeMap::new() }
    }

    /// Takes the bus between two devices, if that has a name: without one nothing else is on it.
    pub(super) fn take(&mut self, from: usize, to: usize, of: Use) {
        if let Some(name) = self.names.and_then(|names| names[from][to].as_deref()) {
            self.uses.entry(name).or_default().push(of);
        }
    }

    pub(super) fn check(mut self, findings: &mut Vec<Finding>) {
        for (name, uses) in &mut self.uses {
            match self.contention {
                Contention::Off => {}
                Contention::Exclusive => one_at_a_time(name, uses, findings),
                Contention::Shared => all_fit(name, uses, findings),
            }
        }
    }
}

fn one_at_a_time(name: &str, uses: &mut [Use], findings: &mut Vec<Finding>) {
    uses.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
    let mut running: Option<&Use> = None;
    // What takes no time is in nobody's way.
    for next in uses.iter().filter(|next| next.end > next.start) {
        if let Some(before) = running.filter(|before| exceeds(before.end, next.start)) {
            let message = format!(
                "{} starts at {}, while {} is on the bus until {}: {} µs too early",
                next.what,
                number(next.start),
                before.what,
                number(before.end),
                number(before.end - next.start)
            );
            findings.push(Finding::new(format!("bus {name}"), message));
        }
        if running.is_none_or(|before| next.end > before.end) {
            running = Some(next);
        }
    }
}

fn all_fit(name: &str, uses: &mut [Use], findings: &mut Vec<Finding>) {
    uses.sort_by(|a, b| a.end.total_cmp(&b.end));
    let mut begins: Vec<Micros> = uses.iter().map(|one| one.start + one.latency).collect();
    begins.sort_by(f64::total_cmp);
    begins.dedup();
    for from in begins {
        let mut flow = 0.0;
        for one in uses.iter().filter(|one| one.start + one.latency >= from) {
            flow += one.flow;
            let room = one.end - from;
            if flow > room + ROUNDING * (flow + one.end) {
                let message = format!(
                    "what has to flow between {} and {} takes {} µs on a bus of its own: {} µs too long; {} is the last",
                    number(from),
                    number(one.end),
                    number(flow),
                    number(flow - room),
                    one.what
                );
                findings.push(Finding::new(format!("bus {name}"), message));
                return;
            }
        }
    }
}
