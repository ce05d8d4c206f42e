// One model per stage, their order, and the plan.
// RUN: rm -rf %t && divi-opt %models/squeezenet1_1.onnx --emit=onnx --weights=random:1 --objective=pipeline --system=cpu-2 --iterations=50 -q -o %t
// RUN: ls %t %t/stages | FileCheck %s --check-prefix=FILES
// RUN: FileCheck %s --check-prefix=STAGES --input-file=%t/stages.json
// RUN: FileCheck %s --check-prefix=PLAN --input-file=%t/plan.json
// FILES: plan.json
// FILES-NEXT: stages
// FILES-NEXT: stages.json
// FILES: main.cpu0.0.onnx
// FILES-NEXT: main.cpu1.0.onnx
// FILES-NEXT: weights.bin
// STAGES: "format": "divi-stages/1"
// PLAN: "format": "divi-plan/2"

// A stage can be imported again, and the folder can be written again with the same bytes.
// RUN: divi-opt %t/stages/main.cpu0.0.onnx | FileCheck %s --check-prefix=STAGE
// RUN: cp -r %t %t.first
// RUN: divi-opt %models/squeezenet1_1.onnx --emit=onnx --weights=random:1 --objective=pipeline --system=cpu-2 --iterations=50 -q -o %t
// RUN: diff -r %t %t.first && rm -rf %t.first
// STAGE: func.func @main(

// A module of one function becomes one model.
// RUN: divi-opt %models/squeezenet1_1.onnx --divi-emit-onnx="output=%t.whole.onnx weights=random:1" -o /dev/null
// RUN: divi-opt %t.whole.onnx | FileCheck %s --check-prefix=STAGE

// Modules that cannot be exported are rejected, without output.
// RUN: not divi-opt %models/squeezenet1_1.onnx --emit=onnx --system=cpu-2 --iterations=10 -q -o %t.none 2>&1 | FileCheck %s --check-prefix=NO-WEIGHTS
// RUN: not divi-opt %models/squeezenet1_1.onnx --emit=onnx --system=cpu-2 --iterations=10 -q --weights=some -o %t.none 2>&1 | FileCheck %s --check-prefix=SEED
// RUN: not divi-opt %models/squeezenet1_1.onnx --emit=onnx --system=cpu-2 -q 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not divi-opt %models/squeezenet1_1.onnx --partition --weights=random:1 -q 2>&1 | FileCheck %s --check-prefix=FOR-ONNX
// RUN: not divi-opt %models/squeezenet1_1.onnx --divi-emit-onnx=weights=random:1 -o /dev/null 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not divi-opt %models/squeezenet1_1.onnx --emit=onnx --weights=random:1 --system=cpu-2 --iterations=10 -q -o %S 2>&1 | FileCheck %s --check-prefix=NOT-OURS
// RUN: not ls %t.none
// NO-WEIGHTS: error: 'onnx.Constant' op '{{.*}}' refers to '{{.*}}', which does not exist; restore the weights, pass their folder with --weights-dir, or generate random ones with --weights=random:SEED
// SEED: divi-opt: error: --weights is 'some'; expected random:SEED, for instance random:1
// FOLDER: divi-opt: error: --emit=onnx writes a folder with one model per stage; name it with -o
// FOR-ONNX: divi-opt: error: --weights requires --emit=onnx or --emit=bundle
// MISSING: error: output is missing: name a folder for stages, or a file that ends in .onnx for one model
// NOT-OURS: error: cannot write '{{.*}}': '{{.*}}' is in it, which divi did not write: move it, or choose another folder
