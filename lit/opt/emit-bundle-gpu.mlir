// Tests that --emit=bundle compiles the GPU stages of a plan to PTX, and that divi-run reports a missing GPU.

// RUN: rm -rf %t.bundle
// RUN: divi-opt %s --emit=bundle --system=cpu+h200 --fuse=none --pin='double=cpu0' --pin='shift=gpu0' -q -o %t.bundle
// RUN: divi-run %t.bundle --check
// RUN: FileCheck %s --check-prefix=BUNDLE --input-file=%t.bundle/bundle.json
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t.bundle/sm_90.ptx
// BUNDLE: "executables"
// BUNDLE: {"format":"elf-x86-64","file":"[[CPU:.*]].so","target":{"cpu":"[[CPU]]","features":
// BUNDLE: {"format":"ptx","file":"sm_90.ptx","target":{"arch":"sm_90"}}
// BUNDLE: "kind":{{ *}}"cuda"
// BUNDLE: "executable": 1
// BUNDLE: "payload":{"blocks":1,
// BUNDLE: "transfer"
// PTX: .target sm_90
// PTX: .visible .entry k{{[0-9a-f]+}}(
// PTX: add.{{(rn\.)?}}f32
// PTX: st.global.b32

// The output is deterministic.
// RUN: rm -rf %t.again && divi-opt %s --emit=bundle --system=cpu+h200 --fuse=none --pin='double=cpu0' --pin='shift=gpu0' -q -o %t.again
// RUN: diff -r %t.bundle %t.again

// GPUs have no C library: its functions are part of the code.
// RUN: rm -rf %t.sine && divi-opt %s --emit=bundle --system=cpu+h200 --fuse=none --pin='angle=gpu0' -q -o %t.sine
// RUN: FileCheck %s --check-prefix=SINE --input-file=%t.sine/sm_90.ptx
// SINE: fma.rn.f64
// SINE-NOT: .extern

// Weights can stay on the host.
// RUN: rm -rf %t.host
// RUN: divi-opt %s --emit=bundle --system=cpu+h200 --fuse=none --pin='double=cpu0' --pin='shift=gpu0' --host-weights='sh*' -q -o %t.host
// RUN: divi-run %t.host --check
// RUN: FileCheck %s --check-prefix=HOST --input-file=%t.host/bundle.json
// HOST: "name":"shift",{{.*}}"has_host_weights":true}
// HOST-NOT: has_host_weights
// RUN: not divi-opt %s --partition --system=cpu+h200 --host-weights='lost' 2>&1 | FileCheck %s --check-prefix=LOST
// LOST: host-weights 'lost' matches no operator: there are

func.func @main(%x: tensor<1x4xf32> {onnx.name = "x"}) -> (tensor<1x4xf32> {onnx.name = "y"}, tensor<1x4xf32> {onnx.name = "z"}) {
  %one = onnx.Constant dense<1.0> : tensor<f32>
  %0 = "onnx.Add"(%x, %x) {onnx_node_name = "double"} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = "onnx.Add"(%0, %one) {onnx_node_name = "shift"} : (tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>
  %2 = "onnx.Sin"(%x) {onnx_node_name = "angle"} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %1, %2 : tensor<1x4xf32>, tensor<1x4xf32>
}
