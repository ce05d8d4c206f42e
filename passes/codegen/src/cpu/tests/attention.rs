//! Tests of attention in one kernel against naive loops.

use super::noise;
use crate::{
    cpu::CpuHooks,
    graph::{Graph, Id},
    half_precision,
    host::HostModule,
    layout::StageLayouts,
    stage::{self, Boundary},
    target::Target,
    testing::{assert_close, floats},
};
use divi_onnx::{Attr, DType, Tensor};

/// Sizes of attention.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    batch: i64,
    heads: i64,
    queries: i64,
    keys: i64,
    depth: i64,
    columns: i64,
}

/// Addend of the scores.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mask {
    Absent,
    /// One number for each key of a batch.
    Keys,
    /// One number for each query and key.
    Causal,
    /// One number for each query.
    Queries,
}

impl Mask {
    fn shape(self, sizes: &Sizes) -> Vec<i64> {
        match self {
            Self::Absent => vec![],
            Self::Keys => vec![sizes.batch, 1, 1, sizes.keys],
            Self::Causal => vec![sizes.queries, sizes.keys],
            Self::Queries => vec![sizes.heads, sizes.queries, 1],
        }
    }

    /// Returns the addend of a score.
    fn at(self, [batch, head, query, key]: [i64; 4], sizes: &Sizes) -> f64 {
        match self {
            Self::Absent => 0.0,
            Self::Keys if key % 5 == batch => f64::NEG_INFINITY,
            Self::Causal if key > query => -1e30,
            Self::Queries => (head * sizes.queries + query) as f64 / 8.0,
            _ => 0.0,
        }
    }

    fn tensor(self, sizes: &Sizes) -> Vec<f64> {
        let shape = self.shape(sizes);
        let axes: Vec<i64> = [vec![1; 4 - shape.len()], shape].concat();
        let count = axes.iter().product();
        let place = |mut number: i64| {
            let mut place = [0; 4];
            for axis in (0..4).rev() {
                (place[axis], number) = (number % axes[axis], number / axes[axis]);
            }
            place
        };
        (0..count).map(|number| self.at(place(number), sizes)).collect()
    }
}

const SCALE: f64 = 0.375;

impl Sizes {
    /// Returns `[batch, length, heads * size]` as `[batch, heads, length, size]`, or with the last two axes in the other order.
    fn heads(&self, graph: &mut Graph, id: Id, length: i64, size: i64, is_transposed: bool, dtype: DType) -> Id {
        let &Self { batch, heads, .. } = self;
        let shape = graph.constant(Tensor::from_ints(DType::I64, vec![4], &[batch, length, heads, size]).unwrap());
        let split = graph.apply("Reshape", &[id, shape], &[], dtype, &[batch, length, heads, size]);
        let (order, shape) = match is_transposed {
            false => ([0, 2, 1, 3], [batch, heads, length, size]),
            true => ([0, 2, 3, 1], [batch, heads, size, length]),
        };
        graph.apply("Transpose", &[split], &[("perm", Attr::Ints(order.to_vec()))], dtype, &shape)
    }

    /// Returns the graph of attention on `[batch, length, heads * size]` tensors.
    fn graph(&self, mask: Mask, dtype: DType) -> Graph {
        let &Self { batch, heads, queries, keys, depth, columns } = self;
        let mut graph = Graph::default();
        let q = graph.input(dtype, &[batch, queries, heads * depth]);
        let k = graph.input(dtype, &[batch, keys, heads * depth]);
        let v = graph.input(dtype, &[batch, keys, heads * columns]);
        let q = self.heads(&mut graph, q, queries, depth, false, dtype);
        let k = self.heads(&mut graph, k, keys, depth, true, dtype);
        let v = self.heads(&mut graph, v, keys, columns, false, dtype);
        let shape = [batch, heads, queries, keys];
        let scale = graph.constant(Tensor::from_floats(dtype, vec![], &[SCALE]).unwrap());
        let mut scores = graph.apply("MatMul", &[q, k], &[], dtype, &shape);
        scores = graph.apply("Mul", &[scores, scale], &[], dtype, &shape);
        if dtype != DType::F32 {
            scores = graph.apply("Cast", &[scores], &[("to", Attr::Int(DType::F32.code()))], DType::F32, &shape);
        }
        if mask != Mask::Absent {
            let addend = graph.constant(floats(&mask.shape(self), &mask.tensor(self)));
            scores = graph.apply("Add", &[addend, scores], &[], DType::F32, &shape);
        }
        let mut shares = graph.apply("Softmax", &[scores], &[("axis", Attr::Int(-1))], DType::F32, &shape);
        if dtype != DType::F32 {
            shares = graph.apply("Cast", &[shares], &[("to", Attr::Int(dtype.code()))], dtype, &shape);
        }
        let rows = graph.apply("MatMul", &[shares, v], &[], dtype, &[batch, heads, queries, columns]);
        let order = [("perm", Attr::Ints(vec![0, 2, 1, 3]))];
        let merged = graph.apply("Transpose", &[rows], &order, dtype, &[batch, queries, heads, columns]);
        let whole = Tensor::from_ints(DType::I64, vec![3], &[batch, queries, heads * columns]).unwrap();
        let whole = graph.constant(whole);
        let result = graph.apply("Reshape", &[merged, whole], &[], dtype, &[batch, queries, heads * columns]);
        graph.outputs = vec![result];
        graph
    }

    fn naive(&self, mask: Mask, [q, k, v]: [&[f64]; 3]) -> Vec<f64> {
        let &Self { batch, heads, queries, keys, depth, columns } = self;
        let mut result = vec![0.0; (batch * queries * heads * columns) as usize];
        for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
            let at = |length: i64, row: i64, size: i64, i: i64| (((b * length + row) * heads + h) * size + i) as usize;
            for query in 0..queries {
                let score = |key: i64| {
                    let terms = (0..depth).map(|i| q[at(queries, query, depth, i)] * k[at(keys, key, depth, i)]);
                    SCALE * terms.sum::<f64>() + mask.at([b, h, query, key], self)
                };
                let scores: Vec<f64> = (0..keys).map(score).collect();
                let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let terms: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
                let sum: f64 = terms.iter().sum();
                for column in 0..columns {
                    let products = (0..keys).map(|key| terms[key as usize] * v[at(keys, key, columns, column)]);
                    result[at(queries, query, columns, column)] = products.sum::<f64>() / sum;
                }
            }
        }
        result
    }

    fn inputs(&self, dtype: DType) -> [Tensor; 3] {
        let &Self { batch, heads, queries, keys, depth, columns } = self;
        let tensor = |length: i64, size: i64, seed: u64| {
            let values: Vec<f64> = noise(batch * length * heads * size, seed).iter().map(|x| 4.0 * x).collect();
            Tensor::from_floats(dtype, vec![batch, length, heads * size], &values).unwrap()
        };
        [tensor(queries, depth, 3), tensor(keys, depth, 4), tensor(keys, columns, 5)]
    }
}

const CASES: [(Sizes, Mask); 9] = [
    (Sizes { batch: 1, heads: 2, queries: 48, keys: 48, depth: 32, columns: 32 }, Mask::Absent),
    (Sizes { batch: 2, heads: 3, queries: 33, keys: 65, depth: 24, columns: 40 }, Mask::Keys),
    (Sizes { batch: 1, heads: 2, queries: 70, keys: 70, depth: 64, columns: 64 }, Mask::Causal),
    (Sizes { batch: 2, heads: 2, queries: 7, keys: 3, depth: 5, columns: 3 }, Mask::Queries),
    (Sizes { batch: 1, heads: 1, queries: 1, keys: 77, depth: 80, columns: 17 }, Mask::Absent),
    // Several blocks of keys, the last of them ragged.
    (Sizes { batch: 1, heads: 2, queries: 35, keys: 1111, depth: 16, columns: 48 }, Mask::Keys),
    (Sizes { batch: 1, heads: 1, queries: 700, keys: 700, depth: 8, columns: 8 }, Mask::Causal),
    (Sizes { batch: 1, heads: 1, queries: 3, keys: 1, depth: 1, columns: 1 }, Mask::Absent),
    (Sizes { batch: 1, heads: 2, queries: 5, keys: 513, depth: 128, columns: 100 }, Mask::Queries),
];

/// Returns the number of calls of the compiled graph.
fn call_count(graph: &Graph, cpu: &str) -> usize {
    let layouts = StageLayouts::row_major(graph.inputs.len(), graph.outputs.len());
    let boundary = Boundary { layouts: &layouts, is_streamed: &vec![false; graph.outputs.len()] };
    let mut host = HostModule::new(&Target::named(cpu).unwrap(), half_precision::has_bf16(graph));
    stage::lower(graph.clone(), boundary, &CpuHooks, &mut host, None).unwrap().calls.calls.len()
}

#[test]
fn attention_is_one_kernel() {
    for (sizes, mask) in CASES {
        let inputs = sizes.inputs(DType::F32);
        let values = inputs.each_ref().map(|tensor| tensor.floats().unwrap());
        let expected = sizes.naive(mask, values.each_ref().map(|values| &values[..]));
        let graph = sizes.graph(mask, DType::F32);
        for cpu in ["native", "x86-64-v3"] {
            // Keys are transposed first.
            assert_eq!(call_count(&graph, cpu), 2, "{sizes:?}");
            let found = graph.run(cpu, &inputs).unwrap();
            println!("{sizes:?} {mask:?} {cpu}");
            assert_close(&found[0].floats().unwrap(), &expected, 1e-5);
        }
    }
}

/// On tile registers where the processor has them, or on emulated ones. Probabilities and the result are rounded.
#[test]
fn attention_of_half_precision() {
    for (sizes, mask) in CASES {
        for dtype in [DType::BF16, DType::F16] {
            let inputs = sizes.inputs(dtype);
            let values = inputs.each_ref().map(|tensor| tensor.floats().unwrap());
            let expected = sizes.naive(mask, values.each_ref().map(|values| &values[..]));
            let graph = sizes.graph(mask, dtype);
            let is_large = sizes.queries * sizes.keys * sizes.depth > 300_000;
            for cpu in ["native", "x86-64-v3", "emulated native"] {
                let found = match cpu.strip_prefix("emulated ") {
                    Some(_) if is_large || dtype == DType::F16 => continue,
                    Some(cpu) => graph.run_with_emulated_tiles(cpu, &inputs),
                    None => graph.run(cpu, &inputs),
                };
                let tolerance = if dtype == DType::BF16 { 1.2e-2 } else { 2e-3 };
                println!("{sizes:?} {mask:?} {dtype} {cpu}");
                assert_close(&found.unwrap()[0].floats().unwrap(), &expected, tolerance);
            }
        }
    }
}

/// Rows that are masked completely by infinities are NaN, as in the separate operators; others are not affected.
#[test]
fn rows_without_a_score_are_nan() {
    let sizes = Sizes { batch: 2, heads: 1, queries: 2, keys: 600, depth: 4, columns: 4 };
    let mut graph = sizes.graph(Mask::Keys, DType::F32);
    let addends: Vec<f64> = (0..1200).map(|i| if i < 600 || i == 1199 { f64::NEG_INFINITY } else { 0.0 }).collect();
    let mask = graph.nodes.iter().find(|node| node.op.name() == "Add").unwrap().inputs[0].unwrap();
    let tensor = floats(&[2, 1, 1, 600], &addends);
    let other = graph.constant(tensor);
    graph.values[mask.0] = graph.values[other.0].clone();
    let found = graph.run("native", &sizes.inputs(DType::F32)).unwrap()[0].floats().unwrap();
    assert!(found[..8].iter().all(|x| x.is_nan()) && found[8..].iter().all(|x| x.is_finite()), "{found:?}");
}

/// Near misses, which are lowered operator by operator: a Softmax that is used twice, and a product of other values.
#[test]
fn other_uses_of_scores_are_kept() {
    let (sizes, mask) = CASES[0];
    let inputs = sizes.inputs(DType::F32);
    let values = inputs.each_ref().map(|tensor| tensor.floats().unwrap());
    let expected = sizes.naive(mask, values.each_ref().map(|values| &values[..]));
    let mut graph = sizes.graph(mask, DType::F32);
    let shares = graph.nodes.iter().find(|node| node.op.name() == "Softmax").unwrap().outputs[0].unwrap();
    graph.outputs.push(shares);
    assert!(call_count(&graph, "native") > 2);
    let found = graph.run("native", &inputs).unwrap();
    assert_close(&found[0].floats().unwrap(), &expected, 1e-5);
    let sum: f64 = found[1].floats().unwrap()[..48].iter().sum();
    assert!((sum - 1.0).abs() < 1e-5);
}
