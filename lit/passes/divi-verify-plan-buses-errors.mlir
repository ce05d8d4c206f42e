// RUN: divi-opt %s --split-input-file --divi-verify-plan --verify-diagnostics

// Links transfer 1000 bytes per microsecond after a latency of 1 us: tensor<1000xf32> takes 5 us. Those to the GPUs are
// one bus, those back another.

// Tests that two transfers must not use a bus at once.
module attributes {divi.plan = {objective = "latency", value = 27.0 : f64, bound = 20.0 : f64, gap = 0.25925925925925924 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  // expected-error @below {{the move of argument 0 from @cpu0 to @gpu1 starts at 4 us on bus "down", where the move of argument 0 from @cpu0 to @gpu0 is until 5 us: start it 1 us later}}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>, #divi.move<0, @cpu0 -> @gpu1, start = 4.0, end = 9.0>]} {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 15.0, end = 20.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>, divi.device = @gpu1, divi.start = 9.0 : f64, divi.moves = [#divi.move<0, @gpu1 -> @cpu0, start = 20.0, end = 25.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that a tensor must not be transferred before it is computed.
module attributes {divi.plan = {objective = "latency", value = 27.0 : f64, bound = 20.0 : f64, gap = 0.25925925925925924 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>, #divi.move<0, @cpu0 -> @gpu1, start = 5.0, end = 10.0>]} {
    // expected-error @below {{the result of 'onnx.Relu' op 'a' goes from @gpu0 to @cpu0 at 14 us, but is ready at 15 us: move it 1 us later}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 14.0, end = 19.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>, divi.device = @gpu1, divi.start = 10.0 : f64, divi.moves = [#divi.move<0, @gpu1 -> @cpu0, start = 20.0, end = 25.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that a transfer must be long enough for its bytes.
module attributes {divi.plan = {objective = "latency", value = 27.0 : f64, bound = 20.0 : f64, gap = 0.25925925925925924 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>, #divi.move<0, @cpu0 -> @gpu1, start = 5.0, end = 10.0>]} {
    // expected-error @below {{the result of 'onnx.Relu' op 'a' goes from @gpu0 to @cpu0 from 15 us until 19 us, but takes 5 us: let it take 1 us longer}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 15.0, end = 19.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>, divi.device = @gpu1, divi.start = 10.0 : f64, divi.moves = [#divi.move<0, @gpu1 -> @cpu0, start = 20.0, end = 25.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that every tensor that is read on another device must be transferred.
module attributes {divi.plan = {objective = "latency", value = 27.0 : f64, bound = 20.0 : f64, gap = 0.25925925925925924 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>, #divi.move<0, @cpu0 -> @gpu1, start = 5.0, end = 10.0>]} {
    // expected-error @below {{the result of 'onnx.Relu' op 'a' is read on @cpu0, but no divi.moves lists its transfer from @gpu0: add one, or run divi-partition}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>, divi.device = @gpu1, divi.start = 10.0 : f64, divi.moves = [#divi.move<0, @gpu1 -> @cpu0, start = 20.0, end = 25.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that no other tensor may be transferred.
module attributes {divi.plan = {objective = "latency", value = 27.0 : f64, bound = 20.0 : f64, gap = 0.25925925925925924 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>, #divi.move<0, @cpu0 -> @gpu1, start = 5.0, end = 10.0>]} {
    // expected-error @below {{the result of 'onnx.Relu' op 'a' goes from @gpu0 to @gpu1, but is not read there: remove the move}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 15.0, end = 20.0>, #divi.move<0, @gpu0 -> @gpu1, start = 15.0, end = 20.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>, divi.device = @gpu1, divi.start = 10.0 : f64, divi.moves = [#divi.move<0, @gpu1 -> @cpu0, start = 20.0, end = 25.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that a task must wait for the end of a transfer.
// expected-error @below {{has a divi.plan whose value is 27 us, but its latency is 26 us: 1 us too much}}
module attributes {divi.plan = {objective = "latency", value = 27.0 : f64, bound = 20.0 : f64, gap = 0.25925925925925924 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>, #divi.move<0, @cpu0 -> @gpu1, start = 5.0, end = 10.0>]} {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 15.0, end = 20.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>, divi.device = @gpu1, divi.start = 10.0 : f64, divi.moves = [#divi.move<0, @gpu1 -> @cpu0, start = 20.0, end = 25.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{'onnx.Add' op 'c' starts at 24 us on @cpu0, but the result of 'onnx.Abs' op 'b' arrives at 25 us: start it 1 us later}}
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.start = 24.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that transfers on a shared bus must be long enough for all bytes.
module attributes {divi.plan = {objective = "latency", value = 26.0 : f64, bound = 20.0 : f64, gap = 0.23076923076923078 : f64, bound_by = "path", algorithm = "heft", contention = "shared"}, divi.contention = "shared"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  // expected-error @below {{the move of argument 0 from @cpu0 to @gpu1 ends at 8 us on bus "down", but with the other transfers there it cannot end before 9 us: end it 1 us later}}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>, #divi.move<0, @cpu0 -> @gpu1, start = 0.0, end = 8.0>]} {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 15.0, end = 20.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>, divi.device = @gpu1, divi.start = 9.0 : f64, divi.moves = [#divi.move<0, @gpu1 -> @cpu0, start = 19.0, end = 24.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.start = 24.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that a plan must be for the contention of its module.
// expected-error @below {{has divi.contention "shared", but its divi.plan is for contention "exclusive": the times of transfers depend on it, so run divi-partition again}}
module attributes {divi.plan = {objective = "latency", value = 27.0 : f64, bound = 20.0 : f64, gap = 0.25925925925925924 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.contention = "shared"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>, #divi.move<0, @cpu0 -> @gpu1, start = 5.0, end = 10.0>]} {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 15.0, end = 20.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>, divi.device = @gpu1, divi.start = 10.0 : f64, divi.moves = [#divi.move<0, @gpu1 -> @cpu0, start = 20.0, end = 25.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that a plan without contention is not valid under contention.
// expected-error @below {{has divi.contention "exclusive", but its divi.plan is for contention "off": the times of transfers depend on it, so run divi-partition again}}
module attributes {divi.plan = {objective = "latency", value = 27.0 : f64, bound = 20.0 : f64, gap = 0.25925925925925924 : f64, bound_by = "path", algorithm = "heft"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>, #divi.move<0, @cpu0 -> @gpu1, start = 5.0, end = 10.0>]} {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 15.0, end = 20.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>, divi.device = @gpu1, divi.start = 10.0 : f64, divi.moves = [#divi.move<0, @gpu1 -> @cpu0, start = 20.0, end = 25.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests that two transfers between stages must not use a bus at once.
module attributes {divi.plan = {objective = "latency", value = 27.0 : f64, bound = 20.0 : f64, gap = 0.25925925925925924 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.gpu1.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu1} {
    %0 = "onnx.Abs"(%a) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.cpu0.0(%a: tensor<1000xf32>, %b: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Add"(%a, %b) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = divi.transfer %x from @cpu0 to @gpu0 {divi.end = 5.0 : f64, divi.start = 0.0 : f64} : tensor<1000xf32>
    %1 = divi.transfer %x from @cpu0 to @gpu1 {divi.end = 10.0 : f64, divi.start = 5.0 : f64} : tensor<1000xf32>
    %2 = divi.launch @main.gpu0.0(%0) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %3 = divi.launch @main.gpu1.0(%1) on @gpu1 {divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %4 = divi.transfer %2 from @gpu0 to @cpu0 {divi.end = 21.0 : f64, divi.start = 15.0 : f64} : tensor<1000xf32>
    // expected-error @below {{the transfer of result 0 of 'b' from @gpu1 to @cpu0 starts at 20 us on bus "up", where the transfer of result 0 of 'a' from @gpu0 to @cpu0 is until 21 us: start it 1 us later}}
    %5 = divi.transfer %3 from @gpu1 to @cpu0 {divi.end = 25.0 : f64, divi.start = 20.0 : f64} : tensor<1000xf32>
    %6 = divi.launch @main.cpu0.0(%4, %5) on @cpu0 {divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %6 : tensor<1000xf32>
  }
}

// -----

// Tests that they must be long enough for all bytes on a shared bus.
module attributes {divi.plan = {objective = "latency", value = 26.0 : f64, bound = 20.0 : f64, gap = 0.23076923076923078 : f64, bound_by = "path", algorithm = "heft", contention = "shared"}, divi.contention = "shared"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.gpu1.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu1} {
    %0 = "onnx.Abs"(%a) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.cpu0.0(%a: tensor<1000xf32>, %b: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Add"(%a, %b) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = divi.transfer %x from @cpu0 to @gpu0 {divi.end = 5.0 : f64, divi.start = 0.0 : f64} : tensor<1000xf32>
    // expected-error @below {{the transfer of argument 0 from @cpu0 to @gpu1 ends at 8.5 us on bus "down", but with the other transfers there it cannot end before 9 us: end it 0.5 us later}}
    %1 = divi.transfer %x from @cpu0 to @gpu1 {divi.end = 8.5 : f64, divi.start = 0.0 : f64} : tensor<1000xf32>
    %2 = divi.launch @main.gpu0.0(%0) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %3 = divi.launch @main.gpu1.0(%1) on @gpu1 {divi.start = 9.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %4 = divi.transfer %2 from @gpu0 to @cpu0 {divi.end = 20.0 : f64, divi.start = 15.0 : f64} : tensor<1000xf32>
    %5 = divi.transfer %3 from @gpu1 to @cpu0 {divi.end = 24.0 : f64, divi.start = 19.0 : f64} : tensor<1000xf32>
    %6 = divi.launch @main.cpu0.0(%4, %5) on @cpu0 {divi.start = 24.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %6 : tensor<1000xf32>
  }
}

// -----

// Tests that a transfer must have an end.
module attributes {divi.plan = {objective = "latency", value = 27.0 : f64, bound = 20.0 : f64, gap = 0.25925925925925924 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.gpu1.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu1} {
    %0 = "onnx.Abs"(%a) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.cpu0.0(%a: tensor<1000xf32>, %b: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Add"(%a, %b) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = divi.transfer %x from @cpu0 to @gpu0 {divi.end = 5.0 : f64, divi.start = 0.0 : f64} : tensor<1000xf32>
    %1 = divi.transfer %x from @cpu0 to @gpu1 {divi.end = 10.0 : f64, divi.start = 5.0 : f64} : tensor<1000xf32>
    %2 = divi.launch @main.gpu0.0(%0) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %3 = divi.launch @main.gpu1.0(%1) on @gpu1 {divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    // expected-error @below {{moves a tensor, but has no divi.end, though others may be on its bus: outline again}}
    %4 = divi.transfer %2 from @gpu0 to @cpu0 {divi.start = 15.0 : f64} : tensor<1000xf32>
    %5 = divi.transfer %3 from @gpu1 to @cpu0 {divi.end = 25.0 : f64, divi.start = 20.0 : f64} : tensor<1000xf32>
    %6 = divi.launch @main.cpu0.0(%4, %5) on @cpu0 {divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %6 : tensor<1000xf32>
  }
}

// -----

// Tests that a transfer between stages must be long enough for its bytes.
module attributes {divi.plan = {objective = "latency", value = 27.0 : f64, bound = 20.0 : f64, gap = 0.25925925925925924 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func private @main.gpu0.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%a) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.gpu1.0(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @gpu1} {
    %0 = "onnx.Abs"(%a) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func private @main.cpu0.0(%a: tensor<1000xf32>, %b: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.device = @cpu0} {
    %0 = "onnx.Add"(%a, %b) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    // expected-error @below {{the transfer of argument 0 from @cpu0 to @gpu0 goes from 0 us until 4 us, but takes 5 us: let it take 1 us longer}}
    %0 = divi.transfer %x from @cpu0 to @gpu0 {divi.end = 4.0 : f64, divi.start = 0.0 : f64} : tensor<1000xf32>
    %1 = divi.transfer %x from @cpu0 to @gpu1 {divi.end = 10.0 : f64, divi.start = 5.0 : f64} : tensor<1000xf32>
    %2 = divi.launch @main.gpu0.0(%0) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %3 = divi.launch @main.gpu1.0(%1) on @gpu1 {divi.start = 10.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %4 = divi.transfer %2 from @gpu0 to @cpu0 {divi.end = 20.0 : f64, divi.start = 15.0 : f64} : tensor<1000xf32>
    %5 = divi.transfer %3 from @gpu1 to @cpu0 {divi.end = 25.0 : f64, divi.start = 20.0 : f64} : tensor<1000xf32>
    %6 = divi.launch @main.cpu0.0(%4, %5) on @cpu0 {divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %6 : tensor<1000xf32>
  }
}

// -----

// Tests that the busiest bus counts in a pipeline.
// expected-error @below {{has a divi.plan whose value is 30 us, but its bottleneck is 20 us: 10 us too much}}
module attributes {divi.plan = {objective = "pipeline", value = 30.0 : f64, bound = 20.0 : f64, gap = 0.3333333333333333 : f64, bound_by = "path", algorithm = "heft", k = 3 : i64, pipeline_cost = "overlap", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<2250xf32>) -> tensor<2250xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.stage = 0 : i64, divi.start = 0.0 : f64} : (tensor<2250xf32>) -> tensor<2250xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>, divi.device = @gpu1, divi.stage = 1 : i64, divi.start = 0.0 : f64} : (tensor<2250xf32>) -> tensor<2250xf32>
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.stage = 2 : i64, divi.start = 0.0 : f64} : (tensor<2250xf32>, tensor<2250xf32>) -> tensor<2250xf32>
    return %2 : tensor<2250xf32>
  }
}
