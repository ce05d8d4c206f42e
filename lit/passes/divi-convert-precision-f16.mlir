// RUN: divi-opt %s --divi-convert-precision=precision=f16 | FileCheck %s

// The mask's constant would become infinite, and its product with zero would not be a number.
// CHECK-LABEL: func.func @mask(
// CHECK:         "onnx.MatMul"({{.*}}) -> tensor<4x4xf16>
// CHECK:         "onnx.Mul"({{.*}}) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
// CHECK:         "onnx.Mul"({{.*}}) : (tensor<4x4xf16>, tensor<f16>) -> tensor<4x4xf16>
func.func @mask(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %large = "onnx.Constant"() {value = dense<-1.0e+30> : tensor<f32>} : () -> tensor<f32>
  %small = "onnx.Constant"() {value = dense<-1.0e+3> : tensor<f32>} : () -> tensor<f32>
  %0 = "onnx.MatMul"(%x, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "onnx.Mul"(%0, %large) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %2 = "onnx.Mul"(%0, %small) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  return %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}
