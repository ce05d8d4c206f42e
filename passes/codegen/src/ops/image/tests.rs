use crate::testing::{assert_close, evaluate, floats, ints};
use divi_onnx::{Attr, DType, Tensor};
use std::slice::from_ref;

fn text(value: &str) -> Attr {
    Attr::Str(value.into())
}

/// Resizes a row of numbers to `to` elements, given as size.
fn row(values: &[f64], to: i64, attributes: &[(&str, Attr)]) -> Vec<f64> {
    let shape = [1, values.len() as i64];
    let empty = floats(&[0], &[]);
    let constants = [empty.clone(), empty, Tensor::from_shape(&[1, to])];
    let outputs = evaluate("Resize", &[floats(&shape, values)], &constants, attributes, &[(DType::F32, &[1, to])]);
    outputs.unwrap()[0].floats().unwrap()
}

#[test]
fn rows_are_resized() {
    let linear = ("mode", text("linear"));
    assert_close(&row(&[1.0, 2.0], 4, from_ref(&linear)), &[1.0, 1.25, 1.75, 2.0], 1e-6);
    let align = ("coordinate_transformation_mode", text("align_corners"));
    assert_close(&row(&[1.0, 4.0], 4, &[linear.clone(), align]), &[1.0, 2.0, 3.0, 4.0], 1e-6);
    let smooth = ("antialias", Attr::Int(1));
    // Outside, the element at the border is used.
    let triangle = (1.0 * 0.25 + 1.0 * 0.75 + 2.0 * 0.75 + 3.0 * 0.25) / 2.0;
    assert_close(&row(&[1.0, 2.0, 3.0, 4.0], 2, &[linear, smooth])[..1], &[triangle], 1e-6);
    assert_close(&row(&[1.0, 2.0, 3.0], 6, &[]), &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0], 0.0);
    let asymmetric = ("coordinate_transformation_mode", text("asymmetric"));
    let ceil = ("nearest_mode", text("ceil"));
    assert_close(&row(&[1.0, 2.0], 4, &[asymmetric, ceil]), &[1.0, 2.0, 2.0, 2.0], 0.0);
    let cubic = [("mode", text("cubic")), ("coordinate_transformation_mode", text("asymmetric"))];
    // Halfway, the kernel has the weights -3/32, 19/32, 19/32, -3/32.
    let found = row(&[1.0, 2.0, 4.0, 8.0], 8, &cubic);
    assert_close(&found[2..4], &[2.0, (19.0 * 6.0 - 3.0 * 9.0) / 32.0], 1e-6);
}

#[test]
fn both_axes_of_integers_are_resized() {
    let x = ints(DType::U8, &[2, 2], &[0, 100, 200, 255]);
    let constants = [floats(&[0], &[]), floats(&[2], &[2.0, 1.5])];
    let attributes = [("mode", text("linear")), ("coordinate_transformation_mode", text("align_corners"))];
    let outputs = evaluate("Resize", &[x], &constants, &attributes, &[(DType::U8, &[4, 3])]).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [0, 50, 100, 67, 109, 152, 133, 168, 203, 200, 228, 255]);
}

#[test]
fn regions_are_cropped() {
    let x = floats(&[1, 1, 4], &[1.0, 2.0, 3.0, 4.0]);
    let constants = [floats(&[2], &[0.5, 1.5]), floats(&[1], &[0.75])];
    let attributes = [
        ("axes", Attr::Ints(vec![2])),
        ("coordinate_transformation_mode", text("tf_crop_and_resize")),
        ("mode", text("linear")),
        ("extrapolation_value", Attr::Float(9.0)),
    ];
    let outputs = evaluate("Resize", &[x], &constants, &attributes, &[(DType::F32, &[1, 1, 3])]).unwrap();
    assert_close(&outputs[0].floats().unwrap(), &[2.5, 4.0, 9.0], 1e-6);
}

#[test]
fn grids_are_sampled() {
    let x = floats(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let grid = floats(&[1, 1, 4, 2], &[0.0, 0.0, -1.0, -1.0, 1.0, 0.0, 3.0, -0.5]);
    let case = |mode: &str, padding: &str, align| {
        let attributes = [("mode", text(mode)), ("padding_mode", text(padding)), ("align_corners", Attr::Int(align))];
        let outputs =
            evaluate("GridSample", &[x.clone(), grid.clone()], &[], &attributes, &[(DType::F32, &[1, 1, 1, 4])]);
        outputs.unwrap()[0].floats().unwrap()
    };
    assert_close(&case("linear", "zeros", 1), &[2.5, 1.0, 3.0, 0.0], 1e-6);
    assert_close(&case("linear", "zeros", 0), &[2.5, 0.25, 1.5, 0.0], 1e-6);
    assert_close(&case("linear", "border", 0), &[2.5, 1.0, 3.0, 2.0], 1e-6);
    assert_close(&case("linear", "reflection", 1), &[2.5, 1.0, 3.0, 1.5], 1e-6);
    assert_close(&case("nearest", "border", 1)[1..], &[1.0, 2.0, 2.0], 1e-6);
    assert_close(&case("cubic", "border", 1)[..3], &[2.5, 1.0, 3.0], 1e-6);
}

#[test]
fn affine_grids() {
    let theta = floats(&[1, 2, 3], &[1.0, 0.0, 0.5, 0.0, 2.0, 0.0]);
    let size = Tensor::from_shape(&[1, 1, 1, 2]);
    let outputs = evaluate("AffineGrid", &[theta], &[size], &[], &[(DType::F32, &[1, 1, 2, 2])]).unwrap();
    assert_close(&outputs[0].floats().unwrap(), &[0.0, 0.0, 1.0, 0.0], 1e-6);
}

#[test]
fn regions_are_pooled() {
    let x = floats(&[1, 1, 4, 4], &(0..16).map(f64::from).collect::<Vec<_>>());
    let inputs = [x.clone(), floats(&[1, 4], &[0.0, 0.0, 4.0, 4.0]), ints(DType::I64, &[1], &[0])];
    let attributes = [("output_height", Attr::Int(2)), ("output_width", Attr::Int(2))];
    let result = [(DType::F32, &[1, 1, 2, 2][..])];
    // Sampling points are centers of pixels.
    let outputs = evaluate("RoiAlign", &inputs, &[], &attributes, &result).unwrap();
    assert_close(&outputs[0].floats().unwrap(), &[2.5, 4.5, 10.5, 12.5], 1e-6);
    let attributes = [("pooled_shape", Attr::Ints(vec![2, 2]))];
    let regions = floats(&[1, 5], &[0.0, 0.0, 0.0, 3.0, 3.0]);
    let outputs = evaluate("MaxRoiPool", &[x, regions], &[], &attributes, &result).unwrap();
    assert_close(&outputs[0].floats().unwrap(), &[5.0, 7.0, 13.0, 15.0], 0.0);
}

#[test]
fn columns_become_images() {
    let columns = Tensor::from_floats(DType::F16, vec![1, 4, 4], &(0..16).map(f64::from).collect::<Vec<_>>()).unwrap();
    let constants = [Tensor::from_shape(&[3, 3]), Tensor::from_shape(&[2, 2])];
    let outputs = evaluate("Col2Im", &[columns], &constants, &[], &[(DType::F16, &[1, 1, 3, 3])]).unwrap();
    assert_close(&outputs[0].floats().unwrap(), &[0.0, 5.0, 5.0, 10.0, 30.0, 20.0, 10.0, 25.0, 15.0], 0.0);
}

#[test]
fn the_best_boxes_are_kept() {
    let boxes = floats(&[1, 4, 4], &[0., 0., 1., 1., 0., 0.1, 1., 1.1, 2., 2., 1., 1., 5., 5., 6., 6.]);
    let inputs = [
        boxes,
        floats(&[1, 1, 4], &[0.8, 0.9, 0.7, 0.1]),
        Tensor::scalar_i64(3),
        floats(&[1], &[0.5]),
        floats(&[], &[0.2]),
    ];
    let case = |count: i64| evaluate("NonMaxSuppression", &inputs, &[], &[], &[(DType::I64, &[count, 3])]);
    assert_eq!(case(2).unwrap()[0].ints().unwrap(), [0, 0, 1, 0, 0, 2]);
    assert_eq!(case(1).unwrap_err(), "status 3");
}
