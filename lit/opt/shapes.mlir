// RUN: divi-opt %s --batch=4 | FileCheck %s
// RUN: divi-opt %s --emit-bytecode | divi-opt --batch=4 | FileCheck %s
// RUN: divi-opt %s --input-shape=x:4x3 | FileCheck %s
// RUN: divi-opt %s --input-shape=y:4x3,x:4x3 | FileCheck %s
// RUN: divi-opt %s --input-shape=y:4x3 --input-shape=x:4x3 | FileCheck %s
// RUN: divi-opt %s --batch=4 --canonicalize --cse | FileCheck %s
// RUN: not divi-opt %s --batch=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not divi-opt %s --batch=many 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not divi-opt %s --input-shape=z:4x3 2>&1 | FileCheck %s --check-prefix=ABSENT

// Tests that --batch and --input-shape work on MLIR as they do on models, before any pass.
// CHECK: func.func @main(%{{.*}}: tensor<4x3xf32> {onnx.dim_params = "0:N", onnx.name = "x"}, %{{.*}}: tensor<4x3xf32> {onnx.dim_params = "0:N", onnx.name = "y"}) -> tensor<4x3xf32>
// CHECK: "onnx.Add"{{.*}} -> tensor<4x3xf32>
// Tests that sizes and names that cannot be are said.
// NEGATIVE: divi-opt: error: --batch must be positive
// WORD: for the --batch option: 'many' value invalid
// ABSENT: error: no function has an argument named 'z' (onnx.name) to give a shape
func.func @main(%x: tensor<?x3xf32> {onnx.name = "x", onnx.dim_params = "0:N"},
                %y: tensor<?x3xf32> {onnx.name = "y", onnx.dim_params = "0:N"}) -> tensor<?x3xf32> {
  %0 = "onnx.Add"(%x, %y) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
