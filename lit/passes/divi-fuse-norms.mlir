// RUN: divi-opt %s --split-input-file --divi-fuse | FileCheck %s

// Tests that LayerNormalization is recognized in every decomposition, with scale and shift or without.
// CHECK-LABEL: func.func @layer_norm(
// CHECK:         divi.cluster "layer_norm"(%arg0{{.*}}["onnx.ReduceMean", "onnx.Sub", "onnx.Pow", "onnx.ReduceMean", "onnx.Add", "onnx.Sqrt", "onnx.Div", "onnx.Mul", "onnx.Add"]
// CHECK:         divi.cluster "layer_norm"(%arg0{{.*}}"onnx.Reciprocal", "onnx.Mul", "onnx.Mul", "onnx.Add"]
// CHECK:         divi.cluster "layer_norm"(%arg0{{.*}}"onnx.Div"]
func.func @layer_norm(%x: tensor<1x5x8xf32>) -> (tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>) {
  %c0 = onnx.Constant dense<-1> : tensor<1xi64>
  %c1 = onnx.Constant dense<2.0> : tensor<f32>
  %c2 = onnx.Constant dense<1.0e-05> : tensor<f32>
  %c3 = onnx.Constant dense<1.5> : tensor<8xf32>
  %c4 = onnx.Constant dense<0.5> : tensor<8xf32>
  %0 = "onnx.ReduceMean"(%x, %c0) : (tensor<1x5x8xf32>, tensor<1xi64>) -> tensor<1x5x1xf32>
  %1 = "onnx.Sub"(%x, %0) : (tensor<1x5x8xf32>, tensor<1x5x1xf32>) -> tensor<1x5x8xf32>
  %2 = "onnx.Pow"(%1, %c1) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %3 = "onnx.ReduceMean"(%2, %c0) : (tensor<1x5x8xf32>, tensor<1xi64>) -> tensor<1x5x1xf32>
  %4 = "onnx.Add"(%3, %c2) : (tensor<1x5x1xf32>, tensor<f32>) -> tensor<1x5x1xf32>
  %5 = "onnx.Sqrt"(%4) : (tensor<1x5x1xf32>) -> tensor<1x5x1xf32>
  %6 = "onnx.Div"(%1, %5) : (tensor<1x5x8xf32>, tensor<1x5x1xf32>) -> tensor<1x5x8xf32>
  %7 = "onnx.Mul"(%6, %c3) : (tensor<1x5x8xf32>, tensor<8xf32>) -> tensor<1x5x8xf32>
  %8 = "onnx.Add"(%c4, %7) : (tensor<8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %9 = "onnx.ReduceMean"(%x, %c0) : (tensor<1x5x8xf32>, tensor<1xi64>) -> tensor<1x5x1xf32>
  %10 = "onnx.Sub"(%x, %9) : (tensor<1x5x8xf32>, tensor<1x5x1xf32>) -> tensor<1x5x8xf32>
  %11 = "onnx.Mul"(%10, %10) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %12 = "onnx.ReduceMean"(%11, %c0) : (tensor<1x5x8xf32>, tensor<1xi64>) -> tensor<1x5x1xf32>
  %13 = "onnx.Add"(%12, %c2) : (tensor<1x5x1xf32>, tensor<f32>) -> tensor<1x5x1xf32>
  %14 = "onnx.Sqrt"(%13) : (tensor<1x5x1xf32>) -> tensor<1x5x1xf32>
  %15 = "onnx.Reciprocal"(%14) : (tensor<1x5x1xf32>) -> tensor<1x5x1xf32>
  %16 = "onnx.Mul"(%10, %15) : (tensor<1x5x8xf32>, tensor<1x5x1xf32>) -> tensor<1x5x8xf32>
  %17 = "onnx.Mul"(%16, %c3) : (tensor<1x5x8xf32>, tensor<8xf32>) -> tensor<1x5x8xf32>
  %18 = "onnx.Add"(%c4, %17) : (tensor<8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %19 = "onnx.ReduceMean"(%x, %c0) : (tensor<1x5x8xf32>, tensor<1xi64>) -> tensor<1x5x1xf32>
  %20 = "onnx.Sub"(%x, %19) : (tensor<1x5x8xf32>, tensor<1x5x1xf32>) -> tensor<1x5x8xf32>
  %21 = "onnx.Pow"(%20, %c1) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %22 = "onnx.ReduceMean"(%21, %c0) : (tensor<1x5x8xf32>, tensor<1xi64>) -> tensor<1x5x1xf32>
  %23 = "onnx.Add"(%22, %c2) : (tensor<1x5x1xf32>, tensor<f32>) -> tensor<1x5x1xf32>
  %24 = "onnx.Sqrt"(%23) : (tensor<1x5x1xf32>) -> tensor<1x5x1xf32>
  %25 = "onnx.Div"(%20, %24) : (tensor<1x5x8xf32>, tensor<1x5x1xf32>) -> tensor<1x5x8xf32>
  return %8, %18, %25 : tensor<1x5x8xf32>, tensor<1x5x8xf32>, tensor<1x5x8xf32>
}

// -----

// Tests that RMSNorm is fused with the casts that exporters insert.
// CHECK-LABEL: func.func @rms_norm(
// CHECK:         divi.cluster "rms_norm"(%arg0{{.*}}["onnx.Cast", "onnx.Pow", "onnx.ReduceMean", "onnx.Add", "onnx.Sqrt", "onnx.Div", "onnx.Mul", "onnx.Cast", "onnx.Mul"]
func.func @rms_norm(%x: tensor<1x5x8xf16>) -> tensor<1x5x8xf16> {
  %c0 = onnx.Constant dense<2.0> : tensor<f32>
  %c1 = onnx.Constant dense<-1> : tensor<1xi64>
  %c2 = onnx.Constant dense<1.0e-06> : tensor<f32>
  %c3 = onnx.Constant dense<1.0> : tensor<f32>
  %c4 = onnx.Constant dense<1.5> : tensor<8xf16>
  %0 = "onnx.Cast"(%x) {to = f32} : (tensor<1x5x8xf16>) -> tensor<1x5x8xf32>
  %1 = "onnx.Pow"(%0, %c0) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %2 = "onnx.ReduceMean"(%1, %c1) : (tensor<1x5x8xf32>, tensor<1xi64>) -> tensor<1x5x1xf32>
  %3 = "onnx.Add"(%2, %c2) : (tensor<1x5x1xf32>, tensor<f32>) -> tensor<1x5x1xf32>
  %4 = "onnx.Sqrt"(%3) : (tensor<1x5x1xf32>) -> tensor<1x5x1xf32>
  %5 = "onnx.Div"(%c3, %4) : (tensor<f32>, tensor<1x5x1xf32>) -> tensor<1x5x1xf32>
  %6 = "onnx.Mul"(%0, %5) : (tensor<1x5x8xf32>, tensor<1x5x1xf32>) -> tensor<1x5x8xf32>
  %7 = "onnx.Cast"(%6) {to = f16} : (tensor<1x5x8xf32>) -> tensor<1x5x8xf16>
  %8 = "onnx.Mul"(%c4, %7) : (tensor<8xf16>, tensor<1x5x8xf16>) -> tensor<1x5x8xf16>
  return %8 : tensor<1x5x8xf16>
}

// -----

// Tests that similar patterns are not recognized as normalizations:
// another power, statistics of different dimensions.
// CHECK-LABEL: func.func @other_power(
// CHECK-NOT:     divi.cluster "{{.*}}norm"
// CHECK-LABEL: func.func @other_dimensions(
// CHECK-NOT:     divi.cluster "layer_norm"
// CHECK:         return
func.func @other_power(%x: tensor<1x5x8xf32>) -> tensor<1x5x8xf32> {
  %c0 = onnx.Constant dense<3.0> : tensor<f32>
  %c1 = onnx.Constant dense<-1> : tensor<1xi64>
  %c2 = onnx.Constant dense<1.0e-06> : tensor<f32>
  %0 = "onnx.Pow"(%x, %c0) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %1 = "onnx.ReduceMean"(%0, %c1) : (tensor<1x5x8xf32>, tensor<1xi64>) -> tensor<1x5x1xf32>
  %2 = "onnx.Add"(%1, %c2) : (tensor<1x5x1xf32>, tensor<f32>) -> tensor<1x5x1xf32>
  %3 = "onnx.Sqrt"(%2) : (tensor<1x5x1xf32>) -> tensor<1x5x1xf32>
  %4 = "onnx.Div"(%x, %3) : (tensor<1x5x8xf32>, tensor<1x5x1xf32>) -> tensor<1x5x8xf32>
  return %4 : tensor<1x5x8xf32>
}
func.func @other_dimensions(%x: tensor<1x5x8xf32>) -> tensor<1x5x8xf32> {
  %c0 = onnx.Constant dense<-1> : tensor<1xi64>
  %c1 = onnx.Constant dense<2.0> : tensor<f32>
  %c2 = onnx.Constant dense<1> : tensor<1xi64>
  %c3 = onnx.Constant dense<1.0e-05> : tensor<f32>
  %0 = "onnx.ReduceMean"(%x, %c0) : (tensor<1x5x8xf32>, tensor<1xi64>) -> tensor<1x5x1xf32>
  %1 = "onnx.Sub"(%x, %0) : (tensor<1x5x8xf32>, tensor<1x5x1xf32>) -> tensor<1x5x8xf32>
  %2 = "onnx.Pow"(%1, %c1) : (tensor<1x5x8xf32>, tensor<f32>) -> tensor<1x5x8xf32>
  %3 = "onnx.ReduceMean"(%2, %c2) : (tensor<1x5x8xf32>, tensor<1xi64>) -> tensor<1x1x8xf32>
  %4 = "onnx.Add"(%3, %c3) : (tensor<1x1x8xf32>, tensor<f32>) -> tensor<1x1x8xf32>
  %5 = "onnx.Sqrt"(%4) : (tensor<1x1x8xf32>) -> tensor<1x1x8xf32>
  %6 = "onnx.Div"(%1, %5) : (tensor<1x5x8xf32>, tensor<1x1x8xf32>) -> tensor<1x5x8xf32>
  return %6 : tensor<1x5x8xf32>
}
