// RUN: divi-opt %s --pass-pipeline='builtin.module(divi-fuse,divi-annotate-cost{system=%S/Inputs/system.toml})' | FileCheck %s

// Tests that devices and links of the system are declared, that times are measured, interpolated and estimated, and
// that operations and bytes are counted: a convolution of 8 to 8 channels on 16x16 pixels with 3x3 taps has 2*8*8*256*9
// operations, the normalization two and the activation one for each of 2048 elements.
// CHECK: module attributes {divi.contention = "exclusive", divi.costs = {cpu0 = {estimated = 3 : i64, interpolated = 0 : i64, measured = 0 : i64}, gpu0 = {estimated = 1 : i64, interpolated = 1 : i64, measured = 1 : i64}}} {
// CHECK-NEXT: divi.device @cpu0 {batch_sizes = [1], kind = "cpu", memory = 1073741824 : i64, threads = 2 : i64}
// CHECK-NEXT: divi.device @gpu0 {arch = "sm_80", batch_sizes = [1, 4, 8], kind = "cuda", memory = 2147483648 : i64}
// CHECK-NEXT: divi.link @cpu0 -> @gpu0 {bandwidth = 1.600000e+10 : f64, bus = "pcie0", latency = 1.000000e-05 : f64}
// CHECK-NEXT: divi.link @gpu0 -> @cpu0 {bandwidth = 1.600000e+10 : f64, bus = "pcie0", latency = 1.000000e-05 : f64}
func.func @main(%x: tensor<1x8x16x16xf32>) -> (tensor<1x8x8x8xf32>, tensor<1x2xf32>) {
  %w = onnx.Constant dense<1.0> : tensor<8x8x3x3xf32>
  %s = onnx.Constant dense<2.0> : tensor<8xf32>
  %m = onnx.Constant dense<3.0> : tensor<512x2xf32>
  %none = "onnx.NoValue"() <{value}> : () -> none
  %0 = "onnx.Conv"(%x, %w, %none) <{kernel_shape = [3, 3], pads = [1, 1, 1, 1]}> {onnx_node_name = "conv"} : (tensor<1x8x16x16xf32>, tensor<8x8x3x3xf32>, none) -> tensor<1x8x16x16xf32>
  %1 = "onnx.BatchNormalizationInferenceMode"(%0, %s, %s, %s, %s) {onnx_node_name = "bn"} : (tensor<1x8x16x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x8x16x16xf32>
  %2 = "onnx.Relu"(%1) {onnx_node_name = "relu"} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  // CHECK: divi.cluster "conv_bn_relu"
  // CHECK-SAME: divi.bound = {cpu0 = "{{.*}}", gpu0 = "{{.*}}"}
  // CHECK-SAME: divi.cost = #divi.cost<@cpu0 = {1 = {{[0-9.]+}}}, @gpu0 = {1 = 20.0, 4 = 50.0, 8 = 90.0}>
  // CHECK-SAME: divi.flops = 301056 : i64, divi.input_bytes = 8192 : i64, divi.members = ["conv", "bn", "relu"], divi.output_bytes = 8192 : i64, divi.scratch_bytes = 0 : i64, divi.weight_bytes = 2336 : i64
  %3 = "onnx.MaxPoolSingleOut"(%2) <{kernel_shape = [2, 2], strides = [2, 2]}> {onnx_node_name = "pool"} : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32>
  // CHECK: onnx.MaxPoolSingleOut
  // CHECK-SAME: divi.cost = #divi.cost<@cpu0 = {1 = {{[0-9.]+}}}, @gpu0 = {1 = 7.0, 4 = 13.0, 8 = 21.0}>
  // CHECK-SAME: divi.flops = 2048 : i64, divi.input_bytes = 8192 : i64, divi.output_bytes = 2048 : i64, divi.scratch_bytes = 0 : i64, divi.weight_bytes = 0 : i64
  %4 = "onnx.Flatten"(%3) {onnx_node_name = "flatten"} : (tensor<1x8x8x8xf32>) -> tensor<1x512xf32>
  %5 = "onnx.MatMul"(%4, %m) {onnx_node_name = "fc"} : (tensor<1x512xf32>, tensor<512x2xf32>) -> tensor<1x2xf32>
  // CHECK: divi.cluster "matmul"
  // CHECK-SAME: divi.flops = 2048 : i64, divi.input_bytes = 2048 : i64
  // CHECK-SAME: divi.output_bytes = 8 : i64, divi.scratch_bytes = 0 : i64, divi.weight_bytes = 4096 : i64
  return %3, %5 : tensor<1x8x8x8xf32>, tensor<1x2xf32>
}
