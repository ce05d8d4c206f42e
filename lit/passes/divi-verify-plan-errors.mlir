// RUN: divi-opt %s --split-input-file --divi-verify-plan --verify-diagnostics

// Links transfer 1000 bytes per microsecond after a latency of 1 us: tensor<1000xf32> takes 5 us, tensor<2x250xf32> takes 3.

// Tests that a module must have a plan.
// expected-error @below {{has no divi.plan, so that there is nothing to verify: run divi-partition first}}
module {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that a module must have devices.
// expected-error @below {{has no divi.device, so no plan can be valid: start from the module that was planned}}
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// Tests that a queue must have a length.
// expected-error @below {{has a divi.plan without the number of queued inputs: add inputs = … : i64}}
module attributes {divi.plan = {objective = "batch", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that a queue must have inputs.
// expected-error @below {{has a divi.plan of 0 queued inputs: there must be one at least}}
module attributes {divi.plan = {objective = "batch", inputs = 0 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that an unknown pipeline cost is rejected.
// expected-error @below {{has a divi.plan with pipeline_cost "free": it must be serial or overlap}}
module attributes {divi.plan = {objective = "pipeline", pipeline_cost = "free", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that the value is recomputed.
// expected-error @below {{has a divi.plan whose value is 19 us, but its latency is 20 us: 1 us too little}}
module attributes {divi.plan = {objective = "latency", value = 19.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that the bound must be at most the recomputed value, not only the stated one.
// expected-error @below {{has a divi.plan whose value is 25 us, but its latency is 20 us: 5 us too much}}
// expected-error @below {{has a divi.plan whose bound is 24 us, but its latency is 20 us: no plan is better than its bound}}
module attributes {divi.plan = {objective = "latency", value = 25.0 : f64, bound = 24.0 : f64, gap = 0.04 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that a bound must be a time.
// expected-error @below {{has a divi.plan whose bound is -1, which is not a time}}
// expected-error @below {{has a divi.plan whose gap is 1, but (value - bound) / value is 1.05}}
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = -1.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that the gap is recomputed.
// expected-error @below {{has a divi.plan whose gap is 0.1, but (value - bound) / value is 0.5}}
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 10.0 : f64, gap = 0.1 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that every task must have a cost.
module attributes {divi.plan = {objective = "latency", value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' has no divi.cost: its time is unknown}}
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that pins must be satisfied, also in clusters.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' runs on @cpu0, but is pinned to @gpu0: move it there or remove the pin}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.pin = @gpu0} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'divi.cluster' op '/one/Abs' runs on @cpu0, but is pinned to @gpu0: move it there or remove the pin}}
    %1 = divi.cluster "one"(%0 : tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.members = ["/one/Abs"], divi.start = 10.0 : f64} {
    ^bb0(%c: tensor<1000xf32>):
      %m = "onnx.Abs"(%c) {divi.pin = @gpu0} : (tensor<1000xf32>) -> tensor<1000xf32>
      divi.yield %m : tensor<1000xf32>
    }
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that exclusions must be satisfied.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' runs on @cpu0, which its divi.exclude forbids: move it to another device}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.exclude = [@gpu0, @cpu0]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that groups must share a device.
module attributes {divi.plan = {objective = "latency", value = 30.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.colocate = "g"} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' runs on @gpu0, but shares a device with 'onnx.Relu' op 'a', which runs on @cpu0 (divi.colocate "g")}}
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 15.0 : f64, divi.colocate = "g"} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that a device must support its tasks.
module attributes {divi.plan = {objective = "latency", value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' runs on @cpu0, which does not support it: move it to @gpu0}}
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu0 = {1 = 1.0, 2 = 1.5}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that tasks must have a device and a start.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' has no divi.device: give it one, or run divi-partition}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' has no divi.start: give it one, or run divi-partition}}
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that a task must wait for its operands: until they are computed, and transferred.
// expected-error @below {{has a divi.plan whose value is 25 us, but its latency is 35.5 us: 10.5 us too little}}
module attributes {divi.plan = {objective = "latency", value = 25.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' starts at 4 us on @gpu0, but an input of the model arrives at 5 us: start it 1 us later}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 4.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 14.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Neg' op 'c' starts at 25.5 us on @cpu0, but the result of 'onnx.Abs' op 'b' arrives at 29 us: start it 3.5 us later}}
    %2 = "onnx.Neg"(%1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 25.5 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that a device must run one task at a time.
module attributes {divi.plan = {objective = "latency", value = 18.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> (tensor<1000xf32>, tensor<1000xf32>) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' starts at 8 us on @cpu0, where 'onnx.Relu' op 'a' runs until 10 us: start it 2 us later}}
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 8.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0, %1 : tensor<1000xf32>, tensor<1000xf32>
  }
}

// -----

// Tests that values need links, between devices and to and from the host.
module attributes {divi.plan = {objective = "latency", value = 30.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  func.func @main(%x: tensor<1000xf32>) -> (tensor<1000xf32>, tensor<1000xf32>) {
    // expected-error @below {{'onnx.Relu' op 'a' reads on @gpu0 an input of the model, which is on @cpu0, but no link leads there: declare 'divi.link @cpu0 -> @gpu0 {…}', or let both run on one device}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' reads on @cpu0 the result of 'onnx.Relu' op 'a' on @gpu0, but no link leads there: declare 'divi.link @gpu0 -> @cpu0 {…}', or let both run on one device}}
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Neg' op 'c' reads on @gpu0 an input of the model, which is on @cpu0, but no link leads there: declare 'divi.link @cpu0 -> @gpu0 {…}', or let both run on one device}}
    // expected-error @below {{'onnx.Neg' op 'c' computes on @gpu0 an output of the model, but no link leads to @cpu0: declare 'divi.link @gpu0 -> @cpu0 {…}', or let both run on one device}}
    %2 = "onnx.Neg"(%x) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 20.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1, %2 : tensor<1000xf32>, tensor<1000xf32>
  }
}

// -----

// Tests that the peak memory of a device must fit, and that its task is reported.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 15000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 15000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %w = onnx.Constant dense<1.0> : tensor<1000xf32>
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{@cpu0 needs 15.62 KiB at 'b', has 14.65 KiB: 1000 bytes short; move tasks to another device}}
    %1 = "onnx.Add"(%0, %w) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64, divi.scratch_bytes = 4000 : i64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that tasks must have batches.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' has no divi.batches: give it some, or run divi-partition}}
    %1 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 6.0, 2 = 10.0}, @gpu0 = {2 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    return %1 : tensor<1x250xf32>
  }
}

// -----

// Tests that a task must run once on a device.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' has two batches on @cpu0: a task runs once on a device, as launches is one in divi.plan}}
    %1 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 6.0, 2 = 10.0}, @gpu0 = {2 = 10.0}>, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>, #divi.batch<@cpu0, start = 10.0, inputs = [2, 3]>]} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    return %1 : tensor<1x250xf32>
  }
}

// -----

// Tests that every queued input must be run.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 16.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' does not run for input 2: add it to one of its divi.batches}}
    %1 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 6.0, 2 = 10.0}, @gpu0 = {2 = 10.0}>, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0]>, #divi.batch<@gpu0, start = 3.0, inputs = [1, 3]>]} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    return %1 : tensor<1x250xf32>
  }
}

// -----

// Tests that all queued inputs must be run, and no others.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' runs for input 5, but 4 are queued, counted from 0}}
    // expected-error @below {{'onnx.Relu' op 'a' does not run for 3 inputs, 1 among them: add them to its divi.batches}}
    %1 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 6.0, 2 = 10.0}, @gpu0 = {2 = 10.0}>, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 5]>]} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    return %1 : tensor<1x250xf32>
  }
}

// -----

// Tests that devices must support the batch sizes.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' runs for 4 at once on @cpu0, which takes batches of 1, 2}}
    %1 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 6.0, 4 = 20.0}>, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>]} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    return %1 : tensor<1x250xf32>
  }
}

// -----

// Tests that batch sizes must have a cost.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1x250xf32>) -> tensor<1x250xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' runs for 2 at once on @gpu0, but its divi.cost there is for batches of 1}}
    %1 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {1 = 1.0}>, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>, #divi.batch<@gpu0, start = 3.0, inputs = [2, 3]>]} : (tensor<1x250xf32>) -> tensor<1x250xf32>
    return %1 : tensor<1x250xf32>
  }
}

// -----

// Tests that tasks must have a stage.
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' has no divi.stage: give it one, or run divi-partition}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that a stage must be on one device.
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' is in stage 0 and on @gpu0, but 'onnx.Relu' op 'a' of that stage is on @cpu0: give it that device, or a stage of its own}}
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 10.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that stages must be numbered consecutively, up to the limit.
// expected-error @below {{has 2 stages, but none is stage 1: they are numbered from 0 on}}
// expected-error @below {{has 2 stages, but its divi.plan is for 1 at most (k)}}
module attributes {divi.plan = {objective = "pipeline", k = 1 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 0.0 : f64, divi.stage = 2 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that a device must have one stage, unless devices are shared.
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' is in stage 1 on @cpu0, which has stage 0 already: a device has one stage, unless divi.plan has shared_devices}}
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.stage = 1 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that values must flow to later stages.
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.stage = 1 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' is in stage 0, but reads the result of 'onnx.Relu' op 'a' in stage 1: values only go to later stages}}
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 0.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that the tasks of a stage must run one after the other, in topological order.
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, value = 40.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 2.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' starts at 11.5 us of its stage, but 'onnx.Relu' op 'a', which it reads, ends at 12 us: start it 0.5 us later}}
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 11.5 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Neg' op 'c' starts at 20 us of its stage, but 'onnx.Abs' op 'b', of the same stage, runs until 21.5 us: start it 1.5 us later}}
    %2 = "onnx.Neg"(%x) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 20.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %3 = "onnx.Add"(%1, %2) {onnx_node_name = "d", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 30.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %3 : tensor<1000xf32>
  }
}

// -----

// Tests that a stage holds all values of its tasks: several inputs are in flight.
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 20000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 20000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    // expected-error @below {{@cpu0 needs 23.44 KiB, most of it, 7.81 KiB, for 'a', has 19.53 KiB: 3.91 KiB short; move tasks to another device}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that a pipeline's value is its bottleneck.
// expected-error @below {{has a divi.plan whose value is 10 us, but its bottleneck is 20 us: 10 us too little}}
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 0.0 : f64, divi.stage = 1 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that stages need links, too.
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64, divi.stage = 0 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Abs' op 'b' reads on @gpu0 the result of 'onnx.Relu' op 'a' on @cpu0, but no link leads there: declare 'divi.link @cpu0 -> @gpu0 {…}', or let both run on one device}}
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 0.0 : f64, divi.stage = 1 : i64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that the model must be the one that was planned.
module attributes {divi.plan = {objective = "latency", model = "0123456789abcdef", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  // expected-error @below {{the model was changed since it was planned: plan it again}}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that a model with elided constants cannot be compared.
// expected-warning @below {{constants were elided from the text, so it cannot be checked whether the model has changed since it was planned}}
module attributes {divi.plan = {objective = "latency", model = "0123456789abcdef", value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %w = onnx.Constant dense_resource<__elided__> : tensor<1000xf32>
    %1 = "onnx.Add"(%x, %w) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0, divi.start = 0.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// -----

// Tests that stages must compute the planned model.
module attributes {divi.plan = {objective = "latency", model = "0123456789abcdef", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  // expected-error @below {{the stages do not compute what was planned: outline again from the planned module}}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that every task must be in a stage.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Neg' op 'n' is not in a stage: outline again from the planned module}}
    %n = "onnx.Neg"(%r) {onnx_node_name = "n", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that outputs must be transferred to the host.
module attributes {divi.plan = {objective = "latency", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'func.func' op returns result 0 from @gpu0: transfer it to @cpu0, where outputs belong}}
    return %r : tensor<1000xf32>
  }
}

// -----

// Tests that a constant must not be transferred.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %w = onnx.Constant dense<1.0> : tensor<1000xf32>
    // expected-error @below {{transfers a constant, which is available on all devices: remove the transfer}}
    %t = divi.transfer %w from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that transfers must have a start and a link.
module attributes {divi.plan = {objective = "latency", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    // expected-error @below {{moves a tensor from @cpu0 to @gpu0, but no link leads there: declare 'divi.link @cpu0 -> @gpu0 {…}'}}
    // expected-error @below {{moves a tensor, but has no divi.start: outline again}}
    %t = divi.transfer %x from @cpu0 to @gpu0 : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{moves a tensor from @gpu0 to @cpu0, but no link leads there: declare 'divi.link @gpu0 -> @cpu0 {…}'}}
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that a transfer must wait for the stage.
module attributes {divi.plan = {objective = "latency", value = 19.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{moves result 0 of 'a' from @gpu0 at 14 us, but it is ready at 15 us: start it 1 us later}}
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 14.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that a tensor must be transferred once to a device, and not to its source.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    // expected-error @below {{moves argument 0 to @gpu0, where it is already: use it from there}}
    %t1 = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    // expected-error @below {{moves argument 0 to @cpu0, where it is already: use it from there}}
    %t2 = divi.transfer %t from @gpu0 to @cpu0 {divi.start = 5.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that a launch must wait for its operands.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    // expected-error @below {{@main.gpu0.0 starts at 3 us on @gpu0, but its operand 0, argument 0, is ready at 5 us: start it 2 us later}}
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 3.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that a launch must have a start.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    // expected-error @below {{the launch of @main.gpu0.0 has no divi.start: outline again}}
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that a stage must have a device, and must be launched.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  // expected-error @below {{@main.gpu0.0 has no divi.device, but is launched: outline again}}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  // expected-error @below {{@main.gpu0.1 is a stage, but is never launched: outline again}}
  func.func private @main.gpu0.1(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Neg"(%a) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that a stage must be launched once, and that devices run one stage at a time.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{@main.gpu0.0 is launched a second time: a stage runs once}}
    // expected-error @below {{@main.gpu0.0 starts at 10 us on @gpu0, where @main.gpu0.0 runs until 15 us: start it 5 us later}}
    %r2 = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that a stage may have only tasks, constants and a return.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    // expected-error @below {{'func.call' op is in a stage, which may contain only tasks, constants and a return: outline again}}
    %c = func.call @other(%a) : (tensor<1000xf32>) -> tensor<1000xf32>
    %0 = "onnx.Relu"(%c) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @other(tensor<1000xf32>) -> tensor<1000xf32>
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that a stage must have one block.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  // expected-error @below {{@main.gpu0.0 does not have one block, but is launched: outline again}}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    cf.br ^bb1
  ^bb1:
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that the entry function must have one block, too.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  // expected-error @below {{has several blocks, so its stages have no order: outline again}}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    cf.br ^bb1
  ^bb1:
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that tasks must be on their stage's device.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    // expected-error @below {{'onnx.Relu' op 'a' has divi.device @cpu0, but is in a stage on @gpu0: outline again}}
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.device = @cpu0} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that groups must share a device in stages, too.
module attributes {divi.plan = {objective = "latency", value = 30.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Neg"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.colocate = "g"} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    // expected-error @below {{'onnx.Relu' op 'b' runs on @gpu0, but shares a device with 'onnx.Neg' op 'a', which runs on @cpu0 (divi.colocate "g")}}
    %0 = "onnx.Relu"(%a) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.colocate = "g"} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %c = divi.launch @main.cpu0.0(%x) on @cpu0 {divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %t = divi.transfer %c from @cpu0 to @gpu0 {divi.start = 10.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 15.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 25.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that the value of stages is recomputed.
// expected-error @below {{has a divi.plan whose value is 21 us, but its latency is 20 us: 1 us too much}}
module attributes {divi.plan = {objective = "latency", value = 21.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %t = divi.transfer %x from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that launches and stages must have the same number in the pipeline.
// expected-error @below {{has 1 stages, but none is stage 0: they are numbered from 0 on}}
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @cpu0, divi.stage = 0 : i64} {
    %0 = "onnx.Neg"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0, divi.stage = 1 : i64} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    // expected-error @below {{the launch of @main.cpu0.0 is stage 1, but the function is stage 0: outline again}}
    %c = divi.launch @main.cpu0.0(%x) on @cpu0 {divi.stage = 1 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %t = divi.transfer %c from @cpu0 to @gpu0 {divi.start = 10.0 : f64} : tensor<1000xf32>
    // expected-error @below {{the launch of @main.gpu0.0 has no divi.stage: outline again}}
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.start = 15.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 25.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that stages must have a number in the pipeline, and that values flow to later stages.
module attributes {divi.plan = {objective = "pipeline", k = 2 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @cpu0, divi.stage = 1 : i64} {
    %0 = "onnx.Neg"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  // expected-error @below {{the function @main.gpu0.0 has no divi.stage: outline again}}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    // expected-error @below {{'onnx.Relu' op 'b' is in stage 0, but reads the result of 'onnx.Neg' op 'a' in stage 1: values only go to later stages}}
    %0 = "onnx.Relu"(%a) {onnx_node_name = "b", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %c = divi.launch @main.cpu0.0(%x) on @cpu0 {divi.stage = 1 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %t = divi.transfer %c from @cpu0 to @gpu0 {divi.start = 10.0 : f64} : tensor<1000xf32>
    %r = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.stage = 0 : i64, divi.start = 15.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %u = divi.transfer %r from @gpu0 to @cpu0 {divi.start = 25.0 : f64} : tensor<1000xf32>
    return %u : tensor<1000xf32>
  }
}

// -----

// Tests that operands of a launch must be for its inputs.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<4x250xf32>) -> tensor<4x250xf32> {
    %s = divi.slice %x[0, 1] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %t = divi.transfer %s from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x250xf32>
    %o = divi.slice %x[1, 3] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    // expected-error @below {{@main.cpu0.0 is for inputs 2, 3, but its operand 0, argument 0, is for inputs 1, 3: slice and gather these}}
    %c = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 0.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %g = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 3.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %b = divi.transfer %g from @gpu0 to @cpu0 {divi.start = 7.0 : f64} : tensor<2x250xf32>
    %u = divi.gather %b of 2, %c of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    return %u : tensor<4x250xf32>
  }
}

// -----

// Tests that operands of a launch must have its inputs in order.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<4x250xf32>) -> tensor<4x250xf32> {
    %s = divi.slice %x[0, 1] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %t = divi.transfer %s from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x250xf32>
    %o = divi.slice %x[3, 2] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    // expected-error @below {{@main.cpu0.0 is for inputs 2, 3, but its operand 0, argument 0, is for inputs 3, 2: slice and gather these}}
    %c = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 0.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %g = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 3.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %b = divi.transfer %g from @gpu0 to @cpu0 {divi.start = 7.0 : f64} : tensor<2x250xf32>
    %u = divi.gather %b of 2, %c of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    return %u : tensor<4x250xf32>
  }
}

// -----

// Tests that results must be in the order of the queue.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<4x250xf32>) -> tensor<4x250xf32> {
    %s = divi.slice %x[0, 1] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %t = divi.transfer %s from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x250xf32>
    %o = divi.slice %x[2, 3] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %c = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 0.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %g = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 3.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %b = divi.transfer %g from @gpu0 to @cpu0 {divi.start = 7.0 : f64} : tensor<2x250xf32>
    %u = divi.gather %c of 2, %b of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    // expected-error @below {{'func.func' op returns result 0 for inputs 2, 3, 0, 1: it must be for inputs 0, 1, 2, 3, in that order}}
    return %u : tensor<4x250xf32>
  }
}

// -----

// Tests that launches must be for queued inputs, and that all of them are run.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    // expected-error @below {{'onnx.Relu' op 'a' does not run for inputs 1: outline again}}
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<4x250xf32>) -> tensor<4x250xf32> {
    %s = divi.slice %x[0, 1] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %t = divi.transfer %s from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x250xf32>
    %o = divi.slice %x[2, 3] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %c = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 0.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    // expected-error @below {{the launch of @main.gpu0.0 is for input 4, but 4 are queued, counted from 0}}
    // expected-error @below {{@main.gpu0.0 is for inputs 0, 4, but its operand 0, argument 0, is for inputs 0, 1: slice and gather these}}
    %g = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.inputs = array<i64: 0, 4>, divi.start = 3.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %b = divi.transfer %g from @gpu0 to @cpu0 {divi.start = 7.0 : f64} : tensor<2x250xf32>
    %u = divi.gather %b of 2, %c of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    // expected-error @below {{'func.func' op returns result 0 for inputs 0, 4, 2, 3: it must be for inputs 0, 1, 2, 3, in that order}}
    return %u : tensor<4x250xf32>
  }
}

// -----

// Tests that inputs must be run once.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    // expected-error @below {{'onnx.Relu' op 'a' does not run for inputs 0: outline again}}
    // expected-error @below {{'onnx.Relu' op 'a' runs more than once for inputs 2: outline again}}
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<4x250xf32>) -> tensor<4x250xf32> {
    %s = divi.slice %x[1, 2] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %t = divi.transfer %s from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x250xf32>
    %o = divi.slice %x[2, 3] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %c = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 0.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %g = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.inputs = array<i64: 1, 2>, divi.start = 3.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %b = divi.transfer %g from @gpu0 to @cpu0 {divi.start = 7.0 : f64} : tensor<2x250xf32>
    %u = divi.gather %b of 2, %c of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    // expected-error @below {{'func.func' op returns result 0 for inputs 1, 2, 2, 3: it must be for inputs 0, 1, 2, 3, in that order}}
    return %u : tensor<4x250xf32>
  }
}

// -----

// Tests that slices must have the right number of inputs.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<4x250xf32>) -> tensor<4x250xf32> {
    %s = divi.slice %x[0, 1] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %t = divi.transfer %s from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x250xf32>
    %o = divi.slice %x[2, 3] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %c = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 0.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %g = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 3.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %b = divi.transfer %g from @gpu0 to @cpu0 {divi.start = 7.0 : f64} : tensor<2x250xf32>
    %u = divi.gather %b of 2, %c of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    // expected-error @below {{takes result 0 of 'a' for 1 inputs, but it is for 2: 2, 3}}
    %z = divi.slice %c[0] of 1 axis 0 : tensor<2x250xf32> -> tensor<2x250xf32>
    return %u : tensor<4x250xf32>
  }
}

// -----

// Tests that values that all inputs share must not be sliced.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<4x250xf32>, %y: tensor<2xf32>) -> tensor<4x250xf32> {
    %s = divi.slice %x[0, 1] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %t = divi.transfer %s from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x250xf32>
    %o = divi.slice %x[2, 3] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %c = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 0.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %g = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 3.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %b = divi.transfer %g from @gpu0 to @cpu0 {divi.start = 7.0 : f64} : tensor<2x250xf32>
    %u = divi.gather %b of 2, %c of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    // expected-error @below {{takes inputs of argument 1, which all inputs share: use it directly}}
    %z = divi.slice %y[0] of 2 axis 0 : tensor<2xf32> -> tensor<1xf32>
    return %u : tensor<4x250xf32>
  }
}

// -----

// Tests that gathered values must be on one device, and of one tensor.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 10.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<4x250xf32>) -> tensor<4x250xf32> {
    %s = divi.slice %x[0, 1] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %t = divi.transfer %s from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x250xf32>
    %o = divi.slice %x[2, 3] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %c = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 0.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %g = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 3.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %b = divi.transfer %g from @gpu0 to @cpu0 {divi.start = 7.0 : f64} : tensor<2x250xf32>
    // expected-error @below {{gathers values on @gpu0 and on @cpu0: transfer one of them first}}
    %u = divi.gather %g of 2, %c of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    // expected-error @below {{gathers different tensors, result 0 of 'a' and argument 0: outline again}}
    %m = divi.gather %b of 2, %o of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    // expected-error @below {{'func.func' op returns result 0 from @gpu0: transfer it to @cpu0, where outputs belong}}
    return %u : tensor<4x250xf32>
  }
}

// -----

// Tests that a stage must run once for an input.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", launches = "many"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    // expected-error @below {{'onnx.Relu' op 'a' runs more than once for inputs 2, 3: outline again}}
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<4x250xf32>) -> tensor<4x250xf32> {
    %s = divi.slice %x[0, 1] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %t = divi.transfer %s from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x250xf32>
    %o = divi.slice %x[2, 3] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %c = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 0.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %g = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 3.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %b = divi.transfer %g from @gpu0 to @cpu0 {divi.start = 7.0 : f64} : tensor<2x250xf32>
    %u = divi.gather %b of 2, %c of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    // expected-error @below {{@main.cpu0.0 is launched a second time for inputs 2, 3}}
    %c2 = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 10.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %u : tensor<4x250xf32>
  }
}

// -----

// Tests that a stage is launched once unless the plan may have many launches.
module attributes {divi.plan = {objective = "batch", inputs = 4 : i64, value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [2]}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64, batch_sizes = [2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func private @main.cpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @cpu0} {
    // expected-error @below {{'onnx.Relu' op 'a' runs more than once for inputs 2, 3: outline again}}
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func private @main.gpu0.0(%a: tensor<2x250xf32>) -> tensor<2x250xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {2 = 10.0}, @gpu0 = {2 = 4.0}>} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %0 : tensor<2x250xf32>
  }
  func.func @main(%x: tensor<4x250xf32>) -> tensor<4x250xf32> {
    %s = divi.slice %x[0, 1] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %t = divi.transfer %s from @cpu0 to @gpu0 {divi.start = 0.0 : f64} : tensor<2x250xf32>
    %o = divi.slice %x[2, 3] of 4 axis 0 : tensor<4x250xf32> -> tensor<2x250xf32>
    %c = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 0.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %g = divi.launch @main.gpu0.0(%t) on @gpu0 {divi.inputs = array<i64: 0, 1>, divi.start = 3.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    %b = divi.transfer %g from @gpu0 to @cpu0 {divi.start = 7.0 : f64} : tensor<2x250xf32>
    %u = divi.gather %b of 2, %c of 2 axis 0 : (tensor<2x250xf32>, tensor<2x250xf32>) -> tensor<4x250xf32>
    // expected-error @below {{@main.cpu0.0 is launched a second time: a stage runs once, as launches is one in divi.plan}}
    %c2 = divi.launch @main.cpu0.0(%o) on @cpu0 {divi.inputs = array<i64: 2, 3>, divi.start = 10.0 : f64} : (tensor<2x250xf32>) -> tensor<2x250xf32>
    return %u : tensor<4x250xf32>
  }
}

// -----

// Tests that at most twenty findings are emitted.
// expected-error @below {{3 more findings are left out}}
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    // expected-error @below {{'onnx.Relu' op 'n0' has no divi.device: give it one, or run divi-partition}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "n0", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n1' has no divi.device: give it one, or run divi-partition}}
    %1 = "onnx.Relu"(%0) {onnx_node_name = "n1", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 1.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n2' has no divi.device: give it one, or run divi-partition}}
    %2 = "onnx.Relu"(%1) {onnx_node_name = "n2", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 2.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n3' has no divi.device: give it one, or run divi-partition}}
    %3 = "onnx.Relu"(%2) {onnx_node_name = "n3", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 3.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n4' has no divi.device: give it one, or run divi-partition}}
    %4 = "onnx.Relu"(%3) {onnx_node_name = "n4", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 4.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n5' has no divi.device: give it one, or run divi-partition}}
    %5 = "onnx.Relu"(%4) {onnx_node_name = "n5", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n6' has no divi.device: give it one, or run divi-partition}}
    %6 = "onnx.Relu"(%5) {onnx_node_name = "n6", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 6.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n7' has no divi.device: give it one, or run divi-partition}}
    %7 = "onnx.Relu"(%6) {onnx_node_name = "n7", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 7.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n8' has no divi.device: give it one, or run divi-partition}}
    %8 = "onnx.Relu"(%7) {onnx_node_name = "n8", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 8.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n9' has no divi.device: give it one, or run divi-partition}}
    %9 = "onnx.Relu"(%8) {onnx_node_name = "n9", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 9.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n10' has no divi.device: give it one, or run divi-partition}}
    %10 = "onnx.Relu"(%9) {onnx_node_name = "n10", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n11' has no divi.device: give it one, or run divi-partition}}
    %11 = "onnx.Relu"(%10) {onnx_node_name = "n11", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 11.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n12' has no divi.device: give it one, or run divi-partition}}
    %12 = "onnx.Relu"(%11) {onnx_node_name = "n12", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 12.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n13' has no divi.device: give it one, or run divi-partition}}
    %13 = "onnx.Relu"(%12) {onnx_node_name = "n13", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 13.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n14' has no divi.device: give it one, or run divi-partition}}
    %14 = "onnx.Relu"(%13) {onnx_node_name = "n14", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 14.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n15' has no divi.device: give it one, or run divi-partition}}
    %15 = "onnx.Relu"(%14) {onnx_node_name = "n15", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 15.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n16' has no divi.device: give it one, or run divi-partition}}
    %16 = "onnx.Relu"(%15) {onnx_node_name = "n16", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 16.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n17' has no divi.device: give it one, or run divi-partition}}
    %17 = "onnx.Relu"(%16) {onnx_node_name = "n17", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 17.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n18' has no divi.device: give it one, or run divi-partition}}
    %18 = "onnx.Relu"(%17) {onnx_node_name = "n18", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 18.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Relu' op 'n19' has no divi.device: give it one, or run divi-partition}}
    %19 = "onnx.Relu"(%18) {onnx_node_name = "n19", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 19.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %20 = "onnx.Relu"(%19) {onnx_node_name = "n20", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 20.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %21 = "onnx.Relu"(%20) {onnx_node_name = "n21", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 21.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %22 = "onnx.Relu"(%21) {onnx_node_name = "n22", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 10.0}>, divi.start = 22.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %22 : tensor<1000xf32>
  }
}

// -----

// Tests that the number of launches is a known one.
// expected-error @below {{has a divi.plan with launches "few": it must be one or many}}
module attributes {divi.plan = {objective = "batch", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", inputs = 2 : i64, launches = "few"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0]>, #divi.batch<@cpu0, start = 10.0, inputs = [1]>]} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %0 : tensor<1x1000xf32>
  }
}

// -----

// Tests that of several launches on a device each has other inputs.
module attributes {divi.plan = {objective = "batch", value = 30.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", inputs = 2 : i64, launches = "many"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    // expected-error @below {{'onnx.Relu' op attribute 'divi.batches' has input 1 in two batches}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0, 2 = 15.0}>, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>, #divi.batch<@cpu0, start = 15.0, inputs = [1]>]} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %0 : tensor<1x1000xf32>
  }
}

// -----

// Tests that launches of one task do not overlap on a device.
module attributes {divi.plan = {objective = "batch", value = 18.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", inputs = 2 : i64, launches = "many"}} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  func.func @main(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> {
    // expected-error @below {{'onnx.Relu' op 'a' starts at 8 us on @cpu0, where 'onnx.Relu' op 'a' runs until 10 us: start it 2 us later}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@cpu0 = {1 = 10.0}>, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0]>, #divi.batch<@cpu0, start = 8.0, inputs = [1]>]} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %0 : tensor<1x1000xf32>
  }
}
