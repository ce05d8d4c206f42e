// RUN: divi-opt %s --split-input-file --verify-diagnostics --divi-exclude-unsupported | FileCheck %s

// A GPU without a code generator is excluded, and everything runs on the CPU.
// expected-warning @below {{@old is not used: unsupported GPU architecture 'sm_70'; expected sm_80 to sm_121}}
module {
  divi.device @cpu0 {kind = "cpu", memory = 1000 : i64}
  divi.device @old {kind = "cuda", arch = "sm_70", memory = 1000 : i64}
  // CHECK: "onnx.Relu"(%{{.*}}) {divi.exclude = [@old]}
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = "onnx.Relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// An operator without code is rejected before planning.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1000 : i64}
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @below {{no code for Bernoulli, 1 node: run it elsewhere, or rewrite the model without it}}
    %y = "onnx.Bernoulli"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// An operator with code, but not for its shapes, is rejected, too.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1000 : i64}
  divi.device @gpu0 {kind = "cuda", arch = "sm_90", memory = 1000 : i64}
  func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
    // expected-error @below {{whose shape is not known: code is generated for fixed shapes; fix them with --dim, --batch or --input-shape}}
    %y = "onnx.Relu"(%x) : (tensor<?xf32>) -> tensor<?xf32>
    return %y : tensor<?xf32>
  }
}

// -----

// A pin to a device that cannot run anything is an error.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1000 : i64}
  divi.device @old {kind = "cuda", arch = "sm_70", memory = 1000 : i64}
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @below {{is pinned to @old, which cannot run anything: unsupported GPU architecture 'sm_70'; expected sm_80 to sm_121}}
    %y = "onnx.Relu"(%x) {divi.pin = @old} : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
