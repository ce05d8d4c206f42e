//! Device kinds that a program registers can be used in IR.

use divi_cost::{
    Model,
    device::{self, DefaultRates, DeviceKind, MemorySpace, Reference, TypeRatios},
    fit,
    model::{Machine, Rates},
};
use melior::ir::{Module, operation::OperationLike};
use std::sync::{Arc, LazyLock, Mutex};

/// A second processor with the host's memory.
struct Toy;

static MODEL: LazyLock<Model> = LazyLock::new(|| fit::prior_model(&Toy));

impl DeviceKind for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn memory(&self) -> MemorySpace {
        MemorySpace::Host
    }

    fn default_rates(&self, _: Option<&str>, _: Option<u32>) -> DefaultRates {
        DefaultRates {
            f32: None,
            bandwidth: None,
            type_ratios: TypeRatios::UNKNOWN,
            remedy: "give 'flops' and 'bandwidth'",
        }
    }

    fn reference(&self) -> Reference {
        Reference {
            rates: Rates { flops_per_s: 1e12, bytes_per_s: 1e11, launch: None, threads: 1 },
            machine: Machine { units: 8.0, rows: 8.0, cache: 0.0, fork: 0.0, scaling: 1.0 },
        }
    }

    fn model(&self) -> &'static Model {
        &MODEL
    }
}

/// Registers a kind in a single test, because kinds stay registered.
#[test]
fn devices_of_a_registered_kind_are_verified() {
    let context = divi_passes::new_context();
    let messages = Arc::new(Mutex::new(vec![]));
    let collected = messages.clone();
    context.attach_diagnostic_handler(move |diagnostic| {
        collected.lock().unwrap().push(diagnostic.to_string());
        true
    });
    let device = |rest: &str| format!("divi.device @toy0 {{kind = \"toy\", memory = 1 : i64{rest}}}");
    let last = || messages.lock().unwrap().last().cloned().unwrap_or_default();
    assert!(Module::parse(&context, &device("")).is_none());
    assert_eq!(last(), "'divi.device' op has kind \"toy\": expected one of cpu, cuda");

    device::register(Box::new(Toy)).unwrap();
    assert!(Module::parse(&context, &device("")).is_some_and(|module| module.as_operation().verify()));
    assert!(Module::parse(&context, &device(", weights = \"streamed\"")).is_none());
    assert_eq!(last(), "'divi.device' op has weights \"streamed\", which devices of kind toy do not support");
    assert!(Module::parse(&context, &device("").replace("toy\"", "tpu\"")).is_none());
    assert_eq!(last(), "'divi.device' op has kind \"tpu\": expected one of cpu, cuda, toy");

    // The host is the first device with the host's memory: inputs need no transfer to it.
    let stage = "func.func private @stage(%x: tensor<2xf32>) -> tensor<2xf32> attributes {divi.device = @toy0} {\n\
         return %x : tensor<2xf32>\n}";
    let main = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n\
         %0 = divi.launch @stage(%x) on @toy0 : (tensor<2xf32>) -> tensor<2xf32>\nreturn %0 : tensor<2xf32>\n}";
    let gpu = "divi.device @gpu0 {kind = \"cuda\", memory = 1 : i64}";
    let text = format!("{gpu}\n{}\n{stage}\n{main}\n", device(""));
    assert!(Module::parse(&context, &text).is_some(), "{}", last());
}
