// RUN: divi-opt %s --split-input-file --divi-inline-clusters --verify-diagnostics | FileCheck %s

// Tests that members replace the cluster, with its decisions, and that markers of absent values are merged.
// CHECK-LABEL: func.func @inline(
// CHECK-SAME:    %[[X:.*]]: tensor<1x4x8x8xf32>
// CHECK-NEXT:    %[[NONE:.*]] = "onnx.NoValue"
// CHECK-NEXT:    %[[W:.*]] = onnx.Constant
// CHECK-NEXT:    %[[A:.*]] = "onnx.Conv"(%[[X]], %[[W]], %[[NONE]]) {{.*}}{divi.pin = @cpu0}
// CHECK-NEXT:    %[[B:.*]] = "onnx.Relu"(%[[A]]) {divi.pin = @cpu0}
// CHECK-NEXT:    %[[C:.*]] = "onnx.Conv"(%[[B]], %[[W]], %[[NONE]])
// CHECK-NOT:     divi.pin
// CHECK-NEXT:    return %[[C]]
divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
func.func @inline(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<4x4x1x1xf32>
  %0 = divi.cluster "conv_relu"(%x, %w : tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32> attributes {divi.pin = @cpu0} {
  ^bb0(%a: tensor<1x4x8x8xf32>, %b: tensor<4x4x1x1xf32>):
    %none = "onnx.NoValue"() <{value}> : () -> none
    %2 = "onnx.Conv"(%a, %b, %none) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, none) -> tensor<1x4x8x8xf32>
    %3 = "onnx.Relu"(%2) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    divi.yield %3 : tensor<1x4x8x8xf32>
  }
  %1 = divi.cluster "conv"(%0, %w : tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%a: tensor<1x4x8x8xf32>, %b: tensor<4x4x1x1xf32>):
    %none = "onnx.NoValue"() <{value}> : () -> none
    %2 = "onnx.Conv"(%a, %b, %none) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>, none) -> tensor<1x4x8x8xf32>
    divi.yield %2 : tensor<1x4x8x8xf32>
  }
  return %1 : tensor<1x4x8x8xf32>
}

// -----

// Tests that nested and empty clusters are inlined too, and
// that attributes of a whole cluster are lost with a warning.
// expected-warning @below {{1 clusters lose their divi.cost and divi.start: they do not apply to single members}}
module {
  // CHECK-LABEL: func.func @nested(
  // CHECK-SAME:    %[[X:.*]]: tensor<2xf32>
  // CHECK-NEXT:    %[[Y:.*]] = "onnx.Relu"(%[[X]])
  // CHECK-NEXT:    return %[[Y]], %[[X]]
  func.func @nested(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0:2 = divi.cluster "outer"(%x : tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) attributes {divi.start = 1.0 : f64} {
    ^bb0(%a: tensor<2xf32>):
      %1 = divi.cluster "inner"(%a : tensor<2xf32>) -> tensor<2xf32> {
      ^bb0(%b: tensor<2xf32>):
        %2 = "onnx.Relu"(%b) : (tensor<2xf32>) -> tensor<2xf32>
        divi.yield %2 : tensor<2xf32>
      }
      divi.yield %1, %a : tensor<2xf32>, tensor<2xf32>
    }
    divi.cluster "empty"() {
    }
    return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
  }
}
