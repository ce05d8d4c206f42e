// Output and messages of divi-opt for a plan. `diviml` has a CPU, a T4 and an A100.
// RUN: divi-opt %models/squeezenet1_1.onnx --partition --system=diviml --iterations=100 -o %t.mlir 2>&1 | FileCheck %s --check-prefix=SUMMARY
// SUMMARY: device{{ *}}tasks
// SUMMARY: cpu
// SUMMARY: t4
// SUMMARY: a100
// SUMMARY: latency {{[0-9.]+}} µs, bound {{[0-9.]+}} µs by {{[a-z-]+}}, gap {{[0-9.]+}} %
// SUMMARY: transfers

// -q suppresses messages, and --json prints JSON.
// RUN: divi-opt %models/squeezenet1_1.onnx --partition --system=diviml --iterations=100 -q -o %t.quiet.mlir 2>&1 | count 0
// RUN: divi-opt %models/squeezenet1_1.onnx --partition --system=diviml --iterations=100 --json -o /dev/null 2>&1 | tail -n 1 | FileCheck %s --check-prefix=JSON
// JSON: {"title":"squeezenet1_1","objective":"latency","algorithm":"auto","value":{{[0-9.]+}},"bound":{{[0-9.]+}},"bound_by":"{{[a-z-]+}}","proof":"{{exact|safe-dual}}","verified_bound":null,"gap":{{[0-9.e-]+}},

// Planning is deterministic, and a plan that is read again results in the same module, byte for byte.
// RUN: cmp %t.mlir %t.quiet.mlir
// RUN: divi-opt %models/squeezenet1_1.onnx --emit=plan --system=diviml --iterations=100 -q -o %t.plan.json
// RUN: divi-opt %models/squeezenet1_1.onnx --plan=%t.plan.json --system=diviml -q -o %t.replayed.mlir
// RUN: cmp %t.mlir %t.replayed.mlir
// RUN: divi-opt %t.mlir -o %t.parsed.mlir
// RUN: cmp %t.mlir %t.parsed.mlir
// RUN: divi-opt %models/squeezenet1_1.onnx --inputs=16 --emit=plan --system=diviml --iterations=50 -q -o %t.batch.json
// RUN: divi-opt %models/squeezenet1_1.onnx --inputs=16 --partition --system=diviml --iterations=50 -q -o %t.batch.mlir
// RUN: divi-opt %models/squeezenet1_1.onnx --plan=%t.batch.json --system=diviml -q -o %t.batch-replayed.mlir
// RUN: cmp %t.batch.mlir %t.batch-replayed.mlir
// RUN: divi-opt %models/squeezenet1_1.onnx --objective=pipeline --emit=plan --system=diviml --iterations=50 -q -o %t.pipe.json
// RUN: divi-opt %models/squeezenet1_1.onnx --objective=pipeline --partition --system=diviml --iterations=50 -q -o %t.pipe.mlir
// RUN: divi-opt %models/squeezenet1_1.onnx --plan=%t.pipe.json --system=diviml -q -o %t.pipe-replayed.mlir
// RUN: cmp %t.pipe.mlir %t.pipe-replayed.mlir

// The plan is for the problem that is written with the same options.
// RUN: divi-opt %models/squeezenet1_1.onnx --emit=problem --system=diviml -q -o %t.problem.json
// RUN: divi-plan verify %t.problem.json %t.plan.json

// A plan for another problem is rejected with the differences.
// RUN: not divi-opt %models/resnet18.onnx --plan=%t.plan.json --system=diviml -q -o %t.none 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not divi-opt %models/squeezenet1_1.onnx --plan=%t.plan.json --system=cpu-2 -q -o %t.none 2>&1 | FileCheck %s --check-prefix=SYSTEM
// RUN: not divi-opt %models/squeezenet1_1.onnx --plan=%t.problem.json --system=cpu-2 -q -o %t.none 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not ls %t.none
// OTHER: error: the plan is for another problem: 23 tasks are new: '/conv1/Conv', {{.*}}, …; 38 tasks are gone: '/features/features.0/Conv', {{.*}}; plan it again
// SYSTEM: error: the plan is for another problem: the tasks are the same, but times, sizes, devices, links or constraints are not: use the system and options that it was planned with, or plan it again
// FORMAT: error: plan '{{.*}}problem.json': not divi-plan/2: format:

// The report, the graph, and the explanation of an operator's placement.
// RUN: divi-opt %models/squeezenet1_1.onnx --report=%t.html --system=diviml --iterations=100 -q -o /dev/null
// RUN: FileCheck %s --check-prefix=HTML --input-file=%t.html
// RUN: divi-opt %models/squeezenet1_1.onnx --report=%t.svg --system=diviml --iterations=100 -q -o /dev/null
// RUN: FileCheck %s --check-prefix=SVG --input-file=%t.svg
// RUN: divi-opt %models/squeezenet1_1.onnx --emit=dot --system=diviml --iterations=100 -q | FileCheck %s --check-prefix=DOT
// RUN: divi-opt %models/squeezenet1_1.onnx --explain=features.0/Conv --system=diviml --iterations=100 -q | FileCheck %s --check-prefix=EXPLAIN
// RUN: not divi-opt %models/squeezenet1_1.onnx --explain=Convolution --system=diviml --iterations=10 -q 2>&1 | FileCheck %s --check-prefix=NO-NODE
// RUN: not divi-opt %models/squeezenet1_1.onnx --explain=Conv --system=diviml --iterations=10 -q 2>&1 | FileCheck %s --check-prefix=MANY
// HTML: <!doctype html>
// SVG: <svg
// DOT: digraph "squeezenet1_1" {
// EXPLAIN: /features/features.0/Conv runs on @{{.*}}
// EXPLAIN: the plan: latency {{.*}} µs, bound {{.*}} µs, gap {{.*}} %
// EXPLAIN: @cpu: takes {{.*}} µs
// EXPLAIN: latency with it here: {{.*}} µs
// EXPLAIN: @t4: takes {{.*}} µs
// EXPLAIN: @a100: takes {{.*}} µs
// NO-NODE: divi-opt: error: unknown operator 'Convolution'; expected one of {{.*}}, …
// MANY: divi-opt: error: 'Conv' matches 26 tasks: use the full name, such as '/features/features.0/Conv'

// Contradictory options are rejected.
// RUN: not divi-opt %s --partition --cost-table 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: not divi-opt %s --partition --report=report.pdf 2>&1 | FileCheck %s --check-prefix=PDF
// RUN: not divi-opt %s --emit=plan --split-input-file 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not divi-opt %s --emit=plan 2>&1 | FileCheck %s --check-prefix=EMPTY
// TABLE: divi-opt: error: --cost-table does not plan; remove --cost-table or the planning options
// PDF: divi-opt: error: --report must name a file that ends in .html or .svg
// SPLIT: divi-opt: error: --emit=plan applies to a single module; remove --split-input-file
// EMPTY: error: has no function with a body that is not private: there is nothing to plan

// Invalid numbers are rejected.
// RUN: not divi-opt %s --partition --inputs=0 2>&1 | FileCheck %s --check-prefix=NO-INPUTS
// RUN: not divi-opt %s --partition --iterations=-1 2>&1 | FileCheck %s --check-prefix=NO-ITERATIONS
// RUN: not divi-opt %s --partition --time-limit=nan 2>&1 | FileCheck %s --check-prefix=NO-TIME
// RUN: not divi-opt %s --explain= 2>&1 | FileCheck %s --check-prefix=NO-NAME
// NO-INPUTS: divi-opt: error: --inputs must be positive
// NO-ITERATIONS: divi-opt: error: --iterations must not be negative
// NO-TIME: divi-opt: error: --time-limit must be a non-negative number of seconds
// NO-NAME: divi-opt: error: --explain needs the name of a node

// A replayed plan keeps its own options, and small stages are merged in the same way again.
// RUN: not divi-opt %models/squeezenet1_1.onnx --plan=%t.plan.json --inputs=4 --system=diviml -q -o %t.none 2>&1 | FileCheck %s --check-prefix=FOR-ONE
// RUN: not divi-opt %models/squeezenet1_1.onnx --plan=%t.plan.json --objective=pipeline --system=diviml -q -o %t.none 2>&1 | FileCheck %s --check-prefix=FOR-LATENCY
// RUN: not divi-opt %models/squeezenet1_1.onnx --plan=%t.batch.json --launches=one --system=diviml -q -o %t.none 2>&1 | FileCheck %s --check-prefix=OTHER-LAUNCHES
// RUN: divi-opt %models/squeezenet1_1.onnx --partition --system=cpu-2 --inputs=4 --launches=many --iterations=10 --emit=plan -q -o %t.many.json
// RUN: FileCheck %s --check-prefix=MANY-LAUNCHES --input-file=%t.many.json
// RUN: divi-opt %models/squeezenet1_1.onnx --partition --system=cpu-2 --inputs=4 --launches=many --iterations=10 -q -o %t.many.mlir
// RUN: divi-opt %models/squeezenet1_1.onnx --plan=%t.many.json --system=cpu-2 -q -o %t.many-replayed.mlir
// RUN: cmp %t.many.mlir %t.many-replayed.mlir
// RUN: divi-opt %models/squeezenet1_1.onnx --partition --min-stage-ops=3 --system=diviml --iterations=100 -q -o %t.merged.mlir
// RUN: divi-opt %models/squeezenet1_1.onnx --plan=%t.plan.json --min-stage-ops=3 --system=diviml -q -o %t.merged-replayed.mlir
// RUN: cmp %t.merged.mlir %t.merged-replayed.mlir
// FOR-ONE: error: the plan is for 1 inputs, not 4: leave the inputs out
// OTHER-LAUNCHES: error: the plan is for launches=many, not one: leave the launches out
// MANY-LAUNCHES: "format": "divi-plan/3"
// FOR-LATENCY: error: the plan is for objective latency, not pipeline: leave the objective out
