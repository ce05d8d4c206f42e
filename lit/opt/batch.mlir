// RUN: divi-opt %s --batch=4 | FileCheck %s
// RUN: divi-opt %s --batch=4 --divi-canonicalize | FileCheck %s
// RUN: not divi-opt %s --batch=5 2>&1 | FileCheck %s --check-prefix=MULTIPLE

// Tests that --batch multiplies a static batch before any pass, and rejects sizes that are not multiples.
// CHECK: func.func @fixed(%{{.*}}: tensor<4x3xf32>) -> tensor<4x3x1xf32>
// CHECK: onnx.Constant dense<[4, 3, 1]>
// MULTIPLE: error: 'func.func' op @fixed has a batch of 2, which cannot be changed to 5: choose a multiple of 2
func.func @fixed(%x: tensor<2x3xf32>) -> tensor<2x3x1xf32> {
  %shape = onnx.Constant dense<[2, 3, 1]> : tensor<3xi64>
  %0 = "onnx.Reshape"(%x, %shape) {allowzero = 0 : si64} : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<2x3x1xf32>
  return %0 : tensor<2x3x1xf32>
}
