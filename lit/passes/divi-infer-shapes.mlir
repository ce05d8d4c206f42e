// RUN: divi-opt %s --split-input-file --divi-infer-shapes | FileCheck %s
// RUN: divi-opt %s --split-input-file --divi-infer-shapes=batch=8 | FileCheck %s --check-prefix=BATCH

// Tests that result types are inferred from operands, and function types from returned values.
// CHECK-LABEL: func.func @types(%{{.*}}: tensor<2x3xf32>, %{{.*}}: tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<4x2xf32>)
// CHECK:         "onnx.MatMul"{{.*}} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
// CHECK:         "onnx.Transpose"{{.*}} : (tensor<2x4xf32>) -> tensor<4x2xf32>
// CHECK:         onnx.Return %{{.*}}, %{{.*}} : tensor<2x4xf32>, tensor<4x2xf32>
// BATCH-LABEL: func.func @types(%{{.*}}: tensor<2x3xf32>
func.func @types(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> (tensor<?x?xf32>, tensor<*xf32>) {
  %0 = "onnx.MatMul"(%x, %y) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<?x?xf32>
  %1 = "onnx.Transpose"(%0) : (tensor<?x?xf32>) -> tensor<*xf32>
  onnx.Return %0, %1 : tensor<?x?xf32>, tensor<*xf32>
}

// -----

// Tests that the batch size is applied to every argument with a dynamic first dimension and propagated; and that names
// identify equal dynamic dimensions.
// CHECK-LABEL: func.func @batch(
// CHECK:         "onnx.Add"{{.*}} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK:         "onnx.Reshape"{{.*}} -> tensor<?x2x2xf32>
// BATCH-LABEL: func.func @batch(
// BATCH-SAME:    %{{.*}}: tensor<8x4xf32> {onnx.dim_params = "0:N", onnx.name = "x"}, %{{.*}}: tensor<8x4xf32>
// BATCH-SAME:    %{{.*}}: tensor<3x4xf32>, %{{.*}}: tensor<f32>) -> tensor<8x2x2xf32>
// BATCH:         "onnx.Add"{{.*}} -> tensor<8x4xf32>
// BATCH:         "onnx.Reshape"{{.*}} -> tensor<8x2x2xf32>
func.func @batch(%x: tensor<?x4xf32> {onnx.name = "x", onnx.dim_params = "0:N"},
                 %y: tensor<?x4xf32> {onnx.name = "y", onnx.dim_params = "0:N"}, %z: tensor<3x4xf32>, %s: tensor<f32>)
    -> tensor<?x2x2xf32> {
  %0 = "onnx.Add"(%x, %y) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %shape = onnx.Constant dense<[-1, 2, 2]> : tensor<3xi64>
  %1 = "onnx.Reshape"(%0, %shape) : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<?x2x2xf32>
  return %1 : tensor<?x2x2xf32>
}

// -----

// Tests that shape arithmetic is propagated for a symbolic batch, and folded for a static one.
// CHECK-LABEL: func.func @shapes
// CHECK:         "onnx.Reshape"{{.*}} -> tensor<?x12xf32>
// BATCH-LABEL: func.func @shapes
// BATCH-NOT:     onnx.Shape
// BATCH-NOT:     onnx.Gather
// BATCH-NOT:     onnx.Concat
// BATCH:         %[[SHAPE:.*]] = onnx.Constant dense<[8, -1]> : tensor<2xi64> {onnx_node_name = "/concat"}
// BATCH:         "onnx.Reshape"(%{{.*}}, %[[SHAPE]]) {{.*}} : (tensor<8x3x4xf32>, tensor<2xi64>) -> tensor<8x12xf32>
func.func @shapes(%x: tensor<?x3x4xf32> {onnx.name = "x", onnx.dim_params = "0:N"}) -> tensor<?x?xf32> {
  %zero = onnx.Constant dense<0> : tensor<1xi64>
  %rest = onnx.Constant dense<-1> : tensor<1xi64>
  %0 = "onnx.Shape"(%x) : (tensor<?x3x4xf32>) -> tensor<3xi64>
  %1 = "onnx.Gather"(%0, %zero) : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
  %2 = "onnx.Concat"(%1, %rest) {axis = 0 : si64, onnx_node_name = "/concat"} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %3 = "onnx.Reshape"(%x, %2) : (tensor<?x3x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %3 : tensor<?x?xf32>
}

// -----

// Tests that Identity is removed, and that constant operands are used.
// CHECK-LABEL: func.func @constants(
// CHECK-NOT:     onnx.Identity
// CHECK:         "onnx.Reshape"{{.*}} -> tensor<3x2xf32>
func.func @constants(%x: tensor<2x3xf32>) -> tensor<?x?xf32> {
  %s = onnx.Constant dense<[3, 2]> : tensor<2xi64>
  %0 = "onnx.Identity"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "onnx.Reshape"(%0, %s) : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// Tests that types that are more precise than inference are kept, unless shapes change.
// CHECK-LABEL: func.func @known_better(
// CHECK:         "onnx.Unique"{{.*}} -> (tensor<7xf32>, none, none, none)
// BATCH-LABEL: func.func @known_better(
// BATCH:         "onnx.Unique"{{.*}} -> (tensor<?xf32>, none, none, none)
func.func @known_better(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0:4 = "onnx.Unique"(%x) : (tensor<?xf32>) -> (tensor<7xf32>, none, none, none)
  %1 = "onnx.Custom"(%0#0) {function_name = "F", domain_name = "d"} : (tensor<7xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// Tests that unknown operators keep their types, and that inference continues after them.
// CHECK-LABEL: func.func @unknown(
// BATCH-LABEL: func.func @unknown(
// BATCH:         "onnx.FancyNewOp"{{.*}} : (tensor<8x4xf32>) -> tensor<?x5xf32>
// BATCH:         "onnx.Relu"{{.*}} : (tensor<?x5xf32>) -> tensor<?x5xf32>
func.func @unknown(%x: tensor<?x4xf32>) -> tensor<*xf32> {
  %0 = "onnx.FancyNewOp"(%x) : (tensor<?x4xf32>) -> tensor<?x5xf32>
  %1 = "onnx.Relu"(%0) : (tensor<?x5xf32>) -> tensor<*xf32>
  return %1 : tensor<*xf32>
}

// -----

// Tests that subgraphs are inferred, and functions without a body are not changed.
// CHECK-LABEL: func.func private @declared(tensor<?x4xf32>)
// CHECK-LABEL: func.func @regions(
// CHECK:         "onnx.Abs"{{.*}} -> tensor<2xf32>
func.func private @declared(tensor<?x4xf32>)
func.func @regions(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<*xf32> {
  %0 = "onnx.If"(%c) ({
    %1 = "onnx.Abs"(%x) : (tensor<2xf32>) -> tensor<*xf32>
    onnx.Yield %1 : tensor<*xf32>
  }, {
    onnx.Yield %x : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
