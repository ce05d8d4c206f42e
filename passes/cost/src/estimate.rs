//! Times of tasks on the devices of a system: measured if a profile contains the task, estimated by a model otherwise.

use crate::{
    Class, Task,
    model::{Bound, Estimate, Launch, Model, Rates},
    profile::{Key, LookupKind, Profile, ProfileTime},
    system::{Device, Execution, System},
    units::Micros,
};
use divi_onnx::DType;
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

/// Source of a time, in order of decreasing accuracy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeSource {
    /// A profile contains the time.
    Measured,
    /// A profile contains the task at other batch sizes, or the main operator of the cluster.
    Interpolated,
    /// A model that was fitted to this machine predicted the time.
    Calibrated,
    /// The model of the device's kind predicted the time.
    Estimated,
}

impl TimeSource {
    /// All sources, in order.
    pub const ALL: [Self; 4] = [Self::Measured, Self::Interpolated, Self::Calibrated, Self::Estimated];

    /// Returns the name in reports and in `divi.costs`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Interpolated => "interpolated",
            Self::Calibrated => "calibrated",
            Self::Estimated => "estimated",
        }
    }
}

/// Keys under which a profile may contain a task.
#[derive(Clone, Debug, Default)]
pub struct ProfileKeys {
    /// Key of the whole task.
    pub whole: Option<Key>,
    /// Key of a cluster's main operator ([`Task::main`]) alone.
    pub main: Option<Key>,
}

/// Task at one batch size.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Number of inputs per run.
    pub size: u32,
    /// Work of one run.
    pub task: &'a Task,
    /// Number of runs: more than one if the task would mix the inputs of a batch.
    pub runs: u32,
}

/// Times of a task on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Time at each requested batch size.
    pub micros: Vec<Micros>,
    /// Least accurate source of these times.
    pub source: TimeSource,
    /// Bottleneck at the smallest batch size.
    pub bound: Bound,
}

/// Estimator of times on the devices of a system.
pub struct Estimator {
    devices: Vec<DeviceTimes>,
}

struct DeviceTimes {
    device: Device,
    model: Cow<'static, Model>,
    profile: Option<Profile>,
    /// Bandwidth in bytes per second at which weights are streamed; `None` if they are resident.
    stream: Option<f64>,
}

impl Estimator {
    /// Creates an estimator; reads the profiles that the system refers to.
    pub fn new(system: &System) -> Result<Self, Error> {
        let times = |(index, device): (usize, &Device)| {
            let link = system.weight_link(index).filter(|_| device.streams_weights);
            DeviceTimes::new(device, link.map(|link| link.bandwidth.0))
        };
        let devices = system.devices.iter().enumerate().map(times).collect::<Result<_, _>>()?;
        Ok(Self { devices })
    }

    /// Returns the times of a task on a device. Batch sizes must be increasing. Times are monotone: a smaller batch could be
    /// padded to a larger one.
    pub fn times(&self, device: usize, keys: &ProfileKeys, batches: &[Batch<'_>]) -> Times {
        let device = &self.devices[device];
        let mut times = Times { micros: vec![], source: TimeSource::Measured, bound: Bound::Launch };
        let mut longest = 0.0f64;
        for (i, batch) in batches.iter().enumerate() {
            let (micros, bound, source) = device.time(keys, batch);
            longest = longest.max(micros.0);
            times.micros.push(Micros(longest));
            times.source = times.source.max(source);
            if i == 0 {
                times.bound = bound;
            }
        }
        times
    }
}

impl DeviceTimes {
    fn new(device: &Device, stream: Option<f64>) -> Result<Self, Error> {
        let model = match &device.cost_model {
            None => Cow::Borrowed(device.kind.model()),
            Some(path) => Cow::Owned(read_model(path, device)?),
        };
        let profile = device.profile.as_deref().map(read_profile).transpose()?;
        Ok(Self { device: device.clone(), model, profile, stream })
    }

    fn time(&self, keys: &ProfileKeys, batch: &Batch<'_>) -> (Micros, Bound, TimeSource) {
        let estimate = self.estimate(batch.task);
        let find = |key: &Option<Key>| self.profile.as_ref()?.find(key.as_ref()?, batch.size.into());
        let (micros, source) = match (find(&keys.whole), find(&keys.main)) {
            (Some(ProfileTime { micros, source }), _) => (micros, self.source_of(source)),
            (None, Some(main)) => self.around(batch.task, estimate.micros, &main),
            (None, None) => (estimate.micros, self.source_of_estimates()),
        };
        // Weights are streamed once, in the order of the tasks: a task takes at least as long as the copy of its own weights.
        // Constants are copied whole, also those of which the task reads a part.
        let streaming = self.stream.map_or(0.0, |rate| batch.task.resident_weights() as f64 / rate * 1e6);
        (Micros((micros.0 * f64::from(batch.runs)).max(streaming)), estimate.bound, source)
    }

    /// Returns the time of a cluster whose main operator was measured: the model's estimate, scaled by the ratio of measured to
    /// estimated time of the main operator.
    fn around(&self, task: &Task, estimate: Micros, main: &ProfileTime) -> (Micros, TimeSource) {
        let alone = task.main().map_or(Micros::ZERO, |work| self.estimate(&Task::from(*work)).micros);
        let ratio = if alone.0 > 0.0 { main.micros.0 / alone.0 } else { 1.0 };
        let is_alone = task.members.iter().filter(|member| member.class != Class::View).count() == 1;
        match is_alone {
            true => (main.micros, self.source_of(main.source)),
            false => (Micros((estimate.0 * ratio).max(main.micros.0)), TimeSource::Interpolated),
        }
    }

    fn source_of(&self, lookup: LookupKind) -> TimeSource {
        match lookup {
            LookupKind::Measured => TimeSource::Measured,
            LookupKind::Interpolated => TimeSource::Interpolated,
            LookupKind::Scaled => self.source_of_estimates(),
        }
    }

    fn source_of_estimates(&self) -> TimeSource {
        if self.device.cost_model.is_some() { TimeSource::Calibrated } else { TimeSource::Estimated }
    }

    fn estimate(&self, task: &Task) -> Estimate {
        let peak = &self.device.rates;
        let flops = match task.main().map_or(DType::F32, |main| main.dtype) {
            DType::F64 => peak.f64,
            DType::F16 => peak.f16,
            DType::BF16 => peak.bf16,
            DType::I8 | DType::U8 => peak.i8,
            _ => peak.f32,
        };
        let rates = Rates {
            flops_per_s: flops.0,
            bytes_per_s: peak.bandwidth.0,
            launch: self.device.launch.map(|launch| Micros(launch.micros())),
            threads: self.device.threads.unwrap_or(1),
        };
        let launch = match self.device.execution {
            Execution::Eager => Launch::Eager,
            Execution::Captured => Launch::Captured,
        };
        self.model.time(&rates, task, launch)
    }
}

/// Error in a file that a system refers to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} '{path}': {message}")]
pub struct Error {
    what: &'static str,
    path: PathBuf,
    message: String,
}

/// Reads a file; `parse` returns its contents, or what is wrong with them.
fn read<T>(what: &'static str, path: &Path, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    text.and_then(|text| parse(&text)).map_err(|message| Error { what, path: path.to_owned(), message })
}

fn read_profile(path: &Path) -> Result<Profile, Error> {
    read("profile", path, |text| Profile::from_json(text).map_err(|error| error.to_string()))
}

fn read_model(path: &Path, device: &Device) -> Result<Model, Error> {
    read("cost model", path, |text| {
        let model = Model::from_json(text).map_err(|error| error.to_string())?;
        let (kind, own, id) = (&model.kind, device.kind.name(), &device.id);
        if kind == own {
            return Ok(model);
        }
        Err(format!("it is for devices of kind '{kind}', but '{id}' has kind '{own}'"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Geometry, Work};
    use divi_onnx::Attributes;

    /// Returns a Relu of `count` elements.
    fn relu(count: u64) -> Task {
        let bytes = count * 4;
        let geometry = Geometry::Elements { count };
        Task::from(Work {
            class: Class::Elementwise,
            flops: count,
            read: bytes,
            weights: 0,
            resident_weights: 0,
            written: bytes,
            scratch: 0,
            dtype: DType::F32,
            geometry,
        })
    }

    fn keys(shape: &[u64]) -> ProfileKeys {
        let operand = crate::profile::Operand { shape, is_constant: false };
        let whole = Key::new(&[("Relu", &Attributes::default())], &[operand], &[shape], DType::F32, 1);
        ProfileKeys { whole, main: None }
    }

    /// Returns an estimator for a device whose profile has the times `us` for a Relu of 1024 elements.
    fn profiled(us: &str) -> Estimator {
        let folder = std::env::temp_dir().join(format!("divi-estimate-{}-{}", std::process::id(), us.len()));
        std::fs::create_dir_all(&folder).unwrap();
        let entry = format!(r#"{{"ops": ["Relu"], "in": [[1, 1024]], "out": [1, 1024], "dtype": "f32", "us": {us}}}"#);
        let profile = format!(r#"{{"format": "divi-profile/1", "device": "d", "runtime": "r", "entries": [{entry}]}}"#);
        std::fs::write(folder.join("profile.json"), profile).unwrap();
        let text = "[[device]]\nid = \"gpu0\"\nkind = \"cuda\"\narch = \"sm_80\"\nmemory = \"1 GiB\"\nprofile = \"profile.json\"\n";
        let system = System::parse(folder.join("system.toml").to_str().unwrap(), text).unwrap();
        let estimator = Estimator::new(&system).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        estimator
    }

    fn times(estimator: &Estimator, shape: &[u64], sizes: &[u32]) -> Times {
        let tasks: Vec<Task> = sizes.iter().map(|&size| relu(1024 * u64::from(size))).collect();
        let batches: Vec<_> = sizes.iter().zip(&tasks).map(|(&size, task)| Batch { size, task, runs: 1 }).collect();
        estimator.times(0, &keys(shape), &batches)
    }

    #[test]
    fn a_profile_overrides_the_model_where_it_matches() {
        let estimator = profiled(r#"{"1": 5.0, "3": 9.0}"#);
        let measured = times(&estimator, &[1, 1024], &[1, 3]);
        assert_eq!((&measured.micros[..], measured.source), (&[Micros(5.0), Micros(9.0)][..], TimeSource::Measured));
        let between = times(&estimator, &[1, 1024], &[1, 2]);
        assert_eq!((&between.micros[..], between.source), (&[Micros(5.0), Micros(7.0)][..], TimeSource::Interpolated));
        assert_eq!(times(&estimator, &[1, 1024], &[1, 4]).source, TimeSource::Estimated);
        assert_eq!(times(&estimator, &[1, 512], &[1]).source, TimeSource::Estimated);
    }

    #[test]
    fn times_increase_with_batch_size() {
        let estimator = profiled(r#"{"1": 5.0, "2": 3.0, "4": 8.0}"#);
        assert_eq!(times(&estimator, &[1, 1024], &[1, 2, 4]).micros, [Micros(5.0), Micros(5.0), Micros(8.0)]);
    }

    #[test]
    fn repeated_runs_add_up() {
        let estimator = profiled(r#"{"1": 5.0}"#);
        let task = relu(1024);
        let batches = [Batch { size: 1, task: &task, runs: 4 }];
        assert_eq!(estimator.times(0, &keys(&[1, 1024]), &batches).micros, [Micros(20.0)]);
    }

    #[test]
    fn a_cluster_is_measured_by_its_main_operator() {
        let estimator = profiled(r#"{"1":  50.0}"#);
        let keys = ProfileKeys { whole: None, main: keys(&[1, 1024]).whole };
        let times = |task: &Task| estimator.times(0, &keys, &[Batch { size: 1, task, runs: 1 }]);
        let mut viewed = relu(1024);
        viewed.members.insert(0, Work { class: Class::View, flops: 0, ..viewed.members[0] });
        assert_eq!((times(&viewed).micros[0], times(&viewed).source), (Micros(50.0), TimeSource::Measured));
        let mut chain = relu(1024);
        chain.members.push(Work { flops: 1000, ..chain.members[0] });
        let around = times(&chain);
        assert!(around.micros[0].0 >= 50.0 && around.micros[0].0 < 100.0, "{around:?}");
        assert_eq!(around.source, TimeSource::Interpolated);
    }

    /// Tests that a task on a device with streamed weights takes at least as long as the copy of the whole constants, of which a
    /// Gather reads a few rows.
    #[test]
    fn streamed_constants_are_copied_whole() {
        let device = |id: &str, rest: &str| format!("[[device]]\nid = '{id}'\nmemory = '1 GiB'\n{rest}\n");
        let text = [
            device("cpu0", "kind = 'cpu'\nthreads = 1"),
            device("gpu0", "kind = 'cuda'\narch = 'sm_80'\nweights = 'streamed'"),
            "[[link]]\nfrom = 'cpu0'\nto = 'gpu0'\nbandwidth = '1 GB/s'\n".to_owned(),
        ];
        let estimator = Estimator::new(&System::parse("system.toml", &text.concat()).unwrap()).unwrap();
        let mut task = relu(1024);
        task.members[0].resident_weights = 4_000_000;
        let times =
            |device| estimator.times(device, &ProfileKeys::default(), &[Batch { size: 1, task: &task, runs: 1 }]);
        assert!(times(0).micros[0].0 < 4000.0, "weights are resident on the CPU");
        assert_eq!(times(1).micros, [Micros(4000.0)]);
    }

    #[test]
    fn missing_profile_is_an_error() {
        let text = "[[device]]\nid = \"c\"\nkind = \"cpu\"\nthreads = 1\nmemory = \"1 GiB\"\nprofile = \"none.json\"\n";
        let system = System::parse("nowhere/system.toml", text).unwrap();
        let message = Estimator::new(&system).err().unwrap().to_string();
        assert_eq!(message, "profile 'nowhere/none.json': No such file or directory (os error 2)");
    }

    #[test]
    fn narrower_types_use_their_own_rates() {
        let system = System::load("cpu+h200").unwrap();
        let estimator = Estimator::new(&system).unwrap();
        let geometry = Geometry::Product { count: 1, rows: 4096, columns: 4096, depth: 4096 };
        let product = |dtype| {
            let flops = 2 * 4096u64.pow(3);
            let work = Work { class: Class::MatMul, flops, dtype, geometry, ..relu(4096 * 4096).members[0] };
            let task = Task::from(work);
            estimator.times(1, &ProfileKeys::default(), &[Batch { size: 1, task: &task, runs: 1 }]).micros[0].0
        };
        assert!(product(DType::F16) < product(DType::F32) / 2.0);
    }
}
