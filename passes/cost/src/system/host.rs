//! `host`: the devices of this machine.
//!
//! Detection is deterministic, because nothing is measured: rates are derived from the properties of the processor, and links
//! from the generation of PCI Express. Measured profiles are more accurate.

use super::{Contention, Device, Execution, Link, System, presets};
use crate::device::{self, Detected, DetectedLink, Kind, MemorySpace};

/// Describes this machine: the devices that all registered kinds detect, those with host memory first.
pub fn detect() -> System {
    let (hosts, accelerators): (Vec<Kind>, Vec<Kind>) =
        device::all().into_iter().partition(|kind| kind.memory() == MemorySpace::Host);
    let accelerators: Vec<_> = accelerators.into_iter().map(|kind| (kind, kind.detect(false))).collect();
    let has_accelerators = accelerators.iter().any(|(_, detected)| !detected.devices.is_empty());
    let hosts = hosts.into_iter().map(|kind| (kind, kind.detect(has_accelerators)));
    describe(hosts.chain(accelerators).collect())
}

/// Returns the description of a machine with these devices.
fn describe(kinds: Vec<(Kind, Detected)>) -> System {
    let mut system = System {
        name: presets::HOST.to_owned(),
        devices: Vec::new(),
        links: Vec::new(),
        contention: Contention::Off,
        warnings: Vec::new(),
    };
    let link = |from: usize, to: usize, DetectedLink { bandwidth, latency, bus }: DetectedLink| Link {
        from,
        to,
        bandwidth,
        latency,
        bus,
    };
    for (kind, detected) in kinds {
        let (host, first) = (0, system.devices.len());
        let mut peers = Vec::new();
        for (index, found) in detected.devices.into_iter().enumerate() {
            let index = first + index;
            if let Some([forward, reverse]) = found.host {
                system.links.extend([link(host, index, forward), link(index, host, reverse)]);
            }
            peers.extend(found.peers.into_iter().map(|(peer, path)| link(index, first + peer, path)));
            system.devices.push(Device {
                id: found.id,
                kind,
                memory: found.memory,
                batch_sizes: found.batch_sizes,
                arch: found.arch,
                threads: found.threads,
                rates: found.rates,
                launch: None,
                execution: Execution::Eager,
                profile: None,
                cost_model: found.cost_model,
                streams_weights: false,
                node: None,
            });
        }
        system.links.extend(peers);
        system.warnings.extend(detected.warnings);
    }
    system
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        device::{CPU, CUDA, DetectedDevice, Rates, TypeRatios},
        system::units::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds},
    };

    #[test]
    fn detection_is_deterministic() {
        let system = detect();
        assert_eq!(system, detect());
        let cpu = &system.devices[system.host()];
        assert_eq!((cpu.id.as_str(), cpu.kind), ("cpu0", CPU));
        assert!(cpu.threads.is_some_and(|threads| threads > 0));
        assert!(cpu.memory > Bytes(1 << 20));
        assert!(cpu.rates.f32 > FlopsPerSecond(1e9) && cpu.rates.bandwidth > BytesPerSecond(1e9));
    }

    #[test]
    fn links_refer_to_device_indices() {
        let path = |bandwidth| DetectedLink { bandwidth: BytesPerSecond(bandwidth), latency: Seconds(0.0), bus: None };
        let device = |id: &str, host, peers| DetectedDevice {
            id: id.to_owned(),
            memory: Bytes(1),
            batch_sizes: vec![1],
            arch: None,
            threads: None,
            rates: Rates::with_type_ratios(FlopsPerSecond(1.0), BytesPerSecond(1.0), TypeRatios::UNKNOWN),
            host,
            peers,
            cost_model: None,
        };
        let cpus = vec![device("cpu0", None, vec![])];
        let gpus = vec![
            device("gpu0", Some([path(1.0), path(2.0)]), vec![(1, path(3.0))]),
            device("gpu1", Some([path(4.0), path(5.0)]), vec![(0, path(6.0))]),
        ];
        let detected = |devices, warning: &str| Detected { devices, warnings: vec![warning.to_owned()] };
        let system = describe(vec![(CPU, detected(cpus, "a")), (CUDA, detected(gpus, "b"))]);
        let links: Vec<_> = system.links.iter().map(|link| (link.from, link.to, link.bandwidth.0)).collect();
        assert_eq!(links, [(0, 1, 1.0), (1, 0, 2.0), (0, 2, 4.0), (2, 0, 5.0), (1, 2, 3.0), (2, 1, 6.0)]);
        assert_eq!(system.warnings, ["a", "b"]);
    }
}
