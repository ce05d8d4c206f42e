// RUN: divi-opt %s --split-input-file --divi-convert-linalg --divi-canonicalize --verify-diagnostics | FileCheck %s

// Tests that a product needs no transpose if its operands are in order, and that a zero accumulator is not added.
// CHECK-LABEL: func.func @product
// CHECK-NEXT: "onnx.MatMul"(%{{.*}}, %{{.*}}) {onnx_node_name = "matmul_0/MatMul"}
// CHECK-NEXT: return
func.func @product(%a: tensor<7x12xf32>, %b: tensor<12x5xf32>) -> tensor<7x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x5xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<7x5xf32>) -> tensor<7x5xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<7x12xf32>, tensor<12x5xf32>) outs(%i : tensor<7x5xf32>) -> tensor<7x5xf32>
  return %0 : tensor<7x5xf32>
}

// -----

// Tests that a window that starts at multiples of the stride is a convolution, and that other accumulators are added.
// CHECK-LABEL: func.func @convolution
// CHECK: "onnx.Conv"{{.*}}dilations = [1, 1], group = 1 : si64, kernel_shape = [3, 3], pads = [0, 0, 0, 0], strides = [2, 2]
// CHECK-NEXT: "onnx.Add"(%arg2, %{{.*}})
func.func @convolution(%x: tensor<1x3x9x9xf32>, %w: tensor<4x3x3x3xf32>, %y: tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<1x3x9x9xf32>, tensor<4x3x3x3xf32>)
    outs(%y : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %0 : tensor<1x4x4x4xf32>
}

// -----

// Tests that attributes of divi are copied to every operator.
// CHECK-LABEL: func.func @attributes
// CHECK: "onnx.Exp"(%{{.*}}) {divi.precision = "f32", onnx_node_name = "map_0/Exp"}
func.func @attributes(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.map { math.exp } ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {divi.precision = "f32"}
  return %0 : tensor<4xf32>
}

// -----

// Tests that a tensor that is read before it is written is not converted.
#id = affine_map<(i) -> (i)>
// CHECK-LABEL: func.func @undefined
func.func @undefined(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  // CHECK: linalg.generic
  // expected-warning @below {{'linalg.generic' cannot be converted to onnx operators: the body reads a tensor.empty; it can be planned, but not compiled}}
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Tests operations without a counterpart: shifts, dynamic shapes, scans, reversed indices and scalars of the function.
#id = affine_map<(i) -> (i)>
#sum = affine_map<(i) -> ()>
func.func @without_counterpart(%n: tensor<4xi32>, %d: tensor<?xf32>, %x: tensor<4xf32>, %s: f32, %w: tensor<4xi128>, %m: tensor<4x4xf32>)
    -> (tensor<4xi32>, tensor<?xf32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi128>, tensor<4xf32>) {
  // expected-warning @below {{'arith.shli' cannot be converted to onnx operators: 'arith.shli' of i32 has no counterpart in onnx; it can be}}
  %0 = arith.shli %n, %n : tensor<4xi32>
  // expected-warning @below {{'linalg.exp' cannot be converted to onnx operators: its operands are not tensors of static shape, with numbers as elements}}
  %1 = linalg.exp ins(%d : tensor<?xf32>) outs(%d : tensor<?xf32>) -> tensor<?xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  // expected-warning @below {{its body is not a sum, product, minimum or maximum}}
  %2 = linalg.generic {indexing_maps = [#id, #sum], iterator_types = ["reduction"]} ins(%x : tensor<4xf32>) outs(%zero : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.subf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %e = tensor.empty() : tensor<4xf32>
  // expected-warning @below {{an operand is not indexed by loops}}
  %3 = linalg.generic {indexing_maps = [affine_map<(i) -> (3 - i)>, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  // expected-warning @below {{a scalar operand is not a constant}}
  %4 = linalg.fill ins(%s : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // expected-warning @below {{'arith.addi' cannot be converted to onnx operators: its result is not a tensor of static shape, with numbers as elements}}
  %5 = arith.addi %w, %w : tensor<4xi128>
  // expected-warning @below {{one loop indexes two dimensions of an operand}}
  %6 = linalg.generic {indexing_maps = [affine_map<(i) -> (i, i)>, #id], iterator_types = ["parallel"]} ins(%m : tensor<4x4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<4xi32>, tensor<?xf32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi128>, tensor<4xf32>
}

// -----

// Tests that a constant list of sizes is removed with the reshape that reads it.
// CHECK-LABEL: func.func @sizes
// CHECK-NEXT: onnx.Constant dense<2> : tensor<2xi64>
// CHECK-NEXT: "onnx.Reshape"
func.func @sizes(%x: tensor<4xf32>) -> tensor<2x2xf32> {
  %sizes = arith.constant dense<[2, 2]> : tensor<2xindex>
  %0 = tensor.reshape %x(%sizes) : (tensor<4xf32>, tensor<2xindex>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Tests that a planned module is not changed.
// expected-error @below {{has a plan for operations that this pass would replace: run divi-convert-linalg before planning}}
module attributes {divi.plan = {objective = "latency", bound_by = "milp", proof = "exact", algorithm = "auto", value = 1.0, bound = 1.0, gap = 0.0}} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.addf %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
