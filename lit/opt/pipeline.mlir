// A model's pipeline: the problem from divi-opt, the plan from divi-plan, with a certificate that the verifier confirms.
// RUN: divi-opt -q %models/resnet18.onnx --system=cpu-2 --emit=problem -o %t.two.json
// RUN: divi-plan solve %t.two.json --objective=pipeline --iterations=2000 -o %t.two-plan.json 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: divi-plan verify %t.two.json %t.two-plan.json
// RUN: divi-opt -q %models/resnet18.onnx --system=%S/Inputs/eight.toml --emit=problem -o %t.eight.json
// RUN: divi-plan solve %t.eight.json --objective=pipeline --iterations=2000 -o %t.eight-plan.json 2>&1 | FileCheck %s --check-prefix=EIGHT
// RUN: divi-plan verify %t.eight.json %t.eight-plan.json
// TWO: auto{{.*}}: pipeline {{.*}} by exact, gap 0.00 %
// EIGHT: auto{{.*}}: pipeline {{.*}} by exact{{.*}}, gap 0.{{[0-9]+}} %

// A device has one stage, unless devices are shared.
// RUN: divi-plan solve %t.two.json --objective=pipeline --k=3 --iterations=2000 | FileCheck %s --check-prefix=ALONE
// RUN: divi-plan solve %t.two.json --objective=pipeline --k=3 --iterations=2000 --allow-shared-devices | FileCheck %s --check-prefix=SHARED
// ALONE-NOT: shared_devices
// ALONE: "block_device": [
// SHARED: "shared_devices": true
