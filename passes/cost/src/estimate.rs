//! What a task takes on the devices of a system: measured where a profile knows it, estimated by a model where none does.

use crate::{
    Class, Task,
    model::{Bound, Estimate, Launch, Model, Rates},
    profile::{Found, Key, Profile, Source as ProfileSource},
    system::{Device, Execution, System},
    units::Micros,
};
use divi_onnx::DType;
use std::path::{Path, PathBuf};

/// Where a time comes from, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A profile has it.
    Measured,
    /// A profile has the task at other batches, or the operator that a cluster is made around.
    Interpolated,
    /// The model says so.
    Estimated,
}

impl Source {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Interpolated => "interpolated",
            Self::Estimated => "estimated",
        }
    }
}

impl Source {
    fn of(source: ProfileSource) -> Self {
        match source {
            ProfileSource::Measured => Self::Measured,
            ProfileSource::Interpolated => Self::Interpolated,
            ProfileSource::Scaled => Self::Estimated,
        }
    }
}

/// What a profile may know a task by.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    pub whole: Option<Key>,
    /// That of a cluster's main operator ([`Task::main`]) alone.
    pub main: Option<Key>,
}

/// A task at one batch size.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The inputs of one run.
    pub size: u32,
    /// What one run does.
    pub task: &'a Task,
    /// How often it runs: more than once if it must not see the inputs of a batch together.
    pub runs: u32,
}

/// The times of a task on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// One for each batch that was asked for.
    pub micros: Vec<Micros>,
    /// The least certain of them.
    pub source: Source,
    /// What limits the task at the smallest batch.
    pub bound: Bound,
}

/// The devices of a system, ready to be asked.
pub struct Estimator {
    devices: Vec<DeviceTimes>,
}

struct DeviceTimes {
    device: Device,
    model: &'static Model,
    profile: Option<Profile>,
    /// Bytes of weights a second that come while tasks run, where they are not there already.
    stream: Option<f64>,
}

impl Estimator {
    /// Reads the profiles that the system names.
    pub fn new(system: &System) -> Result<Self, Error> {
        let times = |(index, device): (usize, &Device)| {
            let way = system.way_of_weights(index).filter(|_| device.streams_weights);
            DeviceTimes::new(device, way.map(|link| link.bandwidth.0))
        };
        let devices = system.devices.iter().enumerate().map(times).collect::<Result<_, _>>()?;
        Ok(Self { devices })
    }

    /// The times of a task on a device. Batches must ascend; a larger one never takes less, because it could be filled up.
    pub fn times(&self, device: usize, keys: &Keys, batches: &[Batch<'_>]) -> Times {
        let device = &self.devices[device];
        let mut times = Times { micros: vec![], source: Source::Measured, bound: Bound::Launch };
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
        let model = device.kind.model();
        let profile = device.profile.as_deref().map(read_profile).transpose()?;
        Ok(Self { device: device.clone(), model, profile, stream })
    }

    fn time(&self, keys: &Keys, batch: &Batch<'_>) -> (Micros, Bound, Source) {
        let estimate = self.estimate(batch.task);
        let find = |key: &Option<Key>| self.profile.as_ref()?.find(key.as_ref()?, batch.size.into());
        let (micros, source) = match (find(&keys.whole), find(&keys.main)) {
            (Some(Found { micros, source }), _) => (micros, Source::of(source)),
            (None, Some(main)) => self.around(batch.task, estimate.micros, &main),
            (None, None) => (estimate.micros, Source::Estimated),
        };
        // Weights come once, in the order of the tasks: each takes at least as long as its own do.
        let coming = self.stream.map_or(0.0, |rate| batch.task.weights as f64 / rate * 1e6);
        (Micros((micros.0 * f64::from(batch.runs)).max(coming)), estimate.bound, source)
    }

    /// A cluster whose main operator was measured: what comes along is as the model says, by as much slower or faster as
    /// the main operator is.
    fn around(&self, task: &Task, estimate: Micros, main: &Found) -> (Micros, Source) {
        let alone = task.main().map_or(Micros::ZERO, |work| self.estimate(&Task::from(*work)).micros);
        let ratio = if alone.0 > 0.0 { main.micros.0 / alone.0 } else { 1.0 };
        let is_alone = task.members.iter().filter(|member| member.class != Class::View).count() == 1;
        match is_alone {
            true => (main.micros, Source::of(main.source)),
            false => (Micros((estimate.0 * ratio).max(main.micros.0)), Source::Interpolated),
        }
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
        };
        let launch = match self.device.execution {
            Execution::Eager => Launch::Eager,
            Execution::Captured => Launch::Captured,
        };
        self.model.time(&rates, task, launch)
    }
}

/// Why a profile that a system names cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("profile '{path}': {message}")]
pub struct Error {
    path: PathBuf,
    message: String,
}

fn read_profile(path: &Path) -> Result<Profile, Error> {
    let fail = |message: String| Error { path: path.to_owned(), message };
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    Profile::from_json(&text).map_err(|error| fail(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Geometry, Work};
    use divi_onnx::Attributes;

    /// A Relu of this many elements.
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

    fn keys(shape: &[u64]) -> Keys {
        let operand = crate::profile::Operand { shape, is_constant: false };
        let whole = Key::new(&[("Relu", &Attributes::default())], &[operand], &[shape], DType::F32, 1);
        Keys { whole, main: None }
    }

    /// A device whose profile has `us` for a Relu of 1024 elements.
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
        assert_eq!((&measured.micros[..], measured.source), (&[Micros(5.0), Micros(9.0)][..], Source::Measured));
        let between = times(&estimator, &[1, 1024], &[1, 2]);
        assert_eq!((&between.micros[..], between.source), (&[Micros(5.0), Micros(7.0)][..], Source::Interpolated));
        assert_eq!(times(&estimator, &[1, 1024], &[1, 4]).source, Source::Estimated);
        assert_eq!(times(&estimator, &[1, 512], &[1]).source, Source::Estimated);
    }

    #[test]
    fn a_larger_batch_never_takes_less() {
        let estimator = profiled(r#"{"1": 5.0, "2": 3.0, "4": 8.0}"#);
        assert_eq!(times(&estimator, &[1, 1024], &[1, 2, 4]).micros, [Micros(5.0), Micros(5.0), Micros(8.0)]);
    }

    #[test]
    fn a_task_that_repeats_takes_as_often_as_long() {
        let estimator = profiled(r#"{"1": 5.0}"#);
        let task = relu(1024);
        let batches = [Batch { size: 1, task: &task, runs: 4 }];
        assert_eq!(estimator.times(0, &keys(&[1, 1024]), &batches).micros, [Micros(20.0)]);
    }

    #[test]
    fn a_cluster_is_measured_by_its_main_operator() {
        let estimator = profiled(r#"{"1":  50.0}"#);
        let keys = Keys { whole: None, main: keys(&[1, 1024]).whole };
        let times = |task: &Task| estimator.times(0, &keys, &[Batch { size: 1, task, runs: 1 }]);
        let mut viewed = relu(1024);
        viewed.members.insert(0, Work { class: Class::View, flops: 0, ..viewed.members[0] });
        assert_eq!((times(&viewed).micros[0], times(&viewed).source), (Micros(50.0), Source::Measured));
        let mut chain = relu(1024);
        chain.members.push(Work { flops: 1000, ..chain.members[0] });
        let around = times(&chain);
        assert!(around.micros[0].0 >= 50.0 && around.micros[0].0 < 100.0, "{around:?}");
        assert_eq!(around.source, Source::Interpolated);
    }

    #[test]
    fn a_profile_that_is_not_there_is_an_error() {
        let text = "[[device]]\nid = \"c\"\nkind = \"cpu\"\nthreads = 1\nmemory = \"1 GiB\"\nprofile = \"none.json\"\n";
        let system = System::parse("nowhere/system.toml", text).unwrap();
        let message = Estimator::new(&system).err().unwrap().to_string();
        assert_eq!(message, "profile 'nowhere/none.json': No such file or directory (os error 2)");
    }

    #[test]
    fn narrower_numbers_are_faster_where_the_device_says_so() {
        let system = System::load("cpu+h200").unwrap();
        let estimator = Estimator::new(&system).unwrap();
        let geometry = Geometry::Product { count: 1, rows: 4096, columns: 4096, depth: 4096 };
        let product = |dtype| {
            let flops = 2 * 4096u64.pow(3);
            let work = Work { class: Class::MatMul, flops, dtype, geometry, ..relu(4096 * 4096).members[0] };
            let task = Task::from(work);
            estimator.times(1, &Keys::default(), &[Batch { size: 1, task: &task, runs: 1 }]).micros[0].0
        };
        assert!(product(DType::F16) < product(DType::F32) / 2.0);
    }
}
