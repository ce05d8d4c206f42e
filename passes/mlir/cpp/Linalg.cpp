// Work of linalg operators on tensors, for the cost model: loop ranges, and the roles of loops in products and
// convolutions.

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

extern "C" {
/// Mirrors `LinalgWork` in src/cost/linalg/ffi.rs.
struct DiviLinalgWork {
  enum Kind : int32_t { Elements, Reduction, Product, Convolution } kind;
  /// Iterations of all loops, iterations of the parallel loops, and operations per iteration.
  uint64_t iterations, parallel, operations;
  /// True if the body has a transcendental function, which takes many instructions.
  bool transcendental;
  /// A product: batch, rows, columns, depth. A convolution: images, groups, input and output channels of a group,
  /// pixels, width, taps, stride.
  uint64_t loops[8];
};
bool diviLinalgWork(MlirOperation op, DiviLinalgWork *work);
}

static uint64_t saturatingProduct(ArrayRef<int64_t> ranges) {
  uint64_t product = 1;
  for (int64_t range : ranges)
    if (__builtin_mul_overflow(product, uint64_t(std::max<int64_t>(range, 0)), &product))
      return UINT64_MAX;
  return product;
}

static uint64_t productOf(ArrayRef<int64_t> ranges, ArrayRef<unsigned> loops) {
  return saturatingProduct(llvm::map_to_vector(loops, [&](unsigned loop) { return ranges[loop]; }));
}

/// Describes the work of a linalg operator. Returns false if the operation is not one, or has a dynamic loop range.
bool diviLinalgWork(MlirOperation op, DiviLinalgWork *work) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(unwrap(op));
  if (!linalgOp)
    return false;
  SmallVector<int64_t> ranges = linalgOp.getStaticLoopRanges();
  if (llvm::any_of(ranges, ShapedType::isDynamic))
    return false;
  SmallVector<unsigned> parallel;
  linalgOp.getParallelDims(parallel);
  *work = {};
  work->iterations = saturatingProduct(ranges);
  work->parallel = productOf(ranges, parallel);
  for (Operation &inner : *linalgOp.getBlock()) {
    // Casts and indices are free compared with arithmetic.
    if (isa<math::MathDialect>(inner.getDialect()) && !isa<math::FmaOp, math::AbsFOp, math::AbsIOp>(inner))
      work->transcendental = true;
    if (isa<math::FmaOp>(inner))
      work->operations += 2;
    else if (isa<math::MathDialect>(inner.getDialect()) ||
             (isa<arith::ArithDialect>(inner.getDialect()) && !isa<CastOpInterface, arith::ConstantOp>(inner)))
      work->operations += 1;
  }
  work->kind = parallel.size() == ranges.size() ? DiviLinalgWork::Elements : DiviLinalgWork::Reduction;
  if (linalg::isaConvolutionOpInterface(linalgOp)) {
    auto dims = linalg::inferConvolutionDims(linalgOp);
    // Pooling has no channels to sum over.
    if (succeeded(dims) && !(dims->inputChannel.empty() && dims->depth.empty())) {
      work->kind = DiviLinalgWork::Convolution;
      uint64_t loops[] = {productOf(ranges, dims->batch),
                          productOf(ranges, dims->depth),
                          productOf(ranges, dims->inputChannel),
                          productOf(ranges, dims->outputChannel),
                          productOf(ranges, dims->outputImage),
                          dims->outputImage.empty() ? 1 : uint64_t(ranges[dims->outputImage.back()]),
                          productOf(ranges, dims->filterLoop),
                          saturatingProduct(dims->strides)};
      llvm::copy(loops, work->loops);
    }
  } else if (linalg::isaContractionOpInterface(linalgOp)) {
    if (auto dims = linalg::inferContractionDims(linalgOp); succeeded(dims)) {
      work->kind = DiviLinalgWork::Product;
      uint64_t loops[] = {productOf(ranges, dims->batch), productOf(ranges, dims->m), productOf(ranges, dims->n),
                          productOf(ranges, dims->k)};
      llvm::copy(loops, work->loops);
    }
  }
  return true;
}
