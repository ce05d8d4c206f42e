// RUN: divi-opt %s -allow-unregistered-dialect --split-input-file --divi-outline | FileCheck %s
// RUN: divi-opt %s -allow-unregistered-dialect --split-input-file --divi-outline --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// Tests that consecutive tasks on a device are one stage, split where the model's input arrives and where a tensor
// leaves; that tasks keep their attributes but no decisions; and that constants are copied.
// CHECK:       divi.plan = {{.*}}value = 1.800000e+01 : f64
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = onnx.Constant dense<2.000000e+00> : tensor<1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Mul"(%[[X0]], %[[V0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>, divi.pin = @gpu0, onnx_node_name = "a"}
// CHECK-NEXT:    %[[V2:.*]] = "onnx.NoValue"() <{value}> : () -> none
// CHECK-NEXT:    %[[V3:.*]] = "onnx.Clip"(%[[V1]], %[[V2]], %[[V2]]) {divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 3.0}>, onnx_node_name = "b"}
// CHECK-NEXT:    return %[[V3]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = onnx.Constant dense<2.000000e+00> : tensor<1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Mul"(%[[X0]], %[[V0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 4.0}>, onnx_node_name = "c"}
// CHECK-NEXT:    return %[[V1]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
// CHECK-NEXT:    %[[V0:.*]] = divi.transfer %[[X0]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = divi.launch @main.gpu0.0(%[[V0]]) on @gpu0 {divi.start = 1.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V2:.*]] = divi.transfer %[[V1]] from @gpu0 to @cpu0 {divi.start = 6.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V3:.*]] = divi.launch @main.cpu0.0(%[[V2]]) on @cpu0 {divi.start = 8.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    return %[[V3]] : tensor<1x1000xf32>
module attributes {divi.plan = {objective = "latency", value = 18.0 : f64, bound = 9.0 : f64, gap = 0.5 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %w = onnx.Constant dense<2.0> : tensor<1000xf32>
    %none = "onnx.NoValue"() <{value}> : () -> none
    %0 = "onnx.Mul"(%x, %w) {onnx_node_name = "a", divi.pin = @gpu0, divi.device = @gpu0, divi.start = 1.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>, tensor<1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Clip"(%0, %none, %none) {onnx_node_name = "b", divi.device = @gpu0, divi.start = 3.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 3.0}>} : (tensor<1x1000xf32>, none, none) -> tensor<1x1000xf32>
    %2 = "onnx.Mul"(%1, %w) {onnx_node_name = "c", divi.device = @cpu0, divi.start = 8.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 4.0}>} : (tensor<1x1000xf32>, tensor<1000xf32>) -> tensor<1x1000xf32>
    return %2 : tensor<1x1000xf32>
  }
}

// -----

// Tests a diamond: the operand of both branches is a stage of its own, as it is transferred; the local branch runs
// concurrently with the other, and outdated starts are corrected.
// CHECK:       divi.plan = {{.*}}value = 1.300000e+01 : f64
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Relu"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>, onnx_node_name = "top"}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.gpu0.1(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Sqrt"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 8.0}>, onnx_node_name = "left"}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Exp"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 4.0}, @gpu0 = {1 = 8.0}>, onnx_node_name = "right"}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.gpu0.2(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>, %[[X1:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Add"(%[[X0]], %[[X1]]) {divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 1.0}>, onnx_node_name = "join"}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
// CHECK-NEXT:    %[[V0:.*]] = divi.transfer %[[X0]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = divi.launch @main.gpu0.0(%[[V0]]) on @gpu0 {divi.start = 1.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V2:.*]] = divi.transfer %[[V1]] from @gpu0 to @cpu0 {divi.start = 3.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V3:.*]] = divi.launch @main.gpu0.1(%[[V1]]) on @gpu0 {divi.start = 3.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V4:.*]] = divi.launch @main.cpu0.0(%[[V2]]) on @cpu0 {divi.start = 4.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V5:.*]] = divi.transfer %[[V4]] from @cpu0 to @gpu0 {divi.start = 8.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V6:.*]] = divi.launch @main.gpu0.2(%[[V3]], %[[V5]]) on @gpu0 {divi.start = 1.100000e+01 : f64} : (tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V7:.*]] = divi.transfer %[[V6]] from @gpu0 to @cpu0 {divi.start = 1.200000e+01 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    return %[[V7]] : tensor<1x1000xf32>
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "top", divi.device = @gpu0, divi.start = 0.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Sqrt"(%0) {onnx_node_name = "left", divi.device = @gpu0, divi.start = 1.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 8.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %2 = "onnx.Exp"(%0) {onnx_node_name = "right", divi.device = @cpu0, divi.start = 1.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 4.0}, @gpu0 = {1 = 8.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %3 = "onnx.Add"(%1, %2) {onnx_node_name = "join", divi.device = @gpu0, divi.start = 2.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 9.0}, @gpu0 = {1 = 1.0}>} : (tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %3 : tensor<1x1000xf32>
  }
}

// -----

// Tests a block of branches: one transfer of the input to each device that reads it, for any number of tasks, branches
// without other dependencies in one stage, and concurrent results.
// CHECK:       divi.plan = {{.*}}value = 1.050000e+01 : f64
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>) attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Relu"(%[[X0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}, @gpu1 = {1 = 2.0}>, onnx_node_name = "b1"}
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Sqrt"(%[[X0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}, @gpu1 = {1 = 2.0}>, onnx_node_name = "b2"}
// CHECK-NEXT:    return %[[V0]], %[[V1]] : tensor<1x1000xf32>, tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.gpu1.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu1} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Exp"(%[[X0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}, @gpu1 = {1 = 2.0}>, onnx_node_name = "b3"}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.gpu1.1(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu1} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Abs"(%[[X0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}, @gpu1 = {1 = 2.0}>, onnx_node_name = "b4"}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.gpu0.1(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>, %[[X1:.*]]: tensor<1x1000xf32>, %[[X2:.*]]: tensor<1x1000xf32>, %[[X3:.*]]: tensor<1x1000xf32>) -> tensor<1x4000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Concat"(%[[X0]], %[[X1]], %[[X2]], %[[X3]]) <{axis = 1 : si64}> {divi.cost = #divi.cost<@gpu0 = {1 = 1.0}>, onnx_node_name = "concat"}
// CHECK-NEXT:    return %[[V0]] : tensor<1x4000xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x4000xf32> {
// CHECK-NEXT:    %[[V0:.*]] = divi.transfer %[[X0]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = divi.transfer %[[X0]] from @cpu0 to @gpu1 {divi.start = 0.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V2:.*]]:2 = divi.launch @main.gpu0.0(%[[V0]]) on @gpu0 {divi.start = 1.000000e+00 : f64} : (tensor<1x1000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>)
// CHECK-NEXT:    %[[V3:.*]] = divi.launch @main.gpu1.0(%[[V1]]) on @gpu1 {divi.start = 1.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V4:.*]] = divi.transfer %[[V3]] from @gpu1 to @gpu0 {divi.start = 3.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V5:.*]] = divi.launch @main.gpu1.1(%[[V1]]) on @gpu1 {divi.start = 3.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V6:.*]] = divi.transfer %[[V5]] from @gpu1 to @gpu0 {divi.start = 5.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V7:.*]] = divi.launch @main.gpu0.1(%[[V2]]#0, %[[V2]]#1, %[[V4]], %[[V6]]) on @gpu0 {divi.start = 5.500000e+00 : f64} : (tensor<1x1000xf32>, tensor<1x1000xf32>, tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x4000xf32>
// CHECK-NEXT:    %[[V8:.*]] = divi.transfer %[[V7]] from @gpu0 to @cpu0 {divi.start = 6.500000e+00 : f64} : tensor<1x4000xf32>
// CHECK-NEXT:    return %[[V8]] : tensor<1x4000xf32>
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @gpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu1 -> @gpu0 {bandwidth = 8.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x4000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "b1", divi.device = @gpu0, divi.start = 1.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 2.0}, @gpu1 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Sqrt"(%x) {onnx_node_name = "b2", divi.device = @gpu0, divi.start = 3.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 2.0}, @gpu1 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %2 = "onnx.Exp"(%x) {onnx_node_name = "b3", divi.device = @gpu1, divi.start = 1.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 2.0}, @gpu1 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %3 = "onnx.Abs"(%x) {onnx_node_name = "b4", divi.device = @gpu1, divi.start = 3.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 2.0}, @gpu1 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %4 = "onnx.Concat"(%0, %1, %2, %3) <{axis = 1 : si64}> {onnx_node_name = "concat", divi.device = @gpu0, divi.start = 6.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 1.0}>} : (tensor<1x1000xf32>, tensor<1x1000xf32>, tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x4000xf32>
    return %4 : tensor<1x4000xf32>
  }
}

// -----

// Tests a residual: a value that is already on the device is not transferred.
// CHECK:       divi.plan = {{.*}}value = 1.000000e+01 : f64
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Relu"(%[[X0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Sqrt"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.gpu0.1(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>, %[[X1:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Add"(%[[X0]], %[[X1]]) {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
// CHECK-NEXT:    %[[V0:.*]] = divi.transfer %[[X0]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = divi.launch @main.gpu0.0(%[[V0]]) on @gpu0 {divi.start = 1.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V2:.*]] = divi.transfer %[[V1]] from @gpu0 to @cpu0 {divi.start = 3.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V3:.*]] = divi.launch @main.cpu0.0(%[[V2]]) on @cpu0 {divi.start = 4.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V4:.*]] = divi.transfer %[[V3]] from @cpu0 to @gpu0 {divi.start = 6.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V5:.*]] = divi.launch @main.gpu0.1(%[[V1]], %[[V4]]) on @gpu0 {divi.start = 7.000000e+00 : f64} : (tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V6:.*]] = divi.transfer %[[V5]] from @gpu0 to @cpu0 {divi.start = 9.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    return %[[V6]] : tensor<1x1000xf32>
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    %0 = "onnx.Relu"(%x) {divi.device = @gpu0, divi.start = 1.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Sqrt"(%0) {divi.device = @cpu0, divi.start = 4.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %2 = "onnx.Add"(%0, %1) {divi.device = @gpu0, divi.start = 7.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %2 : tensor<1x1000xf32>
  }
}

// -----

// Tests that outputs are transferred to the host, one that is also read there only once; values that are returned
// twice, returned arguments and returned constants; that unused arguments are kept, and unused results are not returned
// by stages; and that locations are kept.
// LOC-DAG: "onnx.Split"{{.*}} loc(#[[SPLIT:.*]])
// LOC-DAG: divi.launch @main.gpu0.0({{.*}}tensor<1x2000xf32>{{.*}} loc(#[[SPLIT]])
// LOC-DAG: #[[SPLIT]] = loc("split.py":7:3)
// CHECK:       divi.plan = {{.*}}value = 7.000000e+00 : f64
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x2000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = onnx.Constant dense<[1000, 500, 500]> : tensor<3xi64>
// CHECK-NEXT:    %[[V1:.*]]:3 = "onnx.Split"(%[[X0]], %[[V0]]) <{axis = 1 : si64}> {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>, onnx_node_name = "split"}
// CHECK-NEXT:    return %[[V1]]#0 : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = onnx.Constant dense<2.000000e+00> : tensor<1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Mul"(%[[X0]], %[[V0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, onnx_node_name = "mul"}
// CHECK-NEXT:    return %[[V1]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<2xf32>, %[[X1:.*]]: tensor<1x2000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>, tensor<1x2000xf32>, tensor<1000xf32>, tensor<1x1000xf32>) {
// CHECK-NEXT:    %[[V0:.*]] = onnx.Constant dense<2.000000e+00> : tensor<1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = divi.transfer %[[X1]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<1x2000xf32>
// CHECK-NEXT:    %[[V2:.*]] = divi.launch @main.gpu0.0(%[[V1]]) on @gpu0 {divi.start = 2.000000e+00 : f64} : (tensor<1x2000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V3:.*]] = divi.transfer %[[V2]] from @gpu0 to @cpu0 {divi.start = 4.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V4:.*]] = divi.launch @main.cpu0.0(%[[V3]]) on @cpu0 {divi.start = 5.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    return %[[V3]], %[[V3]], %[[X1]], %[[V0]], %[[V4]] : tensor<1x1000xf32>, tensor<1x1000xf32>, tensor<1x2000xf32>, tensor<1000xf32>, tensor<1x1000xf32>
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%unused: tensor<2xf32>, %x: tensor<1x2000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>, tensor<1x2000xf32>, tensor<1000xf32>, tensor<1x1000xf32>) {
    %w = onnx.Constant dense<2.0> : tensor<1000xf32>
    %sizes = onnx.Constant dense<[1000, 500, 500]> : tensor<3xi64>
    %0:3 = "onnx.Split"(%x, %sizes) <{axis = 1 : si64}> {onnx_node_name = "split", divi.device = @gpu0, divi.start = 2.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>} : (tensor<1x2000xf32>, tensor<3xi64>) -> (tensor<1x1000xf32>, tensor<1x500xf32>, tensor<1x500xf32>) loc("split.py":7:3)
    %1 = "onnx.Mul"(%0#0, %w) {onnx_node_name = "mul", divi.device = @cpu0, divi.start = 5.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>, tensor<1000xf32>) -> tensor<1x1000xf32>
    return %0#0, %0#0, %x, %w, %1 : tensor<1x1000xf32>, tensor<1x1000xf32>, tensor<1x2000xf32>, tensor<1000xf32>, tensor<1x1000xf32>
  }
}

// -----

// Tests that a tensor with readers on three devices is transferred once to each of the others.
// CHECK:       divi.plan = {{.*}}value = 6.000000e+00 : f64
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Relu"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>, onnx_node_name = "from"}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.cpu0.1(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Abs"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.gpu1.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu1} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Exp"(%[[X0]]) {divi.cost = #divi.cost<@gpu1 = {1 = 1.0}>}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Sqrt"(%[[X0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 1.0}>}
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Add"(%[[V0]], %[[X0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 1.0}>}
// CHECK-NEXT:    return %[[V1]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.cpu0.2(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>, %[[X1:.*]]: tensor<1x1000xf32>, %[[X2:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Sum"(%[[X0]], %[[X1]], %[[X2]]) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>}
// CHECK-NEXT:    return %[[V0]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
// CHECK-NEXT:    %[[V0:.*]] = divi.launch @main.cpu0.0(%[[X0]]) on @cpu0 {divi.start = 0.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = divi.transfer %[[V0]] from @cpu0 to @gpu0 {divi.start = 1.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V2:.*]] = divi.transfer %[[V0]] from @cpu0 to @gpu1 {divi.start = 1.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V3:.*]] = divi.launch @main.cpu0.1(%[[V0]]) on @cpu0 {divi.start = 1.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V4:.*]] = divi.launch @main.gpu1.0(%[[V2]]) on @gpu1 {divi.start = 2.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V5:.*]] = divi.launch @main.gpu0.0(%[[V1]]) on @gpu0 {divi.start = 2.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V6:.*]] = divi.transfer %[[V4]] from @gpu1 to @cpu0 {divi.start = 3.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V7:.*]] = divi.transfer %[[V5]] from @gpu0 to @cpu0 {divi.start = 4.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V8:.*]] = divi.launch @main.cpu0.2(%[[V6]], %[[V7]], %[[V3]]) on @cpu0 {divi.start = 5.000000e+00 : f64} : (tensor<1x1000xf32>, tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    return %[[V8]] : tensor<1x1000xf32>
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @gpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "from", divi.device = @cpu0, divi.start = 0.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Sqrt"(%0) {divi.device = @gpu0, divi.start = 2.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 1.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %2 = "onnx.Exp"(%0) {divi.device = @gpu1, divi.start = 2.0 : f64, divi.cost = #divi.cost<@gpu1 = {1 = 1.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %3 = "onnx.Add"(%1, %0) {divi.device = @gpu0, divi.start = 3.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 1.0}>} : (tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %4 = "onnx.Abs"(%0) {divi.device = @cpu0, divi.start = 1.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %5 = "onnx.Sum"(%2, %3, %4) {divi.device = @cpu0, divi.start = 5.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<1x1000xf32>, tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %5 : tensor<1x1000xf32>
  }
}

// -----

// Tests that values that branches read from outside are arguments of their stage, that a task without results runs,
// that absent results stay absent where they are read, and that sequences stay on their device.
// CHECK:       divi.plan = {{.*}}value = 7.000000e+00 : f64
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]]:2 = "test.maybe"(%[[X0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 1.0}>}
// CHECK-NEXT:    return %[[V0]]#0 : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<i1>, %[[X1:.*]]: tensor<1x1000xf32>, %[[X2:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = onnx.Constant dense<2.000000e+00> : tensor<1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = "onnx.If"(%[[X0]]) ({
// CHECK-NEXT:    %[[V2:.*]] = "onnx.Mul"(%[[X1]], %[[V0]]) : (tensor<1x1000xf32>, tensor<1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    onnx.Yield %[[V2]] : tensor<1x1000xf32>
// CHECK-NEXT:    }, {
// CHECK-NEXT:    onnx.Yield %[[X2]] : tensor<1x1000xf32>
// CHECK-NEXT:    }) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<i1>) -> tensor<1x1000xf32>
// CHECK-NEXT:    return %[[V1]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.cpu0.1(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.NoValue"() <{value}> : () -> none
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Clip"(%[[X0]], %[[V0]], %[[V0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>}
// CHECK-NEXT:    return %[[V1]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.cpu0.2(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.SequenceConstruct"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>}
// CHECK-NEXT:    %[[V1:.*]] = onnx.Constant dense<0> : tensor<i64>
// CHECK-NEXT:    %[[V2:.*]] = "onnx.SequenceAt"(%[[V0]], %[[V1]]) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>}
// CHECK-NEXT:    return %[[V2]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.gpu0.1(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) attributes {divi.device = @gpu0} {
// CHECK-NEXT:    "test.sink"(%[[X0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 1.0}>}
// CHECK-NEXT:    return
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<i1>, %[[X1:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
// CHECK-NEXT:    %[[V0:.*]] = divi.transfer %[[X1]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = divi.launch @main.gpu0.0(%[[V0]]) on @gpu0 {divi.start = 1.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V2:.*]] = divi.transfer %[[V1]] from @gpu0 to @cpu0 {divi.start = 2.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V3:.*]] = divi.launch @main.cpu0.0(%[[X0]], %[[V2]], %[[X1]]) on @cpu0 {divi.start = 3.000000e+00 : f64} : (tensor<i1>, tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V4:.*]] = divi.launch @main.cpu0.1(%[[V3]]) on @cpu0 {divi.start = 4.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V5:.*]] = divi.transfer %[[V4]] from @cpu0 to @gpu0 {divi.start = 5.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V6:.*]] = divi.launch @main.cpu0.2(%[[V4]]) on @cpu0 {divi.start = 5.000000e+00 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    divi.launch @main.gpu0.1(%[[V5]]) on @gpu0 {divi.start = 6.000000e+00 : f64} : (tensor<1x1000xf32>) -> ()
// CHECK-NEXT:    return %[[V6]] : tensor<1x1000xf32>
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%c: tensor<i1>, %x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    %w = onnx.Constant dense<2.0> : tensor<1000xf32>
    %0:2 = "test.maybe"(%x) {divi.device = @gpu0, divi.start = 1.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 1.0}>} : (tensor<1x1000xf32>) -> (tensor<1x1000xf32>, none)
    %1 = "onnx.If"(%c) ({
      %then = "onnx.Mul"(%0#0, %w) : (tensor<1x1000xf32>, tensor<1000xf32>) -> tensor<1x1000xf32>
      "onnx.Yield"(%then) : (tensor<1x1000xf32>) -> ()
    }, {
      "onnx.Yield"(%x) : (tensor<1x1000xf32>) -> ()
    }) {divi.device = @cpu0, divi.start = 3.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<i1>) -> tensor<1x1000xf32>
    %2 = "onnx.Clip"(%1, %0#1, %0#1) {divi.device = @cpu0, divi.start = 4.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<1x1000xf32>, none, none) -> tensor<1x1000xf32>
    %3 = "onnx.SequenceConstruct"(%2) {divi.device = @cpu0, divi.start = 5.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<1x1000xf32>) -> !onnx.Seq<tensor<1x1000xf32>>
    "test.sink"(%2) {divi.device = @gpu0, divi.start = 6.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 1.0}>} : (tensor<1x1000xf32>) -> ()
    %zero = onnx.Constant dense<0> : tensor<i64>
    %4 = "onnx.SequenceAt"(%3, %zero) {divi.device = @cpu0, divi.start = 6.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (!onnx.Seq<tensor<1x1000xf32>>, tensor<i64>) -> tensor<1x1000xf32>
    return %4 : tensor<1x1000xf32>
  }
}

// -----

// Tests that the functions of a pipeline are its stages, whatever arrives and leaves in between, numbered and in order.
// CHECK:       divi.plan = {{.*}}value = 9.000000e+00 : f64
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>) attributes {divi.device = @gpu0, divi.stage = 0 : i64} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Relu"(%[[X0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>}
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Sqrt"(%[[V0]]) {divi.cost = #divi.cost<@gpu0 = {1 = 3.0}>}
// CHECK-NEXT:    return %[[V0]], %[[V1]] : tensor<1x1000xf32>, tensor<1x1000xf32>
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>, %[[X1:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0, divi.stage = 1 : i64} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Exp"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 5.0}>}
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Add"(%[[X1]], %[[V0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 4.0}>}
// CHECK-NEXT:    return %[[V1]] : tensor<1x1000xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
// CHECK-NEXT:    %[[V0:.*]] = divi.transfer %[[X0]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V1:.*]]:2 = divi.launch @main.gpu0.0(%[[V0]]) on @gpu0 {divi.stage = 0 : i64, divi.start = 1.000000e+00 : f64} : (tensor<1x1000xf32>) -> (tensor<1x1000xf32>, tensor<1x1000xf32>)
// CHECK-NEXT:    %[[V2:.*]] = divi.transfer %[[V1]]#0 from @gpu0 to @cpu0 {divi.start = 6.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V3:.*]] = divi.transfer %[[V1]]#1 from @gpu0 to @cpu0 {divi.start = 6.000000e+00 : f64} : tensor<1x1000xf32>
// CHECK-NEXT:    %[[V4:.*]] = divi.launch @main.cpu0.0(%[[V2]], %[[V3]]) on @cpu0 {divi.stage = 1 : i64, divi.start = 7.000000e+00 : f64} : (tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x1000xf32>
// CHECK-NEXT:    return %[[V4]] : tensor<1x1000xf32>
module attributes {divi.plan = {objective = "pipeline", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64, k = 2 : i64, pipeline_cost = "overlap"}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    %0 = "onnx.Relu"(%x) {divi.device = @gpu0, divi.stage = 0 : i64, divi.start = 0.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 2.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Sqrt"(%0) {divi.device = @gpu0, divi.stage = 0 : i64, divi.start = 2.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 3.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %2 = "onnx.Exp"(%0) {divi.device = @cpu0, divi.stage = 1 : i64, divi.start = 0.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 5.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %3 = "onnx.Add"(%1, %2) {divi.device = @cpu0, divi.stage = 1 : i64, divi.start = 5.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 4.0}>} : (tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %3 : tensor<1x1000xf32>
  }
}
