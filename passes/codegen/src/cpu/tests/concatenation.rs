//! Tests of pooling and concatenation of blocked images.

use super::{PLAIN, Shape, near, noise};
use crate::{graph::Graph, testing::floats};
use divi_onnx::{Attr, DType};

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
