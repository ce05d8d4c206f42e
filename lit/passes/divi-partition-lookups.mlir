// A lookup reads some rows of its table: in a cold start it need not wait until the whole table is copied.
// RUN: divi-opt %s --divi-annotate-cost=system=cpu+h200 -o %t.costs.mlir
// RUN: FileCheck %s --check-prefix=COSTS < %t.costs.mlir
// RUN: divi-opt %t.costs.mlir --divi-partition="pin=*=gpu0 cold=true iterations=100" --divi-verify-plan -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: divi-opt %t.mlir --divi-outline --divi-verify-plan --divi-inline-stages --divi-verify-plan | FileCheck %s

// If all of the table is read, it has to be copied.
// RUN: sed 's/divi.read_weight_bytes = [0-9]* : i64, //' %t.costs.mlir | divi-opt - --divi-partition="pin=*=gpu0 cold=true iterations=100" --divi-verify-plan | FileCheck %s --check-prefix=ALL

// Costs of another machine replace existing ones.
// RUN: divi-opt %t.costs.mlir --divi-annotate-cost=system=cpu-2 | FileCheck %s --check-prefix=COSTS
module {
  func.func @main(%rows: tensor<16xi64>) -> tensor<16x256xf32> {
    %table = onnx.Constant dense<1.0> : tensor<50000x256xf32>
    %0 = "onnx.Gather"(%table, %rows) {axis = 0 : si64, onnx_node_name = "embed"} : (tensor<50000x256xf32>, tensor<16xi64>) -> tensor<16x256xf32>
    %1 = "onnx.Relu"(%0) {onnx_node_name = "relu"} : (tensor<16x256xf32>) -> tensor<16x256xf32>
    return %1 : tensor<16x256xf32>
  }
}

// COSTS: onnx.Gather
// COSTS-SAME: divi.read_weight_bytes = 16384 : i64
// COSTS-SAME: divi.weight_bytes = 51200000 : i64
// COSTS-NOT: divi.read_weight_bytes

// CHECK: value = {{[0-9][0-9]\.[0-9]+}} : f64
// CHECK: onnx.Gather
// CHECK-NOT: divi.copies

// 51.2 MB take about a millisecond.
// ALL: value = 1{{[0-9][0-9][0-9]\.[0-9]+}} : f64
