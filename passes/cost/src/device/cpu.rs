//! `cpu`: the threads of the host.

mod memory;
mod processor;

use super::{
    DefaultRates, Detected, DetectedDevice, DeviceKind, Form, Gains, Kind, MemorySpace, Reference, TableField,
};
use crate::{
    Class, Model,
    model::{self, Machine, Term::*},
    system::units::{Bytes, BytesPerSecond, FlopsPerSecond},
};
use processor::Processor;
use std::sync::LazyLock;

pub const CPU: Kind = Kind(&Cpu);

struct Cpu;

/// The model that ships with divi, fitted to 16 cores of a Xeon.
static MODEL: LazyLock<Model> = LazyLock::new(|| Model::shipped(include_str!("../../models/cpu.json")));

/// Batch sizes to plan with where no description names any.
const BATCH_SIZES: [u32; 5] = [1, 2, 4, 8, 16];

const ASSUMED_MEMORY: Bytes = Bytes(4 << 30);

/// Of a CPU that says nothing about its clock.
const DEFAULT_HERTZ: f64 = 2.5e9;

/// What one core gets from its memory, however many channels there are.
const CORE_BYTES_PER_SECOND: f64 = 12e9;

/// Four channels of DDR4: a plain server, or a good workstation.
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
            gains: Gains::UNKNOWN,
            remedy: "give 'threads', or 'flops' and 'bandwidth'",
        }
    }

    fn form(&self, class: Class) -> Form {
        match class {
            Class::Conv => Form::new(&[
                (FlopsPointwise, 2.0),
                (Flops3x3, 2.0),
                (FlopsOther, 2.0),
                (Unfold, 0.5),
                (Read, 1.5),
                (Written, 1.5),
                (Weights, 1.5),
            ]),
            // A pointwise convolution brings its data into another order.
            Class::MatMul => Form {
                unshared: &[Read, Written],
                ..Form::new(&[(Flops, 2.0), (FewRows, 2.0), (Read, 1.5), (Written, 1.5), (Weights, 1.5)])
            },
            Class::DepthwiseConv | Class::MaxPool | Class::AveragePool | Class::Reduction => Form::roofline(class),
            _ => Form::new(&[(Read, 1.5), (Written, 1.5), (Weights, 1.5), (Spill, 1.5)]),
        }
    }

    /// 16 cores of a Xeon of the fifth generation: 64 operations a cycle at 2.1 GHz each, and eight channels of DDR5-5600.
    /// Of the 32 MiB of second-level cache, three eighths hold what an operator reads and writes, with the rest of the
    /// program around it. Sixteen lanes of a register are as many rows.
    fn reference(&self) -> Reference {
        Reference {
            rates: model::Rates { flops_per_s: 2.15e12, bytes_per_s: 358.4e9, launch: None },
            machine: Machine { units: 16.0, rows: 16.0, cache: (12u64 << 20) as f64 },
        }
    }

    fn model(&self) -> &'static Model {
        &MODEL
    }

    fn detect(&self, has_accelerators: bool) -> Detected {
        let mut warnings = Vec::new();
        let memory = memory::of_this_machine().unwrap_or_else(|| {
            warnings.push(format!("how much memory this machine has is not known; {ASSUMED_MEMORY} are assumed"));
            ASSUMED_MEMORY
        });
        let device = describe(&Processor::of_this_machine(), memory, has_accelerators);
        Detected { devices: vec![device], warnings }
    }

    fn table_field(&self) -> TableField<'_> {
        TableField::Threads("cpu_threads")
    }

    fn profile_name(&self, variant: &str, product: Option<&str>) -> String {
        let product = product.map_or_else(String::new, |product| format!(": {product}"));
        format!("{PROFILE_PREFIX}, {variant}{product}")
    }

    fn owns_profile(&self, device: &str) -> bool {
        device.starts_with(PROFILE_PREFIX)
    }
}

/// Half of the threads compute where there are accelerators: others enqueue their work, copy, and serve requests, and threads that
/// compute together wait for each other where they take turns with those.
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
    }
}

/// f32 operations that a core finishes in a cycle, by the names of LLVM for the levels of x86-64 and for AArch64: two
/// fused multiply-adds of a vector where there are any.
fn flops_per_cycle(arch: &str) -> f64 {
    match arch {
        "x86-64" | "x86-64-v2" => 8.0,
        "x86-64-v4" => 64.0,
        "generic" | "armv8-a" => 16.0,
        // x86-64-v3, and what most machines of the last ten years can do at least.
        _ => 32.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accelerators_take_half_of_the_threads() {
        let mut processor = Processor::of_this_machine();
        processor.threads = 15;
        let threads = |has_accelerators| describe(&processor, Bytes(1 << 30), has_accelerators).threads;
        assert_eq!((threads(false), threads(true)), (Some(15), Some(8)));
    }
}
