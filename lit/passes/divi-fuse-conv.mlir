// RUN: divi-opt %s --split-input-file --divi-fuse | FileCheck %s
// RUN: divi-opt %s --split-input-file --divi-fuse --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// Tests that a convolution is fused with its BatchNormalization and activation, that constants stay outside, that the
// marker of an absent bias is inside, and that members are listed on the cluster, in its body and in its location.
// CHECK-LABEL: func.func @conv_bn_relu(
// CHECK-SAME:    %[[X:.*]]: tensor<1x3x8x8xf32>
// CHECK-NOT:     onnx.NoValue
// CHECK:         %[[W:.*]] = onnx.Constant {{.*}}tensor<4x3x3x3xf32>
// CHECK:         %[[S:.*]] = onnx.Constant {{.*}}tensor<4xf32>
// CHECK:         %[[R:.*]] = divi.cluster "conv_bn_relu"(%[[X]], %[[W]], %[[S]] : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
// CHECK-SAME:      attributes {divi.members = ["/conv", "/bn", "onnx.Relu"]}
// CHECK-NEXT:    ^bb0(%[[A:.*]]: tensor<1x3x8x8xf32>, %[[B:.*]]: tensor<4x3x3x3xf32>, %[[C:.*]]: tensor<4xf32>):
// CHECK-NEXT:      %[[NONE:.*]] = "onnx.NoValue"()
// CHECK-NEXT:      %[[CONV:.*]] = "onnx.Conv"(%[[A]], %[[B]], %[[NONE]]) {{.*}}{onnx_node_name = "/conv"}
// CHECK-NEXT:      %[[BN:.*]] = "onnx.BatchNormalizationInferenceMode"(%[[CONV]], %[[C]], %[[C]], %[[C]], %[[C]]){{.*}}onnx_node_name = "/bn"
// CHECK-NEXT:      %[[RELU:.*]] = "onnx.Relu"(%[[BN]])
// CHECK-NEXT:      divi.yield %[[RELU]] : tensor<1x4x6x6xf32>
// CHECK:         return %[[R]]
// LOC-DAG:       #[[CONV:loc[0-9]+]] = loc("conv")
// LOC-DAG:       #[[BN:loc[0-9]+]] = loc("bn")
// LOC-DAG:       #[[RELU:loc[0-9]+]] = loc("relu")
// LOC:           loc(fused[#[[CONV]], #[[BN]], #[[RELU]]])
func.func @conv_bn_relu(%x: tensor<1x3x8x8xf32>) -> tensor<1x4x6x6xf32> {
  %none = "onnx.NoValue"() <{value}> : () -> none
  %w = onnx.Constant dense<0.5> : tensor<4x3x3x3xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %none) {onnx_node_name = "/conv"} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, none) -> tensor<1x4x6x6xf32> loc("conv")
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %s, %s) {onnx_node_name = "/bn"} : (tensor<1x4x6x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32> loc("bn")
  %2 = "onnx.Relu"(%1) : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32> loc("relu")
  return %2 : tensor<1x4x6x6xf32>
}

// -----

// Tests that a residual and the activation after it are fused, whichever operand the residual is.
// CHECK-LABEL: func.func @residual(
// CHECK:         divi.cluster "conv_bn_add_relu"(
// CHECK:         divi.cluster "conv_relu_add"(
// CHECK-NOT:     divi.cluster
func.func @residual(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %none = "onnx.NoValue"() <{value}> : () -> none
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %none) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, none) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %s, %s) : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Add"(%x, %1) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %3 = "onnx.Relu"(%2) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %4 = "onnx.Conv"(%3, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %5 = "onnx.Relu"(%4) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %6 = "onnx.Add"(%5, %3) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %6 : tensor<1x4x8x8xf32>
}

// -----

// Tests that the sum of two convolutions is fused with the one on the longer path, as in a ResNet block that changes
// the number of channels.
// CHECK-LABEL: func.func @downsample(
// CHECK:         divi.cluster "conv_bn"({{.*}}divi.members = ["/down", "/down_bn"]
// CHECK:         divi.cluster "conv_bn_relu"({{.*}}divi.members = ["/first", "/first_bn", "/first_relu"]
// CHECK:         divi.cluster "conv_bn_add_relu"({{.*}}divi.members = ["/second", "/second_bn", "/add", "/relu"]
func.func @downsample(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %none = "onnx.NoValue"() <{value}> : () -> none
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %none) {onnx_node_name = "/down"} : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, none) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %s, %s) {onnx_node_name = "/down_bn"} : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Conv"(%x, %w, %none) {onnx_node_name = "/first"} : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, none) -> tensor<1x4x8x8xf32>
  %3 = "onnx.BatchNormalizationInferenceMode"(%2, %s, %s, %s, %s) {onnx_node_name = "/first_bn"} : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %4 = "onnx.Relu"(%3) {onnx_node_name = "/first_relu"} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %5 = "onnx.Conv"(%4, %w, %none) {onnx_node_name = "/second"} : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, none) -> tensor<1x4x8x8xf32>
  %6 = "onnx.BatchNormalizationInferenceMode"(%5, %s, %s, %s, %s) {onnx_node_name = "/second_bn"} : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %7 = "onnx.Add"(%1, %6) {onnx_node_name = "/add"} : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %8 = "onnx.Relu"(%7) {onnx_node_name = "/relu"} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %8 : tensor<1x4x8x8xf32>
}

// -----

// Tests activations by operator, and that a cluster ends after the first one unless there is a residual.
// CHECK-LABEL: func.func @activations(
// CHECK:         divi.cluster "conv_clip"(
// CHECK:         divi.cluster "conv_hardswish"(
// CHECK:         divi.cluster "conv_hardsigmoid"(
// CHECK:         divi.cluster "conv_leakyrelu"(
// CHECK:         divi.cluster "conv_prelu"(
// CHECK:         divi.cluster "conv_silu"(
// CHECK:         divi.cluster "conv_tanh"(
// CHECK:         "onnx.Relu"
func.func @activations(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %zero = onnx.Constant dense<0.0> : tensor<f32>
  %slope = onnx.Constant dense<0.1> : tensor<4x1x1xf32>
  %0 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.Clip"(%0, %zero, %zero) : (tensor<1x4x8x8xf32>, tensor<f32>, tensor<f32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Conv"(%1, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %3 = "onnx.HardSwish"(%2) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %4 = "onnx.Conv"(%3, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %5 = "onnx.HardSigmoid"(%4) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %6 = "onnx.Conv"(%5, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %7 = "onnx.LeakyRelu"(%6) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %8 = "onnx.Conv"(%7, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %9 = "onnx.PRelu"(%8, %slope) : (tensor<1x4x8x8xf32>, tensor<4x1x1xf32>) -> tensor<1x4x8x8xf32>
  %10 = "onnx.Conv"(%9, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %11 = "onnx.Sigmoid"(%10) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %12 = "onnx.Mul"(%11, %10) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %13 = "onnx.Conv"(%12, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %14 = "onnx.Tanh"(%13) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %15 = "onnx.Relu"(%14) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %15 : tensor<1x4x8x8xf32>
}

// -----

// Tests that ConvTranspose is fused as Conv is, and BatchNormalization in its general form too, if not in training.
// CHECK-LABEL: func.func @conv_transpose(
// CHECK:         divi.cluster "convtranspose_bn_relu"(
func.func @conv_transpose(%x: tensor<1x4x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %none = "onnx.NoValue"() <{value}> : () -> none
  %w = onnx.Constant dense<0.5> : tensor<4x2x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<2xf32>
  %0 = "onnx.ConvTranspose"(%x, %w, %none) : (tensor<1x4x8x8xf32>, tensor<4x2x1x1xf32>, none) -> tensor<1x2x8x8xf32>
  %1:3 = "onnx.BatchNormalization"(%0, %s, %s, %s, %s) : (tensor<1x2x8x8xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x8x8xf32>, none, none)
  %2 = "onnx.Relu"(%1#0) : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  return %2 : tensor<1x2x8x8xf32>
}

// -----

// Tests that an Add of one constant per channel is the bias of a convolution without one; and dynamic batches.
// CHECK-LABEL: func.func @bias(
// CHECK:         divi.cluster "conv_bias_relu_add"({{.*}}-> tensor<?x4x8x8xf32>
func.func @bias(%x: tensor<?x4x8x8xf32>) -> tensor<?x4x8x8xf32> {
  %none = "onnx.NoValue"() <{value}> : () -> none
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %b = onnx.Constant dense<1.0> : tensor<4x1x1xf32>
  %0 = "onnx.Conv"(%x, %w, %none) : (tensor<?x4x8x8xf32>, tensor<4x4x1x1xf32>, none) -> tensor<?x4x8x8xf32>
  %1 = "onnx.Add"(%b, %0) : (tensor<4x1x1xf32>, tensor<?x4x8x8xf32>) -> tensor<?x4x8x8xf32>
  %2 = "onnx.Relu"(%1) : (tensor<?x4x8x8xf32>) -> tensor<?x4x8x8xf32>
  %3 = "onnx.Add"(%2, %x) : (tensor<?x4x8x8xf32>, tensor<?x4x8x8xf32>) -> tensor<?x4x8x8xf32>
  return %3 : tensor<?x4x8x8xf32>
}

// -----

// Tests that BatchNormalization before a convolution is a scale and a shift, with its activation.
// CHECK-LABEL: func.func @before(
// CHECK:         divi.cluster "bn_relu"(
// CHECK:         "onnx.Conv"
func.func @before(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.BatchNormalizationInferenceMode"(%x, %s, %s, %s, %s) : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.Relu"(%0) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Conv"(%1, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  return %2 : tensor<1x4x8x8xf32>
}
