// RUN: divi-opt %s --split-input-file --divi-infer-shapes=batch=3 --verify-diagnostics

// Tests that a batch size that contradicts an operator is an error on that operator, with its name.
func.func @main(%x: tensor<?x4xf32>, %y: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{'onnx.Add' op '/add' shapes 3x4 and 2x4 do not broadcast: dimension 0 is 3 in one and 2 in the other}}
  %0 = "onnx.Add"(%x, %y) {onnx_node_name = "/add"} : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// Tests that a shape that is valid for one batch size only is an error for another.
func.func @main(%x: tensor<?x4xf32>) -> tensor<2x2xf32> {
  %shape = onnx.Constant dense<[2, 2]> : tensor<2xi64>
  // expected-error @below {{'onnx.Reshape' op [3x4] cannot be reshaped to [2x2]: 12 elements against 4}}
  %0 = "onnx.Reshape"(%x, %shape) : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Tests that a shape that contradicts the operand type that another operation requires is an error on that operation.
func.func private @declared(tensor<2xf32>)
func.func @main(%x: tensor<?xf32>) {
  %0 = "onnx.Relu"(%x) : (tensor<?xf32>) -> tensor<2xf32>
  // expected-error @below {{'func.call' op requires tensor<2xf32> as operand 0, which new shapes make tensor<3xf32>}}
  call @declared(%0) : (tensor<2xf32>) -> ()
  return
}
