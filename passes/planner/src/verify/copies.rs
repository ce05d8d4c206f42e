//! Cold starts: parameters arrive before the task that uses them, from the host or over a second hop from a device that
//! received them; or they stay in the host's memory and are read from there, which takes the task longer.

use std::collections::{BTreeMap, BTreeSet};

use super::buses::{Buses, Use};
use super::exceeds;
use super::launches::Launches;
use super::precedence::duration;
use crate::model::error::Finding;
use crate::model::plan::{ParameterCopy, Plan};
use crate::model::problem::{Cold, Problem};
use crate::model::units::{Bytes, Micros, number};

/// Copies of a plan, by node and destination.
#[derive(Default)]
pub(super) struct Copies {
    host: usize,
    of: BTreeMap<(usize, usize), ParameterCopy>,
    forwarded: Vec<Forwarded>,
}

/// Parameters on an intermediate device of a second hop.
pub(super) struct Forwarded {
    pub(super) on: usize,
    pub(super) bytes: Bytes,
    pub(super) from: Micros,
    pub(super) until: Micros,
}

impl Copies {
    /// Checks the plan's copies one by one, and that each launch has its parameters. A launch without them reads them in
    /// the host's memory, and ends accordingly later.
    pub(super) fn of(problem: &Problem, plan: &Plan, launches: &mut Launches, findings: &mut Vec<Finding>) -> Self {
        let Some(cold) = &problem.cold else {
            if !plan.copies.is_empty() {
                let message = "the problem has no cold start, so all parameters are where they are needed";
                findings.push(Finding::new("copies", message));
            }
            return Self::default();
        };
        let mut copies = Self { host: cold.host, ..Self::default() };
        for (index, copy) in plan.copies.iter().enumerate() {
            let mut wrong = |message: String| findings.push(Finding::new(format!("copies[{index}]"), message));
            match fault(problem, cold, copy) {
                Some(message) => wrong(message),
                None => {
                    if copies.of.insert((copy.node, copy.to), copy.clone()).is_some() {
                        wrong(format!("{} has another copy to there", problem.node_label(copy.node)));
                    }
                }
            }
        }
        copies.check_sources(problem, cold, findings);
        copies.check_uses(problem, launches, findings);
        for launch in launches.of_node.iter_mut().flatten() {
            let node = &problem.nodes[launch.node];
            if node.weight == Bytes::ZERO || cold.is_there(launch.node, launch.device) {
                continue;
            }
            let mut wrong = |message: String| findings.push(Finding::new(problem.node_label(launch.node), message));
            let device = problem.device_label(launch.device);
            match (copies.of.get(&(launch.node, launch.device)), cold.direct_time(launch.node, launch.device)) {
                (Some(copy), _) => {
                    if exceeds(copy.end, launch.start) {
                        let (start, end) = (number(launch.start), number(copy.end));
                        let short = number(copy.end - launch.start);
                        wrong(format!(
                            "starts at {start} on {device}, but its parameters are there at {end}: {short} µs too early"
                        ));
                    }
                }
                (None, Some(time)) => {
                    launch.direct = true;
                    launch.end = launch.start + time;
                }
                (None, None) => wrong(format!(
                    "runs on {device}, but its parameters are not copied there, and it cannot read them from the host"
                )),
            }
        }
        copies
    }

    /// Checks that the source of a second hop has the parameters in time, from the host or from an earlier run.
    fn check_sources(&mut self, problem: &Problem, cold: &Cold, findings: &mut Vec<Finding>) {
        for ((node, to), copy) in &self.of {
            let Some(via) = copy.via else { continue };
            let mut wrong = |message: String| {
                let place = format!("copy of {} to {}", problem.node_label(*node), problem.device_label(*to));
                findings.push(Finding::new(place, message));
            };
            let source = problem.device_label(via);
            if cold.is_there(*node, via) {
                continue;
            }
            let Some(first) = self.of.get(&(*node, via)).filter(|first| first.via.is_none()) else {
                wrong(format!("comes from {source}, but the host does not copy the parameters there"));
                continue;
            };
            if exceeds(first.end, copy.start) {
                let (start, there) = (number(copy.start), number(first.end));
                wrong(format!("starts at {start}, but {source} has the parameters at {there}"));
            }
            let bytes = problem.nodes[*node].weight;
            self.forwarded.push(Forwarded { on: via, bytes, from: first.start, until: copy.end });
        }
    }

    /// Checks that a copy is for a task that runs on its destination, or for a second hop.
    fn check_uses(&self, problem: &Problem, launches: &Launches, findings: &mut Vec<Finding>) {
        let runs = |node: usize, on: usize| launches.of_node[node].iter().any(|launch| launch.device == on);
        let forwarded: BTreeSet<(usize, usize)> =
            self.of.values().filter_map(|copy| Some((copy.node, copy.via?))).collect();
        for (node, to) in self.of.keys() {
            if !runs(*node, *to) && !forwarded.contains(&(*node, *to)) {
                let place = format!("copy of {} to {}", problem.node_label(*node), problem.device_label(*to));
                findings.push(Finding::new(place, "no task uses the parameters there"));
            }
        }
    }

    /// Returns the parameters that a device only holds for a second hop.
    pub(super) fn forwarded(&self) -> impl Iterator<Item = &Forwarded> {
        self.forwarded.iter()
    }

    /// Adds every copy to its bus, and every launch that reads the host's memory: it occupies the bus while it runs.
    pub(super) fn occupy(&self, problem: &Problem, launches: &Launches, buses: &mut Buses<'_>) {
        let mut take = |from: usize, to: usize, node: usize, start: Micros, end: Micros, is_copy: bool| {
            let latency = duration(problem, from, to, Bytes::ZERO).unwrap_or_default();
            let flow = duration(problem, from, to, problem.nodes[node].weight).unwrap_or_default() - latency;
            // A task may read less than all of its parameters: at most what its time allows.
            let (latency, flow) = if is_copy { (latency, flow) } else { (Micros::ZERO, flow.min(end - start)) };
            let whose = problem.node_label(node);
            let what = if is_copy { format!("the copy of {whose}") } else { format!("{whose}, which reads there,") };
            buses.take(from, to, Use { what, start, end, latency, flow });
        };
        for copy in self.of.values() {
            take(copy.via.unwrap_or(self.host), copy.to, copy.node, copy.start, copy.end, true);
        }
        for launch in launches.all().filter(|launch| launch.direct) {
            take(self.host, launch.device, launch.node, launch.start, launch.end, false);
        }
    }
}

/// Returns the error of a single copy.
fn fault(problem: &Problem, cold: &Cold, copy: &ParameterCopy) -> Option<String> {
    let Some(node) = problem.nodes.get(copy.node) else {
        return Some(format!("there is no node {}; there are {}", copy.node, problem.nodes.len()));
    };
    let from = copy.via.unwrap_or(cold.host);
    if let Some(device) = [copy.to, from].into_iter().find(|device| *device >= problem.devices.len()) {
        return Some(format!("there is no device {device}; there are {}", problem.devices.len()));
    }
    let (label, to) = (problem.node_label(copy.node), problem.device_label(copy.to));
    if node.weight == Bytes::ZERO || cold.is_there(copy.node, copy.to) {
        return Some(format!("{label} has all its parameters on {to}"));
    }
    if copy.to == from || copy.via == Some(cold.host) {
        return Some(format!("{label} goes to {to} via {}", problem.device_label(from)));
    }
    if !copy.start.is_finite() || !copy.end.is_finite() || copy.start < Micros::ZERO {
        return Some(format!("goes from {} to {}", number(copy.start), number(copy.end)));
    }
    let Some(takes) = duration(problem, from, copy.to, node.weight) else {
        return Some(format!("no link leads from {} to {to}", problem.device_label(from)));
    };
    if exceeds(copy.start + takes, copy.end) {
        let (start, end) = (number(copy.start), number(copy.end));
        return Some(format!("goes from {start} to {end}, but takes {} µs", number(takes)));
    }
    None
}
