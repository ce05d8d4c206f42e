// RUN: divi-opt %s --divi-rebase-weights='from=models to=out/ir' | FileCheck %s
// RUN: divi-opt %s --divi-rebase-weights | FileCheck %s --check-prefix=SAME
// RUN: divi-opt %s --divi-rebase-weights='from=models to=out/ir' --divi-rebase-weights='from=out/ir to=models' | FileCheck %s --check-prefix=SAME

// Tests that paths are relative to the new folder, and nothing else changes; files need not exist.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    onnx.Constant #divi.external<"../../models/w.bin", offset = 4, length = 8> : tensor<2xf32> {onnx_node_name = "w"}
// CHECK-NEXT:    onnx.Constant #divi.external<"w.bin", offset = 0, length = 8> : tensor<2xf32>
// CHECK-NEXT:    onnx.Constant dense<1> : tensor<i64>
// CHECK:           onnx.Constant #divi.external<"../../models/deep/w.bin", offset = 0, length = 8> : tensor<2xf32>
// SAME:          onnx.Constant #divi.external<"w.bin", offset = 4, length = 8>
// SAME:          onnx.Constant #divi.external<"../out/ir/w.bin", offset = 0, length = 8>
// SAME:          onnx.Constant #divi.external<"deep/w.bin", offset = 0, length = 8>
func.func @main() {
  %0 = onnx.Constant #divi.external<"w.bin", offset = 4, length = 8> : tensor<2xf32> {onnx_node_name = "w"}
  %1 = onnx.Constant #divi.external<"../out/ir/w.bin", offset = 0, length = 8> : tensor<2xf32>
  %2 = onnx.Constant dense<1> : tensor<i64>
  divi.cluster "constant"() {
    %3 = onnx.Constant #divi.external<"deep/w.bin", offset = 0, length = 8> : tensor<2xf32>
  }
  return
}
