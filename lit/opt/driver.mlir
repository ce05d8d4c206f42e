// RUN: divi-opt --help | FileCheck %s --check-prefix=HELP
// RUN: divi-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// RUN: divi-opt --list-passes | FileCheck %s --check-prefix=PASSES
// RUN: divi-opt %s --canonicalize --cse | FileCheck %s
// RUN: divi-opt %s --pass-pipeline='builtin.module(func.func(canonicalize,cse),divi-infer-shapes)' | FileCheck %s
// RUN: divi-opt %s --canonicalize --mlir-print-ir-before=canonicalize -o /dev/null 2>&1 | FileCheck %s --check-prefix=DUMP
// RUN: not divi-opt %s --divi-no-such-pass 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// Tests that divi's options, passes and dialects are listed beside MLIR's, each once.
// HELP: divi-opt: MLIR's opt driver for ONNX models
// HELP: --canonicalize
// HELP: --divi-infer-shapes
// HELP: --divi-rebase-weights
// HELP: --divi-verify-weights
// HELP: divi options:
// HELP-DAG: --batch=<N> {{.*}} Batch size: a multiple of the model's, if that is fixed
// HELP-DAG: --input-shape=<NAME:8x3x224x224> {{.*}} Shapes of the model's inputs
// HELP-DAG: --weights-dir=<DIR> {{.*}} Folder that the input's references to weights are relative to
// HELP-DAG: -q {{.*}} Print errors only
// DIALECTS: {{[, ]}}divi,
// DIALECTS-SAME: func,
// DIALECTS-SAME: onnx,
// PASSES: divi-infer-shapes
// PASSES: divi-rebase-weights
// PASSES: divi-verify-weights

// Tests that MLIR's passes work on the onnx dialect: dead operators go, equal ones become one.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[RELU:.*]] = "onnx.Relu"
// CHECK-NEXT:    %[[ADD:.*]] = "onnx.Add"(%[[RELU]], %[[RELU]])
// CHECK-NEXT:    return %[[ADD]]
// DUMP: IR Dump Before Canonicalizer
// UNKNOWN: Unknown command line argument '--divi-no-such-pass'
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "onnx.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "onnx.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "onnx.Abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %3 = "onnx.Add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}
