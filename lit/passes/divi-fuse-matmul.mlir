// RUN: divi-opt %s --split-input-file --divi-fuse | FileCheck %s

// Tests that a matrix product is fused with bias, activation and residual.
// CHECK-LABEL: func.func @matmul(
// CHECK:         divi.cluster "matmul_bias_relu"(
// CHECK:         divi.cluster "matmul_bias_add"(
// CHECK:           divi.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @matmul(%x: tensor<1x5x8xf32>) -> tensor<1x5x8xf32> {
  %w = onnx.Constant dense<0.5> : tensor<8x8xf32>
  %b = onnx.Constant dense<1.0> : tensor<8xf32>
  %c = onnx.Constant dense<1.0> : tensor<1x1x8xf32>
  %0 = "onnx.MatMul"(%x, %w) : (tensor<1x5x8xf32>, tensor<8x8xf32>) -> tensor<1x5x8xf32>
  %1 = "onnx.Add"(%b, %0) : (tensor<8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %2 = "onnx.Relu"(%1) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %3 = "onnx.MatMul"(%2, %w) : (tensor<1x5x8xf32>, tensor<8x8xf32>) -> tensor<1x5x8xf32>
  %4 = "onnx.Add"(%3, %c) : (tensor<1x5x8xf32>, tensor<1x1x8xf32>) -> tensor<1x5x8xf32>
  %5 = "onnx.Add"(%4, %x) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  return %5 : tensor<1x5x8xf32>
}

// -----

// Tests that GELU is fused in every decomposition, also after a view, and that views are fused at both ends.
// CHECK-LABEL: func.func @gelu(
// CHECK:         divi.cluster "matmul_bias_gelu"({{.*}}divi.members = ["/matmul", "/bias", "/div", "/erf", "/one", "/product", "/half", "/again"]
// CHECK:         divi.cluster "gemm_gelu"({{.*}}divi.members = ["/flat", "/gemm", "/unflat", "/pow", "/halved", "/cubed", "/sum", "/root", "/tanh", "/plus", "/out"]
// CHECK:         return
func.func @gelu(%x: tensor<1x5x8xf32>, %y: tensor<1x5x8xf32>) -> (tensor<1x5x8xf32>, tensor<1x5x8xf32>) {
  %w = onnx.Constant dense<0.5> : tensor<8x8xf32>
  %b = onnx.Constant dense<1.0> : tensor<8xf32>
  %sqrt2 = onnx.Constant dense<1.41421354> : tensor<f32>
  %one = onnx.Constant dense<1.0> : tensor<f32>
  %half = onnx.Constant dense<0.5> : tensor<f32>
  %three = onnx.Constant dense<3.0> : tensor<f32>
  %cubic = onnx.Constant dense<4.471500e-02> : tensor<f32>
  %root = onnx.Constant dense<0.797884583> : tensor<f32>
  %flat = onnx.Constant dense<[5, 8]> : tensor<2xi64>
  %deep = onnx.Constant dense<[1, 5, 8]> : tensor<3xi64>
  %0 = "onnx.MatMul"(%x, %w) {onnx_node_name = "/matmul"} : (tensor<1x5x8xf32>, tensor<8x8xf32>) -> tensor<1x5x8xf32>
  %1 = "onnx.Add"(%b, %0) {onnx_node_name = "/bias"} : (tensor<8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %2 = "onnx.Div"(%1, %sqrt2) {onnx_node_name = "/div"} : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %3 = "onnx.Erf"(%2) {onnx_node_name = "/erf"} : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %4 = "onnx.Add"(%3, %one) {onnx_node_name = "/one"} : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %5 = "onnx.Mul"(%1, %4) {onnx_node_name = "/product"} : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %6 = "onnx.Mul"(%5, %half) {onnx_node_name = "/half"} : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %again = "onnx.Reshape"(%6, %deep) {onnx_node_name = "/again"} : (tensor<1x5x8xf32>, tensor<3xi64>) -> tensor<1x5x8xf32>
  %7 = "onnx.Reshape"(%y, %flat) {onnx_node_name = "/flat"} : (tensor<1x5x8xf32>, tensor<2xi64>) -> tensor<5x8xf32>
  %8 = "onnx.Gemm"(%7, %w, %b) {onnx_node_name = "/gemm"} : (tensor<5x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %9 = "onnx.Reshape"(%8, %deep) {onnx_node_name = "/unflat"} : (tensor<5x8xf32>, tensor<3xi64>) -> tensor<1x5x8xf32>
  %10 = "onnx.Pow"(%9, %three) {onnx_node_name = "/pow"} : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %11 = "onnx.Mul"(%9, %half) {onnx_node_name = "/halved"} : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %12 = "onnx.Mul"(%10, %cubic) {onnx_node_name = "/cubed"} : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %13 = "onnx.Add"(%9, %12) {onnx_node_name = "/sum"} : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %14 = "onnx.Mul"(%13, %root) {onnx_node_name = "/root"} : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %15 = "onnx.Tanh"(%14) {onnx_node_name = "/tanh"} : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %16 = "onnx.Add"(%15, %one) {onnx_node_name = "/plus"} : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %17 = "onnx.Mul"(%11, %16) {onnx_node_name = "/out"} : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  return %again, %17 : tensor<1x5x8xf32>, tensor<1x5x8xf32>
}

// -----

// Tests that an Add of a constant that is not one number per column, or of a computed value, is not a bias.
// CHECK-LABEL: func.func @no_bias(
// CHECK-COUNT-4: "onnx.MatMul"
// CHECK-NOT:     divi.cluster "matmul
func.func @no_bias(%x: tensor<1x5x8xf32>, %y: tensor<8xf32>) -> (tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<3x5x8xf32>) {
  %w = onnx.Constant dense<0.5> : tensor<8x8xf32>
  %number = onnx.Constant dense<1.0> : tensor<f32>
  %row = onnx.Constant dense<1.0> : tensor<5x1xf32>
  %wide = onnx.Constant dense<1.0> : tensor<3x1x8xf32>
  %0 = "onnx.MatMul"(%x, %w) : (tensor<1x5x8xf32>, tensor<8x8xf32>) -> tensor<1x5x8xf32>
  %1 = "onnx.Add"(%0, %number) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %2 = "onnx.MatMul"(%x, %w) : (tensor<1x5x8xf32>, tensor<8x8xf32>) -> tensor<1x5x8xf32>
  %3 = "onnx.Add"(%2, %row) : (tensor<1x5x8xf32>, tensor<5x1xf32>) -> tensor<1x5x8xf32>
  %4 = "onnx.MatMul"(%x, %w) : (tensor<1x5x8xf32>, tensor<8x8xf32>) -> tensor<1x5x8xf32>
  %5 = "onnx.Add"(%4, %y) : (tensor<1x5x8xf32>, tensor<8xf32>) -> tensor<1x5x8xf32>
  %6 = "onnx.MatMul"(%x, %w) : (tensor<1x5x8xf32>, tensor<8x8xf32>) -> tensor<1x5x8xf32>
  %7 = "onnx.Add"(%6, %wide) : (tensor<1x5x8xf32>, tensor<3x1x8xf32>) -> tensor<3x5x8xf32>
  return %1, %3, %5, %7 : tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<3x5x8xf32>
}

// -----

// Tests that an activation that is computed in f32, since Pow is, belongs to a product of half precision.
// CHECK-LABEL: func.func @gelu_in_f32(
// CHECK:         divi.cluster "matmul_gelu"({{.*}}["onnx.MatMul", "onnx.Cast", "onnx.Mul", "onnx.Cast", "onnx.Pow", "onnx.Mul", "onnx.Add", "onnx.Mul", "onnx.Tanh", "onnx.Add", "onnx.Mul", "onnx.Cast"]
func.func @gelu_in_f32(%x: tensor<4x8xbf16>) -> tensor<4x6xbf16> {
  %w = onnx.Constant dense<0.25> : tensor<8x6xbf16>
  %half = onnx.Constant dense<5.0e-01> : tensor<bf16>
  %three = onnx.Constant dense<3.0> : tensor<f32>
  %a = onnx.Constant dense<4.471500e-02> : tensor<f32>
  %b = onnx.Constant dense<0.797884583> : tensor<f32>
  %one = onnx.Constant dense<1.0> : tensor<f32>
  %0 = "onnx.MatMul"(%x, %w) : (tensor<4x8xbf16>, tensor<8x6xbf16>) -> tensor<4x6xbf16>
  %1 = "onnx.Cast"(%0) {to = f32} : (tensor<4x6xbf16>) -> tensor<4x6xf32>
  %2 = "onnx.Mul"(%0, %half) : (tensor<4x6xbf16>, tensor<bf16>) -> tensor<4x6xbf16>
  %3 = "onnx.Cast"(%2) {to = f32} : (tensor<4x6xbf16>) -> tensor<4x6xf32>
  %4 = "onnx.Pow"(%1, %three) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %5 = "onnx.Mul"(%4, %a) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %6 = "onnx.Add"(%1, %5) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %7 = "onnx.Mul"(%6, %b) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %8 = "onnx.Tanh"(%7) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %9 = "onnx.Add"(%8, %one) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %10 = "onnx.Mul"(%3, %9) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %11 = "onnx.Cast"(%10) {to = bf16} : (tensor<4x6xf32>) -> tensor<4x6xbf16>
  return %11 : tensor<4x6xbf16>
}
