// RUN: divi-opt %s --split-input-file --canonicalize --cse | FileCheck %s

// Tests that equal constants are merged, whichever of ONNX's attributes has the value.
// CHECK-LABEL: func.func @constants
// CHECK-NEXT:    %[[INT:.*]] = onnx.Constant {{.*}} : tensor<i64>
// CHECK-NEXT:    %[[INTS:.*]] = onnx.Constant {{.*}} : tensor<2xi64>
// CHECK-NEXT:    %[[FLOAT:.*]] = onnx.Constant {{.*}} : tensor<f32>
// CHECK-NEXT:    %[[FLOATS:.*]] = onnx.Constant {{.*}} : tensor<2xf32>
// CHECK-NEXT:    %[[STRING:.*]] = onnx.Constant {{.*}} : tensor<!onnx.String>
// CHECK-NEXT:    %[[STRINGS:.*]] = onnx.Constant {{.*}} : tensor<2x!onnx.String>
// CHECK-NEXT:    return %[[INT]], %[[INT]], %[[INTS]], %[[INTS]], %[[FLOAT]], %[[FLOAT]], %[[FLOATS]], %[[FLOATS]], %[[STRING]], %[[STRING]], %[[STRINGS]], %[[STRINGS]] :
func.func @constants() -> (tensor<i64>, tensor<i64>, tensor<2xi64>, tensor<2xi64>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<2xf32>, tensor<!onnx.String>, tensor<!onnx.String>, tensor<2x!onnx.String>, tensor<2x!onnx.String>) {
  %int0 = onnx.Constant {value_int = 7 : si64} : tensor<i64>
  %int1 = onnx.Constant dense<7> : tensor<i64>
  %ints0 = onnx.Constant {value_ints = [1, -2]} : tensor<2xi64>
  %ints1 = onnx.Constant dense<[1, -2]> : tensor<2xi64>
  %float0 = onnx.Constant {value_float = 0.5 : f32} : tensor<f32>
  %float1 = onnx.Constant dense<0.5> : tensor<f32>
  %floats0 = onnx.Constant {value_floats = [0.5 : f32, 1.0 : f32]} : tensor<2xf32>
  %floats1 = onnx.Constant dense<[0.5, 1.0]> : tensor<2xf32>
  %string0 = onnx.Constant {value_string = "a"} : tensor<!onnx.String>
  %string1 = onnx.Constant dense<"a"> : tensor<!onnx.String>
  %strings0 = onnx.Constant {value_strings = ["a", "b"]} : tensor<2x!onnx.String>
  %strings1 = onnx.Constant dense<["a", "b"]> : tensor<2x!onnx.String>
  return %int0, %int1, %ints0, %ints1, %float0, %float1, %floats0, %floats1, %string0, %string1, %strings0, %strings1 : tensor<i64>, tensor<i64>, tensor<2xi64>, tensor<2xi64>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<2xf32>, tensor<!onnx.String>, tensor<!onnx.String>, tensor<2x!onnx.String>, tensor<2x!onnx.String>
}

// -----

// Tests that absent values are merged into one.
// CHECK-LABEL: func.func @no_values
// CHECK:         %[[NONE:.*]] = "onnx.NoValue"() <{value}> : () -> none
// CHECK-NOT:     onnx.NoValue
// CHECK:         "onnx.Clip"(%{{.*}}, %[[NONE]], %[[NONE]])
func.func @no_values(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "onnx.NoValue"() <{value}> : () -> none
  %1 = "onnx.NoValue"() <{value}> : () -> none
  %2 = "onnx.Clip"(%x, %0, %1) : (tensor<2xf32>, none, none) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// -----

// Tests that references to the same bytes are merged.
// CHECK-LABEL: func.func @external
// CHECK-NEXT:    %[[W:.*]] = onnx.Constant #divi.external<"w.bin", offset = 0, length = 8> : tensor<2xf32>
// CHECK-NEXT:    "onnx.Add"(%[[W]], %[[W]])
func.func @external() -> tensor<2xf32> {
  %0 = onnx.Constant #divi.external<"w.bin", offset = 0, length = 8> : tensor<2xf32>
  %1 = onnx.Constant #divi.external<"w.bin", offset = 0, length = 8> : tensor<2xf32>
  %2 = "onnx.Add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// -----

// Tests that a constant whose result type is less precise than its value is not changed.
// CHECK-LABEL: func.func @less_precise
// CHECK:         onnx.Constant {value = dense<1.000000e+00> : tensor<3xf32>} : tensor<?xf32>
func.func @less_precise() -> tensor<?xf32> {
  %0 = onnx.Constant {value = dense<1.0> : tensor<3xf32>} : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Tests that unused operators are removed and equal ones merged, unless they have side effects.
// CHECK-LABEL: func.func @pure
// CHECK-NEXT:    %[[RELU:.*]] = "onnx.Relu"
// CHECK-NEXT:    return %[[RELU]], %[[RELU]]
func.func @pure(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = "onnx.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "onnx.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "onnx.Abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// -----

// Tests that random operators are not merged, and operators of other domains are not moved.
// CHECK-LABEL: func.func @impure
// CHECK-COUNT-2: "onnx.RandomNormalLike"
// CHECK:         "onnx.Custom"
// CHECK:         "onnx.FancyNewOp"
func.func @impure(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = "onnx.RandomNormalLike"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "onnx.RandomNormalLike"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "onnx.Custom"(%x) {domain_name = "com.example", function_name = "Twice"} : (tensor<2xf32>) -> tensor<2xf32>
  %3 = "onnx.FancyNewOp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
