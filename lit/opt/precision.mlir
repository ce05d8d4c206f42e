// Bundles of a model in f32 and in half precision compute about the same.
// RUN: rm -rf %t && mkdir %t
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --cpu=x86-64-v3 -o %t/f32
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --cpu=x86-64-v3 --precision=bf16 -o %t/bf16
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --cpu=x86-64-v3 --precision=f16 -o %t/f16
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --cpu=x86-64-v3 --precision=bf16 --precision-exclude=* -o %t/excluded
// RUN: divi-run %t/f32 --random-inputs=1 -q -o %t/expected
// RUN: divi-run %t/bf16 --random-inputs=1 -q --expected=%t/expected --tolerance=0.02
// RUN: not divi-run %t/bf16 --random-inputs=1 -q --expected=%t/expected --tolerance=0.00001
// RUN: divi-run %t/f16 --random-inputs=1 -q --expected=%t/expected --tolerance=0.002
// RUN: divi-run %t/excluded --random-inputs=1 -q --expected=%t/expected --tolerance=0
// RUN: divi-opt %s --precision=bf16 --system=cpu-2 --algorithm=single --partition -q | FileCheck %s

// CHECK: "onnx.Conv"{{.*}} -> tensor<1x8x9x9xbf16>
// CHECK: func.func @main({{.*}}tensor<1x3x9x9xf32>{{.*}}-> (tensor<1x5xf32>
func.func @main(%x: tensor<1x3x9x9xf32> {onnx.name = "x"}) -> (tensor<1x5xf32> {onnx.name = "y"}) {
  %none = "onnx.NoValue"() {value} : () -> none
  %w = "onnx.Constant"() {value = dense<[[[[0.3]], [[-0.7]], [[0.11]]], [[[0.2]], [[0.17]], [[-0.41]]], [[[-0.3]], [[0.77]], [[0.9]]], [[[0.1]], [[-0.2]], [[0.3]]], [[[0.3]], [[-0.7]], [[0.1]]], [[[0.4]], [[0.3]], [[0.6]]], [[[0.33]], [[0.7]], [[0.1]]], [[[0.2]], [[-0.1]], [[0.3]]]]> : tensor<8x3x1x1xf32>} : () -> tensor<8x3x1x1xf32>
  %v = "onnx.Constant"() {value = dense<0.37> : tensor<8x5xf32>} : () -> tensor<8x5xf32>
  %shape = "onnx.Constant"() {value = dense<[1, 8]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = "onnx.Conv"(%x, %w, %none) {onnx_node_name = "conv"} : (tensor<1x3x9x9xf32>, tensor<8x3x1x1xf32>, none) -> tensor<1x8x9x9xf32>
  %1 = "onnx.Sigmoid"(%0) {onnx_node_name = "sigmoid"} : (tensor<1x8x9x9xf32>) -> tensor<1x8x9x9xf32>
  %2 = "onnx.Add"(%0, %1) {onnx_node_name = "add"} : (tensor<1x8x9x9xf32>, tensor<1x8x9x9xf32>) -> tensor<1x8x9x9xf32>
  %3 = "onnx.GlobalAveragePool"(%2) {onnx_node_name = "pool"} : (tensor<1x8x9x9xf32>) -> tensor<1x8x1x1xf32>
  %4 = "onnx.Reshape"(%3, %shape) {onnx_node_name = "flat"} : (tensor<1x8x1x1xf32>, tensor<2xi64>) -> tensor<1x8xf32>
  %5 = "onnx.MatMul"(%4, %v) {onnx_node_name = "head"} : (tensor<1x8xf32>, tensor<8x5xf32>) -> tensor<1x5xf32>
  %6 = "onnx.Softmax"(%5) {onnx_node_name = "softmax"} : (tensor<1x5xf32>) -> tensor<1x5xf32>
  %7 = "onnx.Add"(%5, %6) {onnx_node_name = "sum"} : (tensor<1x5xf32>, tensor<1x5xf32>) -> tensor<1x5xf32>
  return %7 : tensor<1x5xf32>
}
