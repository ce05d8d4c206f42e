// RUN: divi-opt %s -split-input-file --divi-emit-problem --verify-diagnostics -o /dev/null
// RUN: not divi-opt %s --divi-emit-problem=inputs=0 -split-input-file 2>&1 | FileCheck %s --check-prefix=INPUTS
// INPUTS: error: inputs is 0: it must be a number from 1 to 4294967295

// Tests that a module must have devices.
// expected-error @below {{has no divi.device: run divi-annotate-cost first, which declares those of a system}}
module {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}

// -----

// Tests that tasks must have costs.
module {
  divi.device @cpu0 {kind = "cpu", memory = 4096 : i64}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @below {{'onnx.Relu' op 'r' has no divi.cost: run divi-annotate-cost first}}
    %0 = "onnx.Relu"(%x) {onnx_node_name = "r"} : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}

// -----

// Tests that a pinned task must be supported by its device.
module {
  divi.device @cpu0 {kind = "cpu", memory = 4096 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 4096 : i64}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @below {{'onnx.Relu' op is pinned to @gpu0, which does not support it: remove the pin or give @gpu0 a cost}}
    %0 = "onnx.Relu"(%x) {divi.pin = @gpu0, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}

// -----

// Tests that insufficient memory is reported with the missing amount.
// expected-error @below {{the problem has no plan}}
module {
  divi.device @cpu0 {kind = "cpu", memory = 64 : i64}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "r", divi.weight_bytes = 128 : i64, divi.cost = #divi.cost<@cpu0 = {1 = 1.0}>} : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
