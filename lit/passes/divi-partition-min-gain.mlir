// Several devices are used only for the requested gain; the bound of the problem also holds for the plan on one device.
// RUN: divi-opt %s --divi-partition="min-gain=3.0" --divi-verify-plan 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: divi-opt %s --divi-partition="min-gain=3.2" --divi-verify-plan 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: divi-opt %s --divi-partition="min-gain=10 pin=slow=gpu0" --divi-verify-plan 2>&1 | FileCheck %s --check-prefix=PINNED
// RUN: divi-opt %s --divi-partition="min-gain=10 pin=slow=gpu0,last=cpu0" --divi-verify-plan 2>&1 | FileCheck %s --check-prefix=APART
// RUN: divi-opt %s --divi-partition="min-gain=10 algorithm=met pin=slow=gpu0,last=gpu0,fast=gpu0" 2>&1 | FileCheck %s --check-prefix=THERE
// RUN: divi-opt %s --divi-partition="min-gain=10 inputs=2 launches=one" --divi-verify-plan 2>&1 | FileCheck %s --check-prefix=QUEUE
// RUN: divi-opt %s --divi-partition="objective=pipeline min-gain=1.5" --divi-verify-plan 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: divi-opt %s --divi-partition="objective=pipeline min-gain=10" --divi-verify-plan 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: divi-opt %s --partition --emit=plan -o %t.json -q
// RUN: not divi-opt %s --partition --plan=%t.json --min-gain=0.1 2>&1 | FileCheck %s --check-prefix=REPLAY
// RUN: not divi-opt %s --partition --min-gain=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not divi-opt %s --divi-partition="min-gain=nan" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not divi-opt %s --min-gain=0.1 2>&1 | FileCheck %s --check-prefix=UNREAD

module {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1000000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x25xf32>) -> tensor<1x25xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 50.0}>, onnx_node_name = "fast"} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    %1 = "onnx.Abs"(%0) {divi.cost = #divi.cost<@cpu0 = {1 = 20.0}, @gpu0 = {1 = 1.0}>, onnx_node_name = "slow"} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    %2 = "onnx.Neg"(%1) {divi.cost = #divi.cost<@cpu0 = {1 = 20.0}, @gpu0 = {1 = 1.0}>, onnx_node_name = "last"} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    return %2 : tensor<1x25xf32>
  }
}

// TWO-NOT: warning
// TWO: value = 1.220000e+01
// TWO: "onnx.Abs"{{.*}}divi.device = @gpu0

// ONE: warning: one device is used: several would gain 309.8 %, less than the 320.0 % that min-gain requires
// ONE: warning: @gpu0 is left idle
// ONE: bound = 1.220000e+01{{.*}}value = 5.000000e+01
// ONE-COUNT-3: divi.device = @cpu0

// Pins restrict the choice of the one device.
// PINNED: warning: one device is used: several would gain 327.9 %
// PINNED-COUNT-3: divi.device = @gpu0

// Tasks that pins keep on two devices stay there.
// APART-NOT: one device is used
// APART: "onnx.Abs"{{.*}}divi.device = @gpu0
// APART: "onnx.Neg"{{.*}}divi.device = @cpu0

// A plan that uses one device anyway causes no warning.
// THERE-NOT: one device is used
// THERE-COUNT-3: divi.device = @gpu0

// A device runs one batch of a task, and these are for one input: two inputs need both devices.
// QUEUE-NOT: one device is used
// QUEUE: divi.batches = [#divi.batch<@cpu0, {{.*}}#divi.batch<@gpu0,

// STAGES-NOT: warning
// STAGES: divi.device = @cpu0
// STAGES: divi.device = @gpu0

// STAGE: warning: one device is used: several would gain
// STAGE-COUNT-3: divi.device = @cpu0

// REPLAY: error: min-gain cannot change the devices of a replayed plan: remove plan or min-gain
// NEGATIVE: min-gain must be a non-negative fraction, such as 0.05 for 5 %
// UNREAD: --min-gain requires a plan; add --partition, or remove it
