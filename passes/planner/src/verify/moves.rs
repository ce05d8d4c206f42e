//! Transfers that a plan lists: each tensor once for each other device that reads it.

use std::collections::{BTreeMap, BTreeSet};

use super::buses::{Buses, Use};
use super::launches::Launches;
use super::precedence::{duration, for_each_value};
use super::{Judged, exceeds};
use crate::model::error::Finding;
use crate::model::plan::{Plan, Transfer};
use crate::model::problem::{Contention, Problem};
use crate::model::units::{Bytes, Micros, number};

/// Tensor, source and destination.
type Way = (usize, usize, usize);

/// Times of transfers. Empty if the plan does not list them: then each starts as soon as its tensor is computed.
#[derive(Default)]
pub(super) struct Moves {
    times: BTreeMap<Way, (Micros, Micros)>,
    bytes: BTreeMap<Way, Bytes>,
}

/// Required transfer from one device to another.
struct Need {
    /// End time of the producer.
    ready: Micros,
    bytes: Bytes,
    inputs: BTreeSet<u32>,
}

impl Moves {
    /// Checks the plan's transfers one by one. With contention, or if some are listed, all must be listed.
    pub(super) fn of(
        problem: &Problem,
        plan: &Plan,
        judged: &Judged,
        launches: &Launches,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let mut moves = Self::default();
        if judged.contention == Contention::Off && plan.transfers.is_empty() {
            return moves;
        }
        let mut needs: BTreeMap<Way, Need> = BTreeMap::new();
        for_each_value(problem, launches, &moves, |value| {
            let (from, to) = (value.producer, value.reader);
            if from.device != to.device && value.arrival.is_some() {
                let need = needs.entry((value.tensor, from.device, to.device)).or_insert_with(|| Need {
                    ready: from.end,
                    bytes: value.bytes,
                    inputs: BTreeSet::new(),
                });
                need.inputs.extend(from.inputs.intersection(&to.inputs));
            }
        });
        for (index, transfer) in plan.transfers.iter().enumerate() {
            let way = (transfer.tensor, transfer.from, transfer.to);
            match fault(problem, transfer, needs.get(&way), moves.times.contains_key(&way)) {
                Some(message) => findings.push(Finding::new(format!("transfers[{index}]"), message)),
                None => {
                    moves.times.insert(way, (transfer.start, transfer.end));
                }
            }
        }
        for (way, need) in needs {
            if !moves.times.contains_key(&way) {
                let (from, to) = (problem.device_label(way.1), problem.device_label(way.2));
                let message = format!("tensor {} has to go from {from} to {to}, and is not listed", way.0);
                findings.push(Finding::new("transfers", message));
            }
            moves.bytes.insert(way, need.bytes * need.inputs.len() as f64);
        }
        moves
    }

    /// Returns the listed start and end of a transfer.
    pub(super) fn listed(&self, tensor: usize, from: usize, to: usize) -> Option<(Micros, Micros)> {
        self.times.get(&(tensor, from, to)).copied()
    }

    /// Adds every transfer to its bus.
    pub(super) fn occupy(&self, problem: &Problem, buses: &mut Buses<'_>) {
        for (&(tensor, from, to), &(start, end)) in &self.times {
            let bytes = self.bytes.get(&(tensor, from, to)).copied().unwrap_or_default();
            let latency = duration(problem, from, to, Bytes::ZERO).unwrap_or_default();
            let flow = duration(problem, from, to, bytes).unwrap_or_default() - latency;
            let what = format!("the transfer of tensor {tensor} to {}", problem.device_label(to));
            buses.take(from, to, Use { what, start, end, latency, flow });
        }
    }
}

/// Returns the error of a single transfer.
fn fault(problem: &Problem, transfer: &Transfer, need: Option<&Need>, is_listed: bool) -> Option<String> {
    let (from, to) = (problem.device_label(transfer.from), problem.device_label(transfer.to));
    let Some(need) = need else {
        return Some(format!("no task on {to} reads tensor {} from {from}", transfer.tensor));
    };
    if is_listed {
        return Some(format!("tensor {} goes from {from} to {to} twice", transfer.tensor));
    }
    if !transfer.start.is_finite() || !transfer.end.is_finite() || transfer.start < Micros::ZERO {
        return Some(format!("goes from {} to {}", number(transfer.start), number(transfer.end)));
    }
    if exceeds(need.ready, transfer.start) {
        let (ready, start) = (number(need.ready), number(transfer.start));
        let short = number(need.ready - transfer.start);
        return Some(format!("starts at {start}, but its tensor is there at {ready}: {short} µs too early"));
    }
    let takes = duration(problem, transfer.from, transfer.to, need.bytes * need.inputs.len() as f64)?;
    if exceeds(transfer.start + takes, transfer.end) {
        let (start, end) = (number(transfer.start), number(transfer.end));
        return Some(format!("goes from {start} to {end}, but takes {} µs", number(takes)));
    }
    None
}
