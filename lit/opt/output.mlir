// RUN: rm -rf %t && mkdir %t && cd %t

// Tests that output is written atomically, without remaining temporary files.
// RUN: divi-opt %s -o out.mlir
// RUN: FileCheck %s --input-file=out.mlir
// RUN: ls -A | count 1
// CHECK: func.func @main

// Tests that an existing file is replaced.
// RUN: echo "before" > existing.mlir
// RUN: divi-opt %s -o existing.mlir
// RUN: FileCheck %s --input-file=existing.mlir
// RUN: ls -A | count 2

// Tests that an existing file is kept when a pass fails, without other files.
// RUN: echo "before" > kept.mlir
// RUN: not divi-opt %s --divi-verify-weights -o kept.mlir 2>&1 | FileCheck %s --check-prefix=PASS
// RUN: FileCheck %s --check-prefix=BEFORE --input-file=kept.mlir
// RUN: not divi-opt %s --divi-verify-weights -o fresh.mlir
// RUN: ls -A | count 3
// PASS: error: 'onnx.Constant' op refers to
// BEFORE: before

// Tests that input that does not parse or does not exist causes no output.
// RUN: echo "func.func @main(" > bad.mlir
// RUN: not divi-opt bad.mlir -o fresh.mlir 2>&1 | FileCheck %s --check-prefix=PARSE
// RUN: not divi-opt missing.mlir -o fresh.mlir 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: ls -A | count 4
// PARSE: bad.mlir:{{.*}}: error:
// MISSING: divi-opt: error: cannot open input file 'missing.mlir': No such file or directory

// Tests that a missing folder is named.
// RUN: not divi-opt %s -o nowhere/out.mlir 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: ls -A | count 4
// NOWHERE: divi-opt: error: cannot write 'nowhere/out.mlir': No such file or directory

// Tests that output may be the input.
// RUN: divi-opt %s -o same.mlir && divi-opt same.mlir -o same.mlir
// RUN: FileCheck %s --input-file=same.mlir

func.func @main() -> tensor<2xf32> {
  %0 = onnx.Constant #divi.external<"nowhere.bin", offset = 0, length = 8> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
