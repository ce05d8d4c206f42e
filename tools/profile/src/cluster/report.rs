//! Text output: the ranks, the times of messages by size, and the transfers that affect each other.

use super::{
    host::Host,
    network::{Network, Scope, one_way},
    rounds::{Measured, Sharing},
};
use divi_runtime::median;
use std::collections::{BTreeMap, BTreeSet};

/// Returns a line about the ranks.
pub(super) fn ranks(hosts: &[Host], library: &str) -> String {
    let count = hosts.iter().map(|host| &host.id).collect::<BTreeSet<_>>().len();
    let plural = if count == 1 { "" } else { "s" };
    let shared = if count < hosts.len() {
        "; ranks on one host divide its cores and memory, and its links are not those of a network"
    } else {
        ""
    };
    format!("{} ranks on {count} host{plural}, {library}{shared}", hosts.len())
}

/// Returns lines about the measurements.
pub(super) fn lines(measured: &Measured, network: &Network) -> Vec<String> {
    let mut lines = vec![format!(
        "{:>9} {:>12} {:>12} {:>12} {:>12}",
        "bytes", "fastest µs", "median µs", "slowest µs", "fitted µs"
    )];
    let mut by_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for &flow in measured.round_trips.keys() {
        one_way(measured, flow)
            .into_iter()
            .for_each(|(bytes, time)| by_size.entry(bytes).or_default().push(time * 1e6));
    }
    for (bytes, times) in by_size {
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        let slowest = times.iter().copied().fold(0.0, f64::max);
        let fitted = network.line.seconds(bytes as f64) * 1e6;
        lines.push(format!("{bytes:>9} {fastest:>12.1} {:>12.1} {slowest:>12.1} {fitted:>12.1}", median(&times)));
    }
    let (bandwidth, latency) = (network.line.bandwidth.0 / 1e9, network.line.latency.micros());
    let (bytes, times) = network.line.farthest;
    lines.push(format!(
        "network: {bandwidth:.2} GB/s after {latency:.1} µs, in {} rounds; largest deviation: messages of {bytes:.0} B take \
         {times:.2} times the fitted time",
        measured.rounds
    ));
    if !network.different.is_empty() {
        let (count, all) = (network.different.len(), measured.round_trips.len());
        lines.push(format!("{count} of {all} links differ from the median and are described by themselves"));
    }
    for (sharing, slowdown) in &network.slowdowns {
        let (what, conclusion) = match (sharing, network.is_full_duplex, network.scope) {
            (Sharing::Directions, true, _) => ("both directions", "full duplex"),
            (Sharing::Directions, false, _) => ("both directions", "half duplex"),
            (Sharing::Sender, _, Scope::Pair) => ("transfers from one node to two", "independent"),
            (Sharing::Sender, _, Scope::Node) => ("transfers from one node to two", "they share what the node sends"),
            (Sharing::Sender, _, Scope::Network) => ("transfers from one node to two", "they share the network"),
            (Sharing::Pairs, _, Scope::Network) => ("transfers between two pairs of nodes", "they share the network"),
            (Sharing::Pairs, _, _) => ("transfers between two pairs of nodes", "independent"),
        };
        lines.push(format!("{what} at once take {slowdown:.2} times as long: {conclusion}"));
    }
    lines
}
