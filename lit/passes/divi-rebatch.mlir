// RUN: divi-opt %s --split-input-file --divi-rebatch=batch=4 | FileCheck %s
// RUN: divi-opt %s --split-input-file --divi-rebatch=batch=2 | divi-opt --split-input-file --divi-rebatch=batch=4 | FileCheck %s --check-prefix=TWICE

// Tests that the batch is followed from all arguments whose first dimension has its size through element-wise
// operators; values that all inputs share are unchanged.
// CHECK-LABEL: func.func @arguments(
// CHECK-SAME:    %{{.*}}: tensor<4x8xf32>, %{{.*}}: tensor<4xi64>, %{{.*}}: tensor<8xf32>, %{{.*}}: tensor<f32>) -> (tensor<4x8xf32>, tensor<8xf32>)
// CHECK:         "onnx.Add"{{.*}} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
// CHECK:         "onnx.Mul"{{.*}} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
// TWICE-LABEL: func.func @arguments(
// TWICE-SAME:    %{{.*}}: tensor<4x8xf32>, %{{.*}}: tensor<4xi64>, %{{.*}}: tensor<8xf32>, %{{.*}}: tensor<f32>) -> (tensor<4x8xf32>, tensor<8xf32>)
func.func @arguments(%x: tensor<1x8xf32>, %y: tensor<1xi64>, %z: tensor<8xf32>, %s: tensor<f32>)
    -> (tensor<1x8xf32>, tensor<8xf32>) {
  %0 = "onnx.Add"(%x, %z) : (tensor<1x8xf32>, tensor<8xf32>) -> tensor<1x8xf32>
  %1 = "onnx.Mul"(%z, %s) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0, %1 : tensor<1x8xf32>, tensor<8xf32>
}

// -----

// Tests that shapes that contain the batch size change, that a batch is followed into a dimension that it is merged
// with, and that operators that share a constant get the elements that each needs.
// CHECK-LABEL: func.func @shapes(
// CHECK:         %[[MERGED:.*]] = onnx.Constant dense<[20, 6]> : tensor<2xi64>
// CHECK:         "onnx.Reshape"(%{{.*}}, %[[MERGED]]) {{.*}} -> tensor<20x6xf32>
// CHECK:         "onnx.MatMul"{{.*}} : (tensor<20x6xf32>, tensor<6x6xf32>) -> tensor<20x6xf32>
// CHECK:         %[[KEPT:.*]] = onnx.Constant dense<[1, 5, 2, 3]> : tensor<4xi64> {onnx_node_name = "heads"}
// CHECK:         %[[HEADS:.*]] = onnx.Constant dense<[4, 5, 2, 3]> : tensor<4xi64> {onnx_node_name = "heads"}
// CHECK:         "onnx.Reshape"(%{{.*}}, %[[HEADS]]) {{.*}} -> tensor<4x5x2x3xf32>
// CHECK:         "onnx.Reshape"(%{{.*}}, %[[KEPT]]) {{.*}} -> tensor<1x5x2x3xf32>
// CHECK:         "onnx.Transpose"{{.*}} -> tensor<2x4x5x3xf32>
// TWICE-LABEL: func.func @shapes(
// TWICE:         "onnx.Transpose"{{.*}} -> tensor<2x4x5x3xf32>
func.func @shapes(%x: tensor<1x5x6xf32>, %w: tensor<6x6xf32>, %t: tensor<5x6xf32>)
    -> (tensor<2x1x5x3xf32>, tensor<1x5x2x3xf32>) {
  %merged = onnx.Constant dense<[5, 6]> : tensor<2xi64>
  %0 = "onnx.Reshape"(%x, %merged) {allowzero = 0 : si64} : (tensor<1x5x6xf32>, tensor<2xi64>) -> tensor<5x6xf32>
  %1 = "onnx.MatMul"(%0, %w) : (tensor<5x6xf32>, tensor<6x6xf32>) -> tensor<5x6xf32>
  %heads = onnx.Constant dense<[1, 5, 2, 3]> : tensor<4xi64> {onnx_node_name = "heads"}
  %2 = "onnx.Reshape"(%1, %heads) {allowzero = 0 : si64} : (tensor<5x6xf32>, tensor<4xi64>) -> tensor<1x5x2x3xf32>
  %3 = "onnx.Reshape"(%t, %heads) {allowzero = 0 : si64} : (tensor<5x6xf32>, tensor<4xi64>) -> tensor<1x5x2x3xf32>
  %4 = "onnx.Transpose"(%2) {perm = [2, 0, 1, 3]} : (tensor<1x5x2x3xf32>) -> tensor<2x1x5x3xf32>
  return %4, %3 : tensor<2x1x5x3xf32>, tensor<1x5x2x3xf32>
}

// -----

// Tests that a batch merged with the preceding sequence is followed as well.
// CHECK-LABEL: func.func @sequence_first(
// CHECK:         "onnx.Transpose"{{.*}} -> tensor<5x4x6xf32>
// CHECK:         "onnx.Reshape"{{.*}} -> tensor<20x6xf32>
// CHECK:         "onnx.Gemm"{{.*}} -> tensor<20x6xf32>
// CHECK:         "onnx.Reshape"{{.*}} -> tensor<5x4x6xf32>
// CHECK:         "onnx.Reshape"{{.*}} -> tensor<5x8x3xf32>
// CHECK:         "onnx.Transpose"{{.*}} -> tensor<8x5x3xf32>
func.func @sequence_first(%x: tensor<1x5x6xf32>, %w: tensor<6x6xf32>) -> tensor<2x5x3xf32> {
  %none = "onnx.NoValue"() {value} : () -> none
  %0 = "onnx.Transpose"(%x) {perm = [1, 0, 2]} : (tensor<1x5x6xf32>) -> tensor<5x1x6xf32>
  %rows = onnx.Constant dense<[5, 6]> : tensor<2xi64>
  %1 = "onnx.Reshape"(%0, %rows) {allowzero = 0 : si64} : (tensor<5x1x6xf32>, tensor<2xi64>) -> tensor<5x6xf32>
  %2 = "onnx.Gemm"(%1, %w, %none) : (tensor<5x6xf32>, tensor<6x6xf32>, none) -> tensor<5x6xf32>
  %back = onnx.Constant dense<[5, 1, 6]> : tensor<3xi64>
  %3 = "onnx.Reshape"(%2, %back) {allowzero = 0 : si64} : (tensor<5x6xf32>, tensor<3xi64>) -> tensor<5x1x6xf32>
  %heads = onnx.Constant dense<[5, 2, 3]> : tensor<3xi64>
  %4 = "onnx.Reshape"(%3, %heads) {allowzero = 0 : si64} : (tensor<5x1x6xf32>, tensor<3xi64>) -> tensor<5x2x3xf32>
  %5 = "onnx.Transpose"(%4) {perm = [1, 0, 2]} : (tensor<5x2x3xf32>) -> tensor<2x5x3xf32>
  return %5 : tensor<2x5x3xf32>
}

// -----

// Tests that values that all inputs share are repeated if they do not broadcast.
// CHECK-LABEL: func.func @class_token(
// CHECK:         %[[TIMES:.*]] = onnx.Constant dense<[4, 1, 1]> : tensor<3xi64>
// CHECK:         %[[TOKENS:.*]] = "onnx.Tile"(%{{.*}}, %[[TIMES]]) {onnx_node_name = "token#repeat"} : (tensor<1x1x6xf32>, tensor<3xi64>) -> tensor<4x1x6xf32>
// CHECK:         "onnx.Concat"(%[[TOKENS]], %{{.*}}) {{.*}} -> tensor<4x6x6xf32>
func.func @class_token(%x: tensor<1x5x6xf32>) -> tensor<1x6x6xf32> {
  %token = onnx.Constant dense<1.0> : tensor<1x1x6xf32> {onnx_node_name = "token"}
  %0 = "onnx.Concat"(%token, %x) {axis = 1 : si64} : (tensor<1x1x6xf32>, tensor<1x5x6xf32>) -> tensor<1x6x6xf32>
  return %0 : tensor<1x6x6xf32>
}

// -----

// Tests that unfolded shape arithmetic is that of one input, and that a Squeeze of the batch becomes a Reshape, which
// is the same task.
// CHECK-LABEL: func.func @arithmetic(
// CHECK-NOT:     onnx.Shape
// CHECK:         %[[SHAPE:.*]] = onnx.Constant dense<[4, -1]> : tensor<2xi64>
// CHECK:         "onnx.Reshape"(%{{.*}}, %[[SHAPE]]) {{.*}} -> tensor<4x12xf32>
// CHECK:         %[[ROWS:.*]] = onnx.Constant dense<[12, 4]> : tensor<2xi64>
// CHECK:         "onnx.Reshape"(%{{.*}}, %[[ROWS]]) {{.*}} {divi.flops = 12 : i64, onnx_node_name = "/squeeze"} : (tensor<4x3x4xf32>, tensor<2xi64>) -> tensor<12x4xf32>
func.func @arithmetic(%x: tensor<1x3x4xf32>) -> (tensor<1x12xf32>, tensor<3x4xf32>) {
  %zero = onnx.Constant dense<0> : tensor<1xi64>
  %rest = onnx.Constant dense<-1> : tensor<1xi64>
  %0 = "onnx.Shape"(%x) : (tensor<1x3x4xf32>) -> tensor<3xi64>
  %1 = "onnx.Gather"(%0, %zero) : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
  %2 = "onnx.Concat"(%1, %rest) {axis = 0 : si64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %3 = "onnx.Reshape"(%x, %2) {allowzero = 0 : si64} : (tensor<1x3x4xf32>, tensor<2xi64>) -> tensor<1x12xf32>
  %4 = "onnx.Squeeze"(%x, %zero) {onnx_node_name = "/squeeze", divi.flops = 12 : i64} : (tensor<1x3x4xf32>, tensor<1xi64>) -> tensor<3x4xf32>
  return %3, %4 : tensor<1x12xf32>, tensor<3x4xf32>
}

// -----

// Tests that the batch is followed into clusters, and that constants from outside change inside.
// CHECK-LABEL: func.func @clusters(
// CHECK:         divi.cluster "c"(%{{.*}}, %{{.*}} : tensor<4x3x4xf32>, tensor<2xi64>) -> tensor<4x12xf32>
// CHECK:         ^bb0(%[[X:.*]]: tensor<4x3x4xf32>, %{{.*}}: tensor<2xi64>):
// CHECK:           "onnx.Relu"(%[[X]]) : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
// CHECK:           %[[SHAPE:.*]] = onnx.Constant dense<[4, 12]> : tensor<2xi64>
// CHECK:           "onnx.Reshape"(%{{.*}}, %[[SHAPE]]) {{.*}} -> tensor<4x12xf32>
// CHECK:           divi.yield %{{.*}} : tensor<4x12xf32>
func.func @clusters(%x: tensor<1x3x4xf32>) -> tensor<1x12xf32> {
  %shape = onnx.Constant dense<[1, 12]> : tensor<2xi64>
  %0 = divi.cluster "c"(%x, %shape : tensor<1x3x4xf32>, tensor<2xi64>) -> tensor<1x12xf32> {
  ^bb0(%a: tensor<1x3x4xf32>, %s: tensor<2xi64>):
    %1 = "onnx.Relu"(%a) : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
    %2 = "onnx.Reshape"(%1, %s) {allowzero = 0 : si64} : (tensor<1x3x4xf32>, tensor<2xi64>) -> tensor<1x12xf32>
    divi.yield %2 : tensor<1x12xf32>
  }
  return %0 : tensor<1x12xf32>
}

// -----

// Tests that a dynamic batch is fixed, and a batch of several inputs multiplied.
// CHECK-LABEL: func.func @open(%{{.*}}: tensor<4x3xf32>) -> tensor<4x3xf32>
// CHECK-LABEL: func.func @two(%{{.*}}: tensor<4x3xf32>) -> tensor<2x6xf32>
// CHECK:         onnx.Constant dense<[2, 6]>
func.func @open(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "onnx.Relu"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
func.func @two(%x: tensor<2x3xf32>) -> tensor<1x6xf32> {
  %shape = onnx.Constant dense<[1, 6]> : tensor<2xi64>
  %0 = "onnx.Reshape"(%x, %shape) {allowzero = 0 : si64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<1x6xf32>
  return %0 : tensor<1x6xf32>
}
