// RUN: divi-opt %s --split-input-file --divi-verify-plan --verify-diagnostics

// Links transfer 1000 bytes per microsecond after a latency of 1 us: tensor<1000xf32> takes 5 us.

// Tests that a plan with a task moved by hand is retimed: a takes 10 on @cpu0, and the transfer of b's value 5.
// expected-warning @below {{the placement was edited after planning: latency is now 40 us (was 20 us), bound 18 us, gap 55.0 %; divi-outline continues from there}}
module attributes {divi.plan = {objective = "latency", decisions = "0000000000000000", value = 20.0 : f64, bound = 18.0 : f64, gap = 0.1 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 20.0}>, divi.device = @gpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that a device keeps the order of its starts: c is before b, although it is after it in the module. In the other
// order, the latency would be 35.
// expected-warning @below {{the placement was edited after planning: latency is now 60 us (was 50 us), bound 0 us, gap 100.0 %; divi-outline continues from there}}
module attributes {divi.plan = {objective = "latency", decisions = "0000000000000000", value = 50.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> (tensor<1000xf32>, tensor<1000xf32>) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 20.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 25.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Neg"(%0) {onnx_node_name = "d", divi.cost = #divi.cost<@gpu0 = {1 = 15.0}>, divi.device = @gpu0, divi.start = 30.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1, %2 : tensor<1000xf32>, tensor<1000xf32>
  }
}

// -----

// Tests that an order that violates precedence is corrected: b's start is before that of a, which it reads.
// expected-warning @below {{the placement was edited after planning: latency is now 20 us (was 20 us), bound 20 us, gap 0.0 %; divi-outline continues from there}}
module attributes {divi.plan = {objective = "latency", decisions = "0000000000000000", value = 20.0 : f64, bound = 20.0 : f64, gap = 0.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that the starts of a plan with unchanged decisions are verified.
// expected-error @below {{has a divi.plan whose value is 20 us, but its latency is 21 us: 1 us too little}}
module attributes {divi.plan = {objective = "latency", decisions = "ab2eb6b99872c31a", value = 20.0 : f64, bound = 20.0 : f64, gap = 0.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 11.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that constraints, links and memory are verified for an edited plan, too; its value is not reported then.
module attributes {divi.plan = {objective = "latency", decisions = "0000000000000000", value = 20.0 : f64, bound = 18.0 : f64, gap = 0.1 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 9000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' runs on @gpu0, but is pinned to @cpu0: move it there or remove the pin}}
    // expected-error @below {{'onnx.Abs' op 'b' computes on @gpu0 an output of the model, but no link leads to @cpu0: declare 'divi.link @gpu0 -> @cpu0 {…}', or let both run on one device}}
    // expected-error @below {{@gpu0 needs 11.72 KiB at 'b', has 8.79 KiB: 2.93 KiB short; move tasks to another device}}
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.pin = @cpu0, divi.scratch_bytes = 4000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 20.0}>, divi.device = @gpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that batches may be moved, too: all four inputs wait for @gpu0, 5 us there and 5 back.
// expected-warning @below {{the placement was edited after planning: makespan is now 18 us (was 10 us), bound 9 us, gap 50.0 %; divi-outline continues from there}}
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, decisions = "0000000000000000", value = 10.0 : f64, bound = 9.0 : f64, gap = 0.1 : f64, bound_by = "load", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2, 4]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0, 4 = 8.0}>, divi.batches = [#divi.batch<@gpu0, start = 3.0, inputs = [0, 1, 2, 3]>]} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    return %0 : tensor<1x250xf32>
  }
}

// -----

// Tests that a task moved to another stage by hand is counted there; starts within stages are not verified.
// expected-warning @below {{the placement was edited after planning: bottleneck is now 32 us (was 22 us), bound 11 us, gap 65.6 %; divi-outline continues from there}}
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, decisions = "0000000000000000", value = 22.0 : f64, bound = 11.0 : f64, gap = 0.5 : f64, bound_by = "load", algorithm = "slicegraph"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 4.0}>, divi.device = @cpu0, divi.stage = 0 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Neg"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 6.0}, @gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.stage = 1 : i64, divi.start = 4.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Abs"(%1) {onnx_node_name = "c", divi.cost = #divi.cost<@gpu0 = {1 = 12.0}>, divi.device = @gpu0, divi.stage = 1 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that an edited pipeline of batches has a new value, and its starts are not verified.
// expected-warning @below {{the placement was edited after planning: bottleneck is now 15 us (was 14 us), bound 0 us, gap 100.0 %; divi-outline continues from there}}
module attributes {divi.plan = {objective = "pipeline", value = 14.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, decisions = "0000000000000000", inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 3.0, inputs = [0]>, #divi.batch<@cpu2, start = 3.0, inputs = [1]>, #divi.batch<@cpu1, start = 4.0, inputs = [2]>, #divi.batch<@cpu2, start = 5.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}
