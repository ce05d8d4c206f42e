// divi-opt is MLIR's own opt driver with divi's dialects and passes, which also reads ONNX models.

#include "Divi.h"
#include "Onnx.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Pass.h"
#include "mlir/CAPI/Support.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
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
#include <filesystem>

using namespace mlir;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// What the command line says about reading the input.
extern "C" struct DiviImportOptions {
  MlirStringRef inputShapes, weightsDir, irFolder;
  int64_t batch;
  bool quiet;
};

extern "C" {
void diviRegisterPasses();
MlirPass diviCreateInferShapes(int64_t batch, const MlirStringRef *shapes, size_t count);
MlirPass diviCreateRebatch(int64_t batch);
MlirPass diviCreateRebaseWeights(MlirStringRef from, MlirStringRef to);
MlirPass diviCreateCanonicalize();
MlirPass diviCreateFuse(MlirStringRef level);
MlirPass diviCreateAnnotateCost(MlirStringRef system);
MlirPass diviCreatePrintCosts(MlirStringRef format, int64_t limit, llvm::raw_ostream *stream);
MlirPass diviCreateEmitProblem(int64_t inputs, llvm::raw_ostream *stream);
bool diviIsOnnx(MlirStringRef bytes);
/// Imports a model and hands its MLIR bytecode to `sink`. False, with errors printed, if it cannot be imported. `name`
/// is a file that constants may refer to (`isFile`), or only what errors call the bytes.
bool diviImportOnnx(MlirStringRef name, bool isFile, MlirStringRef bytes, const DiviImportOptions *options,
                    void (*sink)(MlirStringRef bytes, void *buffer), void *buffer);
}

static llvm::cl::OptionCategory category("divi options");

static llvm::cl::list<std::string> inputShapes("input-shape", llvm::cl::CommaSeparated, llvm::cl::cat(category),
                                               llvm::cl::desc("Shapes of the model's inputs"),
                                               llvm::cl::value_desc("NAME:8x3x224x224"));
static llvm::cl::opt<int64_t> batch("batch", llvm::cl::init(0), llvm::cl::cat(category),
                                    llvm::cl::desc("Batch size: a multiple of the model's, if that is fixed"),
                                    llvm::cl::value_desc("N"));
static llvm::cl::opt<std::string> weightsDir("weights-dir", llvm::cl::cat(category),
                                             llvm::cl::desc("Folder that the input's references to weights are relative to"),
                                             llvm::cl::value_desc("DIR"));
enum class Emit { Mlir, Problem };
static llvm::cl::opt<Emit> emitted("emit", llvm::cl::init(Emit::Mlir), llvm::cl::cat(category),
                                   llvm::cl::desc("What to write"),
                                   llvm::cl::values(clEnumValN(Emit::Mlir, "mlir", "the module (default)"),
                                                    clEnumValN(Emit::Problem, "problem",
                                                               "the planning problem that the model poses, as JSON")));
enum class Table { None, Text, Csv };
static llvm::cl::opt<Table> costTable(
    "cost-table", llvm::cl::init(Table::None), llvm::cl::ValueOptional, llvm::cl::cat(category),
    llvm::cl::desc("Write what the hottest tasks cost on each device, instead of the module"),
    llvm::cl::values(clEnumValN(Table::Text, "", "columns"), clEnumValN(Table::Text, "text", "columns"),
                     clEnumValN(Table::Csv, "csv", "comma-separated values, every task and batch")));
static llvm::cl::opt<int64_t> tableLimit("cost-table-limit", llvm::cl::init(20), llvm::cl::cat(category),
                                         llvm::cl::desc("Tasks that --cost-table shows as columns (0: all)"),
                                         llvm::cl::value_desc("N"));
static llvm::cl::opt<std::string> systemSpec("system", llvm::cl::cat(category),
                                             llvm::cl::desc("The machine: a preset or the path of a description (default: host, unless the "
                                                            "input has costs already)"),
                                             llvm::cl::value_desc("NAME|FILE.toml"));
static llvm::cl::opt<std::string> fuseLevel("fuse", llvm::cl::init("full"), llvm::cl::cat(category),
                                            llvm::cl::desc("What operators become one task before costs are counted"),
                                            llvm::cl::value_desc("none|conv|full"));
static llvm::cl::opt<int64_t> inputCount("inputs", llvm::cl::init(1), llvm::cl::cat(category),
                                         llvm::cl::desc("Number of inputs that wait to be run, for --emit=problem"),
                                         llvm::cl::value_desc("L"));
static llvm::cl::opt<bool> quiet("q", llvm::cl::cat(category), llvm::cl::desc("Print errors only"));

static bool isStream(StringRef file) { return file == "-"; }

/// Whether a name is of an open descriptor rather than of the file behind it: nothing can refer to that by this name,
/// and it must not be replaced.
static bool isDescriptor(StringRef file) {
  return file == "/dev/stdin" || file == "/dev/stdout" || file == "/dev/stderr" || file.starts_with("/dev/fd/") ||
         file.starts_with("/proc/");
}

/// Whether a name is of a file that can be read again.
static bool isRegular(StringRef file) { return !isStream(file) && !isDescriptor(file) && fs::is_regular_file(file); }

/// The folder of a file, "" for a stream: the working directory.
static std::string folderOf(StringRef file) { return isStream(file) ? "" : path::parent_path(file).str(); }

static LogicalResult complain(const llvm::Twine &message) {
  llvm::errs() << "divi-opt: error: " << message << "\n";
  return failure();
}

/// Whether something else than the module is written.
static bool writesText() { return emitted != Emit::Mlir || costTable != Table::None; }

/// From a model to what is written of it.
static void addCosts(PassManager &manager, llvm::raw_ostream *stream) {
  auto add = [&](MlirPass pass) { manager.addPass(std::unique_ptr<Pass>(unwrap(pass))); };
  add(diviCreateCanonicalize());
  add(diviCreateFuse(wrap(StringRef(fuseLevel))));
  add(diviCreateAnnotateCost(wrap(StringRef(systemSpec))));
  if (costTable != Table::None)
    add(diviCreatePrintCosts(wrap(StringRef(costTable == Table::Csv ? "csv" : "text")), tableLimit, stream));
  else
    add(diviCreateEmitProblem(inputCount, stream));
}

/// What the command line asks for around the passes that it names. A batch that is fixed is changed by a pass, once the
/// input is MLIR. MLIR input also goes through the options that import takes itself: shapes first, and paths of weights
/// last.
static void extendPipeline(MlirOptMainConfig &config, StringRef input, StringRef output, bool isModel,
                           llvm::raw_ostream *stream) {
  MlirOptMainConfig plain = config;
  std::string from = weightsDir.empty() ? folderOf(input) : weightsDir;
  std::string to = folderOf(output);
  SmallString<128> absoluteFrom(from), absoluteTo(to);
  fs::make_absolute(absoluteFrom);
  fs::make_absolute(absoluteTo);
  path::remove_dots(absoluteFrom, /*remove_dot_dot=*/true);
  path::remove_dots(absoluteTo, /*remove_dot_dot=*/true);
  // IR that goes to a stream keeps its paths: nobody knows where it will be.
  bool rebase = !isModel && !writesText() && (!weightsDir.empty() || (!isStream(output) && absoluteFrom != absoluteTo));
  bool reshape = !isModel && (batch != 0 || !inputShapes.empty());
  if (!rebase && !reshape && batch == 0 && !writesText())
    return;
  config.setPassPipelineSetupFn([=](PassManager &manager) -> LogicalResult {
    if (reshape) {
      SmallVector<MlirStringRef> shapes;
      for (const std::string &shape : inputShapes)
        shapes.push_back(wrap(StringRef(shape)));
      manager.addPass(std::unique_ptr<Pass>(unwrap(diviCreateInferShapes(batch, shapes.data(), shapes.size()))));
    }
    if (batch != 0)
      manager.addPass(std::unique_ptr<Pass>(unwrap(diviCreateRebatch(batch))));
    if (failed(plain.setupPassPipeline(manager)))
      return failure();
    if (writesText())
      addCosts(manager, stream);
    auto folder = [](StringRef name) { return name.empty() ? StringRef(".") : name; };
    if (rebase)
      manager.addPass(std::unique_ptr<Pass>(unwrap(diviCreateRebaseWeights(wrap(folder(from)), wrap(folder(to))))));
    return success();
  });
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
  if (!isModel) {
    if (file->getBufferSize() != 0 || !input.ends_with_insensitive(".onnx"))
      return file;
    (void)complain("'" + input + "' is not an ONNX model: the file is empty");
    return nullptr;
  }
  bool isFile = isRegular(input);
  if (isFile && !isStream(output) && fs::equivalent(input, output)) {
    (void)complain("cannot write '" + output + "': it is the model itself, whose weights the output refers to");
    return nullptr;
  }
  std::string shapes = llvm::join(inputShapes, ","), irFolder = folderOf(output);
  std::string name = isStream(input) ? "<stdin>" : input.str();
  DiviImportOptions options = {wrap(StringRef(shapes)), wrap(StringRef(weightsDir)), wrap(StringRef(irFolder)), batch,
                               quiet};
  std::unique_ptr<llvm::MemoryBuffer> bytecode;
  auto sink = [](MlirStringRef bytes, void *buffer) {
    *static_cast<std::unique_ptr<llvm::MemoryBuffer> *>(buffer) = llvm::MemoryBuffer::getMemBufferCopy(unwrap(bytes));
  };
  if (!diviImportOnnx(wrap(StringRef(name)), isFile, wrap(file->getBuffer()), &options, sink, &bytecode))
    return nullptr;
  return bytecode;
}

/// The file that a chain of links ends at, whether it is there or not.
static std::string followLinks(StringRef file) {
  std::filesystem::path end(file.str());
  std::error_code code;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(std::filesystem::symlink_status(end, code)); ++links)
    end = end.parent_path() / std::filesystem::read_symlink(end, code);
  return end.string();
}

/// A file that is written beside the one that it replaces in the end. Without `keep` it goes.
static std::unique_ptr<llvm::ToolOutputFile> openBeside(StringRef target, std::string &name, std::error_code &code) {
  llvm::ErrorOr<fs::perms> mode = fs::getPermissions(target);
  int descriptor = -1;
  for (int attempt = 0; attempt < 100; ++attempt) {
    SmallString<128> candidate = path::parent_path(target);
    path::append(candidate, ".divi-opt-" + llvm::Twine(llvm::sys::Process::getProcessId()) + "-" +
                                llvm::Twine(attempt) + ".tmp");
    name = candidate.str().str();
    // What replaces a private file is private from the start.
    code = fs::openFileForWrite(name, descriptor, fs::CD_CreateNew, fs::OF_None, mode ? 0600 : 0666);
    if (code != std::errc::file_exists)
      break;
  }
  if (code)
    return nullptr;
  auto file = std::make_unique<llvm::ToolOutputFile>(name, descriptor);
  if (mode)
    code = fs::setPermissions(descriptor, *mode);
  return file;
}

/// Runs MLIR's driver and writes the output only if it succeeds, and then whole: a temporary file is renamed.
static LogicalResult process(StringRef input, StringRef output, DialectRegistry &registry) {
  if (batch < 0)
    return complain("--batch must be positive");
  if (costTable != Table::None && emitted != Emit::Mlir)
    return complain("--cost-table and --emit=problem both say what is written: give one of them");
  if (emitted == Emit::Problem && !MlirOptMainConfig::createFromCLOptions().inputSplitMarker().empty())
    return complain("--emit=problem writes one problem: give it one module, without --split-input-file");
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  bool isModel = false;
  std::unique_ptr<llvm::MemoryBuffer> buffer = read(input, output, isModel);
  if (!buffer)
    return failure();

  // Devices and pipes cannot be renamed over; what goes there goes there directly.
  fs::file_status status;
  bool replaceable = !isStream(output) && !isDescriptor(output) &&
                     (fs::status(output, status) == std::errc::no_such_file_or_directory || is_regular_file(status));
  std::string target = replaceable ? followLinks(output) : output.str(), temporary;
  auto cannotWrite = [&](std::error_code code) {
    return complain("cannot write '" + output + "': " + code.message());
  };
  std::error_code code;
  std::unique_ptr<llvm::ToolOutputFile> file = replaceable
                                                   ? openBeside(target, temporary, code)
                                                   : std::make_unique<llvm::ToolOutputFile>(target, code, fs::OF_None);
  if (code)
    return cannotWrite(code);
  // A device stays, whatever happens.
  if (!replaceable)
    file->keep();
  std::string text;
  llvm::raw_string_ostream textStream(text);
  extendPipeline(config, input, output, isModel, &textStream);
  llvm::raw_ostream &moduleStream = writesText() ? llvm::nulls() : file->os();
  if (failed(MlirOptMain(moduleStream, std::move(buffer), registry, config)))
    return failure();
  if (writesText() && text.empty())
    return complain("there is nothing to write: '" + input + "' has no builtin.module");
  file->os() << text;
  file->os().flush();
  // Some file systems find only now that there is no room.
  if (replaceable)
    file->os().close();
  if (file->os().has_error()) {
    code = file->os().error();
    file->os().clear_error();
    return cannotWrite(code);
  }
  if (replaceable && (code = fs::rename(temporary, target)))
    return cannotWrite(code);
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
