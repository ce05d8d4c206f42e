// RUN: divi-opt %s --divi-canonicalize --split-input-file | FileCheck %s
// RUN: divi-opt %s --divi-canonicalize --divi-canonicalize --divi-fuse --split-input-file | FileCheck %s --check-prefix=FUSED

// Tests that operators that read only constants are marked, including operators that rearrange their operands.
// CHECK-LABEL: func.func @standardised
// CHECK: "onnx.Reshape"{{.*}} {divi.constant_bytes = {{[0-9]+}} : i64
// CHECK: "onnx.ReduceMean"{{.*}} {divi.constant_bytes
// CHECK: "onnx.Sub"{{.*}} {divi.constant_bytes
// CHECK: "onnx.MatMul"
// CHECK-NOT: divi.constant_bytes
// CHECK: return
// Tests that they are not tasks: their readers have constant weights.
// FUSED-LABEL: func.func @standardised
// FUSED: "onnx.Sub"{{.*}}divi.constant_bytes
// FUSED: divi.cluster "matmul_bias"
func.func @standardised(%x: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %w = onnx.Constant #divi.external<"w.bin", offset = 0, length = 36> : tensor<9xf32>
  %shape = onnx.Constant dense<3> : tensor<2xi64>
  %axes = onnx.Constant dense<0> : tensor<1xi64>
  %bias = onnx.Constant #divi.external<"w.bin", offset = 36, length = 12> : tensor<3xf32>
  %0 = "onnx.Reshape"(%w, %shape) {onnx_node_name = "reshape"} : (tensor<9xf32>, tensor<2xi64>) -> tensor<3x3xf32>
  %1 = "onnx.ReduceMean"(%0, %axes) {onnx_node_name = "mean"} : (tensor<3x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
  %2 = "onnx.Sub"(%0, %1) {onnx_node_name = "sub"} : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>
  %3 = "onnx.MatMul"(%x, %2) {onnx_node_name = "mm"} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
  %4 = "onnx.Add"(%3, %bias) {onnx_node_name = "add"} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// -----

// Tests that operators that only rearrange a weight, are random, pinned or returned, or have a much larger result stay tasks.
// CHECK-LABEL: func.func @tasks
// CHECK-NOT: divi.constant_bytes
// CHECK: return
module {
  divi.device @cpu0 {kind = "cpu", memory = 1073741824 : i64}
  func.func @tasks(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<4096x8192xf32>) {
    %w = onnx.Constant #divi.external<"w.bin", offset = 0, length = 36> : tensor<3x3xf32>
    %one = onnx.Constant dense<1.5> : tensor<f32>
    %large = onnx.Constant dense<[4096, 8192]> : tensor<2xi64>
    %0 = "onnx.Transpose"(%w) {perm = [1, 0]} : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %1 = "onnx.MatMul"(%x, %0) : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %2 = "onnx.Exp"(%w) : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %3 = "onnx.Sin"(%w) {divi.pin = @cpu0} : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %4 = "onnx.MatMul"(%x, %3) : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %5 = "onnx.RandomNormalLike"(%w) : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %6 = "onnx.MatMul"(%x, %5) : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %7 = "onnx.Expand"(%one, %large) : (tensor<f32>, tensor<2xi64>) -> tensor<4096x8192xf32>
    %8 = "onnx.Relu"(%7) : (tensor<4096x8192xf32>) -> tensor<4096x8192xf32>
    return %1, %2, %4, %6, %8 : tensor<2x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<4096x8192xf32>
  }
}
