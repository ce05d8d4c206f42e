use crate::{
    ops::test_operator::{assert_close, run, try_run},
    testing::floats,
};
use divi_onnx::{Attr, DType, Tensor};

fn reduction(kind: &str) -> (&'static str, Attr) {
    ("reduction", Attr::Str(kind.into()))
}

#[test]
fn losses_are_weighted_and_reduced() {
    let scores = floats(&[2, 2, 2], &[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0]);
    let target = Tensor::from_ints(DType::I64, vec![2, 2], &[0, 1, 1, 0]).unwrap();
    let weights = floats(&[2], &[1.0, 10.0]);
    let plain = [scores.clone(), target.clone()];
    let weighted = [scores, target, weights];
    let op = "NegativeLogLikelihoodLoss";
    assert_close(&run(op, &plain, &[reduction("none")], DType::F32, &[2, 2]), &[1.0, 4.0, 7.0, 6.0]);
    assert_close(&run(op, &plain, &[], DType::F32, &[]), &[4.5]);
    assert_close(&run(op, &weighted, &[reduction("sum")], DType::F32, &[]), &[117.0]);
    let ignore = ("ignore_index", Attr::Int(1));
    assert_close(&run(op, &plain, std::slice::from_ref(&ignore), DType::F32, &[]), &[3.5]);
    assert_close(&run(op, &weighted, &[ignore, reduction("none")], DType::F32, &[2, 2]), &[1.0, 0.0, 0.0, 6.0]);
}

#[test]
fn classes_are_checked() {
    let scores = floats(&[1, 2], &[0.0, 0.0]);
    let target = Tensor::from_ints(DType::I32, vec![1], &[2]).unwrap();
    let results = [(DType::F32, &[][..])];
    let outcome = try_run("NegativeLogLikelihoodLoss", &[Some(&scores), Some(&target)], &[], &results);
    assert_eq!(outcome.unwrap_err(), "status 1");
}

#[test]
fn cross_entropy_takes_the_softmax() {
    let scores = floats(&[1, 3], &[1f64.ln(), 2f64.ln(), 5f64.ln()]);
    let target = Tensor::from_ints(DType::I64, vec![1], &[2]).unwrap();
    let results = [(DType::F32, &[][..]), (DType::F32, &[1, 3])];
    let y = try_run("SoftmaxCrossEntropyLoss", &[Some(&scores), Some(&target)], &[], &results).unwrap();
    assert_close(&y[0], &[1.6f64.ln()]);
    assert_close(&y[1], &[0.125f64.ln(), 0.25f64.ln(), 0.625f64.ln()]);
}
