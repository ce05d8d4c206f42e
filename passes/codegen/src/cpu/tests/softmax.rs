//! Tests of softmax.

use super::noise;
use crate::graph::Graph;
use divi_onnx::{DType, Tensor};

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
