//! Nodes (hosts): groups of devices, of which several equal ones can be described once.
//!
//! `[[node]]` has an `id`, a `count`, devices `[[node.device]]`, and a `link` that connects every pair of its devices;
//! `[network]` connects every pair of nodes. The id of a device is `n0_gpu1`: its node's id and its own, each with a number if
//! there is a `count`. An explicit `[[link]]` has priority. The `scope` of the network's `bus` is a pair of nodes by default.

use super::{
    DescriptionError, Device, Link, Owner,
    fields::{Diagnostics, Fields},
    read::{
        DEVICE_KEYS, FirstOccurrences, LINK_PROPERTY_KEYS, LinkProperties, MAX_DEVICES, REVERSE, device_fields,
        link_properties, list,
    },
};
use std::collections::{BTreeMap, HashSet};
use toml::de::DeTable;

const NODE_KEYS: &[&str] = &["id", "count", "device", "link"];

/// Keys of the network: those of a link without ends, and `scope`.
const NETWORK_KEYS: &[&str] = &{
    let mut keys = ["scope"; LINK_PROPERTY_KEYS.len() + 1];
    let mut index = 0;
    while index < LINK_PROPERTY_KEYS.len() {
        keys[index] = LINK_PROPERTY_KEYS[index];
        index += 1;
    }
    keys
};

/// Links that share the bus of the network.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scope {
    /// Links of a pair of nodes.
    Pair,
    /// Links from one node to all others.
    Node,
    /// All links.
    Network,
}

/// Links between nodes.
pub(super) struct Network {
    link: LinkProperties,
    scope: Scope,
}

impl Scope {
    /// Returns the bus of a link between two nodes, given its name in the description. The separator is between the numbers
    /// of a pair of nodes.
    fn bus(self, name: &str, (from, to): (usize, usize), separator: &str) -> String {
        match (self, name.strip_suffix(REVERSE)) {
            (Self::Pair, _) => numbered(name, &format!("{from}{separator}{to}")),
            // The reverse direction is sent by the other node.
            (Self::Node, Some(name)) => numbered(name, &to.to_string()),
            (Self::Node, None) => numbered(name, &from.to_string()),
            (Self::Network, _) => name.to_owned(),
        }
    }
}

/// Devices of one node, by their indices, and the link between them.
pub(super) struct Node {
    devices: Vec<usize>,
    inside: Option<LinkProperties>,
}

/// Nodes and devices that have been read.
pub(super) struct NodeReader<'s, 't> {
    pub(super) file: &'s str,
    pub(super) seen: &'s mut FirstOccurrences<'t, String>,
    pub(super) devices: Vec<(Option<String>, Option<Device>)>,
    pub(super) nodes: Vec<Node>,
}

impl NodeReader<'_, '_> {
    /// Adds the nodes of one table. Returns `None` if there are too many devices.
    pub(super) fn add(
        &mut self,
        index: usize,
        (at, table): &(usize, &DeTable<'_>),
        diagnostics: &mut Diagnostics,
    ) -> Option<()> {
        let mut fields = Fields::new(Owner::UnnamedNode(index + 1), table, *at, diagnostics);
        let id = fields.identifier("id");
        let id = fields.require("id", id).map(str::to_owned);
        if let Some(id) = &id {
            fields.owner = Owner::Node(id.clone());
        }
        fields.check_keys(NODE_KEYS);
        let count = fields.count("count", MAX_DEVICES as u32);
        let inside = fields.table("link").map(|table| {
            let owner = Owner::NodeLink(id.clone().unwrap_or_default());
            let mut fields = Fields::new(owner, table.1, table.0, fields.diagnostics);
            fields.check_keys(LINK_PROPERTY_KEYS);
            link_properties(&mut fields, true)
        });
        let inside = inside.flatten();
        let device_tables = list(&mut fields, "device")?;
        if device_tables.is_empty() {
            let owner = fields.owner.clone();
            fields.report(fields.at, DescriptionError::NoDeviceOf { owner });
        }
        let Some(id) = id else { return Some(()) };
        let groups: Vec<DeviceGroup> = device_tables
            .iter()
            .enumerate()
            .filter_map(|(index, table)| device_group(self.file, index, table, diagnostics))
            .collect();
        let all =
            groups.iter().map(|group| group.count.unwrap_or(1) as usize).sum::<usize>() * count.unwrap_or(1) as usize;
        if self.devices.len() + all > MAX_DEVICES {
            diagnostics.push((*at, DescriptionError::TooMany { what: "devices", limit: MAX_DEVICES }));
            return None;
        }
        for number in 0..count.unwrap_or(1) {
            let name = if count.is_some() { format!("{id}{number}") } else { id.clone() };
            let first = self.devices.len();
            self.expand(&name, &groups, *at, diagnostics);
            self.nodes.push(Node { devices: (first..self.devices.len()).collect(), inside: inside.clone() });
        }
        Some(())
    }

    fn expand(&mut self, node: &str, groups: &[DeviceGroup], at: usize, diagnostics: &mut Diagnostics) {
        // Devices with the same id are numbered consecutively.
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for group in groups {
            for _ in 0..group.count.unwrap_or(1) {
                let number = numbers.entry(&group.id).or_default();
                let id = match group.count {
                    Some(_) => format!("{node}_{}{number}", group.id),
                    None => format!("{node}_{}", group.id),
                };
                *number += 1;
                if let Some(line) = self.seen.before(id.clone(), at) {
                    diagnostics.push((at, DescriptionError::DuplicateDevice { id: id.clone(), line }));
                }
                let named = |device: &Device| Device { id: id.clone(), node: Some(node.to_owned()), ..device.clone() };
                self.devices.push((Some(id.clone()), group.device.as_ref().map(named)));
            }
        }
    }
}

/// Equal devices of a node.
struct DeviceGroup {
    id: String,
    count: Option<u32>,
    device: Option<Device>,
}

fn device_group(
    file: &str,
    index: usize,
    (at, table): &(usize, &DeTable<'_>),
    diagnostics: &mut Diagnostics,
) -> Option<DeviceGroup> {
    let mut fields = Fields::new(Owner::UnnamedDevice(index + 1), table, *at, diagnostics);
    let id = fields.identifier("id");
    let id = fields.require("id", id).map(str::to_owned)?;
    fields.owner = Owner::Device(id.clone());
    let count = fields.count("count", MAX_DEVICES as u32);
    let device = device_fields(file, Some(id.clone()), &mut fields, OF_NODES);
    Some(DeviceGroup { id, count, device })
}

/// Keys of a node's devices: `count` instead of `node`, the last of [`DEVICE_KEYS`].
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

/// Returns the links within nodes and between them, except for pairs that `links` contains.
pub(super) fn node_links(nodes: &[Node], network: Option<&Network>, links: &[Link]) -> Vec<Link> {
    let explicit: HashSet<(usize, usize)> = links.iter().map(|link| (link.from, link.to)).collect();
    let mut generated = Vec::new();
    let mut join = |from: &[usize], to: &[usize], properties: &LinkProperties, bus: &dyn Fn(&str) -> String| {
        for (&from, &to) in from.iter().flat_map(|from| to.iter().map(move |to| (from, to))) {
            for link in properties.links(from, to, |name| name.as_deref().map(bus)) {
                if link.from != link.to && !explicit.contains(&(link.from, link.to)) {
                    generated.push(link);
                }
            }
        }
    };
    for (index, node) in nodes.iter().enumerate() {
        let Some(inside) = &node.inside else { continue };
        for (place, &from) in node.devices.iter().enumerate() {
            join(&[from], &node.devices[place + 1..], inside, &|bus| numbered(bus, &index.to_string()));
        }
    }
    // Numbers of several digits need a separator.
    let separator = if nodes.len() > 10 { "_" } else { "" };
    for (index, node) in nodes.iter().enumerate() {
        for (other, far) in nodes.iter().enumerate().skip(index + 1) {
            if let Some(Network { link, scope }) = network {
                join(&node.devices, &far.devices, link, &|bus| scope.bus(bus, (index, other), separator));
            }
        }
    }
    generated
}

/// Returns the name of a bus of a node, or of a pair of nodes. The suffix of the reverse direction stays at the end.
fn numbered(name: &str, number: &str) -> String {
    match name.split_once('.') {
        Some((bus, rest)) => format!("{bus}{number}.{rest}"),
        None => format!("{name}{number}"),
    }
}

/// Reads `[network]`.
pub(super) fn network(fields: &mut Fields<'_, '_, '_>, has_nodes: bool) -> Option<Network> {
    let (at, table) = fields.table("network")?;
    if !has_nodes {
        fields.report(at, DescriptionError::NetworkWithoutNodes);
    }
    let mut fields = Fields::new(Owner::Network, table, at, fields.diagnostics);
    fields.check_keys(NETWORK_KEYS);
    let link = link_properties(&mut fields, true);
    let words = [("pair", Scope::Pair), ("node", Scope::Node), ("network", Scope::Network)];
    let scope = fields.word("scope", &words).unwrap_or(Scope::Pair);
    if scope != Scope::Pair && fields.get("bus").is_none() {
        fields.report(fields.at("scope"), DescriptionError::ScopeWithoutBus);
    }
    let link = link?;
    if scope == Scope::Node && !link.is_full_duplex() {
        fields.report(fields.at("scope"), DescriptionError::HalfDuplexOfNodes);
    }
    Some(Network { link, scope })
}

/// Returns an upper bound on the number of links, which is checked before they are created.
pub(super) fn most_links(nodes: &[Node], network: Option<&Network>) -> usize {
    let count = |node: &Node| node.devices.len();
    let linked = nodes.iter().filter(|node| node.inside.is_some());
    let within: usize = linked.map(|node| count(node) * count(node).saturating_sub(1)).sum();
    let devices: usize = nodes.iter().map(count).sum();
    let between: usize = nodes.iter().map(|node| count(node) * (devices - count(node))).sum();
    within + if network.is_some() { between } else { 0 }
}

#[cfg(test)]
mod tests;
