// RUN: divi-opt %s --verify-diagnostics --divi-verify-plan -o /dev/null
// RUN: divi-opt %s --divi-outline --divi-verify-plan 2>/dev/null | FileCheck %s

// Tests that a bound is not used when costs or constraints differ from those that it was proven for, here without a
// pin: the plan continues with a valid bound.
// CHECK: divi.plan = {{{.*}}bound = 1.0{{[0-9e+]*}} : f64, bound_by = "{{[a-z-]+}}", gap = {{[0-9.E-]+}} : f64, {{.*}}value = 1.000000e+01 : f64}
// expected-warning @below {{costs, devices or constraints have changed since planning: latency is now 10 us (was 10 us), and the bound of 10 us is no longer proven; divi-outline continues with another bound, divi-partition plans again}}
module attributes {divi.plan = {objective = "latency", value = 10.0 : f64, bound = 10.0 : f64, gap = 0.0 : f64, bound_by = "load", algorithm = "auto", problem = "0123456789abcdef"}} {
  divi.device @cpu0 {kind = "cpu", memory = 1000 : i64}
  divi.device @cpu1 {kind = "cpu", memory = 1000 : i64}
  divi.link @cpu0 -> @cpu1 {bandwidth = 1.0e15 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 1.0e15 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @cpu1 = {1 = 1.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1xf32>) -> tensor<1xf32>
    return %0 : tensor<1xf32>
  }
}
