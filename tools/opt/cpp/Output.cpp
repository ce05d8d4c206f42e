// Files that are written whole or not at all.

#include "Output.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <filesystem>

using namespace llvm;
using namespace divi::opt;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

bool divi::opt::isStream(StringRef file) { return file == "-"; }

/// Whether a name is of an open descriptor rather than of the file behind it: nothing can refer to that by this name,
/// and it must not be replaced.
static bool isDescriptor(StringRef file) {
  return file == "/dev/stdin" || file == "/dev/stdout" || file == "/dev/stderr" || file.starts_with("/dev/fd/") ||
         file.starts_with("/proc/");
}

bool divi::opt::isRegular(StringRef file) {
  return !isStream(file) && !isDescriptor(file) && fs::is_regular_file(file);
}

std::string divi::opt::folderOf(StringRef file) { return isStream(file) ? "" : path::parent_path(file).str(); }

/// The file that a chain of links ends at, whether it is there or not.
static std::string followLinks(StringRef file) {
  std::filesystem::path end(file.str());
  std::error_code code;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(std::filesystem::symlink_status(end, code)); ++links)
    end = end.parent_path() / std::filesystem::read_symlink(end, code);
  return end.string();
}

/// A new file in the folder of `target`. Without `keep` it goes.
static std::unique_ptr<ToolOutputFile> openBeside(StringRef target, std::string &name, std::error_code &code) {
  ErrorOr<fs::perms> mode = fs::getPermissions(target);
  int descriptor = -1;
  for (int attempt = 0; attempt < 100; ++attempt) {
    SmallString<128> candidate = path::parent_path(target);
    path::append(candidate,
                 ".divi-opt-" + Twine(llvm::sys::Process::getProcessId()) + "-" + Twine(attempt) + ".tmp");
    name = candidate.str().str();
    // What replaces a private file is private from the start.
    code = fs::openFileForWrite(name, descriptor, fs::CD_CreateNew, fs::OF_None, mode ? 0600 : 0666);
    if (code != std::errc::file_exists)
      break;
  }
  if (code)
    return nullptr;
  auto file = std::make_unique<ToolOutputFile>(name, descriptor);
  if (mode)
    code = fs::setPermissions(descriptor, *mode);
  return file;
}

std::error_code Output::open(StringRef name) {
  fs::file_status status;
  replaceable = !isStream(name) && !isDescriptor(name) &&
                (fs::status(name, status) == std::errc::no_such_file_or_directory || is_regular_file(status));
  target = replaceable ? followLinks(name) : name.str();
  std::error_code code;
  file = replaceable ? openBeside(target, temporary, code) : std::make_unique<ToolOutputFile>(target, code, fs::OF_None);
  // A device stays, whatever happens.
  if (!code && !replaceable)
    file->keep();
  return code;
}

std::error_code Output::keep() {
  file->os().flush();
  // Some file systems find only now that there is no room.
  if (replaceable)
    file->os().close();
  if (file->os().has_error()) {
    std::error_code code = file->os().error();
    file->os().clear_error();
    return code;
  }
  if (replaceable)
    if (std::error_code code = fs::rename(temporary, target))
      return code;
  file->keep();
  return {};
}
