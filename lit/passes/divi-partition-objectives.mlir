// RUN: divi-opt %s --divi-partition="inputs=4 launches=one" | FileCheck %s --check-prefix=BATCH
// RUN: divi-opt %s --divi-partition="objective=pipeline k=2" | FileCheck %s --check-prefix=PIPE
// RUN: divi-opt %s --divi-partition="objective=pipeline pipeline-cost=overlap allow-shared-devices algorithm=anneal iterations=50 seed=7" | FileCheck %s --check-prefix=OVERLAP
// RUN: divi-opt %s --divi-partition="algorithm=heft pin=slow=cpu0 exclude=f*st=cpu0 colocate=fast=g,last=g" | FileCheck %s --check-prefix=OPTIONS

// Tests that queued inputs are split into batches, a pipeline into stages, and that options are passed to the planner.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64, batch_sizes = [1, 2, 3, 4]}
  divi.device @gpu0 {kind = "cuda", memory = 1000000 : i64, batch_sizes = [1, 2, 4]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x25xf32>) -> tensor<1x25xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 100.0, 2 = 200.0, 3 = 300.0, 4 = 400.0}, @gpu0 = {1 = 50.0, 2 = 60.0, 4 = 80.0}>, onnx_node_name = "fast"} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    %1 = "onnx.Abs"(%0) {divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 40.0, 3 = 60.0, 4 = 80.0}, @gpu0 = {1 = 100.0, 2 = 200.0, 4 = 400.0}>, onnx_node_name = "slow"} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    %2 = "onnx.Neg"(%1) {divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 40.0, 3 = 60.0, 4 = 80.0}, @gpu0 = {1 = 30.0, 2 = 40.0, 4 = 50.0}>, onnx_node_name = "last"} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    return %2 : tensor<1x25xf32>
  }
}
// BATCH: divi.plan = {algorithm = "auto", {{.*}}inputs = 4 : i64, {{.*}}objective = "batch"
// BATCH: "onnx.Relu"{{.*}}divi.batches = [#divi.batch<@gpu0, start = 0.{{[0-9]*}}, inputs = [0, 1, 2, 3]>]
// BATCH: "onnx.Abs"{{.*}}divi.batches = [#divi.batch<@cpu0, start = {{[0-9.]*}}, inputs = [0, 1, 2, 3]>]
// BATCH: "onnx.Neg"{{.*}}divi.batches = [#divi.batch<

// PIPE: divi.plan = {algorithm = "auto", bound = 50.1{{[0-9]*}} : f64, {{.*}}k = 2 : i64, {{.*}}objective = "pipeline", pipeline_cost = "serial", problem = "{{[0-9a-f]*}}", proof = "safe-dual", seed = 1 : i64, value = 5.020000e+01 : f64
// PIPE: "onnx.Relu"{{.*}}divi.device = @gpu0, divi.stage = 0 : i64, divi.start = 0.000000e+00 : f64
// PIPE: "onnx.Abs"{{.*}}divi.device = @cpu0, divi.stage = 1 : i64, divi.start = 0.000000e+00 : f64
// PIPE: "onnx.Neg"{{.*}}divi.device = @cpu0, divi.stage = 1 : i64, divi.start = 2.000000e+01 : f64

// OVERLAP: divi.plan = {algorithm = "anneal", {{.*}}iterations = 50 : i64, {{.*}}pipeline_cost = "overlap", problem = "{{[0-9a-f]*}}", proof = "exact", seed = 7 : i64, shared_devices, value = 5.000000e+01 : f64

// OPTIONS: divi.plan = {algorithm = "heft"
// OPTIONS: "onnx.Relu"{{.*}}divi.colocate = "g", {{.*}}divi.device = @gpu0, divi.exclude = [@cpu0]
// OPTIONS: "onnx.Abs"{{.*}}divi.device = @cpu0, divi.pin = @cpu0
// OPTIONS: "onnx.Neg"{{.*}}divi.colocate = "g", {{.*}}divi.device = @gpu0
