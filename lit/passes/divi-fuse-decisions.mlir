// RUN: divi-opt %s --split-input-file --divi-fuse | FileCheck %s

// Tests that operators pinned to the same device are fused, and that the cluster has the pin.
// CHECK-LABEL: func.func @same(
// CHECK:         divi.cluster "conv_bn_relu"({{.*}}attributes {divi.members = ["onnx.Conv", "onnx.BatchNormalizationInferenceMode", "onnx.Relu"], divi.pin = @gpu0}
divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1024 : i64}
func.func @same(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) {divi.pin = @gpu0} : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %s, %s) {divi.pin = @gpu0} : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %r = "onnx.Relu"(%1) {divi.pin = @gpu0} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}

// -----

// Tests that operators pinned to different devices are not fused.
// CHECK-LABEL: func.func @different(
// CHECK:         divi.cluster "conv_bn"({{.*}}divi.pin = @gpu0}
// CHECK:         "onnx.Relu"{{.*}}{divi.pin = @cpu0}
divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1024 : i64}
func.func @different(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) {divi.pin = @gpu0} : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %s, %s) {divi.pin = @gpu0} : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %r = "onnx.Relu"(%1) {divi.pin = @cpu0} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}

// -----

// Tests that a pin is not extended to other operators.
// CHECK-LABEL: func.func @extended(
// CHECK-NOT:     divi.cluster
// CHECK:         "onnx.Conv"{{.*}}{divi.pin = @gpu0}
// CHECK-NEXT:    divi.cluster "bn_relu"({{.*}}"onnx.Relu"]}
divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1024 : i64}
func.func @extended(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w, %s) {divi.pin = @gpu0} : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %s, %s) : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %r = "onnx.Relu"(%1) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}

// -----

// Tests that views, which are not work, are fused with pinned operators, unless they are pinned elsewhere.
// CHECK-LABEL: func.func @views(
// CHECK:         divi.cluster "relu"({{.*}}divi.pin = @gpu0}
// CHECK:         "onnx.Sigmoid"{{.*}}{divi.pin = @cpu0}
// CHECK-NEXT:    "onnx.Identity"{{.*}}{divi.pin = @gpu0}
divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1024 : i64}
func.func @views(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Identity"(%x) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.Relu"(%0) {divi.pin = @gpu0} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.Sigmoid"(%1) {divi.pin = @cpu0} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %r = "onnx.Identity"(%2) {divi.pin = @gpu0} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}

// -----

// Tests that devices are treated like pins.
// CHECK-LABEL: func.func @decided(
// CHECK:         divi.cluster "elementwise"({{.*}}attributes {divi.device = @cpu0, divi.members = ["onnx.Abs", "onnx.Relu"]}
// CHECK:         divi.transfer
// CHECK:         "onnx.Tanh"
divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1024 : i64}
func.func @decided(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Abs"(%x) {divi.device = @cpu0} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.Relu"(%0) {divi.device = @cpu0} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %2 = divi.transfer %1 from @cpu0 to @gpu0 : tensor<1x4x8x8xf32>
  %r = "onnx.Tanh"(%2) {divi.device = @gpu0} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}

// -----

// Tests that operators with a cost or a start are tasks already.
// CHECK-LABEL: func.func @planned(
// CHECK-NOT:     divi.cluster
// CHECK:         "onnx.Abs"
// CHECK-NEXT:    "onnx.Relu"
divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1024 : i64}
func.func @planned(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %s = onnx.Constant dense<1.0> : tensor<4xf32>
  %0 = "onnx.Abs"(%x) {divi.start = 1.0 : f64} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %r = "onnx.Relu"(%0) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}
