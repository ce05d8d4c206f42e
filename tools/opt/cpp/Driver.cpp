// divi-opt is MLIR's opt driver with divi's dialects and passes; it also reads ONNX models and plans them.

#include "Divi.h"
#include "Losses.h"
#include "Onnx.h"
#include "Options.h"
#include "Output.h"
#include "Passes.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Conversion/TosaToArith/TosaToArith.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Conversion/TosaToTensor/TosaToTensor.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

using namespace mlir;
using namespace divi;
using namespace divi::opt;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// Import options from the command line.
extern "C" struct DiviImportOptions {
  MlirStringRef inputShapes, dims, inputValues, weightsDir, irFolder;
  int64_t batch;
  bool quiet;
};

extern "C" {
/// Fails if any of the files (separated by NUL) or the folder is a weight file of the module or contains one.
bool diviRunCheckOutputs(MlirOperation module, MlirStringRef irFolder, MlirStringRef files, MlirStringRef folder);
/// Removes temporary files when a signal ends the process.
void diviCleanUpOnSignals();
/// Creates a session; `title` is the name of the model in reports.
DiviSession *diviSessionCreate(bool showProgress, MlirStringRef title);
void diviSessionDestroy(DiviSession *session);
/// Callback that receives a text.
using Sink = void (*)(MlirStringRef text, void *user);
/// Renders a view of the plan: plan, dot, html, svg, summary, json, or an explanation of the placement of node `argument`
/// (explain). Returns false and prints an error if there is no plan.
bool diviSessionShow(DiviSession *session, MlirStringRef view, MlirStringRef argument, Sink sink, void *user);
/// Passes the versions of divi and of its libraries to `sink`, one per line.
void diviVersions(MlirStringRef llvm, Sink sink, void *user);
/// Returns false and prints an error if code generation does not support a processor.
bool diviCheckCpu(MlirStringRef cpu);
bool diviIsOnnx(MlirStringRef bytes);
/// Imports a model and passes its MLIR bytecode to `sink`. Returns false and prints errors if it cannot be imported. `name` is
/// a file that constants may refer to (`isFile`), or else a label for errors.
bool diviImportOnnx(MlirStringRef name, bool isFile, MlirStringRef bytes, const DiviImportOptions *options,
                    void (*sink)(MlirStringRef bytes, void *buffer), void *buffer);
}

static LogicalResult reportError(const llvm::Twine &message) {
  llvm::errs() << "divi-opt: error: " << message << "\n";
  return failure();
}

/// Returns true if the output is a folder, which a pass writes.
static bool writesFolder() { return emitted == Emit::Onnx || emitted == Emit::Bundle; }

static LogicalResult cannotWrite(StringRef file, StringRef reason) {
  return reportError("cannot write '" + file + "': " + reason);
}

/// Rejects outputs that would overwrite weights of the module.
struct CheckOutputs : PassWrapper<CheckOutputs, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckOutputs)
  CheckOutputs(StringRef irFolder, StringRef output) : irFolder(irFolder), output(output) {}
  StringRef getArgument() const override { return "check-outputs"; }
  void runOnOperation() override {
    std::string files = report;
    if (!writesFolder() && !isStream(output))
      files += StringRef("\0", 1).str() + output;
    StringRef folder = writesFolder() ? StringRef(output) : StringRef();
    if (!diviRunCheckOutputs(wrap(getOperation().getOperation()), wrap(StringRef(irFolder)), wrap(StringRef(files)),
                             wrap(folder)))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
  std::string irFolder, output;
};

/// Converts operations of tosa to linalg, for which divi-convert-linalg has operators, with MLIR's passes.
struct ConvertTosa : PassWrapper<ConvertTosa, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertTosa)
  StringRef getArgument() const override { return "convert-tosa"; }
  void getDependentDialects(DialectRegistry &registry) const override { pipeline().getDependentDialects(registry); }
  void runOnOperation() override {
    auto isTosa = [](Operation *op) {
      return isa_and_present<tosa::TosaDialect>(op->getDialect()) ? WalkResult::interrupt() : WalkResult::advance();
    };
    if (!getOperation().walk(isTosa).wasInterrupted())
      return;
    OpPassManager passes = pipeline();
    if (failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }
  static OpPassManager pipeline() {
    OpPassManager passes(ModuleOp::getOperationName());
    tosa::addTosaToLinalgPasses(passes, TosaToLinalgOptions(), TosaToLinalgNamedOptions(), std::nullopt);
    passes.addNestedPass<func::FuncOp>(createTosaToTensorPass());
    passes.addNestedPass<func::FuncOp>(createTosaToArithPass(TosaToArithPassOptions{/*includeApplyRescale=*/true}));
    return passes;
  }
};

/// Adds the phases from a module with costs to an outlined plan.
static void addPlanning(OpPassManager &manager, const PartitionOptions &partition, StringRef weightsFolder,
                        DiviSession *session) {
  if (writesFolder()) {
    ExcludeUnsupportedOptions exclude;
    exclude.output = emitted == Emit::Bundle ? "bundle" : "onnx";
    exclude.weightsDir = weightsFolder.str();
    exclude.weights = weights;
    manager.addPass(createExcludeUnsupported(exclude));
  }
  manager.addPass(createPartition(partition, session));
  manager.addPass(createVerifyPlan());
  OutlineOptions outline;
  outline.minStageOps = minStageOps;
  manager.addPass(createOutline(outline, session));
  manager.addPass(createVerifyPlan());
}

/// Adds the phases from a model to the requested output.
static void addPhases(PassManager &manager, StringRef input, StringRef output, StringRef weightsFolder, llvm::raw_ostream *stream,
                      DiviSession *session) {
  manager.addPass(createCanonicalize());
  FuseOptions fuse;
  fuse.level = fuseLevel;
  manager.addPass(createFuse(fuse));
  if (markedOutputs.getNumOccurrences()) {
    MarkOutputsOptions mark;
    if (!markedOutputs.empty())
      mark.tasks = markedOutputs;
    manager.addPass(createMarkOutputs(mark));
  }
  auto unplanned = std::make_shared<Unplanned>();
  if (survivedLosses > 0)
    manager.addPass(createKeepUnplanned(unplanned));
  AnnotateCostOptions cost;
  cost.system = systemSpec;
  manager.addPass(createAnnotateCost(cost));
  if (costTable != Table::None) {
    PrintCostsOptions table;
    table.format = costTable == Table::Csv ? "csv" : "text";
    table.limit = tableLimit;
    manager.addPass(createPrintCosts(table, stream));
  }
  PartitionOptions partition = partitionOptions();
  if (emitted == Emit::Problem) {
    partition.poseOnly = true;
    manager.addPass(createPartition(partition));
    EmitProblemOptions problem;
    problem.inputs = std::max<int64_t>(inputCount, 1);
    manager.addPass(createEmitProblem(problem, stream));
  }
  if (!plans())
    return;
  addPlanning(manager, partition, weightsFolder, session);
  if (survivedLosses > 0) {
    // Without a node, a pipeline has as many stages as are best.
    PartitionOptions replanned = partition;
    replanned.stages = 0;
    auto planWithout = [cost, replanned, folder = weightsFolder.str()](OpPassManager &losses, int64_t node) {
      AnnotateCostOptions remaining = cost;
      remaining.without = node;
      losses.addPass(createAnnotateCost(remaining));
      addPlanning(losses, replanned, folder, /*session=*/nullptr);
    };
    manager.addPass(createPlanLosses(unplanned, planWithout));
  }
  if (emitted == Emit::Onnx) {
    EmitOnnxOptions onnx;
    onnx.output = output.str();
    onnx.weightsDir = weightsFolder.str();
    onnx.weights = weights;
    manager.addPass(createEmitOnnx(onnx, session));
  }
  if (emitted == Emit::Bundle) {
    EmitBundleOptions bundle;
    bundle.output = output.str();
    bundle.weightsDir = weightsFolder.str();
    bundle.weights = weights;
    bundle.cpu = cpu;
    bundle.model = isStream(input) ? "" : path::stem(input).str();
    manager.addPass(createEmitBundle(bundle));
  }
}

/// Adds the passes that the command line requests around the explicitly named ones. A static batch size is changed by a pass on
/// the imported module. For MLIR input, passes also implement the options that import implements for models: shapes first,
/// paths of weights last.
static void extendPipeline(MlirOptMainConfig &config, StringRef input, StringRef output, bool isModel,
                           llvm::raw_ostream *stream, DiviSession *session) {
  MlirOptMainConfig plain = config;
  std::string from = weightsDir.empty() ? folderOf(input) : weightsDir;
  std::string to = folderOf(output), source = input.str(), target = output.str();
  SmallString<128> absoluteFrom(from), absoluteTo(to);
  fs::make_absolute(absoluteFrom);
  fs::make_absolute(absoluteTo);
  path::remove_dots(absoluteFrom, /*remove_dot_dot=*/true);
  path::remove_dots(absoluteTo, /*remove_dot_dot=*/true);
  // IR that is written to a stream keeps its paths, since its location is unknown.
  bool rebase = !isModel && !writesText() && (!weightsDir.empty() || (!isStream(output) && absoluteFrom != absoluteTo));
  bool reshape = !isModel && (batch != 0 || !inputShapes.empty() || !dims.empty());
  bool writesFile = !isStream(output) || !report.empty();
  bool converts = precision != "f32";
  if (!rebase && !reshape && !converts && batch == 0 && !writesText() && !plans() && !writesFile)
    return;
  std::string irFolder = isModel ? (writesFolder() ? "" : folderOf(output)) : from;
  config.setPassPipelineSetupFn([=](PassManager &manager) -> LogicalResult {
    if (writesFile)
      manager.addPass(std::make_unique<CheckOutputs>(irFolder, target));
    if (reshape) {
      InferShapesOptions infer;
      infer.batch = batch;
      infer.inputShapes.assign(inputShapes.begin(), inputShapes.end());
      infer.dims.assign(dims.begin(), dims.end());
      manager.addPass(createInferShapes(infer));
    }
    if (batch != 0) {
      RebatchOptions rebatch;
      rebatch.batch = batch;
      manager.addPass(createRebatch(rebatch));
    }
    // Code exists for onnx operators.
    if (plans() && writesFolder()) {
      manager.addPass(std::make_unique<ConvertTosa>());
      manager.addPass(createConvertLinalg());
    }
    if (converts) {
      ConvertPrecisionOptions options;
      options.precision = precision;
      options.system = systemSpec;
      options.cpu = cpu;
      options.exclusions.assign(precisionExclusions.begin(), precisionExclusions.end());
      manager.addPass(createConvertPrecision(options));
    }
    if (failed(plain.setupPassPipeline(manager)))
      return failure();
    auto folder = [](StringRef name) { return name.empty() ? "." : name.str(); };
    // A model that is not written as MLIR refers to its weights relative to the working directory.
    if (writesText() || plans())
      addPhases(manager, source, target, isModel ? "." : folder(from), stream, session);
    if (rebase) {
      RebaseWeightsOptions rebased;
      rebased.from = folder(from);
      rebased.to = folder(to);
      manager.addPass(createRebaseWeights(rebased));
    }
    return success();
  });
}

/// Returns the input as MLIR: unchanged, or as bytecode of the imported ONNX model.
static std::unique_ptr<llvm::MemoryBuffer> read(StringRef input, StringRef output, bool &isModel) {
  if (isStream(input) && llvm::sys::Process::StandardInIsUserInput())
    llvm::errs() << "(processing input from stdin now, hit ctrl-c/ctrl-d to interrupt)\n";
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &error);
  if (!file) {
    (void)reportError(error);
    return nullptr;
  }
  isModel = diviIsOnnx(wrap(file->getBuffer()));
  if (!isModel) {
    if (!inputValues.empty()) {
      (void)reportError("--input-value requires an ONNX model, but '" + input + "' is MLIR; pass the model itself, or make the "
                     "argument an onnx.Constant");
      return nullptr;
    }
    if (file->getBufferSize() != 0 || !input.ends_with_insensitive(".onnx"))
      return file;
    (void)reportError("'" + input + "' is not an ONNX model: the file is empty");
    return nullptr;
  }
  bool isFile = isRegular(input);
  std::string shapes = llvm::join(inputShapes, ","), sizes = llvm::join(dims, ","),
              values = llvm::join(inputValues, "\n"), irFolder = writesFolder() ? "" : folderOf(output);
  std::string name = isStream(input) ? "<stdin>" : input.str();
  DiviImportOptions options = {wrap(StringRef(shapes)),     wrap(StringRef(sizes)),    wrap(StringRef(values)),
                               wrap(StringRef(weightsDir)), wrap(StringRef(irFolder)), batch,
                               quiet};
  std::unique_ptr<llvm::MemoryBuffer> bytecode;
  auto sink = [](MlirStringRef bytes, void *buffer) {
    *static_cast<std::unique_ptr<llvm::MemoryBuffer> *>(buffer) = llvm::MemoryBuffer::getMemBufferCopy(unwrap(bytes));
  };
  if (!diviImportOnnx(wrap(StringRef(name)), isFile, wrap(file->getBuffer()), &options, sink, &bytecode))
    return nullptr;
  return bytecode;
}

/// Writes one view of the plan to a stream.
static LogicalResult show(DiviSession *session, StringRef view, StringRef argument, llvm::raw_ostream &os) {
  auto sink = [](MlirStringRef text, void *os) { *static_cast<llvm::raw_ostream *>(os) << unwrap(text); };
  return success(diviSessionShow(session, wrap(view), wrap(argument), sink, &os));
}

/// Writes the output that replaces the module, the report, and the summary on stderr.
static LogicalResult showPlan(DiviSession *session, llvm::raw_ostream &os) {
  if (emitted == Emit::Plan && failed(show(session, "plan", "", os)))
    return failure();
  if (emitted == Emit::Dot && failed(show(session, "dot", "", os)))
    return failure();
  if (!explained.empty() && failed(show(session, "explain", explained, os)))
    return failure();
  if (!report.empty()) {
    Output file;
    if (std::string reason = file.open(report); !reason.empty())
      return cannotWrite(report, reason);
    if (failed(show(session, StringRef(report).ends_with(".svg") ? "svg" : "html", "", file.stream())))
      return failure();
    if (std::string reason = file.keep(); !reason.empty())
      return cannotWrite(report, reason);
  }
  return quiet ? success() : show(session, asJson ? "json" : "summary", "", llvm::errs());
}

/// Prints errors only. MLIR's configuration has no setter for this.
struct QuietConfig : MlirOptMainConfig {
  explicit QuietConfig(const MlirOptMainConfig &config) : MlirOptMainConfig(config) {
    diagnosticVerbosityLevelFlag = VerbosityLevel::ErrorsOnly;
  }
};

/// Runs MLIR's driver and writes the output atomically, and only on success.
static LogicalResult process(StringRef input, StringRef output, DialectRegistry &registry) {
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (std::string wrong = contradiction(); !wrong.empty())
    return reportError(wrong);
  if (StringRef option = wantsOneModule(); !option.empty() && !config.inputSplitMarker().empty())
    return reportError(option + " applies to a single module; remove --split-input-file");
  if (emitted == Emit::Onnx && (isStream(output) || output.ends_with(".onnx")))
    return reportError("--emit=onnx writes a folder with one model per stage; name it with -o");
  if (emitted == Emit::Bundle && isStream(output))
    return reportError("--emit=bundle writes a folder; name it with -o");
  if (emitted == Emit::Bundle && !diviCheckCpu(wrap(StringRef(cpu))))
    return failure();
  if (quiet)
    config = QuietConfig(config);
  bool isModel = false;
  std::unique_ptr<llvm::MemoryBuffer> buffer = read(input, output, isModel);
  if (!buffer)
    return failure();
  // MLIR may be written over its input, as with mlir-opt.
  if (std::string reason = objection(input, output, writesFolder(), !isModel && !writesText()); !reason.empty())
    return reportError(reason);
  Output file;
  // A folder is written by a pass.
  if (std::string reason = file.open(writesFolder() ? "/dev/null" : output); !reason.empty())
    return cannotWrite(output, reason);
  StringRef title = isStream(input) ? "" : path::stem(input);
  std::unique_ptr<DiviSession, void (*)(DiviSession *)> session(diviSessionCreate(!quiet, wrap(title)),
                                                                diviSessionDestroy);
  std::string text;
  llvm::raw_string_ostream textStream(text);
  extendPipeline(config, input, output, isModel, &textStream, session.get());
  llvm::raw_ostream &moduleStream = writesText() ? llvm::nulls() : file.stream();
  if (failed(MlirOptMain(moduleStream, std::move(buffer), registry, config)))
    return failure();
  if (plans() && failed(showPlan(session.get(), textStream)))
    return failure();
  if (writesText() && !writesFolder() && text.empty())
    return reportError("nothing to write: '" + input + "' has no builtin.module");
  file.stream() << text;
  if (std::string reason = file.keep(); !reason.empty())
    return cannotWrite(output, reason);
  return success();
}

/// Prints divi's version, and those of LLVM, HiGHS and CUDA.
static void printVersions(llvm::raw_ostream &os) {
  auto sink = [](MlirStringRef text, void *os) { *static_cast<llvm::raw_ostream *>(os) << unwrap(text); };
  diviVersions(wrap(StringRef(LLVM_VERSION_STRING)), sink, &os);
}

/// Parses the command line. `--help` shows divi's options and the most common ones of MLIR, `--help-all` all options and
/// passes.
static std::pair<std::string, std::string> parseOptions(int argc, char **argv, DialectRegistry &registry) {
  llvm::cl::SetVersionPrinter(printVersions);
  std::string header = registerCLIOptions("divi-opt: MLIR's opt driver for ONNX models", registry);
  SmallVector<char *> arguments(argv, argv + argc);
  static char help[] = "--help";
  bool showsAll = false;
  for (char *&argument : MutableArrayRef(arguments).drop_front(argc > 0))
    if (StringRef(argument) == "--help-all" || StringRef(argument) == "-help-all") {
      showsAll = true;
      argument = help;
    }
  if (!showsAll) {
    hideOtherOptions();
    header = "divi-opt: plans and compiles ONNX models and MLIR for machines with several kinds of processors\n\n"
             "Every pass and option of mlir-opt works too; --help-all lists them.\n";
  }
  return parseCLIOptions(arguments.size(), arguments.data(), header);
}

extern "C" int diviOptMain(int argc, char **argv) {
  llvm::InitLLVM initialized(argc, argv);
  diviCleanUpOnSignals();
  registerAllPasses();
  diviRegisterPasses();
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<divi::DiviDialect, divi::onnx::ONNXDialect>();
  auto [input, output] = parseOptions(argc, argv, registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  return asMainReturnCode(process(input, output, registry));
}
