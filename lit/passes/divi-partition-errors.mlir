// RUN: divi-opt %s --split-input-file --verify-diagnostics --divi-partition

// Tests that a module must have devices.
// expected-error @below {{has no divi.device: run divi-annotate-cost first, which declares those of a system}}
module {
  func.func @main(%x: tensor<1x25xf32>) -> tensor<1x25xf32> {
    %0 = "onnx.Relu"(%x) : (tensor<1x25xf32>) -> tensor<1x25xf32>
    return %0 : tensor<1x25xf32>
  }
}

// -----

// Tests that tasks must have costs.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  func.func @main(%x: tensor<1x25xf32>) -> tensor<1x25xf32> {
    // expected-error @below {{'onnx.Relu' op has no divi.cost: run divi-annotate-cost first}}
    %0 = "onnx.Relu"(%x) : (tensor<1x25xf32>) -> tensor<1x25xf32>
    return %0 : tensor<1x25xf32>
  }
}

// -----

// Tests that an idle device is reported.
// expected-warning @below {{@cpu1 is left idle: no task runs there in this plan}}
module {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  divi.device @cpu1 {kind = "cpu", memory = 1000000 : i64}
  divi.link @cpu0 -> @cpu1 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
  divi.link @cpu1 -> @cpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x25xf32>) -> tensor<1x25xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}, @cpu1 = {1 = 1.0}>} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    return %0 : tensor<1x25xf32>
  }
}

// -----

// Tests that operators that only the host supports are reported.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1000000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e12 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e12 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x25xf32>) -> tensor<1x25xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 1000.0}, @gpu0 = {1 = 1.0}>} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    // expected-warning @below {{2 tasks run on @cpu0 because no other device supports them: FancyOp, Abs}}
    %1 = "onnx.FancyOp"(%0) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    %2 = "onnx.Abs"(%1) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    return %2 : tensor<1x25xf32>
  }
}

// -----

// Tests that an outlined plan cannot be planned again.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  func.func private @main.cpu0.0(tensor<1x25xf32>) -> tensor<1x25xf32>
  func.func @main(%x: tensor<1x25xf32>) -> tensor<1x25xf32> {
    // expected-error @below {{'divi.launch' op belongs to a plan: start from the module that was planned}}
    %0 = divi.launch @main.cpu0.0(%x) on @cpu0 : (tensor<1x25xf32>) -> tensor<1x25xf32>
    return %0 : tensor<1x25xf32>
  }
}
