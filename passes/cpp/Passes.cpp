// Registers the passes of td/Passes.td with MLIR. Each hands its options to a Rust function and takes back whether it
// succeeded and what it counted.

#include "Divi.h"
#include "Onnx.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Pass.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

extern "C" {
struct InferShapesCounts {
  uint64_t inferred, folded;
};
bool diviRunInferShapes(MlirOperation module, int64_t batch, MlirStringRef inputShapes, InferShapesCounts *counts);
struct FuseCounts {
  uint64_t convolutions, products, normalizations, softmaxes, elementwise, others, tasksBefore, tasksAfter;
};
bool diviRunFuse(MlirOperation module, MlirStringRef level, int64_t maxClusterOps, FuseCounts *counts);
bool diviRunInlineClusters(MlirOperation module, uint64_t *inlined);
bool diviRunVerifyWeights(MlirOperation module, MlirStringRef weightsDir, uint64_t *external);
bool diviRunRebaseWeights(MlirOperation module, MlirStringRef from, MlirStringRef to);
struct RebatchCounts {
  uint64_t repeated, constants;
};
bool diviRunRebatch(MlirOperation module, int64_t batch, RebatchCounts *counts);
}

namespace divi {
#define GEN_PASS_DECL
#include "Passes.h.inc"
#define GEN_PASS_DEF_INFERSHAPES
#define GEN_PASS_DEF_VERIFYWEIGHTS
#define GEN_PASS_DEF_REBASEWEIGHTS
#define GEN_PASS_DEF_FUSE
#define GEN_PASS_DEF_INLINECLUSTERS
#define GEN_PASS_DEF_REBATCH
#include "Passes.h.inc"

namespace {
struct InferShapes : impl::InferShapesBase<InferShapes> {
  using InferShapesBase::InferShapesBase;
  void runOnOperation() override {
    InferShapesCounts counts = {};
    std::string shapes = llvm::join(inputShapes, ",");
    if (!diviRunInferShapes(wrap(getOperation().getOperation()), batch, wrap(StringRef(shapes)), &counts))
      signalPassFailure();
    numInferred += counts.inferred;
    numFolded += counts.folded;
  }
};

struct VerifyWeights : impl::VerifyWeightsBase<VerifyWeights> {
  using VerifyWeightsBase::VerifyWeightsBase;
  void runOnOperation() override {
    uint64_t external = 0;
    std::string folder = weightsDir;
    if (!diviRunVerifyWeights(wrap(getOperation().getOperation()), wrap(StringRef(folder)), &external))
      signalPassFailure();
    numExternal += external;
    markAllAnalysesPreserved();
  }
};

struct RebaseWeights : impl::RebaseWeightsBase<RebaseWeights> {
  using RebaseWeightsBase::RebaseWeightsBase;
  void runOnOperation() override {
    std::string before = from, after = to;
    if (!diviRunRebaseWeights(wrap(getOperation().getOperation()), wrap(StringRef(before)), wrap(StringRef(after))))
      signalPassFailure();
  }
};

struct Fuse : impl::FuseBase<Fuse> {
  using FuseBase::FuseBase;
  void runOnOperation() override {
    FuseCounts counts = {};
    std::string levelName = level;
    if (!diviRunFuse(wrap(getOperation().getOperation()), wrap(StringRef(levelName)), maxClusterOps, &counts))
      signalPassFailure();
    numConvolutions += counts.convolutions;
    numProducts += counts.products;
    numNormalizations += counts.normalizations;
    numSoftmaxes += counts.softmaxes;
    numElementwise += counts.elementwise;
    numOthers += counts.others;
    numTasksBefore += counts.tasksBefore;
    numTasksAfter += counts.tasksAfter;
  }
};

struct InlineClusters : impl::InlineClustersBase<InlineClusters> {
  using InlineClustersBase::InlineClustersBase;
  void runOnOperation() override {
    uint64_t inlined = 0;
    if (!diviRunInlineClusters(wrap(getOperation().getOperation()), &inlined))
      signalPassFailure();
    numInlined += inlined;
  }
};

struct Rebatch : impl::RebatchBase<Rebatch> {
  using RebatchBase::RebatchBase;
  void runOnOperation() override {
    RebatchCounts counts = {};
    if (!diviRunRebatch(wrap(getOperation().getOperation()), batch, &counts))
      signalPassFailure();
    numRepeated += counts.repeated;
    numConstants += counts.constants;
  }
};
} // namespace

#define GEN_PASS_REGISTRATION
#include "Passes.h.inc"
} // namespace divi

extern "C" void diviRegisterPasses() { divi::registerDiviPasses(); }

// For the driver, whose options may hold what the text of a pipeline cannot: spaces, commas, braces.
extern "C" MlirPass diviCreateInferShapes(int64_t batch, const MlirStringRef *shapes, size_t count) {
  divi::InferShapesOptions options;
  options.batch = batch;
  for (MlirStringRef shape : ArrayRef(shapes, count))
    options.inputShapes.push_back(unwrap(shape).str());
  return wrap(divi::createInferShapes(std::move(options)).release());
}

extern "C" MlirPass diviCreateRebatch(int64_t batch) {
  divi::RebatchOptions options;
  options.batch = batch;
  return wrap(divi::createRebatch(std::move(options)).release());
}

extern "C" MlirPass diviCreateRebaseWeights(MlirStringRef from, MlirStringRef to) {
  divi::RebaseWeightsOptions options;
  options.from = unwrap(from).str();
  options.to = unwrap(to).str();
  return wrap(divi::createRebaseWeights(std::move(options)).release());
}
