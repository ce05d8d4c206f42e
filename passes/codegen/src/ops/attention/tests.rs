use crate::{
    ops::test_operator::{assert_close, run, try_run},
    testing::floats,
};
use divi_onnx::{Attr, DType, Tensor};

/// Returns keys whose scores are `ln 3` and 0, so that the probabilities are 3/4 and 1/4.
fn keys() -> Tensor {
    floats(&[1, 1, 2, 1], &[3f64.ln(), 0.0])
}

fn values() -> Tensor {
    floats(&[1, 1, 2, 1], &[4.0, 8.0])
}

#[test]
fn grouped_queries_and_masks() {
    // Two query heads, two queries each.
    let query = floats(&[1, 2, 2, 1], &[1.0, 1.0, 0.0, 1.0]);
    let (key, value) = (keys(), values());
    let inputs = [query.clone(), key.clone(), value.clone()];
    let run = |inputs: &[Tensor], attributes: &[(&str, Attr)]| {
        run("Attention", inputs, attributes, DType::F32, &[1, 2, 2, 1])
    };
    assert_close(&run(&inputs, &[]), &[5.0, 5.0, 6.0, 5.0]);
    assert_close(&run(&inputs, &[("is_causal", Attr::Int(1))]), &[4.0, 5.0, 4.0, 5.0]);
    assert_close(&run(&inputs, &[("left_window_size", Attr::Int(0))]), &[5.0, 8.0, 6.0, 8.0]);
    // A query without visible keys yields 0. Keys beyond the end of a mask are not visible.
    let mask = Tensor::from_ints(DType::Bool, vec![2, 1], &[0, 1]).unwrap();
    assert_close(&run(&[&inputs[..], &[mask]].concat(), &[]), &[0.0, 4.0, 0.0, 4.0]);
    let bias = floats(&[2, 1, 2], &[0.0, 3f64.ln(), 0.0, 0.0]);
    assert_close(&run(&[&inputs[..], &[bias]].concat(), &[]), &[6.0, 6.0, 6.0, 5.0]);
}

#[test]
fn past_keys_and_values_are_concatenated() {
    // Three axes: one token with two heads of one element.
    let (query, key, value) =
        (floats(&[1, 1, 2], &[1.0, 1.0]), floats(&[1, 1, 2], &[0.0, 0.0]), floats(&[1, 1, 2], &[8.0, 80.0]));
    let past_key = floats(&[1, 2, 1, 1], &[3f64.ln(), 0.0]);
    let past_value = floats(&[1, 2, 1, 1], &[4.0, 40.0]);
    let results = [
        (DType::F32, &[1, 1, 2][..]),
        (DType::F32, &[1, 2, 2, 1]),
        (DType::F32, &[1, 2, 2, 1]),
        (DType::F32, &[1, 2, 1, 2]),
    ];
    let heads = [
        ("q_num_heads", Attr::Int(2)),
        ("kv_num_heads", Attr::Int(2)),
        ("is_causal", Attr::Int(1)),
        ("qk_matmul_output_mode", Attr::Int(3)),
    ];
    let inputs = [Some(&query), Some(&key), Some(&value), None, Some(&past_key), Some(&past_value)];
    let y = try_run("Attention", &inputs, &heads, &results).unwrap();
    assert_close(&y[0], &[5.0, 60.0]);
    assert_close(&y[1], &[3f64.ln(), 0.0, 0.0, 0.0]);
    assert_close(&y[2], &[4.0, 8.0, 40.0, 80.0]);
    assert_close(&y[3], &[0.75, 0.25, 0.5, 0.5]);
}

#[test]
fn padding_of_a_cache_is_masked() {
    let query = floats(&[1, 1, 1, 1], &[1.0]);
    let (key, value) = (keys(), values());
    let length = Tensor::from_ints(DType::I64, vec![1], &[1]).unwrap();
    let inputs = [Some(&query), Some(&key), Some(&value), None, None, None, Some(&length)];
    let y = try_run("Attention", &inputs, &[], &[(DType::F32, &[1, 1, 1, 1])]).unwrap();
    assert_close(&y[0], &[4.0]);
}

#[test]
fn pairs_are_rotated() {
    let x = floats(&[1, 1, 1, 5], &[1.0, 2.0, 3.0, 4.0, 9.0]);
    let (cosines, sines) = (floats(&[2, 2], &[9.0, 9.0, 0.0, 1.0]), floats(&[2, 2], &[9.0, 9.0, 1.0, 0.0]));
    let position = Tensor::from_ints(DType::I64, vec![1, 1], &[1]).unwrap();
    let inputs = [x, cosines, sines, position];
    let partial = ("rotary_embedding_dim", Attr::Int(4));
    let y = run("RotaryEmbedding", &inputs, std::slice::from_ref(&partial), DType::F32, &[1, 1, 1, 5]);
    assert_close(&y, &[-3.0, 2.0, 1.0, 4.0, 9.0]);
    let y = run("RotaryEmbedding", &inputs, &[partial, ("interleaved", Attr::Int(1))], DType::F32, &[1, 1, 1, 5]);
    assert_close(&y, &[-2.0, 1.0, 3.0, 4.0, 9.0]);
}

#[test]
fn writes_into_circular_caches_wrap_around() {
    let past = floats(&[2, 3, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let update = floats(&[2, 2, 1], &[10.0, 20.0, 30.0, 40.0]);
    let indices = Tensor::from_ints(DType::I64, vec![2], &[2, 0]).unwrap();
    let inputs = [past, update, indices];
    let circular = [("mode", Attr::Str("circular".into()))];
    let y = run("TensorScatter", &inputs, &circular, DType::F32, &[2, 3, 1]);
    assert_eq!(y.floats().unwrap(), [20.0, 2.0, 10.0, 30.0, 40.0, 6.0]);
    let inputs: Vec<_> = inputs.iter().map(Some).collect();
    let outcome = try_run("TensorScatter", &inputs, &[], &[(DType::F32, &[2, 3, 1])]);
    assert_eq!(outcome.unwrap_err(), "status 1");
}

#[test]
fn states_are_decayed_and_corrected() {
    // One head of one element, two tokens.
    let token = |a: f64, b: f64| floats(&[1, 2, 1], &[a, b]);
    let (query, key, value) = (token(1.0, 2.0), token(1.0, 0.5), token(4.0, 6.0));
    let state = floats(&[1, 1, 1, 1], &[8.0]);
    let (decay, rate) = (token(0.5f64.ln(), 0.0), token(1.0, 0.5));
    let heads = [("q_num_heads", Attr::Int(1)), ("kv_num_heads", Attr::Int(1)), ("scale", Attr::Float(1.0))];
    let results = [(DType::F32, &[1, 2, 1][..]), (DType::F32, &[1, 1, 1, 1])];
    let inputs = [&query, &key, &value, &state, &decay, &rate].map(Some);
    let y = try_run("LinearAttention", &inputs, &heads, &results).unwrap();
    // The decayed state 8 / 2 = 4 equals the first value; then 4 + 0.5 * 0.5 * (6 - 2) = 5.
    assert_close(&y[0], &[4.0, 10.0]);
    assert_close(&y[1], &[5.0]);
}

#[test]
fn gates() {
    let inputs = [floats(&[2], &[3f64.ln(), -(3f64.ln())]), floats(&[2], &[4.0, 8.0])];
    let y = run("SwiGLU", &inputs, &[], DType::F32, &[2]);
    assert_close(&y, &[3.0 * 3f64.ln(), -2.0 * 3f64.ln()]);
}
