//! Conversion of graphs in the JSON format of EfficientMIP ("Efficient Algorithms for Device Placement of DNN Graph
//! Operators", NeurIPS 2020) to problems.
//!
//! The format is an object with `maxSizePerFPGA` (bytes of an accelerator), `maxFPGAs`, `maxCPUs`, `nodes` and `edges`.
//! A node has `id` (any integer), `supportedOnFpga` (boolean or 0/1), `cpuLatency` and `fpgaLatency` (milliseconds),
//! and optionally `size` (bytes), `colorClass` (nodes of one class share a device), `isBackwardNode` and `name`. An edge
//! has `sourceId`, `destId` and `cost`: the milliseconds to transfer the source's result between an accelerator and the
//! CPU's memory, equal on all edges of a source. Other keys are ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::json;

use divi_planner::error::{Error, Finding};
use divi_planner::problem::{Device, Node, Pipeline, Problem};
use divi_planner::units::{Bytes, BytesPerMicro, Micros, number};

const FORMAT: &str = "a graph of EfficientMIP";
const MICROS_PER_MILLI: f64 = 1000.0;
/// The format has no bandwidth: a result has as many bytes as its transfer to or from the CPU takes microseconds.
const CPU_BANDWIDTH: BytesPerMicro = BytesPerMicro(1.0);
/// Upper limit on the number of devices; the bandwidth matrix is quadratic in it.
const MOST_DEVICES: u32 = 1024;

/// Options of a conversion.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// Name of the resulting problem.
    pub name: String,
    /// Number of CPU devices, each with unlimited memory; `None`: one if the graph has any.
    pub cpus: Option<u32>,
    /// Turns color classes into co-location groups.
    pub colocate: bool,
}

#[derive(Deserialize)]
struct Graph {
    #[serde(rename = "maxSizePerFPGA")]
    accelerator_memory: Bytes,
    #[serde(rename = "maxFPGAs")]
    accelerators: u32,
    #[serde(rename = "maxCPUs")]
    cpus: u32,
    nodes: Vec<Operator>,
    edges: Vec<Edge>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operator {
    id: i64,
    #[serde(default)]
    name: Option<String>,
    #[serde(deserialize_with = "flag")]
    supported_on_fpga: bool,
    #[serde(rename = "cpuLatency")]
    cpu_latency_ms: f64,
    #[serde(rename = "fpgaLatency")]
    accelerator_latency_ms: f64,
    #[serde(default)]
    size: Bytes,
    #[serde(default)]
    color_class: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Edge {
    source_id: i64,
    dest_id: i64,
    #[serde(rename = "cost")]
    cost_ms: f64,
}

/// Converts a graph to a problem; times and transfers are rounded to whole microseconds.
///
/// `output` is the transfer time to or from the CPU, so that bandwidth is 1. A transfer between accelerators goes through
/// the CPU's memory and takes twice as long: bandwidth 0.5.
pub fn convert(text: &str, conversion: &Conversion) -> Result<Problem, Error> {
    let graph: Graph = divi_planner::json::read(text, FORMAT)?;
    let cpus = conversion.cpus.unwrap_or(graph.cpus.min(1));
    if graph.accelerators.saturating_add(cpus) > MOST_DEVICES {
        let message = format!("{} accelerators and {cpus} CPUs; at most {MOST_DEVICES} in all", graph.accelerators);
        return Err(Error::Problem(vec![Finding::new("maxFPGAs", message)]));
    }
    let (accelerators, cpus) = (graph.accelerators as usize, cpus as usize);
    let position = positions(&graph)?;
    let (edges, output) = edges(&graph, &position)?;

    let memory = |device: usize| (device < accelerators).then_some(graph.accelerator_memory);
    let device = |id: usize| {
        let name = if id < accelerators { format!("acc{id}") } else { format!("cpu{}", id - accelerators) };
        Device { id, name, memory: memory(id), batch_sizes: vec![1] }
    };
    let devices: Vec<Device> = (0..accelerators + cpus).map(device).collect();
    let link = |from: usize, to: usize| match (from == to, from < accelerators && to < accelerators) {
        (true, _) => None,
        (false, true) => Some(CPU_BANDWIDTH / 2.0),
        (false, false) => Some(CPU_BANDWIDTH),
    };
    let count = devices.len();
    let bandwidth = (0..count).map(|from| (0..count).map(|to| link(from, to)).collect()).collect();

    let mut problem = Problem::new(conversion.name.clone(), devices, bandwidth);
    // Devices are numbered accelerators first, then CPUs.
    problem.set_host(if cpus > 0 { accelerators } else { 0 });
    problem.nodes = graph
        .nodes
        .iter()
        .enumerate()
        .map(|(id, operator)| {
            let on = |device: usize| match (device < accelerators, operator.supported_on_fpga) {
                (true, true) => Some(micros(operator.accelerator_latency_ms)),
                (true, false) => None,
                (false, _) => Some(micros(operator.cpu_latency_ms)),
            };
            Node {
                id,
                name: operator.name.clone(),
                time: BTreeMap::from([(1, (0..count).map(on).collect())]),
                weight: operator.size,
                input: Bytes::ZERO,
                output: Some(CPU_BANDWIDTH * output[id]),
                scratch: Bytes::ZERO,
                pin: None,
                module: None,
            }
        })
        .collect();
    problem.edges = Some(edges);
    if conversion.colocate {
        problem.colocate = Some(classes(&graph));
    }
    if graph.accelerators > 0 {
        let work = graph.nodes.iter().map(|operator| micros(operator.accelerator_latency_ms)).collect();
        problem.mtpp = Some(Pipeline { work, k: vec![graph.accelerators], bandwidth: CPU_BANDWIDTH, memory: None });
    }
    problem.meta = Some(json!({"gen": "convert", "format": "EfficientMIP"}));
    problem.check_form()?;
    Ok(problem)
}

fn micros(milliseconds: f64) -> Micros {
    Micros((milliseconds * MICROS_PER_MILLI).round())
}

/// Maps node ids to indices.
fn positions(graph: &Graph) -> Result<BTreeMap<i64, usize>, Error> {
    let mut position = BTreeMap::new();
    let mut findings = Vec::new();
    for (index, operator) in graph.nodes.iter().enumerate() {
        if let Some(other) = position.insert(operator.id, index) {
            findings.push(Finding::new(
                format!("nodes[{index}]"),
                format!("id {} is already used by nodes[{other}]", operator.id),
            ));
        }
    }
    if findings.is_empty() { Ok(position) } else { Err(Error::Problem(findings)) }
}

/// Edges between node indices, sorted and unique, and the transfer time of each node's result to or from the CPU.
type Wiring = (Vec<(usize, usize)>, Vec<Micros>);

fn edges(graph: &Graph, position: &BTreeMap<i64, usize>) -> Result<Wiring, Error> {
    let mut findings = Vec::new();
    let mut cost_ms: Vec<Option<f64>> = vec![None; graph.nodes.len()];
    let mut edges = Vec::new();
    for (index, edge) in graph.edges.iter().enumerate() {
        let mut wrong = |message: String| findings.push(Finding::new(format!("edges[{index}]"), message));
        let (Some(&from), Some(&to)) = (position.get(&edge.source_id), position.get(&edge.dest_id)) else {
            let missing = if position.contains_key(&edge.source_id) { edge.dest_id } else { edge.source_id };
            wrong(format!("unknown node id {missing}"));
            continue;
        };
        edges.push((from, to));
        match cost_ms[from] {
            None => cost_ms[from] = Some(edge.cost_ms),
            Some(other) if (other - edge.cost_ms).abs() <= 1e-6 * other.abs() => {}
            Some(other) => wrong(format!(
                "costs {}, but another edge of node {} costs {}: a result has one size",
                number(edge.cost_ms),
                edge.source_id,
                number(other)
            )),
        }
    }
    if !findings.is_empty() {
        return Err(Error::Problem(findings));
    }
    edges.sort_unstable();
    edges.dedup();
    Ok((edges, cost_ms.into_iter().map(|cost| micros(cost.unwrap_or(0.0))).collect()))
}

/// Color classes of at least two nodes, sorted by first node.
fn classes(graph: &Graph) -> Vec<Vec<usize>> {
    let mut members: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (index, operator) in graph.nodes.iter().enumerate() {
        if let Some(class) = operator.color_class {
            members.entry(class).or_default().push(index);
        }
    }
    let mut classes: Vec<Vec<usize>> = members.into_values().filter(|class| class.len() > 1).collect();
    classes.sort_unstable();
    classes
}

/// Deserializes `true`, `false`, 1 or 0.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected true, false, 1 or 0")]
    enum Flag {
        Boolean(bool),
        Number(f64),
    }
    Ok(match Flag::deserialize(deserializer)? {
        Flag::Boolean(flag) => flag,
        Flag::Number(number) => number != 0.0,
    })
}
