// RUN: divi-opt %s --split-input-file --divi-verify-plan --verify-diagnostics
// RUN: divi-opt %s --split-input-file > %t.before
// RUN: divi-opt %s --split-input-file --divi-verify-plan > %t.after
// RUN: cmp %t.before %t.after

// Links transfer 1000 bytes per microsecond after a latency of 1 us: tensor<1000xf32> takes 5 us. Those to the GPUs are
// one bus, those back another.

// Tests that the two transfers of the input use the bus one after the other, and so do those of the results: 5 + 5 + 10 + 5 + 2.
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
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests the same in stages.
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
    %4 = divi.transfer %2 from @gpu0 to @cpu0 {divi.end = 20.0 : f64, divi.start = 15.0 : f64} : tensor<1000xf32>
    %5 = divi.transfer %3 from @gpu1 to @cpu0 {divi.end = 25.0 : f64, divi.start = 20.0 : f64} : tensor<1000xf32>
    %6 = divi.launch @main.cpu0.0(%4, %5) on @cpu0 {divi.start = 25.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %6 : tensor<1000xf32>
  }
}

// -----

// Tests that two concurrent transfers take the sum of their times, without the second latency: 9 + 10 + 5 + 2.
module attributes {divi.plan = {objective = "latency", value = 26.0 : f64, bound = 20.0 : f64, gap = 0.23076923076923078 : f64, bound_by = "path", algorithm = "heft", contention = "shared"}, divi.contention = "shared"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 5.0>, #divi.move<0, @cpu0 -> @gpu1, start = 0.0, end = 9.0>]} {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>, divi.device = @gpu0, divi.start = 5.0 : f64, divi.moves = [#divi.move<0, @gpu0 -> @cpu0, start = 15.0, end = 20.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 10.0}>, divi.device = @gpu1, divi.start = 9.0 : f64, divi.moves = [#divi.move<0, @gpu1 -> @cpu0, start = 19.0, end = 24.0>]} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.start = 24.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}

// -----

// Tests the same in stages.
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
    %1 = divi.transfer %x from @cpu0 to @gpu1 {divi.end = 9.0 : f64, divi.start = 0.0 : f64} : tensor<1000xf32>
    %2 = divi.launch @main.gpu0.0(%0) on @gpu0 {divi.start = 5.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %3 = divi.launch @main.gpu1.0(%1) on @gpu1 {divi.start = 9.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %4 = divi.transfer %2 from @gpu0 to @cpu0 {divi.end = 20.0 : f64, divi.start = 15.0 : f64} : tensor<1000xf32>
    %5 = divi.transfer %3 from @gpu1 to @cpu0 {divi.end = 24.0 : f64, divi.start = 19.0 : f64} : tensor<1000xf32>
    %6 = divi.launch @main.cpu0.0(%4, %5) on @cpu0 {divi.start = 24.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %6 : tensor<1000xf32>
  }
}

// -----

// Tests that a bus of a pipeline takes the sum of its transfers, which is more than a device takes here: 5 + 5 on each
// bus, 5 + 20 + 5 in the first stage.
module attributes {divi.plan = {objective = "pipeline", value = 17.0 : f64, bound = 17.0 : f64, gap = 0.0 : f64, bound_by = "path", algorithm = "heft", k = 3 : i64, pipeline_cost = "serial", contention = "exclusive"}, divi.contention = "exclusive"} {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.device @gpu1 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @cpu0 -> @gpu1 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  divi.link @gpu1 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.cost = #divi.cost<@gpu0 = {1 = 4.0}>, divi.device = @gpu0, divi.stage = 0 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%x) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu1 = {1 = 4.0}>, divi.device = @gpu1, divi.stage = 1 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 2.0}>, divi.device = @cpu0, divi.stage = 2 : i64, divi.start = 0.0 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
}
