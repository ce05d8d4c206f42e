// RUN: divi-opt %s --split-input-file --divi-verify-plan --verify-diagnostics
// RUN: divi-opt %s --split-input-file > %t.before
// RUN: divi-opt %s --split-input-file --divi-verify-plan > %t.after
// RUN: cmp %t.before %t.after

// Links transfer 1000 bytes per microsecond after a latency of 1 us: tensor<1000xf32> takes 5 us, tensor<250xf32> takes 2.

// Tests that a chain on one device waits for its input, and that its output is transferred back: 5 + 10 + 20 + 5.
module attributes {divi.plan = {objective = "latency", value = 40.0 : f64, bound = 30.0 : f64, gap = 0.25 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu0 = {1 = 20.0}>, divi.device = @gpu0, divi.start = 15.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests the same in stages, with the fingerprint of the model: launches and transfers are transparent.
module attributes {divi.plan = {objective = "latency", value = 40.0 : f64, bound = 30.0 : f64, gap = 0.25 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu0 = {1 = 20.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 35.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests a diamond whose branches run concurrently: 10 + 5 + 5 + 5 + 4. The group shares a device, and pin and exclusion
// are satisfied.
module attributes {divi.plan = {objective = "latency", value = 29.0 : f64, bound = 29.0 : f64, gap = 0.0 : f64, bound_by = "path", algorithm = "milp"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.colocate = "ends", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = divi.cluster "chain"(%0 : tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}, @gpu0 = {1 = 5.0}>, divi.device = @gpu0, divi.start = 15.0 : f64} {
    ^bb0(%a: tensor<1000xf32>):
      %m = "onnx.Abs"(%a) {onnx_node_name = "b", divi.pin = @gpu0} : (tensor<1000xf32>) -> tensor<1000xf32>
      divi.yield %m : tensor<1000xf32>
    }
    %2 = "onnx.Neg"(%0) {onnx_node_name = "c", divi.exclude = [@gpu0], divi.cost = #divi.cost<@cpu0 = {1 = 8.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %3 = "onnx.Add"(%1, %2) {onnx_node_name = "d", divi.colocate = "ends", divi.cost = #divi.cost<@cpu0 = {1 = 4.0}>, divi.device = @cpu0, divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %3 : tensor<1000xf32>
  }
}

// -----

// Tests two outputs, one of them from another device: the makespan is the later one. An unused input is ignored.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 10.0 : f64, gap = 0.5 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 20000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 8000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>, %unused: tensor<100000xf32>) -> (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 7.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0, %1, %x : tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>
  }
}

// -----

// Tests a tensor that is read on three devices, one of which computes it: it is transferred once to each of the others.
module attributes {divi.plan = {objective = "latency", value = 34.0 : f64, bound = 17.0 : f64, gap = 0.5 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Abs"(%a) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu0 = {1 = 6.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.gpu1.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu1} {
    %0 = "onnx.Neg"(%a) {onnx_node_name = "c", divi.cost = #divi.cost<@gpu1 = {1 = 8.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.cpu0.1(%a: tensor<1000xf32>, %b: tensor<1000xf32>, %c: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Sum"(%a, %b, %c) {onnx_node_name = "d", divi.cost = #divi.cost<@cpu0 = {1 = 6.0}>} : (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %a = divi.launch @main.cpu0.0(%x) on @cpu0 {divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %a0 = divi.transfer %a from @cpu0 to @gpu0 {divi.start = 10.0 : f64} : tensor<1000xf32>
    %a1 = divi.transfer %a from @cpu0 to @gpu1 {divi.start = 10.0 : f64} : tensor<1000xf32>
    %b = divi.launch @main.gpu0.0(%a0) on @gpu0 {divi.start = 15.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %c = divi.launch @main.gpu1.0(%a1) on @gpu1 {divi.start = 15.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %b0 = divi.transfer %b from @gpu0 to @cpu0 {divi.start = 21.0 : f64} : tensor<1000xf32>
    %c0 = divi.transfer %c from @gpu1 to @cpu0 {divi.start = 23.0 : f64} : tensor<1000xf32>
    %d = divi.launch @main.cpu0.1(%a, %b0, %c0) on @cpu0 {divi.start = 28.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %d : tensor<1000xf32>
  }
}

// -----

// Tests four queued inputs, two on each device: 3 us to the device, 4 + 4 there and 3 back, while the other takes 10 + 10.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 20.0 : f64, bound = 10.0 : f64, gap = 0.5 : f64, bound_by = "load", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2, 4]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [1, 3]>, #divi.batch<@gpu0, start = 3.0, inputs = [0, 2]>]} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>, divi.batches = [#divi.batch<@gpu0, start = 7.0, inputs = [0, 2]>, #divi.batch<@cpu0, start = 10.0, inputs = [1, 3]>]} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    return %1 : tensor<1x250xf32>
  }
}

// -----

// Tests the same in stages: the queue is sliced, and gathered again in order. Values that all inputs share are not
// sliced.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 20.0 : f64, bound = 10.0 : f64, gap = 0.5 : f64, bound_by = "load", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2, 4]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>, %s: tensor<250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Add"(%a, %s) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>, tensor<250xf32>) -> tensor<2x250xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %1 : tensor<2x250xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<2x250xf32>, %s: tensor<250xf32>) -> tensor<2x250xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Add"(%a, %s) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>, tensor<250xf32>) -> tensor<2x250xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %1 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<4x250xf32>, %s: tensor<250xf32>) -> tensor<4x250xf32> {
    %even = divi.slice %x[0, 2] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %there = divi.transfer %even from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x250xf32>
    %shared = divi.transfer %s from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<250xf32>
    %odd = divi.slice %x[1, 3] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %c = divi.launch @main.cpu0.0(%odd, %s) on @cpu0 {divi.inputs = array<i64: 1, 3>, divi.start = 0.0 : f64} : (tensor<2x250xf32>, tensor<250xf32>) -> tensor<2x250xf32>
    %g = divi.launch @main.gpu0.0(%there, %shared) on @gpu0 {divi.inputs = array<i64: 0, 2>, divi.start = 3.0 : f64} : (tensor<2x250xf32>, tensor<250xf32>) -> tensor<2x250xf32>
    %back = divi.transfer %g from @gpu0 to @cpu0 {divi.start = 11.0 : f64} : tensor<2x250xf32>
    %all = divi.gather %back of 2, %c of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    %sorted = divi.slice %all[0, 2, 1, 3] of 4 axis 0 : tensor<4x250xf32> -> tensor<4x250xf32>
    return %sorted : tensor<4x250xf32>
  }
}

// -----

// Tests an unrolled stage, whose task mixes inputs: it is
// still one task, and takes its time for both of them.
module attributes {divi.plan = {objective = "batch", inputs = 2 : i64, value = 9.0 : f64, bound = 9.0 : f64, gap = 0.0 : f64, bound_by = "load", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    %zero = onnx.Constant dense<0> : tensor<1xi64>
    %one = onnx.Constant dense<1> : tensor<1xi64>
    %two = onnx.Constant dense<2> : tensor<1xi64>
    %0 = "onnx.Slice"(%a, %zero, %one, %zero, %one) {onnx_node_name = "x#slice0"} : (tensor<2x250xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x250xf32>
    %1 = "onnx.Slice"(%a, %one, %two, %zero, %one) {onnx_node_name = "x#slice1"} : (tensor<2x250xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x250xf32>
    %2 = "onnx.Softmax"(%0) {axis = 0 : si64, onnx_node_name = "s#0", divi.cost = #divi.cost<@cpu0 = {2 = 9.0}>} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    %3 = "onnx.Softmax"(%1) {axis = 0 : si64, onnx_node_name = "s#1", divi.cost = #divi.cost<@cpu0 = {2 = 9.0}>} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    %4 = "onnx.Concat"(%2, %3) {axis = 0 : si64, onnx_node_name = "s#concat"} : (tensor<1x250xf32>, tensor<1x250xf32>) -> tensor<2x250xf32>
    return %4 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<2x250xf32>) -> tensor<2x250xf32> {
    %0 = divi.launch @main.cpu0.0(%x) on @cpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 0.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
}

// -----

// Tests a pipeline whose devices compute and transfer in turn: @gpu0 takes 12 and 5 for each transfer.
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, pipeline_cost = "serial", value = 22.0 : f64, bound = 11.0 : f64, gap = 0.5 : f64, bound_by = "load", algorithm = "slicegraph"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 4.0}>, divi.device = @cpu0, divi.stage = 0 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Neg"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 6.0}>, divi.device = @cpu0, divi.stage = 0 : i64, divi.start = 4.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Abs"(%1) {onnx_node_name = "c", divi.cost = #divi.cost<@gpu0 = {1 = 12.0}>, divi.device = @gpu0, divi.stage = 1 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests the same with overlap, in stages: work and transfers count separately, and the maximum is the 12.
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, pipeline_cost = "overlap", value = 12.0 : f64, bound = 12.0 : f64, gap = 0.0 : f64, bound_by = "load", algorithm = "slicegraph"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @cpu0, divi.stage = 0 : i64} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 4.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Neg"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 6.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0, divi.stage = 1 : i64} {
    %0 = "onnx.Abs"(%a) {onnx_node_name = "c", divi.cost = #divi.cost<@gpu0 = {1 = 12.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = divi.launch @main.cpu0.0(%x) on @cpu0 {divi.stage = 0 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = divi.transfer %0 from @cpu0 to @gpu0 {divi.start = 10.0 : f64} : tensor<1000xf32>
    %2 = divi.launch @main.gpu0.0(%1) on @gpu0 {divi.stage = 1 : i64, divi.start = 15.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %3 = divi.transfer %2 from @gpu0 to @cpu0 {divi.start = 27.0 : f64} : tensor<1000xf32>
    return %3 : tensor<1000xf32>
  }
}

// -----

// Tests stages that share a device, which takes the work of both: 10 + 3, and 5 for each transfer.
module attributes {divi.plan = {objective = "pipeline", k = 3 : i64, pipeline_cost = "serial", shared_devices, value = 23.0 : f64, bound = 23.0 : f64, gap = 0.0 : f64, bound_by = "load", algorithm = "slicegraph"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.stage = 0 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu0 = {1 = 12.0}>, divi.device = @gpu0, divi.stage = 1 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Neg"(%1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 3.0}>, divi.device = @cpu0, divi.stage = 2 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that memory is the peak of live tensors, not a sum: of five tensors of 4000 bytes on @cpu0, two are live at any
// time. The weight of 4000 bytes is resident.
module attributes {divi.plan = {objective = "latency", value = 4.0 : f64, bound = 4.0 : f64, gap = 0.0 : f64, bound_by = "load", algorithm = "single"}} {
  divi.device @cpu0 {kind = "cpu", memory = 12000 : i64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %w = onnx.Constant dense<1.0> : tensor<1000xf32>
    %0 = "onnx.Add"(%x, %w) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>, divi.device = @cpu0, divi.start = 1.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Neg"(%1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>, divi.device = @cpu0, divi.start = 2.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %3 = "onnx.Exp"(%2) {onnx_node_name = "d", divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>, divi.device = @cpu0, divi.start = 3.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %3 : tensor<1000xf32>
  }
}
