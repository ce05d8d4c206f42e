//! GPT-3 on nodes of GPUs: the case study of DiviML's section VI.
//!
//! The network is that of its publication: 96 blocks of width 12288, 50257 words, 2048 places, 175 thousand million
//! parameters, here as half-precision numbers. A block is five tasks, each with what is computed together anyway:
//!
//! | task | parameters | operations a token | reads, writes (in widths a token) |
//! |---|---|---|---|
//! | qkv (norm, three products) | 3 d² | 6 d² | 1, 3 |
//! | attention (scores, softmax, sum) | – | 4 d · tokens | 3, 1 |
//! | project (product, residual) | d² | 2 d² | 2, 1 |
//! | up (norm, product, GELU) | 4 d² | 8 d² | 1, 4 |
//! | down (product, residual) | 4 d² | 8 d² | 5, 1 |
//!
//! One input is a prompt of 20 tokens that goes through the network once, to its next word: the paper's "single decoding
//! step". Times are a roofline of published peaks: a launch, and then the longer of operations by the rate of the tensor
//! cores and bytes (all parameters once, activations for each input) by the bandwidth of the memory. Real kernels reach a
//! share of both; as long as it is the same share, that only scales all times.
//!
//! The machine is the preset gpt3-6x4. GPT-3 takes 350 GB, a node has 192 GB: no node holds it alone, six hold it between
//! three and four times.

use std::collections::BTreeMap;

use serde_json::json;

use super::in_range;
use divi_planner::error::Error;
use divi_planner::problem::{Device, MOST_INPUTS, Node, Problem};
use divi_planner::units::{Bytes, Micros};

const WIDTH: f64 = 12_288.0;
const WORDS: f64 = 50_257.0;
const PLACES: f64 = 2_048.0;
/// Half precision.
const BYTES: f64 = 2.0;
/// What it takes to start a task, in microseconds.
const LAUNCH: Micros = 5.0;
/// Bytes a microsecond, and microseconds: PCIe 4.0 x16 within a node, 100 Gbit/s between nodes.
const INSIDE: (f64, Micros) = (32_000.0, 10.0);
const BETWEEN: (f64, Micros) = (12_500.0, 20.0);
const MOST_BLOCKS: usize = 10_000;
const MOST_MACHINES: usize = 64;

/// A GPU by its data sheet.
struct Gpu {
    memory: Bytes,
    /// Half-precision operations of the tensor cores and bytes of memory, in a microsecond.
    rate: f64,
    bandwidth: f64,
}

/// The A100 as a PCIe card with 80 GB, and the T4.
const A100: Gpu = Gpu { memory: 80e9, rate: 312e6, bandwidth: 1_935_000.0 };
const T4: Gpu = Gpu { memory: 16e9, rate: 65e6, bandwidth: 320_000.0 };
/// What a node has.
const NODE: [Gpu; 4] = [A100, A100, T4, T4];

/// What to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpt3 {
    pub blocks: usize,
    /// Nodes of four GPUs.
    pub machines: usize,
    /// Of one input.
    pub tokens: u32,
    /// Queued inputs: by default one a GPU.
    pub inputs: u32,
    pub batch_sizes: Vec<u32>,
}

impl Default for Gpt3 {
    fn default() -> Self {
        Self { blocks: 96, machines: 6, tokens: 20, inputs: 24, batch_sizes: vec![4, 8, 12, 16] }
    }
}

/// A task as the table above has it.
struct Task {
    name: String,
    parameters: f64,
    /// Bytes of parameters that one launch reads.
    fetched: Bytes,
    /// For one input.
    operations: f64,
    input: Bytes,
    output: Bytes,
}

/// Makes the problem.
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
    let matrix = |part: fn((f64, f64)) -> f64| -> Vec<Vec<Option<f64>>> {
        let row = |from: usize| (0..count).map(|to| (from != to).then(|| part(link(from, to)))).collect();
        (0..count).map(row).collect()
    };
    let name = format!("gpt3_b{}_{}x{size}_L{}", options.blocks, options.machines, options.inputs);
    let mut problem = Problem::new(name, devices, matrix(|link| link.0));
    problem.link_latency = Some(matrix(|link| link.1));
    problem.machines = Some((0..options.machines).map(|node| (node * size..(node + 1) * size).collect()).collect());
    problem.inputs = options.inputs;
    problem.nodes = tasks(options).iter().enumerate().map(|(id, task)| node(options, id, task, count)).collect();
    problem.edges = Some(edges(options.blocks));
    problem.meta = Some(json!({"gen": "gpt3", "tokens": options.tokens, "parameters": "f16"}));
    problem.check_form()?;
    Ok(problem)
}

/// The embedding, the blocks, and the next word's logits.
fn tasks(options: &Gpt3) -> Vec<Task> {
    let (width, tokens) = (WIDTH, f64::from(options.tokens));
    let one = width * tokens * BYTES;
    let logits = WORDS * BYTES;
    let task = |name: String, parameters: f64, operations: f64, (read, written): (f64, f64)| Task {
        name,
        parameters,
        fetched: parameters * BYTES,
        operations,
        input: read * one,
        output: written * one,
    };
    // An embedding looks up the rows that it needs.
    let embedding = task("embed".to_owned(), (WORDS + PLACES) * width, 0.0, (0.0, 1.0));
    let mut tasks = vec![Task { fetched: 2.0 * one, input: 8.0 * tokens, ..embedding }];
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
    // Only the last token has a next word. The words' table is the embedding's: a second copy where both are apart.
    let head = task("head".to_owned(), WORDS * width, 2.0 * WORDS * width, (1.0, 0.0));
    tasks.push(Task { output: logits, ..head });
    tasks
}

/// Blocks follow each other; what enters one half of a block is added to what leaves it.
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
        (LAUNCH + f64::max(inputs * task.operations / gpu.rate, bytes / gpu.bandwidth)).round()
    };
    let row = |size: u32| (0..devices).map(|device| Some(time(&NODE[device % NODE.len()], size))).collect();
    let time: BTreeMap<u32, Vec<Option<Micros>>> = options.batch_sizes.iter().map(|size| (*size, row(*size))).collect();
    Node {
        id,
        name: Some(task.name.clone()),
        time,
        weight: task.parameters * BYTES,
        input: task.input,
        output: Some(task.output),
        scratch: 0.0,
        pin: None,
        module: None,
    }
}
