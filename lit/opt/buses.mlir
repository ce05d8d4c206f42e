// Tests a model on a machine with buses, from file to stages: every output of a plan shows its buses.
// RUN: divi-opt %models/googlenet.onnx --partition --system=a6000 --algorithm=heft --report=%t.html -q -o %t.mlir
// RUN: FileCheck %s --check-prefix=MODULE < %t.mlir
// RUN: grep -q pcie1 %t.html
// RUN: divi-opt %models/googlenet.onnx --partition --system=a6000 --algorithm=heft --report=%t.svg -q -o /dev/null
// RUN: grep -q pcie1 %t.svg
// RUN: divi-opt %models/googlenet.onnx --system=a6000 --algorithm=heft --emit=dot -q | FileCheck %s --check-prefix=DOT
// RUN: divi-opt %models/googlenet.onnx --system=a6000 --algorithm=heft --explain=/conv1/conv/Conv -q | FileCheck %s --check-prefix=EXPLAIN
// RUN: divi-opt %models/googlenet.onnx --system=a6000 --cold --algorithm=heft --emit=dot --report=%t.cold.html -q | FileCheck %s --check-prefix=DOT
// RUN: grep -q pcie1 %t.cold.html

// A plan written to a file, and replayed.
// RUN: divi-opt %models/googlenet.onnx --system=a6000 --algorithm=heft --emit=plan -q -o %t.json
// RUN: FileCheck %s --check-prefix=PLAN < %t.json
// RUN: divi-opt %models/googlenet.onnx --system=a6000 --emit=problem -q -o %t.problem.json
// RUN: divi-plan verify %t.problem.json %t.json
// RUN: divi-opt %models/googlenet.onnx --partition --system=a6000 --plan=%t.json -q -o %t.replayed.mlir
// RUN: cmp %t.replayed.mlir %t.mlir

// A problem contains the options that are part of it: plans with the same options are for it.
// RUN: divi-opt %models/googlenet.onnx --system=a6000 --cold --contention=shared --pin=/fc/*=gpu3 --emit=problem -q -o %t.cold.json
// RUN: FileCheck %s --check-prefix=PROBLEM < %t.cold.json
// RUN: divi-opt %models/googlenet.onnx --system=a6000 --cold --contention=shared --pin=/fc/*=gpu3 --algorithm=heft --emit=plan -q -o %t.json
// RUN: divi-plan verify %t.cold.json %t.json

// A plan for another contention than the machine's overrides it; an option that contradicts the plan is rejected.
// RUN: divi-plan solve %t.problem.json --contention=shared --algorithm=heft -q -o %t.json
// RUN: divi-opt %models/googlenet.onnx --partition --system=a6000 --plan=%t.json -q | FileCheck %s --check-prefix=SHARED
// RUN: divi-opt %models/googlenet.onnx --partition --system=a6000 --contention=shared --plan=%t.json -q | FileCheck %s --check-prefix=SHARED
// RUN: not divi-opt %models/googlenet.onnx --partition --system=a6000 --contention=off --plan=%t.json -q 2>&1 | FileCheck %s --check-prefix=OTHER

// Small stages are merged, which may add waiting time, and transfers get new times.
// RUN: divi-opt %models/googlenet.onnx --partition --system=a6000 --algorithm=heft --min-stage-ops=3 -q -o %t.merged.mlir
// RUN: divi-opt %t.merged.mlir --divi-verify-plan --divi-inline-stages --divi-verify-plan -o /dev/null
// RUN: grep -c divi.launch %t.mlir > %t.counts
// RUN: grep -c divi.launch %t.merged.mlir >> %t.counts
// RUN: %python -c "import sys; a, b = map(int, open(sys.argv[1])); sys.exit(b >= a)" %t.counts

// MODULE: divi.contention = "exclusive"
// MODULE: divi.transfer %{{.*}} {divi.end = {{.*}} : f64, divi.start = {{.*}} : f64}
// DOT: digraph
// EXPLAIN: /conv1/conv/Conv runs on @
// PLAN: "contention": "exclusive"
// PLAN: "transfers": [
// PROBLEM: "contention": "shared"
// PROBLEM: "pin": 3
// PROBLEM: "cold": {"host": 0, "direct": [
// SHARED: divi.contention = "shared"
// SHARED-SAME: divi.plan = {{.*}}contention = "shared"
// OTHER: error: the plan is for contention shared, not off: leave the contention out
