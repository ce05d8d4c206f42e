// Tests that a bundle is rejected if weights in its model's own files have changed since it was compiled.

// RUN: rm -rf %t && mkdir -p %t/model && cp %s %t/model/model.mlir
// RUN: %python -c "open('%t/model/w.bin', 'wb').write(bytes(20000))"
// RUN: divi-opt %t/model/model.mlir --emit=bundle --system=cpu-2 -q -o %t/bundle
// RUN: FileCheck %s --check-prefix=BUNDLE --input-file=%t/bundle/bundle.json
// BUNDLE: "model_folder": "../model"
// BUNDLE: {"path":"../model/w.bin","bytes":20000,"sha256":"{{[0-9a-f]+}}"}
// BUNDLE: "source":{"file":{"path":"../model/w.bin","offset":0}},"crc32":{{[0-9]+}}}

// RUN: divi-run %t/bundle --check | FileCheck %s --check-prefix=SOUND
// RUN: divi-run %t/bundle --random-inputs -q
// SOUND: bundle: valid, 2 files,

// Bytes that no constant refers to may change.
// RUN: %python -c "open('%t/model/w.bin', 'wb').write(bytes(19999) + b'x')"
// RUN: divi-run %t/bundle --check | FileCheck %s --check-prefix=SOUND
// RUN: %python -c "open('%t/model/w.bin', 'wb').write(bytes(5000) + b'x' + bytes(14999))"
// RUN: not divi-run %t/bundle --check 2>&1 | FileCheck %s --check-prefix=HASH
// RUN: not divi-run %t/bundle --random-inputs 2>&1 | FileCheck %s --check-prefix=CHECKSUM
// HASH: divi-run: error: '{{.*}}w.bin' was modified or damaged: its SHA-256 does not match the bundle; compile
// CHECKSUM: divi-run: error: '{{.*}}w.bin' was modified or damaged: its checksum does not match the bundle; compile

// RUN: %python -c "open('%t/model/w.bin', 'wb').write(bytes(16383))"
// RUN: not divi-run %t/bundle --check 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: not divi-run %t/bundle --random-inputs 2>&1 | FileCheck %s --check-prefix=SHORT
// SHORT: divi-run: error: '{{.*}}w.bin' was modified or damaged: {{.*}}16383 bytes
// RUN: rm %t/model/w.bin
// RUN: not divi-run %t/bundle --check 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not divi-run %t/bundle --random-inputs 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: divi-run: error: cannot read '{{.*}}w.bin': No such file or directory

func.func @main(%x: tensor<4096xf32> {onnx.name = "x"}) -> (tensor<4096xf32> {onnx.name = "y"}) {
  %w = onnx.Constant #divi.external<"w.bin", offset = 0, length = 16384> : tensor<4096xf32>
  %0 = "onnx.Add"(%x, %w) {onnx_node_name = "add"} : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
