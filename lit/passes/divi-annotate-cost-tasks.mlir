// RUN: divi-opt %s -split-input-file --divi-annotate-cost=system=%S/Inputs/system.toml --verify-diagnostics | FileCheck %s

// Tests that linalg operators on tensors are tasks: a product of 16x32 by 32x8 matrices has 2*16*32*8 operations, and
// its destination is not read.
// CHECK-LABEL: func.func @linalg
func.func @linalg(%a: tensor<16x32xf32>, %b: tensor<32x8xf32>, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
  // CHECK: linalg.matmul
  // CHECK-SAME: divi.cost = #divi.cost<@cpu0 = {1 = {{[0-9.]+}}}, @gpu0 = {1 = {{[0-9.]+}}, 4 = {{[0-9.]+}}, 8 = {{[0-9.]+}}}>
  // CHECK-SAME: divi.flops = 8192 : i64, divi.input_bytes = 3072 : i64, divi.output_bytes = 512 : i64
  // CHECK-SAME: divi.weight_bytes = 0 : i64
  %init = tensor.empty() : tensor<16x8xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x8xf32>) outs(%init : tensor<16x8xf32>) -> tensor<16x8xf32>
  // CHECK: linalg.generic
  // CHECK-SAME: divi.flops = 256 : i64, divi.input_bytes = 1024 : i64, divi.output_bytes = 512 : i64
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%0, %c : tensor<16x8xf32>, tensor<16x8xf32>) outs(%init : tensor<16x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %sum = arith.addf %x, %y : f32
    %product = arith.mulf %sum, %y : f32
    linalg.yield %product : f32
  } -> tensor<16x8xf32>
  return %1 : tensor<16x8xf32>
}

// -----

// Tests that the work of a grouped linalg convolution follows from its loops: 2*32 channels*14*14 pixels*9 taps.
// CHECK-LABEL: func.func @depthwise
func.func @depthwise(%x: tensor<1x16x16x32xf32>, %w: tensor<3x3x32xf32>) -> tensor<1x14x14x32xf32> {
  %init = tensor.empty() : tensor<1x14x14x32xf32>
  // CHECK: linalg.depthwise_conv_2d_nhwc_hwc
  // CHECK-SAME: divi.flops = 112896 : i64
  %0 = linalg.depthwise_conv_2d_nhwc_hwc ins(%x, %w : tensor<1x16x16x32xf32>, tensor<3x3x32xf32>) outs(%init : tensor<1x14x14x32xf32>) -> tensor<1x14x14x32xf32>
  return %0 : tensor<1x14x14x32xf32>
}

// -----

// Tests that an unknown operator runs on CPUs, with one operation per element.
// CHECK-LABEL: func.func @opaque
func.func @opaque(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  // CHECK: "onnx.Custom"
  // CHECK-SAME: divi.bound = {cpu0 = "{{[a-z]+}}"}, divi.cost = #divi.cost<@cpu0 = {1 = {{[0-9.]+}}}>, divi.flops = 8 : i64
  %0 = "onnx.Custom"(%x) {function_name = "Mystery", onnx_node_name = "mystery"} : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
}

// -----

// Tests that a dimension that depends on data is counted as 1, with a warning.
// CHECK-LABEL: func.func @data_dependent
func.func @data_dependent(%x: tensor<4xf32>) -> tensor<1x?xf32> {
  // expected-warning @below {{'onnx.NonZero' op 'where' has a result whose size depends on data, and so does another: each such dimension is counted as 1}}
  %0 = "onnx.NonZero"(%x) {onnx_node_name = "where"} : (tensor<4xf32>) -> tensor<1x?xi64>
  // CHECK: "onnx.Cast"
  // CHECK-SAME: divi.flops = 1 : i64, divi.input_bytes = 8 : i64, divi.output_bytes = 4 : i64
  %1 = "onnx.Cast"(%0) {to = f32} : (tensor<1x?xi64>) -> tensor<1x?xf32>
  return %1 : tensor<1x?xf32>
}

// -----

// Tests that a constant that two operands of a task share counts once.
// CHECK-LABEL: func.func @shared_weight
func.func @shared_weight(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = onnx.Constant dense<1.0> : tensor<2x2xf32>
  // CHECK: "onnx.Sum"
  // CHECK-SAME: divi.input_bytes = 16 : i64
  // CHECK-SAME: divi.weight_bytes = 16 : i64
  %0 = "onnx.Sum"(%x, %w, %w) : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Tests that values that a branch reads from outside are operands of the task, and that a batch runs it once for each
// input: twice the batch, twice the time.
// CHECK-LABEL: func.func @captured
func.func @captured(%condition: tensor<i1>, %x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %w = onnx.Constant dense<1.0> : tensor<8x8xf32>
  %0 = "onnx.Relu"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
  // CHECK: "onnx.If"
  // CHECK: divi.bound = {cpu0 = "{{[a-z]+}}"}, divi.cost = #divi.cost<@cpu0 = {1 = {{[0-9.]+}}}>, divi.flops = 136 : i64, divi.input_bytes = 33 : i64, divi.output_bytes = 32 : i64, divi.scratch_bytes = 0 : i64, divi.weight_bytes = 256 : i64
  %1 = "onnx.If"(%condition) ({
    %2 = "onnx.MatMul"(%0, %w) : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
    onnx.Yield %2 : tensor<1x8xf32>
  }, {
    %3 = "onnx.Neg"(%0) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    onnx.Yield %3 : tensor<1x8xf32>
  }) : (tensor<i1>) -> tensor<1x8xf32>
  return %1 : tensor<1x8xf32>
}

// -----

// Tests the bytes of tensors of indices, and of strings, which count as pointers and lengths.
// CHECK-LABEL: func.func @elements
func.func @elements(%i: tensor<4xindex>, %s: tensor<2x!onnx.String>) -> (tensor<4xindex>, tensor<2x!onnx.String>) {
  // CHECK: divi.input_bytes = 32 : i64, divi.output_bytes = 32 : i64
  %0 = tensor.cast %i : tensor<4xindex> to tensor<4xindex>
  // CHECK: "onnx.Identity"
  // CHECK-SAME: divi.cost = #divi.cost<@cpu0 = {1 = 0.0}>
  // CHECK-SAME: divi.input_bytes = 32 : i64
  %1 = "onnx.Identity"(%s) : (tensor<2x!onnx.String>) -> tensor<2x!onnx.String>
  return %0, %1 : tensor<4xindex>, tensor<2x!onnx.String>
}

// -----

// Tests that costs of an earlier run are removed, also from operations that are not tasks.
// CHECK-LABEL: func.func @again
module {
  divi.device @npu0 {kind = "cuda", memory = 1 : i64}
  func.func @again(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
    // CHECK-NOT: npu0
    %0 = divi.cluster "relu"(%x : tensor<1x8xf32>) -> tensor<1x8xf32> attributes {divi.cost = #divi.cost<@npu0 = {1 = 1.0}>} {
    ^bb0(%a: tensor<1x8xf32>):
      %1 = "onnx.Relu"(%a) {divi.cost = #divi.cost<@npu0 = {1 = 1.0}>} : (tensor<1x8xf32>) -> tensor<1x8xf32>
      divi.yield %1 : tensor<1x8xf32>
    }
    return %0 : tensor<1x8xf32>
  }
}

// -----

// Tests that a value that a member reads twice within its cluster is not counted as read from memory.
// CHECK-LABEL: func.func @squares
func.func @squares(%x: tensor<1x1048576xf32>) -> (tensor<1x1048576xf32>, tensor<1x1048576xf32>) {
  // CHECK: divi.cost = #divi.cost<@cpu0 = {1 = [[TIME:[0-9.]+]]}
  %0 = divi.cluster "a"(%x : tensor<1x1048576xf32>) -> tensor<1x1048576xf32> {
  ^bb0(%a: tensor<1x1048576xf32>):
    %2 = "onnx.Abs"(%a) : (tensor<1x1048576xf32>) -> tensor<1x1048576xf32>
    %3 = "onnx.Mul"(%2, %2) : (tensor<1x1048576xf32>, tensor<1x1048576xf32>) -> tensor<1x1048576xf32>
    divi.yield %3 : tensor<1x1048576xf32>
  }
  // CHECK: divi.cost = #divi.cost<@cpu0 = {1 = [[TIME]]}
  %1 = divi.cluster "b"(%x : tensor<1x1048576xf32>) -> tensor<1x1048576xf32> {
  ^bb0(%a: tensor<1x1048576xf32>):
    %2 = "onnx.Abs"(%a) : (tensor<1x1048576xf32>) -> tensor<1x1048576xf32>
    %3 = "onnx.Mul"(%2, %a) : (tensor<1x1048576xf32>, tensor<1x1048576xf32>) -> tensor<1x1048576xf32>
    divi.yield %3 : tensor<1x1048576xf32>
  }
  return %0, %1 : tensor<1x1048576xf32>, tensor<1x1048576xf32>
}
