// RUN: divi-opt %s -split-input-file --divi-annotate-cost=system=%S/Inputs/system.toml --verify-diagnostics
// RUN: not divi-opt %s --divi-annotate-cost=system=no-such-machine -split-input-file 2>&1 | FileCheck %s --check-prefix=SYSTEM
// SYSTEM: mlir:{{[0-9:]+}}: error: 'no-such-machine' is neither a file nor a preset (presets: host, cpu-2, cpu-2x1, cpu-6x4, cpu+h200, diviml, v100-dgx, v100-hetero, a6000, gpt3-6x4)

// Tests that arguments must have static shapes.
// expected-error @below {{'func.func' op has an argument 1 of type tensor<?x2xf32>, whose size is open: fix it with --dim, --batch or --input-shape}}
func.func @main(%x: tensor<2x2xf32>, %y: tensor<?x2xf32>) -> tensor<?x2xf32> {
  return %y : tensor<?x2xf32>
}

// -----

// Tests that a pin must name a device of the system.
module {
  divi.device @npu0 {kind = "cuda", memory = 1 : i64}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @below {{attribute 'divi.pin' names @npu0, which system 'made-up' does not have: it has cpu0, gpu0}}
    %0 = "onnx.Relu"(%x) {divi.pin = @npu0} : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}

// -----

// Tests that a module must have a public function.
// expected-error @below {{has no function with a body that is not private: there is nothing to plan}}
module {
  func.func private @declared(tensor<2xf32>)
}

// -----

// Tests that the entry function must be unambiguous.
// expected-error @below {{has several functions that may be the model (@a, @b): call one of them @main, or name it with onnx.EntryPoint}}
module {
  func.func @a(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
  func.func @b(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}

// -----

// Tests that control flow between blocks is rejected.
// expected-error @below {{'func.func' op has 2 blocks: tasks are planned by data flow, so branches must be If operators}}
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  cf.br ^bb1
^bb1:
  return %x : tensor<2xf32>
}

// -----

// Tests that calls must be inlined first.
module {
  func.func private @callee(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @below {{'func.call' op calls a function: inline it first, with --inline}}
    %0 = func.call @callee(%x) : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}

// -----

// Tests that an outlined plan is rejected.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
  func.func private @stage(%x: tensor<2xf32>) -> tensor<2xf32> attributes {divi.device = @cpu0} {
    return %x : tensor<2xf32>
  }
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @below {{'divi.launch' op belongs to a plan: start from the module that was planned}}
    %0 = divi.launch @stage(%x) on @cpu0 : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}

// -----

// Tests that operators on memory, which have no explicit order, are rejected.
func.func @main(%x: memref<4xf32>) {
  // expected-error @below {{'linalg.exp' op accesses memory, and the order of accesses is not planned: use tensors}}
  linalg.exp ins(%x : memref<4xf32>) outs(%x : memref<4xf32>)
  return
}

// -----

// Tests that devices must not have the names of functions.
// expected-error @below {{'func.func' op is called @gpu0, as a device of system 'made-up' is: give the device another id}}
func.func @gpu0(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// Tests that a task must not be pinned to two devices.
module {
  divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @below {{'divi.cluster' op is one task, but parts of it are pinned to @cpu0 and to @gpu0: pin it to one of them}}
    %0 = divi.cluster "two"(%x : tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      %1 = "onnx.Relu"(%a) {divi.pin = @cpu0} : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "onnx.Relu"(%1) {divi.pin = @gpu0} : (tensor<2xf32>) -> tensor<2xf32>
      divi.yield %2 : tensor<2xf32>
    }
    return %0 : tensor<2xf32>
  }
}

// -----

// Tests that a task must not be pinned to a device that cannot run it.
module {
  divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @below {{'onnx.Custom' op 'c' is pinned to @gpu0, but does not run on cuda devices: pin it to a cpu device, or remove the pin}}
    %0 = "onnx.Custom"(%x) {function_name = "C", onnx_node_name = "c", divi.pin = @gpu0} : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
