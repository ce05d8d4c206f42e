//! Devices and links of a module.

use super::Findings;
use crate::ir::describe;
use divi_dialect::{Operation, attr, op};
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use std::collections::BTreeMap;

/// Device that a module declares.
pub(super) struct Device {
    pub(super) name: String,
    pub(super) memory: Bytes,
    pub(super) streams_weights: bool,
    pub(super) batch_sizes: Vec<i64>,
}

/// Devices and links. A device is identified by its position.
pub(super) struct Machine {
    pub(super) devices: Vec<Device>,
    /// Device of the model's inputs and outputs.
    pub(super) host: usize,
    pub(super) contention: Contention,
    /// True if parameters are in the host's memory when an input arrives.
    pub(super) is_cold: bool,
    links: BTreeMap<(usize, usize), Link>,
}

struct Link {
    bandwidth: BytesPerMicro,
    latency: Micros,
    bus: Option<String>,
}

/// Contention between transfers on one bus.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Contention {
    Off,
    /// One transfer at a time has the bus.
    Exclusive,
    /// Transfers share its bandwidth.
    Shared,
}

impl Machine {
    /// Reads the devices and links of a module; `None` if there is no device.
    pub(super) fn of(module: Operation<'_>, findings: &mut Findings) -> Option<Self> {
        let all = module.children();
        let of_kind = |name: &'static str| all.iter().copied().filter(move |operation| operation.name() == name);
        let declared: Vec<_> = of_kind(op::DEVICE).collect();
        let devices: Vec<_> = declared.iter().map(|&operation| device(operation)).collect();
        if devices.is_empty() {
            findings.add(module, "has no divi.device, so no plan can be valid: start from the module that was planned");
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
                    let (bandwidth, latency) = (BytesPerMicro(bytes_per_second / 1e6), Micros(seconds * 1e6));
                    let bus = link.attribute("bus").and_then(attr::as_string).map(str::to_owned);
                    machine.links.insert((from, to), Link { bandwidth, latency, bus });
                }
                _ => findings.add(
                    link,
                    &format!(
                        "{} lacks 'from', 'to', 'bandwidth' or 'latency', or names an unknown device",
                        describe(link)
                    ),
                ),
            }
        }
        Some(machine)
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.devices.iter().position(|device| device.name == name)
    }

    /// Returns the name of a device in messages.
    pub(super) fn label(&self, device: usize) -> String {
        format!("@{}", self.devices[device].name)
    }

    /// Returns the time of a transfer of `bytes` between devices; `None` without a link.
    pub(super) fn transfer(&self, from: usize, to: usize, bytes: Bytes) -> Option<Micros> {
        if from == to {
            return Some(Micros::ZERO);
        }
        let link = self.links.get(&(from, to))?;
        Some(bytes / link.bandwidth + link.latency)
    }

    /// Returns the difference between two devices that should be equal, with links to `others`.
    pub(super) fn difference(&self, a: usize, b: usize, others: &[usize]) -> Option<&'static str> {
        let (one, other) = (&self.devices[a], &self.devices[b]);
        let link = |from: usize, to: usize| self.links.get(&(from, to)).map(|link| (link.bandwidth, link.latency));
        if one.memory != other.memory || one.streams_weights != other.streams_weights {
            return Some("memory");
        }
        if one.batch_sizes != other.batch_sizes {
            return Some("batch sizes");
        }
        let is_same = |&third: &usize| link(a, third) == link(b, third) && link(third, a) == link(third, b);
        (!others.iter().all(is_same)).then_some("links to other devices of the pipeline")
    }

    /// Returns the bus between two devices, if there is contention.
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
    Device { name: name.to_owned(), memory: Bytes(memory as f64), streams_weights, batch_sizes }
}
