// RUN: divi-opt %s --split-input-file --divi-fuse | FileCheck %s

// Tests that a BatchNormalization is not folded into a convolution with another use.
// CHECK-LABEL: func.func @second_reader_of_conv(
// CHECK-NEXT:    onnx.Constant
// CHECK-NEXT:    onnx.Constant
// CHECK-NEXT:    "onnx.Conv"
// CHECK-NEXT:    divi.cluster "bn_relu"(
func.func @second_reader_of_conv(%x: tensor<1x4x8x8xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %s, %s) : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Relu"(%1) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %0, %2 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}

// -----

// Tests that an activation is not fused if its operand has another use, which could run concurrently.
// CHECK-LABEL: func.func @two_readers(
// CHECK:         divi.cluster "conv_bn"(
// CHECK:         "onnx.Relu"
// CHECK-NEXT:    "onnx.Sigmoid"
func.func @two_readers(%x: tensor<1x4x8x8xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %s, %s) : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Relu"(%1) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %3 = "onnx.Sigmoid"(%1) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %2, %3 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}

// -----

// Tests that operators are not fused across a returned value.
// CHECK-LABEL: func.func @returned(
// CHECK:         %[[CONV:.*]] = divi.cluster "conv_bn"(
// CHECK:         %[[RELU:.*]] = "onnx.Relu"(%[[CONV]])
// CHECK-NEXT:    return %[[CONV]], %[[RELU]]
func.func @returned(%x: tensor<1x4x8x8xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %s, %s) : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Relu"(%1) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %1, %2 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}

// -----

// Tests that BatchNormalization is not folded if its statistics or the weights are not constant.
// CHECK-LABEL: func.func @statistics(
// CHECK:         "onnx.Conv"
// CHECK-NEXT:    divi.cluster "elementwise"(
// CHECK:         "onnx.Conv"
// CHECK-NEXT:    divi.cluster "bn_relu"(
func.func @statistics(%x: tensor<1x4x8x8xf32>, %m: tensor<4xf32>, %v: tensor<4x4x1x1xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %m, %s) : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Relu"(%1) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %3 = "onnx.Conv"(%x, %v, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %4 = "onnx.BatchNormalizationInferenceMode"(%3, %s, %s, %s, %s) : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %5 = "onnx.Relu"(%4) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %2, %5 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}

// -----

// Tests that BatchNormalization in training, which computes its statistics, is not fused.
// CHECK-LABEL: func.func @training(
// CHECK:         "onnx.Conv"
// CHECK-NEXT:    "onnx.BatchNormalization"
// CHECK-NEXT:    "onnx.Relu"
func.func @training(%x: tensor<1x4x8x8xf32>) -> (tensor<1x4x8x8xf32>, tensor<4xf32>) {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1:3 = "onnx.BatchNormalization"(%0, %s, %s, %s, %s) {training_mode = 1 : si64} : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>)
  %2 = "onnx.Relu"(%1#0) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %2, %1#1 : tensor<1x4x8x8xf32>, tensor<4xf32>
}

// -----

// Tests that a residual that is computed after the
// convolution could start is not fused, but added separately.
// CHECK-LABEL: func.func @late(
// CHECK:         divi.cluster "conv_relu"({{.*}}divi.members = ["/early", "/early_relu"]
// CHECK:         "onnx.Conv"{{.*}}"/late1"
// CHECK:         divi.cluster "conv_add"({{.*}}divi.members = ["/late2", "/add"]
func.func @late(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) {onnx_node_name = "/early"} : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.Relu"(%0) {onnx_node_name = "/early_relu"} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Conv"(%x, %w, %s) {onnx_node_name = "/late1"} : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %3 = "onnx.Conv"(%2, %w, %s) {onnx_node_name = "/late2"} : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %r = "onnx.Add"(%1, %3) {onnx_node_name = "/add"} : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}

// -----

// Tests that two branches of the same length and their join are not fused.
// CHECK-LABEL: func.func @branches(
// CHECK:         "onnx.Conv"
// CHECK-NEXT:    "onnx.Conv"
// CHECK-NEXT:    divi.cluster "elementwise"({{.*}}divi.members = ["onnx.Add", "onnx.Relu"]
func.func @branches(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Add"(%0, %1) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %r = "onnx.Relu"(%2) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}

// -----

// Tests that an Add that broadcasts the convolution's result, or adds a tensor to itself, is not a residual.
// CHECK-LABEL: func.func @broadcast(
// CHECK:         "onnx.Conv"
// CHECK-NEXT:    "onnx.Add"
// CHECK-NEXT:    "onnx.Conv"
// CHECK-NEXT:    "onnx.Add"
func.func @broadcast(%x: tensor<1x4x8x8xf32>, %y: tensor<3x4x8x8xf32>) -> (tensor<3x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.Add"(%0, %y) : (tensor<1x4x8x8xf32>, tensor<3x4x8x8xf32>) -> tensor<3x4x8x8xf32>
  %2 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %3 = "onnx.Add"(%2, %2) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %1, %3 : tensor<3x4x8x8xf32>, tensor<1x4x8x8xf32>
}

// -----

// Tests that an operator that would make a cluster depend on itself is not fused: the Add reads a value computed from
// the convolution's own result.
// CHECK-LABEL: func.func @cycle(
// CHECK:         %[[CONV:.*]] = "onnx.Conv"
// CHECK-NEXT:    %[[POOL:.*]] = "onnx.MaxPoolSingleOut"(%[[CONV]])
// CHECK-NEXT:    "onnx.Add"(%[[CONV]], %[[POOL]])
func.func @cycle(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.MaxPoolSingleOut"(%0) {kernel_shape = [1, 1]} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %r = "onnx.Add"(%0, %1) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}

// -----

// Tests that unknown and random operators, and those
// with regions, are not fused, but count as readers.
// CHECK-LABEL: func.func @opaque(
// CHECK:         "onnx.Conv"
// CHECK-NEXT:    "onnx.FancyNewOp"
// CHECK-NEXT:    "onnx.Relu"
// CHECK-NEXT:    "onnx.RandomNormalLike"
// CHECK-NEXT:    %[[TANH:.*]] = divi.cluster "elementwise"({{.*}}["onnx.Sigmoid", "onnx.Tanh"]
// CHECK:         "onnx.If"
// CHECK:           onnx.Yield %[[TANH]]
// CHECK:         divi.cluster "elementwise"({{.*}}["onnx.Add", "onnx.Abs"]
func.func @opaque(%x: tensor<1x4x8x8xf32>, %c: tensor<i1>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.FancyNewOp"(%0) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Relu"(%1) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %3 = "onnx.RandomNormalLike"(%2) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %4 = "onnx.Sigmoid"(%3) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %5 = "onnx.Tanh"(%4) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %6 = "onnx.If"(%c) ({
    onnx.Yield %5 : tensor<1x4x8x8xf32>
  }, {
    onnx.Yield %x : tensor<1x4x8x8xf32>
  }) : (tensor<i1>) -> tensor<1x4x8x8xf32>
  %7 = "onnx.Add"(%5, %6) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %8 = "onnx.Abs"(%7) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %8 : tensor<1x4x8x8xf32>
}

// -----

// Tests that blocks are fused separately, and that unreachable code with uses before definitions is not fused.
// CHECK-LABEL: func.func @blocks(
// CHECK:         "onnx.Abs"
// CHECK:       ^bb1(
// CHECK:         divi.cluster "elementwise"({{.*}}["onnx.Relu", "onnx.Exp"]
// CHECK:       ^bb2:
// CHECK-NEXT:    "onnx.Relu"
// CHECK-NEXT:    "onnx.Tanh"
func.func @blocks(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "onnx.Abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  cf.br ^next(%x : tensor<2xf32>)
^next(%y: tensor<2xf32>):
  %1 = "onnx.Relu"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "onnx.Exp"(%1) : (tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
^dead:
  %3 = "onnx.Relu"(%4) : (tensor<2xf32>) -> tensor<2xf32>
  %4 = "onnx.Tanh"(%3) : (tensor<2xf32>) -> tensor<2xf32>
  cf.br ^dead
}
