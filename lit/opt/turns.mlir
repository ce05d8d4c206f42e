// Tests that a pipeline whose first stage takes batches and whose second stage has two devices is planned, compiled and run, and
// that its outputs are those of single inputs.

// DEFINE: %{model} = %s --system=%S/Inputs/three-cores.toml --fuse=none --pin=a=cpu0 --exclude=b*=cpu0 --exclude=c=cpu0 -q
// DEFINE: %{pipeline} = --objective=pipeline --max-batch=2 --replicas=2 --min-gain=0 --iterations=200
// RUN: rm -rf %t.bundle %t.single %t.out && mkdir %t.out
// RUN: divi-opt %{model} %{pipeline} --emit=bundle -o %t.bundle --report=%t.html
// RUN: divi-opt %{model} --emit=bundle -o %t.single
// RUN: FileCheck %s --check-prefix=BUNDLE --input-file=%t.bundle/bundle.json
// BUNDLE: "mode":"pipeline","inputs":4
// RUN: %python -c "import numpy; x = numpy.linspace(-2, 2, 256, dtype='f').reshape(4, 64); numpy.save('%t.out/x.npy', x); [numpy.save('%t.out/x%d.npy' % i, x[i:i + 1]) for i in range(4)]"
// RUN: divi-run %t.bundle --input x=%t.out/x.npy --output %t.out/all -q
// RUN: divi-run %t.single --input x=%t.out/x0.npy --output %t.out/0 -q
// RUN: divi-run %t.single --input x=%t.out/x1.npy --output %t.out/1 -q
// RUN: divi-run %t.single --input x=%t.out/x2.npy --output %t.out/2 -q
// RUN: divi-run %t.single --input x=%t.out/x3.npy --output %t.out/3 -q
// RUN: %python -c "import numpy; y = numpy.load('%t.out/all/y.npy'); each = numpy.concatenate([numpy.load('%t.out/%d/y.npy' % i) for i in range(4)]); print(y.shape, abs(y).max() > 0.1, abs(y - each).max() < 1e-6)" | FileCheck %s --check-prefix=EQUAL
// EQUAL: (4, 64) True True

// Outputs stay the same with several requests in flight.
// RUN: divi-run %t.bundle --input x=%t.out/x.npy --expected %t.out/all --repeat 200 -q

// Several requests are in flight, and each counts as its inputs.
// RUN: divi-run %t.bundle --random-inputs --repeat 50 --json | FileCheck %s --check-prefix=FLIGHT
// FLIGHT: "mode":"pipeline","inputs":4,"runs":50,"in_flight":{{[2-9]}},

// The plan can be written, verified and replayed; the same module results.
// RUN: divi-opt %{model} %{pipeline} --emit=plan -o %t.json
// RUN: FileCheck %s --check-prefix=PLAN --input-file=%t.json
// RUN: divi-opt %{model} --emit=problem -o %t.problem.json
// RUN: divi-plan verify %t.problem.json %t.json --max-batch=2 --replicas=2
// RUN: divi-opt %{model} %{pipeline} --partition -o %t.planned.mlir
// RUN: divi-opt %{model} --plan=%t.json --partition -o %t.replayed.mlir
// RUN: diff %t.planned.mlir %t.replayed.mlir
// RUN: not divi-opt %{model} --plan=%t.json --partition --max-batch=4 2>&1 | FileCheck %s --check-prefix=OTHER
// PLAN: "format": "divi-plan/3"
// PLAN: "max_batch": 2,
// PLAN: "max_replicas": 2,
// OTHER: error: the plan is for maximum batch size 2, not 4: leave max-batch out

// Summary and explanation show the devices of a stage.
// RUN: divi-opt %s --system=%S/Inputs/three-cores.toml --fuse=none --plan=%t.json --pin=a=cpu0 --exclude=b*=cpu0 --exclude=c=cpu0 --partition -o %t.none 2>&1 | FileCheck %s --check-prefix=SUMMARY
// RUN: divi-opt %{model} --plan=%t.json --partition --explain=c --iterations=20 | FileCheck %s --check-prefix=EXPLAIN
// SUMMARY: cpu0 {{.*}}stage 0
// SUMMARY: cpu1 {{.*}}stage 1
// SUMMARY: cpu2 {{.*}}stage 1
// EXPLAIN: c runs on @cpu1 and @cpu2
// EXPLAIN: @cpu1: takes {{.*}} µs by batch size; it runs here in batches of {{[12]}}

// A request of many inputs is rejected.
// RUN: not divi-opt %s --partition --system=%S/Inputs/odd-batches.toml --fuse=none -q --pin=a=cpu0 --exclude=b*=cpu0 --exclude=c=cpu0 --objective=pipeline --max-batch=128 --min-gain=0 --iterations=20 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: the batches and turns of the stages repeat only after more than 4096 inputs (stage 1 takes batches of 127 on 1 device): reduce the maximum batch size or the replicas, or give the devices batch sizes that divide each other

func.func @main(%x: tensor<1x64xf32> {onnx.name = "x"}) -> (tensor<1x64xf32> {onnx.name = "y"}) {
  %w = onnx.Constant dense<0.03125> : tensor<64x64xf32>
  %0 = "onnx.MatMul"(%x, %w) {onnx_node_name = "a"} : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
  %1 = "onnx.Tanh"(%0) {onnx_node_name = "b0"} : (tensor<1x64xf32>) -> tensor<1x64xf32>
  %2 = "onnx.Sub"(%1, %x) {onnx_node_name = "b1"} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  %3 = "onnx.MatMul"(%2, %w) {onnx_node_name = "b2"} : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
  %4 = "onnx.Add"(%3, %x) {onnx_node_name = "c"} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  return %4 : tensor<1x64xf32>
}
