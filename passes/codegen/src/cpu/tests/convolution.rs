//! Tests of convolutions.

use super::{PLAIN, Shape, near, noise};
use crate::{graph::Graph, testing::floats};
use divi_onnx::DType;

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
