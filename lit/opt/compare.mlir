// Tests of the errors of a bundle's outputs relative to those of another bundle, to a folder and to an archive of arrays.
// RUN: rm -rf %t && mkdir %t
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single -o %t/f32
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --precision=bf16 -o %t/bf16
// RUN: divi-run %t/bf16 --random-inputs=1 --compare %t/f32 | FileCheck %s
// RUN: divi-run %t/bf16 --random-inputs=1 --compare %t/f32 --json | FileCheck %s --check-prefix=JSON
// RUN: divi-run %t/f32 --random-inputs=1 -q -o %t/arrays
// RUN: divi-run %t/f32 --random-inputs=1 --compare %t/arrays | FileCheck %s --check-prefix=EQUAL
// RUN: %python -c "import numpy as np; a = {n: np.load(f'%t/arrays/{n}.npy') for n in ('scores', 'flags')}; np.savez('%t/all.npz', **a); np.savez('%t/one.npz', flags=a['flags']); np.savez('%t/short.npz', scores=a['scores'][:, :4], flags=a['flags'])"
// RUN: divi-run %t/f32 --random-inputs=1 --compare %t/all.npz | FileCheck %s --check-prefix=EQUAL
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --mark-outputs -o %t/f32-tasks
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --mark-outputs=product --precision=bf16 -o %t/bf16-tasks
// RUN: divi-run %t/bf16-tasks --random-inputs=1 --compare %t/f32-tasks --by-task | FileCheck %s --check-prefix=TASKS
// RUN: divi-run %t/bf16-tasks --random-inputs=1 --compare %t/arrays --by-task | FileCheck %s --check-prefix=MISSING
// RUN: divi-run %t/bf16-tasks --random-inputs=1 --compare %t/f32-tasks --by-task --json | FileCheck %s --check-prefix=TASKS-JSON
// RUN: not divi-run %t/bf16 --random-inputs=1 --compare %t/f32 --by-task 2>&1 | FileCheck %s --check-prefix=UNMARKED
// RUN: not divi-run %t/bf16 --random-inputs=1 --by-task 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not divi-opt %s --emit=bundle -q --system=cpu-2 --mark-outputs=head -o %t/none 2>&1 | FileCheck %s --check-prefix=PATTERN
// RUN: not divi-run %t/f32 --random-inputs=1 --compare %t/one.npz 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not divi-run %t/f32 --random-inputs=1 --compare %t/short.npz 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not divi-run %t/f32 --random-inputs=1 --compare %t/none 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: output {{.*}}max error {{.*}}mean {{.*}}top-1 {{.*}}top-5
// CHECK: scores {{ *}}48 {{ *}}{{[1-9]\.[0-9]e-[34]}} {{ *}}{{[1-9]\.[0-9]e-[45]}} {{ *}}{{[0-9.]+}} %
// CHECK: flags {{ *}}8 {{ *}}0.0e0 {{ *}}0.0e0
// JSON: "compared":[{"output":"scores","elements":48,"max_error":{{[0-9.]+}},"mean_error":{{[0-9.]+}},"rms_error":{{[0-9.]+}},"top1":{{[0-9.]+}},"top5":{{[0-9.]+}}}
// EQUAL: scores {{ *}}48 {{ *}}0.0e0 {{ *}}0.0e0 {{ *}}100.0 % {{ *}}100.0 %
// EQUAL: flags
// NAME: divi-run: error: {{.*}}one.npz: has no output 'scores'
// SHAPE: divi-run: error: {{.*}}short.npz: output 'scores' is float [8, 4], but that of the bundle float [8, 6]
// NONE: divi-run: error: {{.*}}none
// TASKS: task {{ *}}elements {{ *}}max error {{ *}}rms error {{ *}}added
// TASKS-NEXT: product {{ *}}48 {{ *}}[[MAX:[0-9.e-]+]] {{ *}}[[RMS:[1-9]\.[0-9]e-3]] {{ *}}[[RMS]]
// TASKS-NEXT: scores {{ *}}48 {{ *}}[[MAX]] {{ *}}[[RMS]] {{ *}}0.0e0
// TASKS-NEXT: flags
// TASKS-NOT: without a reference
// MISSING: scores {{ *}}48 {{ *}}{{[0-9.e-]+}} {{ *}}[[RMS:[1-9]\.[0-9]e-3]] {{ *}}[[RMS]]
// MISSING-NEXT: flags
// MISSING-NEXT: without a reference: product
// TASKS-JSON: "output":"product","elements":48,{{.*}}"rms_error":[[RMS:[0-9.]+]],{{.*}}"added_error":[[RMS]]}
// UNMARKED: divi-run: error: --by-task: the bundle does not return results of tasks; compile it with divi-opt --mark-outputs
// ALONE: --compare
// PATTERN: error: no task with a floating-point result that is not an output has a name like 'head'
func.func @main(%x: tensor<8x64xf32> {onnx.name = "x"})
    -> (tensor<8x6xf32> {onnx.name = "scores"}, tensor<8xi1> {onnx.name = "flags"}) {
  %w = "onnx.Constant"() {value = dense<0.37> : tensor<64x6xf32>} : () -> tensor<64x6xf32>
  %v = "onnx.Constant"() {value = dense<[1.0, 0.9, 0.8, 0.7, 0.6, 0.5]> : tensor<6xf32>} : () -> tensor<6xf32>
  %0 = "onnx.MatMul"(%x, %w) {onnx_node_name = "product"} : (tensor<8x64xf32>, tensor<64x6xf32>) -> tensor<8x6xf32>
  %1 = "onnx.Mul"(%0, %v) {onnx_node_name = "scaled"} : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  %axes = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = "onnx.ReduceMax"(%x, %axes) {keepdims = 0 : si64, onnx_node_name = "largest"} : (tensor<8x64xf32>, tensor<1xi64>) -> tensor<8xf32>
  %3 = "onnx.Greater"(%2, %2) {onnx_node_name = "flag"} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  return %1, %3 : tensor<8x6xf32>, tensor<8xi1>
}
