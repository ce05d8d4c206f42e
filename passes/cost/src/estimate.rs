//! What a task takes on the devices of a system: measured where a profile knows it, estimated by a model where none does.

use crate::{
    Task,
    model::{Bound, Estimate, Launch, Model, Rates},
    profile::{Found, Key, Profile, Source as ProfileSource},
    system::{Device, DeviceKind, Execution, System},
    units::Micros,
};
use divi_onnx::DType;
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Where a time comes from, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A profile has it.
    Measured,
    /// A profile has the task at other batches.
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
}

impl Estimator {
    /// Reads the profiles that the system names.
    pub fn new(system: &System) -> Result<Self, Error> {
        let devices = system.devices.iter().map(DeviceTimes::new).collect::<Result<_, _>>()?;
        Ok(Self { devices })
    }

    /// The times of a task on a device. Batches must ascend; a larger one never takes less, because it could be filled up.
    pub fn times(&self, device: usize, key: Option<&Key>, batches: &[Batch<'_>]) -> Times {
        let device = &self.devices[device];
        let mut times = Times { micros: vec![], source: Source::Measured, bound: Bound::Launch };
        let mut longest = 0.0f64;
        for (i, batch) in batches.iter().enumerate() {
            let (micros, bound, source) = device.time(key, batch);
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
    fn new(device: &Device) -> Result<Self, Error> {
        let model = match device.kind {
            DeviceKind::Cpu => Model::cpu(),
            DeviceKind::Cuda => Model::cuda(),
        };
        let profile = device.profile.as_deref().map(read_profile).transpose()?;
        Ok(Self { device: device.clone(), model, profile })
    }

    fn time(&self, key: Option<&Key>, batch: &Batch<'_>) -> (Micros, Bound, Source) {
        let estimate = self.estimate(batch.task);
        let runs = |micros: Micros| Micros(micros.0 * f64::from(batch.runs));
        let found = self.profile.as_ref().zip(key).and_then(|(profile, key)| profile.find(key, batch.size.into()));
        match found {
            Some(Found { micros, source }) => (runs(micros), estimate.bound, Source::of(source)),
            None => (runs(estimate.micros), estimate.bound, Source::Estimated),
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    path: PathBuf,
    message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "profile '{}': {}", self.path.display(), self.message)
    }
}

impl std::error::Error for Error {}

fn read_profile(path: &Path) -> Result<Profile, Error> {
    let fail = |message: String| Error { path: path.to_owned(), message };
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    Profile::from_json(&text).map_err(|error| fail(error.to_string()))
}
