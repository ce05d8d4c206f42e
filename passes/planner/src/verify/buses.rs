//! Bus occupancy.
//!
//! A transfer occupies its bus from its start to its end. With contention `exclusive`, transfers of a bus do not overlap.
//! With `shared`, they divide its bandwidth: nothing flows during the latency, then the bytes flow at rates that may
//! change, and the sum of the rates is at most the bandwidth. Such rates exist if and only if, in each interval, the
//! flows that lie within it take no longer than the interval at full bandwidth in sequence (feasibility of earliest
//! deadline first).

use std::collections::BTreeMap;

use super::{Judged, ROUNDING, exceeds};
use crate::model::error::Finding;
use crate::model::problem::{Contention, Problem};
use crate::model::units::{Micros, number};

/// Occupancy of a bus for some time.
pub(super) struct Use {
    /// Label for messages.
    pub(super) what: String,
    pub(super) start: Micros,
    pub(super) end: Micros,
    /// Time before anything flows.
    pub(super) latency: Micros,
    /// Duration of the flow with the whole bandwidth.
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

    /// Adds a use of the bus between two devices, if it has a name: an unnamed bus is not shared.
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
    // Uses without duration conflict with none.
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
    begins.sort_by(Micros::total_cmp);
    begins.dedup();
    for from in begins {
        let mut flow = Micros::ZERO;
        for one in uses.iter().filter(|one| one.start + one.latency >= from) {
            flow += one.flow;
            let room = one.end - from;
            if flow > room + ROUNDING * (flow + one.end) {
                let message = format!(
                    "the flow between {} and {} takes {} µs with the whole bandwidth: {} µs too long; {} is the last",
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
