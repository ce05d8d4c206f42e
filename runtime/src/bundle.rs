//! Bundle format: a folder with `bundle.json`, which this module defines, executables, and weights.
//!
//! The compiler writes these types and the runtime reads them; they are the only interface between the two. The format is
//! independent of back ends: executables are opaque files in a named format, and `payload` fields are interpreted by drivers.

mod contents;
mod file;
mod hosts;
mod losses;
mod signature;
mod steps;
mod tensor;
mod validate;

pub(crate) use contents::FileRanges;
pub use file::check_replaceable;
pub(crate) use file::{hash, named_format, write_atomically};
pub(crate) use hosts::{HostPart, Message};
pub use losses::Loss;
pub use steps::Lanes;
pub(crate) use steps::unit;
pub use tensor::{Fill, Halo, Layout, Nchwc, Tensor};

pub use crate::memory::ALIGNMENT;
use crate::prepare::Expression;
use serde::{Deserialize, Serialize};

/// Format version that is written. Versions 1 and 2 can be read as well (`drivers/upgrade.rs`).
pub const FORMAT: &str = "divi-bundle/3";
/// Name of the file that describes a bundle, in its folder.
pub const DESCRIPTION: &str = "bundle.json";
/// Name of the file with the constants computed at build time, in the same folder.
pub const WEIGHTS: &str = "weights.bin";

/// Description of a compiled program for the devices of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// Format version.
    pub format: String,
    /// Name of the model.
    pub model: String,
    /// Code that stages and `prepare` refer to by index.
    pub executables: Vec<Executable>,
    /// Objective and certificate of the plan.
    pub objective: Objective,
    /// Devices of the plan.
    pub devices: Vec<Device>,
    /// All other files of the bundle.
    pub files: Vec<File>,
    /// Folder of the model's files, relative to the bundle's folder; empty if the bundle refers to none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model_folder: String,
    /// Files of the model that constants refer to. The hash covers the referenced ranges only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_files: Vec<File>,
    /// Operands and results of steps.
    pub values: Vec<Value>,
    /// Inputs of the model.
    pub inputs: Vec<Port>,
    /// Outputs of the model.
    pub outputs: Vec<Port>,
    /// Outputs that are results of tasks, if results of tasks were made outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_results: Vec<TaskResult>,
    /// Constants of calls and values.
    pub constants: Vec<Constant>,
    /// Calls that run once on the host at load. Their buffers are constants.
    pub prepare: Vec<Call>,
    /// Code of `prepare`: an index into `executables`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare_executable: Option<usize>,
    /// Per-device functions.
    pub stages: Vec<Stage>,
    /// Launches and copies, in a topological order.
    pub steps: Vec<Step>,
    /// Nodes whose loss was planned for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// SHA-256 of this description with this field empty.
    pub sha256: String,
    /// True for version 1, which lacks the extents of calls' buffers and the folder of the model.
    #[serde(skip)]
    pub lacks_extents: bool,
}

/// Code for devices, in a format that their driver loads ([`Driver::formats`](crate::hal::Driver::formats)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executable {
    /// Format of the file.
    pub format: String,
    /// File name in the bundle's folder.
    pub file: String,
    /// Target of the code, as defined by the driver.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub target: serde_json::Value,
}

/// Objective, predicted value and lower bound of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// Objective of the plan.
    pub mode: Mode,
    /// Number of inputs in the values of the entry function: the queued inputs of a batch plan, otherwise 1.
    pub inputs: u64,
    /// Predicted objective value in µs: the latency, the time for all inputs, or the time of a pipeline's slowest stage.
    pub predicted_us: Option<f64>,
    /// Lower bound of the objective value in µs.
    pub bound_us: Option<f64>,
}

/// Objective of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Latency of one input.
    Latency,
    /// Makespan of queued inputs, split into batches.
    Batch,
    /// Throughput of successive inputs, with the stages overlapped.
    Pipeline,
}

/// Device of the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Identifier in the machine description.
    pub id: String,
    /// Name of the driver ([`Driver::kind`](crate::hal::Driver::kind)).
    pub kind: String,
    /// Architecture of the device, as in machine descriptions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Link from the host, for devices with their own memory.
    #[serde(rename = "inward", default, skip_serializing_if = "Option::is_none")]
    pub link_from_host: Option<Link>,
    /// True if weights are copied to the device on every use, because they do not fit all at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams_weights: bool,
    /// Worker threads; 0 for the number of cores of the machine.
    pub threads: u64,
    /// Memory capacity in bytes.
    pub memory: u64,
    /// Index of the host that the device belongs to, in a plan for several hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
}

/// Link of the machine description.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Bandwidth in bytes per second.
    pub bytes_per_s: f64,
    /// Latency in µs.
    pub latency_us: f64,
}

/// File with its size and hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path relative to the bundle's folder.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
}

/// Value of the entry function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// Name in the IR.
    pub name: String,
    /// Device whose memory contains the value: an index into `devices`.
    pub device: usize,
    /// Type and layout.
    pub tensor: Tensor,
    /// Contents if no step computes the value: an index into `constants`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<usize>,
}

/// Input or output of the model. Several outputs may have the same value, which may be that of an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Name in the model.
    pub name: String,
    /// Index into `values`.
    pub value: usize,
}

/// Output that is the result of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskResult {
    /// Index into `outputs`.
    pub output: usize,
    /// Outputs that the task reads, directly or through tasks whose results are no outputs: indices into `outputs`.
    pub computed_from: Vec<usize>,
}

/// Constant of calls and values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Size in bytes.
    pub bytes: u64,
    /// Origin of the bytes.
    pub source: Source,
    /// CRC-32 of the bytes if they are in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<u32>,
}

/// Origin of the bytes of a constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// Range of `weights.bin`.
    Packed {
        /// Offset in bytes.
        offset: u64,
    },
    /// Range of one of the model's own files.
    File {
        /// Path relative to the bundle's folder.
        path: String,
        /// Offset in bytes.
        offset: u64,
    },
    /// Evaluated when the bundle is loaded.
    #[serde(rename = "made")]
    Evaluated(Expression),
    /// Written by `prepare`.
    Computed,
}

/// Function that a device runs as one unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Name of the function in the IR.
    pub name: String,
    /// Index into `devices`.
    pub device: usize,
    /// Code of the stage: an index into `executables`.
    pub executable: usize,
    /// Driver-specific data.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub payload: serde_json::Value,
    /// Constants that the driver reads in addition to those of calls: indices into `constants`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<usize>,
    /// Size in bytes of the buffer for intermediate values of its calls.
    pub arena: u64,
    /// Types of the inputs.
    pub inputs: Vec<Tensor>,
    /// Types of the outputs.
    pub outputs: Vec<Tensor>,
    /// Tasks of the plan that the stage consists of.
    pub tasks: Vec<Task>,
    /// Calls in a topological order.
    pub calls: Vec<Call>,
}

/// Task of the planning problem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Name of the task.
    pub name: String,
    /// Predicted time in µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_us: Option<f64>,
    /// Key of the task in a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// True if the device, which has its own memory, reads the constants of the task in host memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_host_weights: bool,
}

/// Key of a task in a profile (`divi-profile/1`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Batch size of the task.
    pub batch: u64,
    /// Profile entry without its field `us`.
    pub entry: serde_json::Value,
}

/// Call of a kernel. The iterations of its outermost loop can be distributed over threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Name of the kernel in the executable.
    pub kernel: String,
    /// Arguments of the kernel.
    pub buffers: Vec<Buffer>,
    /// By buffer: upper bound of the bytes that the kernel accesses, from the start of the buffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bytes: Vec<u64>,
    /// Indices of the buffers that it writes. They do not overlap any other buffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<usize>,
    /// Number of iterations.
    pub extent: i64,
    /// Minimum number of iterations that are worth a thread.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub grain: i64,
    /// Index into the stage's `tasks`; 0 in `prepare`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub task: usize,
    /// Dependences on earlier calls of the stage (by index): calls whose results it reads or whose buffers it overwrites.
    /// Transitive dependences may be omitted. If no call of a stage has any, calls run sequentially.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<usize>,
    /// Driver-specific data.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub payload: serde_json::Value,
}

impl Call {
    /// Returns the indices of its constant buffers, with repetitions.
    pub(crate) fn constants(&self) -> impl Iterator<Item = usize> {
        self.buffers.iter().filter_map(|buffer| if let Buffer::Constant(index) = buffer { Some(*index) } else { None })
    }
}

impl Bundle {
    /// Returns true if calls have extents ([`Call::bytes`]), as in all versions but 1.
    pub(crate) fn has_extents(&self) -> bool {
        !self.lacks_extents
    }

    /// Returns `model_folder`; `None` for version 1, which lacks it.
    pub(crate) fn known_model_folder(&self) -> Option<&str> {
        (!self.lacks_extents).then_some(&self.model_folder)
    }

    /// Returns the stages of a device with their indices.
    pub fn stages_of(&self, device: usize) -> impl Iterator<Item = (usize, &Stage)> {
        self.stages.iter().enumerate().filter(move |(_, stage)| stage.device == device)
    }
}

impl Stage {
    /// Returns true if the device reads the constants of a call in host memory.
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

/// Argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Buffer {
    /// Input of the stage, by index.
    #[serde(rename = "in")]
    Input(usize),
    /// Output of the stage, by index.
    #[serde(rename = "out")]
    Output(usize),
    /// Offset in the stage's arena.
    #[serde(rename = "at")]
    Arena(u64),
    /// Index into `constants`.
    #[serde(rename = "const")]
    Constant(usize),
}

/// Status code of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Success.
    Done = 0,
    /// An index is out of the range of its tensor.
    IndexOutOfRange = 1,
    /// An integer is divided by zero.
    DivisionByZero = 2,
    /// An operand is outside of the operator's domain.
    BadValue = 3,
}

impl Status {
    /// Returns the message of a status code; `None` for success.
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

/// Step of the program: an action with its predicted schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Action of the step.
    #[serde(flatten)]
    pub action: Action,
    /// Planned start in µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_us: Option<f64>,
    /// Predicted duration in µs.
    #[serde(rename = "takes_us", default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<f64>,
    /// Queued inputs of a launch, for users; empty if it has all inputs of the request.
    #[serde(rename = "queued", default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<u64>,
}

impl From<Action> for Step {
    /// Creates a step without a predicted schedule.
    fn from(action: Action) -> Self {
        Self { action, start_us: None, duration_us: None, inputs: vec![] }
    }
}

/// Action of a step. Operands and results are indices into `values`.
///
/// Slices and gathers split and join the inputs of a batch along `axis`. The runtime addresses a value as `outer` × inputs
/// parts of equal size and does not read `axis`, so `outer` must include the extents before the axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Runs a stage on its device.
    Launch {
        /// Index into `stages`.
        stage: usize,
        /// Operands.
        inputs: Vec<usize>,
        /// Results.
        outputs: Vec<usize>,
    },
    /// Copies a value to another device.
    Transfer {
        /// Operand.
        input: usize,
        /// Result.
        output: usize,
    },
    /// Extracts some inputs of a batch.
    Slice {
        /// Operand.
        input: usize,
        /// Result.
        output: usize,
        /// Indices of the extracted inputs.
        positions: Vec<u64>,
        /// Number of inputs in the operand.
        of: u64,
        /// Batch axis.
        axis: usize,
        /// Number of groups of parts, each of which has a part of every input.
        outer: u64,
    },
    /// Concatenates the inputs of several batches.
    Gather {
        /// Operands.
        inputs: Vec<usize>,
        /// Result.
        output: usize,
        /// By operand: its number of inputs.
        of: Vec<u64>,
        /// Batch axis.
        axis: usize,
        /// Number of groups of parts, each of which has a part of every input.
        outer: u64,
    },
    /// Sends a value to another host. Never in a file: made from a transfer when a bundle is divided among hosts.
    #[serde(skip)]
    Send {
        /// Operand.
        input: usize,
        /// Index of the receiving host.
        to: usize,
        /// Index of the message among those of all hosts.
        message: usize,
    },
    /// Receives a value from another host. Never in a file, like `Send`.
    #[serde(skip)]
    Receive {
        /// Result.
        output: usize,
        /// Index of the sending host.
        from: usize,
        /// Index of the message among those of all hosts.
        message: usize,
    },
}
