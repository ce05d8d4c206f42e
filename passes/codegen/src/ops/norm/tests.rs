use crate::{
    ops::test_operator::{assert_close, run, try_run},
    testing::floats,
};
use divi_onnx::{Attr, DType, Tensor};

/// With this epsilon, variances of 3 and 8 yield standard deviations of 2 and 3.
const ONE: (&str, Attr) = ("epsilon", Attr::Float(1.0));

#[test]
fn layers_have_statistics() {
    let x = floats(&[2, 2], &[1.0, 1.0 + 12f64.sqrt(), 4.0, 4.0]);
    let (scale, bias) = (floats(&[2], &[2.0, 4.0]), floats(&[2], &[0.0, 1.0]));
    let results = [(DType::F32, &[2, 2][..]), (DType::F32, &[2, 1]), (DType::F32, &[2, 1])];
    let y = try_run("LayerNormalization", &[Some(&x), Some(&scale), Some(&bias)], &[ONE], &results).unwrap();
    let half = 3f64.sqrt() / 2.0;
    assert_close(&y[0], &[-2.0 * half, 4.0 * half + 1.0, 0.0, 1.0]);
    assert_close(&y[1], &[1.0 + 3f64.sqrt(), 4.0]);
    assert_close(&y[2], &[0.5, 1.0]);
    let y = try_run("LayerNormalization", &[Some(&x), Some(&scale)], &[ONE, ("axis", Attr::Int(0))], &results[..1])
        .unwrap();
    let values = x.floats().unwrap();
    let mean = values.iter().sum::<f64>() / 4.0;
    let deviation = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4.0 + 1.0).sqrt();
    let expected: Vec<_> = (0..4).map(|i| (values[i] - mean) / deviation * [2.0, 4.0][i % 2]).collect();
    assert_close(&y[0], &expected);
}

#[test]
fn batches_are_normalized_by_channel() {
    let x = floats(&[2, 2, 2], &[1.0, 3.0, 5.0, 7.0, 1.0, 3.0, 5.0, 7.0]);
    let vector = |a: f64, b: f64| floats(&[2], &[a, b]);
    let inputs = [x.clone(), vector(1.0, 2.0), vector(0.0, 1.0), vector(1.0, 5.0), vector(3.0, 8.0)];
    let y = run("BatchNormalizationInferenceMode", &inputs, &[ONE], DType::F32, &[2, 2, 2]);
    assert_close(&y, &[0.0, 1.0, 1.0, 7.0 / 3.0, 0.0, 1.0, 1.0, 7.0 / 3.0]);
    // In training, means are 2 and 6, variances 1.
    let inputs: Vec<_> = inputs.iter().map(Some).collect();
    let results = [(DType::F32, &[2, 2, 2][..]), (DType::F32, &[2]), (DType::F32, &[2])];
    let training = [("epsilon", Attr::Float(3.0)), ("momentum", Attr::Float(0.5)), ("training_mode", Attr::Int(1))];
    let y = try_run("BatchNormalization", &inputs, &training, &results).unwrap();
    assert_close(&y[0], &[-0.5, 0.5, 0.0, 2.0, -0.5, 0.5, 0.0, 2.0]);
    assert_close(&y[1], &[1.5, 5.5]);
    assert_close(&y[2], &[2.0, 4.5]);
}

#[test]
fn instances_and_groups() {
    let x = floats(&[1, 2, 2], &[1.0, 3.0, 5.0, 7.0]);
    let affine = [floats(&[2], &[2.0, 4.0]), floats(&[2], &[0.0, 1.0])];
    let inputs = [&[x][..], &affine].concat();
    let epsilon = ("epsilon", Attr::Float(3.0));
    let y = run("InstanceNormalization", &inputs, std::slice::from_ref(&epsilon), DType::F32, &[1, 2, 2]);
    assert_close(&y, &[-1.0, 1.0, -1.0, 3.0]);
    // All together have a mean of 4 and a variance of 5.
    let one_group = [("num_groups", Attr::Int(1)), ("epsilon", Attr::Float(4.0))];
    let y = run("GroupNormalization", &inputs, &one_group, DType::F32, &[1, 2, 2]);
    assert_close(&y, &[-2.0, -2.0 / 3.0, 7.0 / 3.0, 5.0]);
    let y = run("GroupNormalization", &inputs, &[("num_groups", Attr::Int(2)), epsilon], DType::F32, &[1, 2, 2]);
    assert_close(&y, &[-1.0, 1.0, -1.0, 3.0]);
}

#[test]
fn norms() {
    let x = floats(&[2, 2], &[3.0, -4.0, 0.0, 0.0]);
    let y = run("LpNormalization", std::slice::from_ref(&x), &[], DType::F32, &[2, 2]);
    assert_close(&y, &[0.6, -0.8, 0.0, 0.0]);
    let y = run("LpNormalization", std::slice::from_ref(&x), &[("p", Attr::Int(1))], DType::F32, &[2, 2]);
    assert_close(&y, &[3.0 / 7.0, -4.0 / 7.0, 0.0, 0.0]);
    let short = Tensor::from_floats(DType::F16, vec![1, 2], &[2.0, 14.0]).unwrap();
    let scale = floats(&[2], &[1.0, 2.0]);
    let y = run("RMSNormalization", &[short, scale], &[("epsilon", Attr::Float(0.0))], DType::F32, &[1, 2]);
    assert_close(&y, &[0.2, 2.8]);
    let y = run("MeanVarianceNormalization", &[x], &[("axes", Attr::Ints(vec![0]))], DType::F32, &[2, 2]);
    assert_close(&y, &[1.0, -1.0, -1.0, 1.0]);
}

#[test]
fn local_response_normalization() {
    let x = floats(&[1, 3, 1], &[1.0, 2.0, 3.0]);
    let attributes = [("size", Attr::Int(2)), ("alpha", Attr::Float(2.0)), ("beta", Attr::Float(1.0))];
    // An even window extends further toward higher channels.
    let y = run("LRN", &[x], &attributes, DType::F32, &[1, 3, 1]);
    assert_close(&y, &[1.0 / 6.0, 2.0 / 14.0, 3.0 / 10.0]);
}

#[test]
fn constants_are_normalized_at_load() {
    let mut graph = crate::graph::Graph::default();
    let operands = [floats(&[1, 2, 2], &[1.0, 3.0, 5.0, 7.0]), floats(&[2], &[2.0, 4.0]), floats(&[2], &[0.0, 1.0])];
    let operands = operands.map(|tensor| graph.constant(tensor));
    let attributes = [("num_groups", Attr::Int(2)), ("epsilon", Attr::Float(3.0))];
    let y = graph.apply("GroupNormalization", &operands, &attributes, DType::F32, &[1, 2, 2]);
    graph.outputs = vec![y];
    assert_close(&graph.run("native", &[]).unwrap()[0], &[-1.0, 1.0, -1.0, 3.0]);
}
