// RUN: divi-opt %s --split-input-file --divi-fuse | FileCheck %s

// Tests that Softmax is fused with the scale and mask before it; alone, it is unchanged.
// CHECK-LABEL: func.func @softmax(
// CHECK:         divi.cluster "scale_mask_softmax"(
// CHECK:         divi.cluster "scale_softmax"(
// CHECK:         divi.cluster "mask_softmax"(
// CHECK:         %{{.*}} = "onnx.Softmax"(%arg0)
func.func @softmax(%q: tensor<1x2x5x5xf32>, %m: tensor<1x1x5x5xf32>, %c: tensor<1x1x5x5xi1>) -> (tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>) {
  %c0 = onnx.Constant dense<8.0> : tensor<f32>
  %c1 = onnx.Constant dense<0.125> : tensor<f32>
  %c2 = onnx.Constant dense<-1.0e+09> : tensor<f32>
  %0 = "onnx.Div"(%q, %c0) : (tensor<1x2x5x5xf32>, tensor<f32>) -> tensor<1x2x5x5xf32>
  %1 = "onnx.Add"(%0, %m) : (tensor<1x2x5x5xf32>, tensor<1x1x5x5xf32>) -> tensor<1x2x5x5xf32>
  %2 = "onnx.Softmax"(%1) {axis = -1 : si64} : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
  %3 = "onnx.Mul"(%c1, %q) : (tensor<f32>, tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
  %4 = "onnx.Softmax"(%3) : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
  %5 = "onnx.Where"(%c, %q, %c2) : (tensor<1x1x5x5xi1>, tensor<1x2x5x5xf32>, tensor<f32>) -> tensor<1x2x5x5xf32>
  %6 = "onnx.Softmax"(%5) : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
  %7 = "onnx.Softmax"(%q) : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
  return %2, %4, %6, %7 : tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>
}

// -----

// Tests that casts to a wider type before it and back after it are fused.
// CHECK-LABEL: func.func @casts(
// CHECK:         divi.cluster "scale_softmax"({{.*}}["onnx.Mul", "onnx.Cast", "onnx.Softmax", "onnx.Cast"]
func.func @casts(%q: tensor<1x2x5x5xf16>) -> tensor<1x2x5x5xf16> {
  %c0 = onnx.Constant dense<0.125> : tensor<f16>
  %0 = "onnx.Mul"(%q, %c0) : (tensor<1x2x5x5xf16>, tensor<f16>) -> tensor<1x2x5x5xf16>
  %1 = "onnx.Cast"(%0) {to = f32} : (tensor<1x2x5x5xf16>) -> tensor<1x2x5x5xf32>
  %2 = "onnx.Softmax"(%1) : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
  %3 = "onnx.Cast"(%2) {to = f16} : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf16>
  return %3 : tensor<1x2x5x5xf16>
}

// -----

// Tests that a scale does not wait for a mask that is computed later.
// CHECK-LABEL: func.func @late_mask(
// CHECK:         "onnx.Mul"
// CHECK:         divi.cluster "mask_softmax"(
func.func @late_mask(%q: tensor<1x2x5x5xf32>, %m: tensor<1x1x5x5xf32>) -> tensor<1x2x5x5xf32> {
  %c0 = onnx.Constant dense<0.125> : tensor<f32>
  %0 = "onnx.Mul"(%q, %c0) : (tensor<1x2x5x5xf32>, tensor<f32>) -> tensor<1x2x5x5xf32>
  %1 = "onnx.MaxPoolSingleOut"(%m) {kernel_shape = [1, 1]} : (tensor<1x1x5x5xf32>) -> tensor<1x1x5x5xf32>
  %2 = "onnx.MaxPoolSingleOut"(%1) {kernel_shape = [1, 1]} : (tensor<1x1x5x5xf32>) -> tensor<1x1x5x5xf32>
  %3 = "onnx.Add"(%0, %2) : (tensor<1x2x5x5xf32>, tensor<1x1x5x5xf32>) -> tensor<1x2x5x5xf32>
  %4 = "onnx.Softmax"(%3) : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
  return %4 : tensor<1x2x5x5xf32>
}

// -----

// Tests that other element-wise operators stay separate tasks.
// CHECK-LABEL: func.func @capped(
// CHECK:         divi.cluster "elementwise"({{.*}}["onnx.Tanh", "onnx.Mul"]
// CHECK:         %{{.*}} = "onnx.Softmax"
func.func @capped(%q: tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32> {
  %c0 = onnx.Constant dense<30.0> : tensor<f32>
  %0 = "onnx.Tanh"(%q) : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
  %1 = "onnx.Mul"(%0, %c0) : (tensor<1x2x5x5xf32>, tensor<f32>) -> tensor<1x2x5x5xf32>
  %2 = "onnx.Softmax"(%1) : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
  return %2 : tensor<1x2x5x5xf32>
}
