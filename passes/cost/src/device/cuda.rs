//! `cuda`: NVIDIA's GPUs.

mod architecture;
mod attributes;
mod driver;

use super::{
    DefaultRates, Detected, DetectedDevice, DetectedLink, DeviceField, DeviceKind, Kind, MemorySpace, ModelForm,
    Reference, TypeRatios,
};
use crate::{
    Class, Model,
    model::{self, Machine, Term::*},
    system::units::{BytesPerSecond, Seconds},
};
use architecture::{Architecture, capability};
use attributes::{Attributes, Gpu, Peer};
use std::sync::LazyLock;

/// Device kind `cuda`.
pub const CUDA: Kind = Kind(&Cuda);

struct Cuda;

/// Model that ships with divi, fitted to an H200.
static MODEL: LazyLock<Model> = LazyLock::new(|| Model::shipped(include_str!("../../models/cuda.json")));

/// Batch sizes of a detected device.
const BATCH_SIZES: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Time of a small copy to or from a GPU, including launch and synchronization. Close to the time measured on an H200
/// (test/profiles/h200_transfers.json) and similar on other cards, because the driver dominates.
const COPY_LATENCY: Seconds = Seconds(20e-6);

/// Returns the newest version of CUDA that this machine's driver supports, as "12.9"; `None` without a driver. An error means
/// that the driver exists but cannot be queried.
pub fn driver_version() -> Result<Option<String>, String> {
    driver::version().map_err(|error| error.to_string())
}

impl DeviceKind for Cuda {
    fn name(&self) -> &str {
        "cuda"
    }

    fn memory(&self) -> MemorySpace {
        MemorySpace::Device
    }

    fn check_arch(&self, arch: &str) -> Result<(), String> {
        let expected = || "must be a compute capability, as in \"sm_90\"".to_owned();
        capability(arch).map(|_| ()).ok_or_else(expected)
    }

    /// Ignores the suffix of `arch`: `sm_90a` is `sm_90` with architecture-specific instructions.
    fn runs_on(&self, arch: &str, device: &str) -> bool {
        arch.trim_end_matches(|letter: char| letter.is_ascii_lowercase()) == device
    }

    fn default_rates(&self, arch: Option<&str>, _: Option<u32>) -> DefaultRates {
        let capability = arch.and_then(capability);
        let exact = capability.and_then(Architecture::exact);
        DefaultRates {
            f32: exact.map(Architecture::flops),
            bandwidth: exact.map(Architecture::bandwidth),
            type_ratios: capability
                .map_or(TypeRatios::UNKNOWN, |capability| Architecture::nearest(capability).type_ratios()),
            remedy: match arch {
                None => "give 'arch', or 'flops' and 'bandwidth'",
                Some(_) => "its 'arch' is not in the table, so give 'flops' and 'bandwidth'",
            },
        }
    }

    fn model_form(&self, class: Class) -> ModelForm {
        match class {
            Class::Conv => ModelForm {
                has_bias_launch: true,
                ..ModelForm::new(&[
                    (FlopsPointwise, 2.0),
                    (WavesPointwise, 0.5),
                    (Flops3x3, 2.0),
                    (Waves3x3, 0.5),
                    (FlopsOther, 2.0),
                    (WavesOther, 0.5),
                    (DepthPointwise, 0.5),
                    (DepthOther, 0.5),
                    (BiasPass, 2.0),
                    (OddRows, 0.5),
                    (Read, 1.5),
                    (Written, 1.5),
                    (Weights, 1.5),
                ])
            },
            Class::DepthwiseConv => ModelForm::new(&[(KernelRows, 4.0)]),
            Class::MatMul => {
                ModelForm::new(&[(Flops, 2.0), (Waves, 0.5), (Depth, 0.5), (Read, 1.5), (Written, 1.5), (Weights, 1.5)])
            }
            _ => ModelForm::roofline(class),
        }
    }

    /// Returns NVIDIA's H200: 132 multiprocessors, 66.9 TFLOP/s and 4.81 TB/s. Caches are not modeled.
    fn reference(&self) -> Reference {
        Reference {
            rates: model::Rates { flops_per_s: 66.9e12, bytes_per_s: 4.81e12, launch: None, threads: 1 },
            machine: Machine { units: 132.0, rows: 64.0, cache: 0.0, fork: 0.0, scaling: 1.0 },
        }
    }

    fn model(&self) -> &'static Model {
        &MODEL
    }

    /// Detects GPUs. Without a driver there are none; a driver that fails or does not respond causes a warning.
    fn detect(&self, _: bool) -> Detected {
        match driver::gpus() {
            Ok(gpus) => Detected { devices: describe(&gpus), warnings: Vec::new() },
            Err(error) => Detected { devices: Vec::new(), warnings: vec![format!("ignoring GPUs: {error}")] },
        }
    }

    fn visibility_variable(&self) -> Option<&str> {
        Some("CUDA_VISIBLE_DEVICES")
    }

    fn device_field(&self) -> DeviceField<'_> {
        DeviceField::Product("gpu")
    }
}

fn describe(gpus: &[Gpu]) -> Vec<DetectedDevice> {
    let device = |(index, gpu): (usize, &Gpu)| {
        let attributes = &gpu.attributes;
        let bandwidth = attributes.host_bandwidth();
        let bus = |suffix| Some(format!("pcie{index}{suffix}"));
        let link = |suffix| DetectedLink { bandwidth, latency: COPY_LATENCY, bus: bus(suffix) };
        let others = gpus.iter().enumerate().filter(|(other, _)| *other != index);
        let peers = others.map(|(other, receiver)| {
            let peer = gpu.peers.get(other).copied().unwrap_or(Peer::None);
            (other, peer_link(index, attributes, other, &receiver.attributes, peer))
        });
        DetectedDevice {
            id: format!("gpu{index}"),
            memory: attributes.memory,
            batch_sizes: BATCH_SIZES.to_vec(),
            arch: Some(format!("sm_{}", attributes.capability)),
            threads: None,
            rates: attributes.rates(),
            host: Some([link(""), link(".reverse")]),
            peers: peers.collect(),
            cost_model: None,
        }
    };
    gpus.iter().enumerate().map(device).collect()
}

/// Returns the link from one GPU to another: direct if possible, otherwise two copies through host memory.
fn peer_link(from: usize, sender: &Attributes, to: usize, receiver: &Attributes, peer: Peer) -> DetectedLink {
    let slower = |a: BytesPerSecond, b: BytesPerSecond| BytesPerSecond(a.0.min(b.0));
    let pcie = slower(sender.host_bandwidth(), receiver.host_bandwidth());
    let (bandwidth, latency, bus) = match peer {
        Peer::NvLink => {
            (slower(sender.nvlink_bandwidth(), receiver.nvlink_bandwidth()), COPY_LATENCY, format!("nvlink{from}_{to}"))
        }
        Peer::Pcie => (pcie, COPY_LATENCY, format!("pcie{to}")),
        Peer::None => (BytesPerSecond(pcie.0 / 2.0), Seconds(COPY_LATENCY.0 * 2.0), format!("pcie{to}")),
    };
    DetectedLink { bandwidth, latency, bus: Some(bus) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::units::Bytes;

    fn gpu(peers: &[Peer]) -> Gpu {
        let attributes = Attributes {
            name: "NVIDIA A100".to_owned(),
            memory: Bytes(40 << 30),
            capability: 80,
            multiprocessors: 108,
            clock_khz: 1_410_000,
            memory_clock_khz: 1_215_000,
            memory_bus_bits: 5120,
            f64_ratio: 2,
            pcie: None,
        };
        Gpu { attributes, peers: peers.to_vec() }
    }

    #[test]
    fn gpus_have_links_to_host_and_peers() {
        let gpus = describe(&[
            gpu(&[Peer::None, Peer::NvLink, Peer::None]),
            gpu(&[Peer::NvLink, Peer::None, Peer::Pcie]),
            gpu(&[Peer::None, Peer::Pcie, Peer::None]),
        ]);
        assert_eq!(gpus.iter().map(|gpu| &gpu.id[..]).collect::<Vec<_>>(), ["gpu0", "gpu1", "gpu2"]);
        assert_eq!(gpus[2].arch.as_deref(), Some("sm_80"));
        let host = gpus[0].host.as_ref().unwrap()[0].bandwidth.0;
        let peer = |from: usize, to: usize| &gpus[from].peers.iter().find(|(index, _)| *index == to).unwrap().1;
        assert!((host / 27.1e9 - 1.0).abs() < 1e-2);
        assert_eq!(peer(0, 1).bandwidth.0, 300e9 * 0.86);
        assert_eq!(peer(1, 2).bandwidth.0, host);
        assert_eq!(peer(0, 2).bandwidth.0, host / 2.0);
        assert_eq!(peer(2, 0).latency, Seconds(40e-6));
        assert_eq!(gpus.iter().map(|gpu| gpu.peers.len()).sum::<usize>(), 6);
    }

    #[test]
    fn letters_of_an_architecture_are_features() {
        assert!(CUDA.runs_on("sm_90a", "sm_90") && CUDA.runs_on("sm_90", "sm_90") && !CUDA.runs_on("sm_80", "sm_90"));
        assert_eq!(CUDA.check_arch("sm_90a"), Ok(()));
        assert_eq!(CUDA.check_arch("hopper").unwrap_err(), "must be a compute capability, as in \"sm_90\"");
    }
}
