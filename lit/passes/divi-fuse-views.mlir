// RUN: divi-opt %s --split-input-file --divi-fuse | FileCheck %s

// Tests that views are fused with a neighbor, which names the cluster.
// CHECK-LABEL: func.func @views(
// CHECK:         divi.cluster "transpose"({{.*}}["onnx.Reshape", "onnx.Transpose", "onnx.Unsqueeze"]
func.func @views(%x: tensor<1x5x8xf32>) -> tensor<1x8x5xf32> {
  %c0 = onnx.Constant dense<[5, 8]> : tensor<2xi64>
  %c1 = onnx.Constant dense<0> : tensor<1xi64>
  %0 = "onnx.Reshape"(%x, %c0) : (tensor<1x5x8xf32>, tensor<2xi64>) -> tensor<5x8xf32>
  %1 = "onnx.Transpose"(%0) {perm = [1, 0]} : (tensor<5x8xf32>) -> tensor<8x5xf32>
  %2 = "onnx.Unsqueeze"(%1, %c1) : (tensor<8x5xf32>, tensor<1xi64>) -> tensor<1x8x5xf32>
  return %2 : tensor<1x8x5xf32>
}

// -----

// Tests that views are fused with a matrix product rather than with a pool.
// CHECK-LABEL: func.func @around(
// CHECK:         "onnx.MaxPoolSingleOut"
// CHECK-NEXT:    divi.cluster "gemm_relu"({{.*}}["onnx.Flatten", "onnx.Gemm", "onnx.Reshape", "onnx.Relu"]
func.func @around(%x: tensor<1x5x8xf32>) -> tensor<1x5x8xf32> {
  %c0 = onnx.Constant dense<0.5> : tensor<8x8xf32>
  %c1 = onnx.Constant dense<1.0> : tensor<8xf32>
  %c2 = onnx.Constant dense<[1, 5, 8]> : tensor<3xi64>
  %0 = "onnx.MaxPoolSingleOut"(%x) {kernel_shape = [1]} : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %1 = "onnx.Flatten"(%0) {axis = 2 : si64} : (tensor<1x5x8xf32>) -> tensor<5x8xf32>
  %2 = "onnx.Gemm"(%1, %c0, %c1) : (tensor<5x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %3 = "onnx.Reshape"(%2, %c2) : (tensor<5x8xf32>, tensor<3xi64>) -> tensor<1x5x8xf32>
  %4 = "onnx.Relu"(%3) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  return %4 : tensor<1x5x8xf32>
}

// -----

// Tests that operators that do not move elements are views too, and those on a constant are evaluated at compile time.
// CHECK-LABEL: func.func @disguised(
// CHECK:         divi.cluster "maxpool"({{.*}}["onnx.Transpose", "onnx.Cast", "onnx.Concat", "onnx.MaxPoolSingleOut"]
// CHECK:         divi.cluster "matmul"({{.*}}["onnx.Transpose", "onnx.MatMul"]
func.func @disguised(%x: tensor<1x5x8xf32>) -> (tensor<5x1x8xf32>, tensor<1x5x8xf32>) {
  %c0 = onnx.Constant dense<0.5> : tensor<8x8xf32>
  %0 = "onnx.Transpose"(%x) {perm = [1, 0, 2]} : (tensor<1x5x8xf32>) -> tensor<5x1x8xf32>
  %1 = "onnx.Cast"(%0) {to = f32} : (tensor<5x1x8xf32>) -> tensor<5x1x8xf32>
  %2 = "onnx.Concat"(%1) {axis = 0 : si64} : (tensor<5x1x8xf32>) -> tensor<5x1x8xf32>
  %3 = "onnx.MaxPoolSingleOut"(%2) {kernel_shape = [1]} : (tensor<5x1x8xf32>) -> tensor<5x1x8xf32>
  %4 = "onnx.Transpose"(%c0) {perm = [1, 0]} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = "onnx.MatMul"(%x, %4) : (tensor<1x5x8xf32>, tensor<8x8xf32>) -> tensor<1x5x8xf32>
  return %3, %5 : tensor<5x1x8xf32>, tensor<1x5x8xf32>
}

// -----

// Tests that a view with several readers is fused with its producer, and that a Reshape to a computed shape is not a view.
// CHECK-LABEL: func.func @several(
// CHECK:         divi.cluster "relu"({{.*}}["onnx.Relu", "onnx.Reshape"]
// CHECK:         "onnx.Abs"
// CHECK-NEXT:    "onnx.Exp"
// CHECK-NEXT:    "onnx.Reshape"
// CHECK-NEXT:    "onnx.Neg"
func.func @several(%x: tensor<1x5x8xf32>, %s: tensor<2xi64>) -> (tensor<?x?xf32>, tensor<5x8xf32>) {
  %c0 = onnx.Constant dense<[5, 8]> : tensor<2xi64>
  %0 = "onnx.Relu"(%x) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %1 = "onnx.Reshape"(%0, %c0) : (tensor<1x5x8xf32>, tensor<2xi64>) -> tensor<5x8xf32>
  %2 = "onnx.Abs"(%1) : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %3 = "onnx.Exp"(%1) : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %4 = "onnx.Reshape"(%2, %s) : (tensor<5x8xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %5 = "onnx.Neg"(%4) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %5, %3 : tensor<?x?xf32>, tensor<5x8xf32>
}

// -----

// Tests that views alone are one task.
// CHECK-LABEL: func.func @alone(
// CHECK:         divi.cluster "view"(
func.func @alone(%x: tensor<1x5x8xf32>) -> tensor<1x5x8xf32> {
  %c0 = onnx.Constant dense<[5, 8]> : tensor<2xi64>
  %c1 = onnx.Constant dense<0> : tensor<1xi64>
  %0 = "onnx.Reshape"(%x, %c0) : (tensor<1x5x8xf32>, tensor<2xi64>) -> tensor<5x8xf32>
  %1 = "onnx.Unsqueeze"(%0, %c1) : (tensor<5x8xf32>, tensor<1xi64>) -> tensor<1x5x8xf32>
  return %1 : tensor<1x5x8xf32>
}
