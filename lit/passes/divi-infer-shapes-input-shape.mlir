// RUN: divi-opt %s --pass-pipeline='builtin.module(divi-infer-shapes{input-shape=image:2x3x32x64})' | FileCheck %s
// RUN: divi-opt %s --pass-pipeline='builtin.module(divi-infer-shapes{input-shape=image:2x3x32x64,ids:2x7})' | FileCheck %s --check-prefix=BOTH
// RUN: divi-opt %s --pass-pipeline='builtin.module(divi-infer-shapes{dim=N=2})' | FileCheck %s --check-prefix=DIM
// RUN: not divi-opt %s --pass-pipeline='builtin.module(divi-infer-shapes{input-shape=picture:2x3x32x64})' 2>&1 | FileCheck %s --check-prefix=UNNAMED
// RUN: not divi-opt %s --pass-pipeline='builtin.module(divi-infer-shapes{input-shape=image:2x3})' 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not divi-opt %s --pass-pipeline='builtin.module(divi-infer-shapes{input-shape=image})' 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not divi-opt %s --pass-pipeline='builtin.module(divi-infer-shapes{batch=-2})' 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// Tests that a shape is applied to the argument of that name, and to dimensions of the same names in other arguments.
// CHECK: func.func @main(%{{.*}}: tensor<2x3x32x64xf32> {onnx.dim_params = "0:N,2:H,3:W", onnx.name = "image"}, %{{.*}}: tensor<2x?xi64>
// CHECK: "onnx.GlobalAveragePool"{{.*}} -> tensor<2x3x1x1xf32>
// CHECK: "onnx.Relu"{{.*}} -> tensor<2x3x32x64xf32>
// DIM: func.func @main(%{{.*}}: tensor<2x3x?x?xf32>{{.*}}, %{{.*}}: tensor<2x?xi64>
// BOTH: func.func @main(%{{.*}}: tensor<2x3x32x64xf32>{{.*}}, %{{.*}}: tensor<2x7xi64>
// Tests that a wrong name, rank, syntax or size is reported.
// UNNAMED: error: no function has an argument named 'picture' (onnx.name) to give a shape: there are 'image', 'ids'
// RANK: error: 'func.func' op input 'image' has rank 4, but is given 2 dimensions
// SYNTAX: error: 'image' is not an input shape: write NAME:8x3x224x224
// NEGATIVE: error: batch is -2: it must be positive
func.func @main(%x: tensor<?x3x?x?xf32> {onnx.name = "image", onnx.dim_params = "0:N,2:H,3:W"},
                %ids: tensor<?x?xi64> {onnx.name = "ids", onnx.dim_params = "0:N"}) -> (tensor<?x3x1x1xf32>, tensor<?x3x?x?xf32>) {
  %0 = "onnx.GlobalAveragePool"(%x) : (tensor<?x3x?x?xf32>) -> tensor<?x3x1x1xf32>
  %1 = "onnx.Relu"(%x) : (tensor<?x3x?x?xf32>) -> tensor<?x3x?x?xf32>
  return %0, %1 : tensor<?x3x1x1xf32>, tensor<?x3x?x?xf32>
}
