use crate::testing::{assert_close, evaluate, floats, ints};
use divi_onnx::{Attr, DType, Tensor};
use std::slice::from_ref;

/// Returns numbers in no particular order.
fn numbers(count: i64) -> Vec<f64> {
    (0..count).map(|i| ((i * 37 + 11) % 101) as f64 / 10.0 - 5.0).collect()
}

/// Reference implementation of the reductions.
fn reference(op: &str, values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let sum = |f: &dyn Fn(f64) -> f64| values.iter().map(|&x| f(x)).sum::<f64>();
    match op {
        "ReduceSum" => sum(&|x| x),
        "ReduceMean" => sum(&|x| x) / count,
        "ReduceProd" => values.iter().product(),
        "ReduceMax" => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        "ReduceMin" => values.iter().copied().fold(f64::INFINITY, f64::min),
        "ReduceL1" => sum(&f64::abs),
        "ReduceL2" => sum(&|x| x * x).sqrt(),
        "ReduceSumSquare" => sum(&|x| x * x),
        "ReduceLogSum" => sum(&|x| x).ln(),
        _ => sum(&f64::exp).ln(),
    }
}

#[test]
fn every_reduction_folds_any_axes() {
    let shape = [3, 4, 70];
    let ops = [
        "ReduceSum",
        "ReduceMean",
        "ReduceProd",
        "ReduceMax",
        "ReduceMin",
        "ReduceL1",
        "ReduceL2",
        "ReduceSumSquare",
        "ReduceLogSum",
        "ReduceLogSumExp",
    ];
    for op in ops {
        let mut values = numbers(3 * 4 * 70);
        // Avoid overflow and cancellation.
        match op {
            "ReduceProd" => values.iter_mut().for_each(|value| *value = 1.0 + *value / 100.0),
            "ReduceLogSum" => values.iter_mut().for_each(|value| *value = value.abs() + 1.0),
            _ => {}
        }
        // The loops do not depend on the operator.
        let all_axes = [&[0][..], &[2], &[0, 2], &[1], &[0, 1], &[-1, 1], &[]];
        let count = if matches!(op, "ReduceMean" | "ReduceMax" | "ReduceL2") { all_axes.len() } else { 3 };
        for axes in &all_axes[..count] {
            let is_folded = |axis: usize| axes.is_empty() || axes.iter().any(|&a| (a + 3) % 3 == axis as i64);
            let kept: Vec<_> = (0..3).map(|axis| if is_folded(axis) { 1 } else { shape[axis] }).collect();
            let mut groups = vec![vec![]; kept.iter().product::<i64>() as usize];
            for (i, &value) in values.iter().enumerate() {
                let place = [i / 280, i / 70 % 4, i % 70];
                let at = (0..3).fold(0, |at, axis| at * kept[axis] as usize + place[axis] % kept[axis] as usize);
                groups[at].push(value);
            }
            let expected: Vec<_> = groups.iter().map(|group| reference(op, group)).collect();
            let axes = Tensor::from_shape(axes);
            for dtype in [DType::F32, DType::F64, DType::F16] {
                let input = Tensor::from_floats(dtype, shape.to_vec(), &values).unwrap();
                if dtype != DType::F32 && op != "ReduceMean" && op != "ReduceMax" {
                    continue;
                }
                let outputs = evaluate(op, &[input], from_ref(&axes), &[], &[(dtype, &kept)]).unwrap();
                let tolerance = if dtype == DType::F16 { 2e-3 } else { 2e-5 };
                assert_close(&outputs[0].floats().unwrap(), &expected, tolerance);
            }
        }
    }
}

#[test]
fn empty_sets_and_no_axes() {
    let empty = floats(&[2, 0], &[]);
    for (op, expected) in [
        ("ReduceSum", 0.0),
        ("ReduceProd", 1.0),
        ("ReduceMax", f64::NEG_INFINITY),
        ("ReduceLogSumExp", f64::NEG_INFINITY),
    ] {
        let axes = Tensor::from_shape(&[1]);
        let outputs = evaluate(op, from_ref(&empty), &[axes], &[], &[(DType::F32, &[2, 1])]).unwrap();
        assert_eq!(outputs[0].floats().unwrap(), [expected; 2], "{op}");
    }
    let noop = [("noop_with_empty_axes", Attr::Int(1))];
    let x = floats(&[2], &[-1.0, 2.0]);
    let outputs = evaluate("ReduceL1", &[x], &[], &noop, &[(DType::F32, &[2])]).unwrap();
    assert_eq!(outputs[0].floats().unwrap(), [1.0, 2.0]);
    let x = ints(DType::Bool, &[2, 2], &[0, 1, 0, 0]);
    let outputs = evaluate("ReduceMax", &[x], &[Tensor::from_shape(&[1])], &[], &[(DType::Bool, &[2, 1])]).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [1, 0]);
    let x = ints(DType::I32, &[1, 3], &[-1, -2, -4]);
    let outputs = evaluate("ReduceMean", &[x], &[], &[], &[(DType::I32, &[1, 1])]).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [-2]);
}

#[test]
fn indices_of_extrema() {
    let x = floats(&[2, 3], &[2.0, 2.0, 1.0, f64::NAN, 5.0, 7.0]);
    let case = |op: &str, axis, last, shape: &[i64]| {
        let attributes = [("axis", Attr::Int(axis)), ("select_last_index", Attr::Int(last))];
        evaluate(op, from_ref(&x), &[], &attributes, &[(DType::I64, shape)]).unwrap()[0].ints().unwrap()
    };
    assert_eq!(case("ArgMax", 1, 0, &[2, 1]), [0, 0]);
    assert_eq!(case("ArgMax", -1, 1, &[2, 1]), [1, 0]);
    assert_eq!(case("ArgMin", 1, 0, &[2, 1]), [2, 0]);
    assert_eq!(case("ArgMax", 0, 0, &[1, 3]), [1, 1, 1]);
    assert_eq!(case("ArgMin", 0, 0, &[1, 3]), [1, 0, 0]);
    let x = floats(&[2, 3], &[1.0, 3.0, 3.0, -1.0, -2.0, -3.0]);
    let result = [(DType::F32, &[2, 3][..])];
    let outputs = evaluate("Hardmax", &[x], &[], &[], &result).unwrap();
    assert_eq!(outputs[0].floats().unwrap(), [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn softmax_along_any_axis() {
    let shape = [2, 5, 67];
    let values = numbers(2 * 5 * 67);
    for (axis, step, size) in [(0, 335, 2), (1, 67, 5), (-1, 1, 67)] {
        let mut shares = vec![0.0; values.len()];
        for (i, share) in shares.iter_mut().enumerate() {
            let start = i - i / step % size * step;
            let sum: f64 = (0..size).map(|j| values[start + j * step].exp()).sum();
            *share = values[i].exp() / sum;
        }
        let logs: Vec<_> = shares.iter().map(|share| share.ln()).collect();
        for dtype in [DType::F32, DType::F64, DType::BF16] {
            let input = Tensor::from_floats(dtype, shape.to_vec(), &values).unwrap();
            for (op, expected) in [("Softmax", &shares), ("LogSoftmax", &logs)] {
                let axis = [("axis", Attr::Int(axis))];
                let outputs = evaluate(op, from_ref(&input), &[], &axis, &[(dtype, &shape)]).unwrap();
                let tolerance = if dtype == DType::BF16 { 4e-2 } else { 1e-5 };
                assert_close(&outputs[0].floats().unwrap(), expected, tolerance);
            }
        }
    }
}

#[test]
fn scans_are_inclusive_or_exclusive_in_both_directions() {
    let x = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let case = |op: &str, axis, exclusive, reverse| {
        let attributes = [("exclusive", Attr::Int(exclusive)), ("reverse", Attr::Int(reverse))];
        let axis = [Tensor::scalar_i64(axis)];
        evaluate(op, from_ref(&x), &axis, &attributes, &[(DType::F32, &[2, 3])]).unwrap()[0].floats().unwrap()
    };
    assert_eq!(case("CumSum", 1, 0, 0), [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    assert_eq!(case("CumSum", 0, 0, 0), [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
    assert_eq!(case("CumSum", -1, 1, 0), [0.0, 1.0, 3.0, 0.0, 4.0, 9.0]);
    assert_eq!(case("CumSum", 1, 0, 1), [6.0, 5.0, 3.0, 15.0, 11.0, 6.0]);
    assert_eq!(case("CumProd", 1, 1, 1), [6.0, 3.0, 1.0, 30.0, 6.0, 1.0]);
}

#[test]
fn top_k_is_sorted_and_stable() {
    let x = floats(&[2, 5], &[1.0, 4.0, 2.0, 4.0, 3.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    let with_nan = floats(&[1, 5], &[1.0, f64::NAN, 2.0, f64::NAN, 3.0]);
    let case_of = |x: &Tensor, k, axis, largest, shape: &[i64]| {
        let attributes = [("axis", Attr::Int(axis)), ("largest", Attr::Int(largest))];
        let results = [(DType::F32, shape), (DType::I64, shape)];
        let k = [Tensor::from_shape(&[k])];
        let outputs = evaluate("TopK", from_ref(x), &k, &attributes, &results).unwrap();
        (outputs[0].floats().unwrap(), outputs[1].ints().unwrap())
    };
    let case = |k, axis, largest, shape: &[i64]| case_of(&x, k, axis, largest, shape);
    assert_eq!(case(3, -1, 1, &[2, 3]), (vec![4.0, 4.0, 3.0, 5.0, 4.0, 3.0], vec![1, 3, 4, 0, 1, 2]));
    assert_eq!(case(2, 1, 0, &[2, 2]), (vec![1.0, 2.0, 1.0, 2.0], vec![0, 2, 4, 3]));
    assert_eq!(case(1, 0, 1, &[1, 5]), (vec![5.0, 4.0, 3.0, 4.0, 3.0], vec![1, 0, 1, 0, 0]));
    assert_eq!(case(5, 1, 1, &[2, 5]).1, [1, 3, 4, 2, 0, 0, 1, 2, 3, 4]);
    assert_eq!(case_of(&with_nan, 3, 1, 1, &[1, 3]).1, [1, 3, 4]);
    assert_eq!(case_of(&with_nan, 4, 1, 0, &[1, 4]).1, [0, 2, 4, 1]);
}
