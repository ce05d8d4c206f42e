//! The planning problem as its file has it (`divi-problem/1`). Solvers work on [`crate::Instance`], its dense form.

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

/// The name of the format, and its version.
pub const FORMAT: &str = "divi-problem/1";

/// Tasks of a network on devices that are joined by links.
///
/// Components:
/// - *devices* with a memory and the batch sizes of a launch; *links* between pairs of devices with a bandwidth and a latency; *buses*,
///   each of which several links may share;
/// - *tasks* (`nodes`) with a time for each device and batch size, and the bytes of their weights, operands, results and scratch;
/// - *tensors*, each from one task to those that read it (`edges` where a task has one tensor);
/// - *constraints*: the device of a task (`pin`), tasks that share a device (`colocate`), the number of queued inputs (`L`);
/// - *views*: equal devices (`mtpp`) and an edge network (`edge`), which pipelines are planned on instead of the devices;
/// - *start*: warm, or cold with all parameters in the host's memory (`cold`).
///
/// Input constraints ([`Problem::check`], which runs no solver):
/// - the task graph has no cycle; devices, tasks and batch sizes that are referred to exist; numbers are finite and not negative;
/// - each task has a device that supports it, is linked to those of its neighbours and has room for it; pins and co-location do not
///   contradict each other; the batch sizes of some devices add up to the queue.
///
/// Solution constraints ([`crate::verify()`], which shares no code with a solver):
/// - each task runs once for each queued input, on a device that supports it and its batch size, where it is pinned, and with the tasks
///   that it is co-located with; at most one launch for each task and device;
/// - a device runs one launch at a time, for the time of its task;
/// - a launch starts after its operands have arrived: a tensor moves once to each device that reads it, over a link, from the end of the
///   launch that computes it on;
/// - what a device holds fits into its memory: everything that its tasks touch (`static`), or its weights and what is alive at the
///   same time (`liveness`);
/// - with contention, transfers on a bus exclude each other or share its bandwidth; from a cold start, parameters are copied, or read in
///   the host's memory, before they are used;
/// - stages of a pipeline are in an order in which no tensor goes backwards, and as many as are allowed.
///
/// The objective is minimized: the end of the last launch (latency for one input, batch for a queue), or the time of the slowest stage
/// (pipeline).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Problem {
    pub(crate) format: Format,
    pub name: String,
    /// Number of queued inputs; one means latency.
    #[serde(rename = "L", default = "one")]
    pub inputs: u32,
    pub devices: Vec<Device>,
    /// The device that has the model's inputs, its outputs and all parameters: see [`Problem::host`].
    #[serde(default)]
    pub(crate) host: Option<usize>,
    /// From device (row) to device (column): none is infinite, zero is no link.
    pub bandwidth: Vec<Vec<Option<BytesPerMicro>>>,
    #[serde(default)]
    pub link_latency: Option<Vec<Vec<Option<Micros>>>>,
    /// The bus that each pair of devices is joined by.
    #[serde(default)]
    pub bus: Option<Vec<Vec<Option<String>>>>,
    #[serde(default)]
    pub contention: Contention,
    #[serde(default)]
    pub memory_model: MemoryModel,
    pub nodes: Vec<Node>,
    /// The one tensor of the first node goes to the second.
    #[serde(default)]
    pub edges: Option<Vec<(usize, usize)>>,
    /// Instead of edges, where nodes have several results.
    #[serde(default)]
    pub tensors: Option<Vec<Tensor>>,
    /// A generator's own decomposition, in path order: for checking, not for solving.
    #[serde(default)]
    pub modules: Option<Vec<Vec<usize>>>,
    /// The homogeneous pipeline view.
    #[serde(default)]
    pub mtpp: Option<Pipeline>,
    /// The edge-network view.
    #[serde(default)]
    pub edge: Option<EdgeNetwork>,
    /// Devices that are nodes of a cluster: near each other, and equal from node to node where they are listed alike.
    #[serde(default)]
    pub machines: Option<Vec<Vec<usize>>>,
    /// Nodes that share a device.
    #[serde(default)]
    pub colocate: Option<Vec<Vec<usize>>>,
    /// Where parameters are before anything runs; without it they are where they are needed.
    #[serde(default)]
    pub cold: Option<Cold>,
    /// Where the problem comes from.
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

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Device {
    /// The device's position.
    pub id: usize,
    /// Name in the IR and in system descriptions.
    pub name: String,
    /// None is unlimited.
    #[serde(default)]
    pub memory: Option<Bytes>,
    /// Numbers of inputs that one launch may take.
    #[serde(default = "only_one")]
    pub batch_sizes: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Node {
    /// The node's position.
    pub id: usize,
    #[serde(default)]
    pub name: Option<String>,
    /// For each batch size the time on each device; none where it is not supported.
    #[serde(deserialize_with = "read::times")]
    pub time: BTreeMap<u32, Vec<Option<Micros>>>,
    pub weight: Bytes,
    pub input: Bytes,
    /// The size of the node's tensor. With `tensors` it may be left out: then it is the sum of the node's own.
    #[serde(default)]
    pub output: Option<Bytes>,
    /// Scratch memory of the node while it runs, beside its operands and results.
    #[serde(default)]
    pub scratch: Bytes,
    /// The one device that may run it.
    #[serde(default)]
    pub pin: Option<usize>,
    #[serde(default)]
    pub module: Option<usize>,
}

/// A value that one node computes and others read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Tensor {
    pub from: usize,
    pub bytes: Bytes,
    pub to: Vec<usize>,
}

/// Effect of transfers on the same bus on each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contention {
    /// Nothing: each has the whole bandwidth.
    #[default]
    Off,
    /// One at a time.
    Exclusive,
    /// They share the bandwidth.
    Shared,
}

/// Model of what has to fit into a device's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryModel {
    /// Everything that its tasks ever touch, at once (eq. 6).
    #[default]
    Static,
    /// Weights, and what is alive at the same time.
    Liveness,
}

/// Stages on `k` equal devices: MTPP's view of the problem.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Pipeline {
    pub work: Vec<f64>,
    pub k: Vec<u32>,
    pub bandwidth: f64,
    /// Without it nothing overflows.
    #[serde(default)]
    pub memory: Option<Bytes>,
}

/// Work and links of machines in a network: the edge paper's view of the problem. Machines are its own, not the devices.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct EdgeNetwork {
    /// Work of each node.
    pub flops: Vec<f64>,
    /// Work a machine does in a microsecond: 1000 is what the paper calls a gigahertz.
    pub rate: Vec<f64>,
    /// From machine (row) to machine (column): none is infinite, zero is no link. A machine reaches itself at once.
    pub bandwidth: Vec<Vec<Option<BytesPerMicro>>>,
    /// Bytes that each edge moves, in the order of `edges`.
    pub edge_bytes: Vec<Bytes>,
    /// Maximum number of changes of the machine from a node to the next, in topological order, lowest number first.
    #[serde(default)]
    pub splits: Option<u32>,
    /// Maximum number of threads of each machine: runs of nodes in that order.
    #[serde(default)]
    pub threads: Option<Vec<u32>>,
    /// The one machine of each node; none where it may be anywhere.
    #[serde(default)]
    pub pin: Option<Vec<Option<usize>>>,
}

impl Problem {
    /// A problem with devices and links, and nothing yet to run on them.
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

    /// The device that has the model's inputs, its outputs and all parameters.
    pub fn host(&self) -> usize {
        self.host.unwrap_or_else(|| read::default_host(&self.devices))
    }

    /// Sets the host. What a file without it means is left out of the canonical text.
    pub fn set_host(&mut self, host: usize) {
        self.host = (host != read::default_host(&self.devices)).then_some(host);
    }

    /// The tensors, whichever way the file has them. With `edges`, tensor `i` is what node `i` computes.
    pub fn all_tensors(&self) -> Vec<Tensor> {
        if let Some(tensors) = &self.tensors {
            return tensors.clone();
        }
        let tensor = |node: &Node| Tensor { from: node.id, bytes: node.output.unwrap_or(0.0), to: Vec::new() };
        let mut tensors: Vec<Tensor> = self.nodes.iter().map(tensor).collect();
        for &(from, to) in self.edges.iter().flatten() {
            tensors[from].to.push(to);
        }
        tensors
    }

    /// Bytes that each node's results take, for one input.
    pub fn output_bytes(&self) -> Vec<Bytes> {
        let mut bytes = vec![0.0; self.nodes.len()];
        for tensor in self.tensors.iter().flatten() {
            bytes[tensor.from] += tensor.bytes;
        }
        self.nodes.iter().zip(bytes).map(|(node, bytes)| node.output.unwrap_or(bytes)).collect()
    }

    /// `node 3 (conv1)`: how messages call a node.
    pub fn node_label(&self, node: usize) -> String {
        match self.nodes.get(node).and_then(|node| node.name.as_deref()) {
            Some(name) => format!("node {node} ({name})"),
            None => format!("node {node}"),
        }
    }

    /// `device 1 (gpu0)`: how messages call a device.
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
