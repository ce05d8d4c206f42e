// RUN: divi-opt %s --split-input-file --divi-verify-plan --verify-diagnostics

// Links transfer 4000 bytes per microsecond: tensor<1000xf32> takes 1 us.

// Tests that the value counts work and transfers of one input.
// expected-error @below {{has a divi.plan whose value is 14 us, but its bottleneck is 15 us: 1 us too little}}
module attributes {divi.plan = {objective = "pipeline", value = 14.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that launches take inputs in order.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{'onnx.Exp' op 'exp' takes inputs 0, 2, but launch 0 of a stage with batches of 2 takes 0, 1: give each launch the same number of inputs, in order}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 26.0, inputs = [0, 2]>, #divi.batch<@cpu2, start = 26.0, inputs = [1, 3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that launches of a stage have the same size.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{'onnx.Exp' op 'exp' takes inputs 1, 2, but launch 1 of a stage with batches of 1 takes 1: give each launch the same number of inputs, in order}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 26.0, inputs = [1, 2]>, #divi.batch<@cpu1, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that devices take turns.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{'onnx.Exp' op 'exp' is on devices that do not take turns: each of them must have every n-th launch, and as many of a request}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu1, start = 53.0, inputs = [1]>, #divi.batch<@cpu2, start = 25.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that every input runs.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{'onnx.Exp' op 'exp' does not run for input 3: add it to one of its divi.batches}}
    // expected-error @below {{'onnx.Exp' op 'exp' takes 3 inputs, but a request has 4}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that batches and devices are within the limits of the plan.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    // expected-error @below {{stage 0 takes 4 inputs at once, but divi.plan is for 2 at most (max_batch)}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{stage 1 has 2 devices, but divi.plan is for 1 at most (max_replicas)}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that devices that take turns have the same memory.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048575 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{stage 1 is on @cpu1 and @cpu2, which have different memory: devices that take turns must be equal}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that devices that take turns have the same batch sizes.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{stage 1 is on @cpu1 and @cpu2, which have different batch sizes: devices that take turns must be equal}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that devices that take turns have the same links.
// expected-error @below {{has a divi.plan whose value is 15 us, but its bottleneck is 15.5 us: 0.5 us too little}}
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 1.0e-6 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{stage 1 is on @cpu1 and @cpu2, which have different links to other devices of the pipeline: devices that take turns must be equal}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that devices that take turns take the same time.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{'onnx.Exp' op 'exp' takes 30 us for inputs 1, but 28 us for the first ones: the devices of a stage must be equal}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 55.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0}, @cpu2 = {1 = 30.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that a device has one stage.
module attributes {divi.plan = {objective = "pipeline", value = 13.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{'onnx.Exp' op 'exp' is in stage 1 on @cpu0, which has stage 0 already: a device has one stage, unless divi.plan has shared_devices}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu0, start = 24.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {4 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that values go to later stages.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{stage 0 reads a result of stage 1: values only go to later stages, so exchange their numbers}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that tasks of a stage have the same batches.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{'onnx.Exp' op 'exp' is in stage 0, but has other batches or devices than 'onnx.Relu' op 'relu' of that stage: give it the same, or a stage of its own}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that stages are numbered from 0 on.
// expected-error @below {{has 2 stages, but none is stage 1: they are numbered from 0 on}}
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 2 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that the number of stages is limited.
// expected-error @below {{has 2 stages, but its divi.plan is for 1 at most (k)}}
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 1 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that a device holds the operands and results of a batch.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 40000 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    // expected-error @below {{@cpu0 needs 50.78 KiB, most of it, 31.25 KiB, for 'relu', has 39.06 KiB: 11.72 KiB short; move tasks to another device or reduce the batch}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that launches start when their operands have arrived.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64, max_batch = 4 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{'onnx.Exp' op 'exp' starts at 24 us on @cpu1, but the result of 'onnx.Relu' op 'relu' arrives at 25 us: start it 1 us later}}
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 24.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that the number of inputs of a request is bounded.
// expected-error @below {{has a divi.plan of a pipeline with 5000 inputs per request: there must be 1 to 4096}}
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 5000 : i64, k = 2 : i64, max_batch = 4 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that the maximum batch size is stated.
// expected-error @below {{has a divi.plan of a pipeline of batches without their maximum size: add max_batch = … : i64}}
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 4 : i64, k = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2, 4]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu2 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu0 -> @cpu2 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu2 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x1000xf32> {onnx.name = "x"}) -> (tensor<1x1000xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu", divi.stage = 0 : i64, divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1, 2, 3]>], divi.cost = #divi.cost<@cpu0 = {1 = 20.0, 2 = 21.0, 4 = 24.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %1 = "onnx.Exp"(%0) {onnx_node_name = "exp", divi.stage = 1 : i64, divi.batches = [#divi.batch<@cpu1, start = 25.0, inputs = [0]>, #divi.batch<@cpu2, start = 25.0, inputs = [1]>, #divi.batch<@cpu1, start = 53.0, inputs = [2]>, #divi.batch<@cpu2, start = 53.0, inputs = [3]>], divi.cost = #divi.cost<@cpu1 = {1 = 28.0, 2 = 28.0}, @cpu2 = {1 = 28.0, 2 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %1 : tensor<1x1000xf32>
  }
}

// -----

// Tests that the functions of a stage, on different devices, have the same tasks.
module attributes {divi.plan = {objective = "pipeline", value = 15.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "auto", seed = 7 : i64, inputs = 2 : i64, k = 1 : i64, max_batch = 1 : i64, max_replicas = 2 : i64}} {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.device @cpu1 {kind = "cpu", memory = 1048576 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @cpu1 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 4.0e9 : f64, latency = 0.0 : f64}
  func.func private @main.cpu0.0(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu0, divi.stage = 0 : i64} {
    // expected-error @below {{'onnx.Exp' op 'exp' does not run for inputs 1: outline again}}
    %0 = "onnx.Exp"(%x) {onnx_node_name = "exp", divi.cost = #divi.cost<@cpu0 = {1 = 28.0}, @cpu1 = {1 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %0 : tensor<1x1000xf32>
  }
  func.func private @main.cpu1.0(%x: tensor<1x1000xf32>) -> tensor<1x1000xf32> attributes {divi.device = @cpu1, divi.stage = 0 : i64} {
    // expected-error @below {{'onnx.Abs' op 'abs' does not run for inputs 0: outline again}}
    %0 = "onnx.Abs"(%x) {onnx_node_name = "abs", divi.cost = #divi.cost<@cpu0 = {1 = 28.0}, @cpu1 = {1 = 28.0}>} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    return %0 : tensor<1x1000xf32>
  }
  func.func @main(%x: tensor<2x1000xf32>) -> tensor<2x1000xf32> {
    %0 = divi.slice %x[0] of 2 axis 0 : tensor<2x1000xf32> -> tensor<1x1000xf32>
    %1 = divi.slice %x[1] of 2 axis 0 : tensor<2x1000xf32> -> tensor<1x1000xf32>
    %2 = divi.transfer %1 from @cpu0 to @cpu1 {divi.start = 0.0 : f64} : tensor<1x1000xf32>
    %3 = divi.launch @main.cpu0.0(%0) on @cpu0 {divi.inputs = array<i64: 0>, divi.stage = 0 : i64, divi.start = 0.0 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    // expected-error @below {{@main.cpu1.0 has stage 0 like @main.cpu0.0, but other tasks: outline again from the planned module}}
    %4 = divi.launch @main.cpu1.0(%2) on @cpu1 {divi.inputs = array<i64: 1>, divi.stage = 0 : i64, divi.start = 1.0 : f64} : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    %5 = divi.transfer %4 from @cpu1 to @cpu0 {divi.start = 29.0 : f64} : tensor<1x1000xf32>
    // expected-error @below {{gathers different tensors, result 0 of 'exp' and result 0 of 'abs': outline again}}
    %6 = divi.gather %3 of 1, %5 of 1 axis 0 : (tensor<1x1000xf32>, tensor<1x1000xf32>) -> tensor<2x1000xf32>
    return %6 : tensor<2x1000xf32>
  }
}
