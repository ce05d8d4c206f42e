use crate::{
    ops::test_operator::{assert_close, run, try_run},
    testing::floats,
};
use divi_onnx::{Attr, DType, Tensor};

fn affine() -> Attr {
    Attr::Strs(vec!["Affine".into()])
}

#[test]
fn bidirectional_rnn_with_lengths() {
    // Three steps, two sequences (the second of length 2), one element.
    let x = floats(&[3, 2, 1], &[1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
    let (w, r) = (floats(&[2, 1, 1], &[1.0, 1.0]), floats(&[2, 1, 1], &[0.5, 0.5]));
    let bias = floats(&[2, 2], &[1.0, 0.0, 0.0, 0.0]);
    let lengths = Tensor::from_ints(DType::I32, vec![2], &[3, 2]).unwrap();
    let attributes = [
        ("direction", Attr::Str("bidirectional".into())),
        ("activations", Attr::Strs(vec!["Affine".into(), "Affine".into()])),
    ];
    let results = [(DType::F32, &[3, 2, 2, 1][..]), (DType::F32, &[2, 2, 1])];
    let inputs = [Some(&x), Some(&w), Some(&r), Some(&bias), Some(&lengths)];
    let y = try_run("RNN", &inputs, &attributes, &results).unwrap();
    assert_close(&y[0], &[2.0, 11.0, 2.75, 20.0, 4.0, 26.5, 3.5, 20.0, 6.0, 0.0, 3.0, 0.0]);
    assert_close(&y[1], &[6.0, 26.5, 2.75, 20.0]);
}

#[test]
fn inputs_of_activations_are_clipped() {
    let x = floats(&[1, 1, 1], &[5.0]);
    let one = floats(&[1, 1, 1], &[1.0]);
    let attributes = [
        ("activations", affine()),
        ("activation_alpha", Attr::Floats(vec![2.0])),
        ("activation_beta", Attr::Floats(vec![0.5])),
        ("clip", Attr::Float(3.0)),
    ];
    assert_close(&run("RNN", &[x, one.clone(), one], &attributes, DType::F32, &[1, 1, 1, 1]), &[6.5]);
}

#[test]
fn lstm_has_gates_and_peepholes() {
    let linear = ("activations", Attr::Strs(vec!["Affine".into(); 3]));
    let x = floats(&[1, 1, 1], &[2.0]);
    let (w, r) = (floats(&[1, 4, 1], &[1.0, 2.0, 3.0, 4.0]), floats(&[1, 4, 1], &[1.0; 4]));
    let (h, c) = (floats(&[1, 1, 1], &[1.0]), floats(&[1, 1, 1], &[2.0]));
    let peepholes = floats(&[1, 3], &[0.5, 0.25, 1.0]);
    let results = [(DType::F32, &[1, 1, 1, 1][..]), (DType::F32, &[1, 1, 1]), (DType::F32, &[1, 1, 1])];
    let inputs = [Some(&x), Some(&w), Some(&r), None, None, Some(&h), Some(&c), Some(&peepholes)];
    let y = try_run("LSTM", &inputs, std::slice::from_ref(&linear), &results).unwrap();
    // Input 3 + 1, forget 7 + 2, candidate 9: the cell is 9 * 2 + 4 * 9; output 5 + 54 / 4.
    assert_close(&y[2], &[54.0]);
    assert_close(&y[0], &[18.5 * 54.0]);
    assert_eq!(y[0].floats(), y[1].floats());
    // Coupled, the forget gate is 1 - 4.
    let y = try_run("LSTM", &inputs, &[linear, ("input_forget", Attr::Int(1))], &results).unwrap();
    assert_close(&y[2], &[30.0]);
}

#[test]
fn gru_resets_before_or_after_the_recurrence() {
    let linear = ("activations", Attr::Strs(vec!["Affine".into(); 2]));
    // Batch-major layout.
    let layout = ("layout", Attr::Int(1));
    let x = floats(&[1, 1, 1], &[1.0]);
    let (w, r) = (floats(&[1, 3, 1], &[0.5, 2.0, 3.0]), floats(&[1, 3, 1], &[0.0, 0.0, 1.0]));
    let bias = floats(&[1, 6], &[0.0, 0.0, 0.0, 0.0, 0.0, 10.0]);
    let h = floats(&[1, 1, 1], &[4.0]);
    let results = [(DType::F32, &[1, 1, 1, 1][..])];
    let inputs = [Some(&x), Some(&w), Some(&r), Some(&bias), None, Some(&h)];
    let y = try_run("GRU", &inputs, &[linear.clone(), layout.clone()], &results).unwrap();
    // Update 1/2, reset 2: 3 + 2 * 4 + 10 = 21, half of it and half of 4.
    assert_close(&y[0], &[12.5]);
    let y = try_run("GRU", &inputs, &[linear, layout, ("linear_before_reset", Attr::Int(1))], &results).unwrap();
    // 3 + 2 * (4 + 10) = 31.
    assert_close(&y[0], &[17.5]);
}
