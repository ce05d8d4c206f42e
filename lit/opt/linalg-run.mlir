// Tests that modules of linalg, tensor, arith and math operations, planned on two devices, compute what MLIR's own lowering
// computes.
// RUN: %python %S/../run-linalg.py %s -o %t --system=cpu-2 --algorithm=single > %t.txt
// RUN: FileCheck %s --input-file=%t.txt --implicit-check-not=differ
// RUN: %python %S/../run-linalg.py %s -o %t --system=cpu-2 --fuse=none --spread=cpu0,cpu1 > %t.txt
// RUN: FileCheck %s --input-file=%t.txt --implicit-check-not=differ
// CHECK-COUNT-30: equal
// CHECK-NOT: {{.}}

// mixed
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#tr = affine_map<(i, j) -> (j, i)>
func.func @main(%a: tensor<16x32xf32>, %b: tensor<32x8xf32>, %c: tensor<8x16xf32>, %bias: tensor<8xf32>) -> (tensor<16x8xf32>, tensor<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<16x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x8xf32>) -> tensor<16x8xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x8xf32>) outs(%init : tensor<16x8xf32>) -> tensor<16x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row, #tr, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %bias, %c : tensor<16x8xf32>, tensor<8xf32>, tensor<8x16xf32>) outs(%empty : tensor<16x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %t = math.tanh %s : f32
    %u = arith.mulf %t, %z : f32
    %v = arith.maximumf %u, %zero : f32
    linalg.yield %v : f32
  } -> tensor<16x8xf32>
  %e1 = tensor.empty() : tensor<16xf32>
  %m = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<16xf32>) -> tensor<16xf32>
  %2 = linalg.reduce ins(%1 : tensor<16x8xf32>) outs(%m : tensor<16xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %r = arith.maximumf %in, %acc : f32
      linalg.yield %r : f32
    }
  return %1, %2 : tensor<16x8xf32>, tensor<16xf32>
}

// -----

// transposed-product-and-accumulator
#l = affine_map<(m, n, k) -> (m, k)>
#r = affine_map<(m, n, k) -> (n, k)>
#o = affine_map<(m, n, k) -> (m, n)>
func.func @main(%a: tensor<7x12xf32>, %b: tensor<5x12xf32>, %c: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %0 = linalg.matmul indexing_maps = [#l, #r, #o] ins(%a, %b : tensor<7x12xf32>, tensor<5x12xf32>) outs(%c : tensor<7x5xf32>) -> tensor<7x5xf32>
  return %0 : tensor<7x5xf32>
}

// -----

// batch-product
func.func @main(%a: tensor<3x7x12xf32>, %b: tensor<3x12x5xf32>) -> tensor<3x7x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x7x5xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<3x7x5xf32>) -> tensor<3x7x5xf32>
  %0 = linalg.batch_matmul ins(%a, %b : tensor<3x7x12xf32>, tensor<3x12x5xf32>) outs(%i : tensor<3x7x5xf32>) -> tensor<3x7x5xf32>
  return %0 : tensor<3x7x5xf32>
}

// -----

// vectors
func.func @main(%a: tensor<7x12xf32>, %b: tensor<12xf32>, %c: tensor<7xf32>) -> (tensor<7xf32>, tensor<12xf32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %e7 = tensor.empty() : tensor<7xf32>
  %e12 = tensor.empty() : tensor<12xf32>
  %e = tensor.empty() : tensor<f32>
  %i7 = linalg.fill ins(%zero : f32) outs(%e7 : tensor<7xf32>) -> tensor<7xf32>
  %i12 = linalg.fill ins(%zero : f32) outs(%e12 : tensor<12xf32>) -> tensor<12xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.matvec ins(%a, %b : tensor<7x12xf32>, tensor<12xf32>) outs(%i7 : tensor<7xf32>) -> tensor<7xf32>
  %1 = linalg.vecmat ins(%c, %a : tensor<7xf32>, tensor<7x12xf32>) outs(%i12 : tensor<12xf32>) -> tensor<12xf32>
  %2 = linalg.dot ins(%1, %b : tensor<12xf32>, tensor<12xf32>) outs(%i : tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<7xf32>, tensor<12xf32>, tensor<f32>
}

// -----

// contraction
#l = affine_map<(b, m, p, n, k, q) -> (k, m, b, p, q)>
#r = affine_map<(b, m, p, n, k, q) -> (n, q, b, k)>
#o = affine_map<(b, m, p, n, k, q) -> (p, b, n, m)>
func.func @main(%a: tensor<3x4x2x5x6xf32>, %b: tensor<7x6x2x3xf32>) -> tensor<5x2x7x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<5x2x7x4xf32>
  %0 = linalg.generic {indexing_maps = [#l, #r, #o],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%a, %b : tensor<3x4x2x5x6xf32>, tensor<7x6x2x3xf32>) outs(%zero : tensor<5x2x7x4xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %y, %x : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<5x2x7x4xf32>
  return %0 : tensor<5x2x7x4xf32>
}

// -----

// product-of-integers
func.func @main(%a: tensor<7x12xi8>, %b: tensor<12x5xi8>, %c: tensor<7x5xi32>) -> tensor<7x5xi32> {
  %0 = linalg.matmul ins(%a, %b : tensor<7x12xi8>, tensor<12x5xi8>) outs(%c : tensor<7x5xi32>) -> tensor<7x5xi32>
  return %0 : tensor<7x5xi32>
}

// -----

// product-of-halves
func.func @main(%a: tensor<7x12xf16>, %b: tensor<12x5xf16>, %c: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<7x12xf16>, tensor<12x5xf16>) outs(%c : tensor<7x5xf32>) -> tensor<7x5xf32>
  return %0 : tensor<7x5xf32>
}

// -----

// convolution-nchw
func.func @main(%x: tensor<2x3x11x10xf32>, %w: tensor<4x3x3x2xf32>, %b: tensor<4xf32>) -> tensor<2x4x4x8xf32> {
  %e = tensor.empty() : tensor<2x4x4x8xf32>
  %i = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<2x4x4x8xf32>) dimensions = [0, 2, 3]
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 2]> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>}
    ins(%x, %w : tensor<2x3x11x10xf32>, tensor<4x3x3x2xf32>) outs(%i : tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  return %0 : tensor<2x4x4x8xf32>
}

// -----

// convolution-nhwc
func.func @main(%x: tensor<2x9x10x3xf32>, %w: tensor<3x3x3x8xf32>) -> tensor<2x7x8x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<2x7x8x8xf32>
  %0 = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<2x9x10x3xf32>, tensor<3x3x3x8xf32>)
    outs(%zero : tensor<2x7x8x8xf32>) -> tensor<2x7x8x8xf32>
  return %0 : tensor<2x7x8x8xf32>
}

// -----

// convolution-in-groups
func.func @main(%x: tensor<2x3x4x9x9xf32>, %w: tensor<3x5x4x3x3xf32>) -> tensor<2x3x5x4x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<2x3x5x4x4xf32>
  %0 = linalg.conv_2d_ngchw_gfchw {strides = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<2x3x4x9x9xf32>, tensor<3x5x4x3x3xf32>) outs(%zero : tensor<2x3x5x4x4xf32>) -> tensor<2x3x5x4x4xf32>
  return %0 : tensor<2x3x5x4x4xf32>
}

// -----

// depthwise
func.func @main(%x: tensor<1x9x9x6xf32>, %w: tensor<3x3x6xf32>, %v: tensor<3x3x6x2xf32>)
    -> (tensor<1x7x7x6xf32>, tensor<1x4x4x6x2xf32>) {
  %zero = arith.constant dense<0.0> : tensor<1x7x7x6xf32>
  %two = arith.constant dense<0.0> : tensor<1x4x4x6x2xf32>
  %0 = linalg.depthwise_conv_2d_nhwc_hwc ins(%x, %w : tensor<1x9x9x6xf32>, tensor<3x3x6xf32>)
    outs(%zero : tensor<1x7x7x6xf32>) -> tensor<1x7x7x6xf32>
  %1 = linalg.depthwise_conv_2d_nhwc_hwcm {strides = dense<2> : tensor<2xi64>}
    ins(%x, %v : tensor<1x9x9x6xf32>, tensor<3x3x6x2xf32>) outs(%two : tensor<1x4x4x6x2xf32>) -> tensor<1x4x4x6x2xf32>
  return %0, %1 : tensor<1x7x7x6xf32>, tensor<1x4x4x6x2xf32>
}

// -----

// convolution-1d-and-3d
func.func @main(%x: tensor<1x9x3xf32>, %w: tensor<3x3x4xf32>, %y: tensor<1x5x5x6x2xf32>, %v: tensor<2x2x3x2x4xf32>)
    -> (tensor<1x7x4xf32>, tensor<1x4x4x4x4xf32>) {
  %zero = arith.constant dense<0.0> : tensor<1x7x4xf32>
  %zeros = arith.constant dense<0.0> : tensor<1x4x4x4x4xf32>
  %0 = linalg.conv_1d_nwc_wcf ins(%x, %w : tensor<1x9x3xf32>, tensor<3x3x4xf32>) outs(%zero : tensor<1x7x4xf32>) -> tensor<1x7x4xf32>
  %1 = linalg.conv_3d_ndhwc_dhwcf ins(%y, %v : tensor<1x5x5x6x2xf32>, tensor<2x2x3x2x4xf32>)
    outs(%zeros : tensor<1x4x4x4x4xf32>) -> tensor<1x4x4x4x4xf32>
  return %0, %1 : tensor<1x7x4xf32>, tensor<1x4x4x4x4xf32>
}

// -----

// pointwise-with-strides
#x = affine_map<(n, f, h, w, c) -> (n, c, h * 2, w * 3)>
#k = affine_map<(n, f, h, w, c) -> (f, c)>
#y = affine_map<(n, f, h, w, c) -> (n, h, w, f)>
func.func @main(%x: tensor<2x3x9x10xf32>, %k: tensor<4x3xf32>) -> tensor<2x5x4x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<2x5x4x4xf32>
  %0 = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %k : tensor<2x3x9x10xf32>, tensor<4x3xf32>) outs(%zero : tensor<2x5x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x5x4x4xf32>
  return %0 : tensor<2x5x4x4xf32>
}

// -----

// pools
func.func @main(%x: tensor<2x9x11x3xf32>, %y: tensor<2x3x9x10xf32>)
    -> (tensor<2x4x5x3xf32>, tensor<2x7x9x3xf32>, tensor<2x3x4x4xf32>, tensor<2x8x10x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %highest = arith.constant 0x7F800000 : f32
  %w = tensor.empty() : tensor<3x3xf32>
  %v = tensor.empty() : tensor<2x2xf32>
  %e0 = tensor.empty() : tensor<2x4x5x3xf32>
  %i0 = linalg.fill ins(%lowest : f32) outs(%e0 : tensor<2x4x5x3xf32>) -> tensor<2x4x5x3xf32>
  %0 = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<2x9x11x3xf32>, tensor<3x3xf32>)
    outs(%i0 : tensor<2x4x5x3xf32>) -> tensor<2x4x5x3xf32>
  %e1 = tensor.empty() : tensor<2x7x9x3xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x7x9x3xf32>) -> tensor<2x7x9x3xf32>
  %1 = linalg.pooling_nhwc_sum ins(%x, %w : tensor<2x9x11x3xf32>, tensor<3x3xf32>) outs(%i1 : tensor<2x7x9x3xf32>) -> tensor<2x7x9x3xf32>
  %e2 = tensor.empty() : tensor<2x3x4x4xf32>
  %i2 = linalg.fill ins(%lowest : f32) outs(%e2 : tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %2 = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>} ins(%y, %w : tensor<2x3x9x10xf32>, tensor<3x3xf32>)
    outs(%i2 : tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %e3 = tensor.empty() : tensor<2x8x10x3xf32>
  %i3 = linalg.fill ins(%highest : f32) outs(%e3 : tensor<2x8x10x3xf32>) -> tensor<2x8x10x3xf32>
  %3 = linalg.pooling_nhwc_min ins(%x, %v : tensor<2x9x11x3xf32>, tensor<2x2xf32>) outs(%i3 : tensor<2x8x10x3xf32>) -> tensor<2x8x10x3xf32>
  return %0, %1, %2, %3 : tensor<2x4x5x3xf32>, tensor<2x7x9x3xf32>, tensor<2x3x4x4xf32>, tensor<2x8x10x3xf32>
}

// -----

// reductions
#x = affine_map<(i, j, k) -> (i, j, k)>
#y = affine_map<(i, j, k) -> (j)>
#z = affine_map<(i, j, k) -> (k, i)>
func.func @main(%x: tensor<4x5x6xf32>, %b: tensor<5xf32>, %n: tensor<4x5x6xi32>, %init: tensor<6x4xf32>)
    -> (tensor<5xf32>, tensor<6x4xf32>, tensor<5xi32>, tensor<5xi32>) {
  %zero = arith.constant dense<0.0> : tensor<5xf32>
  %one = arith.constant dense<1> : tensor<5xi32>
  %large = arith.constant dense<0x7FFFFFFF> : tensor<5xi32>
  %0 = linalg.generic {indexing_maps = [#x, #y, #y], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x, %b : tensor<4x5x6xf32>, tensor<5xf32>) outs(%zero : tensor<5xf32>) {
  ^bb0(%a: f32, %m: f32, %s: f32):
    %d = arith.subf %a, %m : f32
    %q = arith.mulf %d, %d : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  %1 = linalg.generic {indexing_maps = [#x, #y, #z], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %b : tensor<4x5x6xf32>, tensor<5xf32>) outs(%init : tensor<6x4xf32>) {
  ^bb0(%a: f32, %m: f32, %s: f32):
    %d = arith.divf %a, %m : f32
    %t = arith.minimumf %d, %s : f32
    linalg.yield %t : f32
  } -> tensor<6x4xf32>
  %2:2 = linalg.generic {indexing_maps = [#x, #y, #y], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%n : tensor<4x5x6xi32>) outs(%one, %large : tensor<5xi32>, tensor<5xi32>) {
  ^bb0(%a: i32, %p: i32, %s: i32):
    %c2 = arith.constant 2 : i32
    %odd = arith.ori %a, %c2 : i32
    %t = arith.muli %p, %odd : i32
    %u = arith.minsi %s, %a : i32
    linalg.yield %t, %u : i32, i32
  } -> (tensor<5xi32>, tensor<5xi32>)
  return %0, %1, %2#0, %2#1 : tensor<5xf32>, tensor<6x4xf32>, tensor<5xi32>, tensor<5xi32>
}

// -----

// largest-number-besides-nan
func.func @main(%x: tensor<4x6xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %lowest = arith.constant dense<0xFF800000> : tensor<4xf32>
  %r = linalg.map { math.sqrt } ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>)
  %0 = linalg.reduce { arith.maxnumf } ins(%r : tensor<4x6xf32>) outs(%lowest : tensor<4xf32>) dimensions = [1]
  return %0 : tensor<4xf32>
}

// -----

// sum-of-a-broadcast
#a = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %w = tensor.empty() : tensor<4x3xf32>
  %0 = linalg.generic {indexing_maps = [#a, affine_map<(i, j) -> (i, j)>, #a], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<4xf32>, tensor<4x3xf32>) outs(%zero : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// named-elements
func.func @main(%x: tensor<4x6xf32>, %y: tensor<6xf32>, %z: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<6x4xf32>, tensor<4x6xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %e2 = tensor.empty() : tensor<6x4xf32>
  %b = linalg.broadcast ins(%y : tensor<6xf32>) outs(%e : tensor<4x6xf32>) dimensions = [0]
  %0 = linalg.add ins(%x, %b : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = linalg.exp ins(%0 : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = linalg.div ins(%z, %1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %3 = linalg.transpose ins(%2 : tensor<4x6xf32>) outs(%e2 : tensor<6x4xf32>) permutation = [1, 0]
  %4 = linalg.map { arith.mulf } ins(%x, %z : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>)
  %5 = linalg.elementwise kind = #linalg.elementwise_kind<abs> ins(%4 : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %6 = linalg.copy ins(%5 : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %2, %3, %6 : tensor<4x6xf32>, tensor<6x4xf32>, tensor<4x6xf32>
}

// -----

// accumulator-of-elements
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%y : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// positions
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xi32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %n = tensor.empty() : tensor<4x6xi32>
  %0:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x6xf32>) outs(%e, %n : tensor<4x6xf32>, tensor<4x6xi32>) {
  ^bb0(%a: f32, %o: f32, %p: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %below = arith.cmpi ugt, %j, %i : index
    %low = arith.constant -1.0e+30 : f32
    %masked = arith.select %below, %low, %a : f32
    %six = arith.constant 6 : index
    %row = arith.muli %i, %six : index
    %place = arith.addi %row, %j : index
    %number = arith.index_cast %place : index to i32
    linalg.yield %masked, %number : f32, i32
  } -> (tensor<4x6xf32>, tensor<4x6xi32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<4x6xi32>
}

// -----

// one-dimensional-constant-indices
#x = affine_map<(i, j) -> (0, j)>
#y = affine_map<(i, j) -> (i, 0)>
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<1x6xf32>, %y: tensor<4x1xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %0 = linalg.generic {indexing_maps = [#x, #y, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<1x6xf32>, tensor<4x1xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// shapes
func.func @main(%x: tensor<4x6xf32>, %y: tensor<2x3xf32>)
    -> (tensor<7x9xf32>, tensor<6x4xf32>, tensor<2x2x6xf32>, tensor<2xf32>, tensor<4x6xf32>, tensor<4x12xf32>) {
  %value = arith.constant 2.5 : f32
  %0 = tensor.pad %x low[1, 0] high[2, 3] {
  ^bb0(%i: index, %j: index):
    tensor.yield %value : f32
  } : tensor<4x6xf32> to tensor<7x9xf32>
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %1 = tensor.expand_shape %flat [[0, 1]] output_shape [6, 4] : tensor<24xf32> into tensor<6x4xf32>
  %2 = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 2, 6] : tensor<4x6xf32> into tensor<2x2x6xf32>
  %3 = tensor.extract_slice %x[1, 2] [2, 1] [2, 1] : tensor<4x6xf32> to tensor<2xf32>
  %4 = tensor.insert_slice %y into %x[1, 2] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x6xf32>
  %5 = tensor.concat dim(1) %x, %4 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<7x9xf32>, tensor<6x4xf32>, tensor<2x2x6xf32>, tensor<2xf32>, tensor<4x6xf32>, tensor<4x12xf32>
}

// -----

// scalars-of-floats
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %0:4 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<64xf32>, tensor<64xf32>) outs(%e, %e, %e, %e : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %p: f32, %q: f32, %r: f32):
    %half = arith.constant 0.5 : f32
    %abs = math.absf %a : f32
    %pow = math.powf %abs, %b : f32
    %fma = math.fma %pow, %a, %b : f32
    %rsqrt = math.rsqrt %abs : f32
    %cbrt = math.cbrt %a : f32
    %s0 = arith.addf %fma, %rsqrt : f32
    %s1 = arith.addf %s0, %cbrt : f32
    %log1p = math.log1p %abs : f32
    %expm1 = math.expm1 %b : f32
    %exp2 = math.exp2 %b : f32
    %log2 = math.log2 %abs : f32
    %t0 = arith.addf %log1p, %expm1 : f32
    %t1 = arith.addf %exp2, %log2 : f32
    %t2 = arith.mulf %t0, %t1 : f32
    %twice = arith.addf %a, %a : f32
    %round = math.round %twice : f32
    %even = math.roundeven %twice : f32
    %trunc = math.trunc %twice : f32
    %floor = math.floor %a : f32
    %ceil = math.ceil %b : f32
    %u0 = arith.addf %round, %even : f32
    %u1 = arith.addf %trunc, %floor : f32
    %u2 = arith.addf %u0, %u1 : f32
    %u3 = arith.addf %u2, %ceil : f32
    %rem = arith.remf %a, %half : f32
    %num = arith.minnumf %rem, %b : f32
    %neg = arith.negf %num : f32
    %erf = math.erf %a : f32
    %sin = math.sin %b : f32
    %v0 = arith.mulf %erf, %sin : f32
    %v1 = arith.addf %neg, %v0 : f32
    linalg.yield %s1, %t2, %u3, %v1 : f32, f32, f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

// scalars-of-integers
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64xi32>, %y: tensor<64xi32>, %t: tensor<64xi1>, %n: tensor<64xi8>)
    -> (tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xi32>
  %f = tensor.empty() : tensor<64xf32>
  %0:4 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y, %t, %n : tensor<64xi32>, tensor<64xi32>, tensor<64xi1>, tensor<64xi8>)
      outs(%e, %e, %e, %f : tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xf32>) {
  ^bb0(%a: i32, %b: i32, %c: i1, %d: i8, %o: i32, %p: i32, %q: i32, %r: f32):
    %seven = arith.constant 7 : i32
    %three = arith.constant 3 : i32
    %large = arith.ori %b, %seven : i32
    %scaled = arith.muli %a, %seven : i32
    %quotient = arith.divsi %scaled, %large : i32
    %rest = arith.remsi %scaled, %three : i32
    %s0 = arith.subi %quotient, %rest : i32
    %u = arith.maxui %a, %b : i32
    %v = arith.minsi %u, %a : i32
    %w = arith.xori %v, %b : i32
    %less = arith.cmpi ult, %a, %b : i32
    %more = arith.cmpi sge, %a, %b : i32
    %both = arith.xori %less, %more : i1
    %any = arith.andi %both, %c : i1
    %select = arith.select %any, %w, %s0 : i32
    %sign = arith.extsi %c : i1 to i32
    %bits = arith.extui %d : i8 to i32
    %sum = arith.addi %sign, %bits : i32
    %low = arith.trunci %a : i32 to i1
    %one = arith.uitofp %low : i1 to f32
    %float = arith.sitofp %b : i32 to f32
    %byte = arith.uitofp %d : i8 to f32
    %g0 = arith.addf %one, %float : f32
    %g1 = arith.subf %g0, %byte : f32
    linalg.yield %select, %w, %sum, %g1 : i32, i32, i32, f32
  } -> (tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xf32>
}

// -----

// comparisons-with-nan
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xi32>) {
  %a = math.sqrt %x : tensor<64xf32>
  %0 = arith.cmpf olt, %a, %y : tensor<64xf32>
  %1 = arith.cmpf ult, %a, %y : tensor<64xf32>
  %2 = arith.cmpf one, %a, %x : tensor<64xf32>
  %3 = arith.cmpf ueq, %a, %a : tensor<64xf32>
  %4 = arith.cmpf ord, %a, %y : tensor<64xf32>
  %5 = arith.fptosi %y : tensor<64xf32> to tensor<64xi32>
  return %0, %1, %2, %3, %4, %5 : tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xi32>
}

// -----

// halves
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x6xf16>, %y: tensor<4x6xf32>) -> tensor<4x6xf16> {
  %e = tensor.empty() : tensor<4x6xf16>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x6xf16>, tensor<4x6xf32>) outs(%e : tensor<4x6xf16>) {
  ^bb0(%a: f16, %b: f32, %o: f16):
    %w = arith.extf %a : f16 to f32
    %s = arith.mulf %w, %b : f32
    %n = arith.truncf %s : f32 to f16
    linalg.yield %n : f16
  } -> tensor<4x6xf16>
  return %0 : tensor<4x6xf16>
}

// -----

// tosa-convolution
func.func @main(%x: tensor<1x9x9x4xf32>) -> (tensor<1x5x5x8xf32>, tensor<1x4x4x8xf32>) {
  %w = "tosa.const"() {values = dense<0.37> : tensor<8x3x3x4xf32>} : () -> tensor<8x3x3x4xf32>
  %b = "tosa.const"() {values = dense<[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]> : tensor<8xf32>} : () -> tensor<8xf32>
  %zero = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = tosa.conv2d %x, %w, %b, %zero, %zero {acc_type = f32, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>}
    : (tensor<1x9x9x4xf32>, tensor<8x3x3x4xf32>, tensor<8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x5x5x8xf32>
  %1 = tosa.clamp %0 {min_val = 0.0 : f32, max_val = 6.0 : f32} : (tensor<1x5x5x8xf32>) -> tensor<1x5x5x8xf32>
  %2 = tosa.max_pool2d %1 {kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>}
    : (tensor<1x5x5x8xf32>) -> tensor<1x4x4x8xf32>
  return %1, %2 : tensor<1x5x5x8xf32>, tensor<1x4x4x8xf32>
}

// -----

// tosa-attention
func.func @main(%q: tensor<2x6x4xf32>, %k: tensor<2x4x6xf32>, %v: tensor<2x6x4xf32>) -> tensor<2x24xf32> {
  %zero = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %shape = tosa.const_shape {values = dense<[2, 24]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %s = tosa.matmul %q, %k, %zero, %zero : (tensor<2x6x4xf32>, tensor<2x4x6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x6x6xf32>
  %m = tosa.reduce_max %s {axis = 2 : i32} : (tensor<2x6x6xf32>) -> tensor<2x6x1xf32>
  %d = tosa.sub %s, %m : (tensor<2x6x6xf32>, tensor<2x6x1xf32>) -> tensor<2x6x6xf32>
  %e = tosa.exp %d : (tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %t = tosa.reduce_sum %e {axis = 2 : i32} : (tensor<2x6x6xf32>) -> tensor<2x6x1xf32>
  %r = tosa.reciprocal %t : (tensor<2x6x1xf32>) -> tensor<2x6x1xf32>
  %shift = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %p = tosa.mul %e, %r, %shift : (tensor<2x6x6xf32>, tensor<2x6x1xf32>, tensor<1xi8>) -> tensor<2x6x6xf32>
  %o = tosa.matmul %p, %v, %zero, %zero : (tensor<2x6x6xf32>, tensor<2x6x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x6x4xf32>
  %0 = tosa.reshape %o, %shape : (tensor<2x6x4xf32>, !tosa.shape<2>) -> tensor<2x24xf32>
  return %0 : tensor<2x24xf32>
}

// -----

// tosa-shapes
func.func @main(%x: tensor<2x6x4xf32>, %y: tensor<2x6x4xf32>) -> (tensor<4x2x6xf32>, tensor<2x12x4xf32>, tensor<2x3x2xf32>, tensor<2x6x4xf32>) {
  %0 = tosa.transpose %x {perms = array<i32: 2, 0, 1>} : (tensor<2x6x4xf32>) -> tensor<4x2x6xf32>
  %1 = tosa.concat %x, %y {axis = 1 : i32} : (tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x12x4xf32>
  %start = tosa.const_shape {values = dense<[0, 2, 1]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %size = tosa.const_shape {values = dense<[2, 3, 2]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %2 = tosa.slice %x, %start, %size : (tensor<2x6x4xf32>, !tosa.shape<3>, !tosa.shape<3>) -> tensor<2x3x2xf32>
  %s = tosa.sigmoid %x : (tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  %g = tosa.greater %x, %y : (tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x6x4xi1>
  %3 = tosa.select %g, %s, %y : (tensor<2x6x4xi1>, tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  return %0, %1, %2, %3 : tensor<4x2x6xf32>, tensor<2x12x4xf32>, tensor<2x3x2xf32>, tensor<2x6x4xf32>
}

// -----

// tosa-average-pool
func.func @main(%x: tensor<1x9x9x4xf32>) -> tensor<1x4x4x4xf32> {
  %zero = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = tosa.avg_pool2d %x, %zero, %zero {acc_type = f32, kernel = array<i64: 3, 3>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>}
    : (tensor<1x9x9x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x4xf32>
  return %0 : tensor<1x4x4x4xf32>
}
