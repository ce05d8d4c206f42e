//! The device kind `toy`: memory, rates and estimates.

use divi_cost::{
    Model,
    device::{DefaultRates, DeviceKind, MemorySpace, Reference, TypeRatios},
    fit,
    model::{Machine, Rates},
    system::units::{BytesPerSecond, FlopsPerSecond},
};
use std::sync::LazyLock;

pub(crate) struct Toy;

static MODEL: LazyLock<Model> = LazyLock::new(|| fit::prior_model(&Toy));

impl DeviceKind for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn memory(&self) -> MemorySpace {
        MemorySpace::Device
    }

    fn default_rates(&self, _: Option<&str>, _: Option<u32>) -> DefaultRates {
        DefaultRates {
            f32: Some(FlopsPerSecond(1e15)),
            bandwidth: Some(BytesPerSecond(1e14)),
            type_ratios: TypeRatios::UNKNOWN,
            remedy: "give 'flops' and 'bandwidth'",
        }
    }

    fn reference(&self) -> Reference {
        Reference {
            rates: Rates { flops_per_s: 1e15, bytes_per_s: 1e14, launch: None, threads: 1 },
            machine: Machine { units: 1.0, rows: 1.0, cache: 0.0, fork: 0.0, scaling: 1.0 },
        }
    }

    fn model(&self) -> &'static Model {
        &MODEL
    }
}
