//! What a bundle is: a folder with `bundle.json`, which this module defines, native code, and weights.
//!
//! The compiler fills these types in, the runtime reads them; neither knows more of the other.

mod contents;
mod file;
mod gpu;
mod signature;
mod steps;
mod validate;

pub use file::check_replaceable;
pub(crate) use file::write_whole;
pub use gpu::{Convolution, Epilogue, GpuCode, Launch, Library, LibraryCall, Link, Product, Then};
pub use signature::{SIGNATURE_COMMENT, SIGNATURES};
pub use steps::Lanes;
pub(crate) use steps::unit;

use crate::prepare::Expression;
use serde::{Deserialize, Serialize};

/// Format of bundles that are written: version 2 has the bytes that calls touch and the contents of all files.
pub const FORMAT: &str = "divi-bundle/2";
/// Format of older bundles, which are still read. Nothing bounds what their calls touch.
pub const FORMAT_1: &str = "divi-bundle/1";
/// The file that describes a bundle, in its folder.
pub const DESCRIPTION: &str = "bundle.json";
/// The file with the constants that were computed at build time, in the same folder.
pub const WEIGHTS: &str = "weights.bin";
/// Constants and buffers begin at multiples of this many bytes.
pub const ALIGNMENT: u64 = 64;

/// A program for the devices of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    pub format: String,
    /// The name of the model.
    pub model: String,
    pub target: Target,
    /// Kernels for GPUs, an entry for each architecture that devices have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuCode>,
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
    /// What is computed once, when the bundle is loaded; its buffers are constants.
    pub prepare: Vec<Call>,
    pub stages: Vec<Stage>,
    /// In an order in which they can be run one after the other.
    pub steps: Vec<Step>,
    /// The SHA-256 of this description with this field empty.
    pub sha256: String,
}

/// The processor that the code is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// As users name it: `x86-64-v3`, `x86-64-v4`, or a processor of LLVM's.
    pub cpu: String,
    /// What the processor must have, in the names of `/proc/cpuinfo`.
    pub features: Vec<String>,
    /// The shared object with the kernels.
    pub code: String,
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
    /// `cpu` or `cuda`
    pub kind: String,
    /// A GPU's architecture (`sm_90`), which `gpus` has code for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// How weights come to a GPU from the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inward: Option<Link>,
    /// Whether the plan has weights come to a GPU whenever they are needed, because they do not fit all at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams_weights: bool,
    /// Worker threads; 0 for as many as the machine has cores.
    pub threads: u64,
    /// Bytes it may hold.
    pub memory: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Relative to the bundle's folder.
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

/// A dense row-major tensor. Types have ONNX's names (`float`, `int64`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    #[serde(rename = "type")]
    pub dtype: String,
    pub shape: Vec<u64>,
    pub bytes: u64,
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
    /// Bytes of the buffer that its calls share.
    pub arena: u64,
    pub inputs: Vec<Tensor>,
    pub outputs: Vec<Tensor>,
    pub tasks: Vec<Task>,
    /// One after the other.
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
    /// Whether a GPU reads its constants where they are, in the host's memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_host_weights: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub batch: u64,
    pub entry: serde_json::Value,
}

/// A kernel on its buffers: `extern "C" fn(buffers: *const *mut u8, begin: i64, end: i64) -> i32`. It does the iterations
/// `begin..end` of its outermost loop, which may be split over threads, and returns a [`Status`].
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
    /// How a GPU runs it, which all calls of a GPU's stages say, and no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
}

impl Call {
    /// The constants that it reads, as often as it does.
    pub(crate) fn constants(&self) -> impl Iterator<Item = usize> {
        self.buffers.iter().filter_map(|buffer| if let Buffer::Constant(index) = buffer { Some(*index) } else { None })
    }
}

impl Bundle {
    /// True if the description says what its calls touch and where its model's files are, as all but the oldest do.
    pub(crate) fn has_extents(&self) -> bool {
        self.format != FORMAT_1
    }

    pub(crate) fn has_model_folder(&self) -> bool {
        self.has_extents()
    }
}

impl Stage {
    /// Whether a GPU runs a call of the stage and reads its constants in the host's memory.
    pub(crate) fn reads_on_host(&self, call: &Call) -> bool {
        call.launch.is_some() && self.tasks.get(call.task).is_some_and(|task| task.has_host_weights)
    }
}

fn one() -> i64 {
    1
}

fn is_one(value: &i64) -> bool {
    *value == 1
}

fn is_zero(value: &usize) -> bool {
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
