// RUN: rm -rf %t && mkdir %t && cp %S/../../test/models/alexnet.onnx %t/model.onnx && cd %t

// Tests that a model can be read from a pipe under any name, although a pipe can be read only once.
// RUN: cat model.onnx | divi-opt -q /dev/stdin --mlir-elide-resource-strings-if-larger=8 | FileCheck %s
// RUN: bash -c 'divi-opt -q <(cat model.onnx) --mlir-elide-resource-strings-if-larger=8' | FileCheck %s
// RUN: mkfifo pipe.onnx
// RUN: bash -c 'cat model.onnx > pipe.onnx & divi-opt -q pipe.onnx --mlir-elide-resource-strings-if-larger=8' | FileCheck %s
// CHECK: func.func @
// CHECK: onnx.Constant dense_resource<

// Tests that no reference is to the name of a file descriptor.
// RUN: divi-opt -q /dev/stdin --mlir-elide-resource-strings-if-larger=8 < model.onnx | FileCheck %s

// Tests that errors name the pipe.
// RUN: bash -c 'head -c 40 model.onnx | not divi-opt /dev/stdin' 2>&1 | FileCheck %s --check-prefix=CUT
// CUT: /dev/stdin: error: not an ONNX model

// Tests that output can be written to a pipe, which is kept when a pass fails.
// RUN: echo "module {}" > in.mlir && mkfifo out
// RUN: bash -c 'cat out > copy & divi-opt in.mlir -o out; wait' && FileCheck %s --check-prefix=OUT --input-file=copy
// RUN: bash -c 'cat out > copy & not divi-opt %s --divi-verify-weights -o out; wait' && test -p out
// RUN: bash -c 'divi-opt in.mlir -o /dev/stdout' | FileCheck %s --check-prefix=OUT
// OUT: module {

func.func @main() -> tensor<2xf32> {
  %0 = onnx.Constant #divi.external<"w.bin", offset = 0, length = 8> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
