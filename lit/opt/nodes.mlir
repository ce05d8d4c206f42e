// Tests that a bundle records the node of each device, and that one process runs a plan for several nodes.
// RUN: rm -rf %t && divi-opt %s --emit=bundle -q --system=cpu-2x1 --pin=second=n1_cpu --pin=first=n0_cpu -o %t
// RUN: FileCheck %s < %t/bundle.json
// RUN: divi-run %t --random-inputs | FileCheck %s --check-prefix=ONE

// CHECK: "devices": [
// CHECK: "id":"n0_cpu"
// CHECK-SAME: "node":0
// CHECK: "id":"n1_cpu"
// CHECK-SAME: "node":1
// CHECK: "transfer"
// ONE: latency   median

// A launcher is detected by its environment, and the binding to its MPI does not exist.
// RUN: env PMIX_RANK=0 DIVI_MPI_BINDING=%t/none.so not divi-run %t --random-inputs 2>&1 | FileCheck %s --check-prefix=BINDING
// BINDING: divi-run: error: cannot load '{{.*}}none.so': {{.*}}; build it again with tools/mpi-binding

func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = "onnx.Exp"(%x) {onnx_node_name = "first"} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = "onnx.Softmax"(%0) {onnx_node_name = "second", axis = -1 : si64} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
