//! Nodes of devices: several machines alike, described once.
//!
//! `[[node]]` has an `id`, a `count`, `[[node.device]]` as devices are anywhere, and a `link` that joins every two of its
//! devices; `[network]` joins every two nodes. A device becomes `n0_gpu1`: its node's id and its own, each with a number
//! where there is a `count`. A `[[link]]` that is there already is left as it is.

use super::{
    Device, Link, Owner, Problem,
    fields::{Faults, Fields},
    read::{DEVICE_KEYS, MAX_DEVICES, Seen, Wire, device_fields, list, wire},
};
use std::collections::{BTreeMap, HashSet};
use toml::de::DeTable;

const NODE_KEYS: &[&str] = &["id", "count", "device", "link"];

/// The devices of one node, by their places among all, and what joins them.
pub(super) struct Node {
    devices: Vec<usize>,
    inside: Option<Wire>,
}

/// What has been read of nodes and devices.
pub(super) struct Cluster<'s, 't> {
    pub(super) file: &'s str,
    pub(super) seen: &'s mut Seen<'t, String>,
    pub(super) devices: Vec<(Option<String>, Option<Device>)>,
    pub(super) nodes: Vec<Node>,
}

impl Cluster<'_, '_> {
    /// Adds the nodes of one table. None where there is too much of something.
    pub(super) fn add(&mut self, index: usize, (at, table): &(usize, &DeTable<'_>), faults: &mut Faults) -> Option<()> {
        let mut fields = Fields::new(Owner::NamelessNode(index + 1), table, *at, faults);
        let id = fields.identifier("id");
        let id = fields.require("id", id).map(str::to_owned);
        if let Some(id) = &id {
            fields.owner = Owner::Node(id.clone());
        }
        fields.check_keys(NODE_KEYS);
        let count = fields.count("count", MAX_DEVICES as u32);
        let inside = fields.table("link").map(|table| {
            let owner = Owner::Inside(id.clone().unwrap_or_default());
            wire(&mut Fields::new(owner, table.1, table.0, fields.faults), true)
        });
        let inside = inside.flatten();
        let device_tables = list(&mut fields, "device")?;
        if device_tables.is_empty() {
            let owner = fields.owner.clone();
            fields.fault(fields.at, Problem::NoDeviceOf { owner });
        }
        let Some(id) = id else { return Some(()) };
        let kinds: Vec<Kind> = device_tables
            .iter()
            .enumerate()
            .filter_map(|(index, table)| kind(self.file, index, table, faults))
            .collect();
        let all =
            kinds.iter().map(|kind| kind.count.unwrap_or(1) as usize).sum::<usize>() * count.unwrap_or(1) as usize;
        if self.devices.len() + all > MAX_DEVICES {
            faults.push((*at, Problem::TooMany { what: "devices", limit: MAX_DEVICES }));
            return None;
        }
        for number in 0..count.unwrap_or(1) {
            let name = if count.is_some() { format!("{id}{number}") } else { id.clone() };
            let first = self.devices.len();
            self.expand(&name, &kinds, *at, faults);
            self.nodes.push(Node { devices: (first..self.devices.len()).collect(), inside: inside.clone() });
        }
        Some(())
    }

    fn expand(&mut self, node: &str, kinds: &[Kind], at: usize, faults: &mut Faults) {
        // Devices of one name are counted together, whatever they are.
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for kind in kinds {
            for _ in 0..kind.count.unwrap_or(1) {
                let number = numbers.entry(&kind.id).or_default();
                let id = match kind.count {
                    Some(_) => format!("{node}_{}{number}", kind.id),
                    None => format!("{node}_{}", kind.id),
                };
                *number += 1;
                if let Some(line) = self.seen.before(id.clone(), at) {
                    faults.push((at, Problem::DuplicateDevice { id: id.clone(), line }));
                }
                let named = |device: &Device| Device { id: id.clone(), node: Some(node.to_owned()), ..device.clone() };
                self.devices.push((Some(id.clone()), kind.device.as_ref().map(named)));
            }
        }
    }
}

/// Some devices of a node that are alike.
struct Kind {
    id: String,
    count: Option<u32>,
    device: Option<Device>,
}

fn kind(file: &str, index: usize, (at, table): &(usize, &DeTable<'_>), faults: &mut Faults) -> Option<Kind> {
    let mut fields = Fields::new(Owner::NamelessDevice(index + 1), table, *at, faults);
    let id = fields.identifier("id");
    let id = fields.require("id", id).map(str::to_owned)?;
    fields.owner = Owner::Device(id.clone());
    let count = fields.count("count", MAX_DEVICES as u32);
    let device = device_fields(file, Some(id.clone()), &mut fields, OF_NODES);
    Some(Kind { id, count, device })
}

/// The keys of a node's devices: a number instead of the node, which is known.
const OF_NODES: &[&str] = &{
    let mut keys = [""; DEVICE_KEYS.len()];
    let mut index = 0;
    while index + 1 < keys.len() {
        keys[index] = DEVICE_KEYS[index];
        index += 1;
    }
    keys[index] = "count";
    keys
};

/// The links within nodes and between them, but for those that are there.
pub(super) fn joined(nodes: &[Node], network: Option<&Wire>, links: &[Link]) -> Vec<Link> {
    let there: HashSet<(usize, usize)> = links.iter().map(|link| (link.from, link.to)).collect();
    let mut joined = Vec::new();
    let mut join = |from: &[usize], to: &[usize], wire: &Wire, number: String| {
        for (&from, &to) in from.iter().flat_map(|from| to.iter().map(move |to| (from, to))) {
            let bus = |name: &Option<String>| name.as_ref().map(|name| numbered(name, &number));
            for link in wire.links(from, to, bus) {
                if link.from != link.to && !there.contains(&(link.from, link.to)) {
                    joined.push(link);
                }
            }
        }
    };
    for (index, node) in nodes.iter().enumerate() {
        let Some(inside) = &node.inside else { continue };
        for (place, &from) in node.devices.iter().enumerate() {
            join(&[from], &node.devices[place + 1..], inside, index.to_string());
        }
    }
    // Ten nodes and more need something between their numbers.
    let between = if nodes.len() > 10 { "_" } else { "" };
    for (index, node) in nodes.iter().enumerate() {
        for (other, far) in nodes.iter().enumerate().skip(index + 1) {
            if let Some(network) = network {
                join(&node.devices, &far.devices, network, format!("{index}{between}{other}"));
            }
        }
    }
    joined
}

/// A bus of each node, or of each pair of nodes; the other direction's suffix stays at the end.
fn numbered(name: &str, number: &str) -> String {
    match name.split_once('.') {
        Some((bus, rest)) => format!("{bus}{number}.{rest}"),
        None => format!("{name}{number}"),
    }
}

/// `[network]`.
pub(super) fn network(fields: &mut Fields<'_, '_, '_>, has_nodes: bool) -> Option<Wire> {
    let (at, table) = fields.table("network")?;
    if !has_nodes {
        fields.fault(at, Problem::NothingToJoin);
    }
    wire(&mut Fields::new(Owner::Network, table, at, fields.faults), true)
}

/// Too many links would take their time to refuse.
pub(super) fn most_links(nodes: &[Node]) -> usize {
    let devices: usize = nodes.iter().map(|node| node.devices.len()).sum();
    devices.saturating_mul(devices.saturating_sub(1))
}

#[cfg(test)]
mod tests;
