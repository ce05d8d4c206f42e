// RUN: divi-opt %s --verify-diagnostics --divi-exclude-unsupported=output=onnx

// Opaque operators can be written as ONNX; operators of other dialects cannot.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1000 : i64}
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = "onnx.Custom"(%x) {domain_name = "com.example", function_name = "Blend"} : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @below {{is not an ONNX operator: only modules of onnx operators can be written as models}}
    %z = "tosa.abs"(%y) : (tensor<4xf32>) -> tensor<4xf32>
    return %z : tensor<4xf32>
  }
}
