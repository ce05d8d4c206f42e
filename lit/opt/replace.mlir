// RUN: rm -rf %t && mkdir -p %t/deep && cd %t && cp %S/../../test/models/alexnet.onnx model.onnx

// Tests that a model is not replaced by the IR that refers to it, under any name.
// RUN: ln -s ../model.onnx deep/link.onnx
// RUN: not divi-opt model.onnx -o model.onnx 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: not divi-opt model.onnx -o deep/link.onnx 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: not divi-opt deep/link.onnx -o ./model.onnx 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: cmp model.onnx %S/../../test/models/alexnet.onnx
// MODEL: divi-opt: error: cannot write '{{.*}}.onnx': it is the model itself: choose another name

// Tests that an empty file is not a model.
// RUN: touch empty.onnx
// RUN: not divi-opt empty.onnx -o out.mlir 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not ls out.mlir
// EMPTY: divi-opt: error: 'empty.onnx' is not an ONNX model: the file is empty

// Tests that output follows symbolic links, to existing files or not, and that the links are kept.
// RUN: echo "before" > deep/there.mlir && ln -s there.mlir deep/there && ln -s deep/there there && ln -s deep/new.mlir new
// RUN: divi-opt %s -o there && FileCheck %s --input-file=deep/there.mlir && test -L there && test -L deep/there
// RUN: divi-opt %s -o new && FileCheck %s --input-file=deep/new.mlir && test -L new
// RUN: ln -s loop loop && not divi-opt %s -o loop 2>&1 | FileCheck %s --check-prefix=LOOP
// CHECK: func.func @main
// LOOP: divi-opt: error: cannot write 'loop':

// Tests that the mode of a replaced file is kept.
// RUN: echo "before" > private.mlir && chmod 600 private.mlir && divi-opt %s -o private.mlir
// RUN: stat -c %%a private.mlir | FileCheck %s --check-prefix=MODE
// RUN: FileCheck %s --input-file=private.mlir
// MODE: 600

// Tests that a read-only folder, and a folder as the output, are reported.
// RUN: not divi-opt %s -o deep 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not divi-opt %s -o /proc/out.mlir 2>&1 | FileCheck %s --check-prefix=PROC
// RUN: not divi-opt %s -o /sys/out.mlir 2>&1 | FileCheck %s --check-prefix=SYS
// FOLDER: divi-opt: error: cannot write 'deep': it is a folder: name a file
// PROC: divi-opt: error: cannot write '/proc/out.mlir':
// SYS: divi-opt: error: cannot write '/sys/out.mlir':

// Tests that no temporary file remains.
// RUN: not ls -d .*.tmp deep/.*.tmp
func.func @main() {
  return
}
