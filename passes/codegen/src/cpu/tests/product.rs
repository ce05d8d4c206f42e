//! Tests of matrix products.

use super::{near, noise};
use crate::{graph::Graph, testing::floats};
use divi_onnx::{Attr, DType};

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
