// RUN: divi-opt %s --split-input-file --divi-outline --verify-diagnostics | FileCheck %s

// Tests that of four queued inputs, three run on one device and one on the other: the model's function is for all of them,
// stages have their own batch sizes, inputs are sliced before transfers, and results are gathered in the order of the inputs.
// CHECK:       divi.plan = {{.*}}value = 1.700000e+01 : f64
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<1x1000xf32>, %[[X1:.*]]: tensor<f32>) -> tensor<10x1x100xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Mul"(%[[X0]], %[[X1]]) {divi.cost = #divi.cost<@cpu0 = {1 = 2.0, 4 = 7.0}, @gpu0 = {3 = 2.0}>, onnx_node_name = "mul"}
// CHECK-NEXT:    %[[V1:.*]] = onnx.Constant dense<[1, 10, 100]> : tensor<3xi64>
// CHECK-NEXT:    %[[V2:.*]] = "onnx.Reshape"(%[[V0]], %[[V1]]) <{allowzero = 0 : si64}> {divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 4 = 1.0}, @gpu0 = {3 = 1.0}>, onnx_node_name = "reshape"}
// CHECK-NEXT:    %[[V3:.*]] = "onnx.Transpose"(%[[V2]]) <{perm = [1, 0, 2]}> {divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 4 = 1.0}, @gpu0 = {3 = 1.0}>, onnx_node_name = "transpose"}
// CHECK-NEXT:    return %[[V3]] : tensor<10x1x100xf32>
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<3x1000xf32>, %[[X1:.*]]: tensor<f32>) -> tensor<10x3x100xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Mul"(%[[X0]], %[[X1]]) {divi.cost = #divi.cost<@cpu0 = {1 = 2.0, 4 = 7.0}, @gpu0 = {3 = 2.0}>, onnx_node_name = "mul"}
// CHECK-NEXT:    %[[V1:.*]] = onnx.Constant dense<[3, 10, 100]> : tensor<3xi64>
// CHECK-NEXT:    %[[V2:.*]] = "onnx.Reshape"(%[[V0]], %[[V1]]) <{allowzero = 0 : si64}> {divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 4 = 1.0}, @gpu0 = {3 = 1.0}>, onnx_node_name = "reshape"}
// CHECK-NEXT:    %[[V3:.*]] = "onnx.Transpose"(%[[V2]]) <{perm = [1, 0, 2]}> {divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 4 = 1.0}, @gpu0 = {3 = 1.0}>, onnx_node_name = "transpose"}
// CHECK-NEXT:    return %[[V3]] : tensor<10x3x100xf32>
// CHECK-LABEL: func.func private @main.cpu0.1(
// CHECK-SAME:    %[[X0:.*]]: tensor<10x4x100xf32>) -> tensor<4x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Relu"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {1 = 2.0, 4 = 5.0}>, onnx_node_name = "relu"}
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Transpose"(%[[V0]]) <{perm = [1, 0, 2]}> {divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 4 = 1.0}>, onnx_node_name = "back"}
// CHECK-NEXT:    %[[V2:.*]] = onnx.Constant dense<[4, 1000]> : tensor<2xi64>
// CHECK-NEXT:    %[[V3:.*]] = "onnx.Reshape"(%[[V1]], %[[V2]]) <{allowzero = 0 : si64}> {divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 4 = 1.0}>, onnx_node_name = "flat"}
// CHECK-NEXT:    return %[[V3]] : tensor<4x1000xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<4x1000xf32> {onnx.name = "x"}, %[[X1:.*]]: tensor<f32>) -> (tensor<4x1000xf32> {onnx.name = "y"}) {
// CHECK-NEXT:    %[[V0:.*]] = divi.slice %[[X0]][0, 1, 3] of 4 axis 0 : tensor<4x1000xf32> -> tensor<3x1000xf32>
// CHECK-NEXT:    %[[V1:.*]] = divi.transfer %[[V0]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<3x1000xf32>
// CHECK-NEXT:    %[[V2:.*]] = divi.transfer %[[X1]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<f32>
// CHECK-NEXT:    %[[V3:.*]] = divi.slice %[[X0]][2] of 4 axis 0 : tensor<4x1000xf32> -> tensor<1x1000xf32>
// CHECK-NEXT:    %[[V4:.*]] = divi.launch @main.cpu0.0(%[[V3]], %[[X1]]) on @cpu0 {divi.inputs = array<i64: 2>, divi.start = 0.000000e+00 : f64} : (tensor<1x1000xf32>, tensor<f32>) -> tensor<10x1x100xf32>
// CHECK-NEXT:    %[[V5:.*]] = divi.launch @main.gpu0.0(%[[V1]], %[[V2]]) on @gpu0 {divi.inputs = array<i64: 0, 1, 3>, divi.start = 3.000000e+00 : f64} : (tensor<3x1000xf32>, tensor<f32>) -> tensor<10x3x100xf32>
// CHECK-NEXT:    %[[V6:.*]] = divi.transfer %[[V5]] from @gpu0 to @cpu0 {divi.start = 7.000000e+00 : f64} : tensor<10x3x100xf32>
// CHECK-NEXT:    %[[V7:.*]] = divi.gather %[[V6]] of 3, %[[V4]] of 1 axis 1 : (tensor<10x3x100xf32>, tensor<10x1x100xf32>) -> tensor<10x4x100xf32>
// CHECK-NEXT:    %[[V8:.*]] = divi.slice %[[V7]][0, 1, 3, 2] of 4 axis 1 : tensor<10x4x100xf32> -> tensor<10x4x100xf32>
// CHECK-NEXT:    %[[V9:.*]] = divi.launch @main.cpu0.1(%[[V8]]) on @cpu0 {divi.inputs = array<i64: 0, 1, 2, 3>, divi.start = 1.000000e+01 : f64} : (tensor<10x4x100xf32>) -> tensor<4x1000xf32>
// CHECK-NEXT:    return %[[V9]] : tensor<4x1000xf32>
module attributes {divi.plan = {objective = "batch", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64, inputs = 4 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 4]}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64, batch_sizes = [3]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}, %scale: tensor<f32>) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %shape = onnx.Constant dense<[1, 10, 100]> : tensor<3xi64>
    %flat = onnx.Constant dense<[1, 1000]> : tensor<2xi64>
    %0 = "onnx.Mul"(%x, %scale) {onnx_node_name = "mul", divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [2]>, #divi.batch<@gpu0, start = 3.0, inputs = [0, 1, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 2.0, 4 = 7.0}, @gpu0 = {3 = 2.0}>} : (tensor<1x1000xf32>, tensor<f32>) -> tensor<1x1000xf32>
    %1 = "onnx.Reshape"(%0, %shape) <{allowzero = 0 : si64}> {onnx_node_name = "reshape", divi.batches = [#divi.batch<@cpu0, start = 2.0, inputs = [2]>, #divi.batch<@gpu0, start = 5.0, inputs = [0, 1, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 4 = 1.0}, @gpu0 = {3 = 1.0}>} : (tensor<1x1000xf32>, tensor<3xi64>) -> tensor<1x10x100xf32>
    %2 = "onnx.Transpose"(%1) <{perm = [1, 0, 2]}> {onnx_node_name = "transpose", divi.batches = [#divi.batch<@cpu0, start = 3.0, inputs = [2]>, #divi.batch<@gpu0, start = 6.0, inputs = [0, 1, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 4 = 1.0}, @gpu0 = {3 = 1.0}>} : (tensor<1x10x100xf32>) -> tensor<10x1x100xf32>
    %3 = "onnx.Relu"(%2) {onnx_node_name = "relu", divi.batches = [#divi.batch<@cpu0, start = 10.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 2.0, 4 = 5.0}>} : (tensor<10x1x100xf32>) -> tensor<10x1x100xf32>
    %4 = "onnx.Transpose"(%3) <{perm = [1, 0, 2]}> {onnx_node_name = "back", divi.batches = [#divi.batch<@cpu0, start = 15.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 4 = 1.0}>} : (tensor<10x1x100xf32>) -> tensor<1x10x100xf32>
    %5 = "onnx.Reshape"(%4, %flat) <{allowzero = 0 : si64}> {onnx_node_name = "flat", divi.batches = [#divi.batch<@cpu0, start = 16.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 4 = 1.0}>} : (tensor<1x10x100xf32>, tensor<2xi64>) -> tensor<1x1000xf32>
    return %5 : tensor<1x1000xf32>
  }
}

// -----

// Tests that two halves of a queue are gathered where they are returned, that values that all inputs share are taken
// from one launch, and that inputs of a batch of two stay together.
// CHECK:       divi.plan = {{.*}}value = 2.600000e+00 : f64
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<100xf32>, %[[X1:.*]]: tensor<4x100xf32>) -> (tensor<100xf32>, tensor<4x100xf32>) attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Sqrt"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {2 = 1.0}, @gpu0 = {2 = 1.0}>, onnx_node_name = "same"}
// CHECK-NEXT:    %[[V1:.*]] = "onnx.Mul"(%[[X1]], %[[V0]]) {divi.cost = #divi.cost<@cpu0 = {2 = 1.0}, @gpu0 = {2 = 1.0}>, onnx_node_name = "mul"}
// CHECK-NEXT:    return %[[V0]], %[[V1]] : tensor<100xf32>, tensor<4x100xf32>
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<100xf32>) -> tensor<100xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Sqrt"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {2 = 1.0}, @gpu0 = {2 = 1.0}>, onnx_node_name = "same"}
// CHECK-NEXT:    return %[[V0]] : tensor<100xf32>
// CHECK-LABEL: func.func private @main.gpu0.1(
// CHECK-SAME:    %[[X0:.*]]: tensor<4x100xf32>, %[[X1:.*]]: tensor<100xf32>) -> tensor<4x100xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Mul"(%[[X0]], %[[X1]]) {divi.cost = #divi.cost<@cpu0 = {2 = 1.0}, @gpu0 = {2 = 1.0}>, onnx_node_name = "mul"}
// CHECK-NEXT:    return %[[V0]] : tensor<4x100xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<8x100xf32>, %[[X1:.*]]: tensor<100xf32>) -> (tensor<8x100xf32>, tensor<100xf32>, tensor<8x100xf32>) {
// CHECK-NEXT:    %[[V0:.*]] = divi.slice %[[X0]][2, 3] of 4 axis 0 : tensor<8x100xf32> -> tensor<4x100xf32>
// CHECK-NEXT:    %[[V1:.*]] = divi.transfer %[[V0]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<4x100xf32>
// CHECK-NEXT:    %[[V2:.*]] = divi.transfer %[[X1]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64} : tensor<100xf32>
// CHECK-NEXT:    %[[V3:.*]] = divi.slice %[[X0]][0, 1] of 4 axis 0 : tensor<8x100xf32> -> tensor<4x100xf32>
// CHECK-NEXT:    %[[V4:.*]]:2 = divi.launch @main.cpu0.0(%[[X1]], %[[V3]]) on @cpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 0.000000e+00 : f64} : (tensor<100xf32>, tensor<4x100xf32>) -> (tensor<100xf32>, tensor<4x100xf32>)
// CHECK-NEXT:    %[[V5:.*]] = divi.launch @main.gpu0.0(%[[V2]]) on @gpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 2.000000e-01 : f64} : (tensor<100xf32>) -> tensor<100xf32>
// CHECK-NEXT:    %[[V6:.*]] = divi.launch @main.gpu0.1(%[[V1]], %[[V5]]) on @gpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 1.200000e+00 : f64} : (tensor<4x100xf32>, tensor<100xf32>) -> tensor<4x100xf32>
// CHECK-NEXT:    %[[V7:.*]] = divi.transfer %[[V6]] from @gpu0 to @cpu0 {divi.start = 2.200000e+00 : f64} : tensor<4x100xf32>
// CHECK-NEXT:    %[[V8:.*]] = divi.gather %[[V4]]#1 of 2, %[[V7]] of 2 axis 0 : (tensor<4x100xf32>, tensor<4x100xf32>) -> tensor<8x100xf32>
// CHECK-NEXT:    return %[[V8]], %[[V4]]#0, %[[X0]] : tensor<8x100xf32>, tensor<100xf32>, tensor<8x100xf32>
module attributes {divi.plan = {objective = "batch", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64, inputs = 4 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [2, 4]}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64, batch_sizes = [2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<2x100xf32>, %table: tensor<100xf32>) -> (tensor<2x100xf32>, tensor<100xf32>, tensor<2x100xf32>) {
    %0 = "onnx.Sqrt"(%table) {onnx_node_name = "same", divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>, #divi.batch<@gpu0, start = 1.0, inputs = [2, 3]>], divi.cost = #divi.cost<@cpu0 = {2 = 1.0}, @gpu0 = {2 = 1.0}>} : (tensor<100xf32>) -> tensor<100xf32>
    %1 = "onnx.Mul"(%x, %0) {onnx_node_name = "mul", divi.batches = [#divi.batch<@cpu0, start = 1.0, inputs = [0, 1]>, #divi.batch<@gpu0, start = 2.0, inputs = [2, 3]>], divi.cost = #divi.cost<@cpu0 = {2 = 1.0}, @gpu0 = {2 = 1.0}>} : (tensor<2x100xf32>, tensor<100xf32>) -> tensor<2x100xf32>
    return %1, %0, %x : tensor<2x100xf32>, tensor<100xf32>, tensor<2x100xf32>
  }
}

// -----

// Tests that an operator that mixes inputs runs once for each of them in its stage.
// CHECK:       divi.plan = {{.*}}value = 2.000000e+00 : f64
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %[[X0:.*]]: tensor<4x4xf32>) -> tensor<2x4xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    %[[V0:.*]] = "onnx.Relu"(%[[X0]]) {divi.cost = #divi.cost<@cpu0 = {2 = 1.0}>, onnx_node_name = "relu"}
// CHECK-NEXT:    %[[V1:.*]] = onnx.Constant dense<0> : tensor<1xi64>
// CHECK-NEXT:    %[[V2:.*]] = onnx.Constant dense<0> : tensor<1xi64>
// CHECK-NEXT:    %[[V3:.*]] = onnx.Constant dense<2> : tensor<1xi64>
// CHECK-NEXT:    %[[V4:.*]] = onnx.Constant dense<1> : tensor<1xi64>
// CHECK-NEXT:    %[[V5:.*]] = "onnx.Slice"(%[[V0]], %[[V2]], %[[V3]], %[[V2]], %[[V4]]) {onnx_node_name = "relu#slice0"}
// CHECK-NEXT:    %[[V6:.*]] = onnx.Constant dense<4> : tensor<1xi64>
// CHECK-NEXT:    %[[V7:.*]] = "onnx.Slice"(%[[V0]], %[[V3]], %[[V6]], %[[V2]], %[[V4]]) {onnx_node_name = "relu#slice1"}
// CHECK-NEXT:    %[[V8:.*]] = "onnx.ReduceMean"(%[[V5]], %[[V1]]) <{keepdims = 1 : si64, noop_with_empty_axes = 0 : si64}> {divi.cost = #divi.cost<@cpu0 = {2 = 1.0}>, onnx_node_name = "mean#0"}
// CHECK-NEXT:    %[[V9:.*]] = "onnx.ReduceMean"(%[[V7]], %[[V1]]) <{keepdims = 1 : si64, noop_with_empty_axes = 0 : si64}> {divi.cost = #divi.cost<@cpu0 = {2 = 1.0}>, onnx_node_name = "mean#1"}
// CHECK-NEXT:    %[[V10:.*]] = "onnx.Concat"(%[[V8]], %[[V9]]) <{axis = 0 : si64}> {onnx_node_name = "mean#concat"}
// CHECK-NEXT:    return %[[V10]] : tensor<2x4xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X0:.*]]: tensor<4x4xf32>) -> tensor<2x4xf32> {
// CHECK-NEXT:    %[[V0:.*]] = divi.launch @main.cpu0.0(%[[X0]]) on @cpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 0.000000e+00 : f64} : (tensor<4x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:    return %[[V0]] : tensor<2x4xf32>
// expected-warning @below {{mixes the inputs of a batch, so it runs once for each: 'onnx.ReduceMean' op 'mean'}}
module attributes {divi.plan = {objective = "batch", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64, inputs = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [2]}
  func.func @main(%x: tensor<2x4xf32>) -> tensor<1x4xf32> {
    %axes = onnx.Constant dense<0> : tensor<1xi64>
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>], divi.cost = #divi.cost<@cpu0 = {2 = 1.0}>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %1 = "onnx.ReduceMean"(%0, %axes) <{keepdims = 1 : si64, noop_with_empty_axes = 0 : si64}> {onnx_node_name = "mean", divi.batches = [#divi.batch<@cpu0, start = 1.0, inputs = [0, 1]>], divi.cost = #divi.cost<@cpu0 = {2 = 1.0}>} : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<1x4xf32>
    return %1 : tensor<1x4xf32>
  }
}
