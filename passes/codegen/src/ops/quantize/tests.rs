use crate::{graph::Graph, ops::test_operator::run, testing::floats};
use divi_onnx::{Attr, DType, Tensor};

fn ints(dtype: DType, dims: &[i64], values: &[i64]) -> Tensor {
    Tensor::from_ints(dtype, dims.to_vec(), values).unwrap()
}

#[test]
fn numbers_are_rounded_to_even_and_saturate() {
    let x = floats(&[6], &[1.0, 3.0, 5.0, 1000.0, -1000.0, f64::NAN]);
    for (dtype, expected) in [
        (DType::U8, [10, 12, 12, 255, 0, 0]),
        (DType::I8, [10, 12, 12, 127, -128, -128]),
        (DType::I4, [7, 7, 7, 7, -8, -8]),
        (DType::U2, [3, 3, 3, 3, 0, 0]),
        (DType::I16, [10, 12, 12, 510, -490, -32768]),
    ] {
        let zero =
            if dtype.bits() < 8 { i64::from(dtype == DType::U2) * 3 + i64::from(dtype == DType::I4) * 7 } else { 10 };
        let y = run("QuantizeLinear", &[x.clone(), floats(&[], &[2.0]), ints(dtype, &[], &[zero])], &[], dtype, &[6]);
        assert_eq!(y.ints().unwrap(), expected, "{dtype}");
    }
}

#[test]
fn scales_are_shared_by_axes_and_blocks() {
    let x = ints(DType::I8, &[2, 3], &[1, 2, 3, 4, 5, 6]);
    let axis = [("axis", Attr::Int(0))];
    let y = run(
        "DequantizeLinear",
        &[x.clone(), floats(&[2], &[1.0, 10.0]), ints(DType::I8, &[2], &[0, 4])],
        &axis,
        DType::F32,
        &[2, 3],
    );
    assert_eq!(y.floats().unwrap(), [1.0, 2.0, 3.0, 0.0, 10.0, 20.0]);
    // The second block has one element, the scales of the rows are 1, 2 and 3, 4.
    let blocks = [("axis", Attr::Int(1)), ("block_size", Attr::Int(2))];
    let scales = floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let y = run("DequantizeLinear", &[x, scales.clone()], &blocks, DType::F32, &[2, 3]);
    assert_eq!(y.floats().unwrap(), [1.0, 2.0, 6.0, 12.0, 15.0, 24.0]);
    let packed = ints(DType::I4, &[2, 4], &[1, 2, 3, 4, -5, 6, 7, -8]);
    let zeros = ints(DType::I4, &[2, 2], &[0, 1, 0, -1]);
    let y = run("DequantizeLinear", &[packed, scales, zeros], &blocks, DType::F32, &[2, 4]);
    assert_eq!(y.floats().unwrap(), [1.0, 2.0, 4.0, 6.0, -15.0, 18.0, 32.0, -28.0]);
}

#[test]
fn dynamic_quantization_finds_the_range() {
    let mut graph = Graph::default();
    let x = graph.input(DType::F32, &[4]);
    let y = graph.apply("DynamicQuantizeLinear", &[x], &[], DType::U8, &[4]);
    let (scale, zero) = (graph.value(DType::F32, &[]), graph.value(DType::U8, &[]));
    graph.nodes[0].outputs.extend([Some(scale), Some(zero)]);
    graph.outputs = vec![y, scale, zero];
    let outputs = graph.run("native", &[floats(&[4], &[-51.0, 0.0, 102.0, 204.0])]).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [0, 51, 153, 255]);
    let outputs_of = |x: &[f64; 4]| graph.run("native", &[floats(&[4], x)]).unwrap();
    let infinite = outputs_of(&[f64::NEG_INFINITY, 0.0, 1.0, 2.0]);
    assert_eq!((infinite[0].ints().unwrap(), infinite[2].ints().unwrap()), (vec![0, 255, 255, 255], vec![255]));
    assert_eq!(outputs_of(&[f64::NAN; 4])[2].ints().unwrap(), [255]);
    assert_eq!((outputs[1].floats().unwrap(), outputs[2].ints().unwrap()), (vec![1.0], vec![51]));
}

/// Encodings of small floating-point numbers and their values, including the largest and the smallest one.
#[test]
fn floating_point_codes() {
    let types: [(DType, &[u8], &[f64]); 5] = [
        (DType::F8E4M3FN, &[0x7e, 0x01, 0x38, 0xb9, 0x08], &[448.0, 0.001953125, 1.0, -1.125, 0.015625]),
        (DType::F8E4M3FNUZ, &[0x7f, 0x01, 0x40, 0xc1, 0x08], &[240.0, 0.0009765625, 1.0, -1.125, 0.0078125]),
        (DType::F8E5M2, &[0x7b, 0x01, 0x3c, 0xbd, 0x7c], &[57344.0, 2f64.powi(-16), 1.0, -1.25, f64::INFINITY]),
        (DType::F8E5M2FNUZ, &[0x7f, 0x01, 0x40, 0xc1, 0x04], &[57344.0, 2f64.powi(-17), 1.0, -1.25, 2f64.powi(-15)]),
        (DType::F4E2M1, &[0x17, 0xa2, 0x0f], &[6.0, 0.5, 1.0, -1.0, -6.0]),
    ];
    let scale = floats(&[], &[1.0]);
    for (dtype, bytes, values) in types {
        let codes = Tensor::new(dtype, vec![5], bytes.to_vec().into()).unwrap();
        let y = run("DequantizeLinear", &[codes.clone(), scale.clone()], &[], DType::F32, &[5]);
        assert_eq!(y.floats().unwrap(), values, "{dtype}");
        let exact = [("saturate", Attr::Int(0))];
        let back = run("QuantizeLinear", &[floats(&[5], values), scale.clone()], &exact, dtype, &[5]);
        assert_eq!(back.bytes()[..2], codes.bytes()[..2], "{dtype}");
        let again = run("DequantizeLinear", &[back, scale.clone()], &[], DType::F32, &[5]);
        assert_eq!(again.floats().unwrap(), values, "{dtype}");
    }
    // Ties round to the even encoding. Numbers out of range saturate, or become NaN if 'saturate' is 0.
    let x = floats(&[5], &[1.0625, 1.1875, 465.0, -1e9, f64::NAN]);
    let codes = |attributes: &[(&str, Attr)]| {
        run("QuantizeLinear", &[x.clone(), scale.clone()], attributes, DType::F8E4M3FN, &[5])
    };
    assert_eq!(codes(&[]).bytes()[..], [0x38, 0x3a, 0x7e, 0xfe, 0x7f]);
    assert_eq!(codes(&[("saturate", Attr::Int(0))]).bytes()[..], [0x38, 0x3a, 0x7f, 0xff, 0x7f]);
}
