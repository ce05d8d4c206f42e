// RUN: divi-opt %s --split-input-file --divi-fuse | FileCheck %s
// RUN: divi-opt %s --split-input-file --divi-fuse=max-cluster-ops=4 | FileCheck %s --check-prefix=LIMIT

// Tests that the products, what is between them, and the transpositions of operands and result are one task.
// CHECK-LABEL: func.func @heads(
// CHECK-NEXT:    onnx.Constant
// CHECK-NEXT:    onnx.Constant
// CHECK-NEXT:    onnx.Constant
// CHECK-NEXT:    divi.cluster "attention"(%arg0, %{{.*}}, %arg1, %arg2, %{{.*}}, %arg3, %{{.*}} :
// CHECK-SAME:      divi.members = ["onnx.Reshape", "onnx.Transpose", "onnx.Transpose", "onnx.Transpose", "onnx.MatMul", "onnx.Div", "onnx.Add", "onnx.Softmax", "onnx.MatMul", "onnx.Transpose", "onnx.Reshape"]
// LIMIT-LABEL: func.func @heads(
// LIMIT-NOT:     "attention"
// LIMIT:         divi.cluster "scale_mask_softmax"
func.func @heads(%q: tensor<1x5x8xf32>, %k: tensor<1x5x2x4xf32>, %v: tensor<1x5x2x4xf32>, %m: tensor<1x1x1x5xf32>) -> tensor<1x5x8xf32> {
  %shape = onnx.Constant dense<[1, 5, 2, 4]> : tensor<4xi64>
  %whole = onnx.Constant dense<[1, 5, 8]> : tensor<3xi64>
  %two = onnx.Constant dense<2.0> : tensor<f32>
  %0 = "onnx.Reshape"(%q, %shape) : (tensor<1x5x8xf32>, tensor<4xi64>) -> tensor<1x5x2x4xf32>
  %1 = "onnx.Transpose"(%0) {perm = [0, 2, 1, 3]} : (tensor<1x5x2x4xf32>) -> tensor<1x2x5x4xf32>
  %2 = "onnx.Transpose"(%k) {perm = [0, 2, 3, 1]} : (tensor<1x5x2x4xf32>) -> tensor<1x2x4x5xf32>
  %3 = "onnx.Transpose"(%v) {perm = [0, 2, 1, 3]} : (tensor<1x5x2x4xf32>) -> tensor<1x2x5x4xf32>
  %4 = "onnx.MatMul"(%1, %2) : (tensor<1x2x5x4xf32>, tensor<1x2x4x5xf32>) -> tensor<1x2x5x5xf32>
  %5 = "onnx.Div"(%4, %two) : (tensor<1x2x5x5xf32>, tensor<f32>) -> tensor<1x2x5x5xf32>
  %6 = "onnx.Add"(%5, %m) : (tensor<1x2x5x5xf32>, tensor<1x1x1x5xf32>) -> tensor<1x2x5x5xf32>
  %7 = "onnx.Softmax"(%6) {axis = 3 : si64} : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
  %8 = "onnx.MatMul"(%7, %3) : (tensor<1x2x5x5xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
  %9 = "onnx.Transpose"(%8) {perm = [0, 2, 1, 3]} : (tensor<1x2x5x4xf32>) -> tensor<1x5x2x4xf32>
  %10 = "onnx.Reshape"(%9, %whole) : (tensor<1x5x2x4xf32>, tensor<3xi64>) -> tensor<1x5x8xf32>
  return %10 : tensor<1x5x8xf32>
}

// -----

// Tests that scaled operands and casts of half precision are part of it, and that an operand with other readers stays outside.
// CHECK-LABEL: func.func @scaled(
// CHECK:         %[[K:.*]] = "onnx.Transpose"(%arg1)
// CHECK:         %[[A:.*]] = divi.cluster "attention"(%arg0, %{{.*}}, %[[K]], %arg2 :
// CHECK-SAME:      divi.members = ["onnx.Mul", "onnx.MatMul", "onnx.Cast", "onnx.Softmax", "onnx.Cast", "onnx.MatMul"]
// CHECK:         return %[[A]], %[[K]]
func.func @scaled(%q: tensor<2x5x4xbf16>, %k: tensor<2x5x4xbf16>, %v: tensor<2x5x4xbf16>) -> (tensor<2x5x4xbf16>, tensor<2x4x5xbf16>) {
  %scale = onnx.Constant dense<5.0e-01> : tensor<bf16>
  %0 = "onnx.Mul"(%q, %scale) : (tensor<2x5x4xbf16>, tensor<bf16>) -> tensor<2x5x4xbf16>
  %1 = "onnx.Transpose"(%k) {perm = [0, 2, 1]} : (tensor<2x5x4xbf16>) -> tensor<2x4x5xbf16>
  %2 = "onnx.MatMul"(%0, %1) : (tensor<2x5x4xbf16>, tensor<2x4x5xbf16>) -> tensor<2x5x5xbf16>
  %3 = "onnx.Cast"(%2) {to = f32} : (tensor<2x5x5xbf16>) -> tensor<2x5x5xf32>
  %4 = "onnx.Softmax"(%3) {axis = -1 : si64} : (tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %5 = "onnx.Cast"(%4) {to = bf16} : (tensor<2x5x5xf32>) -> tensor<2x5x5xbf16>
  %6 = "onnx.MatMul"(%5, %v) : (tensor<2x5x5xbf16>, tensor<2x5x4xbf16>) -> tensor<2x5x4xbf16>
  return %6, %1 : tensor<2x5x4xbf16>, tensor<2x4x5xbf16>
}

// -----

// Tests near misses: probabilities that are used elsewhere, a Softmax along another axis, a product with weights, and a pin that differs.
divi.device @a {kind = "cpu", memory = 1024 : i64}

// CHECK-LABEL: func.func @probabilities(
// CHECK-NOT:     "attention"
// CHECK:         return
func.func @probabilities(%q: tensor<2x5x4xf32>, %k: tensor<2x4x5xf32>, %v: tensor<2x5x4xf32>) -> (tensor<2x5x4xf32>, tensor<2x5x5xf32>) {
  %0 = "onnx.MatMul"(%q, %k) : (tensor<2x5x4xf32>, tensor<2x4x5xf32>) -> tensor<2x5x5xf32>
  %1 = "onnx.Softmax"(%0) {axis = -1 : si64} : (tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %2 = "onnx.MatMul"(%1, %v) : (tensor<2x5x5xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %2, %1 : tensor<2x5x4xf32>, tensor<2x5x5xf32>
}

// CHECK-LABEL: func.func @columns(
// CHECK-NOT:     "attention"
// CHECK:         return
func.func @columns(%q: tensor<2x5x4xf32>, %k: tensor<2x4x5xf32>, %v: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
  %0 = "onnx.MatMul"(%q, %k) : (tensor<2x5x4xf32>, tensor<2x4x5xf32>) -> tensor<2x5x5xf32>
  %1 = "onnx.Softmax"(%0) {axis = 1 : si64} : (tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %2 = "onnx.MatMul"(%1, %v) : (tensor<2x5x5xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %2 : tensor<2x5x4xf32>
}

// CHECK-LABEL: func.func @weights(
// CHECK-NOT:     "attention"
// CHECK:         return
func.func @weights(%q: tensor<2x5x4xf32>, %v: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
  %k = onnx.Constant dense<1.0> : tensor<2x4x5xf32>
  %0 = "onnx.MatMul"(%q, %k) : (tensor<2x5x4xf32>, tensor<2x4x5xf32>) -> tensor<2x5x5xf32>
  %1 = "onnx.Softmax"(%0) {axis = -1 : si64} : (tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %2 = "onnx.MatMul"(%1, %v) : (tensor<2x5x5xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %2 : tensor<2x5x4xf32>
}

// CHECK-LABEL: func.func @pinned(
// CHECK-NOT:     "attention"
// CHECK:         return
func.func @pinned(%q: tensor<2x5x4xf32>, %k: tensor<2x4x5xf32>, %v: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
  %0 = "onnx.MatMul"(%q, %k) {divi.pin = @a} : (tensor<2x5x4xf32>, tensor<2x4x5xf32>) -> tensor<2x5x5xf32>
  %1 = "onnx.Softmax"(%0) {axis = -1 : si64} : (tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %2 = "onnx.MatMul"(%1, %v) : (tensor<2x5x5xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %2 : tensor<2x5x4xf32>
}
