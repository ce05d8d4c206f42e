// RUN: divi-opt %s --split-input-file --divi-fuse | FileCheck %s

// Tests that a chain of element-wise operators is one task, whatever its other operands.
// CHECK-LABEL: func.func @chain(
// CHECK:         divi.cluster "elementwise"(%arg0, %arg1, %{{.*}}["onnx.Abs", "onnx.Mul", "onnx.Sqrt", "onnx.Sub"]
// CHECK-NOT:     divi.cluster
func.func @chain(%x: tensor<1x5x8xf32>, %y: tensor<1x5x8xf32>) -> tensor<1x5x8xf32> {
  %c0 = onnx.Constant dense<1.0> : tensor<f32>
  %0 = "onnx.Abs"(%x) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %1 = "onnx.Mul"(%0, %y) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %2 = "onnx.Sqrt"(%1) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %3 = "onnx.Sub"(%c0, %2) : (tensor<f32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  return %3 : tensor<1x5x8xf32>
}

// -----

// Tests that values are computed once: the chain ends where broadcasting enlarges the shape.
// CHECK-LABEL: func.func @broadcast(
// CHECK:         divi.cluster "elementwise"(%arg1{{.*}}["onnx.Exp", "onnx.Sqrt"]
// CHECK:         divi.cluster "elementwise"({{.*}}["onnx.Mul", "onnx.Relu"]
func.func @broadcast(%x: tensor<1x5x8xf32>, %z: tensor<1x1x8xf32>) -> tensor<1x5x8xf32> {
  %0 = "onnx.Exp"(%z) : (tensor<1x1x8xf32>) -> tensor<1x1x8xf32>
  %1 = "onnx.Sqrt"(%0) : (tensor<1x1x8xf32>) -> tensor<1x1x8xf32>
  %2 = "onnx.Mul"(%1, %x) : (tensor<1x1x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %3 = "onnx.Relu"(%2) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  return %3 : tensor<1x5x8xf32>
}

// -----

// Tests that a chain does not wait for an operand that is computed after it could start.
// CHECK-LABEL: func.func @late(
// CHECK:         "onnx.Abs"
// CHECK:         divi.cluster "elementwise"({{.*}}["onnx.Exp", "onnx.Neg"]
// CHECK:         divi.cluster "elementwise"({{.*}}["onnx.Add", "onnx.Relu"]
func.func @late(%x: tensor<1x5x8xf32>, %y: tensor<1x5x8xf32>) -> tensor<1x5x8xf32> {
  %0 = "onnx.Abs"(%x) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %1 = "onnx.Exp"(%y) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %2 = "onnx.Neg"(%1) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %3 = "onnx.MaxPoolSingleOut"(%2) {kernel_shape = [1]} : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %4 = "onnx.Add"(%0, %3) : (tensor<1x5x8xf32>, tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  %5 = "onnx.Relu"(%4) : (tensor<1x5x8xf32>) -> tensor<1x5x8xf32>
  return %5 : tensor<1x5x8xf32>
}
