//! Interleaved rounds of transfers: between each pair of ranks alone, then several at once.
//!
//! Other processes only ever slow transfers down, and temporarily. Therefore the time of a size is the minimum over all rounds
//! of the median in a round. The slowdown of transfers at once is relative to the same round.

use super::{
    exchange::gather,
    flow::{self, Burst, Flow, Points},
    host::Host,
};
use crate::measure::progress::Progress;
use divi_cost::{
    device::MemorySpace,
    system::{Device, System},
};
use divi_runtime::{Error, SPIN_TIMEOUT, communicator::Communicator};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Sizes of messages: from 1 B to 64 MiB, in steps of four.
const SIZES: [u64; 14] = [
    1,
    1 << 2,
    1 << 4,
    1 << 6,
    1 << 8,
    1 << 10,
    1 << 12,
    1 << 14,
    1 << 16,
    1 << 18,
    1 << 20,
    1 << 22,
    1 << 24,
    1 << 26,
];

/// Time for each size of a transfer alone.
const WINDOW: Duration = Duration::from_millis(3);

/// Time for transfers at once: long compared with the delay between their starts.
const WINDOW_AT_ONCE: Duration = Duration::from_millis(60);

/// Longest round trip in seconds of a message of transfers at once, and the smallest size.
const LONGEST_AT_ONCE: f64 = 0.02;
const LEAST_AT_ONCE: u64 = 1 << 16;

/// Number of rounds: at least, and at most.
const ROUNDS: std::ops::RangeInclusive<usize> = 3..=50;

/// Minima that later rounds lower by less than this are stable.
const CHANGE: f64 = 0.02;

/// Maximum number of measurements of each way to share the network.
const MOST_SAMPLES: usize = 8;

/// Transfers that may share something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sharing {
    /// Both directions between two hosts.
    Directions,
    /// Transfers from one host to two others.
    Sender,
    /// Transfers between two pairs of hosts.
    Pairs,
}

/// Results of all rounds.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) rounds: usize,
    /// Minimum round trip in seconds by transfer and size.
    pub(super) round_trips: BTreeMap<Flow, BTreeMap<u64, f64>>,
    /// Slowdowns by two transfers at once: 1 if they are independent, 2 if they share the bandwidth.
    pub(super) slowdowns: BTreeMap<Sharing, Vec<f64>>,
}

/// Rounds of measurements on all ranks.
pub(super) struct Rounds<'c> {
    communicator: &'c dyn Communicator,
    spin_timeout: Duration,
    time_limit: Duration,
}

impl<'c> Rounds<'c> {
    pub(super) fn new(
        communicator: &'c dyn Communicator,
        hosts: &[Host],
        systems: &[System],
        time_limit: Duration,
    ) -> Self {
        let has_free_core = has_free_core(hosts, systems, communicator.rank());
        let spin_timeout = if has_free_core { SPIN_TIMEOUT } else { Duration::ZERO };
        Self { communicator, spin_timeout, time_limit }
    }

    /// Measures until the minima are stable or the time limit is reached.
    pub(super) fn run(&self, progress: &Progress) -> Result<Measured, Error> {
        let start = Instant::now();
        let mut measured = Measured::default();
        loop {
            let is_stable = self.round(&mut measured, progress)?;
            measured.rounds += 1;
            let rounds = measured.rounds;
            let is_over = start.elapsed() >= self.time_limit || is_stable || rounds >= *ROUNDS.end();
            // Rank 0 decides.
            let ends = self.communicator.all_gather(&[u8::from(is_over && rounds >= *ROUNDS.start())])?;
            if ends[0] == [1] {
                return Ok(measured);
            }
        }
    }

    /// Runs a round. Returns true if it has hardly changed the minima.
    fn round(&self, measured: &mut Measured, progress: &Progress) -> Result<bool, Error> {
        let size = self.communicator.size();
        let flows: Vec<Flow> = (0..size)
            .flat_map(|from| (0..size).map(move |to| Flow { from, to }))
            .filter(|flow| flow.from != flow.to)
            .collect();
        let alone = Burst { sizes: SIZES.to_vec(), window: WINDOW };
        let mut own = vec![];
        for (index, flow) in flows.iter().enumerate() {
            let text = format!("round {}: rank {} to rank {}", measured.rounds + 1, flow.from, flow.to);
            progress.show(index as f64 / flows.len() as f64, &text);
            own.push(self.at_once(&[*flow], &alone)?);
        }
        let times = merge(gather(self.communicator, &own)?);
        let bytes = size_at_once(&times);
        let burst = Burst { sizes: vec![bytes], window: WINDOW_AT_ONCE };
        let experiments = experiments(size);
        let own: Vec<_> =
            experiments.iter().map(|(_, flows)| self.at_once(flows, &burst)).collect::<Result<_, Error>>()?;
        let all = gather(self.communicator, &own)?;
        for (index, (sharing, _)) in experiments.iter().enumerate() {
            let rates = all.iter().flat_map(|of_rank| &of_rank[index]).filter_map(|(flow, points)| {
                let (_, together) = points.iter().find(|(size, _)| *size == bytes)?;
                Some(times.get(flow)?.get(&bytes)? / together)
            });
            let rates: Vec<f64> = rates.collect();
            let slowdown = rates.len() as f64 / rates.iter().sum::<f64>();
            if slowdown.is_finite() {
                measured.slowdowns.entry(*sharing).or_default().push(slowdown);
            }
        }
        Ok(lower(&mut measured.round_trips, times))
    }

    /// Runs transfers at the same time; ranks without any wait.
    fn at_once(&self, flows: &[Flow], burst: &Burst) -> Result<Vec<(Flow, Points)>, Error> {
        // A barrier: no rank has the bytes of all others before all have arrived.
        self.communicator.all_gather(&[0])?;
        flow::run(self.communicator, flows, burst, self.spin_timeout)
    }
}

/// Returns true if the runtime's polling thread has a core when all devices of the host compute.
fn has_free_core(hosts: &[Host], systems: &[System], rank: usize) -> bool {
    let threads = |device: &Device| match device.kind.memory() {
        MemorySpace::Host => device.threads.unwrap_or(1) as usize,
        MemorySpace::Device => 1,
    };
    let busy: usize = systems[rank].devices.iter().map(threads).sum();
    let sharing = hosts.iter().filter(|other| other.shares_cores(&hosts[rank])).count().max(1);
    busy + 1 < hosts[rank].cores.len() / sharing
}

/// Returns the times of all ranks.
fn merge(all: Vec<Vec<Vec<(Flow, Points)>>>) -> BTreeMap<Flow, BTreeMap<u64, f64>> {
    all.into_iter().flatten().flatten().map(|(flow, points)| (flow, points.into_iter().collect())).collect()
}

/// Takes over times that are lower. Returns true if none is much lower.
fn lower(minima: &mut BTreeMap<Flow, BTreeMap<u64, f64>>, times: BTreeMap<Flow, BTreeMap<u64, f64>>) -> bool {
    let mut is_stable = true;
    for (flow, points) in times {
        let of_flow = minima.entry(flow).or_default();
        for (bytes, time) in points {
            let minimum = of_flow.entry(bytes).or_insert(f64::INFINITY);
            is_stable &= time > *minimum * (1.0 - CHANGE);
            *minimum = minimum.min(time);
        }
    }
    is_stable
}

/// Returns the largest size whose messages take a short time between all ranks.
fn size_at_once(times: &BTreeMap<Flow, BTreeMap<u64, f64>>) -> u64 {
    let is_short =
        |size: &&u64| times.values().all(|points| points.get(size).is_some_and(|time| *time <= LONGEST_AT_ONCE));
    SIZES.iter().rev().find(is_short).copied().unwrap_or(0).max(LEAST_AT_ONCE)
}

/// Returns the transfers that are measured at once. Pairs are both neighbors and far apart, because hosts with successive numbers
/// are often on the same switch.
fn experiments(size: usize) -> Vec<(Sharing, Vec<Flow>)> {
    let flow = |from: usize, to: usize| Flow { from: from % size, to: to % size };
    let samples = size.min(MOST_SAMPLES);
    // First ranks, evenly spaced.
    let first = |sample: usize| sample * size / samples;
    let far = size / 2;
    let mut all = vec![];
    let directions = if size == 2 { 1 } else { samples };
    for from in (0..directions).map(first) {
        all.push((Sharing::Directions, vec![flow(from, from + 1), flow(from + 1, from)]));
    }
    if size >= 3 {
        for from in (0..samples).map(first) {
            all.push((Sharing::Sender, vec![flow(from, from + 1), flow(from, from + 2)]));
        }
    }
    if size >= 4 {
        for from in (0..samples).map(first) {
            all.push((Sharing::Pairs, vec![flow(from, from + 1), flow(from + 2, from + 3)]));
            all.push((Sharing::Pairs, vec![flow(from, from + far), flow(from + 1, from + 1 + far)]));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_use_distinct_links() {
        assert_eq!(experiments(2).len(), 1);
        assert!(experiments(3).iter().all(|(sharing, _)| *sharing != Sharing::Pairs));
        for size in [2, 3, 4, 5, 7, 8, 32, 1000] {
            let all = experiments(size);
            assert!(all.len() <= 4 * MOST_SAMPLES);
            for (sharing, flows) in all {
                let [a, b] = flows[..] else { panic!("two transfers") };
                assert!(flows.iter().all(|flow| flow.from != flow.to && flow.from.max(flow.to) < size));
                match sharing {
                    Sharing::Directions => assert_eq!((a.from, a.to), (b.to, b.from)),
                    Sharing::Sender => assert!(a.from == b.from && a.to != b.to),
                    Sharing::Pairs => {
                        let ranks = std::collections::BTreeSet::from([a.from, a.to, b.from, b.to]);
                        assert_eq!(ranks.len(), 4, "{a:?} {b:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn minima_become_stable() {
        let times = |time: f64| BTreeMap::from([(Flow { from: 0, to: 1 }, BTreeMap::from([(1, time)]))]);
        let mut minima = BTreeMap::new();
        assert!(!lower(&mut minima, times(2.0)));
        assert!(!lower(&mut minima, times(1.0)));
        assert!(lower(&mut minima, times(1.5)) && lower(&mut minima, times(0.99)));
        assert_eq!(minima, times(0.99));
    }

    #[test]
    fn sizes_at_once_are_those_of_the_slowest_link() {
        let points = |of: &dyn Fn(u64) -> f64| SIZES.iter().map(|&size| (size, of(size))).collect::<BTreeMap<_, _>>();
        let link = |to: usize, rate: f64| (Flow { from: 0, to }, points(&|size| 1e-5 + size as f64 / rate));
        assert_eq!(size_at_once(&BTreeMap::from([link(1, 1e10)])), 1 << 26);
        assert_eq!(size_at_once(&BTreeMap::from([link(1, 1e10), link(2, 1e8)])), 1 << 20);
        assert_eq!(size_at_once(&BTreeMap::from([link(1, 1e4)])), LEAST_AT_ONCE);
    }
}
