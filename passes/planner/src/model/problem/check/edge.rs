//! Checks of the edge-network view.

use super::links::LEAST_BANDWIDTH;
use super::nodes::figures;
use super::{MOST, unfit};
use crate::model::error::Finding;
use crate::model::problem::{EdgeNetwork, Problem};
use crate::model::units::{BytesPerMicro, short_number};

/// Minimum rate of a machine: times on slower ones might overflow.
const LEAST_RATE: f64 = 1e-9;

impl Problem {
    pub(super) fn check_edge_network(&self, findings: &mut Vec<Finding>) {
        let Some(view) = &self.edge else { return };
        figures("edge.flops", &view.flops, self.nodes.len(), "nodes", findings);
        if self.tensors.is_some() {
            let message = "is what edges move, but the problem has tensors; write them as edges";
            findings.push(Finding::new("edge.edge_bytes", message));
        }
        figures("edge.edge_bytes", &view.edge_bytes, self.edges.as_ref().map_or(0, Vec::len), "edges", findings);
        check_machines(view, findings);
        self.check_edge_limits(view, findings);
    }

    fn check_edge_limits(&self, view: &EdgeNetwork, findings: &mut Vec<Finding>) {
        let (nodes, machines) = (self.nodes.len(), view.rate.len());
        if let Some(threads) = &view.threads {
            if threads.len() != machines {
                let message = format!("has {} entries, but there are {machines} rates", threads.len());
                findings.push(Finding::new("edge.threads", message));
            }
            for index in (0..threads.len()).filter(|index| threads[*index] == 0) {
                let message = "0 threads run nothing; leave the machine out";
                findings.push(Finding::new(format!("edge.threads[{index}]"), message));
            }
        }
        let Some(pins) = &view.pin else { return };
        if pins.len() != nodes {
            let message = format!("has {} entries, but there are {nodes} nodes", pins.len());
            findings.push(Finding::new("edge.pin", message));
        }
        for (node, pin) in pins.iter().enumerate() {
            if let Some(pin) = pin.filter(|pin| *pin >= machines) {
                let message = format!("there is no machine {pin}; there are {machines}");
                findings.push(Finding::new(format!("edge.pin[{node}]"), message));
            }
        }
    }
}

fn check_machines(view: &EdgeNetwork, findings: &mut Vec<Finding>) {
    let machines = view.rate.len();
    if machines == 0 {
        findings.push(Finding::new("edge.rate", "is empty, so nothing can run"));
    }
    for (index, rate) in view.rate.iter().enumerate() {
        if !(LEAST_RATE..=MOST).contains(rate) {
            let message = format!("{} is not a positive rate from {LEAST_RATE:e} to {MOST:e}", short_number(*rate));
            findings.push(Finding::new(format!("edge.rate[{index}]"), message));
        }
    }
    if view.bandwidth.len() != machines || view.bandwidth.iter().any(|row| row.len() != machines) {
        let message = format!("is not {machines} by {machines}, though there are {machines} rates");
        findings.push(Finding::new("edge.bandwidth", message));
    }
    for (from, row) in view.bandwidth.iter().enumerate() {
        for (to, value) in row.iter().enumerate() {
            let Some(value) = *value else { continue };
            let tiny = value > BytesPerMicro::ZERO && value < LEAST_BANDWIDTH;
            let reason = tiny.then(|| format!("{} is too small; 0 means that there is no link", short_number(value)));
            if let Some(reason) = unfit(value).or(reason) {
                findings.push(Finding::new(format!("edge.bandwidth[{from}][{to}]"), reason));
            }
        }
    }
}
