// RUN: divi-opt %s --split-input-file --divi-inline-stages --verify-diagnostics -o /dev/null

// Tests that stages of queued inputs are rejected.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  func.func private @main.cpu0.0(%x: tensor<2x10xf32>) -> tensor<2x10xf32> attributes {divi.device = @cpu0} {
    return %x : tensor<2x10xf32>
  }
  func.func @main(%x: tensor<2x10xf32>) -> tensor<2x10xf32> {
    // expected-error @below {{'divi.launch' op belongs to a plan of queued inputs or of a pipeline of batches, whose stages differ in batch size and cannot be merged: start from the module that was planned}}
    %0 = divi.launch @main.cpu0.0(%x) on @cpu0 {divi.inputs = array<i64: 0, 1>} : (tensor<2x10xf32>) -> tensor<2x10xf32>
    return %0 : tensor<2x10xf32>
  }
}

// -----

// Tests that a stage must have a body.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1048576 : i64}
  func.func private @elsewhere(%x: tensor<2x10xf32>) -> tensor<2x10xf32>
  func.func @main(%x: tensor<2x10xf32>) -> tensor<2x10xf32> {
    // expected-error @below {{'divi.launch' op launches a function that has no body}}
    %0 = divi.launch @elsewhere(%x) on @cpu0 : (tensor<2x10xf32>) -> tensor<2x10xf32>
    return %0 : tensor<2x10xf32>
  }
}
