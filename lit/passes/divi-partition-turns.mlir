// RUN: divi-opt %s --divi-partition="objective=pipeline max-batch=4 iterations=100" -o %t.batches
// RUN: divi-opt %t.batches --divi-verify-plan | FileCheck %s --check-prefix=BATCHES
// RUN: divi-opt %s --divi-partition="objective=pipeline max-batch=2 replicas=2 iterations=100" -o %t.turns
// RUN: divi-opt %t.turns --divi-verify-plan | FileCheck %s --check-prefix=TURNS
// RUN: divi-opt %t.turns --divi-outline --divi-verify-plan | FileCheck %s --check-prefix=OUTLINED
// RUN: divi-opt %s --divi-partition="objective=pipeline max-batch=1 replicas=1 iterations=100" | FileCheck %s --check-prefix=SINGLE
// RUN: not divi-opt %s --divi-partition="objective=pipeline max-batch=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// Tests that stages of a pipeline take batches and that equal devices take turns, for one request: 2 inputs, or 2 for each of
// two devices.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 2.0e-6 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 2.0e-6 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 2.0e-6 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 2.0e-6 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 24.0, 4 = 32.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.cost = #divi.cost<@cpu1 = {1 = 40.0, 2 = 60.0}, @cpu2 = {1 = 40.0, 2 = 60.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}
// 60 / 2 of work, 2 of a latency that two inputs share, 2 of bytes.
// BATCHES: divi.plan = {{.*}}inputs = 2 : i64, {{.*}}k = 2 : i64, max_batch = 4 : i64, objective = "pipeline", {{.*}}value = 3.400000e+01 : f64
// BATCHES: "onnx.Relu"{{.*}}divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>]{{.*}}divi.stage = 0 : i64
// BATCHES: "onnx.Exp"{{.*}}divi.batches = [#divi.batch<@cpu{{[12]}}, start = 28.0, inputs = [0, 1]>]{{.*}}divi.stage = 1 : i64

// 60 / 2 / 2 of work and half of the transfers; @cpu0 takes 24 / 2 and 5 of transfers.
// TURNS: divi.plan = {{.*}}inputs = 4 : i64, {{.*}}k = 2 : i64, max_batch = 2 : i64, max_replicas = 2 : i64, {{.*}}value = 1.700000e+01 : f64
// TURNS: "onnx.Relu"{{.*}}divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>, #divi.batch<@cpu0, start = 24.0, inputs = [2, 3]>]{{.*}}divi.stage = 0 : i64
// TURNS: "onnx.Exp"{{.*}}divi.batches = [#divi.batch<@cpu1, start = 28.0, inputs = [0, 1]>, #divi.batch<@cpu2, start = 52.0, inputs = [2, 3]>]{{.*}}divi.stage = 1 : i64

// OUTLINED: divi.plan = {{.*}}inputs = 4 : i64, {{.*}}value = 1.700000e+01 : f64
// OUTLINED: func.func private @main.cpu1.0({{.*}}divi.stage = 1 : i64
// OUTLINED: func.func private @main.cpu2.0({{.*}}divi.stage = 1 : i64
// OUTLINED: divi.launch @main.cpu1.0({{.*}}) on @cpu1 {divi.inputs = array<i64: 0, 1>, divi.stage = 1 : i64
// OUTLINED: divi.launch @main.cpu2.0({{.*}}) on @cpu2 {divi.inputs = array<i64: 2, 3>, divi.stage = 1 : i64

// A pipeline of single inputs has no request.
// SINGLE-NOT: inputs =
// SINGLE: "onnx.Relu"{{.*}}divi.device = @cpu0, divi.stage = 0 : i64
// SINGLE-NOT: divi.batches

// NEGATIVE: error: max-batch is -1: it must be a number from 1 to 4294967295
