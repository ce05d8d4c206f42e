// RUN: divi-opt %s --split-input-file --verify-diagnostics

// Tests that a constant must have a value.
func.func @main() {
  // expected-error @below {{'onnx.Constant' op needs exactly one of value, sparse_value, value_int, value_ints, value_float, value_floats, value_string and value_strings}}
  %0 = onnx.Constant : tensor<2xf32>
  return
}

// -----

// Tests that a constant with two values is rejected.
func.func @main() {
  // expected-error @below {{'onnx.Constant' op needs exactly one of value, sparse_value}}
  %0 = onnx.Constant {value_int = 1 : si64, value_float = 1.0 : f32} : tensor<i64>
  return
}

// -----

// Tests that a constant must have the shape of its value.
func.func @main() {
  // expected-error @below {{'onnx.Constant' op has a value of type 'tensor<2xf32>', but its result is 'tensor<3xf32>'}}
  %0 = onnx.Constant {value = dense<1.0> : tensor<2xf32>} : tensor<3xf32>
  return
}

// -----

// Tests that a constant must have the element type of its value.
func.func @main() {
  // expected-error @below {{'onnx.Constant' op has a value of type 'tensor<2xi64>', but its result is 'tensor<2xf32>'}}
  %0 = onnx.Constant {value_ints = [1, 2]} : tensor<2xf32>
  return
}

// -----

// Tests that a constant in short form must be a tensor.
func.func @main() {
  // expected-error @below {{'onnx.Constant' op needs a value with a tensor type}}
  %0 = onnx.Constant [1, 2]
  return
}

// -----

// Tests that the value of a constant must have a type.
func.func @main() {
  // expected-error @below {{'onnx.Constant' op needs a value with a tensor type}}
  %0 = onnx.Constant {value = [1, 2]} : tensor<2xi64>
  return
}

// -----

// Tests that a constant in short form must not be a scalar.
func.func @main() {
  // expected-error @below {{'onnx.Constant' op result #0 must be tensor of any type values, but got 'i64'}}
  %0 = onnx.Constant 5 : i64
  return
}

// -----

// Tests that a function must return as many values as it declares.
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{'onnx.Return' op returns 2 values, but function @main declares 1}}
  onnx.Return %x, %x : tensor<2xf32>, tensor<2xf32>
}

// -----

// Tests that a function must return values of the declared shapes.
func.func @main(%x: tensor<2xf32>) -> (tensor<?xf32>, tensor<3xf32>) {
  // expected-error @below {{'onnx.Return' op returns a 'tensor<2xf32>' as result 1, but function @main declares 'tensor<3xf32>'}}
  onnx.Return %x, %x : tensor<2xf32>, tensor<2xf32>
}

// -----

// Tests that a function must return values of the declared element types.
func.func @main(%x: tensor<2xf32>) -> tensor<2xi64> {
  // expected-error @below {{'onnx.Return' op returns a 'tensor<2xf32>' as result 0, but function @main declares 'tensor<2xi64>'}}
  onnx.Return %x : tensor<2xf32>
}

// -----

// Tests that a return outside a function is rejected.
// expected-error @below {{'onnx.Return' op expects parent op 'func.func'}}
onnx.Return

// -----

// Tests that a function must not end in a yield.
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{'onnx.Yield' op ends a subgraph, not a function: end the function with 'onnx.Return' or 'func.return'}}
  onnx.Yield %x : tensor<2xf32>
}

// -----

// Tests that an entry point must name a function.
// expected-error @below {{'onnx.EntryPoint' op names @main, which is not a function of this module}}
"onnx.EntryPoint"() {func = @main} : () -> ()

// -----

// Tests that a result must have the inferred shape.
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'onnx.Conv' op has result 0 of type tensor<1x4x8x8xf32>, but its operands and attributes make it tensor<1x4x6x6xf32>: correct the type}}
  %0 = "onnx.Conv"(%x, %w, %b) : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  return
}

// -----

// Tests that a result must have the inferred element type.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Cast' op has result 0 of type tensor<2xi32>, but its operands and attributes make it tensor<2xi64>: correct the type}}
  %0 = "onnx.Cast"(%x) {to = i64} : (tensor<2xf32>) -> tensor<2xi32>
  return
}

// -----

// Tests that the second result is verified, too.
func.func @main(%x: tensor<1x1x4x4xf32>) {
  // expected-error @below {{'onnx.MaxPool' op has result 1 of type tensor<1x1x2x2xi64>, but its operands and attributes make it tensor<1x1x3x3xi64>: correct the type}}
  %0:2 = "onnx.MaxPool"(%x) {kernel_shape = [2, 2]} : (tensor<1x1x4x4xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x2x2xi64>)
  return
}

// -----

// Tests that constant operands are used: the shape of a Reshape must match its elements.
func.func @main(%x: tensor<2x3xf32>) {
  %s = onnx.Constant dense<[3, 3]> : tensor<2xi64>
  // expected-error @below {{'onnx.Reshape' op [2x3] cannot be reshaped to [3x3]: 6 elements against 9}}
  %0 = "onnx.Reshape"(%x, %s) : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<3x3xf32>
  return
}

// -----

// Tests that operands must broadcast.
func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error @below {{'onnx.Add' op shapes 2 and 3 do not broadcast: dimension 0 is 2 in one and 3 in the other}}
  %0 = "onnx.Add"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// Tests that operands must have the same element type where ONNX requires it.
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf64>) {
  // expected-error @below {{'onnx.Add' op operands must have one element type, these have float and double: insert a Cast}}
  %0 = "onnx.Add"(%x, %y) : (tensor<2xf32>, tensor<2xf64>) -> tensor<2xf32>
  return
}

// -----

// Tests that a required operand must be present.
func.func @main(%x: tensor<2x2xf32>) {
  %none = "onnx.NoValue"() <{value}> : () -> none
  // expected-error @below {{'onnx.MatMul' op operand #1 must be tensor of bfloat16 type or 16-bit float or 32-bit float or 64-bit float or 32-bit signless integer or 64-bit signless integer or 32-bit unsigned integer or 64-bit unsigned integer values, but got 'none'}}
  %0 = "onnx.MatMul"(%x, %none) : (tensor<2x2xf32>, none) -> tensor<2x2xf32>
  return
}

// -----

// Tests that an element type that ONNX does not allow for the operator is rejected.
func.func @main(%x: tensor<2xi64>) {
  // expected-error @below {{'onnx.Sin' op operand #0 must be tensor of bfloat16 type or 16-bit float or 32-bit float or 64-bit float values, but got 'tensor<2xi64>'}}
  %0 = "onnx.Sin"(%x) : (tensor<2xi64>) -> tensor<2xi64>
  return
}

// -----

// Tests that an axis out of range is rejected.
func.func @main(%x: tensor<2x2xf32>) {
  // expected-error @below {{'onnx.Softmax' op axis 2 is outside [-2, 1] for rank 2}}
  %0 = "onnx.Softmax"(%x) {axis = 2 : si64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

// Tests that an attribute of the wrong kind is rejected.
func.func @main(%x: tensor<2x2xf32>) {
  // expected-error @below {{'onnx.Softmax' op attribute 'axis' failed to satisfy constraint: 64-bit signed integer attribute}}
  %0 = "onnx.Softmax"(%x) {axis = "last"} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

// Tests that a required attribute must be present.
func.func @main(%x: tensor<2x2xf32>) {
  // expected-error @below {{'onnx.Concat' op requires attribute 'axis'}}
  %0 = "onnx.Concat"(%x, %x) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  return
}

// -----

// Tests that the number of operands must match ONNX's, including absent ones.
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @below {{'onnx.Conv' op expected 3 operands, but found 2}}
  %0 = "onnx.Conv"(%x, %w) : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  return
}

// -----

// Tests that an operator of another domain must have a name.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Custom' op requires attribute 'function_name'}}
  %0 = "onnx.Custom"(%x) {domain_name = "com.example"} : (tensor<2xf32>) -> tensor<2xf32>
  return
}
