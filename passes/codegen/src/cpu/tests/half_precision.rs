//! Tests of fast kernels on values in half precision.

use super::{PLAIN, Shape, noise};
use crate::{
    graph::{Graph, Id},
    testing::floats,
};
use divi_onnx::{Attr, DType, Tensor};

/// Returns numbers rounded to `bf16`.
fn rounded(numbers: &[f64]) -> Vec<f64> {
    Tensor::from_floats(DType::BF16, vec![numbers.len() as i64], numbers).unwrap().floats().unwrap()
}

/// Products of `bf16` values, on tile registers where the processor has them, with ragged rows and columns, weights that are constants,
/// inputs or computed, a bias and an epilogue.
#[test]
fn products_of_half_precision_are_exact_sums() {
    let half = |shape: &[i64], values: &[f64]| Tensor::from_floats(DType::BF16, shape.to_vec(), values).unwrap();
    for (i, &(rows, inner, columns)) in
        [(64, 64, 64), (1, 32, 5), (17, 96, 33), (16, 32, 47), (50, 160, 100), (33, 32, 32), (3, 40, 9)]
            .iter()
            .enumerate()
    {
        let a = half(&[rows, inner], &noise(rows * inner, i as u64 + 1));
        let b = half(&[inner, columns], &noise(inner * columns, i as u64 + 50));
        let bias = half(&[columns], &noise(columns, 9));
        let [left, right, added] = [&a, &b, &bias].map(|tensor| tensor.floats().unwrap());
        let transposed: Vec<f64> = (0..columns)
            .flat_map(|column| (0..inner).map(move |k| (k, column)))
            .map(|(k, column)| right[(k * columns + column) as usize])
            .collect();
        let mut graph = Graph::default();
        let x = graph.input(DType::BF16, &[rows, inner]);
        let y = graph.input(DType::BF16, &[inner, columns]);
        let shape = [rows, columns];
        let first = graph.apply("MatMul", &[x, y], &[], DType::BF16, &shape);
        graph.outputs.push(first);
        let weights = graph.constant(half(&[columns, inner], &transposed));
        let addend = graph.constant(bias.clone());
        let gemm = graph.apply("Gemm", &[x, weights, addend], &[("transB", Attr::Int(1))], DType::BF16, &shape);
        graph.nodes.last_mut().unwrap().task = 1;
        let positive = graph.apply("Relu", &[gemm], &[], DType::BF16, &shape);
        graph.nodes.last_mut().unwrap().task = 1;
        graph.outputs.push(positive);
        let wide = graph.constant(floats(&[inner, columns], &right));
        let narrow = graph.apply("Cast", &[wide], &[("to", Attr::DType(DType::BF16))], DType::BF16, &[inner, columns]);
        graph.nodes.last_mut().unwrap().task = 2;
        let computed = graph.apply("MatMul", &[x, narrow], &[], DType::BF16, &shape);
        graph.nodes.last_mut().unwrap().task = 3;
        graph.outputs.push(computed);
        let run = |cpu: &str| match cpu.strip_prefix("emulated ") {
            Some(cpu) => graph.run_with_emulated_tiles(cpu, &[a.clone(), b.clone()]),
            None => graph.run(cpu, &[a.clone(), b.clone()]),
        };
        // Emulation is slow.
        let is_emulated = |cpu: &&str| !cpu.starts_with("emulated") || rows * inner * columns < 60_000;
        for cpu in
            ["native", "x86-64-v3", "emulated native", "emulated x86-64-v3"].iter().filter(|cpu| is_emulated(cpu))
        {
            let outputs = run(cpu).unwrap();
            let found: Vec<Vec<f64>> = outputs.iter().map(|output| output.floats().unwrap()).collect();
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let terms =
                    (0..inner).map(|k| left[(row * inner + k) as usize] * right[(k * columns + column) as usize]);
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                let biased = (sum + added[column as usize]).max(0.0);
                for (output, expected) in [(0, sum), (1, biased), (2, sum)] {
                    let value = found[output][(row * columns + column) as usize];
                    // Half a unit in the last place of bf16, and the rounding of sums in f32.
                    let allowed = f64::abs(expected) * 2_f64.powi(-8) + size * 1e-6;
                    assert!(
                        (value - expected).abs() <= allowed,
                        "{rows}x{inner}x{columns} on {cpu}, output {output}, at {row}, {column}: {value}, not {expected}"
                    );
                }
            }
        }
    }
}

/// Functions whose results are rounded are less exact than that, but not visibly.
#[test]
fn functions_of_half_precision_round_exact_results() {
    let mut numbers: Vec<f64> = (-4000..4000).map(|i| f64::from(i) / 100.0).collect();
    numbers.extend([0.0, -0.0, 1e-30, 1e30, -1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
    let shape = [1, numbers.len() as i64];
    let input = Tensor::from_floats(DType::BF16, shape.to_vec(), &numbers).unwrap();
    let mut graph = Graph::default();
    let x = graph.input(DType::BF16, &shape);
    let divisor = graph.constant(Tensor::from_floats(DType::BF16, vec![], &[3.0]).unwrap());
    let ops = [("Sigmoid", vec![x]), ("Erf", vec![x]), ("Gelu", vec![x]), ("Div", vec![x, divisor])];
    graph.outputs = ops.clone().map(|(op, inputs)| graph.apply(op, &inputs, &[], DType::BF16, &shape)).to_vec();
    for (task, node) in graph.nodes.iter_mut().enumerate() {
        node.task = task;
    }
    let outputs = graph.run("native", std::slice::from_ref(&input)).unwrap();
    let erf = |x: f64| {
        let terms = (0..60).scan(x, |term, n| {
            let value = *term / f64::from(2 * n + 1);
            *term *= -x * x / f64::from(n + 1);
            Some(value)
        });
        if x.abs() > 4.0 { x.signum() } else { 2.0 / std::f64::consts::PI.sqrt() * terms.sum::<f64>() }
    };
    let functions: [&dyn Fn(f64) -> f64; 4] = [
        &|x| 1.0 / (1.0 + (-x).exp()),
        &erf,
        &|x| if x == f64::NEG_INFINITY { f64::NAN } else { x / 2.0 * (1.0 + erf(x / 2f64.sqrt())) },
        &|x| x / 3.0,
    ];
    for ((output, function), (op, _)) in outputs.iter().zip(functions).zip(&ops) {
        for (&x, value) in input.floats().unwrap().iter().zip(output.floats().unwrap()) {
            let expected = function(x);
            let allowed = expected.abs() * 2_f64.powi(-8) + 2e-6;
            let is_equal = value == expected || value.is_nan() && expected.is_nan();
            assert!(is_equal || (value - expected).abs() <= allowed, "{op}({x}) is {value}, not {expected}");
        }
    }
}

/// Batches of products of computed `bf16` matrices, on tile registers where the processor has them.
#[test]
fn batched_products_of_half_precision() {
    for (i, &(batch, rows, inner, columns)) in
        [(3, 20, 64, 40), (2, 5, 37, 70), (4, 33, 1, 9), (1, 3, 31, 33)].iter().enumerate()
    {
        let shapes = [vec![batch, rows, inner], vec![batch, inner, columns]];
        let tensors = shapes.clone().map(|shape| {
            let numbers = noise(shape.iter().product(), i as u64 + shape[2] as u64);
            Tensor::from_floats(DType::BF16, shape, &numbers).unwrap()
        });
        let mut graph = Graph::default();
        let [x, y] = shapes.map(|shape| graph.input(DType::BF16, &shape));
        let weights = graph.constant(tensors[1].clone());
        let result = [batch, rows, columns];
        // Right operands that are computed, and constant ones.
        for (task, right) in [y, weights].into_iter().enumerate() {
            for (op, inputs) in [("MatMul", vec![x, right]), ("Relu", vec![])] {
                let inputs = if inputs.is_empty() {
                    graph.nodes.last().unwrap().outputs.iter().flatten().copied().collect()
                } else {
                    inputs
                };
                graph.apply(op, &inputs, &[], DType::BF16, &result);
                graph.nodes.last_mut().unwrap().task = task;
            }
            let last = graph.nodes.last().unwrap().outputs[0].unwrap();
            graph.outputs.push(last);
        }
        let [left, right] = [0, 1].map(|side: usize| tensors[side].floats().unwrap());
        for cpu in ["native", "emulated native", "emulated x86-64-v3"] {
            let outputs = match cpu.strip_prefix("emulated ") {
                Some(cpu) => graph.run_with_emulated_tiles(cpu, &tensors),
                None => graph.run(cpu, &tensors),
            };
            let outputs = outputs.unwrap();
            let found = outputs.iter().flat_map(|output| (0..).zip(output.floats().unwrap()));
            for (at, value) in found {
                let (matrix, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
                let terms = (0..inner).map(|k| {
                    left[((matrix * rows + row) * inner + k) as usize]
                        * right[((matrix * inner + k) * columns + column) as usize]
                });
                let expected = terms.sum::<f64>().max(0.0);
                let allowed = expected * 2_f64.powi(-8) + 1e-4;
                assert!((value - expected).abs() <= allowed, "case {i} on {cpu}, at {at}: {value}, not {expected}");
            }
        }
    }
}

/// Convolutions of `bf16` images, on tile registers where the processor has them: chains whose values stay in `bf16`, with partial blocks,
/// a residual, a pooling and a concatenation whose parts share a block.
#[test]
fn convolutions_of_half_precision_round_their_results_once() {
    let of = |channels, image, filters, kernel, strides, pads| {
        let (kernel, strides) = ((kernel, kernel), (strides, strides));
        Shape { channels, image, filters, kernel, strides, pads: [pads; 4], ..PLAIN }
    };
    let cases = [
        of(32, (7, 7), 32, 3, 1, 1),
        of(64, (5, 18), 40, 1, 1, 0),
        of(24, (6, 9), 33, 3, 2, 1),
        of(3, (19, 23), 36, 7, 2, 3),
        of(1, (8, 8), 5, 5, 1, 0),
        of(9, (6, 20), 16, 3, 1, 1),
        of(40, (1, 1), 70, 1, 1, 0),
        Shape { batch: 2, ..of(33, (5, 6), 64, 3, 1, 1) },
        Shape { groups: 2, ..of(64, (6, 6), 128, 3, 1, 1) },
        Shape { groups: 24, ..of(24, (6, 6), 24, 3, 1, 1) },
        Shape { groups: 10, ..of(40, (6, 6), 40, 3, 2, 1) },
        Shape { groups: 4, batch: 2, ..of(64, (4, 5), 64, 3, 1, 1) },
        Shape { dilations: (2, 3), pads: [2, 3, 2, 3], ..of(32, (9, 11), 32, 3, 1, 1) },
        Shape { kernel: (1, 5), pads: [0, 2, 0, 2], strides: (1, 2), ..of(40, (4, 34), 32, 1, 1, 0) },
    ];
    for (i, shape) in cases.iter().enumerate() {
        let (height, width) = shape.output();
        let image = [shape.batch, shape.channels, shape.image.0, shape.image.1];
        let output = [shape.batch, shape.filters, height, width];
        let data = rounded(&noise(image.iter().product(), i as u64 + 1));
        let weights = rounded(&noise(shape.weights().iter().product(), i as u64 + 20));
        let bias = rounded(&noise(shape.filters, i as u64 + 40));
        let half = |shape: &[i64], numbers: &[f64]| Tensor::from_floats(DType::BF16, shape.to_vec(), numbers).unwrap();
        let mut graph = Graph::default();
        // Every other image is converted by the stage.
        let is_half = i % 2 == 0;
        let mut x = graph.input(if is_half { DType::BF16 } else { DType::F32 }, &image);
        if !is_half {
            x = graph.apply("Cast", &[x], &[("to", Attr::DType(DType::BF16))], DType::BF16, &image);
        }
        let kernel = graph.constant(half(&shape.weights(), &weights));
        let addend = graph.constant(half(&[shape.filters], &bias));
        let sum = shape.apply_to(&mut graph, x, kernel, addend);
        graph.set_dtype(sum, DType::BF16);
        let first = graph.apply("Relu", &[sum], &[], DType::BF16, &output);
        // Tasks of their own, which read blocked images in half precision.
        let next = |graph: &mut Graph, op: &str, inputs: &[Id], attributes: &[(&str, Attr)], shape: &[i64]| {
            let result = graph.apply(op, inputs, attributes, DType::BF16, shape);
            graph.nodes.last_mut().unwrap().task = graph.nodes.len();
            result
        };
        let pool = [("kernel_shape", Attr::Ints(vec![2, 2])), ("pads", Attr::Ints(vec![0, 0, 1, 1]))];
        let pooled = next(&mut graph, "MaxPool", &[first], &pool, &output);
        let both = [output[0], 2 * output[1], output[2], output[3]];
        let joined = next(&mut graph, "Concat", &[first, pooled], &[("axis", Attr::Int(1))], &both);
        // The sum of both halves' channels.
        let identity: Vec<f64> = (0..shape.filters)
            .flat_map(|to| (0..both[1]).map(move |from| if from % shape.filters == to { 1.0 } else { 0.0 }))
            .collect();
        let second = graph.constant(half(&[shape.filters, both[1], 1, 1], &identity));
        let summed = next(&mut graph, "Conv", &[joined, second], &[], &output);
        graph.outputs = vec![first, next(&mut graph, "Add", &[summed, first], &[], &output)];
        let firsts: Vec<f64> = shape.naive(&data, &weights, &bias).iter().map(|sum| sum.max(0.0)).collect();
        let at = |channel: i64, y: i64, x: i64| ((channel * height + y) * width + x) as usize;
        // The narrower vectors of a processor affect only how code is generated, which a few cases show.
        let cpus = ["emulated native", "native", "x86-64-v3", "emulated x86-64-v3"];
        for cpu in cpus.into_iter().take(if i % 7 == 0 { 4 } else { 1 }) {
            let input = if is_half { half(&image, &data) } else { floats(&image, &data) };
            let outputs = match cpu.strip_prefix("emulated ") {
                Some(cpu) => graph.run_with_emulated_tiles(cpu, &[input]),
                None => graph.run(cpu, &[input]),
            };
            let outputs = outputs.unwrap();
            let [found, last] = [0, 1].map(|output: usize| outputs[output].floats().unwrap());
            for plane in 0..shape.batch * shape.filters {
                for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                    let (value, expected) = (found[at(plane, y, x)], firsts[at(plane, y, x)]);
                    let allowed = expected.abs() * 2_f64.powi(-8) + 1e-4;
                    let what = || format!("case {i} on {cpu}, at {plane}, {y}, {x}");
                    assert!((value - expected).abs() <= allowed, "{}: {value}, not {expected}", what());
                    let window = [(y, x), (y + 1, x), (y, x + 1), (y + 1, x + 1)];
                    let window = window.iter().filter(|&&(y, x)| y < height && x < width);
                    let largest = window.map(|&(y, x)| found[at(plane, y, x)]).fold(f64::MIN, f64::max);
                    let (value, expected) = (last[at(plane, y, x)], 2.0 * value + largest);
                    let allowed = expected.abs() * 2_f64.powi(-7);
                    assert!((value - expected).abs() <= allowed, "{}: {value}, not {expected}", what());
                }
            }
        }
    }
}
