// Tests that a model that folds to constants has an empty plan, which is optimal, and a bundle that returns the constants.

// RUN: divi-opt %s --partition --system=cpu-2 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=SUMMARY --input-file=%t.err --implicit-check-not=warning
// CHECK: divi.plan = {{.*}}bound = 0.0{{.*}}value = 0.0
// CHECK: func.func @main
// CHECK-NOT: divi.launch
// SUMMARY: latency 0.0 µs, bound 0.0 µs by no tasks, gap 0.00 %

// RUN: divi-opt %s --emit=problem --system=cpu-2 -q -o %t.problem.json
// RUN: divi-opt %s --emit=plan --system=cpu-2 -q -o %t.plan.json
// RUN: divi-plan verify %t.problem.json %t.plan.json | FileCheck %s --check-prefix=VALUE
// RUN: divi-plan bound %t.problem.json | FileCheck %s --check-prefix=BOUND
// RUN: divi-plan bound %t.problem.json --objective=pipeline | FileCheck %s --check-prefix=BOUND
// RUN: divi-opt %s --partition --objective=pipeline --system=cpu-2 -q -o /dev/null
// RUN: divi-opt %s --partition --inputs=4 --system=cpu-2 -q -o /dev/null
// RUN: divi-opt %s --partition --system=cpu-2 --contention=exclusive -q -o /dev/null --report=%t.html
// VALUE: 0
// BOUND: best {{ *}}0.000

// RUN: rm -rf %t.bundle %t.out && divi-opt %s --emit=bundle --system=cpu-2 -q -o %t.bundle
// RUN: divi-run %t.bundle --random-inputs --output %t.out 2>&1 | FileCheck %s --check-prefix=RAN
// RUN: %python -c "import numpy; print(numpy.load('%t.out/shape.npy'), numpy.load('%t.out/half.npy'))" | FileCheck %s --check-prefix=OUTPUT
// RAN-NOT: inf %
// RAN: latency
// OUTPUT: [2 3] 0.5

// Tests that an unknown input is reported with the known ones.
// RUN: not divi-run %t.bundle --input nosuch=%S/Inputs/four.npy --random-inputs 2>&1 | FileCheck %s --check-prefix=NOSUCH
// NOSUCH: divi-run: error: unknown input 'nosuch'; expected one of 'x'
func.func @main(%x: tensor<2x3xf32> {onnx.name = "x"}) -> (tensor<2xi64> {onnx.name = "shape"}, tensor<f32> {onnx.name = "half"}) {
  %0 = onnx.Constant dense<[2, 3]> : tensor<2xi64>
  %1 = onnx.Constant dense<0.5> : tensor<f32>
  return %0, %1 : tensor<2xi64>, tensor<f32>
}
