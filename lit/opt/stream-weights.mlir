// Tests that a GPU whose memory is too small for a model's weights can run it if they are streamed.

// RUN: echo '[[device]]' > %t.toml
// RUN: echo 'id = "cpu0"' >> %t.toml && echo 'kind = "cpu"' >> %t.toml && echo 'memory = "64 GiB"' >> %t.toml && echo 'threads = 1' >> %t.toml
// RUN: echo '[[device]]' >> %t.toml
// RUN: echo 'id = "gpu0"' >> %t.toml && echo 'kind = "cuda"' >> %t.toml && echo 'arch = "sm_90"' >> %t.toml && echo 'memory = "50 MiB"' >> %t.toml
// RUN: cp %t.toml %t.streamed.toml && echo 'weights = "streamed"' >> %t.streamed.toml
// RUN: echo '[[link]]' > %t.link
// RUN: echo 'from = "cpu0"' >> %t.link && echo 'to = "gpu0"' >> %t.link && echo 'bandwidth = "50 GB/s"' >> %t.link && echo 'latency = "10 us"' >> %t.link && echo 'duplex = true' >> %t.link
// RUN: cat %t.link >> %t.toml && cat %t.link >> %t.streamed.toml

// RUN: not divi-opt %s --partition --pin='m*=gpu0' --system=%t.toml -q 2>&1 | FileCheck %s --check-prefix=SHORT
// SHORT: (gpu0): tasks that can run nowhere else need 64.00 MiB, it has 50.00 MiB

// A task takes at least the time to stream its weights: 16 MiB at 50 GB/s take 335.5 µs.
// RUN: divi-opt %s --partition --pin='m*=gpu0' --system=%t.streamed.toml -q | FileCheck %s
// CHECK: divi.device @gpu0
// CHECK-SAME: weights = "streamed"
// CHECK: "onnx.MatMul"
// CHECK-SAME: @gpu0 = {1 = 335.5{{[0-9]*}}}

// RUN: rm -rf %t.bundle
// RUN: divi-opt %s --emit=bundle --weights=random:1 --pin='m*=gpu0' --system=%t.streamed.toml -q -o %t.bundle
// RUN: FileCheck %s --check-prefix=BUNDLE --input-file=%t.bundle/bundle.json
// BUNDLE: "streams_weights":true

// Weights that do not fit beside the tensors are reported after planning.
// RUN: sed 's/50 MiB/20 MiB/' %t.streamed.toml > %t.small.toml
// RUN: not divi-opt %s --partition --pin='m*=gpu0' --system=%t.small.toml -q 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: gpu0{{.*}} needs 32.{{.*}} MiB{{.*}}, has 20.00 MiB

func.func @main(%x: tensor<1x2048xf32> {onnx.name = "x"}) -> (tensor<1x2048xf32> {onnx.name = "y"}) {
  %w0 = onnx.Constant #divi.external<"w0.bin", offset = 0, length = 16777216> : tensor<2048x2048xf32>
  %0 = "onnx.MatMul"(%x, %w0) {onnx_node_name = "m0"} : (tensor<1x2048xf32>, tensor<2048x2048xf32>) -> tensor<1x2048xf32>
  %w1 = onnx.Constant #divi.external<"w1.bin", offset = 0, length = 16777216> : tensor<2048x2048xf32>
  %1 = "onnx.MatMul"(%0, %w1) {onnx_node_name = "m1"} : (tensor<1x2048xf32>, tensor<2048x2048xf32>) -> tensor<1x2048xf32>
  %w2 = onnx.Constant #divi.external<"w2.bin", offset = 0, length = 16777216> : tensor<2048x2048xf32>
  %2 = "onnx.MatMul"(%1, %w2) {onnx_node_name = "m2"} : (tensor<1x2048xf32>, tensor<2048x2048xf32>) -> tensor<1x2048xf32>
  %w3 = onnx.Constant #divi.external<"w3.bin", offset = 0, length = 16777216> : tensor<2048x2048xf32>
  %3 = "onnx.MatMul"(%2, %w3) {onnx_node_name = "m3"} : (tensor<1x2048xf32>, tensor<2048x2048xf32>) -> tensor<1x2048xf32>
  return %3 : tensor<1x2048xf32>
}
