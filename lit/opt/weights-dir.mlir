// RUN: rm -rf %t && mkdir -p %t/in %t/out/deep && cp %s %t/in/in.mlir && cd %t

// Tests that paths of weights refer to the same files when the IR is written to another folder.
// RUN: divi-opt in/in.mlir -o out/deep/out.mlir && FileCheck %s --input-file=out/deep/out.mlir
// CHECK: #divi.external<"../../in/w.bin", offset = 0, length = 8>

// Tests that they are unchanged in the same folder, however it is spelled, and for a stream.
// RUN: divi-opt in/in.mlir -o in/out.mlir && FileCheck %s --check-prefix=SAME --input-file=in/out.mlir
// RUN: divi-opt in/in.mlir -o out/../in/out.mlir && FileCheck %s --check-prefix=SAME --input-file=in/out.mlir
// RUN: divi-opt in/in.mlir | FileCheck %s --check-prefix=SAME
// SAME: #divi.external<"w.bin", offset = 0, length = 8>

// Tests that --weights-dir is the folder that the input's references are relative to.
// RUN: divi-opt in/in.mlir --weights-dir=elsewhere -o out/out.mlir && FileCheck %s --check-prefix=DIR --input-file=out/out.mlir
// RUN: divi-opt in/in.mlir --weights-dir=elsewhere | FileCheck %s --check-prefix=STREAM
// RUN: divi-opt --weights-dir=elsewhere -o out/out.mlir < in/in.mlir && FileCheck %s --check-prefix=DIR --input-file=out/out.mlir
// DIR: #divi.external<"../elsewhere/w.bin", offset = 0, length = 8>
// STREAM: #divi.external<"elsewhere/w.bin", offset = 0, length = 8>

func.func @main() -> tensor<2xf32> {
  %0 = onnx.Constant #divi.external<"w.bin", offset = 0, length = 8> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
