//! Transfers of a pipeline of batches: the load of each device, link and bus for one input.

use std::collections::{BTreeMap, BTreeSet};

use super::Blocks;
use crate::model::error::Finding;
use crate::model::problem::{Contention, Problem};
use crate::model::units::{Bytes, BytesPerMicro, Micros};
use crate::verify::Judged;
use crate::verify::tensors::Values;
use crate::verify::turns::{Rotation, gcd, shares};

/// Shares of the inputs by the positions of two devices.
type Shares = BTreeMap<(usize, usize), f64>;

/// Time of the transfers of one input.
#[derive(Default)]
pub(super) struct Loads<'a> {
    pub(super) devices: BTreeMap<usize, Micros>,
    pub(super) links: BTreeMap<(usize, usize), Micros>,
    pub(super) buses: BTreeMap<&'a str, Micros>,
}

/// Devices that read a tensor, and their batch size. If there is one device, all its blocks read the same transfer, so
/// their sizes do not distinguish them.
type Destination<'a> = (&'a [usize], Option<u32>);

/// Returns the loads. An incoming tensor counts for the device that reads it, an outgoing one once for the device that
/// sends it, with its longest transfers to one list of devices.
pub(super) fn loads<'a>(
    problem: &'a Problem,
    judged: &Judged,
    blocks: &Blocks<'_>,
    values: &Values,
    findings: &mut Vec<Finding>,
) -> Loads<'a> {
    let names = problem.bus.as_ref().filter(|_| judged.contention != Contention::Off);
    let mut loads = Loads::default();
    let mut patterns: BTreeMap<(Rotation, Rotation), Option<Shares>> = BTreeMap::new();
    for (from, bytes, readers) in values {
        let (home, size) = (blocks.devices_of(*from), blocks.batch_of(*from));
        let mut destinations: BTreeMap<Destination<'_>, BTreeSet<u32>> = BTreeMap::new();
        for &reader in readers {
            let (devices, batch) = (blocks.devices_of(reader), blocks.batch_of(reader));
            let alone = devices.len() == 1;
            destinations.entry((devices, (!alone).then_some(batch))).or_default().insert(batch);
        }
        let mut leaving: BTreeMap<usize, Micros> = BTreeMap::new();
        for ((devices, batch), sizes) in destinations {
            let rotation = |size: u32, devices: &[usize]| Rotation { size: size.into(), devices: devices.len() as u64 };
            let pair = (rotation(size, home), rotation(batch.unwrap_or(1), devices));
            let pattern = patterns.entry(pair).or_insert_with(|| shares(pair.0, pair.1));
            let Some(pattern) = pattern else {
                let message = "the rotation of two blocks repeats only after millions of launches: not verified";
                findings.push(Finding::new("batch", message));
                return loads;
            };
            let together = sizes.iter().fold(u64::from(size), |most, size| gcd(most, (*size).into()));
            let mut sent: BTreeMap<usize, Micros> = BTreeMap::new();
            for (&(one, other), share) in pattern.iter() {
                let (on, to) = (home[one], devices[other]);
                if on == to {
                    continue;
                }
                let Some(time) = time(problem, *bytes, (on, to), together) else {
                    let (there, here) = (problem.device_label(to), problem.device_label(on));
                    let message = format!("its value is read on {there}, but no link leads there from {here}");
                    findings.push(Finding::new(problem.node_label(*from), message));
                    continue;
                };
                let takes = time * *share;
                *sent.entry(on).or_default() += takes;
                *loads.devices.entry(to).or_default() += takes;
                *loads.links.entry((on, to)).or_default() += takes;
                if let Some(name) = names.and_then(|names| names[on][to].as_deref()) {
                    *loads.buses.entry(name).or_default() += takes;
                }
            }
            for (on, takes) in sent {
                let longest = leaving.entry(on).or_default();
                *longest = longest.max(takes);
            }
        }
        leaving.into_iter().for_each(|(on, longest)| *loads.devices.entry(on).or_default() += longest);
    }
    loads
}

/// Returns the time for one input of transfers of several at a time; `None` without a link.
fn time(problem: &Problem, bytes: Bytes, (from, to): (usize, usize), together: u64) -> Option<Micros> {
    let bandwidth = problem.bandwidth[from][to];
    if bandwidth == Some(BytesPerMicro::ZERO) {
        return None;
    }
    let latency = problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default();
    Some(bandwidth.map_or(Micros::ZERO, |bandwidth| bytes / bandwidth) + latency / together as f64)
}
