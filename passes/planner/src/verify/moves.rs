//! Transfers that a plan lists: the tensors of each launch once for each other device that reads them.

use std::collections::{BTreeMap, BTreeSet};

use super::buses::{Buses, Use};
use super::launches::Launches;
use super::precedence::{duration, for_each_value};
use super::{Judged, exceeds};
use crate::model::error::Finding;
use crate::model::plan::{Plan, Transfer};
use crate::model::problem::{Contention, Problem};
use crate::model::units::{Bytes, Micros, number};

/// Tensor, number of the launch among those of its task, and destination.
type Way = (usize, usize, usize);

/// Times of transfers. Empty if the plan does not list them: then each starts as soon as its tensor is computed.
#[derive(Default)]
pub(super) struct Moves {
    times: BTreeMap<Way, (Micros, Micros)>,
    /// Source and size of each required transfer.
    sizes: BTreeMap<Way, (usize, Bytes)>,
}

/// Required transfer from one device to another.
struct Need {
    from: usize,
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
                let need = needs.entry((value.tensor, value.launch, to.device)).or_insert_with(|| Need {
                    from: from.device,
                    ready: from.end,
                    bytes: value.bytes,
                    inputs: BTreeSet::new(),
                });
                need.inputs.extend(from.inputs.intersection(&to.inputs));
            }
        });
        for (index, transfer) in plan.transfers.iter().enumerate() {
            let added = required(problem, transfer, &needs).and_then(|(way, need)| {
                let is_listed = moves.times.contains_key(&way);
                check(problem, transfer, need, is_listed).map(|()| way)
            });
            match added {
                Err(message) => findings.push(Finding::new(format!("transfers[{index}]"), message)),
                Ok(way) => {
                    moves.times.insert(way, (transfer.start, transfer.end));
                }
            }
        }
        for (way, need) in needs {
            if !moves.times.contains_key(&way) {
                let (from, to) = (problem.device_label(need.from), problem.device_label(way.2));
                let message = format!("tensor {} has to go from {from} to {to}, and is not listed", way.0);
                findings.push(Finding::new("transfers", message));
            }
            moves.sizes.insert(way, (need.from, need.bytes * need.inputs.len() as f64));
        }
        moves
    }

    /// Returns the listed start and end of the transfer of a launch's tensor.
    pub(super) fn listed(&self, tensor: usize, launch: usize, to: usize) -> Option<(Micros, Micros)> {
        self.times.get(&(tensor, launch, to)).copied()
    }

    /// Adds every transfer to its bus.
    pub(super) fn occupy(&self, problem: &Problem, buses: &mut Buses<'_>) {
        for (way, &(start, end)) in &self.times {
            let (&(tensor, _, to), &(from, bytes)) = (way, &self.sizes[way]);
            let latency = duration(problem, from, to, Bytes::ZERO).unwrap_or_default();
            let flow = duration(problem, from, to, bytes).unwrap_or_default() - latency;
            let what = format!("the transfer of tensor {tensor} to {}", problem.device_label(to));
            buses.take(from, to, Use { what, start, end, latency, flow });
        }
    }
}

/// Returns the required transfer that a listed one is: from its source, with its inputs.
fn required<'a>(
    problem: &Problem,
    transfer: &Transfer,
    needs: &'a BTreeMap<Way, Need>,
) -> Result<(Way, &'a Need), String> {
    let (from, to) = (problem.device_label(transfer.from), problem.device_label(transfer.to));
    let of_tensor = needs.range((transfer.tensor, 0, 0)..=(transfer.tensor, usize::MAX, usize::MAX));
    let mut found = of_tensor.filter(|(way, need)| (need.from, way.2) == (transfer.from, transfer.to));
    let Some(inputs) = &transfer.inputs else {
        let none = || format!("no task on {to} reads tensor {} from {from}", transfer.tensor);
        let (way, need) = found.next().ok_or_else(none)?;
        return match found.next() {
            None => Ok((*way, need)),
            Some(_) => Err(format!(
                "several launches on {from} compute tensor {} for {to}; list the inputs of each transfer",
                transfer.tensor
            )),
        };
    };
    let of_transfer: BTreeSet<u32> = inputs.iter().copied().collect();
    let same = found.find(|(_, need)| of_transfer.len() == inputs.len() && need.inputs == of_transfer);
    let none = || {
        let tensor = transfer.tensor;
        format!(
            "has inputs {inputs:?}; no launch on {from} computes tensor {tensor} for exactly these inputs that {to} reads"
        )
    };
    same.map(|(way, need)| (*way, need)).ok_or_else(none)
}

/// Checks the times of a single transfer.
fn check(problem: &Problem, transfer: &Transfer, need: &Need, is_listed: bool) -> Result<(), String> {
    let (from, to) = (problem.device_label(transfer.from), problem.device_label(transfer.to));
    if is_listed {
        return Err(format!("tensor {} goes from {from} to {to} twice", transfer.tensor));
    }
    if !transfer.start.is_finite() || !transfer.end.is_finite() || transfer.start < Micros::ZERO {
        return Err(format!("goes from {} to {}", number(transfer.start), number(transfer.end)));
    }
    if exceeds(need.ready, transfer.start) {
        let (ready, start) = (number(need.ready), number(transfer.start));
        let short = number(need.ready - transfer.start);
        return Err(format!("starts at {start}, but its tensor is there at {ready}: {short} µs too early"));
    }
    let takes = duration(problem, transfer.from, transfer.to, need.bytes * need.inputs.len() as f64);
    match takes {
        Some(takes) if exceeds(transfer.start + takes, transfer.end) => {
            let (start, end) = (number(transfer.start), number(transfer.end));
            Err(format!("goes from {start} to {end}, but takes {} µs", number(takes)))
        }
        _ => Ok(()),
    }
}
