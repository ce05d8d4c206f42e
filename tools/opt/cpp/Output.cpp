// Files that are written atomically, through the drafts of crate divi-files.

#include "Output.h"

#include "Options.h"
#include "mlir/CAPI/Support.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace divi::opt;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// Callback that receives a text.
using Sink = void (*)(MlirStringRef text, void *user);

extern "C" {
/// Returns null and passes the reason to `sink` if the file cannot be written.
DiviDraft *diviDraftCreate(MlirStringRef target, Sink sink, void *user);
MlirStringRef diviDraftPath(const DiviDraft *draft);
bool diviDraftCommit(DiviDraft *draft, Sink sink, void *user);
void diviDraftDiscard(DiviDraft *draft);
struct DiviOutputs {
  MlirStringRef input, system, plan, placement, output, report;
  bool isFolder, inPlace;
};
bool diviCheckOutputs(const DiviOutputs *outputs, Sink sink, void *user);
}

static void append(MlirStringRef text, void *user) { *static_cast<std::string *>(user) += unwrap(text); }

bool divi::opt::isStream(StringRef file) { return file == "-"; }

/// Returns true if a name denotes an open descriptor, not the file behind it, so that nothing can refer to the file by it.
static bool isDescriptor(StringRef file) {
  return file == "/dev/stdin" || file == "/dev/stdout" || file == "/dev/stderr" || file.starts_with("/dev/fd/") ||
         file.starts_with("/proc/");
}

bool divi::opt::isRegular(StringRef file) {
  return !isStream(file) && !isDescriptor(file) && fs::is_regular_file(file);
}

std::string divi::opt::folderOf(StringRef file) { return isStream(file) ? "" : path::parent_path(file).str(); }

std::string divi::opt::objection(StringRef input, StringRef output, bool isFolder, bool inPlace) {
  auto [plan, placement] = readByPlanning();
  DiviOutputs outputs = {wrap(input),  wrap(StringRef(systemSpec)), wrap(plan), wrap(placement),
                         wrap(output), wrap(StringRef(report)),     isFolder,   inPlace};
  std::string reason;
  diviCheckOutputs(&outputs, append, &reason);
  return reason;
}

std::string Output::open(StringRef name) {
  isStandard = isStream(name);
  if (isStandard)
    return "";
  std::string reason;
  draft = diviDraftCreate(wrap(name), append, &reason);
  if (!draft)
    return reason;
  std::error_code code;
  file.emplace(unwrap(diviDraftPath(draft)), code, fs::CD_CreateAlways, fs::FA_Write, fs::OF_None);
  return code ? code.message() : "";
}

std::string Output::keep() {
  if (isStandard) {
    outs().flush();
    return "";
  }
  // Some file systems report a full disk only now.
  file->close();
  if (file->has_error()) {
    std::string reason = file->error().message();
    file->clear_error();
    return reason;
  }
  std::string reason;
  diviDraftCommit(std::exchange(draft, nullptr), append, &reason);
  return reason;
}

Output::~Output() {
  if (file)
    file->clear_error();
  if (draft)
    diviDraftDiscard(draft);
}
