//! Model of the links between hosts: latency and bandwidth, and the transfers that share the bandwidth.

use super::{
    flow::Flow,
    rounds::{Measured, Sharing},
};
use crate::measure::link::Line;
use divi_runtime::median;
use std::collections::BTreeMap;

/// Slowdown by two transfers at once that is closer to sharing the bandwidth (2) than to independence (1).
const SHARED: f64 = 1.5;

/// Ratio of times by which a link differs from the network, so that it is described by itself.
const DIFFERENT: f64 = 1.3;
/// Sizes of the messages whose times are compared.
const COMPARED: [f64; 2] = [1024.0, (1 << 24) as f64];

/// Links that share a bus, as in [system descriptions](divi_cost::system).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scope {
    Pair,
    Node,
    Network,
}

/// Links between hosts.
#[derive(Debug)]
pub(super) struct Network {
    /// Median link.
    pub(super) line: Line,
    pub(super) is_full_duplex: bool,
    pub(super) scope: Scope,
    /// Links that differ from the median.
    pub(super) different: BTreeMap<Flow, Line>,
    /// Median slowdown by two transfers at once.
    pub(super) slowdowns: BTreeMap<Sharing, f64>,
}

impl Network {
    /// Fits the measured times of `size` ranks.
    pub(super) fn of(measured: &Measured, size: usize) -> Result<Self, String> {
        let mut lines = BTreeMap::new();
        for &flow in measured.round_trips.keys() {
            let points: Vec<(f64, f64)> =
                one_way(measured, flow).into_iter().map(|(bytes, time)| (bytes as f64, time)).collect();
            let problem = || {
                format!("rank {} to rank {}: larger messages did not take longer; measure again", flow.from, flow.to)
            };
            lines.insert(flow, Line::of(&points).ok_or_else(problem)?);
        }
        let median_of = |value: fn(&Line) -> f64| median(&lines.values().map(value).collect::<Vec<f64>>());
        let farthest =
            lines.values().map(|line| line.farthest).max_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()));
        let farthest = farthest.ok_or_else(|| format!("{size} ranks: no link was measured"))?;
        let line = Line::new(median_of(|line| line.latency.0), median_of(|line| line.bandwidth.0), farthest);
        let is_different = |other: &Line| {
            let ratio = |bytes: &f64| (other.seconds(*bytes) / line.seconds(*bytes)).ln().abs();
            COMPARED.iter().any(|bytes| ratio(bytes) > DIFFERENT.ln())
        };
        let slowdowns: BTreeMap<Sharing, f64> =
            measured.slowdowns.iter().map(|(sharing, samples)| (*sharing, median(samples))).collect();
        let are_shared = |sharing| slowdowns.get(&sharing).is_some_and(|slowdown| *slowdown > SHARED);
        let is_full_duplex = !are_shared(Sharing::Directions);
        let scope = match (are_shared(Sharing::Pairs), are_shared(Sharing::Sender)) {
            (true, _) => Scope::Network,
            // One bus for both directions of a link is not that of one sender: all links on it are closer to the measurements.
            (false, true) if is_full_duplex => Scope::Node,
            (false, true) => Scope::Network,
            (false, false) => Scope::Pair,
        };
        let different = lines.into_iter().filter(|(_, line)| is_different(line)).collect();
        Ok(Self { line, is_full_duplex, scope, different, slowdowns })
    }

    /// Returns true if transfers between hosts affect each other.
    pub(super) fn has_contention(&self) -> bool {
        !self.is_full_duplex || self.scope != Scope::Pair
    }
}

/// Returns the times of messages in one direction: half of a round trip of the smallest messages is the way back. The clocks of
/// two hosts are not compared.
pub(super) fn one_way(measured: &Measured, flow: Flow) -> Vec<(u64, f64)> {
    let Some(times) = measured.round_trips.get(&flow) else { return vec![] };
    let back = times.values().next().map_or(0.0, |time| time / 2.0);
    times.iter().map(|(&bytes, time)| (bytes, time - back)).filter(|(_, time)| *time > 0.0).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the round trips between ranks with links of 1 GB/s after 10 µs, except for one of another rate.
    pub(in crate::cluster) fn measured(
        size: usize,
        slow: Option<(Flow, f64)>,
        slowdowns: &[(Sharing, f64)],
    ) -> Measured {
        let mut measured = Measured { rounds: 3, ..Measured::default() };
        for flow in
            (0..size).flat_map(|from| (0..size).map(move |to| Flow { from, to })).filter(|flow| flow.from != flow.to)
        {
            let rate = slow.filter(|(other, _)| *other == flow).map_or(1e9, |(_, rate)| rate);
            let times = [1_u64, 1 << 10, 1 << 20, 1 << 24].map(|bytes| (bytes, 20e-6 + bytes as f64 / rate));
            measured.round_trips.insert(flow, times.into_iter().collect());
        }
        measured.slowdowns = slowdowns.iter().map(|(sharing, slowdown)| (*sharing, vec![*slowdown])).collect();
        measured
    }

    fn scope(slowdowns: &[(Sharing, f64)]) -> (bool, Scope) {
        let network = Network::of(&measured(4, None, slowdowns), 4).unwrap();
        (network.is_full_duplex, network.scope)
    }

    #[test]
    fn round_trips_are_split() {
        let network = Network::of(&measured(2, None, &[]), 2).unwrap();
        assert!(
            (network.line.latency.micros() - 10.0).abs() < 0.01 && (network.line.bandwidth.0 / 1e9 - 1.0).abs() < 1e-3
        );
        assert!(network.different.is_empty() && !network.has_contention());
    }

    #[test]
    fn links_that_differ_are_separate() {
        let slow = Flow { from: 1, to: 0 };
        let network = Network::of(&measured(3, Some((slow, 1e8)), &[]), 3).unwrap();
        assert!((network.line.bandwidth.0 / 1e9 - 1.0).abs() < 1e-3);
        let [(flow, line)] = network.different.iter().collect::<Vec<_>>()[..] else { panic!("one link") };
        assert!(*flow == slow && (line.bandwidth.0 / 1e8 - 1.0).abs() < 1e-2, "{line:?}");
        let flat = BTreeMap::from([(slow, BTreeMap::from([(1, 1e-5), (1 << 20, 1e-5)]))]);
        let error = Network::of(&Measured { round_trips: flat, ..Measured::default() }, 2).unwrap_err();
        assert_eq!(error, "rank 1 to rank 0: larger messages did not take longer; measure again");
    }

    #[test]
    fn slowdowns_show_what_is_shared() {
        use Sharing::*;
        assert_eq!(scope(&[(Directions, 1.1), (Sender, 1.2), (Pairs, 1.0)]), (true, Scope::Pair));
        assert_eq!(scope(&[(Directions, 1.9), (Sender, 1.2), (Pairs, 1.0)]), (false, Scope::Pair));
        assert_eq!(scope(&[(Directions, 1.1), (Sender, 1.9), (Pairs, 1.0)]), (true, Scope::Node));
        assert_eq!(scope(&[(Directions, 1.1), (Sender, 1.9), (Pairs, 2.1)]), (true, Scope::Network));
        assert_eq!(scope(&[(Directions, 2.0), (Sender, 1.9), (Pairs, 1.0)]), (false, Scope::Network));
    }
}
