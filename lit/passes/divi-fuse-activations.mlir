// RUN: divi-opt %s --split-input-file --divi-fuse | FileCheck %s

// Tests that decomposed activations are recognized by their values, in any order of operators.
// CHECK-LABEL: func.func @named(
// CHECK:         divi.cluster "gelu"(%arg0
// CHECK:         divi.cluster "silu"(%arg0
// CHECK:         divi.cluster "mish"(%arg0
// CHECK:         divi.cluster "hardswish"(%arg0
// CHECK:         divi.cluster "quickgelu"(%arg0
// CHECK:         divi.cluster "hardsigmoid"(%arg0
func.func @named(%x: tensor<1x5x8xf32>) -> (tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>) {
  %c0 = onnx.Constant dense<0.707106769> : tensor<f32>
  %c1 = onnx.Constant dense<1.0> : tensor<f32>
  %c2 = onnx.Constant dense<0.5> : tensor<f32>
  %c3 = onnx.Constant dense<1.702> : tensor<f32>
  %c4 = onnx.Constant dense<3.0> : tensor<f32>
  %c5 = onnx.Constant dense<0.0> : tensor<f32>
  %c6 = onnx.Constant dense<6.0> : tensor<f32>
  %0 = "onnx.Mul"(%x, %c0) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %1 = "onnx.Erf"(%0) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %2 = "onnx.Add"(%c1, %1) : (tensor<f32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %3 = "onnx.Mul"(%x, %c2) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %4 = "onnx.Mul"(%3, %2) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %5 = "onnx.Sigmoid"(%x) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %6 = "onnx.Mul"(%x, %5) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %7 = "onnx.Softplus"(%x) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %8 = "onnx.Tanh"(%7) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %9 = "onnx.Mul"(%8, %x) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %10 = "onnx.HardSigmoid"(%x) {alpha = 0.166666672 : f32} : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %11 = "onnx.Mul"(%x, %10) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %12 = "onnx.Mul"(%x, %c3) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %13 = "onnx.Sigmoid"(%12) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %14 = "onnx.Mul"(%x, %13) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %15 = "onnx.Add"(%x, %c4) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %16 = "onnx.Clip"(%15, %c5, %c6) : (tensor<1x5x8xf32>, tensor<f32>, tensor<f32>) -> tensor<1x5x8xf32>
  %17 = "onnx.Div"(%16, %c6) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  return %4, %6, %9, %11, %14, %17 : tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>
}

// -----

// Tests that an element-wise function without a name is one task if its operators are a chain, and several if they
// could run concurrently.
// CHECK-LABEL: func.func @unnamed(
// CHECK:         divi.cluster "elementwise"(%arg0{{.*}}["onnx.Mul", "onnx.Sigmoid", "onnx.Mul"]
// CHECK:         "onnx.Exp"
// CHECK-NEXT:    "onnx.Cos"
// CHECK-NEXT:    "onnx.Mul"
func.func @unnamed(%x: tensor<1x5x8xf32>) -> (tensor<1x5x8xf32>, tensor<1x5x8xf32>) {
  %c0 = onnx.Constant dense<1.5> : tensor<f32>
  %0 = "onnx.Mul"(%x, %c0) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %1 = "onnx.Sigmoid"(%0) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %2 = "onnx.Mul"(%x, %1) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %3 = "onnx.Exp"(%x) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %4 = "onnx.Cos"(%x) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %5 = "onnx.Mul"(%3, %4) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  return %2, %5 : tensor<1x5x8xf32>, tensor<1x5x8xf32>
}

// -----

// Tests that an activation with an intermediate value that is used outside is not fused.
// CHECK-LABEL: func.func @read_inside(
// CHECK-NOT:     divi.cluster
// CHECK:         return
func.func @read_inside(%x: tensor<1x5x8xf32>) -> (tensor<1x5x8xf32>, tensor<1x5x8xf32>) {
  %0 = "onnx.Sigmoid"(%x) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %1 = "onnx.Mul"(%x, %0) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  return %1, %0 : tensor<1x5x8xf32>, tensor<1x5x8xf32>
}

// -----

// Tests that constants of narrow types are accurate enough.
// CHECK-LABEL: func.func @narrow(
// CHECK:         divi.cluster "gelu"(
func.func @narrow(%x: tensor<1x5x8xf16>) -> tensor<1x5x8xf16> {
  %c0 = onnx.Constant dense<1.414060e+00> : tensor<f16>
  %c1 = onnx.Constant dense<1.0> : tensor<f16>
  %c2 = onnx.Constant dense<0.5> : tensor<f16>
  %0 = "onnx.Div"(%x, %c0) : (tensor<1x5x8xf16>, tensor<f16>) -> tensor<1x5x8xf16>
  %1 = "onnx.Erf"(%0) : (tensor<1x5x8xf16>) -> tensor<1x5x8xf16>
  %2 = "onnx.Add"(%1, %c1) : (tensor<1x5x8xf16>, tensor<f16>) -> tensor<1x5x8xf16>
  %3 = "onnx.Mul"(%x, %2) : (tensor<1x5x8xf16>, tensor<1x5x8xf16>) -> tensor<1x5x8xf16>
  %4 = "onnx.Mul"(%3, %c2) : (tensor<1x5x8xf16>, tensor<f16>) -> tensor<1x5x8xf16>
  return %4 : tensor<1x5x8xf16>
}

// -----

// Tests that compositions have names too: Relu6 of Min and Max, Mish of Exp and Log, and that the residual of a
// convolution may be a Sum.
// CHECK-LABEL: func.func @made_of_others(
// CHECK:         divi.cluster "clip"(
// CHECK:         divi.cluster "mish"(%arg0
// CHECK:         divi.cluster "conv_add"(
func.func @made_of_others(%x: tensor<1x5x8xf32>) -> (tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>) {
  %zero = onnx.Constant dense<0.0> : tensor<f32>
  %one = onnx.Constant dense<1.0> : tensor<1xf32>
  %six = onnx.Constant dense<6.0> : tensor<f32>
  %w = onnx.Constant dense<0.5> : tensor<5x5x1xf32>
  %b = onnx.Constant dense<0.5> : tensor<5xf32>
  %0 = "onnx.Max"(%zero, %x) : (tensor<f32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %1 = "onnx.Min"(%0, %six) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %2 = "onnx.Exp"(%x) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %3 = "onnx.Add"(%2, %one) : (tensor<1x5x8xf32>, tensor<1xf32>) -> tensor<1x5x8xf32>
  %4 = "onnx.Log"(%3) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %5 = "onnx.Tanh"(%4) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %6 = "onnx.Mul"(%x, %5) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %7 = "onnx.Conv"(%x, %w, %b) : (tensor<1x5x8xf32>, tensor<5x5x1xf32>, tensor<5xf32>) -> tensor<1x5x8xf32>
  %8 = "onnx.Sum"(%x, %7) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  return %1, %6, %8 : tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>
}
