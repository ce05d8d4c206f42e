// RUN: divi-opt %s --divi-partition="algorithm=heft contention=exclusive cold=true" -o %t.planned.mlir
// RUN: FileCheck %s < %t.planned.mlir
// RUN: divi-opt %t.planned.mlir --divi-verify-plan --divi-outline --divi-verify-plan -o %t.outlined.mlir
// RUN: FileCheck %s --check-prefix=STAGES < %t.outlined.mlir
// RUN: divi-opt %t.outlined.mlir --divi-inline-stages --divi-verify-plan | FileCheck %s
// RUN: divi-opt %s --divi-partition="algorithm=sortinghat contention=shared cold=true iterations=50" --divi-verify-plan --divi-outline --divi-verify-plan | FileCheck %s --check-prefix=SORTINGHAT
// RUN: divi-opt %s --divi-partition="algorithm=sortinghat cold=true iterations=50" --divi-verify-plan --divi-outline --divi-verify-plan --divi-inline-stages --divi-verify-plan | FileCheck %s --check-prefix=SORTINGHAT

// All copied parameters are still resident.
// RUN: divi-opt %s --divi-partition="algorithm=heft contention=exclusive resident=1.0" --divi-verify-plan --divi-outline --divi-verify-plan | FileCheck %s --check-prefix=RESIDENT
// A new cold start removes residency.
// RUN: divi-opt %s --divi-partition="algorithm=heft contention=exclusive resident=1.0" --divi-partition="algorithm=heft cold=true" --divi-verify-plan | FileCheck %s

// Moving a task by hand would require new copies of its parameters.
// RUN: sed '0,/divi.device = @gpu0/s//divi.device = @cpu0/' %t.planned.mlir > %t.edited.mlir
// RUN: not divi-opt %t.edited.mlir --divi-verify-plan 2>&1 | FileCheck %s --check-prefix=EDITED
// RUN: not divi-opt %t.edited.mlir --divi-outline 2>&1 | FileCheck %s --check-prefix=OUTLINED
// RUN: not divi-opt %t.planned.mlir --divi-outline="min-stage-ops=2" 2>&1 | FileCheck %s --check-prefix=MERGE
// RUN: not divi-opt %s --divi-partition="objective=pipeline cold=true" 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: not divi-opt %s --divi-partition="resident=1.5" 2>&1 | FileCheck %s --check-prefix=SHARE
// RUN: divi-opt %s --cold --algorithm=heft --emit=plan -q -o %t.json
// RUN: divi-opt %s --cold --plan=%t.json --partition -q | FileCheck %s --check-prefix=STAGES
// RUN: not divi-opt %s --resident=0.5 --plan=%t.json --partition 2>&1 | FileCheck %s --check-prefix=REPLAY
// RUN: not divi-opt %s --plan=%t.json --partition 2>&1 | FileCheck %s --check-prefix=WARM
// RUN: not divi-opt %s --partition --resident=1.5 2>&1 | FileCheck %s --check-prefix=OPTION

// Links transfer 1000 bytes per microsecond after a latency of 1 us: an input takes 5 us, the parameters 21 us.
module {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 100000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "down"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64, bus = "up"}
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "a", divi.weight_bytes = 20000 : i64, divi.cost = #divi.cost<@cpu0 = {1 = 500.0}, @gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = "onnx.Abs"(%0) {onnx_node_name = "b", divi.cost = #divi.cost<@gpu0 = {1 = 10.0}>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}

// CHECK: divi.cold
// CHECK-SAME: cold
// CHECK: onnx.Relu
// CHECK-SAME: divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = {{[0-9.]+}}, end = {{[0-9.]+}}>]
// CHECK-NOT: divi.resident
// CHECK: onnx.Abs
// CHECK-NOT: divi.copies

// STAGES: func.func private @main.gpu0.0
// STAGES: onnx.Relu
// STAGES-SAME: divi.copies
// STAGES: func.func @main(

// SORTINGHAT: divi.plan = {algorithm = "sortinghat"

// RESIDENT: value = 3.000000e+01 : f64
// RESIDENT-NOT: divi.copies
// RESIDENT: divi.resident = @gpu0

// EDITED: error: was edited after planning, and its copies of parameters are for the old placement: run divi-partition again
// OUTLINED: error: the plan does not hold:
// MERGE: error: stages cannot be merged in a cold start (parameters arrive with the input); remove the minimum size of stages
// PIPELINE: error: a cold start is for one input, objective latency, not pipeline
// SHARE: error: resident is 1.5: it must be a fraction from 0 to 1
// REPLAY: error: a plan with resident parameters cannot be replayed, because these follow from the previous plan: remove plan or resident
// WARM: error: the plan is for another problem: the tasks are the same, but times, sizes, devices, links or constraints are not
// OPTION: error: --resident must be a share from 0 to 1
