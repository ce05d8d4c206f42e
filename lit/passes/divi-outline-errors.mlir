// RUN: divi-opt %s --split-input-file --divi-outline --verify-diagnostics -o /dev/null
// RUN: not divi-opt %s --split-input-file --divi-outline=min-stage-ops=-1 -o /dev/null 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: error: min-stage-ops is -1: it must not be negative

// Tests that a module must have a plan.
// expected-error @below {{has no divi.plan with a number of inputs: run divi-partition first}}
module {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  func.func @main(%x: tensor<1x10xf32>) -> tensor<1x10xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<1x10xf32>) -> tensor<1x10xf32>
    return %0 : tensor<1x10xf32>
  }
}

// -----

// Tests that every task must have a device.
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  func.func @main(%x: tensor<1x10xf32>) -> tensor<1x10xf32> {
    // expected-error @below {{'onnx.Relu' op 'r' has no divi.device: run divi-partition first}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "r", divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<1x10xf32>) -> tensor<1x10xf32>
    return %0 : tensor<1x10xf32>
  }
}

// -----

// Tests that a device must support its tasks.
// expected-error @below {{the plan does not hold: node 1 (r): cannot run on device 1 (gpu0) in a batch of 1}}
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  func.func @main(%x: tensor<1x10xf32>) -> tensor<1x10xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "r", divi.device = @gpu0, divi.start = 0.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<1x10xf32>) -> tensor<1x10xf32>
    return %0 : tensor<1x10xf32>
  }
}

// -----

// Tests that an invalid plan is rejected with the reason: a violated pin.
// expected-error @below {{the plan does not hold: node 1 (r): cannot run on device 1 (gpu0) in a batch of 1}}
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x10xf32>) -> tensor<1x10xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "r", divi.pin = @cpu0, divi.device = @gpu0, divi.start = 0.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}, @gpu0 = {1 = 1.0}>} : (tensor<1x10xf32>) -> tensor<1x10xf32>
    return %0 : tensor<1x10xf32>
  }
}

// -----

// Tests that only tensors are transferred.
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1048576 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x10xf32>) -> tensor<1x10xf32> {
    %zero = onnx.Constant dense<0> : tensor<i64>
    // expected-error @below {{'onnx.SequenceConstruct' op 'seq' is read on @cpu0 but is on @gpu0, and only tensors can be transferred: give both tasks the same divi.colocate}}
    %0 = "onnx.SequenceConstruct"(%x) {onnx_node_name = "seq", divi.device = @gpu0, divi.start = 0.0 : f64, divi.cost = #divi.cost<@gpu0 = {1 = 1.0}>} : (tensor<1x10xf32>) -> !onnx.Seq<tensor<1x10xf32>>
    %1 = "onnx.SequenceAt"(%0, %zero) {onnx_node_name = "at", divi.device = @cpu0, divi.start = 2.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (!onnx.Seq<tensor<1x10xf32>>, tensor<i64>) -> tensor<1x10xf32>
    return %1 : tensor<1x10xf32>
  }
}

// -----

// Tests that names of stages must not be in use.
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  // expected-error @below {{has the name @main.cpu0.0, which a stage of @main needs: rename it}}
  func.func private @main.cpu0.0()
  func.func @main(%x: tensor<1x10xf32>) -> tensor<1x10xf32> {
    %0 = "onnx.Relu"(%x) {divi.device = @cpu0, divi.start = 0.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<1x10xf32>) -> tensor<1x10xf32>
    return %0 : tensor<1x10xf32>
  }
}

// -----

// Tests that memory is verified, independent of starts.
// expected-error @below {{the plan does not hold: device 1 (gpu0): needs 80 bytes, has 64 bytes: 16 bytes short}}
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 64 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x10xf32>) -> tensor<1x10xf32> {
    %0 = "onnx.Relu"(%x) {divi.device = @gpu0, divi.start = 0.0 : f64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}, @gpu0 = {1 = 1.0}>} : (tensor<1x10xf32>) -> tensor<1x10xf32>
    return %0 : tensor<1x10xf32>
  }
}

// -----

// Tests that an outlined module cannot be outlined again.
module attributes {divi.plan = {objective = "latency", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  func.func private @main.cpu0.0(%x: tensor<1x10xf32>) -> tensor<1x10xf32> attributes {divi.device = @cpu0} {
    return %x : tensor<1x10xf32>
  }
  func.func @main(%x: tensor<1x10xf32>) -> tensor<1x10xf32> {
    // expected-error @below {{'divi.launch' op belongs to a plan: start from the module that was planned}}
    %0 = divi.launch @main.cpu0.0(%x) on @cpu0 : (tensor<1x10xf32>) -> tensor<1x10xf32>
    return %0 : tensor<1x10xf32>
  }
}

// -----

// Tests that queued inputs need a batch of known size.
module attributes {divi.plan = {objective = "batch", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64, inputs = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [2]}
  // expected-error @below {{@main has a batch of unknown size, so 2 queued inputs cannot be separated: run divi-infer-shapes with batch=1 first}}
  func.func @main(%x: tensor<?x10xf32>) -> tensor<?x10xf32> {
    %0 = "onnx.Relu"(%x) {divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>], divi.cost = #divi.cost<@cpu0 = {2 = 1.0}>} : (tensor<?x10xf32>) -> tensor<?x10xf32>
    return %0 : tensor<?x10xf32>
  }
}

// -----

// Tests that a scalar that mixes inputs cannot be passed between stages.
module attributes {divi.plan = {objective = "batch", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64, inputs = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [2]}
  func.func @main(%x: tensor<1x10xf32>) -> tensor<f32> {
    %none = "onnx.NoValue"() <{value}> : () -> none
    // expected-error @below {{'onnx.ReduceMean' op 'mean' mixes inputs and has a result without an axis for them, so it cannot leave its stage for several inputs: keep its readers with it by divi.colocate, or plan for one input if it is an output of the model}}
    %0 = "onnx.ReduceMean"(%x, %none) <{keepdims = 0 : si64, noop_with_empty_axes = 0 : si64}> {onnx_node_name = "mean", divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>], divi.cost = #divi.cost<@cpu0 = {2 = 1.0}>} : (tensor<1x10xf32>, none) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// Tests that each input runs once.
// expected-error @below {{the plan does not hold: node 1 (r): runs 0 times for input 1; expected once}}
module attributes {divi.plan = {objective = "batch", value = 90.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", seed = 7 : i64, inputs = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  func.func @main(%x: tensor<1x10xf32>) -> tensor<1x10xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "r", divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0]>], divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 2 = 1.0}>} : (tensor<1x10xf32>) -> tensor<1x10xf32>
    return %0 : tensor<1x10xf32>
  }
}
