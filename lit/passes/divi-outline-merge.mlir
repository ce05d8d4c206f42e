// RUN: divi-opt %s --split-input-file --divi-outline=min-stage-ops=2 --verify-diagnostics | FileCheck %s

// Tests that a small stage is moved to its neighbor's device, which merges three stages into one: the separate stage
// costs more than it gains.
// CHECK:       divi.plan = {{.*}}value = 1.400000e+01 : f64
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Relu"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>}
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Sqrt"(%[[V0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>}
// CHECK-NEXT:    %[[V2:.*]] = "onnx.Exp"(%[[V1]]) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}, @gpu0 = {1 = 4.0}>}
// CHECK-NEXT:    %[[V3:.*]] = "onnx.Relu"(%[[V2]]) {divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>}
// CHECK-NEXT:    %[[V4:.*]] = "onnx.Sqrt"(%[[V3]]) {divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>}
// CHECK-NEXT:    return %[[V4]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
// CHECK-NEXT:    %[[V0:.*]] = divi.transfer %[[X0]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = divi.launch @main.gpu0.0(%[[V0]]) on @gpu0 {divi.start = 1.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V2:.*]] = divi.transfer %[[V1]] from @gpu0 to @cpu0 {divi.start = 1.300000e+01 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    return %[[V2]] : tensor<1x1000xf32>
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    %0 = "onnx.Relu"(%x) {divi.device = @gpu0, divi.start = 1.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Sqrt"(%0) {divi.device = @gpu0, divi.start = 3.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %2 = "onnx.Exp"(%1) {divi.device = @cpu0, divi.start = 6.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}, @gpu0 = {1 = 4.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %3 = "onnx.Relu"(%2) {divi.device = @gpu0, divi.start = 8.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %4 = "onnx.Sqrt"(%3) {divi.device = @gpu0, divi.start = 10.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %4 : tensor<1x1000xf32>
  }
}

// -----

// Tests that small stages on one device that cannot be moved are merged into one, which waits for all of their operands.
// CHECK:       divi.plan = {{.*}}value = 1.000000e+01 : f64
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>) attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Relu"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>}
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Sqrt"(%[[V0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>}
// CHECK-NEXT:    return %[[V0]], %[[V1]] : tensor<1x1000xf32>, tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>, %[[X1:.*]]: tensor<1x1000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>) attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Exp"(%[[X0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>}
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Relu"(%[[X1]]) {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>}
// CHECK-NEXT:    return %[[V0]], %[[V1]] : tensor<1x1000xf32>, tensor<1x1000xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>) {
// CHECK-NEXT:    %[[V0:.*]]:2 = divi.launch @main.cpu0.0(%[[X0]]) on @cpu0 {divi.start = 0.000000e+00 : f64} : (tensor<1x1000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>)
// CHECK-NEXT:    %[[V1:.*]] = divi.transfer %[[V0]]#0 from @cpu0 to @gpu0 {divi.start = 4.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V2:.*]] = divi.transfer %[[V0]]#1 from @cpu0 to @gpu0 {divi.start = 4.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V3:.*]]:2 = divi.launch @main.gpu0.0(%[[V1]], %[[V2]]) on @gpu0 {divi.start = 5.000000e+00 : f64} : (tensor<1x1000xf32>, tensor<1x1000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>)
// CHECK-NEXT:    %[[V4:.*]] = divi.transfer %[[V3]]#0 from @gpu0 to @cpu0 {divi.start = 9.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V5:.*]] = divi.transfer %[[V3]]#1 from @gpu0 to @cpu0 {divi.start = 9.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    return %[[V4]], %[[V5]] : tensor<1x1000xf32>, tensor<1x1000xf32>
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>) {
    %0 = "onnx.Relu"(%x) {divi.device = @cpu0, divi.start = 0.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Sqrt"(%0) {divi.device = @cpu0, divi.start = 2.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %2 = "onnx.Exp"(%0) {divi.device = @gpu0, divi.start = 3.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %3 = "onnx.Relu"(%1) {divi.device = @gpu0, divi.start = 5.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %2, %3 : tensor<1x1000xf32>, tensor<1x1000xf32>
  }
}

// -----

// Tests that remaining small stages are reported.
// CHECK:       divi.plan = {{.*}}value = 2.000000e+00 : f64
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Relu"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
// CHECK-NEXT:    %[[V0:.*]] = divi.launch @main.cpu0.0(%[[X0]]) on @cpu0 {divi.start = 0.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// expected-warning @below {{1 stage has fewer than 2 tasks and cannot be merged into another}}
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    %0 = "onnx.Relu"(%x) {divi.device = @cpu0, divi.start = 0.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %0 : tensor<1x1000xf32>
  }
}
