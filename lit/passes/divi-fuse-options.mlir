// RUN: divi-opt %s --split-input-file --divi-fuse | FileCheck %s --check-prefix=FULL
// RUN: divi-opt %s --split-input-file --divi-fuse=level=conv | FileCheck %s --check-prefix=CONV
// RUN: divi-opt %s --split-input-file --divi-fuse=level=none | FileCheck %s --check-prefix=NONE
// RUN: divi-opt %s --split-input-file --divi-fuse=max-cluster-ops=2 | FileCheck %s --check-prefix=TWO
// RUN: divi-opt %s --split-input-file --divi-fuse --divi-fuse | FileCheck %s --check-prefix=FULL

// Tests the levels, the limit of operators without
// views, and that a second run changes nothing.
// FULL-LABEL: func.func @options(
// FULL:         divi.cluster "conv_bn_add_relu"(
// FULL:         divi.cluster "elementwise"({{.*}}"/abs", "/exp", "/view", "/neg"
// FULL:         divi.cluster "bn_relu"(
// FULL:         divi.cluster "hardswish"(
// CONV-LABEL: func.func @options(
// CONV:         divi.cluster "conv_bn_add_relu"(
// CONV-NOT:     divi.cluster
// CONV:         return
// NONE-LABEL: func.func @options(
// NONE-NOT:     divi.cluster
// NONE:         return
// TWO-LABEL: func.func @options(
// TWO:         divi.cluster "conv_bn"(
// TWO:         divi.cluster "elementwise"({{.*}}"/add", "/relu"
// TWO:         divi.cluster "elementwise"({{.*}}"/abs", "/exp", "/view"
// TWO:         "onnx.Neg"
// TWO:         divi.cluster "bn_relu"(
// TWO:         divi.cluster "elementwise"({{.*}}"/plus", "/clip"
// TWO-NOT:     divi.cluster "hardswish"
func.func @options(%x: tensor<1x4x8x8xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %zero = onnx.Constant dense<0.0> : tensor<f32>
  %three = onnx.Constant dense<3.0> : tensor<f32>
  %six = onnx.Constant dense<6.0> : tensor<f32>
  %0 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %s, %s) : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Add"(%1, %x) {onnx_node_name = "/add"} : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %3 = "onnx.Relu"(%2) {onnx_node_name = "/relu"} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %4 = "onnx.MaxPoolSingleOut"(%3) {kernel_shape = [1, 1]} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %5 = "onnx.Abs"(%4) {onnx_node_name = "/abs"} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %6 = "onnx.Exp"(%5) {onnx_node_name = "/exp"} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %7 = "onnx.Identity"(%6) {onnx_node_name = "/view"} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %8 = "onnx.Neg"(%7) {onnx_node_name = "/neg"} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %9 = "onnx.BatchNormalizationInferenceMode"(%4, %s, %s, %s, %s) : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %10 = "onnx.Relu"(%9) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %11 = "onnx.MaxPoolSingleOut"(%10) {kernel_shape = [1, 1]} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %12 = "onnx.Add"(%11, %three) {onnx_node_name = "/plus"} : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8x8xf32>
  %13 = "onnx.Clip"(%12, %zero, %six) {onnx_node_name = "/clip"} : (tensor<1x4x8x8xf32>, tensor<f32>, tensor<f32>) -> tensor<1x4x8x8xf32>
  %14 = "onnx.Mul"(%11, %13) {onnx_node_name = "/mul"} : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %15 = "onnx.Div"(%14, %six) {onnx_node_name = "/div"} : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8x8xf32>
  return %8, %15 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}
