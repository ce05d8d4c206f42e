// RUN: divi-opt --help | FileCheck %s --check-prefix=HELP
// RUN: divi-opt --help-all | FileCheck %s --check-prefix=HELP-ALL
// RUN: divi-opt --version | FileCheck %s --check-prefix=VERSION
// RUN: divi-plan --version | FileCheck %s --check-prefix=PLAN-VERSION
// RUN: divi-run --version | FileCheck %s --check-prefix=RUN-VERSION
// RUN: divi-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// RUN: divi-opt --list-passes | FileCheck %s --check-prefix=PASSES
// RUN: divi-opt %s --canonicalize --cse | FileCheck %s
// RUN: divi-opt %s --pass-pipeline='builtin.module(func.func(canonicalize,cse),divi-infer-shapes)' | FileCheck %s
// RUN: divi-opt %s --canonicalize --mlir-print-ir-before=canonicalize -o /dev/null 2>&1 | FileCheck %s --check-prefix=DUMP
// RUN: not divi-opt %s --divi-no-such-pass 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// Tests that --help shows divi's options first, then common options of MLIR, and no passes.
// HELP: divi-opt: plans and compiles ONNX models
// HELP-NOT: --canonicalize
// HELP: Divi options:
// HELP-DAG: --batch=<N> {{.*}} Batch size; a multiple of the model's if that is static
// HELP-DAG: --dim=<NAME=128> {{.*}} Sizes of the model's named dimensions
// HELP-DAG: --input-shape=<NAME:8x3x224x224> {{.*}} Shapes of the model's inputs
// HELP-DAG: --input-value=<NAME=16000|NAME=[1,2]> {{.*}} Replace an input of an ONNX model by a constant
// HELP-DAG: --weights-dir=<DIR> {{.*}} Folder that the input's references to weights are relative to
// HELP-DAG: -q {{.*}} Print errors only
// HELP: Divi options for planning:
// HELP: MLIR options (--help-all has all of them):
// HELP: --pass-pipeline
// HELP-NOT: --canonicalize

// Tests that --help-all shows MLIR's options and every pass.
// HELP-ALL: divi-opt: MLIR's opt driver for ONNX models
// HELP-ALL: --canonicalize
// HELP-ALL: --divi-infer-shapes
// HELP-ALL: --divi-rebase-weights
// HELP-ALL: --divi-verify-weights

// Tests that --version shows the versions of the libraries.
// VERSION: {{^}}divi-opt {{[0-9]+\.[0-9]+\.[0-9]+$}}
// VERSION-NEXT: {{^}}LLVM 22.
// VERSION-NEXT: {{^}}HiGHS {{[0-9]+\.[0-9]+\.[0-9]+$}}
// VERSION-NEXT: {{^}}CUDA {{[0-9]+\.[0-9]+$|no driver$|the CUDA driver}}
// PLAN-VERSION: {{^}}divi-plan {{[0-9]+\.[0-9]+\.[0-9]+$}}
// PLAN-VERSION-NEXT: {{^}}HiGHS {{[0-9]+\.[0-9]+\.[0-9]+$}}
// RUN-VERSION: {{^}}divi-run {{[0-9]+\.[0-9]+\.[0-9]+$}}
// RUN-VERSION-NEXT: {{^}}bundles divi-bundle/

// Tests that divi's passes and dialects are listed beside MLIR's, each once.
// DIALECTS: {{[, ]}}divi,
// DIALECTS-SAME: func,
// DIALECTS-SAME: onnx,
// PASSES: divi-infer-shapes
// PASSES: divi-rebase-weights
// PASSES: divi-verify-weights

// Tests that MLIR's passes work on the onnx dialect: dead operators are removed, equal ones merged.
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
