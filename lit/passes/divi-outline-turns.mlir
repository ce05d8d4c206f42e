// RUN: divi-opt %s --divi-outline | FileCheck %s
// RUN: divi-opt %s --divi-verify-plan --divi-outline --divi-verify-plan | FileCheck %s
// RUN: not divi-opt %s --divi-outline --divi-inline-stages 2>&1 | FileCheck %s --check-prefix=INLINE

// Tests that stages of different batch sizes pass inputs by slices and gathers, that launches of a stage on one device share a
// function, and that devices of a stage have functions of their own.
// CHECK:       divi.plan = {{.*}}inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64, {{.*}}value = 1.500000e+01 : f64
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %{{.*}}: tensor<4x1000xf32>) -> tensor<4x1000xf32> attributes {divi.device = @cpu0, divi.stage = 0 : i64} {
// CHECK-LABEL: func.func private @main.cpu1.0(
// CHECK-SAME:    %{{.*}}: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu1, divi.stage = 1 : i64} {
// CHECK-LABEL: func.func private @main.cpu2.0(
// CHECK-SAME:    %{{.*}}: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu2, divi.stage = 1 : i64} {
// CHECK-NOT:   func.func private
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X:.*]]: tensor<4x1000xf32> {onnx.name = "x"}) -> (tensor<4x1000xf32> {onnx.name = "y"}) {
// CHECK-NEXT:    %[[R:.*]] = divi.launch @main.cpu0.0(%[[X]]) on @cpu0 {divi.inputs = array<i64: 0, 1, 2, 3>, divi.stage = 0 : i64, divi.start = 0.000000e+00 : f64}
// CHECK-NEXT:    %[[S0:.*]] = divi.slice %[[R]][0] of 4 axis 0
// CHECK-NEXT:    %[[T0:.*]] = divi.transfer %[[S0]] from @cpu0 to @cpu1 {divi.start = 2.400000e+01 : f64}
// CHECK:         divi.launch @main.cpu1.0({{.*}}) on @cpu1 {divi.inputs = array<i64: 0>, divi.stage = 1 : i64, divi.start = 2.500000e+01 : f64}
// CHECK:         divi.launch @main.cpu2.0({{.*}}) on @cpu2 {divi.inputs = array<i64: 1>, divi.stage = 1 : i64, divi.start = 2.500000e+01 : f64}
// CHECK:         divi.launch @main.cpu1.0({{.*}}) on @cpu1 {divi.inputs = array<i64: 2>, divi.stage = 1 : i64, divi.start = 5.300000e+01 : f64}
// CHECK:         divi.launch @main.cpu2.0({{.*}}) on @cpu2 {divi.inputs = array<i64: 3>, divi.stage = 1 : i64, divi.start = 5.300000e+01 : f64}
// CHECK:         %[[Y:.*]] = divi.gather %{{.*}} of 1, %{{.*}} of 1, %{{.*}} of 1, %{{.*}} of 1 axis 0
// CHECK-NEXT:    return %[[Y]] : tensor<4x1000xf32>

// INLINE: error: 'divi.{{.*}}' op belongs to a plan of queued inputs or of a pipeline of batches, whose stages differ in batch size
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0}, @cpu2 = {1 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}
