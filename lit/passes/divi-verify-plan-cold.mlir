// RUN: divi-opt %s --split-input-file --divi-verify-plan --verify-diagnostics

// Links transfer 1000 bytes per microsecond after a latency of 1 us: the input takes 5 us, the parameters 21 us.

// Tests that parameters are copied after the input on one bus: 5 + 21 + 10 + 5.
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
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 5.0, end = 26.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 26.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 36.0, end = 41.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that another device forwards them: 21, then 21 on another bus.
module attributes {divi.plan = {objective = "latency", value = 62.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
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
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu1, start = 5.0, end = 26.0>, #divi.move<0, @gpu1 -> @gpu0, start = 26.0, end = 47.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 47.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 57.0, end = 62.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that another device has them from an earlier run.
module attributes {divi.plan = {objective = "latency", value = 36.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
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
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @gpu1 -> @gpu0, start = 0.0, end = 21.0>], divi.resident = @gpu1, divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 21.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 31.0, end = 36.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that resident parameters are not copied.
module attributes {divi.plan = {objective = "latency", value = 20.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
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
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.resident = @gpu0, divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 15.0, end = 20.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that without a copy they are read from the host's memory, which takes 21 and uses the bus.
module attributes {divi.plan = {objective = "latency", value = 31.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "exclusive"}, divi.cold, divi.contention = "exclusive"} {
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
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 26.0, end = 31.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}

// -----

// Tests that a copy shares its bus with the input.
module attributes {divi.plan = {objective = "latency", value = 40.0 : f64, bound = 0.0 : f64, gap = 1.0 : f64, bound_by = "path", algorithm = "heft", cold, contention = "shared"}, divi.cold, divi.contention = "shared"} {
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
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 25.0>], divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 25.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 35.0, end = 40.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}
