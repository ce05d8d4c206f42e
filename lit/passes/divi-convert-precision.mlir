// RUN: divi-opt %s --divi-convert-precision=precision=bf16 | FileCheck %s
// RUN: divi-opt %s --divi-convert-precision="precision=bf16 exclude=second*" | FileCheck %s --check-prefix=EXCLUDE
// RUN: divi-opt %s --divi-convert-precision | FileCheck %s --check-prefix=ATTRIBUTE
// RUN: divi-opt %s --divi-convert-precision=precision=bf16 | divi-opt --divi-infer-shapes --divi-canonicalize --divi-fuse -o %t.mlir

// Values between two convolutions stay in half precision; inputs, outputs and weights are converted.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME:    %[[X:.*]]: tensor<1x3x8x8xf32>) -> tensor<1x4x4x4xf32>
// CHECK:         %[[XL:.*]] = "onnx.Cast"(%[[X]]) <{{{.*}}to = bf16}> : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xbf16>
// CHECK:         "onnx.Cast"(%{{.*}}) <{{{.*}}to = bf16}> : (tensor<4x3x3x3xf32>) -> tensor<4x3x3x3xbf16>
// CHECK:         %[[C1:.*]] = "onnx.Conv"(%[[XL]], {{.*}}) -> tensor<1x4x8x8xbf16>
// CHECK-NEXT:    %[[R:.*]] = "onnx.Relu"(%[[C1]]) : (tensor<1x4x8x8xbf16>) -> tensor<1x4x8x8xbf16>
// CHECK-NEXT:    %[[P:.*]] = "onnx.MaxPoolSingleOut"(%[[R]]) {{.*}} -> tensor<1x4x4x4xbf16>
// CHECK:         %[[C2:.*]] = "onnx.Conv"(%[[P]], {{.*}}) {{.*}} -> tensor<1x4x4x4xbf16>
// CHECK:         %[[O:.*]] = "onnx.Cast"(%[[C2]]) <{{{.*}}to = f32}> {onnx_node_name = "second/to_f32"} : (tensor<1x4x4x4xbf16>) -> tensor<1x4x4x4xf32>
// CHECK:         return %[[O]] : tensor<1x4x4x4xf32>

// EXCLUDE-LABEL: func.func @chain(
// EXCLUDE:         "onnx.Conv"({{.*}}) -> tensor<1x4x8x8xbf16>
// EXCLUDE:         %[[P:.*]] = "onnx.Cast"({{.*}}) <{{{.*}}to = f32}> : (tensor<1x4x4x4xbf16>)
// EXCLUDE:         "onnx.Conv"(%[[P]], {{.*}}) {{.*}} -> tensor<1x4x4x4xf32>
func.func @chain(%x: tensor<1x3x8x8xf32>) -> tensor<1x4x4x4xf32> {
  %none = "onnx.NoValue"() {value} : () -> none
  %w1 = "onnx.Constant"() {value = dense<0.5> : tensor<4x3x3x3xf32>} : () -> tensor<4x3x3x3xf32>
  %w2 = "onnx.Constant"() {value = dense<0.25> : tensor<4x4x1x1xf32>} : () -> tensor<4x4x1x1xf32>
  %0 = "onnx.Conv"(%x, %w1, %none) {pads = [1, 1, 1, 1]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, none) -> tensor<1x4x8x8xf32>
  %1 = "onnx.Relu"(%0) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %2 = "onnx.MaxPoolSingleOut"(%1) {kernel_shape = [2, 2], strides = [2, 2]} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  %3 = "onnx.Conv"(%2, %w2, %none) {onnx_node_name = "second"} : (tensor<1x4x4x4xf32>, tensor<4x4x1x1xf32>, none) -> tensor<1x4x4x4xf32>
  return %3 : tensor<1x4x4x4xf32>
}

// Softmax stays in f32; its operand and its result are converted once each, for all readers.
// CHECK-LABEL: func.func @attention(
// CHECK:         %[[S:.*]] = "onnx.MatMul"({{.*}}) : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xbf16>
// CHECK-NEXT:    %[[F:.*]] = "onnx.Cast"(%[[S]]) <{{{.*}}to = f32}>
// CHECK-NEXT:    %[[P:.*]] = "onnx.Softmax"(%[[F]]) {{.*}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:    %[[L:.*]] = "onnx.Cast"(%[[P]]) <{{{.*}}to = bf16}>
// CHECK-NEXT:    "onnx.MatMul"(%[[L]], %{{.*}}) : (tensor<4x4xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
func.func @attention(%q: tensor<4x8xf32>, %k: tensor<8x4xf32>, %v: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x4xf32>) {
  %0 = "onnx.MatMul"(%q, %k) : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = "onnx.Softmax"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "onnx.MatMul"(%1, %v) : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2, %1 : tensor<4x8xf32>, tensor<4x4xf32>
}

// An addition of converted values and of others is computed in f32; an operand that depends on constants only is converted.
// CHECK-LABEL: func.func @additions(
// CHECK:         %[[T:.*]] = "onnx.Transpose"
// CHECK-NEXT:    "onnx.Cast"(%[[T]]) <{{{.*}}to = bf16}>
// CHECK:         %[[M:.*]] = "onnx.MatMul"({{.*}}) -> tensor<4x8xbf16>
// CHECK-NEXT:    %[[F:.*]] = "onnx.Cast"(%[[M]]) <{{{.*}}to = f32}>
// CHECK-NEXT:    %[[B:.*]] = "onnx.Add"(%[[M]], %{{.*}}) : (tensor<4x8xbf16>, tensor<8xbf16>) -> tensor<4x8xbf16>
// CHECK:         "onnx.Add"(%{{.*}}, %arg0) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @additions(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %w = "onnx.Constant"() {value = dense<0.5> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
  %b = "onnx.Constant"() {value = dense<1.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %t = "onnx.Transpose"(%w) {perm = [1, 0]} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = "onnx.MatMul"(%x, %t) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = "onnx.Add"(%0, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = "onnx.Add"(%0, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// An attribute overrides the option, in both directions.
// CHECK-LABEL: func.func @attribute(
// CHECK:         "onnx.MatMul"({{.*}}) {divi.precision = "f32"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK:         "onnx.MatMul"({{.*}}) {divi.precision = "f16"} : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x4xf16>
// ATTRIBUTE-LABEL: func.func @attention(
// ATTRIBUTE-NOT:     bf16
// ATTRIBUTE-LABEL: func.func @attribute(
// ATTRIBUTE:         "onnx.MatMul"({{.*}}) -> tensor<4x4xf32>
// ATTRIBUTE:         "onnx.MatMul"({{.*}}) -> tensor<4x4xf16>
func.func @attribute(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "onnx.MatMul"(%x, %x) {divi.precision = "f32"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "onnx.MatMul"(%0, %x) {divi.precision = "f16"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// Values of the function are read as f32 in regions.
// CHECK-LABEL: func.func @region(
// CHECK:         %[[M:.*]] = "onnx.MatMul"({{.*}}) -> tensor<4x4xbf16>
// CHECK-NEXT:    %[[F:.*]] = "onnx.Cast"(%[[M]]) <{{{.*}}to = f32}>
// CHECK:         "onnx.If"
// CHECK:         "onnx.MatMul"(%[[F]], %[[F]]) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
func.func @region(%x: tensor<4x4xf32>, %c: tensor<i1>) -> tensor<4x4xf32> {
  %0 = "onnx.MatMul"(%x, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "onnx.If"(%c) ({
    %2 = "onnx.MatMul"(%0, %0) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    "onnx.Yield"(%2) : (tensor<4x4xf32>) -> ()
  }, {
    "onnx.Yield"(%0) : (tensor<4x4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// A product in another type than f32 keeps it.
// CHECK-LABEL: func.func @other_types(
// CHECK-NOT:     bf16
// CHECK:         return
func.func @other_types(%x: tensor<4x4xf64>, %y: tensor<4x4xf16>) -> (tensor<4x4xf64>, tensor<4x4xf16>) {
  %0 = "onnx.MatMul"(%x, %x) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %1 = "onnx.MatMul"(%y, %y) : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x4xf16>
  return %0, %1 : tensor<4x4xf64>, tensor<4x4xf16>
}

// Selected rows stay in half precision.
// CHECK-LABEL: func.func @rows(
// CHECK:         %[[M:.*]] = "onnx.MatMul"({{.*}}) -> tensor<4x8xbf16>
// CHECK-NEXT:    %[[G:.*]] = "onnx.Gather"(%[[M]], %{{.*}}) {{.*}} -> tensor<2x8xbf16>
// CHECK-NEXT:    "onnx.MatMul"(%[[G]], %{{.*}}) {{.*}} -> tensor<2x8xbf16>
func.func @rows(%x: tensor<4x8xf32>, %rows: tensor<2xi64>) -> tensor<2x8xf32> {
  %w = "onnx.Constant"() {value = dense<0.5> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
  %0 = "onnx.MatMul"(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = "onnx.Gather"(%0, %rows) {axis = 0 : si64} : (tensor<4x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  %2 = "onnx.MatMul"(%1, %w) : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}
