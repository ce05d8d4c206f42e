// RUN: divi-opt %s --split-input-file --divi-infer-shapes=batch=4 | FileCheck %s
// RUN: divi-opt %s --split-input-file --divi-infer-shapes=batch=4 | divi-opt --split-input-file --divi-infer-shapes=batch=4 | FileCheck %s
// RUN: divi-opt %s --split-input-file --divi-infer-shapes | FileCheck %s --check-prefix=OPEN

// Tests that an operator with only absent results is kept, as these may have uses.
// CHECK-LABEL: func.func @no_results(
// CHECK:         %{{.*}}, %[[H:.*]] = "onnx.RNN"
// CHECK-NEXT:    onnx.Return %[[H]] : none
func.func @no_results(%x: tensor<4x3x2xf32>, %w: tensor<1x3x2xf32>, %r: tensor<1x3x3xf32>) -> none {
  %none = "onnx.NoValue"() {value} : () -> none
  %y, %h = "onnx.RNN"(%x, %w, %r, %none, %none, %none) {hidden_size = 3 : si64} : (tensor<4x3x2xf32>, tensor<1x3x2xf32>, tensor<1x3x3xf32>, none, none, none) -> (none, none)
  onnx.Return %h : none
}

// -----

// Tests that a function's type follows from its returned values, in any block.
// CHECK-LABEL: func.func @blocks(%{{.*}}: i1, %{{.*}}: tensor<4xf32>) -> tensor<4xf32>
func.func @blocks(%c: i1, %x: tensor<?xf32>) -> tensor<?xf32> {
  cf.cond_br %c, ^a, ^b
^b:
  return %x : tensor<?xf32>
^a:
  cf.br ^b
}

// -----

// Tests that different returned types are joined.
// CHECK-LABEL: func.func @returns(
// CHECK-SAME:    -> tensor<?xf32>
func.func @returns(%c: i1, %x: tensor<?xf32>, %y: tensor<7xf32>) -> tensor<?xf32> {
  cf.cond_br %c, ^a, ^b
^b:
  return %x : tensor<?xf32>
^a:
  %0 = "onnx.Relu"(%y) : (tensor<7xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Tests that successor operands get the types of block arguments, and that blocks are visited after the blocks that
// define their operands.
// CHECK-LABEL: func.func @passed(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK:         %[[CAST:.*]] = "onnx.Identity"{{.*}} : (tensor<4xf32>) -> tensor<?xf32>
// CHECK:         cf.br ^{{.*}}(%[[CAST]] : tensor<?xf32>)
// CHECK:         divi.cluster "relu"(%{{.*}} : tensor<4xf32>) -> tensor<4xf32>
func.func @passed(%x: tensor<?xf32>) -> tensor<?xf32> {
  cf.br ^a(%x : tensor<?xf32>)
^b:
  %1 = divi.cluster "relu"(%0 : tensor<?xf32>) -> tensor<?xf32> {
  ^bb0(%i: tensor<?xf32>):
    %2 = "onnx.Relu"(%i) : (tensor<?xf32>) -> tensor<?xf32>
    divi.yield %2 : tensor<?xf32>
  }
  return %1 : tensor<?xf32>
^a(%y: tensor<?xf32>):
  %0 = "onnx.Add"(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  cf.br ^b
}

// -----

// Tests that a private function gets the types of its only call, and the call those of the function's results.
// CHECK-LABEL: func.func private @callee(%{{.*}}: tensor<4xf32> {onnx.name = "x"}) -> tensor<4xf32>
// CHECK-LABEL: func.func @caller(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK:         call @callee(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func private @callee(%x: tensor<?xf32> {onnx.name = "x"}) -> tensor<?xf32> {
  %0 = "onnx.Relu"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @caller(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = func.call @callee(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Tests that a function that is called several times, or only declared, keeps its arguments.
// CHECK-LABEL: func.func private @twice(%{{.*}}: tensor<?xf32>) -> tensor<1xi64>
// CHECK:       func.func private @declared(tensor<?xf32>)
// CHECK-LABEL: func.func @caller(%{{.*}}: tensor<4xf32>
// CHECK:         %[[CAST:.*]] = "onnx.Identity"{{.*}} : (tensor<4xf32>) -> tensor<?xf32>
// CHECK:         call @twice(%[[CAST]]) : (tensor<?xf32>) -> tensor<1xi64>
// CHECK:         call @twice(%[[CAST]]) : (tensor<?xf32>) -> tensor<1xi64>
// CHECK:         call @declared(%[[CAST]]) : (tensor<?xf32>) -> ()
func.func private @twice(%x: tensor<?xf32>) -> tensor<?xi64> {
  %0 = "onnx.Shape"(%x) : (tensor<?xf32>) -> tensor<?xi64>
  return %0 : tensor<?xi64>
}
func.func private @declared(tensor<?xf32>)
func.func @caller(%x: tensor<?xf32>) -> (tensor<?xi64>, tensor<?xi64>) {
  %0 = func.call @twice(%x) : (tensor<?xf32>) -> tensor<?xi64>
  %1 = func.call @twice(%x) : (tensor<?xf32>) -> tensor<?xi64>
  func.call @declared(%x) : (tensor<?xf32>) -> ()
  return %0, %1 : tensor<?xi64>, tensor<?xi64>
}

// -----

// Tests that recursive functions, and functions used as values, keep their types.
// CHECK-LABEL: func.func private @itself(%{{.*}}: tensor<?xf32>) -> tensor<?xi64>
// CHECK-LABEL: func.func @value(%{{.*}}: tensor<?xf32>) -> tensor<?xf32>
func.func private @itself(%x: tensor<?xf32>) -> tensor<?xi64> {
  %0 = "onnx.Shape"(%x) : (tensor<?xf32>) -> tensor<?xi64>
  %1 = func.call @itself(%x) : (tensor<?xf32>) -> tensor<?xi64>
  return %0 : tensor<?xi64>
}
func.func @value(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = func.constant @value : (tensor<?xf32>) -> tensor<?xf32>
  return %x : tensor<?xf32>
}

// -----

// Tests that the types of clusters, transfers and launches follow from operands and results.
// CHECK-LABEL: func.func private @stage(
// CHECK:         divi.cluster "relu"(%{{.*}} : tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    ^bb0(%{{.*}}: tensor<4xf32>):
// CHECK:         divi.yield %{{.*}} : tensor<4xf32>
// CHECK-LABEL: func.func @plan(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK:         divi.transfer %{{.*}} from @cpu0 to @gpu0 : tensor<4xf32>
// CHECK:         divi.launch @stage(%{{.*}}) on @gpu0 : (tensor<4xf32>) -> tensor<4xf32>
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func private @stage(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = divi.cluster "relu"(%x : tensor<?xf32>) -> tensor<?xf32> {
  ^bb0(%a: tensor<?xf32>):
    %1 = "onnx.Relu"(%a) : (tensor<?xf32>) -> tensor<?xf32>
    divi.yield %1 : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}
func.func @plan(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<?xf32>
  %1 = divi.launch @stage(%0) on @gpu0 : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// Tests that signedness and encodings are kept, whether the shape changes or not.
// CHECK-LABEL: func.func @elements(%{{.*}}: tensor<3xsi32>, %{{.*}}: tensor<4xsi32>, %{{.*}}: tensor<4xf32, {a = 1 : i64}>)
// OPEN-LABEL: func.func @elements(%{{.*}}: tensor<3xsi32>, %{{.*}}: tensor<?xsi32>, %{{.*}}: tensor<?xf32, {a = 1 : i64}>)
func.func @elements(%x: tensor<3xsi32>, %y: tensor<?xsi32>, %z: tensor<?xf32, {a = 1}>) -> tensor<3xsi32> {
  return %x : tensor<3xsi32>
}

// -----

// Tests that an Identity is kept if its result type is more precise than its operand's.
// OPEN-LABEL: func.func @identity(%{{.*}}: tensor<?xf32>) -> tensor<3xf32>
// OPEN:         "onnx.Identity"{{.*}} : (tensor<?xf32>) -> tensor<3xf32>
func.func @identity(%x: tensor<?xf32>) -> tensor<3xf32> {
  %0 = "onnx.Identity"(%x) : (tensor<?xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
