// RUN: divi-opt %s --split-input-file --divi-partition | FileCheck %s

// Tests that a chain runs on the fastest device, as soon as its input has arrived, and that the certificate is on the
// module. A transfer takes 1 µs, plus 1 ns per byte.
module @chain {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1000000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 100.0}, @gpu0 = {1 = 10.0}>, onnx_node_name = "a"} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Abs"(%0) {divi.cost = #divi.cost<@cpu0 = {1 = 100.0}, @gpu0 = {1 = 20.0}>, onnx_node_name = "b"} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}
// CHECK: module @chain attributes {divi.plan = {algorithm = "auto", bound = 4.000000e+01 : f64, bound_by = "{{.*}}", {{.*}}gap = 0.000000e+00 : f64, {{.*}}objective = "latency", problem = "{{[0-9a-f]*}}", proof = "exact", seed = 1 : i64, value = 4.000000e+01 : f64}}
// CHECK: "onnx.Relu"(%{{.*}}) {divi.cost = {{.*}}, divi.device = @gpu0, divi.start = 5.000000e+00 : f64, onnx_node_name = "a"}
// CHECK: "onnx.Abs"(%{{.*}}) {divi.cost = {{.*}}, divi.device = @gpu0, divi.start = 1.500000e+01 : f64, onnx_node_name = "b"}

// -----

// Tests that the branches of a diamond run concurrently if that is faster.
module @diamond {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1000000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 100.0}, @gpu0 = {1 = 100.0}>} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    %1 = "onnx.Abs"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 500.0}, @gpu0 = {1 = 50.0}>} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    %2 = "onnx.Add"(%0, %1) {divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1x250xf32>, tensor<1x250xf32>) -> tensor<1x250xf32>
    return %2 : tensor<1x250xf32>
  }
}
// CHECK: module @diamond attributes {divi.plan = {{.*}}value = 1.100000e+02 : f64}
// CHECK: "onnx.Relu"{{.*}}divi.device = @cpu0, divi.start = 0.000000e+00 : f64
// CHECK: "onnx.Abs"{{.*}}divi.device = @gpu0, divi.start = 1.000000e+00 : f64
// CHECK: "onnx.Add"{{.*}}divi.device = @cpu0, divi.start = 1.000000e+02 : f64

// -----

// Tests that pins, exclusions and groups are satisfied, also inside clusters.
module @constraints {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1000000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 1000000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x250xf32>) -> (tensor<1x250xf32>, tensor<1x250xf32>) {
    %0 = divi.cluster "relu"(%x : tensor<1x250xf32>) -> tensor<1x250xf32> attributes {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}, @gpu0 = {1 = 100.0}, @gpu1 = {1 = 100.0}>} {
    ^bb0(%a: tensor<1x250xf32>):
      %r = "onnx.Relu"(%a) {divi.pin = @gpu0} : (tensor<1x250xf32>) -> tensor<1x250xf32>
      divi.yield %r : tensor<1x250xf32>
    }
    %1 = "onnx.Abs"(%x) {divi.colocate = "g", divi.cost = #divi.cost<@cpu0 = {1 = 1.0}, @gpu0 = {1 = 2.0}, @gpu1 = {1 = 3.0}>} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    %2 = "onnx.Neg"(%1) {divi.colocate = "g", divi.exclude = [@cpu0, @gpu0], divi.cost = #divi.cost<@cpu0 = {1 = 1.0}, @gpu0 = {1 = 2.0}, @gpu1 = {1 = 3.0}>} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    return %0, %2 : tensor<1x250xf32>, tensor<1x250xf32>
  }
}
// CHECK: module @constraints
// CHECK: divi.cluster "relu"{{.*}}divi.device = @gpu0
// CHECK: "onnx.Abs"{{.*}}divi.device = @gpu1
// CHECK: "onnx.Neg"{{.*}}divi.device = @gpu1

// -----

// Tests that decisions of another plan are replaced.
module @again attributes {divi.plan = {objective = "pipeline", value = 1.0 : f64, bound = 1.0 : f64, gap = 0.0 : f64, bound_by = "x", algorithm = "x"}} {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
    %0 = "onnx.Relu"(%x) {divi.batches = [#divi.batch<@cpu0, start = 7.0, inputs = [0]>], divi.cost = #divi.cost<@cpu0 = {1 = 3.0}>, divi.device = @cpu0, divi.stage = 4 : i64, divi.start = 9.0 : f64} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    return %0 : tensor<1x250xf32>
  }
}
// CHECK: module @again attributes {divi.plan = {{.*}}objective = "latency"{{.*}}value = 3.000000e+00 : f64}
// CHECK: "onnx.Relu"(%{{.*}}) {divi.cost = #divi.cost<@cpu0 = {1 = 3.0}>, divi.device = @cpu0, divi.start = 0.000000e+00 : f64} :
