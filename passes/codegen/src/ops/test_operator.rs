//! Helpers that compile a single operator for both targets and run it, for tests.

use crate::graph::Graph;
use divi_onnx::{Attr, DType, Tensor};

/// Applies an operator to inputs, some of which may be omitted. Results have the given types. Asserts that the results for both targets
/// agree.
pub(super) fn try_run(
    op: &str,
    inputs: &[Option<&Tensor>],
    attributes: &[(&str, Attr)],
    results: &[(DType, &[i64])],
) -> Result<Vec<Tensor>, String> {
    let mut graph = Graph::default();
    let operands: Vec<_> =
        inputs.iter().map(|input| input.map(|tensor| graph.input(tensor.dtype(), tensor.dims()))).collect();
    graph.apply(op, &[], attributes, results[0].0, results[0].1);
    let results: Vec<_> = results.iter().map(|&(dtype, shape)| graph.value(dtype, shape)).collect();
    graph.nodes[0].inputs = operands;
    graph.nodes[0].outputs = results.iter().copied().map(Some).collect();
    graph.outputs = results;
    let tensors: Vec<_> = inputs.iter().flatten().map(|&tensor| tensor.clone()).collect();
    let native = graph.run("native", &tensors)?;
    let other = graph.run("x86-64-v3", &tensors)?;
    for (a, b) in native.iter().zip(&other) {
        assert_eq!(a.ints(), b.ints(), "{op}: targets differ");
        for (x, y) in a.floats().into_iter().flatten().zip(b.floats().into_iter().flatten()) {
            let is_same = x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= 1e-5 * x.abs().max(1.0);
            assert!(is_same, "{op}: targets differ: {x} and {y}");
        }
    }
    Ok(native)
}

/// As [`try_run`], with all inputs and one result.
pub(super) fn run(op: &str, inputs: &[Tensor], attributes: &[(&str, Attr)], dtype: DType, shape: &[i64]) -> Tensor {
    let inputs: Vec<_> = inputs.iter().map(Some).collect();
    try_run(op, &inputs, attributes, &[(dtype, shape)]).unwrap().remove(0)
}

/// Asserts that floating-point numbers agree up to rounding.
pub(super) fn assert_close(tensor: &Tensor, expected: &[f64]) {
    let values = tensor.floats().unwrap();
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
    assert!(
        values.len() == expected.len() && values.iter().zip(expected).all(is_close),
        "{values:?} is not {expected:?}"
    );
}
