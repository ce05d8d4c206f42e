// divi-opt is MLIR's own opt driver with divi's dialects and passes, which also reads ONNX models.

#include "Divi.h"
#include "Onnx.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
namespace path = llvm::sys::path;

/// What the command line says about reading the input.
extern "C" struct DiviImportOptions {
  MlirStringRef inputShapes, weightsDir, irFolder;
  int64_t batch;
  bool quiet;
};

extern "C" {
void diviRegisterPasses();
bool diviIsOnnx(MlirStringRef bytes);
/// Imports a model and hands its MLIR bytecode to `sink`. False, with errors printed, if it cannot be imported.
bool diviImportOnnx(MlirStringRef name, bool isStdin, MlirStringRef bytes, const DiviImportOptions *options,
                    void (*sink)(MlirStringRef bytes, void *buffer), void *buffer);
}

static llvm::cl::OptionCategory category("divi options");

static llvm::cl::list<std::string> inputShapes("input-shape", llvm::cl::CommaSeparated, llvm::cl::cat(category),
                                               llvm::cl::desc("Shapes of the model's inputs"),
                                               llvm::cl::value_desc("NAME:8x3x224x224"));
static llvm::cl::opt<int64_t> batch("batch", llvm::cl::init(0), llvm::cl::cat(category),
                                    llvm::cl::desc("Batch size, where the model leaves it open"),
                                    llvm::cl::value_desc("N"));
static llvm::cl::opt<std::string> weightsDir("weights-dir", llvm::cl::cat(category),
                                             llvm::cl::desc("Folder that the input's references to weights are relative to"),
                                             llvm::cl::value_desc("DIR"));
static llvm::cl::opt<bool> quiet("q", llvm::cl::cat(category), llvm::cl::desc("Print errors only"));

static bool isStream(StringRef file) { return file == "-"; }

/// The folder of a file, "" for a stream: the working directory.
static std::string folderOf(StringRef file) { return isStream(file) ? "" : path::parent_path(file).str(); }

static LogicalResult complain(const llvm::Twine &message) {
  llvm::errs() << "divi-opt: error: " << message << "\n";
  return failure();
}

/// Options that change how types come out, as pass options.
static std::string shapeOptions() {
  std::string options = "batch=" + std::to_string(batch);
  for (const std::string &shape : inputShapes)
    options += " input-shape=" + shape;
  return options;
}

static LogicalResult addPass(PassManager &manager, StringRef pass, const llvm::Twine &options) {
  const PassInfo *info = PassInfo::lookup(pass);
  if (!info)
    return complain("pass '" + pass + "' is not registered, which is a bug: please report it");
  auto complainAbout = [](const llvm::Twine &message) { return complain(message); };
  return info->addToPipeline(manager, options.str(), complainAbout);
}

/// MLIR input goes through the same options that import takes itself: shapes first, and paths of weights last.
static LogicalResult extendPipeline(MlirOptMainConfig &config, StringRef input, StringRef output) {
  MlirOptMainConfig plain = config;
  std::string from = weightsDir.empty() ? folderOf(input) : weightsDir;
  std::string to = folderOf(output);
  SmallString<128> absoluteFrom(from), absoluteTo(to);
  llvm::sys::fs::make_absolute(absoluteFrom);
  llvm::sys::fs::make_absolute(absoluteTo);
  path::remove_dots(absoluteFrom, /*remove_dot_dot=*/true);
  path::remove_dots(absoluteTo, /*remove_dot_dot=*/true);
  // IR that goes to a stream keeps its paths: nobody knows where it will be.
  bool rebase = !weightsDir.empty() || (!isStream(output) && absoluteFrom != absoluteTo);
  bool reshape = batch != 0 || !inputShapes.empty();
  if (!rebase && !reshape)
    return success();
  config.setPassPipelineSetupFn([=](PassManager &manager) -> LogicalResult {
    if (reshape && failed(addPass(manager, "divi-infer-shapes", shapeOptions())))
      return failure();
    if (failed(plain.setupPassPipeline(manager)))
      return failure();
    auto folder = [](StringRef name) { return name.empty() ? StringRef(".") : name; };
    if (rebase && failed(addPass(manager, "divi-rebase-weights", "from=" + folder(from) + " to=" + folder(to))))
      return failure();
    return success();
  });
  return success();
}

/// The input as MLIR: itself, or the bytecode of the model that it is.
static std::unique_ptr<llvm::MemoryBuffer> read(StringRef input, StringRef output, bool &isModel) {
  if (isStream(input) && llvm::sys::Process::StandardInIsUserInput())
    llvm::errs() << "(processing input from stdin now, hit ctrl-c/ctrl-d to interrupt)\n";
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &error);
  if (!file) {
    (void)complain(error);
    return nullptr;
  }
  isModel = diviIsOnnx(wrap(file->getBuffer()));
  if (!isModel)
    return file;
  std::string shapes = llvm::join(inputShapes, ","), irFolder = folderOf(output), name = input.str();
  DiviImportOptions options = {wrap(StringRef(shapes)), wrap(StringRef(weightsDir)), wrap(StringRef(irFolder)), batch,
                               quiet};
  std::unique_ptr<llvm::MemoryBuffer> bytecode;
  auto sink = [](MlirStringRef bytes, void *buffer) {
    *static_cast<std::unique_ptr<llvm::MemoryBuffer> *>(buffer) = llvm::MemoryBuffer::getMemBufferCopy(unwrap(bytes));
  };
  if (!diviImportOnnx(wrap(StringRef(name)), isStream(input), wrap(file->getBuffer()), &options, sink, &bytecode))
    return nullptr;
  return bytecode;
}

/// Runs MLIR's driver and writes the output only if it succeeds, and then whole: a temporary file is renamed.
static LogicalResult process(StringRef input, StringRef output, DialectRegistry &registry) {
  if (batch < 0)
    return complain("--batch must be positive");
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  bool isModel = false;
  std::unique_ptr<llvm::MemoryBuffer> buffer = read(input, output, isModel);
  if (!buffer || (!isModel && failed(extendPipeline(config, input, output))))
    return failure();

  // Devices and pipes cannot be renamed over; what goes there goes there directly.
  llvm::sys::fs::file_status status;
  bool replaceable = !isStream(output) && (llvm::sys::fs::status(output, status) || is_regular_file(status));
  std::string error;
  std::string target = replaceable ? (output + ".tmp" + llvm::Twine(llvm::sys::Process::getProcessId())).str() : output.str();
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(target, &error);
  if (!file)
    return complain(error);
  if (failed(MlirOptMain(file->os(), std::move(buffer), registry, config)))
    return failure();
  file->os().flush();
  if (file->os().has_error()) {
    std::string reason = file->os().error().message();
    file->os().clear_error();
    return complain("cannot write '" + output + "': " + reason);
  }
  if (replaceable)
    if (std::error_code code = llvm::sys::fs::rename(target, output))
      return complain("cannot write '" + output + "': " + code.message());
  file->keep();
  return success();
}

extern "C" int diviOptMain(int argc, char **argv) {
  llvm::InitLLVM initialized(argc, argv);
  registerAllPasses();
  diviRegisterPasses();
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<divi::DiviDialect, divi::onnx::ONNXDialect>();
  auto [input, output] = registerAndParseCLIOptions(argc, argv, "divi-opt: MLIR's opt driver for ONNX models", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  return asMainReturnCode(process(input, output, registry));
}
