//! Bundle format: a folder with `bundle.json`, which this module defines, executables, and weights.
//!
//! The compiler fills these types in, and the runtime reads them. Neither needs to know more about the other. The format knows no back
//! end: executables are opaque files in a named format, and `payload` fields mean something to the driver of a device alone.

mod contents;
mod file;
mod signature;
mod steps;
mod tensor;
mod validate;

pub use file::check_replaceable;
pub(crate) use file::{hash, named_format, write_whole};
pub use steps::Lanes;
pub(crate) use steps::unit;
pub use tensor::{Fill, Halo, Layout, Nchwc, Tensor};

pub use crate::memory::ALIGNMENT;
use crate::prepare::Expression;
use serde::{Deserialize, Serialize};

/// Format of bundles that are written. Versions 1 and 2 are read as well (`drivers/upgrade.rs`).
pub const FORMAT: &str = "divi-bundle/3";
/// The file that describes a bundle, in its folder.
pub const DESCRIPTION: &str = "bundle.json";
/// The file with the constants that were computed at build time, in the same folder.
pub const WEIGHTS: &str = "weights.bin";

/// A program for the devices of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    pub format: String,
    /// The name of the model.
    pub model: String,
    /// Code that stages and `prepare` refer to by index.
    pub executables: Vec<Executable>,
    pub objective: Objective,
    pub devices: Vec<Device>,
    /// Every other file of the bundle, as it was written.
    pub files: Vec<File>,
    /// The folder of the model's files, relative to the bundle's folder; empty if the bundle refers to none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model_folder: String,
    /// Files of the model that constants refer to. The hash is that of the ranges which they refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_files: Vec<File>,
    /// The values that go from step to step.
    pub values: Vec<Value>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub constants: Vec<Constant>,
    /// Calls that are run once on the host when the bundle is loaded. Their buffers are constants.
    pub prepare: Vec<Call>,
    /// Code of `prepare`: an index of `executables`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare_executable: Option<usize>,
    pub stages: Vec<Stage>,
    /// In an order in which they can be run one after the other.
    pub steps: Vec<Step>,
    /// The SHA-256 of this description with this field empty.
    pub sha256: String,
    /// True if the description is one of version 1, which says neither how many bytes calls touch nor where files of the model are.
    #[serde(skip)]
    pub is_unchecked: bool,
}

/// Code for devices, in a format that their driver loads ([`Driver::formats`](crate::hal::Driver::formats)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executable {
    /// Format of the file.
    pub format: String,
    /// File of the bundle, in its folder.
    pub file: String,
    /// Properties of the devices that the code is for, as the driver defines them.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub target: serde_json::Value,
}

/// What the plan was made for, and what it promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    pub mode: Mode,
    /// How many inputs the entry's values are for: queued ones in a batch plan, else 1.
    pub inputs: u64,
    /// The objective's value in microseconds: the latency, the time for all inputs, or that of a pipeline's slowest stage.
    pub predicted_us: Option<f64>,
    pub bound_us: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One input, as soon as possible.
    Latency,
    /// Inputs that wait together, cut into batches.
    Batch,
    /// Successive inputs, each device on another one.
    Pipeline,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub id: String,
    /// Name of the driver ([`Driver::kind`](crate::hal::Driver::kind)).
    pub kind: String,
    /// Instruction set of the device, as machine descriptions name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Link from the host, for devices with memory of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inward: Option<Link>,
    /// True if weights are copied to the device whenever they are needed, because they do not fit all at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams_weights: bool,
    /// Worker threads; 0 for as many as the machine has cores.
    pub threads: u64,
    /// Bytes it may hold.
    pub memory: u64,
}

/// A link as the plan knows it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub bytes_per_s: f64,
    pub latency_us: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Relative to the bundle's folder.
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

/// A value of the entry function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    pub name: String,
    /// Which device's memory it is in: an index of `devices`.
    pub device: usize,
    pub tensor: Tensor,
    /// Its bytes, if no step computes it: an index of `constants`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<usize>,
}

/// An input or output of the model. Several outputs may be one value, and outputs may be inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    pub name: String,
    /// An index of `values`.
    pub value: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    pub bytes: u64,
    pub source: Source,
    /// The CRC-32 of its bytes, if they lie in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<u32>,
}

/// Where the bytes of a constant are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// In `weights.bin`.
    Packed { offset: u64 },
    /// In one of the model's own files, by its path relative to the bundle's folder.
    File { path: String, offset: u64 },
    /// Made when the bundle is loaded.
    Made(Expression),
    /// Written by `prepare`.
    Computed,
}

/// What a device runs in one go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    pub name: String,
    /// An index of `devices`.
    pub device: usize,
    /// Its code: an index of `executables`.
    pub executable: usize,
    /// Anything else that the driver of the device needs.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub payload: serde_json::Value,
    /// Constants that the driver of the device reads, besides those of calls: indices of `constants`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<usize>,
    /// Bytes of the buffer that its calls share.
    pub arena: u64,
    pub inputs: Vec<Tensor>,
    pub outputs: Vec<Tensor>,
    pub tasks: Vec<Task>,
    /// Calls in an order in which they can be run one after the other.
    pub calls: Vec<Call>,
}

/// What the planner knows as one piece of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub name: String,
    /// What the plan has it take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_us: Option<f64>,
    /// An entry of a profile (`divi-profile/1`) but for its `us`, and the batch that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// True if the device, which has memory of its own, reads the constants of the task in memory of the host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_host_weights: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub batch: u64,
    pub entry: serde_json::Value,
}

/// A kernel on its buffers, by its name in the executable. The iterations of its outermost loop can be split over threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub kernel: String,
    pub buffers: Vec<Buffer>,
    /// Bytes that the kernel touches of each buffer at most, from its first one on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bytes: Vec<u64>,
    /// The buffers that it writes, by index. They overlap no other one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<usize>,
    /// All iterations.
    pub extent: i64,
    /// The fewest that are worth a thread of their own.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub grain: i64,
    /// An index of the stage's `tasks`; 0 in `prepare`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub task: usize,
    /// Earlier calls of the stage (by index) that must be done before it: those whose results it reads, or whose buffers it
    /// writes. Those that they come after themselves need not be listed. If no call of a stage has any, calls run one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<usize>,
    /// Anything else that the driver of the device needs to run it.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub payload: serde_json::Value,
}

impl Call {
    /// The constants that it reads, as often as it does.
    pub(crate) fn constants(&self) -> impl Iterator<Item = usize> {
        self.buffers.iter().filter_map(|buffer| if let Buffer::Constant(index) = buffer { Some(*index) } else { None })
    }
}

impl Bundle {
    /// True if the description says how many bytes its calls touch, as all but those of version 1 do.
    pub(crate) fn has_extents(&self) -> bool {
        !self.is_unchecked
    }

    /// Returns `model_folder`, or `None` if the description is one of version 1, which does not say where files of the model are.
    pub(crate) fn known_model_folder(&self) -> Option<&str> {
        (!self.is_unchecked).then_some(&self.model_folder)
    }

    /// Stages of a device, with their indices.
    pub fn stages_of(&self, device: usize) -> impl Iterator<Item = (usize, &Stage)> {
        self.stages.iter().enumerate().filter(move |(_, stage)| stage.device == device)
    }
}

impl Stage {
    /// True if the device reads the constants of a call in memory of the host.
    pub(crate) fn reads_on_host(&self, call: &Call) -> bool {
        self.tasks.get(call.task).is_some_and(|task| task.has_host_weights)
    }
}

pub(crate) fn one() -> i64 {
    1
}

pub(crate) fn is_one(value: &i64) -> bool {
    *value == 1
}

pub(crate) fn is_zero(value: &usize) -> bool {
    *value == 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Buffer {
    /// An input of the stage.
    #[serde(rename = "in")]
    Input(usize),
    /// An output of the stage.
    #[serde(rename = "out")]
    Output(usize),
    /// At this offset in the stage's arena.
    #[serde(rename = "at")]
    Arena(u64),
    /// An index of `constants`.
    #[serde(rename = "const")]
    Constant(usize),
}

/// What kernels return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    Done = 0,
    /// An index is outside the tensor that it is for.
    IndexOutOfRange = 1,
    /// An integer is divided by zero.
    DivisionByZero = 2,
    /// A number is none of those that the operator is defined for.
    BadValue = 3,
}

impl Status {
    /// What is wrong, by what a kernel returned; `None` if nothing is.
    pub fn problem(code: i32) -> Option<&'static str> {
        match code {
            0 => None,
            1 => Some("an index is out of range"),
            2 => Some("an integer is divided by zero"),
            3 => Some("an operand has a value that the operator is not defined for"),
            _ => Some("the kernel failed"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    #[serde(flatten)]
    pub action: Action,
    /// When the plan has it start, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_us: Option<f64>,
    /// How long the plan has it take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_us: Option<f64>,
}

/// Values are indices of `values`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Runs a stage (an index of `stages`) on its device.
    Launch { stage: usize, inputs: Vec<usize>, outputs: Vec<usize> },
    /// Copies a value to another device.
    Transfer { input: usize, output: usize },
    /// Takes `positions` out of a value that has `of` inputs on an axis: of each of `outer` parts of the axis, which has all
    /// inputs one behind the other.
    Slice { input: usize, output: usize, positions: Vec<u64>, of: u64, axis: usize, outer: u64 },
    /// Puts the inputs of several values, `of` of them each, one behind the other, in each of `outer` parts of the axis.
    Gather { inputs: Vec<usize>, output: usize, of: Vec<u64>, axis: usize, outer: u64 },
}
