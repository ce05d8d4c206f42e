//! Tests of fast kernels against naive loops.

mod attention;
mod concatenation;
mod convolution;
mod half_precision;
mod packed_weights;
mod product;
mod softmax;
mod streaming;

use crate::{
    graph::{Graph, Id},
    testing::floats,
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
