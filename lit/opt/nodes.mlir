// Tests that the nodes of a system are those of the problem, and that algorithms for several nodes are used.
// RUN: divi-opt %s --system=gpt3-6x4 --emit=problem 2>/dev/null | FileCheck %s --check-prefix=PROBLEM
// RUN: divi-opt %s --system=gpt3-6x4 --partition -q | FileCheck %s --check-prefix=MODULE
// RUN: divi-opt %s --system=gpt3-6x4 --partition -q --inputs=24 --algorithm=replicated --iterations=5 | FileCheck %s --check-prefix=REPLICATED
// RUN: divi-opt %s --system=gpt3-6x4 --partition -q --inputs=24 --algorithm=priced | FileCheck %s --check-prefix=PRICED
// RUN: divi-opt %s --system=gpt3-6x4 --partition -q --contention=exclusive --algorithm=heft | FileCheck %s --check-prefix=BUSES
// RUN: divi-opt %s --system=diviml --partition -q --algorithm=milp --symmetry=time --iterations=1 | FileCheck %s --check-prefix=SYMMETRY
// RUN: not divi-opt %s --system=diviml --partition --symmetry=colour 2>&1 | FileCheck %s --check-prefix=CRITERION
// RUN: not divi-opt %s --system=diviml --partition --algorithm=replicated 2>&1 | FileCheck %s --check-prefix=LATENCY

func.func @main(%x: tensor<1x64xf32>) -> tensor<1x64xf32> {
  %0 = "onnx.Relu"(%x) {onnx_node_name = "a"} : (tensor<1x64xf32>) -> tensor<1x64xf32>
  %1 = "onnx.Sigmoid"(%0) {onnx_node_name = "b"} : (tensor<1x64xf32>) -> tensor<1x64xf32>
  %2 = "onnx.Softmax"(%1) {onnx_node_name = "c", axis = 1 : si64} : (tensor<1x64xf32>) -> tensor<1x64xf32>
  return %2 : tensor<1x64xf32>
}

// PROBLEM: "machines": [
// PROBLEM-NEXT: [0, 1, 2, 3],
// PROBLEM: [20, 21, 22, 23]
// MODULE: divi.device @n0_gpu0 {{.*}}node = 0 : i64
// MODULE: divi.device @n5_gpu3 {{.*}}node = 5 : i64
// REPLICATED: divi.plan = {algorithm = "replicated"
// PRICED: divi.plan = {algorithm = "priced"
// BUSES: contention = "exclusive"
// SYMMETRY: divi.plan = {algorithm = "milp"
// CRITERION: error: symmetry: unknown symmetry criterion 'colour'; expected one of off, first-use, batches, tasks, time
// LATENCY: error: algorithm 'replicated' has no objective latency
