// RUN: divi-opt %s --split-input-file --divi-rebatch=batch=8 --verify-diagnostics
// RUN: not divi-opt %s --divi-rebatch 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not divi-opt %s --divi-rebatch=batch=-4 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NONE: error: batch is 0: it must be positive
// NEGATIVE: error: batch is -4: it must be positive

// Tests that a batch size that is not a multiple of the present one is rejected, with both.
// expected-error @below {{'func.func' op @three has a batch of 3, which cannot be changed to 8: choose a multiple of 3, or give its arguments other shapes}}
func.func @three(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  return %x : tensor<3x4xf32>
}

// -----

// Tests that an empty batch is rejected.
// expected-error @below {{'func.func' op @empty has a batch of 0}}
func.func @empty(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  return %x : tensor<0x4xf32>
}

// -----

// Tests that a batch size that is too large for a tensor is rejected.
// expected-error @below {{'func.func' op @large has an argument that is too large at 8 times the batch size}}
func.func @large(%x: tensor<1x4611686018427387904xi8>) -> tensor<1x4611686018427387904xi8> {
  return %x : tensor<1x4611686018427387904xi8>
}

// -----

// Tests that functions of several blocks are rejected.
// expected-error @below {{'func.func' op @jumps has 2 blocks: a batch can be followed through one block only}}
func.func @jumps(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  cf.br ^bb1(%x : tensor<1x4xf32>)
^bb1(%y: tensor<1x4xf32>):
  return %y : tensor<1x4xf32>
}

// -----

// Tests that a value that is not a tensor cannot be returned once for each input.
func.func @sequence(%x: tensor<1x4xf32>) -> !onnx.Seq<tensor<1x4xf32>> {
  %0 = "onnx.SequenceConstruct"(%x) : (tensor<1x4xf32>) -> !onnx.Seq<tensor<1x4xf32>>
  // expected-error @below {{'func.return' op returns operand 0, which differs between the inputs of a batch, but is not a tensor of known rank: the values cannot be concatenated}}
  return %0 : !onnx.Seq<tensor<1x4xf32>>
}

// -----

// Tests that tensors that ONNX cannot slice are rejected where that would be necessary.
func.func @narrow(%x: tensor<1x3xi4>) -> tensor<1x3xi4> {
  // expected-error @below {{'onnx.Custom' op mixes the inputs of a batch, and int4 tensors cannot be sliced or repeated: insert a Cast}}
  %0 = "onnx.Custom"(%x) {function_name = "F", domain_name = "d"} : (tensor<1x3xi4>) -> tensor<1x3xi4>
  return %0 : tensor<1x3xi4>
}
