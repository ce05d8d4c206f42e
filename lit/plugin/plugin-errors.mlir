// RUN: mlir-opt --load-dialect-plugin=%libdivi --split-input-file --verify-diagnostics %s

// Tests that divi's verifiers report errors in mlir-opt.
// expected-error @below {{'divi.device' op has kind "tpu": expected one of cpu, cuda}}
divi.device @tpu0 {kind = "tpu", memory = 1 : i64}

// -----

// Tests that shape inference, which is written in Rust, reports errors in mlir-opt.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op has result 0 of type tensor<3xf32>, but its operands and attributes make it tensor<2xf32>: correct the type}}
  %0 = "onnx.Relu"(%x) : (tensor<2xf32>) -> tensor<3xf32>
  return
}
