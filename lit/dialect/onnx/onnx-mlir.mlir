// RUN: divi-opt %s | FileCheck %s
// RUN: divi-opt %s --emit-bytecode | divi-opt | FileCheck %s
// RUN: divi-opt %s --divi-infer-shapes=batch=4 | FileCheck %s --check-prefix=BATCH

// Tests that the text that onnx-mlir prints with --EmitONNXIR is parsed, including operators of older opsets that divi
// does not know, and that types are inferred at another batch size up to those operators.
// CHECK: module attributes {llvm.target_triple = "x86_64-unknown-linux-gnu", "onnx-mlir.symbol-postfix" = "classifier"} {
module attributes {"onnx-mlir.symbol-postfix" = "classifier", llvm.target_triple = "x86_64-unknown-linux-gnu"} {
  // CHECK-NEXT: func.func @main_graph(%[[X:.*]]: tensor<?x3x8x8xf32> {onnx.dim_params = "0:batch", onnx.name = "image"}) -> (tensor<?x10xf32> {onnx.dim_params = "0:batch", onnx.name = "scores"}) {
  // BATCH: func.func @main_graph(%{{.*}}: tensor<4x3x8x8xf32> {onnx.dim_params = "0:batch", onnx.name = "image"}) -> (tensor<?x10xf32>
  func.func @main_graph(%arg0: tensor<?x3x8x8xf32> {onnx.dim_params = "0:batch", onnx.name = "image"}) -> (tensor<?x10xf32> {onnx.dim_params = "0:batch", onnx.name = "scores"}) {
    // CHECK-NEXT: %[[NONE:.*]] = "onnx.NoValue"() <{value}> : () -> none
    %0 = "onnx.NoValue"() {value} : () -> none
    // CHECK-NEXT: %[[SHAPE:.*]] = onnx.Constant dense<[-1, 64]> : tensor<2xi64>
    %1 = onnx.Constant dense<[-1, 64]> : tensor<2xi64>
    // CHECK-NEXT: onnx.Constant dense_resource<__elided__> : tensor<4x3x3x3xf32>
    %2 = onnx.Constant dense_resource<__elided__> : tensor<4x3x3x3xf32>
    %3 = onnx.Constant dense<[0.1, 0.2, 0.3, 0.4]> : tensor<4xf32>
    %4 = onnx.Constant dense_resource<__elided__> : tensor<64x10xf32>
    %5 = onnx.Constant dense<6.0> : tensor<f32>
    // CHECK: %[[CONV:.*]] = "onnx.Conv"(%[[X]], %{{.*}}, %[[NONE]]) <{auto_pad = "NOTSET", dilations = [1, 1], group = 1 : si64, kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [1, 1]}> {onnx_node_name = "/stem/Conv"} : (tensor<?x3x8x8xf32>, tensor<4x3x3x3xf32>, none) -> tensor<?x4x8x8xf32>
    // BATCH: "onnx.Conv"{{.*}} -> tensor<4x4x8x8xf32>
    %6 = "onnx.Conv"(%arg0, %2, %0) {auto_pad = "NOTSET", dilations = [1, 1], group = 1 : si64, kernel_shape = [3, 3], onnx_node_name = "/stem/Conv", pads = [1, 1, 1, 1], strides = [1, 1]} : (tensor<?x3x8x8xf32>, tensor<4x3x3x3xf32>, none) -> tensor<?x4x8x8xf32>
    // CHECK-NEXT: "onnx.BatchNormalizationInferenceMode"(%[[CONV]], {{.*}}) <{epsilon = 9.99999974E-6 : f32, momentum = 0.899999976 : f32}> {onnx_node_name = "/stem/BatchNormalization"}
    // BATCH: "onnx.BatchNormalizationInferenceMode"{{.*}} -> tensor<4x4x8x8xf32>
    %7 = "onnx.BatchNormalizationInferenceMode"(%6, %3, %3, %3, %3) {epsilon = 9.99999974E-6 : f32, momentum = 0.899999976 : f32, onnx_node_name = "/stem/BatchNormalization"} : (tensor<?x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4x8x8xf32>
    // CHECK-NEXT: %[[CLIP:.*]] = "onnx.ClipV6"(%{{.*}}) {max = 6.000000e+00 : f32, min = 0.000000e+00 : f32, onnx_node_name = "/stem/Clip"} : (tensor<?x4x8x8xf32>) -> tensor<?x4x8x8xf32>
    // BATCH: "onnx.ClipV6"{{.*}} : (tensor<4x4x8x8xf32>) -> tensor<?x4x8x8xf32>
    %8 = "onnx.ClipV6"(%7) {max = 6.000000e+00 : f32, min = 0.000000e+00 : f32, onnx_node_name = "/stem/Clip"} : (tensor<?x4x8x8xf32>) -> tensor<?x4x8x8xf32>
    // CHECK-NEXT: %[[POOL:.*]] = "onnx.MaxPoolSingleOut"(%[[CLIP]]) <{auto_pad = "NOTSET", ceil_mode = 0 : si64, kernel_shape = [2, 2], pads = [0, 0, 0, 0], storage_order = 0 : si64, strides = [2, 2]}> {onnx_node_name = "/pool/MaxPool"}
    %9 = "onnx.MaxPoolSingleOut"(%8) <{auto_pad = "NOTSET", ceil_mode = 0 : si64, kernel_shape = [2, 2], pads = [0, 0, 0, 0], storage_order = 0 : si64, strides = [2, 2]}> {onnx_node_name = "/pool/MaxPool"} : (tensor<?x4x8x8xf32>) -> tensor<?x4x4x4xf32>
    // CHECK-NEXT: "onnx.Reshape"(%[[POOL]], %[[SHAPE]]) <{allowzero = 0 : si64}> {onnx_node_name = "/Reshape"}
    %10 = "onnx.Reshape"(%9, %1) {allowzero = 0 : si64, onnx_node_name = "/Reshape"} : (tensor<?x4x4x4xf32>, tensor<2xi64>) -> tensor<?x64xf32>
    // CHECK-NEXT: "onnx.Gemm"(%{{.*}}, %{{.*}}, %[[NONE]]) <{alpha = 1.000000e+00 : f32, beta = 1.000000e+00 : f32, transA = 0 : si64, transB = 0 : si64}> {onnx_node_name = "/head/Gemm"}
    %11 = "onnx.Gemm"(%10, %4, %0) {alpha = 1.000000e+00 : f32, beta = 1.000000e+00 : f32, onnx_node_name = "/head/Gemm", transA = 0 : si64, transB = 0 : si64} : (tensor<?x64xf32>, tensor<64x10xf32>, none) -> tensor<?x10xf32>
    // CHECK-NEXT: "onnx.Min"
    %12 = "onnx.Min"(%11, %5) {onnx_node_name = "/head/Min"} : (tensor<?x10xf32>, tensor<f32>) -> tensor<?x10xf32>
    // CHECK-NEXT: %[[SCORES:.*]] = "onnx.SoftmaxV11"(%{{.*}}) {axis = 1 : si64, onnx_node_name = "/head/Softmax"} : (tensor<?x10xf32>) -> tensor<?x10xf32>
    %13 = "onnx.SoftmaxV11"(%12) {axis = 1 : si64, onnx_node_name = "/head/Softmax"} : (tensor<?x10xf32>) -> tensor<?x10xf32>
    // CHECK-NEXT: onnx.Return %[[SCORES]] : tensor<?x10xf32>
    onnx.Return %13 : tensor<?x10xf32>
  }
  // CHECK: "onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
  "onnx.EntryPoint"() {func = @main_graph} : () -> ()
}
