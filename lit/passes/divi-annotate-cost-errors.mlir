// RUN: divi-opt %s -split-input-file --divi-annotate-cost=system=%S/Inputs/system.toml --verify-diagnostics
// RUN: not divi-opt %s --divi-annotate-cost=system=no-such-machine -split-input-file 2>&1 | FileCheck %s --check-prefix=SYSTEM
// SYSTEM: mlir:{{[0-9:]+}}: error: 'no-such-machine' is neither a file nor a preset (presets: host, cpu-2, cpu+h200, diviml, v100-dgx, a6000, gpt3-6x4)

// Tests that sizes must be known.
// expected-error @below {{'func.func' op has an argument 1 of type tensor<?x2xf32>, whose size is open: fix it with --batch or --input-shape}}
func.func @main(%x: tensor<2x2xf32>, %y: tensor<?x2xf32>) -> tensor<?x2xf32> {
  return %y : tensor<?x2xf32>
}

// -----

// Tests that a pin names a device of the system.
module {
  divi.device @npu0 {kind = "cuda", memory = 1 : i64}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @below {{attribute 'divi.pin' names @npu0, which system 'made-up' does not have: it has cpu0, gpu0}}
    %0 = "onnx.Relu"(%x) {divi.pin = @npu0} : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}

// -----

// Tests that there is something to plan.
// expected-error @below {{has no function with a body that is not private: there is nothing to plan}}
module {
  func.func private @declared(tensor<2xf32>)
}

// -----

// Tests that it is clear which function is the model.
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

// Tests that control flow is not guessed at.
// expected-error @below {{'func.func' op has 2 blocks: tasks are planned by data flow, so branches must be If operators}}
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  cf.br ^bb1
^bb1:
  return %x : tensor<2xf32>
}

// -----

// Tests that calls are inlined first.
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
