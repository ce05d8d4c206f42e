// RUN: divi-opt %s --divi-print-costs | FileCheck %s --check-prefix=TEXT
// RUN: divi-opt %s --divi-print-costs=limit=1 | FileCheck %s --check-prefix=LIMIT
// RUN: divi-opt %s --divi-print-costs=format=csv | FileCheck %s --check-prefix=CSV
// RUN: divi-opt %s --divi-print-costs="format=csv output=%t.csv" -o /dev/null && FileCheck %s --check-prefix=CSV --input-file=%t.csv
// RUN: not divi-opt %s --divi-print-costs=format=html 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not divi-opt %s --divi-print-costs=limit=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not divi-opt %s --divi-print-costs=output=/no/such/folder/x 2>&1 | FileCheck %s --check-prefix=WRITE

// Tests that the most expensive task comes first, with its bound on each device; a device that cannot run a task has no time.
// TEXT:      task   kind       share  MFLOP     kB  cpu0 (us)    bound  gpu0 (us)   bound
// TEXT-NEXT: where  Custom     75.0%  0.000  0.036       30.0  compute          -
// TEXT-NEXT: conv   conv_relu  25.0%  2.000  3.000      100.0  compute       10.0  memory
// TEXT-NEXT: all 2 tasks              2.000  3.036      130.0                   -
// TEXT-NEXT: cpu0: batch 1, all tasks take 48 B of 1.0 KiB; 0 tasks measured, 0 interpolated, 2 estimated
// TEXT-NEXT: gpu0: batch 1, all tasks take 48 B of 1.0 KiB; 1 tasks measured, 0 interpolated, 0 estimated

// LIMIT:      where
// LIMIT-NEXT: all 2 tasks

// CSV:      task,kind,flops,input_bytes,output_bytes,weight_bytes,scratch_bytes,cpu0_bound,cpu0_batch_1_us,gpu0_bound,gpu0_batch_1_us,gpu0_batch_4_us
// CSV-NEXT: conv,conv_relu,2000000,1000,2000,0,16,compute,100,memory,10,25.5
// CSV-NEXT: where,Custom,0,4,32,0,0,compute,30,,,

// FORMAT: error: format is 'html': it must be text or csv
// NEGATIVE: error: limit is -1: it must not be negative (0 shows every task)
// WRITE: error: cannot write '/no/such/folder/x': {{.*}}o such file or directory
module attributes {divi.costs = {cpu0 = {estimated = 2, interpolated = 0, measured = 0}, gpu0 = {estimated = 0, interpolated = 0, measured = 1}}} {
  divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1024 : i64, batch_sizes = [1, 4]}
  func.func @main(%x: tensor<1x4xf32>) -> tensor<1x8xf32> {
    %0 = divi.cluster "conv_relu"(%x : tensor<1x4xf32>) -> tensor<1x4xf32> attributes {
        divi.cost = #divi.cost<@cpu0 = {1 = 100.0}, @gpu0 = {1 = 10.0, 4 = 25.5}>, divi.members = ["conv", "relu"],
        divi.bound = {cpu0 = "compute", gpu0 = "memory"}, divi.flops = 2000000 : i64, divi.input_bytes = 1000 : i64,
        divi.output_bytes = 2000 : i64, divi.scratch_bytes = 16 : i64, divi.weight_bytes = 0 : i64} {
    ^bb0(%a: tensor<1x4xf32>):
      %2 = "onnx.Relu"(%a) : (tensor<1x4xf32>) -> tensor<1x4xf32>
      divi.yield %2 : tensor<1x4xf32>
    }
    %1 = "onnx.Custom"(%0) {function_name = "Where", onnx_node_name = "where", divi.cost = #divi.cost<@cpu0 = {1 = 30.0}>,
        divi.bound = {cpu0 = "compute"}, divi.input_bytes = 4 : i64, divi.output_bytes = 32 : i64} : (tensor<1x4xf32>) -> tensor<1x8xf32>
    return %1 : tensor<1x8xf32>
  }
}
