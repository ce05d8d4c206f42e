use crate::{
    ops::test_operator::{run, try_run},
    testing::floats,
};
use divi_onnx::{Attr, DType, Tensor};

fn ints(values: &[i64]) -> Attr {
    Attr::Ints(values.to_vec())
}

#[test]
fn max_pool_with_indices() {
    let x = floats(&[1, 1, 2, 3], &[1.0, 5.0, 2.0, 4.0, 3.0, 6.0]);
    let kernel = ("kernel_shape", ints(&[2, 2]));
    let types = [(DType::F32, &[1, 1, 1, 2][..]), (DType::I64, &[1, 1, 1, 2])];
    let y = try_run("MaxPool", &[Some(&x)], std::slice::from_ref(&kernel), &types).unwrap();
    assert_eq!((y[0].floats().unwrap(), y[1].ints().unwrap()), (vec![5.0, 6.0], vec![1, 5]));
    // In column-major order, the elements of the first row have indices 0, 2 and 4.
    let column_major = [kernel.clone(), ("storage_order", Attr::Int(1))];
    let y = try_run("MaxPool", &[Some(&x)], &column_major, &types).unwrap();
    assert_eq!(y[1].ints().unwrap(), [2, 5]);
    let padded = [kernel, ("pads", ints(&[1, 1, 0, 0])), ("strides", ints(&[2, 2])), ("ceil_mode", Attr::Int(1))];
    let y = run("MaxPoolSingleOut", &[x], &padded, DType::F32, &[1, 1, 2, 2]);
    assert_eq!(y.floats().unwrap(), [1.0, 5.0, 4.0, 6.0]);
    let signed = Tensor::from_ints(DType::I8, vec![1, 1, 3], &[-5, -3, -128]).unwrap();
    let pads = [("kernel_shape", ints(&[2])), ("pads", ints(&[1, 1]))];
    let y = run("MaxPoolSingleOut", &[signed], &pads, DType::I8, &[1, 1, 4]);
    assert_eq!(y.ints().unwrap(), [-5, -3, -3, -128]);
}

/// NaN is the maximum if and only if it is the first element of the window inside the image.
#[test]
fn nan_is_the_maximum_if_it_comes_first() {
    const N: f64 = f64::NAN;
    let shown = |y: Tensor| y.floats().unwrap().into_iter().map(|v| format!("{v}")).collect::<Vec<_>>().join(" ");
    for dtype in [DType::F64, DType::F32, DType::F16] {
        let x = Tensor::from_floats(dtype, vec![1, 1, 2, 4], &[N, 1.0, 3.0, N, 2.0, 4.0, N, N]).unwrap();
        let base = [("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
        let y = run("MaxPoolSingleOut", std::slice::from_ref(&x), &base, dtype, &[1, 1, 1, 2]);
        assert_eq!(shown(y), "NaN 3", "{dtype}");
        let padded = [&base[..], &[("pads", ints(&[0, 1, 0, 1]))]].concat();
        let y = run("MaxPoolSingleOut", std::slice::from_ref(&x), &padded, dtype, &[1, 1, 1, 3]);
        assert_eq!(shown(y), "NaN 4 NaN", "{dtype}");
        let dilated = [("kernel_shape", ints(&[2])), ("dilations", ints(&[2])), ("pads", ints(&[2, 2]))];
        let line = Tensor::from_floats(dtype, vec![1, 1, 3], &[N, N, 5.0]).unwrap();
        let y = run("MaxPoolSingleOut", &[line], &dilated, dtype, &[1, 1, 5]);
        assert_eq!(shown(y), "NaN NaN NaN NaN 5", "{dtype}");
    }
}

#[test]
fn averages_include_padding_on_request() {
    let x = floats(&[1, 1, 5], &[2.0, 4.0, 6.0, 8.0, 10.0]);
    let base =
        [("kernel_shape", ints(&[3])), ("strides", ints(&[2])), ("pads", ints(&[1, 1])), ("ceil_mode", Attr::Int(1))];
    let y = run("AveragePool", std::slice::from_ref(&x), &base, DType::F32, &[1, 1, 3]);
    assert_eq!(y.floats().unwrap(), [3.0, 6.0, 9.0]);
    let with_pad = [&base[..], &[("count_include_pad", Attr::Int(1))]].concat();
    let y = run("AveragePool", std::slice::from_ref(&x), &with_pad, DType::F32, &[1, 1, 3]);
    assert_eq!(y.floats().unwrap(), [2.0, 6.0, 6.0]);
    let dilated = [("kernel_shape", ints(&[2])), ("dilations", ints(&[3]))];
    let y = run("AveragePool", &[x], &dilated, DType::F32, &[1, 1, 2]);
    assert_eq!(y.floats().unwrap(), [5.0, 7.0]);
}

#[test]
fn norms_and_whole_images() {
    let x = floats(&[1, 2, 2], &[3.0, -4.0, 6.0, 8.0]);
    let y = run("LpPool", std::slice::from_ref(&x), &[("kernel_shape", ints(&[2]))], DType::F32, &[1, 2, 1]);
    assert_eq!(y.floats().unwrap(), [5.0, 10.0]);
    let global = |op, attributes: &[(&str, Attr)]| {
        run(op, std::slice::from_ref(&x), attributes, DType::F32, &[1, 2, 1]).floats().unwrap()
    };
    assert_eq!(global("GlobalAveragePool", &[]), [-0.5, 7.0]);
    assert_eq!(global("GlobalMaxPool", &[]), [3.0, 8.0]);
    assert_eq!(global("GlobalLpPool", &[("p", Attr::Int(1))]), [7.0, 14.0]);
}

#[test]
fn max_unpool_restores_positions() {
    let x = floats(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let indices = |values: &[i64]| Tensor::from_ints(DType::I64, vec![1, 1, 2, 2], values).unwrap();
    let attributes = [("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
    let y = run("MaxUnpool", &[x.clone(), indices(&[5, 7, 13, 15])], &attributes, DType::F32, &[1, 1, 5, 5]);
    let mut expected = vec![0.0; 25];
    // The indices refer to an image of 4 by 4 elements.
    for (value, place) in [(1.0, 6), (2.0, 8), (3.0, 16), (4.0, 18)] {
        expected[place] = value;
    }
    assert_eq!(y.floats().unwrap(), expected);
}
