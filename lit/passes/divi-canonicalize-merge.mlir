// RUN: divi-opt %s --split-input-file --divi-canonicalize > %t && FileCheck %s < %t
// RUN: divi-opt %t --split-input-file --divi-canonicalize | diff %t -

// Tests that operators that compute the same value are merged, including constants in the IR and in files, and that the
// name of the first one is kept.
// CHECK-LABEL: func.func @same(
// CHECK-DAG:     onnx.Constant dense<1.500000e+00> : tensor<f32> {onnx_node_name = "a"}
// CHECK-DAG:     onnx.Constant #divi.external<"w.bin", offset = 0, length = 12> : tensor<3xf32>
// CHECK-NOT:     onnx.Constant
// CHECK:         %[[ADD:.*]] = "onnx.Add"(%{{.*}}) {onnx_node_name = "first"}
// CHECK-NOT:     onnx.Add
// CHECK:         "onnx.Mul"(%[[ADD]], %[[ADD]])
func.func @same(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %a = onnx.Constant dense<1.5> : tensor<f32> {onnx_node_name = "a"}
  %b = onnx.Constant dense<1.5> : tensor<f32> {onnx_node_name = "b"}
  %w = onnx.Constant #divi.external<"w.bin", offset = 0, length = 12> : tensor<3xf32>
  %v = onnx.Constant #divi.external<"w.bin", offset = 0, length = 12> : tensor<3xf32>
  %0 = "onnx.Add"(%x, %a) {onnx_node_name = "first"} : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = "onnx.Add"(%x, %b) {onnx_node_name = "second"} : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = "onnx.Mul"(%0, %1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %3 = "onnx.Sub"(%w, %v) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %2, %3 : tensor<3xf32>, tensor<3xf32>
}

// -----

// Tests that operators with other attributes, operands or types, random and unknown operators are not merged.
// CHECK-LABEL: func.func @different(
// CHECK-COUNT-2: "onnx.Softmax"
// CHECK-COUNT-2: "onnx.Sub"
// CHECK-COUNT-2: "onnx.RandomNormal"
// CHECK-COUNT-2: "onnx.RandomUniformLike"
// CHECK-COUNT-2: "onnx.Bernoulli"
// CHECK-COUNT-2: "onnx.Dropout"
// CHECK-COUNT-2: "onnx.Custom"
func.func @different(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>,
    tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>,
    tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  %true = onnx.Constant dense<true> : tensor<i1>
  %0 = "onnx.Softmax"(%x) {axis = 0 : si64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "onnx.Softmax"(%x) {axis = 1 : si64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = "onnx.Sub"(%x, %y) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "onnx.Sub"(%y, %x) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %4 = "onnx.RandomNormal"() {shape = [2, 2]} : () -> tensor<2x2xf32>
  %5 = "onnx.RandomNormal"() {shape = [2, 2]} : () -> tensor<2x2xf32>
  %6 = "onnx.RandomUniformLike"(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %7 = "onnx.RandomUniformLike"(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %8 = "onnx.Bernoulli"(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %9 = "onnx.Bernoulli"(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %10:2 = "onnx.Dropout"(%x, %none, %true) : (tensor<2x2xf32>, none, tensor<i1>) -> (tensor<2x2xf32>, none)
  %11:2 = "onnx.Dropout"(%x, %none, %true) : (tensor<2x2xf32>, none, tensor<i1>) -> (tensor<2x2xf32>, none)
  %12 = "onnx.Custom"(%x) {function_name = "F", domain_name = "d"} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %13 = "onnx.Custom"(%x) {function_name = "F", domain_name = "d"} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10#0, %11#0, %12, %13 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>,
    tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>,
    tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// Tests that operators with different pins or devices are not merged, and those with the same ones are.
divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1024 : i64}
// CHECK-LABEL: func.func @places(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3xf32>)
// CHECK:         %[[ON_CPU:.*]] = "onnx.Relu"(%[[X]]) {divi.pin = @cpu0}
// CHECK:         %[[ON_GPU:.*]] = "onnx.Relu"(%[[X]]) {divi.pin = @gpu0}
// CHECK-NOT:     onnx.Relu
// CHECK:         %[[COPY:.*]] = "onnx.Identity"(%[[ON_CPU]]) {divi.pin = @gpu0}
// CHECK-NOT:     onnx.Identity
// CHECK:         %[[T:.*]] = "onnx.Transpose"(%[[X]]) {{.*}}divi.pin = @cpu0
// CHECK:         %[[TT:.*]] = "onnx.Transpose"(%[[T]]) {{.*}}divi.pin = @gpu0
// CHECK:         return %[[ON_CPU]], %[[ON_GPU]], %[[ON_GPU]], %[[COPY]], %[[ON_CPU]], %[[TT]]
func.func @places(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>,
    tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = "onnx.Relu"(%x) {divi.pin = @cpu0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "onnx.Relu"(%x) {divi.pin = @gpu0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "onnx.Relu"(%x) {divi.pin = @gpu0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = "onnx.Identity"(%0) {divi.pin = @gpu0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = "onnx.Identity"(%0) {divi.pin = @cpu0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = "onnx.Transpose"(%x) {divi.pin = @cpu0} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %6 = "onnx.Transpose"(%5) {divi.pin = @gpu0} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %0, %1, %2, %3, %4, %6 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Tests that removing an operator does not move a value to another device.
divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1024 : i64}
// CHECK-LABEL: func.func @devices(
// CHECK:         "onnx.Identity"
// CHECK:         "onnx.Relu"{{.*}} {divi.device = @cpu0}
// CHECK-NOT:     onnx.Identity
func.func @devices(%x: tensor<3xf32> {divi.device = @gpu0}) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = "onnx.Relu"(%x) {divi.device = @gpu0} : (tensor<3xf32>) -> tensor<3xf32>
  %1 = "onnx.Identity"(%0) : (tensor<3xf32>) -> tensor<3xf32>
  %2 = "onnx.Relu"(%1) {divi.device = @cpu0} : (tensor<3xf32>) -> tensor<3xf32>
  %3 = "onnx.Identity"(%0) {divi.device = @gpu0} : (tensor<3xf32>) -> tensor<3xf32>
  return %2, %3 : tensor<3xf32>, tensor<3xf32>
}

// -----

// Tests that dead operators are removed transitively, except for unknown ones.
// CHECK-LABEL: func.func @dead(
// CHECK-NEXT:    "onnx.Custom"
// CHECK-NEXT:    return
func.func @dead(%x: tensor<3xf32>) {
  %a = onnx.Constant dense<1.5> : tensor<f32>
  %0 = "onnx.Add"(%x, %a) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = "onnx.Relu"(%0) : (tensor<3xf32>) -> tensor<3xf32>
  %2 = "onnx.RandomNormalLike"(%1) : (tensor<3xf32>) -> tensor<3xf32>
  %3 = "onnx.Custom"(%x) {function_name = "F", domain_name = "d"} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// Tests that subgraphs use earlier operators, while clusters, which are isolated, use only their own.
// CHECK-LABEL: func.func @scopes(
// CHECK:         %[[RELU:.*]] = "onnx.Relu"
// CHECK:         "onnx.If"
// CHECK-NEXT:      onnx.Yield %[[RELU]]
// CHECK:         divi.cluster
// CHECK:           "onnx.Relu"
// CHECK-NOT:       "onnx.Relu"
// CHECK:           divi.yield
func.func @scopes(%x: tensor<3xf32>, %c: tensor<i1>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0 = "onnx.Relu"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = "onnx.If"(%c) ({
    %2 = "onnx.Relu"(%x) : (tensor<3xf32>) -> tensor<3xf32>
    onnx.Yield %2 : tensor<3xf32>
  }, {
    onnx.Yield %x : tensor<3xf32>
  }) : (tensor<i1>) -> tensor<3xf32>
  %3 = divi.cluster "c"(%x : tensor<3xf32>) -> tensor<3xf32> {
  ^bb0(%a: tensor<3xf32>):
    %4 = "onnx.Relu"(%a) : (tensor<3xf32>) -> tensor<3xf32>
    %5 = "onnx.Relu"(%a) : (tensor<3xf32>) -> tensor<3xf32>
    %6 = "onnx.Add"(%4, %5) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    divi.yield %6 : tensor<3xf32>
  }
  return %0, %1, %3 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}
