// RUN: divi-opt %s --divi-infer-shapes=dim=N=2 | FileCheck %s
// RUN: not divi-opt %s --divi-infer-shapes=dim=M=2 2>&1 | FileCheck %s --check-prefix=CALLED

// Tests that a size is given to dimensions of functions that nothing calls. Functions with several calls keep their types,
// even if a dimension has the same name.
// CHECK: func.func private @relu(%{{.*}}: tensor<?x?xf32>
// CHECK: func.func @main(%{{.*}}: tensor<2x?xf32>
// CHECK: "onnx.Neg"{{.*}} -> tensor<2x?xf32>

// Tests that a dimension of a called function cannot be given a size.
// CALLED: error: cannot give a size to unknown dimension 'M' (onnx.dim_params): there are 'N'
func.func private @relu(%x: tensor<?x?xf32> {onnx.dim_params = "0:N,1:M"}) -> tensor<?x?xf32> {
  %0 = "onnx.Relu"(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @main(%x: tensor<?x?xf32> {onnx.name = "x", onnx.dim_params = "0:N"}) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %0 = call @relu(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = call @relu(%0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = "onnx.Neg"(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %1, %2 : tensor<?x?xf32>, tensor<?x?xf32>
}
