//! `host`: what this machine has.
//!
//! Nothing is timed, so the same machine is described the same way each time: rates follow from what the processor says
//! about itself, and links from the generation of PCI Express. Measured profiles are better; these are first guesses.

pub mod cpu;
pub mod cuda;
mod driver;
mod memory;

use super::{
    Contention, Device, DeviceKind, Execution, Link, Rates, System, presets,
    units::{Bytes, BytesPerSecond, Seconds},
};
use cuda::{Attributes, Gpu, Peer};
use std::path::Path;

/// Batch sizes that are tried where nobody says which ones are wanted.
const CPU_BATCH_SIZES: [u32; 5] = [1, 2, 4, 8, 16];
const CUDA_BATCH_SIZES: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// What a small copy to or from a GPU takes, its start and the wait for its end included: about what was measured on an
/// H200 (test/profiles/h200_transfers.json) and little else on other cards, because it is the driver's time.
const COPY_LATENCY: Seconds = Seconds(20e-6);

/// Describes this machine: its CPU, and the GPUs that a CUDA driver shows. Without a driver there are none; a driver that
/// fails or does not answer leaves a warning.
pub fn detect() -> System {
    let mut warnings = Vec::new();
    let cpu = cpu::Cpu::of_this_machine();
    let memory = memory::of_this_machine().unwrap_or_else(|| {
        warnings.push(format!("how much memory this machine has is not known; {ASSUMED_MEMORY} are assumed"));
        ASSUMED_MEMORY
    });
    let gpus = driver::gpus().unwrap_or_else(|error| {
        warnings.push(format!("GPUs are left out: {error}"));
        Vec::new()
    });
    describe(&cpu, memory, &gpus, warnings)
}

/// Newest version of CUDA that this machine's driver supports, as "12.9"; `None` without a driver. The error says why a driver
/// that is there cannot be asked.
pub fn cuda_version() -> Result<Option<String>, String> {
    driver::version().map_err(|error| error.to_string())
}

const ASSUMED_MEMORY: Bytes = Bytes(4 << 30);

/// The description of a machine with these parts.
fn describe(cpu: &cpu::Cpu, memory: Bytes, gpus: &[Gpu], warnings: Vec<String>) -> System {
    // Others tell GPUs what to do, copy, and ask for something to be computed: threads that compute together wait for each
    // other where they take turns with those.
    let threads = if gpus.is_empty() { cpu.threads } else { cpu.threads.div_ceil(2) };
    let mut devices = vec![Device {
        id: "cpu0".to_owned(),
        kind: DeviceKind::Cpu,
        memory,
        batch_sizes: CPU_BATCH_SIZES.to_vec(),
        arch: Some(cpu.arch().to_owned()),
        threads: Some(threads),
        rates: cpu.rates(threads),
        launch: None,
        execution: Execution::Eager,
        profile: None,
        streams_weights: false,
        node: None,
    }];
    let mut links = Vec::new();
    for (index, gpu) in gpus.iter().enumerate() {
        devices.push(gpu_device(index, &gpu.attributes));
        let bandwidth = gpu.attributes.host_bandwidth();
        let bus = |suffix| Some(format!("pcie{index}{suffix}"));
        let (cpu, gpu) = (0, index + 1);
        links.push(Link { from: cpu, to: gpu, bandwidth, latency: COPY_LATENCY, bus: bus("") });
        links.push(Link { from: gpu, to: cpu, bandwidth, latency: COPY_LATENCY, bus: bus(".reverse") });
    }
    for (from, gpu) in gpus.iter().enumerate() {
        for (to, other) in gpus.iter().enumerate().filter(|(to, _)| *to != from) {
            let peer = gpu.peers.get(to).copied().unwrap_or(Peer::None);
            links.push(peer_link(from, &gpu.attributes, to, &other.attributes, peer));
        }
    }
    System { name: presets::HOST.to_owned(), devices, links, contention: Contention::Off, warnings }
}

fn gpu_device(index: usize, attributes: &Attributes) -> Device {
    Device {
        id: format!("gpu{index}"),
        kind: DeviceKind::Cuda,
        memory: attributes.memory,
        batch_sizes: CUDA_BATCH_SIZES.to_vec(),
        arch: Some(format!("sm_{}", attributes.capability)),
        threads: None,
        rates: attributes.rates(),
        launch: None,
        execution: Execution::Eager,
        profile: None,
        streams_weights: false,
        node: None,
    }
}

/// From one GPU to another: directly where that is possible, else through the host's memory, which takes two copies.
fn peer_link(from: usize, sender: &Attributes, to: usize, receiver: &Attributes, peer: Peer) -> Link {
    let slower = |a: BytesPerSecond, b: BytesPerSecond| BytesPerSecond(a.0.min(b.0));
    let pcie = slower(sender.host_bandwidth(), receiver.host_bandwidth());
    let (bandwidth, latency, bus) = match peer {
        Peer::NvLink => {
            (slower(sender.nvlink_bandwidth(), receiver.nvlink_bandwidth()), COPY_LATENCY, format!("nvlink{from}_{to}"))
        }
        Peer::Pcie => (pcie, COPY_LATENCY, format!("pcie{to}")),
        Peer::None => (BytesPerSecond(pcie.0 / 2.0), Seconds(COPY_LATENCY.0 * 2.0), format!("pcie{to}")),
    };
    Link { from: from + 1, to: to + 1, bandwidth, latency, bus: Some(bus) }
}

/// The text of a small file, such as those the kernel shows.
fn text(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests;
