//! The devices and links of a module.

use super::Findings;
use crate::ir::describe;
use divi_dialect::{Operation, attr, op};
use divi_planner::units::{Bytes, Micros};
use std::collections::BTreeMap;

pub(super) struct Device {
    pub(super) name: String,
    pub(super) memory: Bytes,
    pub(super) streams_weights: bool,
    pub(super) batch_sizes: Vec<i64>,
}

/// A device is known by its position.
pub(super) struct Machine {
    pub(super) devices: Vec<Device>,
    /// Where the model's inputs are and its outputs go.
    pub(super) host: usize,
    pub(super) contention: Contention,
    /// True if parameters are in the host's memory when an input comes.
    pub(super) is_cold: bool,
    links: BTreeMap<(usize, usize), Link>,
}

struct Link {
    bytes_per_second: f64,
    seconds: f64,
    bus: Option<String>,
}

/// What transfers on one bus do to each other.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Contention {
    Off,
    /// One has the bus at a time.
    Exclusive,
    /// They share it.
    Shared,
}

impl Machine {
    /// `None` where there is no device at all.
    pub(super) fn of(module: Operation<'_>, findings: &mut Findings) -> Option<Self> {
        let all = module.children();
        let of_kind = |name: &'static str| all.iter().copied().filter(move |operation| operation.name() == name);
        let declared: Vec<_> = of_kind(op::DEVICE).collect();
        let devices: Vec<_> = declared.iter().map(|&operation| device(operation)).collect();
        if devices.is_empty() {
            findings
                .add(module, "has no divi.device, so that no plan can hold: start from the module that was planned");
            return None;
        }
        let kinds = declared.iter().map(|device| device.get(attr::KIND).unwrap_or_default());
        let host = divi_cost::device::host(kinds);
        let contention = match module.get(attr::CONTENTION) {
            Some("exclusive") => Contention::Exclusive,
            Some("shared") => Contention::Shared,
            _ => Contention::Off,
        };
        let is_cold = module.has(attr::COLD);
        let mut machine = Self { devices, host, contention, is_cold, links: BTreeMap::new() };
        for link in of_kind(op::LINK) {
            let end = |key| machine.find(link.get(key)?);
            let number = |name| link.attribute(name).and_then(attr::as_float);
            match (end(attr::FROM), end(attr::TO), number("bandwidth"), number("latency")) {
                (Some(from), Some(to), Some(bytes_per_second), Some(seconds)) => {
                    let bus = link.attribute("bus").and_then(attr::as_string).map(str::to_owned);
                    machine.links.insert((from, to), Link { bytes_per_second, seconds, bus });
                }
                _ => findings.add(link, &format!("{} does not say from where, to where and how fast", describe(link))),
            }
        }
        Some(machine)
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.devices.iter().position(|device| device.name == name)
    }

    /// What messages call a device.
    pub(super) fn label(&self, device: usize) -> String {
        format!("@{}", self.devices[device].name)
    }

    /// How long bytes take from device to device; `None` without a link.
    pub(super) fn transfer(&self, from: usize, to: usize, bytes: Bytes) -> Option<Micros> {
        if from == to {
            return Some(0.0);
        }
        let link = self.links.get(&(from, to))?;
        Some(bytes / (link.bytes_per_second / 1e6) + link.seconds * 1e6)
    }

    /// The bus between two devices, where others may be in the way.
    pub(super) fn bus(&self, from: usize, to: usize) -> Option<&str> {
        let link = self.links.get(&(from, to)).filter(|_| self.contention != Contention::Off)?;
        link.bus.as_deref()
    }
}

fn device(operation: Operation<'_>) -> Device {
    let sizes = operation.attribute("batch_sizes").and_then(attr::as_array).unwrap_or_default();
    let mut batch_sizes: Vec<i64> = sizes.into_iter().filter_map(attr::as_integer).collect();
    batch_sizes.sort_unstable();
    if batch_sizes.is_empty() {
        batch_sizes.push(1);
    }
    let memory = operation.attribute("memory").and_then(attr::as_integer).unwrap_or(0);
    let name = operation.symbol_name().unwrap_or_default();
    let streams_weights = operation.attribute("weights").and_then(attr::as_string) == Some("streamed");
    Device { name: name.to_owned(), memory: memory as f64, streams_weights, batch_sizes }
}
