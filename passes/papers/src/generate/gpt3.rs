//! GPT-3 on nodes of GPUs: the case study of DiviML, section VI.
//!
//! The network is that of its publication: 96 blocks of width 12288, a vocabulary of 50257, a context of 2048 tokens, 175
//! billion parameters, here in half precision. A block is five tasks:
//!
//! | task | parameters | operations per token | reads, writes (in widths per token) |
//! |---|---|---|---|
//! | qkv (norm, three products) | 3 d² | 6 d² | 1, 3 |
//! | attention (scores, softmax, sum) | – | 4 d · tokens | 3, 1 |
//! | project (product, residual) | d² | 2 d² | 2, 1 |
//! | up (norm, product, GELU) | 4 d² | 8 d² | 1, 4 |
//! | down (product, residual) | 4 d² | 8 d² | 5, 1 |
//!
//! One input is a prompt of 20 tokens that passes through the network once, to its next token: the paper's "single decoding
//! step". Times are a roofline of published peaks: a launch overhead plus the maximum of operations / tensor-core rate and
//! bytes (all parameters once, activations for each input) / memory bandwidth. Real kernels reach a fraction of both; a
//! fraction common to all tasks only scales all times.
//!
//! The machine is the preset gpt3-6x4. GPT-3 takes 350 GB and a node has 192 GB: no node holds the model alone, and six
//! nodes hold it between three and four times.

use std::collections::BTreeMap;

use serde_json::json;

use super::in_range;
use divi_planner::error::Error;
use divi_planner::problem::{Device, MOST_INPUTS, Node, Problem};
use divi_planner::units::{Bytes, BytesPerMicro, Micros};

const WIDTH: f64 = 12_288.0;
const WORDS: f64 = 50_257.0;
const PLACES: f64 = 2_048.0;
/// Bytes per element (half precision).
const BYTES: f64 = 2.0;
/// Launch overhead of a task, in microseconds.
const LAUNCH: Micros = Micros(5.0);
/// Bandwidth (bytes per microsecond) and latency: PCIe 4.0 x16 within a node, 100 Gbit/s between nodes.
const INSIDE: (BytesPerMicro, Micros) = (BytesPerMicro(32_000.0), Micros(10.0));
const BETWEEN: (BytesPerMicro, Micros) = (BytesPerMicro(12_500.0), Micros(20.0));
const MOST_BLOCKS: usize = 10_000;
const MOST_MACHINES: usize = 64;

/// GPU parameters from the data sheet.
struct Gpu {
    memory: Bytes,
    /// Half-precision operations of the tensor cores per microsecond.
    rate: f64,
    /// Memory bandwidth, in bytes per microsecond.
    bandwidth: BytesPerMicro,
}

/// The A100 PCIe card with 80 GB, and the T4.
const A100: Gpu = Gpu { memory: Bytes(80e9), rate: 312e6, bandwidth: BytesPerMicro(1_935_000.0) };
const T4: Gpu = Gpu { memory: Bytes(16e9), rate: 65e6, bandwidth: BytesPerMicro(320_000.0) };
/// GPUs of a node.
const NODE: [Gpu; 4] = [A100, A100, T4, T4];

/// Parameters of the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpt3 {
    /// Number of transformer blocks.
    pub blocks: usize,
    /// Number of nodes of four GPUs.
    pub machines: usize,
    /// Tokens of one input.
    pub tokens: u32,
    /// Number of queued inputs; by default one per GPU.
    pub inputs: u32,
    /// Batch sizes that every device supports.
    pub batch_sizes: Vec<u32>,
}

impl Default for Gpt3 {
    fn default() -> Self {
        Self { blocks: 96, machines: 6, tokens: 20, inputs: 24, batch_sizes: vec![4, 8, 12, 16] }
    }
}

/// One row of the table above.
struct Task {
    name: String,
    parameters: f64,
    /// Bytes of parameters that one launch reads.
    fetched: Bytes,
    /// Operations for one input.
    operations: f64,
    input: Bytes,
    output: Bytes,
}

/// Generates the problem.
pub fn gpt3(options: &Gpt3) -> Result<Problem, Error> {
    in_range("blocks", options.blocks, 1, MOST_BLOCKS)?;
    in_range("machines", options.machines, 1, MOST_MACHINES)?;
    in_range("tokens", options.tokens as usize, 1, PLACES as usize)?;
    in_range("inputs", options.inputs as usize, 1, MOST_INPUTS as usize)?;
    let size = NODE.len();
    let device = |id: usize| Device {
        id,
        name: format!("n{}_gpu{}", id / size, id % size),
        memory: Some(NODE[id % size].memory),
        batch_sizes: options.batch_sizes.clone(),
    };
    let devices: Vec<Device> = (0..options.machines * size).map(device).collect();
    let count = devices.len();
    let link = |from: usize, to: usize| if from / size == to / size { INSIDE } else { BETWEEN };
    let name = format!("gpt3_b{}_{}x{size}_L{}", options.blocks, options.machines, options.inputs);
    let mut problem = Problem::new(name, devices, matrix(count, |from, to| link(from, to).0));
    problem.link_latency = Some(matrix(count, |from, to| link(from, to).1));
    problem.machines = Some((0..options.machines).map(|node| (node * size..(node + 1) * size).collect()).collect());
    problem.inputs = options.inputs;
    problem.nodes = tasks(options).iter().enumerate().map(|(id, task)| node(options, id, task, count)).collect();
    problem.edges = Some(edges(options.blocks));
    problem.meta = Some(json!({"gen": "gpt3", "tokens": options.tokens, "parameters": "f16"}));
    problem.check_form()?;
    Ok(problem)
}

/// Builds the tasks: the embedding, the blocks, and the logits of the next token.
fn tasks(options: &Gpt3) -> Vec<Task> {
    let (width, tokens) = (WIDTH, f64::from(options.tokens));
    let one = Bytes(width * tokens * BYTES);
    let logits = Bytes(WORDS * BYTES);
    let task = |name: String, parameters: f64, operations: f64, (read, written): (f64, f64)| Task {
        name,
        parameters,
        fetched: Bytes(parameters * BYTES),
        operations,
        input: read * one,
        output: written * one,
    };
    // The embedding reads only the rows that it looks up.
    let embedding = task("embed".to_owned(), (WORDS + PLACES) * width, 0.0, (0.0, 1.0));
    let mut tasks = vec![Task { fetched: 2.0 * one, input: Bytes(8.0 * tokens), ..embedding }];
    let square = width * width;
    for block in 0..options.blocks {
        let product = |name: &str, squares: f64, moved: (f64, f64)| {
            task(format!("block{block}.{name}"), squares * square, 2.0 * squares * square * tokens, moved)
        };
        tasks.push(product("qkv", 3.0, (1.0, 3.0)));
        tasks.push(task(format!("block{block}.attention"), 0.0, 4.0 * width * tokens * tokens, (3.0, 1.0)));
        tasks.push(product("project", 1.0, (2.0, 1.0)));
        tasks.push(product("up", 4.0, (1.0, 4.0)));
        tasks.push(product("down", 4.0, (5.0, 1.0)));
    }
    // Only the last token has a successor. The weights are tied to the embedding's; counted again as a separate copy.
    let head = task("head".to_owned(), WORDS * width, 2.0 * WORDS * width, (1.0, 0.0));
    tasks.push(Task { output: logits, ..head });
    tasks
}

/// Builds the edges: blocks in sequence, with a residual connection around each half of a block.
fn edges(blocks: usize) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for block in 0..blocks {
        let [qkv, attention, project, up, down] = std::array::from_fn(|task| 1 + block * 5 + task);
        let before = qkv - 1;
        edges.extend([(before, qkv), (before, project), (qkv, attention), (attention, project)]);
        edges.extend([(project, up), (project, down), (up, down)]);
    }
    edges.push((blocks * 5, blocks * 5 + 1));
    edges
}

fn node(options: &Gpt3, id: usize, task: &Task, devices: usize) -> Node {
    let time = |gpu: &Gpu, size: u32| {
        let inputs = f64::from(size);
        let bytes = task.fetched + inputs * (task.input + task.output);
        let roof = Micros::max(Micros(inputs * task.operations / gpu.rate), bytes / gpu.bandwidth);
        Micros((LAUNCH + roof).0.round())
    };
    let row = |size: u32| (0..devices).map(|device| Some(time(&NODE[device % NODE.len()], size))).collect();
    let time: BTreeMap<u32, Vec<Option<Micros>>> = options.batch_sizes.iter().map(|size| (*size, row(*size))).collect();
    Node {
        id,
        name: Some(task.name.clone()),
        time,
        weight: Bytes(task.parameters * BYTES),
        input: task.input,
        output: Some(task.output),
        scratch: Bytes::ZERO,
        pin: None,
        module: None,
    }
}

/// A figure of each link; none from a device to itself.
fn matrix<T>(devices: usize, of: impl Fn(usize, usize) -> T) -> Vec<Vec<Option<T>>> {
    let row = |from: usize| (0..devices).map(|to| (from != to).then(|| of(from, to))).collect();
    (0..devices).map(row).collect()
}
