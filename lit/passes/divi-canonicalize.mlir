// RUN: divi-opt %s --split-input-file --divi-canonicalize > %t && FileCheck %s < %t
// RUN: divi-opt %t --split-input-file --divi-canonicalize | diff %t -

// Tests that consecutive Transposes become one, or none; one with other uses is kept.
// CHECK-LABEL: func.func @transposes(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x4xf32>)
// CHECK:         %[[T:.*]] = "onnx.Transpose"(%[[X]]) <{perm = [1, 2, 0]}> {onnx_node_name = "first"}
// CHECK:         %[[ONE:.*]] = "onnx.Transpose"(%[[X]]) <{perm = [2, 0, 1]}> {onnx_node_name = "second"} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// CHECK-NOT:     onnx.Transpose
// CHECK:         return %[[T]], %[[ONE]], %[[X]], %[[X]]
func.func @transposes(%x: tensor<2x3x4xf32>) -> (tensor<3x4x2xf32>, tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %0 = "onnx.Transpose"(%x) {perm = [1, 2, 0], onnx_node_name = "first"} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = "onnx.Transpose"(%0) {perm = [1, 2, 0], onnx_node_name = "second"} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  %2 = "onnx.Transpose"(%1) {perm = [1, 2, 0]} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  %3 = "onnx.Transpose"(%x) : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %4 = "onnx.Transpose"(%3) : (tensor<4x3x2xf32>) -> tensor<2x3x4xf32>
  return %0, %1, %2, %4 : tensor<3x4x2xf32>, tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// -----

// Tests that consecutive Reshapes and other views become one, and are removed if nothing changes.
// CHECK-LABEL: func.func @reshapes(
// CHECK-SAME:    %[[X:.*]]: tensor<2x6xf32>, %[[D:.*]]: tensor<?x6xf32>)
// CHECK:         %[[SHAPE:.*]] = onnx.Constant dense<[4, 3]> : tensor<2xi64>
// CHECK:         %[[R:.*]] = "onnx.Reshape"(%[[X]], %[[SHAPE]]) {{.*}} : (tensor<2x6xf32>, tensor<2xi64>) -> tensor<4x3xf32>
// CHECK-NOT:     onnx.Reshape
// CHECK:         return %[[R]], %[[X]], %[[D]]
func.func @reshapes(%x: tensor<2x6xf32>, %d: tensor<?x6xf32>) -> (tensor<4x3xf32>, tensor<2x6xf32>, tensor<?x6xf32>) {
  %flat = onnx.Constant dense<-1> : tensor<1xi64>
  %shape = onnx.Constant dense<[4, 3]> : tensor<2xi64>
  %back = onnx.Constant dense<[-1, 6]> : tensor<2xi64>
  %axis = onnx.Constant dense<0> : tensor<1xi64>
  %0 = "onnx.Reshape"(%x, %flat) {allowzero = 0 : si64} : (tensor<2x6xf32>, tensor<1xi64>) -> tensor<12xf32>
  %1 = "onnx.Unsqueeze"(%0, %axis) : (tensor<12xf32>, tensor<1xi64>) -> tensor<1x12xf32>
  %2 = "onnx.Reshape"(%1, %shape) {allowzero = 0 : si64} : (tensor<1x12xf32>, tensor<2xi64>) -> tensor<4x3xf32>
  %3 = "onnx.Reshape"(%2, %back) {allowzero = 0 : si64} : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<2x6xf32>
  %4 = "onnx.Reshape"(%d, %back) {allowzero = 0 : si64} : (tensor<?x6xf32>, tensor<2xi64>) -> tensor<?x6xf32>
  return %2, %3, %4 : tensor<4x3xf32>, tensor<2x6xf32>, tensor<?x6xf32>
}

// -----

// Tests that a Reshape is kept whose shape copies a changed
// dimension, is unknown, or leaves two dimensions dynamic.
// CHECK-LABEL: func.func @reshapes_that_stay(
// CHECK:         %[[ONE:.*]] = "onnx.Reshape"{{.*}} -> tensor<3x4xf32>
// CHECK:         "onnx.Reshape"(%[[ONE]], {{.*}} -> tensor<3x2x2xf32>
// CHECK:         "onnx.Reshape"(%{{.*}} : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
// CHECK:         "onnx.Reshape"(%{{.*}} <{allowzero = 1 : si64}> : (tensor<?x0xf32>, tensor<2xi64>) -> tensor<?x0xf32>
func.func @reshapes_that_stay(%x: tensor<2x6xf32>, %d: tensor<?x?xf32>, %s: tensor<2xi64>, %e: tensor<?x0xf32>)
    -> (tensor<3x2x2xf32>, tensor<?x?xf32>, tensor<?x0xf32>) {
  %shape = onnx.Constant dense<[3, 4]> : tensor<2xi64>
  %copy = onnx.Constant dense<[0, 2, 2]> : tensor<3xi64>
  %empty = onnx.Constant dense<[5, 0]> : tensor<2xi64>
  %0 = "onnx.Reshape"(%x, %shape) {allowzero = 0 : si64} : (tensor<2x6xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  %1 = "onnx.Reshape"(%0, %copy) {allowzero = 0 : si64} : (tensor<3x4xf32>, tensor<3xi64>) -> tensor<3x2x2xf32>
  %2 = "onnx.Reshape"(%d, %s) {allowzero = 0 : si64} : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %3 = "onnx.Reshape"(%e, %empty) {allowzero = 1 : si64} : (tensor<?x0xf32>, tensor<2xi64>) -> tensor<?x0xf32>
  return %1, %2, %3 : tensor<3x2x2xf32>, tensor<?x?xf32>, tensor<?x0xf32>
}

// -----

// Tests that no-ops are removed.
// CHECK-LABEL: func.func @nothing(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3xf32>)
// CHECK-NEXT:    return %[[X]]
func.func @nothing(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %none = "onnx.NoValue"() {value} : () -> none
  %0 = "onnx.Identity"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "onnx.Cast"(%0) {to = f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %pads = onnx.Constant dense<0> : tensor<4xi64>
  %2 = "onnx.Pad"(%1, %pads, %none, %none) : (tensor<2x3xf32>, tensor<4xi64>, none, none) -> tensor<2x3xf32>
  %shape = onnx.Constant dense<[2, 1]> : tensor<2xi64>
  %3 = "onnx.Expand"(%2, %shape) : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %starts = onnx.Constant dense<0> : tensor<1xi64>
  %ends = onnx.Constant dense<9> : tensor<1xi64>
  %4 = "onnx.Slice"(%3, %starts, %ends, %none, %none) : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>, none, none) -> tensor<2x3xf32>
  %5 = "onnx.Concat"(%4) {axis = 0 : si64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %ones = onnx.Constant dense<1> : tensor<2xi64>
  %6 = "onnx.Tile"(%5, %ones) : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %7:2 = "onnx.Dropout"(%6, %none, %none) : (tensor<2x3xf32>, none, none) -> (tensor<2x3xf32>, none)
  %8 = "onnx.Sum"(%7#0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %9 = "onnx.Split"(%8, %none) {axis = 0 : si64} : (tensor<2x3xf32>, none) -> tensor<2x3xf32>
  return %9 : tensor<2x3xf32>
}

// -----

// Tests that operators with an effect are kept.
// CHECK-LABEL: func.func @something(
// CHECK:         "onnx.Cast"{{.*}} -> tensor<2x3xf16>
// CHECK:         "onnx.Pad"{{.*}} -> tensor<2x3xf32>
// CHECK:         "onnx.Expand"{{.*}} -> tensor<?x3xf32>
// CHECK:         "onnx.Slice"{{.*}} -> tensor<2x3xf32>
// CHECK:         "onnx.Dropout"{{.*}} -> (tensor<2x3xf32>, none)
// CHECK:         "onnx.Dropout"{{.*}} -> (tensor<2x3xf32>, tensor<2x3xi1>)
// CHECK:         "onnx.Identity"{{.*}} : (tensor<2x3xf32>) -> tensor<?x3xf32>
func.func @something(%x: tensor<2x3xf32>, %d: tensor<?x3xf32>) -> (tensor<2x3xf16>, tensor<2x3xf32>, tensor<?x3xf32>,
    tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xi1>, tensor<?x3xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  %0 = "onnx.Cast"(%x) {to = f16} : (tensor<2x3xf32>) -> tensor<2x3xf16>
  %pads = onnx.Constant dense<[1, 0, -1, 0]> : tensor<4xi64>
  %1 = "onnx.Pad"(%x, %pads, %none, %none) : (tensor<2x3xf32>, tensor<4xi64>, none, none) -> tensor<2x3xf32>
  %shape = onnx.Constant dense<[2, 1]> : tensor<2xi64>
  %2 = "onnx.Expand"(%d, %shape) : (tensor<?x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
  %starts = onnx.Constant dense<-1> : tensor<1xi64>
  %ends = onnx.Constant dense<-9> : tensor<1xi64>
  %axis = onnx.Constant dense<0> : tensor<1xi64>
  %3 = "onnx.Slice"(%x, %starts, %ends, %axis, %starts) : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x3xf32>
  %true = onnx.Constant dense<true> : tensor<i1>
  %4:2 = "onnx.Dropout"(%x, %none, %true) : (tensor<2x3xf32>, none, tensor<i1>) -> (tensor<2x3xf32>, none)
  %5:2 = "onnx.Dropout"(%x, %none, %none) : (tensor<2x3xf32>, none, none) -> (tensor<2x3xf32>, tensor<2x3xi1>)
  %6 = "onnx.Identity"(%x) : (tensor<2x3xf32>) -> tensor<?x3xf32>
  return %0, %1, %2, %3, %4#0, %5#1, %6 : tensor<2x3xf16>, tensor<2x3xf32>, tensor<?x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xi1>, tensor<?x3xf32>
}

// -----

// Tests that additions of zero and multiplications by one are removed, on either side if the operator commutes.
// CHECK-LABEL: func.func @neutral(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3xf32>, %[[I:.*]]: tensor<?x3xi32>)
// CHECK-NEXT:    return %[[X]], %[[I]]
func.func @neutral(%x: tensor<2x3xf32>, %i: tensor<?x3xi32>) -> (tensor<2x3xf32>, tensor<?x3xi32>) {
  %zero = onnx.Constant dense<0.0> : tensor<f32>
  %row = onnx.Constant dense<-0.0> : tensor<3xf32>
  %one = onnx.Constant dense<1.0> : tensor<1x1xf32>
  %nought = onnx.Constant dense<0> : tensor<3xi32>
  %unit = onnx.Constant dense<1> : tensor<1xi32>
  %0 = "onnx.Add"(%x, %zero) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = "onnx.Add"(%row, %0) : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "onnx.Sub"(%1, %zero) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = "onnx.Mul"(%one, %2) : (tensor<1x1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = "onnx.Div"(%3, %one) : (tensor<2x3xf32>, tensor<1x1xf32>) -> tensor<2x3xf32>
  %5 = "onnx.Add"(%i, %nought) : (tensor<?x3xi32>, tensor<3xi32>) -> tensor<?x3xi32>
  %6 = "onnx.Div"(%5, %unit) : (tensor<?x3xi32>, tensor<1xi32>) -> tensor<?x3xi32>
  return %4, %6 : tensor<2x3xf32>, tensor<?x3xi32>
}

// -----

// Tests that they are kept if they broadcast, or have another element or the wrong side.
// CHECK-LABEL: func.func @not_neutral(
// CHECK:         "onnx.Add"{{.*}} -> tensor<2x3xf32>
// CHECK:         "onnx.Add"{{.*}} -> tensor<?x3xf32>
// CHECK:         "onnx.Sub"
// CHECK:         "onnx.Div"
// CHECK:         "onnx.Mul"
func.func @not_neutral(%x: tensor<1x3xf32>, %d: tensor<?x3xf32>)
    -> (tensor<2x3xf32>, tensor<?x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>) {
  %zeros = onnx.Constant dense<0.0> : tensor<2x3xf32>
  %zero = onnx.Constant dense<0.0> : tensor<f32>
  %one = onnx.Constant dense<1.0> : tensor<f32>
  %ones = onnx.Constant dense<[1.0, 1.0, 1.5]> : tensor<3xf32>
  %0 = "onnx.Add"(%x, %zeros) : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "onnx.Add"(%d, %zeros) : (tensor<?x3xf32>, tensor<2x3xf32>) -> tensor<?x3xf32>
  %2 = "onnx.Sub"(%zero, %x) : (tensor<f32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  %3 = "onnx.Div"(%one, %x) : (tensor<f32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  %4 = "onnx.Mul"(%x, %ones) : (tensor<1x3xf32>, tensor<3xf32>) -> tensor<1x3xf32>
  return %0, %1, %2, %3, %4 : tensor<2x3xf32>, tensor<?x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>
}
