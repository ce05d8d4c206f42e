// RUN: divi-opt %s --divi-fuse --divi-mark-outputs | FileCheck %s
// RUN: divi-opt %s --divi-fuse --divi-mark-outputs=tasks=/c/* | FileCheck %s --check-prefix=SOME
// RUN: not divi-opt %s --divi-mark-outputs=tasks=head 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not divi-opt %s --divi-mark-outputs --divi-mark-outputs 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: divi-opt %s --divi-fuse --divi-mark-outputs=tasks=/c/* --divi-mark-outputs | FileCheck %s --check-prefix=TWICE
// RUN: sed 's/onnx.name = "y"/divi.computed_from = array<i64: 0>/' %s | not divi-opt 2>&1 | FileCheck %s --check-prefix=SELF
// RUN: sed 's/onnx.name = "y"/divi.start = 1.0/' %s | not divi-opt 2>&1 | FileCheck %s --check-prefix=OTHER

// A result has the name of its task's product, or of its last operator. Views, integers and outputs of the model are not added.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<4x1xf32> {divi.computed_from = array<i64: 2, 3>, onnx.name = "y"}
// CHECK-SAME: tensor<4x4xf32> {divi.computed_from = array<i64>, onnx.name = "/a/MatMul"}
// CHECK-SAME: tensor<4x4xf32> {divi.computed_from = array<i64: 1>, onnx.name = "/b/Sin"}
// Operands that are no results are replaced by those that they are computed from.
// CHECK-SAME: tensor<4x1xf32> {divi.computed_from = array<i64: 1, 2>, onnx.name = "/c/Gather"})
// CHECK: %[[A:.*]] = divi.cluster "matmul_relu"
// CHECK: %[[B:.*]] = divi.cluster "sin"
// CHECK: %[[C:.*]] = "onnx.GatherElements"
// CHECK: %[[Y:.*]] = "onnx.MatMul"
// CHECK: return %[[Y]], %[[A]], %[[B]], %[[C]] : tensor<4x1xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x1xf32>

// SOME: -> (tensor<4x1xf32> {divi.computed_from = array<i64: 1>, onnx.name = "y"}, tensor<4x1xf32> {divi.computed_from = array<i64>, onnx.name = "/c/Gather"})
// NONE: error: no task with a floating-point result that is not an output has a name like 'head'; --cost-table lists the tasks
// TWICE: -> (tensor<4x1xf32> {divi.computed_from = array<i64: 1, 3>, onnx.name = "y"}, tensor<4x1xf32> {divi.computed_from = array<i64: 2, 3>, onnx.name = "/c/Gather"}, tensor<4x4xf32> {divi.computed_from = array<i64>, onnx.name = "/a/MatMul"}, tensor<4x4xf32> {divi.computed_from = array<i64: 2>, onnx.name = "/b/Sin"})
// AGAIN: error: no task with a floating-point result that is not an output has a name like '*'
// SELF: error: 'func.func' op result 0 has divi.computed_from = array<i64: 0>: it must be a list of other results, as in array<i64: 0, 1>
// OTHER: error: 'func.func' op result 0 has attribute 'divi.start': divi.computed_from is the only divi attribute of results
func.func @main(%x: tensor<4x4xf32>) -> (tensor<4x1xf32> {onnx.name = "y"}) {
  %shape = "onnx.Constant"() {value = dense<16> : tensor<1xi64>} : () -> tensor<1xi64>
  %square = "onnx.Constant"() {value = dense<4> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = "onnx.MatMul"(%x, %x) {onnx_node_name = "/a/MatMul"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "onnx.Relu"(%0) {onnx_node_name = "/a/Relu"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "onnx.Reshape"(%1, %shape) {onnx_node_name = "/b/Reshape"} : (tensor<4x4xf32>, tensor<1xi64>) -> tensor<16xf32>
  %3 = "onnx.Sin"(%2) {onnx_node_name = "/b/Sin"} : (tensor<16xf32>) -> tensor<16xf32>
  %4 = "onnx.Reshape"(%3, %square) {onnx_node_name = "/c/Reshape"} : (tensor<16xf32>, tensor<2xi64>) -> tensor<4x4xf32>
  %5 = "onnx.ArgMax"(%1) {axis = 1 : si64, keepdims = 1 : si64, onnx_node_name = "/c/ArgMax"} : (tensor<4x4xf32>) -> tensor<4x1xi64>
  %6 = "onnx.GatherElements"(%4, %5) {axis = 1 : si64, onnx_node_name = "/c/Gather"} : (tensor<4x4xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  %y = "onnx.MatMul"(%4, %6) {onnx_node_name = "/d/MatMul"} : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  return %y : tensor<4x1xf32>
}
