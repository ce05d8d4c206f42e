use crate::{graph::Graph, ops::test_operator::assert_close, testing::floats};
use divi_onnx::{Attr, DType, Tensor};

/// Applies an operator to a signal and constants.
fn run(op: &str, signal: Option<&Tensor>, known: &[Tensor], attributes: &[(&str, Attr)], shape: &[i64]) -> Tensor {
    let mut graph = Graph::default();
    let mut operands: Vec<_> = signal.iter().map(|tensor| graph.input(tensor.dtype(), tensor.dims())).collect();
    operands.extend(known.iter().map(|tensor| graph.constant(tensor.clone())).collect::<Vec<_>>());
    let y = graph.apply(op, &operands, attributes, DType::F32, shape);
    graph.outputs = vec![y];
    let inputs: Vec<_> = signal.into_iter().cloned().collect();
    graph.run("native", &inputs).unwrap().remove(0)
}

#[test]
fn transforms_of_any_length_and_back() {
    let signal = [1.0, 2.0, 4.0, -1.0, 0.5];
    let x = floats(&[1, 5, 1], &signal);
    let spectrum = run("DFT", Some(&x), &[], &[], &[1, 5, 2]);
    let mut expected = vec![];
    for k in 0..5 {
        let angle = |j: usize| -std::f64::consts::TAU * (j * k) as f64 / 5.0;
        expected.push((0..5).map(|j| signal[j] * angle(j).cos()).sum::<f64>());
        expected.push((0..5).map(|j| signal[j] * angle(j).sin()).sum::<f64>());
    }
    assert_close(&spectrum, &expected);
    let back = run("DFT", Some(&spectrum), &[], &[("inverse", Attr::Int(1))], &[1, 5, 2]);
    assert_close(&back, &signal.iter().flat_map(|&x| [x, 0.0]).collect::<Vec<_>>());
    let onesided = ("onesided", Attr::Int(1));
    let half = run("DFT", Some(&x), &[], std::slice::from_ref(&onesided), &[1, 3, 2]);
    assert_close(&half, &expected[..6]);
    let length = Tensor::scalar_i64(5);
    let back = run("DFT", Some(&half), &[length], &[onesided, ("inverse", Attr::Int(1))], &[1, 5, 1]);
    assert_close(&back, &signal);
}

#[test]
fn axes_are_padded_and_cut() {
    let x = floats(&[3, 1, 1], &[1.0, 2.0, 4.0]);
    let with = |length| [Tensor::scalar_i64(length), Tensor::scalar_i64(0)];
    assert_close(&run("DFT", Some(&x), &with(4), &[], &[4, 1, 2]), &[7.0, 0.0, -3.0, -2.0, 3.0, 0.0, -3.0, 2.0]);
    assert_close(&run("DFT", Some(&x), &with(2), &[], &[2, 1, 2]), &[3.0, 0.0, -1.0, 0.0]);
}

#[test]
fn frames_are_weighted() {
    let x = floats(&[1, 4, 1], &[1.0, 2.0, 3.0, 4.0]);
    let known = [Tensor::scalar_i64(2), floats(&[2], &[1.0, 10.0])];
    let y = run("STFT", Some(&x), &known, &[], &[1, 2, 2, 2]);
    assert_close(&y, &[21.0, 0.0, -19.0, 0.0, 43.0, 0.0, -37.0, 0.0]);
}

#[test]
fn windows() {
    let size = [Tensor::scalar_i64(4)];
    assert_close(&run("HannWindow", None, &size, &[], &[4]), &[0.0, 0.5, 1.0, 0.5]);
    assert_close(&run("HannWindow", None, &size, &[("periodic", Attr::Int(0))], &[4]), &[0.0, 0.75, 0.75, 0.0]);
    assert_close(&run("BlackmanWindow", None, &size, &[], &[4]), &[0.0, 0.34, 1.0, 0.34]);
    assert_close(&run("HammingWindow", None, &size, &[], &[4]), &[4.0 / 46.0, 25.0 / 46.0, 1.0, 25.0 / 46.0]);
}
