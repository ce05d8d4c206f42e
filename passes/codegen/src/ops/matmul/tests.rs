use crate::{ops::test_operator::run, testing::floats};
use divi_onnx::{Attr, DType, Tensor};

fn ramp(count: i64) -> Vec<f64> {
    (0..count).map(|i| f64::from((i * 5 % 13) as i32) - 6.0).collect()
}

#[test]
fn batches_are_broadcast() {
    // Wide enough for two chunks of a row.
    let (rows, depth, columns) = (3, 5, 300);
    let (x, y) = (ramp(2 * rows * depth), ramp(4 * depth * columns));
    let inputs = [floats(&[2, 1, rows, depth], &x), floats(&[4, depth, columns], &y)];
    let product = run("MatMul", &inputs, &[], DType::F32, &[2, 4, rows, columns]).floats().unwrap();
    let mut expected = vec![];
    for (i, j, row, column) in (0..2).flat_map(|i| {
        (0..4).flat_map(move |j| (0..rows).flat_map(move |row| (0..columns).map(move |column| (i, j, row, column))))
    }) {
        let term =
            |k: i64| x[((i * rows + row) * depth + k) as usize] * y[((j * depth + k) * columns + column) as usize];
        expected.push((0..depth).map(term).sum::<f64>());
    }
    assert_eq!(product, expected);
}

#[test]
fn vectors_lose_their_axis() {
    let vector = floats(&[3], &[1.0, 2.0, 3.0]);
    let matrix = floats(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(run("MatMul", &[vector.clone(), matrix], &[], DType::F32, &[2]).floats().unwrap(), [14.0, 32.0]);
    assert_eq!(run("MatMul", &[vector.clone(), vector], &[], DType::F32, &[]).floats().unwrap(), [14.0]);
    // An empty sum is 0.
    let nothing = [floats(&[2, 0], &[]), floats(&[0, 2], &[])];
    assert_eq!(run("MatMul", &nothing, &[], DType::F32, &[2, 2]).floats().unwrap(), [0.0; 4]);
}

#[test]
fn gemm_transposes_scales_and_adds() {
    let a = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let attributes =
        [("transA", Attr::Int(1)), ("transB", Attr::Int(1)), ("alpha", Attr::Float(2.0)), ("beta", Attr::Float(0.5))];
    let inputs = [a.clone(), b.clone(), floats(&[3, 1], &[2.0, 4.0, 6.0])];
    let y = run("Gemm", &inputs, &attributes, DType::F32, &[3, 2]);
    assert_eq!(y.floats().unwrap(), [19.0, 39.0, 26.0, 54.0, 33.0, 69.0]);
    let y = run("Gemm", &[b, a], &[], DType::F32, &[2, 3]);
    assert_eq!(y.floats().unwrap(), [9.0, 12.0, 15.0, 19.0, 26.0, 33.0]);
}

#[test]
fn integers_have_zero_points() {
    let a = Tensor::from_ints(DType::U8, vec![2, 2], &[11, 7, 3, 12]).unwrap();
    let b = Tensor::from_ints(DType::I8, vec![2, 2], &[1, -4, 2, 5]).unwrap();
    let a_zero = Tensor::from_ints(DType::U8, vec![2], &[12, 2]).unwrap();
    let b_zero = Tensor::from_ints(DType::I8, vec![2], &[0, 1]).unwrap();
    let y = run("MatMulInteger", &[a.clone(), b.clone(), a_zero, b_zero.clone()], &[], DType::I32, &[2, 2]);
    assert_eq!(y.ints().unwrap(), [-11, -15, 21, 35]);
    let scale = |value| floats(&[], &[value]);
    let zero = |value| Tensor::from_ints(DType::U8, vec![], &[value]).unwrap();
    let scales = floats(&[2], &[0.5, 1.0]);
    let inputs = [a, scale(0.5), zero(2), b, scales, b_zero, scale(2.0), zero(100)];
    let y = run("QLinearMatMul", &inputs, &[], DType::U8, &[2, 2]);
    // Sums of 19, -25, 21 and 35, times 1/8 and 1/4, ties to even.
    assert_eq!(y.ints().unwrap(), [102, 94, 103, 109]);
}

#[test]
fn equations() {
    let einsum = |equation: &str, inputs: &[Tensor], shape: &[i64]| {
        run("Einsum", inputs, &[("equation", Attr::Str(equation.into()))], DType::F32, shape).floats().unwrap()
    };
    let m = floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let v = floats(&[2], &[10.0, 100.0]);
    assert_eq!(einsum("ij->ji", std::slice::from_ref(&m), &[2, 2]), [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(einsum("ii->i", std::slice::from_ref(&m), &[2]), [1.0, 4.0]);
    assert_eq!(einsum("...ij,...j", &[m.clone(), v.clone()], &[2]), [210.0, 430.0]);
    assert_eq!(einsum("ij,jk,k->i", &[m.clone(), m.clone(), v.clone()], &[2]), [1070.0, 2350.0]);
    assert_eq!(einsum("i , j -> ij", &[v.clone(), v.clone()], &[2, 2]), [100.0, 1000.0, 1000.0, 10000.0]);
    assert_eq!(einsum("ij->", &[m], &[]), [10.0]);
    assert_eq!(einsum("i,i->i", &[v, floats(&[1], &[3.0])], &[2]), [30.0, 300.0]);
}

#[test]
fn determinants() {
    let matrices = [0.0, 2.0, 1.0, 1.0, 0.0, 3.0, 4.0, 1.0, 1.0, 1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 1.0, 0.0, 1.0];
    let y = run("Det", &[floats(&[2, 3, 3], &matrices)], &[], DType::F32, &[2]).floats().unwrap();
    assert!((y[0] - 23.0).abs() < 1e-4 && y[1].abs() < 1e-5, "{y:?}");
}
