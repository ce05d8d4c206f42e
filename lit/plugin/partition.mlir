// RUN: mlir-opt --load-dialect-plugin=%libdivi --load-pass-plugin=%libdivi --pass-pipeline='builtin.module(divi-partition{pin=b=gpu0},divi-verify-plan,divi-outline,divi-verify-plan)' %s | FileCheck %s

// Tests that mlir-opt plans a module with costs, including the solver, and outlines the plan.
// CHECK: module attributes {divi.plan = {{{.*}}value = 7.000000e+00 : f64}}
// CHECK: func.func private @main.gpu0.0(%{{.*}}: tensor<1x250xf32>) -> tensor<1x250xf32> attributes {divi.device = @gpu0}
// CHECK: divi.transfer %{{.*}} from @cpu0 to @gpu0 {divi.start = 2.000000e+00 : f64}
// CHECK: divi.launch @main.gpu0.0(%{{.*}}) on @gpu0 {divi.start = 3.000000e+00 : f64}
divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1000000 : i64}
divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
  %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 2.0}, @gpu0 = {1 = 9.0}>, onnx_node_name = "a"} : (tensor<1x250xf32>) -> tensor<1x250xf32>
  %1 = "onnx.Abs"(%0) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}, @gpu0 = {1 = 3.0}>, onnx_node_name = "b"} : (tensor<1x250xf32>) -> tensor<1x250xf32>
  return %1 : tensor<1x250xf32>
}
