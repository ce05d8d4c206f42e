//! Randomly wired networks (DiviML, section V): a sequence of random graphs (modules) on a CPU and two GPUs.

use std::collections::BTreeMap;

use serde_json::json;

use super::graphs::{Density, Edges, graph};
use super::{Kind, MOST_NODES, in_range};
use divi_planner::error::Error;
use divi_planner::problem::{Device, MOST_INPUTS, Node, Problem};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros, short_number};

/// DiviML V: ER(0.2), WS(4, 0.75), BA(5). The paper has no block model; this one is about as dense.
const DENSITY: Density =
    Density { erdos_renyi: 0.2, watts_strogatz: (4, 0.75), barabasi_albert: 5, blocks: (2, 0.35, 0.05) };
/// PCIe 4.0 x16, in bytes per microsecond.
const BANDWIDTH: BytesPerMicro = BytesPerMicro(32_000.0);
/// Average slowdown of CPU, T4 and A100 relative to the A100 (DiviML, Table II).
const SLOWER: [f64; 3] = [7.10, 1.26, 1.0];
/// Spread of the tasks around that average.
const SPREAD: [f64; 3] = [0.93, 0.25, 0.0];
/// Share α of the time that does not grow with the batch size: t(b) = t(1) · (α + (1 − α) · b).
const FIXED_SHARE: [f64; 3] = [0.05, 0.55, 0.75];
/// Largest ratio for which tensors stay below the size limit of a problem.
const MOST_COMMUNICATION: f64 = 1e6;

/// Parameters of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Rwnn {
    /// Random graph model of a module.
    pub kind: Kind,
    /// Nodes per module.
    pub nodes: usize,
    /// Number of modules.
    pub modules: usize,
    /// Number of edges from a module to the next.
    pub channels: usize,
    /// If true (sdep), every path through a module starts at one of its inputs and ends at one of its outputs; otherwise
    /// (wdep), channels connect arbitrary nodes.
    pub strong: bool,
    /// Communication-to-computation ratio: transfer time to task time.
    pub communication: f64,
    /// Makes the A100 the fastest device for every task.
    pub dominant: bool,
    /// Number of queued inputs; if more than one, batch sizes are a quarter, a half, three quarters and all of them.
    pub inputs: u32,
    /// Seed of the random number generator.
    pub seed: u64,
}

impl Default for Rwnn {
    fn default() -> Self {
        Self {
            kind: Kind::ErdosRenyi,
            nodes: 10,
            modules: 1,
            channels: 1,
            strong: true,
            communication: 0.1,
            dominant: false,
            inputs: 1,
            seed: 1,
        }
    }
}

/// Generates the network.
pub fn rwnn(options: &Rwnn) -> Result<Problem, Error> {
    in_range("nodes", options.nodes, 1, MOST_NODES)?;
    in_range("modules", options.modules, 1, MOST_NODES)?;
    in_range("channels", options.channels, 1, options.nodes)?;
    in_range("nodes times modules", options.nodes.saturating_mul(options.modules), 1, MOST_NODES)?;
    in_range("inputs", options.inputs as usize, 1, MOST_INPUTS as usize)?;
    if !(0.0..=MOST_COMMUNICATION).contains(&options.communication) {
        let given = short_number(options.communication);
        return Err(Error::Unsupported(format!("ccr is {given}; it must be from 0 to {MOST_COMMUNICATION}")));
    }
    let mut random = Random::new(options.seed);
    let wiring = wire(options, &mut random);

    let sizes = batch_sizes(options.inputs);
    let device =
        |(id, name): (usize, &str)| Device { id, name: name.to_owned(), memory: None, batch_sizes: sizes.clone() };
    let devices: Vec<Device> = ["cpu", "t4", "a100"].into_iter().enumerate().map(device).collect();
    let bandwidth = (0..3).map(|from| (0..3).map(|to| (from != to).then_some(BANDWIDTH)).collect()).collect();
    let mut problem = Problem::new(name(options), devices, bandwidth);
    problem.inputs = options.inputs;
    problem.nodes =
        (0..wiring.count).map(|id| node(options, id, wiring.ends.contains(&id), &sizes, &mut random)).collect();
    let mut input = vec![Bytes::ZERO; wiring.count];
    for &(from, to) in &wiring.edges {
        input[to] += problem.nodes[from].output.unwrap_or_default();
    }
    for (node, read) in problem.nodes.iter_mut().zip(input) {
        // A task without predecessors reads the network's input, assumed to be as large as the task's result.
        node.input = if read > Bytes::ZERO { read } else { node.output.unwrap_or_default() };
    }
    problem.edges = Some(wiring.edges.into_iter().collect());
    problem.modules = (options.modules > 1).then_some(wiring.modules);
    problem.meta = Some(json!({
        "gen": "rwnn", "kind": options.kind.name(), "N": options.nodes, "modules": options.modules,
        "channels": options.channels, "dep": dependence(options), "seed": options.seed,
        "ccr": options.communication, "prof": if options.dominant { "dom" } else { "diverse" },
    }));
    problem.check_form()?;
    Ok(problem)
}

fn dependence(options: &Rwnn) -> &'static str {
    if options.strong { "sdep" } else { "wdep" }
}

fn name(options: &Rwnn) -> String {
    let mut name = format!(
        "rwnn_{}_N{}_m{}_c{}_{}_s{}",
        options.kind.name(),
        options.nodes,
        options.modules,
        options.channels,
        dependence(options),
        options.seed
    );
    if options.dominant {
        name.push_str("_dom");
    }
    if options.inputs > 1 {
        name.push_str(&format!("_L{}", options.inputs));
    }
    name
}

struct Wiring {
    count: usize,
    edges: Edges,
    modules: Vec<Vec<usize>>,
    /// Inputs and outputs of modules, which are short tasks.
    ends: Vec<usize>,
}

fn wire(options: &Rwnn, random: &mut Random) -> Wiring {
    let mut wiring = Wiring { count: 0, edges: Edges::new(), modules: Vec::new(), ends: Vec::new() };
    let mut outputs: Vec<usize> = Vec::new();
    for module in 0..options.modules {
        let first = wiring.count;
        let inner = graph(options.kind, options.nodes, &DENSITY, random);
        wiring.edges.extend(inner.iter().map(|(from, to)| (first + from, first + to)));
        wiring.count += options.nodes;
        let (inputs, own_outputs) = if options.strong {
            ends(options, &inner, first, &mut wiring, random)
        } else {
            let mut draw = || random.sample(options.nodes, options.channels).into_iter().map(|node| first + node);
            (draw().collect(), draw().collect())
        };
        if module > 0 {
            wiring.edges.extend(outputs.iter().copied().zip(inputs));
        }
        outputs = own_outputs;
        wiring.modules.push((first..wiring.count).collect());
    }
    wiring
}

/// Adds one input and one output per channel, so that every path through the module starts and ends at one of them.
fn ends(
    options: &Rwnn,
    inner: &Edges,
    first: usize,
    wiring: &mut Wiring,
    random: &mut Random,
) -> (Vec<usize>, Vec<usize>) {
    let sources: Vec<usize> =
        (0..options.nodes).filter(|node| !inner.iter().any(|(_, to)| to == node)).map(|node| first + node).collect();
    let sinks: Vec<usize> = (0..options.nodes)
        .filter(|node| !inner.iter().any(|(from, _)| from == node))
        .map(|node| first + node)
        .collect();
    let mut attach = |inner_ends: &[usize], wiring: &mut Wiring, edge: fn(usize, usize) -> (usize, usize)| {
        let new: Vec<usize> = (wiring.count..wiring.count + options.channels).collect();
        wiring.count += options.channels;
        wiring.ends.extend(&new);
        for &end in inner_ends {
            let always = random.below(new.len());
            for (index, &node) in new.iter().enumerate() {
                if index == always || random.chance(0.3) {
                    wiring.edges.insert(edge(node, end));
                }
            }
        }
        for &node in &new {
            // An unconnected channel node would be both a source and a sink of the module.
            let end = inner_ends[random.below(inner_ends.len())];
            let joined = inner_ends.iter().any(|end| wiring.edges.contains(&edge(node, *end)));
            if !joined {
                wiring.edges.insert(edge(node, end));
            }
        }
        new
    };
    let inputs = attach(&sources, wiring, |node, end| (node, end));
    let outputs = attach(&sinks, wiring, |node, end| (end, node));
    (inputs, outputs)
}

fn batch_sizes(inputs: u32) -> Vec<u32> {
    let mut sizes = if inputs == 1 { vec![1] } else { (1..=4).map(|quarters| inputs * quarters / 4).collect() };
    sizes.retain(|size| *size > 0);
    sizes.dedup();
    sizes
}

fn node(options: &Rwnn, id: usize, end: bool, sizes: &[u32], random: &mut Random) -> Node {
    let fastest = if end { random.between(300.0, 1200.0) } else { random.between(1000.0, 3500.0) };
    let least = if options.dominant { 1.02 } else { 0.7 };
    let mut one: Vec<f64> = Vec::with_capacity(SLOWER.len());
    for (slower, spread) in SLOWER.into_iter().zip(SPREAD) {
        let factor = slower * random.factor(spread) * if spread > 0.5 { 0.35 } else { 1.0 };
        one.push(fastest * if spread > 0.0 { factor.max(least) } else { 1.0 });
    }
    let times = |size: u32| {
        let grown = |(one, fixed): (&f64, f64)| Some(Micros((one * (fixed + (1.0 - fixed) * f64::from(size))).round()));
        one.iter().zip(FIXED_SHARE).map(grown).collect()
    };
    let time: BTreeMap<u32, Vec<Option<Micros>>> = sizes.iter().map(|size| (*size, times(*size))).collect();
    // An integral transfer time, on average the requested ratio of a task's time.
    let moving = Micros((options.communication * 2000.0 * random.factor(0.5)).round().max(1.0));
    Node {
        id,
        name: None,
        time,
        weight: Bytes(random.between(1e5, 3e6).round()),
        input: Bytes::ZERO,
        output: Some(BANDWIDTH * moving),
        scratch: Bytes::ZERO,
        pin: None,
        module: None,
    }
}
