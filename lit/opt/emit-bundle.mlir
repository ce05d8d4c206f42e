// Tests that --emit=bundle compiles a plan for CPUs, and that divi-run runs it.

// RUN: rm -rf %t.bundle %t.out
// RUN: divi-opt %s --emit=bundle --system=cpu-2 --fuse=none --pin='double=cpu0' --pin='shift=cpu1' -q -o %t.bundle
// RUN: divi-run %t.bundle --check 2>&1 | FileCheck %s --allow-empty --check-prefix=CHECKED
// RUN: divi-run %t.bundle --input x=%S/Inputs/four.npy --output %t.out -q
// RUN: %python -c "import numpy; print(numpy.load('%t.out/y.npy').ravel())" | FileCheck %s --check-prefix=OUTPUT
// RUN: FileCheck %s --check-prefix=BUNDLE --input-file=%t.bundle/bundle.json
// CHECKED-NOT: error
// OUTPUT: [3. 5. 7. 9.]
// BUNDLE: "format":{{ *}}"divi-bundle/3"
// BUNDLE: "mode":{{ *}}"latency"

// The output is deterministic.
// RUN: rm -rf %t.again && divi-opt %s --emit=bundle --system=cpu-2 --fuse=none --pin='double=cpu0' --pin='shift=cpu1' -q -o %t.again
// RUN: diff -r %t.bundle %t.again

// Models that cannot be compiled are rejected, without output.
// RUN: not divi-opt %s --emit=bundle --system=cpu-2 -q 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not divi-opt %s --emit=bundle --system=cpu-2 --cpu=z80 -q -o %t.none 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not divi-opt %s --partition --system=cpu-2 --cpu=native -q 2>&1 | FileCheck %s --check-prefix=FOR-BUNDLE
// RUN: not divi-opt %s --emit=bundle --system=%S/Inputs/old-gpu.toml -q -o %t.none 2>&1 | FileCheck %s --check-prefix=GPU
// RUN: not divi-opt %s --emit=bundle --system=cpu-2 -q -o %S/Inputs 2>&1 | FileCheck %s --check-prefix=NOT-OURS
// RUN: not ls %t.none
// FOLDER: divi-opt: error: --emit=bundle writes a folder; name it with -o
// CPU: error: unsupported processor 'z80'; expected native, x86-64-v3, x86-64-v4 or sapphirerapids
// FOR-BUNDLE: divi-opt: error: --cpu requires --emit=bundle or --precision=auto
// GPU: error: unsupported GPU architecture 'sm_70'; expected sm_80 to sm_121
// NOT-OURS: error: cannot write '{{.*}}': '{{.*}}' is in it, which divi did not write: move it, or choose another folder

func.func @main(%x: tensor<1x4xf32> {onnx.name = "x"}) -> (tensor<1x4xf32> {onnx.name = "y"}) {
  %one = onnx.Constant dense<1.0> : tensor<f32>
  %0 = "onnx.Add"(%x, %x) {onnx_node_name = "double"} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = "onnx.Add"(%0, %one) {onnx_node_name = "shift"} : (tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}
