// RUN: divi-opt %s --split-input-file --divi-inline-stages | FileCheck %s
// RUN: divi-opt %s --split-input-file --divi-inline-stages --divi-outline --divi-inline-stages | FileCheck %s

// Tests that stages are replaced by their tasks, each with its device and start, that transfers are removed, and that
// copies of a constant are merged.
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
// CHECK-NEXT:    %[[V0:.*]] = onnx.Constant dense<2.000000e+00> : tensor<1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Mul"(%[[X0]], %[[V0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>, divi.device = @gpu0, divi.pin = @gpu0, divi.start = 1.000000e+00 : f64, onnx_node_name = "a"}
// CHECK-NEXT:    %[[V2:.*]] = "onnx.NoValue"() <{value}> : () -> none
// CHECK-NEXT:    %[[V3:.*]] = "onnx.Clip"(%[[V1]], %[[V2]], %[[V2]]) {divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 3.0}>, divi.device = @gpu0, divi.start = 3.000000e+00 : f64, onnx_node_name = "b"}
// CHECK-NEXT:    %[[V4:.*]] = "onnx.Mul"(%[[V3]], %[[V0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 4.0}>, divi.device = @cpu0, divi.start = 8.000000e+00 : f64, onnx_node_name = "c"}
// CHECK-NEXT:    return %[[V4]] : tensor<1x1000xf32>
module attributes {divi.plan = {objective = "latency", value = 18.0 : f64, bound = 9.0 : f64, gap = 0.5 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0} {
    %w = onnx.Constant dense<2.0> : tensor<1000xf32>
    %0 = "onnx.Mul"(%x, %w) {onnx_node_name = "a", divi.pin = @gpu0, divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>, tensor<1000xf32>) -> tensor<1x1000xf32>
    %none = "onnx.NoValue"() <{value}> : () -> none
    %1 = "onnx.Clip"(%0, %none, %none) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 3.0}>} : (tensor<1x1000xf32>, none, none) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
  func.func private @main.cpu0.0(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
    %w = onnx.Constant dense<2.0> : tensor<1000xf32>
    %0 = "onnx.Mul"(%x, %w) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 4.0}>} : (tensor<1x1000xf32>, tensor<1000xf32>) -> tensor<1x1000xf32>
    return %0 : tensor<1x1000xf32>
  }
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1x1000xf32>
    %1 = divi.launch @main.gpu0.0(%0) on @gpu0 {divi.start = 1.0 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %2 = divi.transfer %1 from @gpu0 to @cpu0 {divi.start = 6.0 : f64} : tensor<1x1000xf32>
    %3 = divi.launch @main.cpu0.0(%2) on @cpu0 {divi.start = 8.0 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %3 : tensor<1x1000xf32>
  }
}

// -----

// Tests that tasks of a pipeline have their stage, and starts relative to it, and that a branch reads values from outside.
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<i1>, %[[X1:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Relu"(%[[X1]]) {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>, divi.device = @gpu0, divi.stage = 0 : i64, divi.start = 0.000000e+00 : f64}
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Sqrt"(%[[V0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 3.0}>, divi.device = @gpu0, divi.stage = 0 : i64, divi.start = 2.000000e+00 : f64}
// CHECK-NEXT:    %[[V2:.*]] = "onnx.If"(%[[X0]]) ({
// CHECK-NEXT:    %[[V3:.*]] = "onnx.Exp"(%[[V1]]) : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    onnx.Yield %[[V3]] : tensor<1x1000xf32>
// CHECK-NEXT:    }, {
// CHECK-NEXT:    onnx.Yield %[[V1]] : tensor<1x1000xf32>
// CHECK-NEXT:    }) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>, divi.device = @cpu0, divi.stage = 1 : i64, divi.start = 0.000000e+00 : f64} : (tensor<i1>) -> tensor<1x1000xf32>
// CHECK-NEXT:    return %[[V2]] : tensor<1x1000xf32>
module attributes {divi.plan = {objective = "pipeline", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64, pipeline_cost = "overlap", k = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func private @main.gpu0.0(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0, divi.stage = 0 : i64} {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Sqrt"(%0) {divi.cost = #divi.cost<@gpu0 = {1 = 3.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
  func.func private @main.cpu0.0(%c: tensor<i1>, %x: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0, divi.stage = 1 : i64} {
    %0 = "onnx.If"(%c) ({
      %1 = "onnx.Exp"(%x) : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
      "onnx.Yield"(%1) : (tensor<1x1000xf32>) -> ()
    }, {
      "onnx.Yield"(%x) : (tensor<1x1000xf32>) -> ()
    }) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<i1>) -> tensor<1x1000xf32>
    return %0 : tensor<1x1000xf32>
  }
  func.func @main(%c: tensor<i1>, %x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    %0 = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1x1000xf32>
    %1 = divi.launch @main.gpu0.0(%0) on @gpu0 {divi.start = 1.0 : f64, divi.stage = 0 : i64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %2 = divi.transfer %1 from @gpu0 to @cpu0 {divi.start = 6.0 : f64} : tensor<1x1000xf32>
    %3 = divi.launch @main.cpu0.0(%c, %2) on @cpu0 {divi.start = 7.0 : f64, divi.stage = 1 : i64} : (tensor<i1>, tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %3 : tensor<1x1000xf32>
  }
}
