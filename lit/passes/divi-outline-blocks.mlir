// Blocks of networks from costs to stages: planned, verified, outlined, verified again.
// RUN: divi-opt %s --split-input-file --divi-partition --divi-verify-plan --divi-outline --divi-verify-plan | FileCheck %s

// Tests that the branches of an inception block run concurrently, the longest on the fastest device, and that each
// result is transferred as soon as it is computed.
module @inception {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1000000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x8x4x4xf32> {
    %a = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 4.0}>, onnx_node_name = "one"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    %b = "onnx.Abs"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 40.0}, @gpu0 = {1 = 6.0}>, onnx_node_name = "reduce"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    %c = "onnx.Neg"(%b) {divi.cost = #divi.cost<@cpu0 = {1 = 40.0}, @gpu0 = {1 = 6.0}>, onnx_node_name = "three"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    %d = "onnx.Exp"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 3.0}, @gpu0 = {1 = 9.0}>, onnx_node_name = "pool"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    %e = "onnx.Tanh"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 3.0}, @gpu0 = {1 = 9.0}>, onnx_node_name = "five"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    %y = "onnx.Concat"(%a, %c, %d, %e) {axis = 1 : si64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}, @gpu0 = {1 = 1.0}>, onnx_node_name = "concat"} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x8x4x4xf32>
    return %y : tensor<1x8x4x4xf32>
  }
}
// CHECK: module @inception attributes {divi.plan = {{{.*}}bound = 1.700000e+01 : f64, bound_by = "exact", gap = 0.000000e+00 : f64, {{.*}}value = 1.700000e+01 : f64}}
// CHECK: func.func private @main.cpu0.0(%{{.*}}: tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) attributes {divi.device = @cpu0}
// CHECK-NEXT: onnx_node_name = "one"
// CHECK-NEXT: onnx_node_name = "pool"
// CHECK-NEXT: onnx_node_name = "five"
// CHECK: func.func private @main.gpu0.0(
// CHECK-NEXT: onnx_node_name = "reduce"
// CHECK-NEXT: onnx_node_name = "three"
// CHECK: func.func private @main.cpu0.1(
// CHECK-NEXT: onnx_node_name = "concat"
// CHECK: func.func @main(%[[X:.*]]: tensor<1x2x4x4xf32>) -> tensor<1x8x4x4xf32> {
// CHECK-NEXT: %[[THERE:.*]] = divi.transfer %[[X]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64}
// CHECK-NEXT: %[[SHORT:.*]]:3 = divi.launch @main.cpu0.0(%[[X]]) on @cpu0 {divi.start = 0.000000e+00 : f64}
// CHECK-NEXT: %[[LONG:.*]] = divi.launch @main.gpu0.0(%[[THERE]]) on @gpu0 {divi.start = 1.280000e-01 : f64}
// CHECK-NEXT: %[[BACK:.*]] = divi.transfer %[[LONG]] from @gpu0 to @cpu0 {divi.start = 1.212800e+01 : f64}
// CHECK-NEXT: %[[ALL:.*]] = divi.launch @main.cpu0.1(%[[SHORT]]#0, %[[BACK]], %[[SHORT]]#1, %[[SHORT]]#2) on @cpu0 {divi.start = 1.600000e+01 : f64}
// CHECK-NEXT: return %[[ALL]]

// -----

// Tests that a residual block keeps the residual on the device that adds it, and transfers it once.
module @residual {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1000000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 30.0}, @gpu0 = {1 = 3.0}>, onnx_node_name = "first"} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    %1 = "onnx.Abs"(%0) {divi.cost = #divi.cost<@cpu0 = {1 = 2.0}, @gpu0 = {1 = 50.0}>, onnx_node_name = "second"} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    %2 = "onnx.Add"(%1, %0) {divi.cost = #divi.cost<@cpu0 = {1 = 20.0}, @gpu0 = {1 = 2.0}>, onnx_node_name = "add"} : (tensor<1x250xf32>, tensor<1x250xf32>) -> tensor<1x250xf32>
    %3 = "onnx.Relu"(%2) {divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 1.0}>, onnx_node_name = "last"} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    return %3 : tensor<1x250xf32>
  }
}
// CHECK: module @residual attributes {divi.plan = {{{.*}}value = 1.200000e+01 : f64}}
// CHECK: func.func private @main.gpu0.0(
// CHECK: func.func private @main.cpu0.0(
// CHECK: func.func private @main.gpu0.1(%[[Y:.*]]: tensor<1x250xf32>, %[[RESIDUAL:.*]]: tensor<1x250xf32>)
// CHECK-NEXT: "onnx.Add"(%[[Y]], %[[RESIDUAL]])
// CHECK-NEXT: onnx_node_name = "last"
// CHECK: func.func @main(%[[X:.*]]: tensor<1x250xf32>) -> tensor<1x250xf32> {
// CHECK-NEXT: %[[THERE:.*]] = divi.transfer %[[X]] from @cpu0 to @gpu0 {divi.start = 0.000000e+00 : f64}
// CHECK-NEXT: %[[FIRST:.*]] = divi.launch @main.gpu0.0(%[[THERE]]) on @gpu0 {divi.start = 1.000000e+00 : f64}
// CHECK-NEXT: %[[OUT:.*]] = divi.transfer %[[FIRST]] from @gpu0 to @cpu0 {divi.start = 4.000000e+00 : f64}
// CHECK-NEXT: %[[SECOND:.*]] = divi.launch @main.cpu0.0(%[[OUT]]) on @cpu0 {divi.start = 5.000000e+00 : f64}
// CHECK-NEXT: %[[IN:.*]] = divi.transfer %[[SECOND]] from @cpu0 to @gpu0 {divi.start = 7.000000e+00 : f64}
// CHECK-NEXT: %[[LAST:.*]] = divi.launch @main.gpu0.1(%[[IN]], %[[FIRST]]) on @gpu0 {divi.start = 8.000000e+00 : f64}
// CHECK-NEXT: %[[BACK:.*]] = divi.transfer %[[LAST]] from @gpu0 to @cpu0 {divi.start = 1.100000e+01 : f64}
// CHECK-NEXT: return %[[BACK]]
