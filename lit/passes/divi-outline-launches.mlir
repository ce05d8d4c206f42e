// RUN: divi-opt %s --divi-outline | FileCheck %s
// RUN: divi-opt %s --divi-verify-plan --divi-outline --divi-verify-plan | FileCheck %s

// Tests that groups of inputs of the same size share a function, which is launched once for each, that a group of
// another size has a function of its own, and that times are those of the launches.
// CHECK:       divi.plan = {{.*}}inputs = 6 : i64, launches = "many", {{.*}}value = 2.100000e+01 : f64
// CHECK-LABEL: func.func private @main.cpu0.0(
// CHECK-SAME:    %{{.*}}: tensor<2x1000xf32>) -> tensor<2x1000xf32> attributes {divi.device = @cpu0} {
// CHECK-NEXT:    "onnx.Relu"
// CHECK-LABEL: func.func private @main.gpu0.0(
// CHECK-SAME:    %{{.*}}: tensor<2x1000xf32>) -> tensor<2x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    "onnx.Exp"
// CHECK-LABEL: func.func private @main.gpu0.1(
// CHECK-SAME:    %{{.*}}: tensor<4x1000xf32>) -> tensor<4x1000xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT:    "onnx.Exp"
// CHECK-NOT:   func.func private
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X:.*]]: tensor<6x1000xf32> {onnx.name = "x"}) -> (tensor<6x1000xf32> {onnx.name = "y"}) {
// CHECK-NEXT:    %[[X0:.*]] = divi.slice %[[X]][0, 1] of 6 axis 0
// CHECK-NEXT:    %[[R0:.*]] = divi.launch @main.cpu0.0(%[[X0]]) on @cpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 0.000000e+00 : f64}
// CHECK-NEXT:    %[[T0:.*]] = divi.transfer %[[R0]] from @cpu0 to @gpu0 {divi.start = 4.000000e+00 : f64}
// CHECK-NEXT:    %[[X1:.*]] = divi.slice %[[X]][2, 3] of 6 axis 0
// CHECK-NEXT:    %[[R1:.*]] = divi.launch @main.cpu0.0(%[[X1]]) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 4.000000e+00 : f64}
// CHECK-NEXT:    %[[E0:.*]] = divi.launch @main.gpu0.0(%[[T0]]) on @gpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 6.000000e+00 : f64}
// CHECK-NEXT:    %[[T1:.*]] = divi.transfer %[[R1]] from @cpu0 to @gpu0 {divi.start = 8.000000e+00 : f64}
// CHECK-NEXT:    %[[Y0:.*]] = divi.transfer %[[E0]] from @gpu0 to @cpu0 {divi.start = 8.000000e+00 : f64}
// CHECK-NEXT:    %[[X2:.*]] = divi.slice %[[X]][4, 5] of 6 axis 0
// CHECK-NEXT:    %[[R2:.*]] = divi.launch @main.cpu0.0(%[[X2]]) on @cpu0 {divi.inputs = array<i64: 4, 5>, divi.start = 8.000000e+00 : f64}
// CHECK-NEXT:    %[[T2:.*]] = divi.transfer %[[R2]] from @cpu0 to @gpu0 {divi.start = 1.200000e+01 : f64}
// CHECK-NEXT:    %[[G:.*]] = divi.gather %[[T1]] of 2, %[[T2]] of 2 axis 0
// CHECK-NEXT:    %[[E1:.*]] = divi.launch @main.gpu0.1(%[[G]]) on @gpu0 {divi.inputs = array<i64: 2, 3, 4, 5>, divi.start = 1.400000e+01 : f64}
// CHECK-NEXT:    %[[Y1:.*]] = divi.transfer %[[E1]] from @gpu0 to @cpu0 {divi.start = 1.700000e+01 : f64}
// CHECK-NEXT:    %[[Y:.*]] = divi.gather %[[Y0]] of 2, %[[Y1]] of 4 axis 0
// CHECK-NEXT:    return %[[Y]] : tensor<6x1000xf32>
module attributes {divi.plan = {objective = "batch", value = 21.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 6 : i64, launches = "many"}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64, batch_sizes = [2, 4]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>, #divi.batch<@cpu0, start = 4.0, inputs = [2, 3]>, #divi.batch<@cpu0, start = 8.0, inputs = [4, 5]>], divi.cost = #divi.cost<@cpu0 = {1 = 3.0, 2 = 4.0}, @gpu0 = {2 = 9.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.batches = [#divi.batch<@gpu0, start = 6.0, inputs = [0, 1]>, #divi.batch<@gpu0, start = 14.0, inputs = [2, 3, 4, 5]>], divi.cost = #divi.cost<@gpu0 = {2 = 2.0, 4 = 3.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}
