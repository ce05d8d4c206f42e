// Two layers of a perceptron on batches of 8, as a front end writes them in linalg.
#rows = affine_map<(i, j) -> (j)>
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<8x64xf32>, %w0: tensor<64x32xf32>, %b0: tensor<32xf32>, %w1: tensor<32x10xf32>) -> tensor<8x10xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x32xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.matmul ins(%x, %w0 : tensor<8x64xf32>, tensor<64x32xf32>) outs(%i0 : tensor<8x32xf32>) -> tensor<8x32xf32>
  %1 = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %b0 : tensor<8x32xf32>, tensor<32xf32>) outs(%e0 : tensor<8x32xf32>) {
  ^bb0(%sum: f32, %bias: f32, %out: f32):
    %biased = arith.addf %sum, %bias : f32
    %positive = arith.maximumf %biased, %zero : f32
    linalg.yield %positive : f32
  } -> tensor<8x32xf32>
  %e1 = tensor.empty() : tensor<8x10xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8x10xf32>) -> tensor<8x10xf32>
  %2 = linalg.matmul ins(%1, %w1 : tensor<8x32xf32>, tensor<32x10xf32>) outs(%i1 : tensor<8x10xf32>) -> tensor<8x10xf32>
  return %2 : tensor<8x10xf32>
}
