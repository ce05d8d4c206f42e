//! Upgrades of each operator.

use super::Case;
use divi_onnx::{Attr, DType, Tensor};

#[test]
fn rules_are_sorted() {
    assert!(super::super::RULES.is_sorted_by_key(|(name, ..)| name));
}

#[test]
fn newest_form_is_unchanged() {
    Case::new(28, "Relu").input(&[2]).becomes(&["Relu"], &[]);
    Case::new(13, "Softmax").input(&[2, 3, 4]).becomes(&["Softmax"], &[]);
    Case::new(7, "Add").input(&[2, 3]).input(&[3]).becomes(&["Add"], &["tensor<2x3xf32>"]);
}

#[test]
fn memory_hints_are_dropped() {
    let module = Case::new(1, "Relu").input(&[2]).ints("consumed_inputs", &[0]).import().unwrap();
    assert!(!module.contains("consumed_inputs"), "{module}");
}

#[test]
fn batch_normalization_is_inference_or_training() {
    let case = |opset| {
        let parameters = |case: Case| (0..4).fold(case, |case, _| case.input(&[3]));
        parameters(Case::new(opset, "BatchNormalization").input(&[2, 3, 4, 4])).float("epsilon", 0.5)
    };
    let inference: &[&str] = &["BatchNormalizationInferenceMode"];
    for opset in [1, 6, 7, 9, 14, 15, 28] {
        case(opset).becomes(inference, &["epsilon = 5.000000e-01"]);
    }
    case(15).int("training_mode", 0).becomes(inference, &[]);
    case(15).int("training_mode", 1).becomes(&["BatchNormalization"], &["training_mode = 1"]);
    case(9).outputs(3).becomes(&["BatchNormalization"], &["training_mode = 1"]);
    case(15).unnamed_output().unnamed_output().becomes(inference, &[]);
    case(9).outputs(5).fails("names the results saved_mean and saved_var in opset 9");
    let module = case(6).int("is_test", 1).int("spatial", 1).import().unwrap();
    assert!(!module.contains("is_test") && !module.contains("spatial"), "{module}");
    case(7).int("spatial", 0).fails("has spatial=0 in opset 7, which the newest opset cannot express");
    case(6).int("is_test", 1).outputs(3).fails("has is_test=1");
    Case::new(15, "BatchNormalization").input(&[2, 3]).fails("has 1 operands, takes 5");
}

#[test]
fn dropout_is_removed_in_inference() {
    for opset in [7, 10, 12, 22] {
        Case::new(opset, "Dropout").input(&[2, -1]).becomes(&[], &[]);
    }
    let mode = |on| Tensor::from_ints(DType::Bool, vec![], &[on]).unwrap();
    Case::new(13, "Dropout").input(&[2]).absent().constant(&mode(0)).becomes(&[], &[]);
    Case::new(13, "Dropout").input(&[2]).absent().constant(&mode(1)).becomes(&["Dropout"], &[]);
    let dynamic = Case::new(13, "Dropout").input(&[2]).absent().typed_input(DType::Bool, Some(&[]));
    dynamic.becomes(&["Dropout"], &[]);
    Case::new(6, "Dropout").input(&[2]).int("is_test", 1).becomes(&[], &[]);
    Case::new(6, "Dropout").input(&[2]).float("ratio", 0.25).becomes(&["Dropout"], &["dense<2.500000e-01>"]);
    Case::new(6, "Dropout").input(&[2]).outputs(2).fails("names the mask of training in opset 6");
    Case::new(13, "Dropout").input(&[2, 3]).outputs(2).becomes(&[], &["dense<true> : tensor<2x3xi1>"]);
    Case::new(13, "Dropout").input(&[-1]).outputs(2).becomes(&["Shape", "ConstantOfShape"], &["tensor<?xi1>"]);
    Case::new(7, "Dropout").input(&[-1]).outputs(2).becomes(&["Shape", "ConstantOfShape"], &["tensor<?xf32>"]);
}

#[test]
fn axes_become_operands() {
    let axes = "dense<1> : tensor<1xi64>";
    Case::new(11, "Squeeze").input(&[2, 1]).ints("axes", &[1]).becomes(&["Squeeze"], &[axes, "-> tensor<2xf32>"]);
    Case::new(1, "Squeeze").input(&[2, 1]).becomes(&["Squeeze"], &["-> tensor<2xf32>"]);
    Case::new(11, "Unsqueeze").input(&[2]).ints("axes", &[1]).becomes(&["Unsqueeze"], &[axes, "tensor<2x1xf32>"]);
    Case::new(11, "Unsqueeze").input(&[2]).fails("lacks the attribute 'axes', which opset 11 requires");
    for (opset, op) in [(11, "ReduceSum"), (17, "ReduceMean"), (13, "ReduceLogSumExp"), (1, "ReduceMax")] {
        let case = Case::new(opset, op).input(&[2, 3]).int("keepdims", 0);
        case.ints("axes", &[1]).becomes(&[op], &[axes, "-> tensor<2xf32>"]);
    }
    Case::new(11, "ReduceSum").input(&[2, 3]).becomes(&["ReduceSum"], &["-> tensor<1x1xf32>"]);
    Case::new(17, "ReduceMean").input(&[2]).input(&[1]).fails("has 2 operands, takes 1 in opset 17");
    Case::new(11, "Squeeze").input(&[1]).int("axes", 0).fails("'axes', which must be a list of integers");
}

#[test]
fn split_gets_lengths_or_a_number() {
    let parts: &[&str] = &["tensor<2x3xf32>", "tensor<4x3xf32>"];
    Case::new(11, "Split").input(&[6, 3]).ints("split", &[2, 4]).outputs(2).becomes(&["Split"], parts);
    let lengths = Tensor::from_floats(DType::F32, vec![2], &[2.0, 4.0]).unwrap();
    Case::new(1, "Split").input(&[6, 3]).constant(&lengths).outputs(2).becomes(&["Split"], parts);
    for opset in [2, 13, 17] {
        let case = Case::new(opset, "Split").input(&[6, 3]).outputs(3);
        case.becomes(&["Split"], &["num_outputs = 3", "tensor<2x3xf32>"]);
    }
    Case::new(13, "Split")
        .input(&[6])
        .constant(&Tensor::from_shape(&[1, 5]))
        .outputs(2)
        .becomes(&["Split"], &["tensor<5xf32>"]);
    // Listed results count, even without uses.
    let listed = Case::new(13, "Split").input(&[6]).outputs(1).unnamed_output().unnamed_output();
    listed.becomes(&["Split"], &["num_outputs = 3"]);
}

#[test]
fn other_attributes_become_operands() {
    let slice = || Case::new(9, "Slice").input(&[4, 5, 6]).ints("starts", &[1, 0]);
    slice().ints("ends", &[3, 1000]).becomes(&["Slice"], &["dense<[0, 1]>", "-> tensor<2x5x6xf32>"]);
    slice().ints("ends", &[3, -1]).ints("axes", &[0, 2]).becomes(&["Slice"], &["-> tensor<2x5x5xf32>"]);
    slice().ints("ends", &[3]).fails("has 2 starts, 1 ends and 2 axes");
    Case::new(2, "Pad").input(&[2, 3]).ints("pads", &[0, 1, 0, 1]).becomes(&["Pad"], &["-> tensor<2x5xf32>"]);
    let padded = Case::new(1, "Pad").input(&[2, 3]).ints("paddings", &[0, 1, 0, 1]).float("value", 2.0);
    padded.becomes(&["Pad"], &["dense<2.000000e+00> : tensor<f32>", "-> tensor<2x5xf32>"]);
    let clip = || Case::new(6, "Clip").typed_input(DType::F16, Some(&[2]));
    clip().float("max", 6.0).becomes(&["Clip"], &["dense<6.000000e+00> : tensor<f16>", "none, tensor<f16>"]);
    clip().becomes(&["Clip"], &[]);
    let top = Case::new(1, "TopK").input(&[2, 9]).int("k", 4).outputs(2);
    top.becomes(&["TopK"], &["tensor<2x4xf32>, tensor<2x4xi64>"]);
    Case::new(4, "Reshape").input(&[2, 6]).ints("shape", &[0, -1, 3]).becomes(&["Reshape"], &["tensor<2x2x3xf32>"]);
    let dft = |case: Case| case.becomes(&["DFT"], &["dense<1> : tensor<i64>"]);
    dft(Case::new(17, "DFT").input(&[1, 8, 4, 1]));
    dft(Case::new(19, "DFT").input(&[1, 8, 4, 1]).int("axis", 1));
}

#[test]
fn tiles_are_given_for_every_axis() {
    let tile = || Case::new(1, "Tile").input(&[2, 3, 4]);
    tile().floats(&[], &[5.0]).floats(&[], &[1.0]).becomes(&["Tile"], &["[1, 5, 1]", "tensor<2x15x4xf32>"]);
    tile().floats(&[1], &[5.0]).floats(&[1], &[0.0]).becomes(&["Tile"], &["[5, 1, 1]"]);
    tile().floats(&[1], &[5.0]).floats(&[1], &[2.0]).becomes(&["Tile"], &["[1, 1, 5]"]);
    tile().input(&[1]).floats(&[1], &[2.0]).becomes(&["Cast", "Reshape", "Concat", "Tile"], &["tensor<2x3x?xf32>"]);
    tile().floats(&[], &[5.0]).input(&[]).fails("has an axis that is not constant in opset 1");
    tile().floats(&[], &[5.0]).floats(&[], &[3.0]).fails("axis 3 is outside");
}

#[test]
fn old_broadcasting_becomes_numpy_broadcasting() {
    let case = |op: &str| Case::new(6, op).input(&[2, 3, 4, 5]).int("broadcast", 1);
    case("Add").input(&[3, 4]).int("axis", 1).becomes(&["Unsqueeze", "Add"], &["dense<2>", "tensor<3x4x1xf32>"]);
    case("Mul").input(&[2]).int("axis", 0).becomes(&["Unsqueeze", "Mul"], &["[1, 2, 3]", "tensor<2x1x1x1xf32>"]);
    case("Less").input(&[3]).int("axis", -3).becomes(&["Unsqueeze", "Less"], &["tensor<3x1x1xf32>"]);
    case("Div").input(&[4, 5]).int("axis", 2).becomes(&["Div"], &[]);
    case("Sub").input(&[5]).becomes(&["Sub"], &[]);
    case("Pow").input(&[]).int("axis", 0).becomes(&["Pow"], &[]);
    case("Add").input(&[4, 5]).int("axis", 3).fails("broadcasts an operand of rank 2 from axis 3 of one of rank 4");
    case("Add").input(&[4]).int("axis", 9).fails("axis 9 is outside");
    case("Add").unranked().int("axis", 1).fails("whose rank must be known to broadcast along an axis");
    Case::new(6, "Add").input(&[2]).input(&[2]).int("axis", 7).becomes(&["Add"], &[]);
    let constant = case("Add").floats(&[3], &[1.0; 3]).int("axis", 1);
    constant.becomes(&["Add"], &["tensor<3x1x1xf32>"]);
}

#[test]
fn slopes_and_biases_are_broadcast() {
    Case::new(6, "PRelu").input(&[2, 3, 4]).input(&[3]).becomes(&["Unsqueeze", "PRelu"], &["tensor<3x1xf32>"]);
    Case::new(6, "PRelu").input(&[2, 3]).input(&[3]).becomes(&["PRelu"], &[]);
    Case::new(6, "PRelu").unranked().input(&[1]).becomes(&["PRelu"], &[]);
    Case::new(6, "PRelu").unranked().input(&[3]).fails("whose rank must be known to find its channels");
    let gemm = Case::new(6, "Gemm").input(&[2, 3]).input(&[3, 4]).input(&[4]).int("broadcast", 1).import().unwrap();
    assert!(!gemm.contains("broadcast"), "{gemm}");
}

#[test]
fn softmax_over_several_axes_is_flattened() {
    Case::new(11, "Softmax").input(&[2, 3]).becomes(&["Softmax"], &["axis = 1"]);
    Case::new(11, "LogSoftmax").input(&[2, 3, 4]).int("axis", -1).becomes(&["LogSoftmax"], &["axis = 2"]);
    Case::new(1, "Softmax").input(&[2, 3, 1, 1]).becomes(&["Softmax"], &["axis = 1"]);
    let flat: &[&str] = &["Flatten", "Hardmax", "Reshape"];
    Case::new(11, "Hardmax").input(&[2, 3, 4]).becomes(flat, &["axis = -1", "tensor<2x12xf32>", "[2, 3, 4]"]);
    let dynamic = Case::new(7, "Softmax").input(&[-1, 3, 4]);
    dynamic.becomes(&["Flatten", "Softmax", "Shape", "Reshape"], &["allowzero = 1", "tensor<?x3x4xf32>"]);
    Case::new(7, "Softmax").unranked().becomes(&["Flatten", "Softmax", "Shape", "Reshape"], &[]);
    Case::new(11, "Softmax").unranked().int("axis", -1).becomes(&["Softmax"], &["axis = -1"]);
    Case::new(11, "Softmax").input(&[2]).fails("axis 1 is outside");
}

#[test]
fn group_parameters_become_channel_parameters() {
    let case = |channels| Case::new(18, "GroupNormalization").input(&[2, channels, 5]).int("num_groups", 2);
    let steps: &[&str] = &["Reshape", "Expand", "Reshape", "Reshape", "Expand", "Reshape", "GroupNormalization"];
    case(6).input(&[2]).input(&[2]).becomes(steps, &["[2, 3]", "tensor<6xf32>"]);
    case(6).floats(&[2], &[1.0, 2.0]).floats(&[2], &[3.0, 4.0]).becomes(&["GroupNormalization"], &["tensor<6xf32>"]);
    assert!(case(-1).input(&[2]).input(&[2]).import().is_ok());
    case(5).input(&[2]).input(&[2]).fails("a dimension of 5 does not divide into 2 groups");
    Case::new(18, "GroupNormalization")
        .input(&[2, 4])
        .input(&[2])
        .input(&[2])
        .fails("lacks the attribute 'num_groups'");
    Case::new(21, "GroupNormalization")
        .input(&[2, 4])
        .input(&[4])
        .input(&[4])
        .int("num_groups", 2)
        .becomes(&["GroupNormalization"], &[]);
}

#[test]
fn pooling_is_upgraded() {
    let pool = |outputs| {
        let case = Case::new(12, "MaxPool").input(&[1, 3, 8, 8]).ints("kernel_shape", &[2, 2]);
        case.outputs(outputs)
    };
    pool(1).becomes(&["MaxPoolSingleOut"], &["tensor<1x3x7x7xf32>"]);
    pool(2).becomes(&["MaxPool"], &["tensor<1x3x7x7xi64>"]);
    pool(1).unnamed_output().becomes(&["MaxPoolSingleOut"], &[]);
    pool(1).input(&[1]).fails("has 2 operands, takes 1");
    Case::new(1, "GlobalLpPool").input(&[1, 3, 8]).float("p", 3.0).becomes(&["GlobalLpPool"], &["p = 3"]);
    Case::new(1, "GlobalLpPool").input(&[1, 3, 8]).float("p", 1.5).fails("has p=1.5 in opset 1");
}

#[test]
fn upsample_becomes_resize() {
    let steps: &[&str] = &["Resize"];
    let texts: &[&str] = &["\"asymmetric\"", "\"floor\"", "mode = \"nearest\"", "tensor<1x3x8x12xf32>"];
    let sampled = |opset| Case::new(opset, "Upsample").input(&[1, 3, 4, 4]);
    sampled(1).float("height_scale", 2.0).float("width_scale", 3.0).becomes(steps, texts);
    sampled(7).attr("scales", Attr::Floats(vec![1.0, 1.0, 2.0, 3.0])).becomes(steps, texts);
    sampled(9).floats(&[4], &[1.0, 1.0, 2.0, 3.0]).becomes(steps, texts);
    let resize = |opset| Case::new(opset, "Resize").input(&[1, 3, 4, 4]);
    resize(10).floats(&[4], &[1.0, 1.0, 2.0, 3.0]).becomes(steps, texts);
    let linear: &[&str] = &["\"asymmetric\"", " mode = \"linear\""];
    sampled(9).floats(&[4], &[1.0, 1.0, 2.0, 3.0]).str("mode", "linear").becomes(steps, linear);
    sampled(1).float("height_scale", 2.0).float("width_scale", 2.0).str("mode", "bilinear").becomes(steps, linear);
    sampled(1).float("height_scale", 2.0).fails("lacks the attribute 'width_scale'");
    sampled(7).attr("scales", Attr::Floats(vec![1.0])).str("mode", "cubic").fails("has mode 'cubic'");
    resize(10).floats(&[4], &[1.0, 1.0, 0.5, 0.5]).becomes(steps, &["\"ceil\"", "tensor<1x3x2x2xf32>"]);
    resize(10)
        .floats(&[4], &[1.0, 1.0, 0.5, 2.0])
        .fails("enlarges along one axis and shrinks along another in opset 10");
    resize(10).floats(&[4], &[1.0, 1.0, 0.5, 2.0]).str("mode", "linear").becomes(steps, linear);
    let sizes = Tensor::from_shape(&[1, 3, 8, 12]);
    let by_sizes = resize(11).floats(&[0], &[]).floats(&[0], &[]).constant(&sizes);
    by_sizes
        .str("coordinate_transformation_mode", "tf_half_pixel_for_nn")
        .becomes(steps, &["none, none, tensor<4xi64>", "tf_half_pixel_for_nn"]);
}

#[test]
fn sampling_gets_explicit_defaults() {
    let rois = |opset| {
        let case = Case::new(opset, "RoiAlign").input(&[1, 3, 8, 8]).input(&[5, 4]);
        case.typed_input(DType::I64, Some(&[5]))
    };
    rois(10).becomes(&["RoiAlign"], &["\"output_half_pixel\""]);
    rois(16).becomes(&["RoiAlign"], &["\"half_pixel\""]);
    let grid = |mode| Case::new(16, "GridSample").input(&[1, 3, 8, 8]).input(&[1, 4, 4, 2]).str("mode", mode);
    grid("bilinear").becomes(&["GridSample"], &["mode = \"linear\""]);
    grid("bicubic").becomes(&["GridSample"], &["mode = \"cubic\""]);
    grid("nearest").becomes(&["GridSample"], &["mode = \"nearest\""]);
}

#[test]
fn defaults_and_names_are_upgraded() {
    Case::new(5, "Cast").input(&[2]).str("to", "INT64").becomes(&["Cast"], &["to = i64", "tensor<2xi64>"]);
    Case::new(5, "Cast").input(&[2]).str("to", "REAL").fails("casts to 'REAL', which is not an ONNX element type");
    Case::new(5, "Cast").input(&[2]).int("to", 7).fails("'to', which must be a string");
    Case::new(1, "Concat").input(&[2, 3]).input(&[2, 4]).becomes(&["Concat"], &["axis = 1", "tensor<2x7xf32>"]);
    Case::new(1, "Selu").input(&[2]).float("alpha", 2.0).becomes(&["Selu"], &["alpha = 2.0", "gamma = 1.0507"]);
    let scatter = Case::new(9, "Scatter").input(&[3, 3]).typed_input(DType::I64, Some(&[1, 3])).input(&[1, 3]);
    scatter.becomes(&["ScatterElements"], &[]);
    let gru = Case::new(1, "GRU").input(&[5, 2, 4]).input(&[1, 9, 4]).input(&[1, 9, 3]).int("hidden_size", 3);
    let module = gru.int("output_sequence", 1).str("direction", "foward").outputs(2).import().unwrap();
    assert!(module.contains("\"forward\"") && !module.contains("output_sequence"), "{module}");
}

#[test]
fn inexpressible_forms_are_errors() {
    Case::new(8, "MeanVarianceNormalization").input(&[1, 2, 3, 4]).fails("is of opset 8, where it was experimental");
    Case::new(8, "Scan").input(&[1, 2, 3]).fails("is of opset 8, where Scan had batches");
}
