// RUN: divi-opt %s --cost-table --system=%S/../passes/Inputs/system.toml | FileCheck %s --check-prefix=TABLE
// RUN: divi-opt %s --cost-table --fuse=none --system=%S/../passes/Inputs/system.toml | FileCheck %s --check-prefix=UNFUSED
// RUN: divi-opt %s --cost-table=csv --system=cpu-2 -o %t.csv && FileCheck %s --check-prefix=CSV --input-file=%t.csv
// RUN: divi-opt %s --cost-table | FileCheck %s --check-prefix=HOST
// RUN: divi-opt %s --emit=problem --system=diviml --inputs=4 -o %t.json && FileCheck %s --check-prefix=PROBLEM --input-file=%t.json
// RUN: divi-opt %s --batch=4 --cost-table --system=cpu-2 | FileCheck %s --check-prefix=BATCH
// RUN: not divi-opt %s --emit=problem --cost-table 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not divi-opt %s --emit=problem --system=nowhere -o %t.none.json 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not ls %t.none.json
// RUN: divi-opt %s --divi-annotate-cost=system=cpu-2 | divi-opt - --cost-table | FileCheck %s --check-prefix=KEPT
// RUN: not divi-opt %s --emit=problem --split-input-file 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not divi-opt %s --cost-table --no-implicit-module 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not divi-opt %s --contention=shared 2>&1 | FileCheck %s --check-prefix=UNREAD
// RUN: not divi-opt %s --cost-table --inputs=2 2>&1 | FileCheck %s --check-prefix=UNREAD
// RUN: not divi-opt %s --emit=problem --resident=0.5 2>&1 | FileCheck %s --check-prefix=UNPLANNED
// RUN: not divi-opt %s --cost-table --fuse=some 2>&1 | FileCheck %s --check-prefix=FUSE

// Tests that one flag canonicalizes, fuses, annotates and prints, with no other output on stdout.
// TABLE:      task   kind         share  MFLOP  kB  cpu0 (us)  bound  gpu0 (us)  bound
// TABLE-NEXT: first  matmul_relu  100.0%
// TABLE-NEXT: all 1 tasks
// TABLE-NEXT: cpu0: batch 1, all tasks take 176 B of 1.0 GiB; 0 tasks measured, 0 interpolated, 1 estimated
// TABLE-NEXT: gpu0: batch 1, all tasks take 176 B of 2.0 GiB; 0 tasks measured, 0 interpolated, 1 estimated
// TABLE-NOT: {{.}}

// UNFUSED-DAG: first   MatMul
// UNFUSED-DAG: second  Relu
// UNFUSED: all 3 tasks

// CSV:      task,kind,flops,input_bytes,output_bytes,weight_bytes,scratch_bytes,cpu0_bound,cpu0_batch_1_us
// CSV-NEXT: first,matmul_relu,{{[0-9]+}},32,16,128,0,

// HOST: cpu0: batch 1, all tasks take 176 B of

// PROBLEM: "format": "divi-problem/1"
// PROBLEM: "L": 4
// PROBLEM: {"id": 1, "name": "first", "time": {"1": [{{[0-9., ]+}}], "4": [{{[0-9., ]+}}]

// Four inputs have four times the work, but the weights only once.
// BATCH: first matmul_relu 100.0% 0.000 0.320

// Existing costs are shown, unless a system replaces them.
// KEPT: cpu1 (us)

// UNREAD: divi-opt: error: --{{contention|inputs}} requires a plan or a problem; add --partition or --emit=problem
// UNPLANNED: divi-opt: error: --resident requires a plan; add --partition, or remove it
// SPLIT: divi-opt: error: --emit=problem applies to a single module; remove --split-input-file
// NONE: divi-opt: error: nothing to write: '{{.*}}costs.mlir' has no builtin.module
// BOTH: divi-opt: error: --emit, --cost-table and --explain are mutually exclusive
// NOWHERE: error: 'nowhere' is neither a file nor a preset
// FUSE: error: level is 'some': it must be none, conv or full
func.func @main(%x: tensor<1x2x4xf32> {onnx.name = "x"}) -> tensor<1x4xf32> {
  %w = onnx.Constant dense<1.0> : tensor<8x4xf32>
  %v = "onnx.Flatten"(%x) {onnx_node_name = "view"} : (tensor<1x2x4xf32>) -> tensor<1x8xf32>
  %0 = "onnx.MatMul"(%v, %w) {onnx_node_name = "first"} : (tensor<1x8xf32>, tensor<8x4xf32>) -> tensor<1x4xf32>
  %1 = "onnx.Identity"(%0) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %2 = "onnx.Relu"(%1) {onnx_node_name = "second"} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %2 : tensor<1x4xf32>
}
