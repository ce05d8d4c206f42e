// RUN: divi-opt %s --batch=4 | FileCheck %s
// RUN: divi-opt %s --emit-bytecode | divi-opt --batch=4 | FileCheck %s
// RUN: divi-opt %s --input-shape=x:4x3 | FileCheck %s
// RUN: divi-opt %s --input-shape=y:4x3,x:4x3 | FileCheck %s
// RUN: divi-opt %s --input-shape=y:4x3 --input-shape=x:4x3 | FileCheck %s
// RUN: divi-opt %s --dim=N=4 | FileCheck %s
// RUN: divi-opt %s --batch=4 --canonicalize --cse | FileCheck %s
// RUN: not divi-opt %s --batch=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not divi-opt %s --batch=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not divi-opt %s --batch=many 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not divi-opt %s --dim=M=4 2>&1 | FileCheck %s --check-prefix=NO-DIM
// RUN: not divi-opt %s --input-shape=4x3 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not divi-opt %s --input-value=x=4 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not divi-opt %s --input-shape=z:4x3 2>&1 | FileCheck %s --check-prefix=ABSENT

// Tests that --batch and --input-shape work on MLIR as on models, before any pass.
// CHECK: func.func @main(%{{.*}}: tensor<4x3xf32> {onnx.dim_params = "0:N", onnx.name = "x"}, %{{.*}}: tensor<4x3xf32> {onnx.dim_params = "0:N", onnx.name = "y"}) -> tensor<4x3xf32>
// CHECK: "onnx.Add"{{.*}} -> tensor<4x3xf32>
// Tests that invalid sizes and unknown names are reported.
// NEGATIVE: divi-opt: error: --batch is -1: it must be at least 1
// ZERO: divi-opt: error: --batch is 0: it must be at least 1
// WORD: for the --batch option: 'many' value invalid
// NO-DIM: error: cannot give a size to unknown dimension 'M' (onnx.dim_params): there are 'N'
// TWO: error: 'func.func' op a shape without a name is for a model with one input, and there are 'x', 'y': write NAME:AxBxC
// VALUE: divi-opt: error: --input-value requires an ONNX model, but '{{.*}}shapes.mlir' is MLIR
// ABSENT: error: no function has an argument named 'z' (onnx.name) to give a shape: there are 'x', 'y'
func.func @main(%x: tensor<?x3xf32> {onnx.name = "x", onnx.dim_params = "0:N"},
                %y: tensor<?x3xf32> {onnx.name = "y", onnx.dim_params = "0:N"}) -> tensor<?x3xf32> {
  %0 = "onnx.Add"(%x, %y) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
