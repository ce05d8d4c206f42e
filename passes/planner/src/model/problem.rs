//! Planning problem as in its file (`divi-problem/1`). Solvers work on its dense form, [`crate::Instance`].

mod batches;
mod bus;
mod check;
mod cold;
mod domain;
mod names;
mod order;
mod read;
mod relaxation;
mod view;
mod write;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::named::named;
use crate::model::units::{Bytes, BytesPerMicro, Micros};

pub use check::MOST_INPUTS;
pub use cold::Cold;
pub(crate) use domain::Domains;
pub(crate) use names::{abbreviated, list};
pub use view::{Start, View, ViewKind};

/// Name and version of the format.
pub const FORMAT: &str = "divi-problem/1";

/// Task graph of a network, and devices that are connected by links.
///
/// Components:
/// - *devices* with a memory and the batch sizes of a launch; *links* between pairs of devices with a bandwidth and a
///   latency; *buses*, each of which several links may share;
/// - *tasks* (`nodes`) with a time for each device and batch size, and the bytes of their weights, operands, results and scratch;
/// - *tensors*, each from one task to its readers (`edges` if each task has one tensor);
/// - *constraints*: the device of a task (`pin`), tasks that share a device (`colocate`), the number of queued inputs (`L`);
/// - *views*: equal devices (`mtpp`) and an edge network (`edge`), which pipelines are planned on instead of the devices;
/// - *start*: warm, or cold with all parameters in the host's memory (`cold`).
///
/// Input constraints ([`Problem::check`], which runs no solver):
/// - the task graph has no cycle; referenced devices, tasks and batch sizes exist; numbers are finite and not negative;
/// - each task has a device that supports it, is linked to those of its neighbors and has enough memory for it; pins and
///   co-location do not contradict each other; the batch sizes of some devices sum to the queue.
///
/// Solution constraints ([`crate::verify()`], which shares no code with a solver):
/// - each task runs once for each queued input, on a device that supports it and its batch size, as pinned, and with the
///   tasks that it is co-located with; at most one launch for each task and device, unless the plan's rule allows more;
/// - a device runs one launch at a time, for the time of its task;
/// - a launch starts after its operands have arrived: a tensor is transferred once to each device that reads it, over a
///   link, after the end of the launch that computes it;
/// - the contents of a device fit into its memory: everything that its tasks touch (`static`), or its weights and all
///   live tensors (`liveness`);
/// - with contention, transfers on a bus exclude each other or share its bandwidth; from a cold start, parameters are
///   copied, or read in the host's memory, before they are used;
/// - the stages of a pipeline have a topological order, and their number is allowed.
///
/// The objective is minimized: the end of the last launch (latency for one input, batch for a queue), or the time of the slowest stage
/// (pipeline).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Problem {
    pub(crate) format: Format,
    /// Name of the problem.
    pub name: String,
    /// Number of queued inputs; one means latency.
    #[serde(rename = "L", default = "one")]
    pub inputs: u32,
    /// Devices, by number.
    pub devices: Vec<Device>,
    /// Device that holds the model's inputs, its outputs and all parameters: see [`Problem::host`].
    #[serde(default)]
    pub(crate) host: Option<usize>,
    /// From device (row) to device (column): unset is infinite, zero is no link.
    pub bandwidth: Vec<Vec<Option<BytesPerMicro>>>,
    /// Latency of each link, from device (row) to device (column); unset is zero.
    #[serde(default)]
    pub link_latency: Option<Vec<Vec<Option<Micros>>>>,
    /// Bus of each pair of devices.
    #[serde(default)]
    pub bus: Option<Vec<Vec<Option<String>>>>,
    /// Effect of transfers on the same bus on each other.
    #[serde(default)]
    pub contention: Contention,
    /// Model of the memory use of devices.
    #[serde(default)]
    pub memory_model: MemoryModel,
    /// Tasks, by number.
    pub nodes: Vec<Node>,
    /// Edges of the task graph: the only tensor of the first node is read by the second.
    #[serde(default)]
    pub edges: Option<Vec<(usize, usize)>>,
    /// Tensors, instead of edges: nodes may have several results.
    #[serde(default)]
    pub tensors: Option<Vec<Tensor>>,
    /// Decomposition by a problem generator, in path order: for checks, not for solvers.
    #[serde(default)]
    pub modules: Option<Vec<Vec<usize>>>,
    /// View of equal devices, for pipelines.
    #[serde(default)]
    pub mtpp: Option<Pipeline>,
    /// View of an edge network, for pipelines.
    #[serde(default)]
    pub edge: Option<EdgeNetwork>,
    /// Devices of each host of a cluster; hosts with equal lists of devices are equal.
    #[serde(default)]
    pub machines: Option<Vec<Vec<usize>>>,
    /// Lists of nodes that share a device.
    #[serde(default)]
    pub colocate: Option<Vec<Vec<usize>>>,
    /// Location of the parameters before the first launch; if unset, they are on the devices that need them.
    #[serde(default)]
    pub cold: Option<Cold>,
    /// Origin of the problem.
    #[serde(default)]
    pub meta: Option<serde_json::Value>,
}

/// Format that a file states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Format {
    #[default]
    #[serde(rename = "divi-problem/1")]
    One,
}

/// Device of a problem.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Device {
    /// Position in the list.
    pub id: usize,
    /// Name in the IR and in system descriptions.
    pub name: String,
    /// Unset is unlimited.
    #[serde(default)]
    pub memory: Option<Bytes>,
    /// Supported numbers of inputs of one launch.
    #[serde(default = "only_one")]
    pub batch_sizes: Vec<u32>,
}

/// Task of a problem.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Node {
    /// Position in the list.
    pub id: usize,
    /// Name in the model.
    #[serde(default)]
    pub name: Option<String>,
    /// Time on each device, by batch size; unset where it is not supported.
    #[serde(deserialize_with = "read::times")]
    pub time: BTreeMap<u32, Vec<Option<Micros>>>,
    /// Size of the parameters.
    pub weight: Bytes,
    /// Size of the operands that other nodes compute, for one input.
    pub input: Bytes,
    /// Size of the node's tensor. With `tensors` it may be omitted: then it is the sum of the node's own.
    #[serde(default)]
    pub output: Option<Bytes>,
    /// Scratch memory of the node while it runs, beside its operands and results.
    #[serde(default)]
    pub scratch: Bytes,
    /// The only device that may run it.
    #[serde(default)]
    pub pin: Option<usize>,
    /// Index of its module in a generator's decomposition.
    #[serde(default)]
    pub module: Option<usize>,
}

/// Value that one node computes and others read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Tensor {
    /// Node that computes it.
    pub from: usize,
    /// Size for one input.
    pub bytes: Bytes,
    /// Nodes that read it.
    pub to: Vec<usize>,
}

/// Effect of transfers on the same bus on each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contention {
    /// None: each has the whole bandwidth.
    #[default]
    Off,
    /// One transfer at a time.
    Exclusive,
    /// Transfers share the bandwidth.
    Shared,
}

/// Model of the memory use of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryModel {
    /// Everything that its tasks touch, at once (eq. 6).
    #[default]
    Static,
    /// Weights, and all live tensors.
    Liveness,
}

/// View of `k` equal devices (MTPP).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Pipeline {
    /// Time of each node.
    pub work: Vec<Micros>,
    /// Allowed numbers of stages.
    pub k: Vec<u32>,
    /// Bandwidth of all links.
    pub bandwidth: BytesPerMicro,
    /// Memory of each device; if unset, nothing overflows.
    #[serde(default)]
    pub memory: Option<Bytes>,
}

/// View of an edge network: machines with rates and links. The machines are not the problem's devices.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct EdgeNetwork {
    /// Operations of each node.
    pub flops: Vec<f64>,
    /// Operations per microsecond of each machine: 1000 is the paper's gigahertz.
    pub rate: Vec<f64>,
    /// From machine (row) to machine (column): unset is infinite, zero is no link. A transfer to the same machine takes
    /// no time.
    pub bandwidth: Vec<Vec<Option<BytesPerMicro>>>,
    /// Bytes on each edge, in the order of `edges`.
    pub edge_bytes: Vec<Bytes>,
    /// Maximum number of split points: changes of the machine between consecutive nodes of the topological order, lowest
    /// number first.
    #[serde(default)]
    pub splits: Option<u32>,
    /// Maximum number of threads of each machine: runs of consecutive nodes in that order.
    #[serde(default)]
    pub threads: Option<Vec<u32>>,
    /// The only machine of each node; unset if any is allowed.
    #[serde(default)]
    pub pin: Option<Vec<Option<usize>>>,
}

impl Problem {
    /// Creates a problem with devices and links, and without tasks.
    pub fn new(name: impl Into<String>, devices: Vec<Device>, bandwidth: Vec<Vec<Option<BytesPerMicro>>>) -> Self {
        Self {
            format: Format::One,
            name: name.into(),
            inputs: 1,
            devices,
            host: None,
            bandwidth,
            link_latency: None,
            bus: None,
            contention: Contention::default(),
            memory_model: MemoryModel::default(),
            nodes: Vec::new(),
            edges: None,
            tensors: None,
            modules: None,
            mtpp: None,
            edge: None,
            machines: None,
            colocate: None,
            cold: None,
            meta: None,
        }
    }

    /// Returns the device that holds the model's inputs, its outputs and all parameters.
    pub fn host(&self) -> usize {
        self.host.unwrap_or_else(|| read::default_host(&self.devices))
    }

    /// Sets the host. The default host is omitted from the canonical text.
    pub fn set_host(&mut self, host: usize) {
        self.host = (host != read::default_host(&self.devices)).then_some(host);
    }

    /// Returns the tensors, also if the file has edges; then tensor `i` is the result of node `i`.
    pub fn all_tensors(&self) -> Vec<Tensor> {
        if let Some(tensors) = &self.tensors {
            return tensors.clone();
        }
        let tensor = |node: &Node| Tensor { from: node.id, bytes: node.output.unwrap_or(Bytes::ZERO), to: Vec::new() };
        let mut tensors: Vec<Tensor> = self.nodes.iter().map(tensor).collect();
        for &(from, to) in self.edges.iter().flatten() {
            tensors[from].to.push(to);
        }
        tensors
    }

    /// Returns the size of each node's results, for one input.
    pub fn output_bytes(&self) -> Vec<Bytes> {
        let mut bytes = vec![Bytes::ZERO; self.nodes.len()];
        for tensor in self.tensors.iter().flatten() {
            bytes[tensor.from] += tensor.bytes;
        }
        self.nodes.iter().zip(bytes).map(|(node, bytes)| node.output.unwrap_or(bytes)).collect()
    }

    /// Returns the label of a node in messages: `node 3 (conv1)`.
    pub fn node_label(&self, node: usize) -> String {
        match self.nodes.get(node).and_then(|node| node.name.as_deref()) {
            Some(name) => format!("node {node} ({name})"),
            None => format!("node {node}"),
        }
    }

    /// Returns the label of a device in messages: `device 1 (gpu0)`.
    pub fn device_label(&self, device: usize) -> String {
        match self.devices.get(device) {
            Some(known) => format!("device {device} ({})", known.name),
            None => format!("device {device}"),
        }
    }
}

named!(Contention, "contention", Off = "off", Exclusive = "exclusive", Shared = "shared");
named!(MemoryModel, "memory model", Static = "static", Liveness = "liveness");

fn one() -> u32 {
    1
}

fn only_one() -> Vec<u32> {
    vec![1]
}
