//! The devices and links of a module.

use super::Findings;
use crate::ir::{
    array_attribute, attribute, blocks, describe, float_attribute, integer_attribute, operation_name, operations,
    string_attribute, symbol_attribute,
};
use divi_planner::units::{Bytes, Micros};
use mlir_sys::*;
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
    /// Whether parameters are in the host's memory when an input comes.
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
    pub(super) fn of(module: MlirOperation, findings: &mut Findings) -> Option<Self> {
        let all: Vec<_> = blocks(module).into_iter().flat_map(operations).collect();
        let of_kind = |name: &'static str| all.iter().copied().filter(move |&op| operation_name(op) == name);
        let declared: Vec<_> = of_kind("divi.device").collect();
        let devices: Vec<_> = declared.iter().map(|&operation| device(operation)).collect();
        if devices.is_empty() {
            findings
                .add(module, "has no divi.device, so that no plan can hold: start from the module that was planned");
            return None;
        }
        let kind = |&device: &MlirOperation| attribute(device, "kind").and_then(string_attribute).unwrap_or_default();
        let host = divi_cost::device::host(declared.iter().map(kind));
        let contention = match attribute(module, "divi.contention").and_then(string_attribute) {
            Some("exclusive") => Contention::Exclusive,
            Some("shared") => Contention::Shared,
            _ => Contention::Off,
        };
        let is_cold = attribute(module, "divi.cold").is_some();
        let mut machine = Self { devices, host, contention, is_cold, links: BTreeMap::new() };
        for link in of_kind("divi.link") {
            let end = |name| machine.find(attribute(link, name).and_then(symbol_attribute)?);
            let number = |name| attribute(link, name).and_then(float_attribute);
            match (end("from"), end("to"), number("bandwidth"), number("latency")) {
                (Some(from), Some(to), Some(bytes_per_second), Some(seconds)) => {
                    let bus = attribute(link, "bus").and_then(string_attribute).map(str::to_owned);
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

fn device(operation: MlirOperation) -> Device {
    let sizes = attribute(operation, "batch_sizes").and_then(array_attribute).unwrap_or_default();
    let mut batch_sizes: Vec<i64> = sizes.into_iter().filter_map(integer_attribute).collect();
    batch_sizes.sort_unstable();
    if batch_sizes.is_empty() {
        batch_sizes.push(1);
    }
    let memory = attribute(operation, "memory").and_then(integer_attribute).unwrap_or(0);
    let name = attribute(operation, "sym_name").and_then(string_attribute).unwrap_or_default();
    let streams_weights = attribute(operation, "weights").and_then(string_attribute) == Some("streamed");
    Device { name: name.to_owned(), memory: memory as f64, streams_weights, batch_sizes }
}
