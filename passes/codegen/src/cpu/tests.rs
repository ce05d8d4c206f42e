//! Tests of fast kernels against naive loops.

mod attention;
mod half_precision;

use super::CpuHooks;
use crate::{
    emit::Operation,
    graph::{Graph, Id},
    host::HostModule,
    layout::{Blocked, Halo, Layout, StageLayouts},
    slow_operators::SlowNode,
    stage::{self, Boundary},
    target::Target,
    testing::{floats, run},
};
use divi_onnx::{Attr, DType, Tensor};

/// Returns pseudorandom numbers in [-0.5, 0.5).
fn noise(count: i64, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / (1_u64 << 24) as f64 - 0.5
    };
    (0..count).map(|_| next()).collect()
}

/// Asserts that elements agree up to a small fraction of the largest one.
fn near(actual: &Tensor, expected: &[f64], what: &str) {
    let actual = actual.floats().unwrap();
    assert_eq!(actual.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(1e-3, |largest: f64, value| largest.max(value.abs()));
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert!(
            (a - e).abs() <= 2e-6 * largest * 10.0 || a.is_nan() && e.is_nan(),
            "{what}: element {i} is {a}, not {e}"
        );
    }
}

/// Parameters of a convolution.
#[derive(Clone, Copy, Debug)]
struct Shape {
    batch: i64,
    channels: i64,
    image: (i64, i64),
    filters: i64,
    groups: i64,
    kernel: (i64, i64),
    strides: (i64, i64),
    dilations: (i64, i64),
    pads: [i64; 4],
}

impl Shape {
    fn output(&self) -> (i64, i64) {
        let size = |image: i64, kernel: i64, stride: i64, dilation: i64, pads: i64| {
            (image + pads - dilation * (kernel - 1) - 1) / stride + 1
        };
        let [top, left, bottom, right] = self.pads;
        (
            size(self.image.0, self.kernel.0, self.strides.0, self.dilations.0, top + bottom),
            size(self.image.1, self.kernel.1, self.strides.1, self.dilations.1, left + right),
        )
    }

    fn weights(&self) -> [i64; 4] {
        [self.filters, self.channels / self.groups, self.kernel.0, self.kernel.1]
    }

    fn naive(&self, input: &[f64], weights: &[f64], bias: &[f64]) -> Vec<f64> {
        let (height, width) = self.output();
        let group_channels = self.channels / self.groups;
        let mut result = vec![];
        for n in 0..self.batch {
            for f in 0..self.filters {
                let group = f / (self.filters / self.groups);
                for y in 0..height {
                    for x in 0..width {
                        let mut sum = bias[f as usize];
                        for c in 0..group_channels {
                            for ky in 0..self.kernel.0 {
                                for kx in 0..self.kernel.1 {
                                    let row = y * self.strides.0 + ky * self.dilations.0 - self.pads[0];
                                    let column = x * self.strides.1 + kx * self.dilations.1 - self.pads[1];
                                    if row < 0 || row >= self.image.0 || column < 0 || column >= self.image.1 {
                                        continue;
                                    }
                                    let channel = n * self.channels + group * group_channels + c;
                                    let at = (channel * self.image.0 + row) * self.image.1 + column;
                                    let weight = ((f * group_channels + c) * self.kernel.0 + ky) * self.kernel.1 + kx;
                                    sum += input[at as usize] * weights[weight as usize];
                                }
                            }
                        }
                        result.push(sum);
                    }
                }
            }
        }
        result
    }

    /// Adds the convolution to a graph.
    fn apply(&self, graph: &mut Graph, input: Id, weights: &[f64], bias: &[f64]) -> Id {
        let weights = graph.constant(floats(&self.weights(), weights));
        let bias = graph.constant(floats(&[self.filters], bias));
        self.apply_to(graph, input, weights, bias)
    }

    fn apply_to(&self, graph: &mut Graph, input: Id, weights: Id, bias: Id) -> Id {
        let (height, width) = self.output();
        let pair = |(a, b): (i64, i64)| Attr::Ints(vec![a, b]);
        let attributes = [
            ("group", Attr::Int(self.groups)),
            ("strides", pair(self.strides)),
            ("dilations", pair(self.dilations)),
            ("pads", Attr::Ints(self.pads.to_vec())),
        ];
        let shape = [self.batch, self.filters, height, width];
        graph.apply("Conv", &[input, weights, bias], &attributes, DType::F32, &shape)
    }
}

const PLAIN: Shape = Shape {
    batch: 1,
    channels: 32,
    image: (9, 11),
    filters: 32,
    groups: 1,
    kernel: (3, 3),
    strides: (1, 1),
    dilations: (1, 1),
    pads: [1, 1, 1, 1],
};

/// Returns random convolutions with ragged edges, most of them in groups.
fn random_shapes(count: u64) -> impl Iterator<Item = Shape> {
    (0..count).map(|seed| {
        let numbers = noise(16, 1000 + seed);
        let below = |i: usize, limit: i64| ((numbers[i] + 0.5) * limit as f64) as i64 % limit;
        let group = [1, 2, 3, 4, 5, 8, 12, 16][below(0, 8) as usize];
        let groups = 1 + below(1, 9);
        let filters = groups * if below(2, 3) == 0 { 1 + below(3, 9) } else { group };
        let kernel = (1 + below(4, 4), 1 + below(5, 4));
        let dilations = (1 + below(6, 2), 1 + below(7, 2));
        let pads = [8, 9, 10, 11].map(|i| below(i, 3));
        // The image is at least as large as the window.
        let image =
            ((kernel.0 - 1) * dilations.0 + 1 + below(12, 20), (kernel.1 - 1) * dilations.1 + 1 + below(13, 20));
        let strides = (1 + below(14, 2), 1 + below(15, 3));
        Shape {
            batch: 1 + below(2, 2),
            channels: groups * group,
            image,
            filters,
            groups,
            kernel,
            strides,
            dilations,
            pads,
        }
    })
}

#[test]
fn convolutions_of_all_kinds() {
    let cases = [
        PLAIN,
        Shape { batch: 2, kernel: (1, 1), pads: [0; 4], ..PLAIN },
        Shape { channels: 3, filters: 24, kernel: (7, 7), strides: (2, 2), pads: [3; 4], image: (23, 21), ..PLAIN },
        Shape { channels: 24, filters: 40, ..PLAIN },
        Shape { channels: 17, filters: 5, strides: (2, 1), pads: [0, 1, 2, 0], ..PLAIN },
        Shape { channels: 64, filters: 96, groups: 2, ..PLAIN },
        Shape { channels: 48, filters: 48, groups: 48, strides: (2, 2), ..PLAIN },
        Shape { channels: 20, filters: 20, groups: 20, kernel: (5, 5), pads: [2; 4], batch: 3, ..PLAIN },
        Shape { dilations: (2, 3), pads: [2, 3, 2, 3], ..PLAIN },
        Shape { kernel: (1, 7), pads: [0, 3, 0, 3], filters: 80, image: (17, 17), ..PLAIN },
        Shape { channels: 128, filters: 512, kernel: (1, 1), strides: (2, 2), pads: [0; 4], image: (7, 7), ..PLAIN },
        Shape { channels: 160, filters: 160, image: (7, 7), batch: 2, ..PLAIN },
        Shape { channels: 40, filters: 40, groups: 5, strides: (2, 1), batch: 2, ..PLAIN },
        // Squares of Winograd's algorithm: parts of the channels, a narrow last panel, odd sizes, several images and blocks.
        Shape { channels: 208, filters: 80, image: (15, 14), batch: 2, ..PLAIN },
        Shape { channels: 80, filters: 48, image: (33, 29), pads: [0, 2, 1, 0], ..PLAIN },
        Shape { channels: 16, filters: 33, image: (24, 80), ..PLAIN },
        Shape { channels: 24, filters: 24, groups: 6, dilations: (2, 1), pads: [2, 1, 0, 3], ..PLAIN },
        Shape { channels: 12, filters: 12, groups: 6, kernel: (1, 1), pads: [0; 4], image: (30, 31), ..PLAIN },
    ];
    for (i, case) in cases.into_iter().chain(random_shapes(24)).enumerate() {
        let input = noise(case.batch * case.channels * case.image.0 * case.image.1, i as u64 + 1);
        let weights = noise(case.weights().iter().product(), i as u64 + 100);
        let bias = noise(case.filters, i as u64 + 200);
        let shape = [case.batch, case.channels, case.image.0, case.image.1];
        let mut graph = Graph::default();
        let x = graph.input(DType::F32, &shape);
        let y = case.apply(&mut graph, x, &weights, &bias);
        graph.outputs = vec![y];
        let expected = case.naive(&input, &weights, &bias);
        for cpu in ["native", "x86-64-v3"] {
            let outputs = graph.run(cpu, &[floats(&shape, &input)]).unwrap();
            near(&outputs[0], &expected, &format!("{case:?} on {cpu}"));
        }
    }
}

#[test]
fn residual_blocks_use_blocked_layouts() {
    // Two convolutions with a residual and an activation. The halo of the first result is read only by the second convolution.
    let case = Shape { channels: 40, filters: 40, ..PLAIN };
    let shape = [1, 40, 9, 11];
    let input = noise(40 * 99, 1);
    let (w1, w2) = (noise(40 * 40 * 9, 2), noise(40 * 40 * 9, 3));
    let bias = noise(40, 4);
    let scale = noise(40, 5);
    let mut graph = Graph::default();
    let x = graph.input(DType::F32, &shape);
    let first = case.apply(&mut graph, x, &w1, &bias);
    let relu = graph.apply("Relu", &[first], &[], DType::F32, &shape);
    let second = case.apply(&mut graph, relu, &w2, &bias);
    let sum = graph.apply("Add", &[second, relu], &[], DType::F32, &shape);
    let factor = graph.constant(floats(&[40, 1, 1], &scale));
    let scaled = graph.apply("Mul", &[sum, factor], &[], DType::F32, &shape);
    let gate = graph.apply("Sigmoid", &[scaled], &[], DType::F32, &shape);
    let swish = graph.apply("Mul", &[scaled, gate], &[], DType::F32, &shape);
    graph.outputs = vec![swish, relu];
    let a: Vec<_> = case.naive(&input, &w1, &bias).into_iter().map(|v| v.max(0.0)).collect();
    let expected = case.naive(&a, &w2, &bias).into_iter().zip(&a).enumerate().map(|(i, (y, x))| {
        let v = (y + x) * scale[i / 99];
        v / (1.0 + (-v).exp())
    });
    let expected: Vec<_> = expected.collect();
    for cpu in ["native", "x86-64-v3"] {
        let outputs = graph.run(cpu, &[floats(&shape, &input)]).unwrap();
        near(&outputs[0], &expected, cpu);
        near(&outputs[1], &a, cpu);
    }
}

#[test]
fn products_with_and_without_packed_weights() {
    for (i, &(rows, inner, columns)) in
        [(128, 64, 48), (1, 37, 100), (5, 3, 7), (13, 130, 77), (100, 300, 16), (150, 3503, 50), (13, 11001, 21)]
            .iter()
            .enumerate()
    {
        let (a, b) = (noise(rows * inner, i as u64 + 1), noise(inner * columns, i as u64 + 50));
        let bias = noise(columns, 9);
        let product = |bias: Option<&[f64]>| -> Vec<f64> {
            let of = |r: i64, c: i64| {
                let products = (0..inner).map(|k| a[(r * inner + k) as usize] * b[(k * columns + c) as usize]);
                products.sum::<f64>() + bias.map_or(0.0, |bias| bias[c as usize])
            };
            (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))).map(|(r, c)| of(r, c)).collect()
        };
        let transposed: Vec<_> = (0..columns)
            .flat_map(|c| (0..inner).map(move |k| (c, k)))
            .map(|(c, k)| b[(k * columns + c) as usize])
            .collect();
        let mut graph = Graph::default();
        let left = graph.input(DType::F32, &[rows, inner]);
        let right = graph.input(DType::F32, &[inner, columns]);
        let shape = [rows, columns];
        let plain = graph.apply("MatMul", &[left, right], &[], DType::F32, &shape);
        let constant = graph.constant(floats(&[columns, inner], &transposed));
        let added = graph.constant(floats(&[columns], &bias));
        let transposes = [("transB", Attr::Int(1))];
        let gemm = graph.apply("Gemm", &[left, constant, added], &transposes, DType::F32, &shape);
        let sum = graph.apply("Add", &[gemm, plain], &[], DType::F32, &shape);
        graph.outputs = vec![plain, sum];
        let (without, with) = (product(None), product(Some(&bias)));
        let sums: Vec<_> = without.iter().zip(&with).map(|(a, b)| a + b).collect();
        for cpu in ["native", "x86-64-v3"] {
            let inputs = [floats(&[rows, inner], &a), floats(&[inner, columns], &b)];
            let outputs = graph.run(cpu, &inputs).unwrap();
            near(&outputs[0], &without, &format!("{rows}x{inner}x{columns} on {cpu}"));
            near(&outputs[1], &sums, &format!("{rows}x{inner}x{columns} on {cpu}"));
        }
    }
}

/// Rows of whole vectors and with a remainder, and rows with masked and infinite elements and NaN. No share is subnormal.
#[test]
fn softmax_of_rows() {
    for (rows, size) in [(3, 16), (2, 37), (5, 128), (1, 4097)] {
        let mut numbers: Vec<f64> = noise(rows * size, size as u64).iter().map(|x| x * 20.0).collect();
        numbers[1] = f64::NEG_INFINITY;
        (4..14).for_each(|i| numbers[i] = -75.0 - 4.0 * i as f64);
        if rows > 1 {
            numbers[size as usize + 2] = f64::NAN;
        }
        let shape = [1, rows, size];
        for dtype in [DType::F32, DType::BF16] {
            let input = Tensor::from_floats(dtype, shape.to_vec(), &numbers).unwrap();
            let mut graph = Graph::default();
            let x = graph.input(dtype, &shape);
            graph.outputs = vec![graph.apply("Softmax", &[x], &[], dtype, &shape)];
            let read = input.floats().unwrap();
            for cpu in ["native", "x86-64-v3"] {
                let found = graph.run(cpu, std::slice::from_ref(&input)).unwrap()[0].floats().unwrap();
                for (row, found) in read.chunks(size as usize).zip(found.chunks(size as usize)) {
                    let largest = row.iter().copied().fold(f64::MIN, f64::max);
                    let terms: Vec<_> = row.iter().map(|x| (x - largest).exp()).collect();
                    let sum: f64 = terms.iter().sum();
                    for (value, term) in found.iter().zip(&terms) {
                        let expected = term / sum;
                        let accuracy = if dtype == DType::F32 { 4e-6 } else { 2_f64.powi(-8) };
                        assert!(*value == 0.0 || value.is_nan() || *value >= f64::from(f32::MIN_POSITIVE), "{value}");
                        let is_near = (value - expected).abs() <= expected * accuracy + 1e-30;
                        assert!(is_near || value.is_nan() && expected.is_nan(), "{size} {dtype:?} {value} {expected}");
                    }
                }
            }
        }
    }
}

/// Weights that are inputs and weights that are computed from constants are both packed for the fast kernel.
#[test]
fn computed_weights_are_packed() {
    let cases = [
        Shape { channels: 20, filters: 24, ..PLAIN },
        Shape { channels: 3, filters: 40, strides: (2, 2), ..PLAIN },
        Shape { channels: 24, filters: 24, groups: 24, ..PLAIN },
        Shape { channels: 32, filters: 32, groups: 2, kernel: (1, 1), pads: [0; 4], ..PLAIN },
    ];
    for case in cases {
        let shape = [case.batch, case.channels, case.image.0, case.image.1];
        let weights_shape = case.weights();
        let (input, bias) = (noise(shape.iter().product(), 1), noise(case.filters, 3));
        let weights = noise(weights_shape.iter().product(), 2);
        let expected = case.naive(&input, &weights, &bias);
        for is_constant in [false, true] {
            let mut graph = Graph::default();
            let x = graph.input(DType::F32, &shape);
            let (w, b) = match is_constant {
                true => {
                    let negated: Vec<_> = weights.iter().map(|weight| -weight).collect();
                    let negated = graph.constant(floats(&weights_shape, &negated));
                    let weights = graph.apply("Neg", &[negated], &[], DType::F32, &weights_shape);
                    (weights, graph.constant(floats(&[case.filters], &bias)))
                }
                false => (graph.input(DType::F32, &weights_shape), graph.input(DType::F32, &[case.filters])),
            };
            let y = case.apply_to(&mut graph, x, w, b);
            graph.outputs = vec![y];
            let mut inputs = vec![floats(&shape, &input)];
            if !is_constant {
                inputs.extend([floats(&weights_shape, &weights), floats(&[case.filters], &bias)]);
            }
            for cpu in ["native", "x86-64-v3"] {
                let outputs = graph.run(cpu, &inputs).unwrap();
                near(&outputs[0], &expected, &format!("{case:?} {cpu} constant: {is_constant}"));
            }
            assert_eq!(slow_nodes(&graph), []);
        }
    }
    let (left, right, bias) = (noise(5 * 19, 1), noise(19 * 37, 2), noise(37, 3));
    let mut graph = Graph::default();
    let ids = [[5, 19], [37, 19], [1, 37]].map(|shape| graph.input(DType::F32, &shape));
    let y = graph.apply("Gemm", &ids, &[("transB", Attr::Int(1))], DType::F32, &[5, 37]);
    graph.outputs = vec![y];
    let dot = |row: usize, column: usize| (0..19).map(|i| left[row * 19 + i] * right[column * 19 + i]).sum::<f64>();
    let expected: Vec<_> = (0..5 * 37).map(|i| dot(i / 37, i % 37) + bias[i % 37]).collect();
    let inputs = [floats(&[5, 19], &left), floats(&[37, 19], &right), floats(&[1, 37], &bias)];
    near(&graph.run("native", &inputs).unwrap()[0], &expected, "Gemm");
    assert_eq!(slow_nodes(&graph), []);
    // There is no fast kernel for products of other types.
    let mut graph = Graph::default();
    let x = graph.input(DType::F64, &[4, 4]);
    let y = graph.apply("MatMul", &[x, x], &[], DType::F64, &[4, 4]);
    graph.outputs = vec![y];
    assert_eq!(slow_nodes(&graph).len(), 1);
}

/// Returns the nodes of a graph that are lowered without a fast kernel.
fn slow_nodes(graph: &Graph) -> Vec<SlowNode> {
    let mut host = HostModule::new(&Target::named("native").unwrap(), false);
    let layouts = StageLayouts::row_major(graph.inputs.len(), graph.outputs.len());
    let boundary = Boundary { layouts: &layouts, is_streamed: &vec![false; graph.outputs.len()] };
    stage::lower(graph.clone(), boundary, &CpuHooks, &mut host, None).unwrap().slow
}

/// Pooling of images with short rows is parallel over planes, of images with long rows over rows of all planes.
#[test]
fn pooling_and_concatenation_of_blocked_images() {
    for (batch, height, width) in [(1, 9, 11), (2, 6, 49)] {
        pool_and_concatenate(batch, height, width);
    }
}

fn pool_and_concatenate(batch: i64, height: i64, width: i64) {
    let image = (height, width);
    let case = Shape { batch, image, kernel: (1, 1), pads: [0; 4], channels: 24, filters: 24, ..PLAIN };
    let pixels = height * width;
    let (mut input, weights, bias) = (noise(batch * 24 * pixels, 1), noise(24 * 24, 2), noise(24, 3));
    // NaN in a corner is the first pixel of one window, and not the first of others.
    input[0] = f64::NAN;
    let shape = [batch, 24, height, width];
    let mut graph = Graph::default();
    let x = graph.input(DType::F32, &shape);
    let conv = case.apply(&mut graph, x, &weights, &bias);
    let window = [
        ("kernel_shape", Attr::Ints(vec![3, 3])),
        ("strides", Attr::Ints(vec![2, 2])),
        ("pads", Attr::Ints(vec![1, 1, 1, 1])),
    ];
    let (down, across) = ((height + 1) / 2, (width + 1) / 2);
    let pooled = graph.apply("MaxPoolSingleOut", &[conv], &window, DType::F32, &[batch, 24, down, across]);
    let global = graph.apply("GlobalAveragePool", &[conv], &[], DType::F32, &[batch, 24, 1, 1]);
    let twice =
        graph.apply("Concat", &[conv, conv], &[("axis", Attr::Int(1))], DType::F32, &[batch, 48, height, width]);
    graph.outputs = vec![pooled, global, twice];
    let values = case.naive(&input, &weights, &bias);
    let mut maxima = vec![];
    for plane in values.chunks(pixels as usize) {
        for y in 0..down {
            for x in 0..across {
                let rows = (2 * y - 1..2 * y + 2).filter(|row| (0..height).contains(row));
                let window = rows.flat_map(|row| {
                    let columns = (2 * x - 1..2 * x + 2).filter(|column| (0..width).contains(column));
                    columns.map(move |column| plane[(row * width + column) as usize])
                });
                maxima.push(window.reduce(|most, value| if value > most { value } else { most }).unwrap());
            }
        }
    }
    let planes = values.chunks(pixels as usize);
    let means: Vec<f64> = planes.map(|plane| plane.iter().sum::<f64>() / pixels as f64).collect();
    let images = values.chunks(24 * pixels as usize);
    let both: Vec<_> = images.flat_map(|image| image.iter().chain(image)).copied().collect();
    for cpu in ["native", "x86-64-v3"] {
        let outputs = graph.run(cpu, &[floats(&shape, &input)]).unwrap();
        near(&outputs[0], &maxima, cpu);
        near(&outputs[1], &means, cpu);
        near(&outputs[2], &both, cpu);
    }
}

/// An operand that occurs twice in a concatenation is not computed in place.
#[test]
fn operands_of_a_concatenation_may_be_equal() {
    let case = Shape { batch: 1, image: (8, 8), kernel: (1, 1), pads: [0; 4], channels: 32, filters: 32, ..PLAIN };
    let (input, weights, bias) = (noise(32 * 64, 1), noise(32 * 32, 2), noise(32, 3));
    let mut graph = Graph::default();
    let x = graph.input(DType::F32, &[1, 32, 8, 8]);
    let part = case.apply(&mut graph, x, &weights, &bias);
    let whole = graph.apply("Concat", &[part, part], &[("axis", Attr::Int(1))], DType::F32, &[1, 64, 8, 8]);
    graph.outputs = vec![whole];
    let expected = case.naive(&input, &weights, &bias).repeat(2);
    for cpu in ["native", "x86-64-v3"] {
        let outputs = graph.run(cpu, &[floats(&[1, 32, 8, 8], &input)]).unwrap();
        near(&outputs[0], &expected, cpu);
    }
}

/// A convolution reads one part of a concatenation and writes another, in either order.
#[test]
fn dense_blocks_are_computed_in_the_concatenation() {
    let case =
        |channels, filters| Shape { batch: 1, image: (8, 8), kernel: (1, 1), pads: [0; 4], channels, filters, ..PLAIN };
    let (same, last) = (case(32, 32), case(64, 16));
    let input = noise(32 * 64, 1);
    let [weights, other] = [2, 3].map(|seed| noise(32 * 32, seed));
    let (sums, bias) = (noise(64 * 16, 4), noise(32, 5));
    for is_first in [true, false] {
        let mut graph = Graph::default();
        let x = graph.input(DType::F32, &[1, 32, 8, 8]);
        let first = same.apply(&mut graph, x, &weights, &bias);
        let second = same.apply(&mut graph, first, &other, &bias);
        let parts = if is_first { [first, second] } else { [second, first] };
        let whole = graph.apply("Concat", &parts, &[("axis", Attr::Int(1))], DType::F32, &[1, 64, 8, 8]);
        graph.outputs = vec![last.apply(&mut graph, whole, &sums, &bias[..16])];
        let first = same.naive(&input, &weights, &bias);
        let second = same.naive(&first, &other, &bias);
        let whole = if is_first { [first, second] } else { [second, first] }.concat();
        let expected = last.naive(&whole, &sums, &bias[..16]);
        for cpu in ["native", "x86-64-v3"] {
            let outputs = graph.run(cpu, &[floats(&[1, 32, 8, 8], &input)]).unwrap();
            near(&outputs[0], &expected, cpu);
        }
    }
}

/// Lowers and runs a graph with the given output layouts. Returns the number of kernels with non-temporal stores, and the bytes of the
/// outputs.
fn lower_and_run(
    graph: &Graph,
    inputs: &[Tensor],
    cpu: &str,
    outputs: &[Layout],
    for_gpus: &[bool],
) -> (usize, Vec<Vec<u8>>) {
    let inputs: Vec<&[u8]> = inputs.iter().map(|tensor| &tensor.bytes()[..]).collect();
    let ends = StageLayouts { inputs: vec![Layout::RowMajor; inputs.len()], outputs: outputs.to_vec() };
    let sizes = graph.outputs.iter().zip(outputs).map(|(id, layout)| match layout {
        Layout::Blocked(layout) => layout.elements() as usize * 4,
        Layout::RowMajor | Layout::Unassigned => graph.values[id.0].bytes() as usize,
    });
    let mut streamed = 0;
    let lower = |host: &mut HostModule| {
        let boundary = Boundary { layouts: &ends, is_streamed: for_gpus };
        let lowered = stage::lower(graph.clone(), boundary, &CpuHooks, host, None);
        let text = |function: Operation| {
            let mut text = vec![];
            function.print(&mut |part| text.extend_from_slice(part));
            String::from_utf8(text).unwrap()
        };
        let streams = |text: &String| text.contains("nontemporal") && text.contains("sfence");
        streamed = host.kernels.built().iter().map(|kernel| text(kernel.function)).filter(streams).count();
        lowered.map(|stage| stage.calls).map_err(|error| error.to_string())
    };
    let bytes = run(&Target::named(cpu).unwrap(), false, lower, &inputs, &sizes.collect::<Vec<_>>()).unwrap();
    (streamed, bytes)
}

/// Asserts the number of kernels with non-temporal stores, and that outputs are the same bytes without them.
fn streams(graph: &Graph, inputs: &[Tensor], outputs: &[Layout], expected: usize) {
    let all = vec![true; outputs.len()];
    let (streamed, plain) = (
        lower_and_run(graph, inputs, "x86-64-v4", outputs, &all),
        lower_and_run(graph, inputs, "x86-64-v4", outputs, &vec![false; outputs.len()]),
    );
    assert_eq!((streamed.0, plain.0), (expected, 0));
    assert!(streamed.1 == plain.1);
}

fn has_wide_registers() -> bool {
    Target::named("native").unwrap().lanes == 16
}

#[test]
fn images_that_gpus_copy_are_streamed() {
    for batch in [1, 2] {
        let case = Shape { batch, channels: 3, filters: 48, ..PLAIN };
        let (weights, bias) = (noise(case.weights().iter().product(), 1), noise(case.filters, 2));
        let mut graph = Graph::default();
        let x = graph.input(DType::F32, &[batch, 3, 9, 11]);
        let inputs = [floats(&[batch, 3, 9, 11], &noise(batch * 3 * 99, 4))];
        let inner = case.apply(&mut graph, x, &weights, &bias);
        let image = [batch, 48, 9, 11];
        let window = [("kernel_shape", Attr::Ints(vec![3, 3])), ("pads", Attr::Ints(vec![1; 4]))];
        let pooled = graph.apply("MaxPoolSingleOut", &[inner], &window, DType::F32, &image);
        let gate = graph.apply("Sigmoid", &[inner], &[], DType::F32, &image);
        graph.nodes.last_mut().unwrap().task = 1;
        let twice = [batch, 96, 9, 11];
        let both = graph.apply("Concat", &[inner, inner], &[("axis", Attr::Int(1))], DType::F32, &twice);
        // `inner` is computed with the halo of the pooling, so both outputs of it are copies.
        graph.outputs = vec![pooled, gate, both, inner, inner];
        let layouts = |lanes| {
            let blocked = |shape: &[i64], halo| Layout::Blocked(Blocked::of(shape, lanes, halo).unwrap());
            let around = Halo { top: 1, left: 0, bottom: 2, right: 1, is_negative_infinity: false };
            let [pooled, inner] = [blocked(&image, Halo::NONE); 2];
            [pooled, blocked(&image, around), blocked(&twice, Halo::NONE), inner, inner]
        };
        assert_eq!(lower_and_run(&graph, &inputs, "x86-64-v3", &layouts(8), &[true; 5]).0, 0, "lines are longer");
        if !has_wide_registers() {
            continue;
        }
        // The halo and each operand of the concatenation have a separate kernel; both copies of `inner` share one.
        streams(&graph, &inputs, &layouts(16), 6);
        // Only the output that GPUs read uses non-temporal stores.
        let of_one = |which: usize| {
            let for_gpus: Vec<_> = (0..5).map(|output| output == which).collect();
            lower_and_run(&graph, &inputs, "x86-64-v4", &layouts(16), &for_gpus).0
        };
        assert_eq!([0, 1, 3, 4].map(of_one), [1, 2, 1, 1]);
    }
}

#[test]
fn dense_values_that_gpus_copy_are_streamed() {
    let mut graph = Graph::default();
    let rows = graph.input(DType::F32, &[11, 20]);
    let square = graph.input(DType::F32, &[48, 21]);
    let inputs = [floats(&[11, 20], &noise(220, 5)), floats(&[48, 21], &noise(48 * 21, 6))];
    let right = graph.constant(floats(&[20, 32], &noise(20 * 32, 3)));
    let narrow = graph.constant(floats(&[20, 31], &noise(20 * 31, 4)));
    let row = graph.constant(floats(&[32], &noise(32, 5)));
    let apply = |graph: &mut Graph, op: &str, operands: &[Id], attributes: &[(&str, Attr)], shape: &[i64]| {
        let result = graph.apply(op, operands, attributes, DType::F32, shape);
        // Nodes of different tasks are not fused.
        graph.nodes.last_mut().unwrap().task = result.0;
        result
    };
    let transposed = [("perm", Attr::Ints(vec![1, 0]))];
    let product = apply(&mut graph, "MatMul", &[rows, right], &[], &[11, 32]);
    let lines = [
        apply(&mut graph, "MatMul", &[rows, right], &[], &[11, 32]),
        apply(&mut graph, "Abs", &[square], &[], &[48, 21]),
        apply(&mut graph, "Softplus", &[square], &[], &[48, 21]),
        apply(&mut graph, "Add", &[product, row], &[], &[11, 32]),
        apply(&mut graph, "LayerNormalization", &[product, row, row], &[], &[11, 32]),
        apply(&mut graph, "Transpose", &[square], &transposed, &[21, 48]),
        square,
    ];
    // Rows of these are not aligned to cache lines.
    let others = [
        apply(&mut graph, "MatMul", &[rows, narrow], &[], &[11, 31]),
        apply(&mut graph, "Abs", &[rows], &[], &[11, 20]),
        apply(&mut graph, "Transpose", &[rows], &transposed, &[20, 11]),
    ];
    graph.outputs = [&lines[..], &others].concat();
    if has_wide_registers() {
        streams(&graph, &inputs, &vec![Layout::RowMajor; graph.outputs.len()], lines.len());
    }
}
