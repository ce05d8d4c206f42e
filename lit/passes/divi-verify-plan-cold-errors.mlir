// RUN: divi-opt %s --split-input-file --divi-verify-plan --verify-diagnostics

// Links transfer 1000 bytes per microsecond after a latency of 1 us: the input takes 5 us, the parameters 21 us.

// Tests that a task must wait for its parameters.
module attributes {divi.plan = {objective = "latency", value = 40.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    // expected-error @below {{'onnx.Relu' op 'a' starts at 25 us on @gpu0, but its parameters arrive at 26 us: start it 1 us later}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 5.0, end = 26.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 25.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 35.0, end = 40.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that a copy and a transfer must not use a bus at once.
module attributes {divi.plan = {objective = "latency", value = 40.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    // expected-error @below {{the copy of 'onnx.Relu' op 'a''s parameters from @cpu0 to @gpu0 starts at 4 us on bus "down", where the move of argument 0 from @cpu0 to @gpu0 is until 5 us: start it 1 us later}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 4.0, end = 25.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 25.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 35.0, end = 40.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that a task that reads the host's memory uses the bus.
module attributes {divi.plan = {objective = "latency", value = 30.5 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    // expected-error @below {{'onnx.Relu' op 'a', which reads its parameters there, starts at 4.5 us on bus "down", where the move of argument 0 from @cpu0 to @gpu0 is until 5 us: start it 0.5 us later}}
    // expected-error @below {{'onnx.Relu' op 'a' starts at 4.5 us on @gpu0, but an input of the model arrives at 5 us: start it 0.5 us later}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 4.5 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 25.5, end = 30.5>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that a copy must be long enough for its bytes.
module attributes {divi.plan = {objective = "latency", value = 40.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    // expected-error @below {{the copy of 'onnx.Relu' op 'a''s parameters from @cpu0 to @gpu0 goes from 5 us until 25 us, but takes 21 us: let it take 1 us longer}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 5.0, end = 25.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 25.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 35.0, end = 40.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that a copy and the input must be long enough on a shared bus.
module attributes {divi.plan = {objective = "latency", value = 39.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "shared"}, divi.cold, divi.contention = "shared"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    // expected-error @below {{the copy of 'onnx.Relu' op 'a''s parameters from @cpu0 to @gpu0 ends at 24 us on bus "down", but with the other transfers there it cannot end before 25 us: end it 1 us later}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 24.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 24.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 34.0, end = 39.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that resident parameters must not be copied.
module attributes {divi.plan = {objective = "latency", value = 41.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    // expected-error @below {{the copy of 'onnx.Relu' op 'a''s parameters from @cpu0 to @gpu0 is redundant, as they are already there: remove it}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 5.0, end = 26.0>], divi.resident = @gpu0, divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 26.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 36.0, end = 41.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that an unused copy is rejected.
module attributes {divi.plan = {objective = "latency", value = 41.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    // expected-error @below {{the copy of 'onnx.Relu' op 'a''s parameters from @cpu0 to @gpu1 is not used: remove it}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 5.0, end = 26.0>, #divi.move<0, @cpu0 -> @gpu1, start = 26.0, end = 47.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 26.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 36.0, end = 41.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that a device can forward only parameters that it has received.
module attributes {divi.plan = {objective = "latency", value = 41.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    // expected-error @below {{the copy of 'onnx.Relu' op 'a''s parameters from @gpu1 to @gpu0 starts on a device that does not have them: copy them to @gpu1 first}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @gpu1 -> @gpu0, start = 5.0, end = 26.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 26.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 36.0, end = 41.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that a device must have received parameters before it forwards them.
module attributes {divi.plan = {objective = "latency", value = 61.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    // expected-error @below {{the copy of 'onnx.Relu' op 'a''s parameters from @gpu1 to @gpu0 starts at 25 us, but they arrive at 26 us: start it 1 us later}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu1, start = 5.0, end = 26.0>, #divi.move<0, @gpu1 -> @gpu0, start = 25.0, end = 46.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 46.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 56.0, end = 61.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that a copy must have a link.
module attributes {divi.plan = {objective = "latency", value = 41.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    // expected-error @below {{the copy of 'onnx.Relu' op 'a''s parameters from @cpu0 to @gpu2 has no link: copy them on another path}}
    // expected-error @below {{the copy of 'onnx.Relu' op 'a''s parameters from @gpu2 to @gpu0 has no link: copy them on another path}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu2, start = 0.0, end = 1.0>, #divi.move<0, @gpu2 -> @gpu0, start = 1.0, end = 26.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 26.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 36.0, end = 41.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that parameters that are not copied must be readable over a link.
module attributes {divi.plan = {objective = "latency", value = 41.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu2, start = 0.0, end = 5.0>]} {
    // expected-error @below {{'onnx.Relu' op 'a' runs on @gpu2, but its parameters are not copied there, and no link leads there from @cpu0: add a copy to its divi.copies}}
    // expected-error @below {{'onnx.Relu' op 'a' reads on @gpu2 an input of the model, which is on @cpu0, but no link leads there}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu2 = {1 = 10.0}>, divi.device = @gpu2, divi.start = 26.0 : f64, divi.moves = [#divi.move<0, @gpu2 -> @cpu0, start = 36.0, end = 41.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that copies are only for cold starts.
module attributes {divi.plan = {objective = "latency", value = 41.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    // expected-error @below {{'onnx.Relu' op 'a' has divi.copies, but the module has no divi.cold: remove them}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 5.0, end = 26.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 26.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 36.0, end = 41.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that a plan for a warm start is not valid for a cold one.
// expected-error @below {{has divi.cold, but its divi.plan is for resident parameters: run divi-partition again}}
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 15.0, end = 20.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that a plan for a cold start is not valid for a warm one.
// expected-error @below {{has a divi.plan for a cold start, but no divi.cold: run divi-partition again}}
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu2 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu1 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "across"}
  divi.link @gpu0 -> @gpu2 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "on"}
  divi.link @gpu2 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>]} {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 15.0, end = 20.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}
