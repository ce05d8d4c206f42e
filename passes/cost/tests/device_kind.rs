//! Tests of a device kind that a program registers: descriptions, rates and estimates treat it like built-in ones.

use divi_cost::{
    Class, Estimator, Geometry, Model, System, Task, TimeSource, Work,
    device::{
        self, CPU, CUDA, DefaultRates, DeviceField, DeviceKind, Error, MemorySpace, ModelForm, Reference, TypeRatios,
    },
    estimate::{Batch, ProfileKeys},
    fit::{self, Target},
    model::{Machine, Rates},
    pytorch::Operators,
    system::units::{BytesPerSecond, FlopsPerSecond},
};
use divi_onnx::DType;
use std::sync::{LazyLock, Once};

struct Toy;

static MODEL: LazyLock<Model> = LazyLock::new(|| fit::prior_model(&Toy));

impl DeviceKind for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn memory(&self) -> MemorySpace {
        MemorySpace::Device
    }

    fn check_arch(&self, arch: &str) -> Result<(), String> {
        if arch == "toy1" { Ok(()) } else { Err("must be \"toy1\"".to_owned()) }
    }

    fn default_rates(&self, arch: Option<&str>, _: Option<u32>) -> DefaultRates {
        DefaultRates {
            f32: arch.map(|_| FlopsPerSecond(1e12)),
            bandwidth: arch.map(|_| BytesPerSecond(1e11)),
            type_ratios: TypeRatios { f16: 4.0, ..TypeRatios::UNKNOWN },
            remedy: "give 'arch'",
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

fn toy() -> device::Kind {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| _ = device::register(Box::new(Toy)).expect("the name is free"));
    device::find("toy").expect("it is registered")
}

fn parse(rest: &str) -> Result<System, String> {
    let text = format!(
        "[[device]]\nid = 'a'\nkind = 'toy'\nmemory = '1 GiB'\n{rest}\n\
         [[device]]\nid = 'b'\nkind = 'cpu'\nmemory = '1 GiB'\nthreads = 1\n"
    );
    System::parse("s.toml", &text).map_err(|error| error.to_string())
}

#[test]
fn description_with_registered_kind() {
    toy();
    let system = parse("arch = 'toy1'\nweights = 'streamed'").unwrap();
    let device = &system.devices[0];
    assert_eq!((device.kind, device.streams_weights, system.host()), (toy(), true, 1));
    assert_eq!((device.rates.f32, device.rates.f16), (FlopsPerSecond(1e12), FlopsPerSecond(4e12)));
    assert_eq!(
        parse("arch = 'x'").unwrap_err(),
        "s.toml:5:8: error: 'arch' of device 'a' is \"x\": it must be \"toy1\""
    );
    assert_eq!(parse("").unwrap_err(), "s.toml:1:1: error: cannot determine the rates of device 'a': give 'arch'");
    let message = parse("arch = 'toy1'\nthreads = 2").unwrap_err();
    assert_eq!(message, "s.toml:6:11: error: 'threads' of device 'a' is for cpu devices only");
}

#[test]
fn registered_kind_has_estimates() {
    let estimator = Estimator::new(&{
        toy();
        parse("arch = 'toy1'").unwrap()
    });
    let work = Work {
        class: Class::Elementwise,
        flops: 1 << 24,
        read: 1 << 26,
        weights: 0,
        resident_weights: 0,
        written: 1 << 26,
        scratch: 0,
        dtype: DType::F32,
        geometry: Geometry::Elements { count: 1 << 24 },
    };
    let task = Task::from(work);
    let times = estimator.unwrap().times(0, &ProfileKeys::default(), &[Batch { size: 1, task: &task, runs: 1 }]);
    assert_eq!(times.source, TimeSource::Estimated);
    let roofline = (1u64 << 27) as f64 / 1e11 * 1e6;
    assert!((1.0..2.0).contains(&(times.micros[0].0 / roofline)), "{times:?}");
    assert_eq!(toy().model_form(Class::Conv), ModelForm::roofline(Class::Conv));
    assert_eq!(Target::of(toy()).machine.units, 8.0);
}

#[test]
fn unknown_kinds_are_errors() {
    toy();
    let text = "[[device]]\nid = 'a'\nkind = 'tpu'\nmemory = '1 GiB'\n";
    let message = System::parse("s.toml", text).unwrap_err().to_string();
    assert_eq!(message, "s.toml:3:8: error: 'kind' of device 'a' is \"tpu\": it must be one of cpu, cuda, toy");
    assert_eq!(device::find("tpu"), None);
}

#[test]
fn duplicate_names_are_errors() {
    toy();
    let duplicate = device::register(Box::new(Toy)).unwrap_err();
    assert_eq!(duplicate, Error::Duplicate { name: "toy".to_owned() });
    assert_eq!(duplicate.to_string(), "device kind 'toy' is already registered");
    assert_eq!(device::all(), [CPU, CUDA, toy()]);
    assert_eq!(device::names(|kind| kind.memory() == MemorySpace::Device), "cuda, toy");
}

#[test]
fn host_is_the_first_device_with_host_memory() {
    toy();
    assert_eq!(device::host(["toy", "cuda", "cpu", "cpu"]), 2);
    assert_eq!(device::host(["toy", "cuda"]), 0);
    assert_eq!(device::host(["unknown", "cpu"]), 1);
}

#[test]
fn tables_with_registered_kind() {
    toy();
    assert_eq!(toy().device_field(), DeviceField::Product("toy"));
    let node = r#"{"op": "ReLU", "inputs": [[1, 8]], "output": [1, 8], "toy_us": {"1": 2.5}}"#;
    let table = format!(r#"{{"toy": "Toy 1", "models": {{"m": {{"relu": {node}}}}}}}"#);
    let read = Operators::read(&table, toy()).unwrap();
    assert_eq!((&read.device[..], read.models[0].times[0].micros.0), ("Toy 1", 2.5));
}
