//! Cold starts: parameters are in the host's memory when an input arrives.

use serde::Deserialize;

use super::check::unfit;
use super::{Node, Problem};
use crate::model::error::Finding;
use crate::model::json::{list, optional, row};
use crate::model::plan::Plan;
use crate::model::units::{Bytes, BytesPerMicro, Micros, number};

/// Location of parameters before the first launch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Cold {
    /// Device that holds all parameters, and that copies start from.
    pub host: usize,
    /// By node, the device that still holds its parameters from an earlier run.
    #[serde(default)]
    pub resident: Option<Vec<Option<usize>>>,
    /// By node and device, the time of one input if the parameters stay in the host's memory and are read from there;
    /// unset where that is not possible.
    #[serde(default)]
    pub direct: Option<Vec<Option<Vec<Option<Micros>>>>>,
}

impl Cold {
    /// All parameters are in the memory of one device, and nowhere else.
    pub fn from_host(host: usize) -> Self {
        Self { host, resident: None, direct: None }
    }

    /// Returns the time of a node on a device that reads its parameters from the host's memory.
    pub fn direct_time(&self, node: usize, device: usize) -> Option<Micros> {
        self.direct.as_ref()?.get(node)?.as_ref()?.get(device).copied()?
    }

    /// Returns true if a device holds a node's parameters from the start.
    pub fn is_there(&self, node: usize, device: usize) -> bool {
        device == self.host || self.resident.as_ref().is_some_and(|resident| resident[node] == Some(device))
    }

    pub(super) fn write(&self) -> String {
        let none = || "null".to_owned();
        let mut keys = vec![format!("\"host\": {}", self.host)];
        if let Some(resident) = &self.resident {
            let device = |device: &Option<usize>| device.map_or_else(none, |device| device.to_string());
            keys.push(format!("\"resident\": {}", row(resident, device)));
        }
        if let Some(direct) = &self.direct {
            let times =
                |times: &Option<Vec<Option<Micros>>>| times.as_ref().map_or_else(none, |times| row(times, optional));
            keys.push(format!("\"direct\": {}", list(direct, times)));
        }
        format!("{{{}}}", keys.join(", "))
    }
}

impl Problem {
    /// Returns the problem with all parameters in the host's memory. A task on a device that reads them there takes the
    /// longer of its own time and the time of the parameters over the link.
    pub fn cold_start(&self) -> Self {
        self.cold_start_from(self.host())
    }

    /// Returns the problem with all parameters in the memory of the given device.
    pub fn cold_start_from(&self, host: usize) -> Self {
        self.cold_start_reading(host, |node| node.weight)
    }

    /// Returns the same where tasks read only some bytes of their parameters: a lookup in a table reads some rows.
    pub fn cold_start_reading(&self, host: usize, read: impl Fn(&Node) -> Bytes) -> Self {
        let direct = |node: &Node, device: usize| {
            let time = node.time.get(&1).and_then(|times| *times.get(device)?)?;
            let linked = self.bandwidth.get(host).and_then(|row| row.get(device)).copied()?;
            let over = linked.map_or(Micros::ZERO, |bandwidth| read(node) / bandwidth);
            let reads = node.weight > Bytes::ZERO && device != host && over.is_finite();
            reads.then(|| Micros::max(time, over + self.latency(host, device)))
        };
        let by_device = |node: &Node| {
            let times: Vec<Option<Micros>> = (0..self.devices.len()).map(|device| direct(node, device)).collect();
            times.iter().any(Option::is_some).then_some(times)
        };
        let direct = Some(self.nodes.iter().map(by_device).collect());
        Self { cold: Some(Cold { direct, ..Cold::from_host(host) }), ..self.clone() }
    }

    /// Returns the problem in which a share of a plan's copies is still resident, distributed evenly over the copies.
    pub fn still_warm(&self, plan: &Plan, share: f64) -> Self {
        let mut warm = self.clone();
        let Some(cold) = &mut warm.cold else { return warm };
        let resident = cold.resident.get_or_insert_with(|| vec![None; self.nodes.len()]);
        let places = plan.schedule.places(self.nodes.len());
        let (mut copied, mut kept) = (Bytes::ZERO, Bytes::ZERO);
        for copy in plan.copies.iter().filter(|copy| places.get(copy.node).is_some_and(|at| at.contains(&copy.to))) {
            let bytes = self.nodes[copy.node].weight;
            copied += bytes;
            if kept + bytes <= share * copied * (1.0 + 1e-12) {
                kept += bytes;
                resident[copy.node] = Some(copy.to);
            }
        }
        warm
    }

    fn latency(&self, from: usize, to: usize) -> Micros {
        self.link_latency.as_ref().and_then(|rows| *rows.get(from)?.get(to)?).unwrap_or(Micros::ZERO)
    }

    /// Checks the values of `cold`.
    pub(super) fn check_cold(&self, findings: &mut Vec<Finding>) {
        let Some(cold) = &self.cold else { return };
        let (nodes, devices) = (self.nodes.len(), self.devices.len());
        let mut wrong = |place: String, message: String| findings.push(Finding::new(place, message));
        if cold.host >= devices {
            wrong("cold.host".to_owned(), format!("is device {}, but there are {devices}", cold.host));
            return;
        }
        if let Some(resident) = &cold.resident {
            if resident.len() != nodes {
                let message = format!("has {} entries, but there are {nodes} nodes", resident.len());
                wrong("cold.resident".to_owned(), message);
            }
            for (node, device) in resident.iter().enumerate() {
                if let Some(device) = device.filter(|device| *device >= devices) {
                    wrong(format!("cold.resident[{node}]"), format!("is device {device}, but there are {devices}"));
                }
            }
        }
        let Some(direct) = &cold.direct else { return };
        if direct.len() != nodes {
            let message = format!("has {} entries, but there are {nodes} nodes", direct.len());
            wrong("cold.direct".to_owned(), message);
            return;
        }
        for (node, times) in direct.iter().enumerate().filter_map(|(node, times)| Some((node, times.as_ref()?))) {
            if times.len() != devices {
                let message = format!("has {} entries, but there are {devices} devices", times.len());
                wrong(format!("cold.direct[{node}]"), message);
                continue;
            }
            for (device, time) in times.iter().enumerate().filter_map(|(device, time)| Some((device, (*time)?))) {
                if let Some(message) = self.direct_fault(cold.host, node, device, time) {
                    wrong(format!("cold.direct[{node}][{device}]"), message);
                }
            }
        }
    }

    /// Returns the reason why a time of reading parameters in the host's memory is invalid.
    fn direct_fault(&self, host: usize, node: usize, device: usize, time: Micros) -> Option<String> {
        if let Some(reason) = unfit(time) {
            return Some(reason);
        }
        let link = self.bandwidth.get(host).and_then(|row| row.get(device)).copied().flatten();
        if device != host && link == Some(BytesPerMicro::ZERO) {
            return Some(format!("no link leads there from {}", self.device_label(host)));
        }
        // Nothing is faster from a cold start, so lower bounds of warm starts remain valid.
        match self.nodes[node].time.get(&1).and_then(|times| *times.get(device)?) {
            None => Some("the device does not run one input of it".to_owned()),
            Some(own) if own > time => {
                Some(format!("is {}, less than with its parameters there: {}", number(time), number(own)))
            }
            Some(_) => None,
        }
    }
}
