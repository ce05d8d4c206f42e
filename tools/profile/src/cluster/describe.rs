//! Description of hosts and their network (TOML). Rank i is the i-th node.

use super::{
    flow::Flow,
    host::{self, Host},
    network::{Network, Scope},
};
use crate::measure::{
    describe::{device_fields, quantity, quoted, table},
    link::Line,
};
use divi_cost::system::System;
use std::path::Path;

/// Name of the bus of the network.
const BUS: &str = "net";

/// Equal hosts with successive ranks.
struct Group {
    name: String,
    first: usize,
    count: usize,
    system: System,
}

/// Returns the description of the hosts of all ranks, and notes; paths are relative to the folder of `file`.
pub(super) fn toml(hosts: &[Host], systems: Vec<System>, network: &Network, file: &str) -> (String, Vec<String>) {
    let (groups, notes) = groups(hosts, systems);
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let mut text = "# Written by divi-profile measure.\n".to_owned();
    if network.has_contention() {
        text += &format!("contention = {}\n", quoted("shared"));
    }
    for group in &groups {
        text += &table("[[node]]", &[("id", Some(quoted(&group.name))), ("count", Some(group.count.to_string()))]);
        for device in &group.system.devices {
            text += &table("[[node.device]]", &device_fields(device, folder));
        }
    }
    let names: Vec<String> =
        groups.iter().flat_map(|group| (0..group.count).map(|number| format!("{}{number}", group.name))).collect();
    text += &network_table(network);
    for (Flow { from, to }, line) in &network.different {
        let bus = bus(network, (*from, *to), names.len());
        text += &link(&format!("{}_*", names[*from]), &format!("{}_*", names[*to]), line, Some(&bus));
    }
    for group in &groups {
        names[group.first..group.first + group.count].iter().for_each(|node| text += &inside(node, &group.system));
    }
    (text, notes)
}

/// Groups equal hosts with successive ranks. Fitted cost models are those of rank 0's host, where the description is written.
fn groups(hosts: &[Host], systems: Vec<System>) -> (Vec<Group>, Vec<String>) {
    let mut groups: Vec<Group> = vec![];
    let mut notes = vec![];
    for (rank, mut system) in systems.into_iter().enumerate() {
        if hosts[rank].id != hosts[0].id {
            system.devices.iter_mut().for_each(|device| device.cost_model = None);
        }
        match groups.last_mut().filter(|group| host::are_equal(&group.system, &system)) {
            Some(group) => {
                group.count += 1;
                for (device, other) in group.system.devices.iter_mut().zip(&system.devices) {
                    device.memory = device.memory.min(other.memory);
                }
            }
            None => groups.push(Group { name: String::new(), first: rank, count: 1, system }),
        }
        let sharing = hosts[..rank].iter().any(|host| host.id == hosts[rank].id);
        let has_others = groups.last().is_some_and(|group| group.system.devices.len() > 1);
        if sharing && has_others {
            notes.push(format!(
                "note: rank {rank} shares host '{}' and may describe the same accelerators as another rank: start one rank per \
                 host, or give each its own",
                hosts[rank].name
            ));
        }
    }
    let is_only = groups.len() == 1;
    for (index, group) in groups.iter_mut().enumerate() {
        group.name = if is_only { "n".to_owned() } else { letters(index) };
    }
    (groups, notes)
}

/// Returns the name of a group: a, b, …, z, aa, ab, ….
fn letters(index: usize) -> String {
    let last = char::from(b'a' + (index % 26) as u8);
    let before = if index >= 26 { letters(index / 26 - 1) } else { String::new() };
    format!("{before}{last}")
}

fn network_table(network: &Network) -> String {
    let scope = match network.scope {
        Scope::Pair => None,
        Scope::Node => Some(quoted("node")),
        Scope::Network => Some(quoted("network")),
    };
    let duplex = if network.is_full_duplex { "full" } else { "half" };
    let mut fields = line_fields(&network.line);
    fields.extend([("bus", Some(quoted(BUS))), ("duplex", Some(quoted(duplex))), ("scope", scope)]);
    table("[network]", &fields)
}

/// Returns the bus that the network gives to a link, which keeps it if it is described by itself.
fn bus(network: &Network, (from, to): (usize, usize), nodes: usize) -> String {
    let reverse = if network.is_full_duplex && from > to { ".reverse" } else { "" };
    match network.scope {
        Scope::Pair => {
            let separator = if nodes > 10 { "_" } else { "" };
            format!("{BUS}{}{separator}{}{reverse}", from.min(to), from.max(to))
        }
        Scope::Node => format!("{BUS}{from}"),
        Scope::Network => format!("{BUS}{reverse}"),
    }
}

/// Returns the links within a node.
fn inside(node: &str, system: &System) -> String {
    let name = |device: usize| format!("{node}_{}", system.devices[device].id);
    let of = |it: &divi_cost::system::Link| {
        let bus = it.bus.as_ref().map(|bus| format!("{node}_{bus}"));
        link(&name(it.from), &name(it.to), &Line::new(it.latency.0, it.bandwidth.0, (1.0, 1.0)), bus.as_deref())
    };
    system.links.iter().map(of).collect()
}

fn link(from: &str, to: &str, line: &Line, bus: Option<&str>) -> String {
    let mut fields = vec![("from", Some(quoted(from))), ("to", Some(quoted(to)))];
    fields.extend(line_fields(line));
    fields.push(("bus", bus.map(quoted)));
    table("[[link]]", &fields)
}

fn line_fields(line: &Line) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("bandwidth", Some(quantity(line.bandwidth.0 / 1e9, "GB/s"))),
        ("latency", Some(quantity(line.latency.micros(), "us"))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{host::tests::host, network::tests::measured, rounds::Sharing};

    fn described(hosts: &[Host], slow: Option<(Flow, f64)>, slowdowns: &[(Sharing, f64)]) -> (String, System) {
        let network = Network::of(&measured(hosts.len(), slow, slowdowns), hosts.len()).unwrap();
        let (text, notes) = toml(hosts, host::systems(hosts).unwrap(), &network, "cluster.toml");
        assert!(notes.is_empty(), "{notes:?}");
        let system = System::parse("cluster.toml", &text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        (text, system)
    }

    fn hosts(threads: &[u32]) -> Vec<Host> {
        let host = |(rank, threads): (usize, &u32)| host(&rank.to_string(), &[rank], *threads, 1 << 30);
        threads.iter().enumerate().map(host).collect()
    }

    #[test]
    fn equal_hosts_are_one_node() {
        let (text, system) = described(&hosts(&[4, 4]), None, &[]);
        let [head, rest] = text.split_once("\n[network]\n").map(<[&str; 2]>::from).unwrap();
        assert!(
            head.starts_with(
                "# Written by divi-profile measure.\n\n[[node]]\nid = \"n\"\ncount = 2\n\n[[node.device]]\n"
            )
        );
        assert_eq!(rest, "bandwidth = \"1 GB/s\"\nlatency = \"9.9995 us\"\nbus = \"net\"\nduplex = \"full\"\n");
        let names: Vec<_> = system.devices.iter().map(|device| (&device.id[..], device.node.as_deref())).collect();
        assert_eq!(names, [("n0_cpu0", Some("n0")), ("n1_cpu0", Some("n1"))]);
        assert_eq!(text, described(&hosts(&[4, 4]), None, &[]).0);
    }

    /// Tests that the order of the ranks is kept, since rank i runs the i-th node.
    #[test]
    fn nodes_are_in_the_order_of_ranks() {
        let (_, system) = described(&hosts(&[4, 4, 8, 4]), None, &[]);
        let devices: Vec<_> = system.devices.iter().map(|device| (&device.id[..], device.threads.unwrap())).collect();
        assert_eq!(devices, [("a0_cpu0", 4), ("a1_cpu0", 4), ("b0_cpu0", 8), ("c0_cpu0", 4)]);
        assert_eq!(["a", "z", "aa", "az", "ba"].map(str::to_owned), [0, 25, 26, 51, 52].map(letters));
    }

    /// Tests that a link that is described by itself has the bus that the network gives it.
    #[test]
    fn separate_links_keep_their_bus() {
        for (is_shared, sharing) in
            [(false, Sharing::Directions), (true, Sharing::Directions), (true, Sharing::Sender), (true, Sharing::Pairs)]
        {
            let slowdowns = if is_shared { vec![(sharing, 2.0)] } else { vec![] };
            for size in [4, 11] {
                let flow = Flow { from: 2, to: 1 };
                let (_, plain) = described(&hosts(&vec![2; size]), None, &slowdowns);
                let (_, slow) = described(&hosts(&vec![2; size]), Some((flow, 1e8)), &slowdowns);
                let (plain, slow) = (plain.link(2, 1).unwrap(), slow.link(2, 1).unwrap());
                assert_eq!(plain.bus, slow.bus);
                assert!((slow.bandwidth.0 / 1e8 - 1.0).abs() < 0.01 && plain.bandwidth.0 > 9e8, "{slow:?}");
            }
        }
    }

    #[test]
    fn contention_is_that_of_the_network() {
        let (text, system) = described(&hosts(&[2, 2, 2, 2]), None, &[(Sharing::Pairs, 1.9)]);
        assert!(text.contains("\ncontention = \"shared\"\n") && text.contains("\nscope = \"network\"\n"), "{text}");
        assert_eq!(
            (&system.link(0, 1).unwrap().bus, &system.link(2, 3).unwrap().bus),
            (&Some("net".into()), &Some("net".into()))
        );
        let (_, half) = described(&hosts(&[2, 2]), None, &[(Sharing::Directions, 2.0)]);
        assert_eq!(half.link(0, 1).unwrap().bus, half.link(1, 0).unwrap().bus);
    }
}
