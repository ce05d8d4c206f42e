// Tests that --emit=bundle warns once about operators without a fast kernel, with their share of the predicted time.

// RUN: rm -rf %t.slow
// RUN: divi-opt %s --emit=bundle --system=cpu-2 --min-gain=100 -o %t.slow 2>&1 | FileCheck %s
// CHECK: warning: 2 kinds of operators have no fast kernel: MatMul of double (2 nodes), MatMulInteger of uint8 (1 node): {{[0-9]+}} % of the predicted time
// CHECK-NOT: no fast kernel

func.func @main(%x: tensor<16x64xf64> {onnx.name = "x"}, %w: tensor<64x64xf64> {onnx.name = "w"}, %b: tensor<8x8xui8> {onnx.name = "b"})
    -> (tensor<16x64xf64> {onnx.name = "y"}, tensor<8x8xi32> {onnx.name = "z"}) {
  %none = "onnx.NoValue"() <{value}> : () -> none
  %0 = "onnx.MatMul"(%x, %w) {onnx_node_name = "first"} : (tensor<16x64xf64>, tensor<64x64xf64>) -> tensor<16x64xf64>
  %1 = "onnx.MatMul"(%0, %w) {onnx_node_name = "second"} : (tensor<16x64xf64>, tensor<64x64xf64>) -> tensor<16x64xf64>
  %2 = "onnx.MatMulInteger"(%b, %b, %none, %none) {onnx_node_name = "bytes"} : (tensor<8x8xui8>, tensor<8x8xui8>, none, none) -> tensor<8x8xi32>
  return %1, %2 : tensor<16x64xf64>, tensor<8x8xi32>
}
