// RUN: mlir-opt --load-dialect-plugin=%libdivi --load-pass-plugin=%libdivi --pass-pipeline='builtin.module(divi-infer-shapes)' %s | FileCheck %s
// RUN: mlir-opt --load-pass-plugin=%libdivi --load-dialect-plugin=%libdivi --pass-pipeline='builtin.module(divi-infer-shapes)' %s | FileCheck %s
// RUN: mlir-opt --load-dialect-plugin=%libdivi --pass-pipeline='builtin.module(divi-infer-shapes)' %s | FileCheck %s
// RUN: mlir-opt --load-dialect-plugin=%libdivi --emit-bytecode %s | mlir-opt --load-dialect-plugin=%libdivi --pass-pipeline='builtin.module(divi-infer-shapes{batch=2})' | FileCheck %s --check-prefix=BATCH
// RUN: mlir-opt --load-dialect-plugin=%libdivi --show-dialects | FileCheck %s --check-prefix=DIALECTS
// RUN: not mlir-opt --load-dialect-plugin=%libdivi --pass-pipeline='builtin.module(divi-verify-weights)' %s 2>&1 | FileCheck %s --check-prefix=ERROR

// Tests that mlir-opt reads, verifies and transforms divi's dialects with the plugin, by either flag or both.
// DIALECTS: divi
// DIALECTS: onnx
// CHECK: divi.device @cpu0 {kind = "cpu", memory = 17179869184 : i64}
divi.device @cpu0 {kind = "cpu", memory = 17179869184 : i64}
// CHECK: func.func @main(%{{.*}}: tensor<?x3xf32>) -> tensor<?x4xf32>
// BATCH: func.func @main(%{{.*}}: tensor<2x3xf32>) -> tensor<2x4xf32>
func.func @main(%x: tensor<?x3xf32>) -> tensor<*xf32> {
  // ERROR: error: 'onnx.Constant' op refers to './nowhere.bin', which does not exist
  %w = onnx.Constant #divi.external<"nowhere.bin", offset = 0, length = 48> : tensor<3x4xf32>
  // CHECK: "onnx.MatMul"{{.*}} {divi.pin = @cpu0} : (tensor<?x3xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>
  %0 = "onnx.MatMul"(%x, %w) {divi.pin = @cpu0} : (tensor<?x3xf32>, tensor<3x4xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
