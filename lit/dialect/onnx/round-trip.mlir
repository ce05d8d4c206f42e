// RUN: divi-opt %s | FileCheck %s
// RUN: divi-opt %s | divi-opt | FileCheck %s
// RUN: divi-opt %s --mlir-print-op-generic | divi-opt | FileCheck %s
// RUN: divi-opt %s --emit-bytecode | divi-opt | FileCheck %s
// Cases are modules of one file, because bytecode cannot be split.

// Tests operators in the generic form, with properties separate from other attributes.
module @operators {
  func.func @main(%x: tensor<1x3x8x8xf32> {onnx.name = "x"}) -> (tensor<1x4x4x4xf32> {onnx.name = "y"}) {
    %w = onnx.Constant #divi.external<"model.onnx", offset = 64, length = 432> : tensor<4x3x3x3xf32> {onnx_node_name = "w"}
    %none = "onnx.NoValue"() <{value}> : () -> none
    %0 = "onnx.Conv"(%x, %w, %none) <{auto_pad = "NOTSET", group = 1 : si64, pads = [1, 1, 1, 1], strides = [2, 2]}> {onnx_node_name = "/conv"} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, none) -> tensor<1x4x4x4xf32>
    %1 = "onnx.Relu"(%0) {onnx_node_name = "/relu"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
    return %1 : tensor<1x4x4x4xf32>
  }
}
// CHECK: module @operators {
// CHECK-NEXT: func.func @main(%[[X:.*]]: tensor<1x3x8x8xf32> {onnx.name = "x"}) -> (tensor<1x4x4x4xf32> {onnx.name = "y"}) {
// CHECK-NEXT: %[[W:.*]] = onnx.Constant #divi.external<"model.onnx", offset = 64, length = 432> : tensor<4x3x3x3xf32> {onnx_node_name = "w"}
// CHECK-NEXT: %[[NONE:.*]] = "onnx.NoValue"() <{value}> : () -> none
// CHECK-NEXT: %[[CONV:.*]] = "onnx.Conv"(%[[X]], %[[W]], %[[NONE]]) <{auto_pad = "NOTSET", group = 1 : si64, pads = [1, 1, 1, 1], strides = [2, 2]}> {onnx_node_name = "/conv"} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, none) -> tensor<1x4x4x4xf32>
// CHECK-NEXT: %[[RELU:.*]] = "onnx.Relu"(%[[CONV]]) {onnx_node_name = "/relu"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
// CHECK-NEXT: return %[[RELU]] : tensor<1x4x4x4xf32>

// -----

// Tests that constants are printed in the shortest unambiguous form.
module @constants {
  func.func @main() {
    %0 = onnx.Constant dense<[5, -5]> : tensor<2xi64>
    %1 = onnx.Constant dense<[5, 5]> : tensor<2xi64> {onnx_node_name = "shape"}
    %2 = onnx.Constant dense_resource<__elided__> : tensor<512x512xf32>
    %3 = onnx.Constant {value_int = 1 : si64} : tensor<i64>
    %4 = onnx.Constant {value_ints = [1, 2, 3], onnx_node_name = "ints"} : tensor<3xi64>
    %5 = onnx.Constant {value_float = 0.5 : f32} : tensor<f32>
    %6 = onnx.Constant {value_floats = [0.5 : f32, 1.0 : f32]} : tensor<2xf32>
    %7 = onnx.Constant {value_string = "text"} : tensor<!onnx.String>
    %8 = onnx.Constant {value_strings = ["one", "two"]} : tensor<2x!onnx.String>
    %9 = onnx.Constant sparse<[[0, 1]], [7]> : tensor<2x2xi32>
    %10 = onnx.Constant {value = dense<1.0> : tensor<3xf32>} : tensor<?xf32>
    %11 = "onnx.Constant"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
    %12 = onnx.Constant dense<["one", "two"]> : tensor<2x!onnx.String>
    %13 = onnx.Constant dense_resource<little> : tensor<2xf32>
    %14 = onnx.Constant dense<> : tensor<0xf32>
    %15 = onnx.Constant {value = sparse<[[0, 1]], [7]> : tensor<2x2xi32>} : tensor<2x2xi32>
    %16 = onnx.Constant {sparse_value = dense<7> : tensor<2xi32>} : tensor<2xi32>
    return
  }
}
// CHECK: module @constants {
// CHECK: onnx.Constant dense<[5, -5]> : tensor<2xi64>{{$}}
// CHECK: onnx.Constant dense<5> : tensor<2xi64> {onnx_node_name = "shape"}
// CHECK: onnx.Constant dense_resource<__elided__> : tensor<512x512xf32>
// CHECK: onnx.Constant {value_int = 1 : si64} : tensor<i64>
// CHECK: onnx.Constant {onnx_node_name = "ints", value_ints = [1, 2, 3]} : tensor<3xi64>
// CHECK: onnx.Constant {value_float = 5.000000e-01 : f32} : tensor<f32>
// CHECK: onnx.Constant {value_floats = [5.000000e-01 : f32, 1.000000e+00 : f32]} : tensor<2xf32>
// CHECK: onnx.Constant {value_string = "text"} : tensor<!onnx.String>
// CHECK: onnx.Constant {value_strings = ["one", "two"]} : tensor<2x!onnx.String>
// CHECK: onnx.Constant sparse<{{.*}}> : tensor<2x2xi32>
// CHECK: onnx.Constant {value = dense<1.000000e+00> : tensor<3xf32>} : tensor<?xf32>
// CHECK: onnx.Constant dense<true> : tensor<i1>
// CHECK: onnx.Constant dense<["one", "two"]> : tensor<2x!onnx.String>
// CHECK: onnx.Constant dense_resource<little> : tensor<2xf32>
// CHECK: onnx.Constant dense<> : tensor<0xf32>
// CHECK: onnx.Constant {value = sparse<{{.*}}> : tensor<2x2xi32>} : tensor<2x2xi32>
// CHECK: onnx.Constant {sparse_value = dense<7> : tensor<2xi32>} : tensor<2xi32>

// -----

// Tests operators with custom assembly formats.
module @syntax {
  func.func @returns(%x: tensor<?xf32>, %s: tensor<2xi64>) -> (tensor<?xf32>, tensor<?x?xi32>) {
    %0 = onnx.ConstantOfShape(%s) {value = dense<3> : tensor<1xi32>} : (tensor<2xi64>) -> tensor<?x?xi32>
    onnx.Return %x, %0 : tensor<?xf32>, tensor<?x?xi32>
  }
  func.func @nothing() {
    onnx.Return
  }
  "onnx.EntryPoint"() {func = @returns} : () -> ()
}
// CHECK: module @syntax {
// CHECK: %[[C:.*]] = onnx.ConstantOfShape(%{{.*}}) {value = dense<3> : tensor<1xi32>} : (tensor<2xi64>) -> tensor<?x?xi32>
// CHECK: onnx.Return %{{.*}}, %[[C]] : tensor<?xf32>, tensor<?x?xi32>
// CHECK: onnx.Return{{$}}
// CHECK: "onnx.EntryPoint"() <{func = @returns}> : () -> ()

// -----

// Tests that subgraphs are regions, which may use values from outside.
module @regions {
  func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "onnx.If"(%c) ({
      %1 = "onnx.Abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      onnx.Yield %1 : tensor<2xf32>
    }, {
      onnx.Yield %x : tensor<2xf32>
    }) {onnx_node_name = "/if"} : (tensor<i1>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
// CHECK: module @regions {
// CHECK: "onnx.If"(%{{.*}}) ({
// CHECK-NEXT: "onnx.Abs"
// CHECK-NEXT: onnx.Yield %{{.*}} : tensor<2xf32>
// CHECK-NEXT: }, {
// CHECK-NEXT: onnx.Yield %{{.*}} : tensor<2xf32>
// CHECK-NEXT: }) {onnx_node_name = "/if"} : (tensor<i1>) -> tensor<2xf32>

// -----

// Tests the types of strings, sequences and optionals.
module @types {
  func.func private @main(tensor<2x!onnx.String>, !onnx.Seq<tensor<?xf32>>, !onnx.Opt<!onnx.Seq<tensor<*xi64>>>)
}
// CHECK: module @types {
// CHECK: func.func private @main(tensor<2x!onnx.String>, !onnx.Seq<tensor<?xf32>>, !onnx.Opt<!onnx.Seq<tensor<*xi64>>>)

// -----

// Tests that unknown operators are preserved completely.
module @unknown {
  func.func @main(%x: tensor<2xf32>) -> tensor<?xf32> {
    %0:2 = "onnx.FancyNewOp"(%x) ({
      onnx.Yield %x : tensor<2xf32>
    }) {depth = 3 : si64, onnx_node_name = "/fancy"} : (tensor<2xf32>) -> (tensor<?xf32>, none)
    %1 = "onnx.Custom"(%0#0) {domain_name = "com.example", function_name = "Twice", factor = 2.0 : f32} : (tensor<?xf32>) -> tensor<?xf32>
    return %1 : tensor<?xf32>
  }
}
// CHECK: module @unknown {
// CHECK: %[[NEW:.*]]:2 = "onnx.FancyNewOp"(%{{.*}}) ({
// CHECK: }) {depth = 3 : si64, onnx_node_name = "/fancy"} : (tensor<2xf32>) -> (tensor<?xf32>, none)
// CHECK: "onnx.Custom"(%[[NEW]]#0) <{domain_name = "com.example", function_name = "Twice"}> {factor = 2.000000e+00 : f32} : (tensor<?xf32>) -> tensor<?xf32>

// -----

// Tests that absent results have type none, and that types may be less precise than inference.
module @optional {
  func.func @main(%x: tensor<1x1x4x4xf32>, %l: tensor<3xi64>, %s: tensor<2xi64>) {
    %0:2 = "onnx.MaxPool"(%x) <{kernel_shape = [2, 2]}> : (tensor<1x1x4x4xf32>) -> (tensor<*xf32>, none)
    %1:2 = "onnx.Split"(%l, %s) <{axis = 0 : si64}> : (tensor<3xi64>, tensor<2xi64>) -> (tensor<?xi64>, tensor<?xi64>)
    return
  }
}
// CHECK: module @optional {
// CHECK: "onnx.MaxPool"(%{{.*}}) <{{{.*}}kernel_shape = [2, 2]{{.*}}}> : (tensor<1x1x4x4xf32>) -> (tensor<*xf32>, none)
// CHECK: "onnx.Split"(%{{.*}}, %{{.*}}) <{axis = 0 : si64}> : (tensor<3xi64>, tensor<2xi64>) -> (tensor<?xi64>, tensor<?xi64>)

// Tests that the bytes of a resource are preserved.
{-#
  dialect_resources: {
    builtin: {
      little: "0x040000000000803F00000040"
    }
  }
#-}
// CHECK: little: "0x040000000000803F00000040"
