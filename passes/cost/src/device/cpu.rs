//! `cpu`: the threads of the host.

mod calibration;
mod memory;
mod processor;

use super::{
    DefaultRates, Detected, DetectedDevice, DeviceField, DeviceKind, Kind, MemorySpace, ModelForm, Reference,
    TypeRatios,
};
use crate::{
    Class, Model,
    model::{self, Machine, Term::*},
    system::units::{Bytes, BytesPerSecond, FlopsPerSecond},
};
pub use calibration::calibrated_model;
use processor::Processor;
use std::sync::LazyLock;

/// Device kind `cpu`.
pub const CPU: Kind = Kind(&Cpu);

struct Cpu;

/// Model that ships with divi, fitted to divi's kernels on a Xeon with AVX-512.
static MODEL: LazyLock<Model> = LazyLock::new(|| Model::shipped(include_str!("../../models/cpu.json")));

/// Batch sizes of a detected device.
const BATCH_SIZES: [u32; 5] = [1, 2, 4, 8, 16];

/// Memory of a machine whose memory cannot be determined.
const ASSUMED_MEMORY: Bytes = Bytes(4 << 30);

/// Clock of a CPU whose clock cannot be determined.
const DEFAULT_HERTZ: f64 = 2.5e9;

/// Nominal clock rate of the Xeon that the model is fitted to.
const MEASURED_HERTZ: f64 = 2.7e9;

/// Memory bandwidth that one core can use, whatever the number of channels.
const CORE_BYTES_PER_SECOND: f64 = 12e9;

/// Memory bandwidth of a socket with four channels of DDR4.
const DEFAULT_SOCKET_BYTES_PER_SECOND: f64 = 100e9;

/// Prefix of the names of CPUs in profiles.
const PROFILE_PREFIX: &str = "CPU";

impl DeviceKind for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn memory(&self) -> MemorySpace {
        MemorySpace::Host
    }

    fn uses_threads(&self) -> bool {
        true
    }

    fn default_rates(&self, arch: Option<&str>, threads: Option<u32>) -> DefaultRates {
        let threads = threads.map(f64::from);
        let per_cycle = flops_per_cycle(arch.unwrap_or("x86-64-v3"));
        let bandwidth = |threads: f64| (threads * CORE_BYTES_PER_SECOND).min(DEFAULT_SOCKET_BYTES_PER_SECOND);
        DefaultRates {
            f32: threads.map(|threads| FlopsPerSecond(threads * DEFAULT_HERTZ * per_cycle)),
            bandwidth: threads.map(|threads| BytesPerSecond(bandwidth(threads))),
            type_ratios: TypeRatios::UNKNOWN,
            remedy: "give 'threads', or 'flops' and 'bandwidth'",
        }
    }

    fn model_form(&self, class: Class) -> ModelForm {
        let terms: &[_] = match class {
            Class::Conv => &[
                (FlopsPointwise, 1.5),
                (Flops3x3, 1.5),
                (FlopsOther, 1.5),
                (FlopsGrouped, 0.5),
                (Epilogue, 8.0),
                (Read, 0.2),
                (Written, 0.2),
                (Weights, 0.2),
                (Transformed, 0.5),
                (Spill, 0.2),
            ],
            Class::MatMul => &[
                (Flops, 1.5),
                (FewRows, 0.5),
                (Epilogue, 8.0),
                (Read, 0.2),
                (Written, 0.2),
                (Weights, 0.2),
                (Spill, 0.2),
            ],
            _ => &[(Flops, 1.5), (Epilogue, 8.0), (Read, 0.2), (Written, 0.2), (Weights, 0.2), (Spill, 0.2)],
        };
        let unshared: &[_] = if class == Class::MatMul { &[Read, Written] } else { &[] };
        ModelForm { unshared, is_synchronous: true, ..ModelForm::new(terms) }
    }

    /// Returns one core of a Xeon with AVX-512: 64 operations per cycle, and the memory bandwidth that one core can use. A third of
    /// the shared L3 cache is available to the operands and results of an operator. A kernel has tiles of eight rows.
    fn reference(&self) -> Reference {
        Reference {
            rates: model::Rates {
                flops_per_s: 64.0 * MEASURED_HERTZ,
                bytes_per_s: CORE_BYTES_PER_SECOND,
                launch: None,
                threads: 1,
            },
            machine: Machine { units: 1.0, rows: 8.0, cache: (12u64 << 20) as f64, fork: 5.0, scaling: 1.0 },
        }
    }

    fn model(&self) -> &'static Model {
        &MODEL
    }

    /// Only two of the profiled networks have layers with weights larger than a cache: with a smaller weight of the priors, the terms of such
    /// layers fit the one, and are far from the other.
    fn prior_weight(&self) -> f64 {
        3e-3
    }

    fn detect(&self, has_accelerators: bool) -> Detected {
        let mut warnings = Vec::new();
        let memory = memory::of_this_machine().unwrap_or_else(|| {
            warnings.push(format!("cannot determine the memory of this machine; assuming {ASSUMED_MEMORY}"));
            ASSUMED_MEMORY
        });
        let cost_model = calibrated_model().filter(|path| path.is_file());
        let device = DetectedDevice { cost_model, ..describe(&Processor::of_this_machine(), memory, has_accelerators) };
        Detected { devices: vec![device], warnings }
    }

    fn device_field(&self) -> DeviceField<'_> {
        DeviceField::Threads("cpu_threads")
    }

    fn profile_name(&self, variant: &str, product: Option<&str>) -> String {
        let product = product.map_or_else(String::new, |product| format!(": {product}"));
        format!("{PROFILE_PREFIX}, {variant}{product}")
    }

    fn accepts_profile_of(&self, device: &str) -> bool {
        device.starts_with(PROFILE_PREFIX)
    }
}

/// Describes the processor as a device. With accelerators, only half of the threads compute: the others enqueue work, copy and
/// serve requests, and sharing cores with them would delay all threads of a parallel loop.
fn describe(processor: &Processor, memory: Bytes, has_accelerators: bool) -> DetectedDevice {
    let threads = if has_accelerators { processor.threads.div_ceil(2) } else { processor.threads };
    DetectedDevice {
        id: "cpu0".to_owned(),
        memory,
        batch_sizes: BATCH_SIZES.to_vec(),
        arch: Some(processor.arch().to_owned()),
        threads: Some(threads),
        rates: processor.rates(threads),
        host: None,
        peers: Vec::new(),
        cost_model: None,
    }
}

/// Returns the f32 operations per cycle of a core, by LLVM's names of x86-64 levels and AArch64: two vector FMAs where the
/// level has FMA.
fn flops_per_cycle(arch: &str) -> f64 {
    match arch {
        "x86-64" | "x86-64-v2" => 8.0,
        "x86-64-v4" => 64.0,
        "generic" | "armv8-a" => 16.0,
        // x86-64-v3, which most machines of the last ten years support.
        _ => 32.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accelerators_halve_the_threads() {
        let mut processor = Processor::of_this_machine();
        processor.threads = 15;
        let threads = |has_accelerators| describe(&processor, Bytes(1 << 30), has_accelerators).threads;
        assert_eq!((threads(false), threads(true)), (Some(15), Some(8)));
    }
}
