// Tests that --survive=1 adds to a bundle the programs for the loss of a node, with shared code and weights.
// RUN: rm -rf %t.both %t.damaged %t.again %t.pinned %t.none && divi-opt %s --emit=bundle -q --system=cpu-2x1 --pin=first=n0_cpu --survive=1 -o %t.both
// RUN: FileCheck %s --check-prefix=LOSSES --input-file=%t.both/bundle.json
// RUN: FileCheck %s --check-prefix=WITHOUT --input-file=%t.both/without-1.json
// RUN: divi-run %t.both --check | FileCheck %s --check-prefix=VALID
// RUN: divi-run %t.both --info | FileCheck %s --check-prefix=INFO
// RUN: divi-run %t.both --random-inputs | FileCheck %s --check-prefix=ALONE

// LOSSES: "files": [
// LOSSES: "path":"without-1.json"
// LOSSES: "losses": [
// LOSSES-NEXT: {"node":1,"file":"without-1.json"}
// WITHOUT-NOT: "n1_cpu"
// WITHOUT: "id":"n0_cpu"
// WITHOUT-SAME: "node":0
// WITHOUT-NOT: "n1_cpu"
// VALID: valid, 2 files
// INFO: loss      of node 1: continues, predicted {{[0-9.]+}} µs, bound {{[0-9.]+}} µs
// ALONE: latency   median

// The files are checked.
// RUN: cp -r %t.both %t.damaged && sed -i s/n0_cpu/n7_cpu/ %t.damaged/without-1.json
// RUN: not divi-run %t.damaged --check 2>&1 | FileCheck %s --check-prefix=DAMAGED
// DAMAGED: divi-run: error: '{{.*}}without-1.json' was modified or damaged: its SHA-256 does not match its contents; compile the model again

// A bundle is replaced with all of its files, and written equally each time.
// RUN: cp -r %t.both %t.again
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2x1 --pin=first=n0_cpu --survive=1 -o %t.again && diff -r %t.both %t.again
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2x1 --pin=first=n0_cpu -o %t.again && not ls %t.again/without-1.json

// A loss without a plan is a warning, and is recorded with the reason.
// RUN: divi-opt %s --emit=bundle --system=cpu-2x1 --pin=second=n1_cpu --survive=1 -o %t.pinned 2>&1 | FileCheck %s --check-prefix=WARNING
// RUN: divi-run %t.pinned --info | FileCheck %s --check-prefix=PINNED
// WARNING: warning: the loss of node 1 ends a job: {{.*}}n1_cpu
// PINNED: loss      of node 1: ends a job: {{.*}}n1_cpu

// RUN: not divi-opt %s --emit=bundle -q --system=cpu-2 --survive=1 -o %t.none 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not divi-opt %s --emit=bundle -q --survive=1 -o %t.none 2>&1 | FileCheck %s --check-prefix=SYSTEM
// RUN: not divi-opt %s --partition -q --system=cpu-2x1 --survive=1 2>&1 | FileCheck %s --check-prefix=EMIT
// RUN: not divi-opt %s --emit=bundle -q --system=cpu-2x1 --survive=2 -o %t.none 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not divi-opt %s --emit=bundle -q --system=cpu-2x1 --survive=1 --plan=p.json -o %t.none 2>&1 | FileCheck %s --check-prefix=PLAN
// RUN: not ls %t.none
// ONE: error: --survive plans for the loss of a node, and the system has no second one: describe it with {{.*node.*}}
// SYSTEM: divi-opt: error: --survive plans for other systems: name the system with --system
// EMIT: divi-opt: error: --survive requires --emit=bundle
// TWO: divi-opt: error: --survive is 2; expected the number of nodes that may be lost, 0 or 1
// PLAN: divi-opt: error: --survive plans for other systems, and a replayed plan is for one: remove --plan or --survive

func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = "onnx.Exp"(%x) {onnx_node_name = "first"} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = "onnx.Softmax"(%0) {onnx_node_name = "second", axis = -1 : si64} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
