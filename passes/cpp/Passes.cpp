// Registers the passes of td/Passes.td with MLIR. Each hands its options to a Rust function and takes back whether it
// succeeded and what it counted.

#include "Divi.h"
#include "Onnx.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Pass.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

extern "C" {
struct InferShapesCounts {
  uint64_t inferred, folded;
};
bool diviRunInferShapes(MlirOperation module, int64_t batch, MlirStringRef inputShapes, MlirStringRef dims,
                        InferShapesCounts *counts);
struct FuseCounts {
  uint64_t convolutions, products, normalizations, softmaxes, elementwise, others, tasksBefore, tasksAfter;
};
bool diviRunFuse(MlirOperation module, MlirStringRef level, int64_t maxClusterOps, FuseCounts *counts);
bool diviRunInlineClusters(MlirOperation module, uint64_t *inlined);
bool diviRunVerifyWeights(MlirOperation module, MlirStringRef weightsDir, uint64_t *external);
bool diviRunVerifyPlan(MlirOperation module);
bool diviRunRebaseWeights(MlirOperation module, MlirStringRef from, MlirStringRef to);
struct CanonicalizeCounts {
  uint64_t removed, merged, dead;
};
bool diviRunCanonicalize(MlirOperation module, CanonicalizeCounts *counts);
struct RebatchCounts {
  uint64_t repeated, constants;
};
bool diviRunRebatch(MlirOperation module, int64_t batch, RebatchCounts *counts);
struct AnnotateCostCounts {
  uint64_t tasks, measured, interpolated, estimated;
};
bool diviRunAnnotateCost(MlirOperation module, MlirStringRef system, AnnotateCostCounts *counts);
/// Takes the text that a pass writes.
using Sink = void (*)(MlirStringRef text, void *user);
bool diviRunPrintCosts(MlirOperation module, MlirStringRef format, int64_t limit, Sink sink, void *user);
bool diviRunEmitProblem(MlirOperation module, int64_t inputs, Sink sink, void *user);
/// What a driver keeps beside the module.
struct DiviSession;
struct DiviPartitionOptions {
  MlirStringRef objective, algorithm, pipelineCost, order, contention, symmetry, pins, exclusions, groups, hostWeights,
      placement, plan;
  int64_t inputs, stages, seed, iterations;
  double seconds, resident, minGain;
  bool sharedDevices, cold;
};
bool diviRunEmitOnnx(MlirOperation module, MlirStringRef output, MlirStringRef weightsDir, MlirStringRef weights,
                     DiviSession *session);
bool diviRunExcludeUnsupported(MlirOperation module, MlirStringRef output, MlirStringRef weightsDir, MlirStringRef weights);
bool diviRunEmitBundle(MlirOperation module, MlirStringRef output, MlirStringRef weightsDir, MlirStringRef weights,
                       MlirStringRef cpu, MlirStringRef model);
/// Writes a file, or stdout for `-`; false, with an error on the module, if it cannot be written.
bool diviRunWriteText(MlirOperation module, MlirStringRef file, MlirStringRef text);
bool diviRunPose(MlirOperation module, const DiviPartitionOptions *options);
bool diviRunPartition(MlirOperation module, const DiviPartitionOptions *options, DiviSession *session);
struct OutlineCounts {
  uint64_t stages, transfers, elided, merged;
};
bool diviRunOutline(MlirOperation module, int64_t minStageOps, OutlineCounts *counts, DiviSession *session);
bool diviRunInlineStages(MlirOperation module, uint64_t *inlined);
}

namespace divi {
#define GEN_PASS_DECL
#include "Passes.h.inc"
#define GEN_PASS_DEF_INFERSHAPES
#define GEN_PASS_DEF_VERIFYWEIGHTS
#define GEN_PASS_DEF_EXCLUDEUNSUPPORTED
#define GEN_PASS_DEF_VERIFYPLAN
#define GEN_PASS_DEF_REBASEWEIGHTS
#define GEN_PASS_DEF_FUSE
#define GEN_PASS_DEF_INLINECLUSTERS
#define GEN_PASS_DEF_REBATCH
#define GEN_PASS_DEF_ANNOTATECOST
#define GEN_PASS_DEF_PRINTCOSTS
#define GEN_PASS_DEF_EMITPROBLEM
#define GEN_PASS_DEF_PARTITION
#define GEN_PASS_DEF_OUTLINE
#define GEN_PASS_DEF_INLINESTAGES
#define GEN_PASS_DEF_EMITONNX
#define GEN_PASS_DEF_EMITBUNDLE
#define GEN_PASS_DEF_CANONICALIZE
#include "Passes.h.inc"

namespace {
struct InferShapes : impl::InferShapesBase<InferShapes> {
  using InferShapesBase::InferShapesBase;
  void runOnOperation() override {
    InferShapesCounts counts = {};
    std::string shapes = llvm::join(inputShapes, ","), sizes = llvm::join(dims, ",");
    if (!diviRunInferShapes(wrap(getOperation().getOperation()), batch, wrap(StringRef(shapes)),
                            wrap(StringRef(sizes)), &counts))
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

struct VerifyPlan : impl::VerifyPlanBase<VerifyPlan> {
  using VerifyPlanBase::VerifyPlanBase;
  void runOnOperation() override {
    if (!diviRunVerifyPlan(wrap(getOperation().getOperation())))
      signalPassFailure();
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

struct AnnotateCost : impl::AnnotateCostBase<AnnotateCost> {
  using AnnotateCostBase::AnnotateCostBase;
  void runOnOperation() override {
    AnnotateCostCounts counts = {};
    std::string name = system;
    if (!diviRunAnnotateCost(wrap(getOperation().getOperation()), wrap(StringRef(name)), &counts))
      signalPassFailure();
    numTasks += counts.tasks;
    numMeasured += counts.measured;
    numInterpolated += counts.interpolated;
    numEstimated += counts.estimated;
  }
};

/// Where a pass writes that has something to say beside the IR: a stream of the driver's, or a file, whole or not at all.
struct Writer {
  raw_ostream *stream = nullptr;

  LogicalResult write(Operation *module, StringRef file, llvm::function_ref<bool(Sink, void *)> run) const {
    std::string text;
    auto append = [](MlirStringRef part, void *user) { static_cast<std::string *>(user)->append(part.data, part.length); };
    if (!run(append, &text))
      return failure();
    if (stream) {
      *stream << text;
      return success();
    }
    return success(diviRunWriteText(wrap(module), wrap(StringRef(file)), wrap(StringRef(text))));
  }
};

struct PrintCosts : impl::PrintCostsBase<PrintCosts> {
  using PrintCostsBase::PrintCostsBase;
  Writer writer;
  void runOnOperation() override {
    MlirOperation module = wrap(getOperation().getOperation());
    std::string how = format;
    auto run = [&](Sink sink, void *user) { return diviRunPrintCosts(module, wrap(StringRef(how)), limit, sink, user); };
    if (failed(writer.write(getOperation(), output, run)))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

struct EmitProblem : impl::EmitProblemBase<EmitProblem> {
  using EmitProblemBase::EmitProblemBase;
  Writer writer;
  void runOnOperation() override {
    MlirOperation module = wrap(getOperation().getOperation());
    auto run = [&](Sink sink, void *user) { return diviRunEmitProblem(module, inputs, sink, user); };
    if (failed(writer.write(getOperation(), output, run)))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

struct Partition : impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;
  DiviSession *session = nullptr;
  /// Whether nothing is planned, and the module only gets what the options say about the problem.
  bool onlyPoses = false;
  /// Whether somebody has looked at the numbers: a negative one stands for none.
  bool isChecked = false;
  void runOnOperation() override {
    auto isNegative = [&](const auto &option) { return !isChecked && option.hasValue() && !(option >= 0); };
    StringRef wrong = isNegative(iterations)  ? "iterations must not be negative"
                      : isNegative(timeLimit) ? "time-limit must be a number of seconds from 0 on"
                      : isNegative(resident)  ? "resident must be a share from 0 to 1"
                      : isNegative(minGain)   ? "min-gain must be a share from 0 on, as 0.05 for 5 %"
                                              : "";
    if (!wrong.empty()) {
      emitError(getOperation().getLoc()) << wrong;
      return signalPassFailure();
    }
    std::string lines[] = {llvm::join(pins, "\n"), llvm::join(exclusions, "\n"), llvm::join(groups, "\n"),
                           llvm::join(hostWeights, "\n")};
    auto text = [](const std::string &string) { return wrap(StringRef(string)); };
    DiviPartitionOptions options = {text(objective), text(algorithm), text(pipelineCost), text(order),
                                    text(contention), text(symmetry), text(lines[0]), text(lines[1]),
                                    text(lines[2]), text(lines[3]), text(placement), text(plan), inputs, stages, seed,
                                    iterations, timeLimit, resident, minGain, sharedDevices, cold};
    MlirOperation module = wrap(getOperation().getOperation());
    if (!(onlyPoses ? diviRunPose(module, &options) : diviRunPartition(module, &options, session)))
      signalPassFailure();
  }
};

struct Outline : impl::OutlineBase<Outline> {
  using OutlineBase::OutlineBase;
  DiviSession *session = nullptr;
  void runOnOperation() override {
    OutlineCounts counts = {};
    if (!diviRunOutline(wrap(getOperation().getOperation()), minStageOps, &counts, session))
      signalPassFailure();
    numStages += counts.stages;
    numTransfers += counts.transfers;
    numElided += counts.elided;
    numMerged += counts.merged;
  }
};

struct InlineStages : impl::InlineStagesBase<InlineStages> {
  using InlineStagesBase::InlineStagesBase;
  void runOnOperation() override {
    uint64_t inlined = 0;
    if (!diviRunInlineStages(wrap(getOperation().getOperation()), &inlined))
      signalPassFailure();
    numInlined += inlined;
  }
};

struct EmitOnnx : impl::EmitOnnxBase<EmitOnnx> {
  using EmitOnnxBase::EmitOnnxBase;
  DiviSession *session = nullptr;
  void runOnOperation() override {
    auto text = [](const std::string &string) { return wrap(StringRef(string)); };
    if (!diviRunEmitOnnx(wrap(getOperation().getOperation()), text(output), text(weightsDir), text(weights), session))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

struct ExcludeUnsupported : impl::ExcludeUnsupportedBase<ExcludeUnsupported> {
  using ExcludeUnsupportedBase::ExcludeUnsupportedBase;
  void runOnOperation() override {
    auto text = [](const std::string &string) { return wrap(StringRef(string)); };
    if (!diviRunExcludeUnsupported(wrap(getOperation().getOperation()), text(output), text(weightsDir), text(weights)))
      signalPassFailure();
  }
};

struct EmitBundle : impl::EmitBundleBase<EmitBundle> {
  using EmitBundleBase::EmitBundleBase;
  void runOnOperation() override {
    auto text = [](const std::string &string) { return wrap(StringRef(string)); };
    if (!diviRunEmitBundle(wrap(getOperation().getOperation()), text(output), text(weightsDir), text(weights), text(cpu),
                           text(model)))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

struct Canonicalize : impl::CanonicalizeBase<Canonicalize> {
  using CanonicalizeBase::CanonicalizeBase;
  void runOnOperation() override {
    CanonicalizeCounts counts = {};
    if (!diviRunCanonicalize(wrap(getOperation().getOperation()), &counts))
      signalPassFailure();
    numRemoved += counts.removed;
    numMerged += counts.merged;
    numDead += counts.dead;
  }
};
} // namespace

#define GEN_PASS_REGISTRATION
#include "Passes.h.inc"
} // namespace divi

extern "C" void diviInstallDeviceKinds();

extern "C" void diviRegisterPasses() {
  diviInstallDeviceKinds();
  divi::registerDiviPasses();
}

// For the driver, whose options may hold what the text of a pipeline cannot: spaces, commas, braces.
extern "C" MlirPass diviCreateInferShapes(int64_t batch, MlirStringRef shapes, MlirStringRef dims) {
  divi::InferShapesOptions options;
  options.batch = batch;
  // The pass joins them with commas again.
  options.inputShapes.push_back(unwrap(shapes).str());
  options.dims.push_back(unwrap(dims).str());
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

extern "C" MlirPass diviCreateAnnotateCost(MlirStringRef system) {
  divi::AnnotateCostOptions options;
  options.system = unwrap(system).str();
  return wrap(divi::createAnnotateCost(std::move(options)).release());
}

// These two write to a stream that is open already.
extern "C" MlirPass diviCreatePrintCosts(MlirStringRef format, int64_t limit, llvm::raw_ostream *stream) {
  divi::PrintCostsOptions options;
  options.format = unwrap(format).str();
  options.limit = limit;
  auto pass = std::make_unique<divi::PrintCosts>(std::move(options));
  pass->writer.stream = stream;
  return wrap(pass.release());
}

extern "C" MlirPass diviCreateEmitProblem(int64_t inputs, llvm::raw_ostream *stream) {
  divi::EmitProblemOptions options;
  options.inputs = inputs;
  auto pass = std::make_unique<divi::EmitProblem>(std::move(options));
  pass->writer.stream = stream;
  return wrap(pass.release());
}

static std::unique_ptr<divi::Partition> makePartition(const DiviPartitionOptions *given) {
  auto text = [](MlirStringRef string) { return unwrap(string).str(); };
  auto lines = [](MlirStringRef string) {
    SmallVector<StringRef> parts;
    unwrap(string).split(parts, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    return SmallVector<std::string>(parts.begin(), parts.end());
  };
  divi::PartitionOptions options;
  options.objective = text(given->objective);
  options.algorithm = text(given->algorithm);
  options.inputs = given->inputs;
  options.stages = given->stages;
  options.sharedDevices = given->sharedDevices;
  options.pipelineCost = text(given->pipelineCost);
  options.order = text(given->order);
  options.contention = text(given->contention);
  options.symmetry = text(given->symmetry);
  options.cold = given->cold;
  options.resident = given->resident;
  options.minGain = given->minGain;
  options.seed = given->seed;
  options.iterations = given->iterations;
  options.timeLimit = given->seconds;
  options.pins = lines(given->pins);
  options.exclusions = lines(given->exclusions);
  options.groups = lines(given->groups);
  options.hostWeights = lines(given->hostWeights);
  options.placement = text(given->placement);
  options.plan = text(given->plan);
  auto pass = std::make_unique<divi::Partition>(std::move(options));
  pass->isChecked = true;
  return pass;
}

extern "C" MlirPass diviCreatePartition(const DiviPartitionOptions *given, DiviSession *session) {
  auto pass = makePartition(given);
  pass->session = session;
  return wrap(pass.release());
}

// The options' part in the problem, for who writes that without a plan.
extern "C" MlirPass diviCreatePose(const DiviPartitionOptions *given) {
  auto pass = makePartition(given);
  pass->onlyPoses = true;
  return wrap(pass.release());
}

// With what the driver keeps beside the module, or null.
extern "C" MlirPass diviCreateOutline(int64_t minStageOps, DiviSession *session) {
  divi::OutlineOptions options;
  options.minStageOps = minStageOps;
  auto pass = std::make_unique<divi::Outline>(std::move(options));
  pass->session = session;
  return wrap(pass.release());
}

extern "C" MlirPass diviCreateEmitOnnx(MlirStringRef output, MlirStringRef weightsDir, MlirStringRef weights,
                                       DiviSession *session) {
  divi::EmitOnnxOptions options;
  options.output = unwrap(output).str();
  options.weightsDir = unwrap(weightsDir).str();
  options.weights = unwrap(weights).str();
  auto pass = std::make_unique<divi::EmitOnnx>(std::move(options));
  pass->session = session;
  return wrap(pass.release());
}

extern "C" MlirPass diviCreateExcludeUnsupported(MlirStringRef output, MlirStringRef weightsDir, MlirStringRef weights) {
  divi::ExcludeUnsupportedOptions options;
  options.output = unwrap(output).str();
  options.weightsDir = unwrap(weightsDir).str();
  options.weights = unwrap(weights).str();
  return wrap(divi::createExcludeUnsupported(std::move(options)).release());
}

extern "C" MlirPass diviCreateEmitBundle(MlirStringRef output, MlirStringRef weightsDir, MlirStringRef weights,
                                         MlirStringRef cpu, MlirStringRef model) {
  divi::EmitBundleOptions options;
  options.output = unwrap(output).str();
  options.weightsDir = unwrap(weightsDir).str();
  options.weights = unwrap(weights).str();
  options.cpu = unwrap(cpu).str();
  options.model = unwrap(model).str();
  return wrap(divi::createEmitBundle(std::move(options)).release());
}

extern "C" MlirPass diviCreateVerifyPlan() { return wrap(divi::createVerifyPlan().release()); }

extern "C" MlirPass diviCreateCanonicalize() { return wrap(divi::createCanonicalize().release()); }

extern "C" MlirPass diviCreateFuse(MlirStringRef level) {
  divi::FuseOptions options;
  options.level = unwrap(level).str();
  return wrap(divi::createFuse(std::move(options)).release());
}
