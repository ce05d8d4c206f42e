// Files that are written whole or not at all.

#ifndef DIVI_OPT_OUTPUT_H
#define DIVI_OPT_OUTPUT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ToolOutputFile.h"
#include <memory>
#include <string>
#include <system_error>

namespace divi::opt {
/// Whether a name stands for standard input or output.
bool isStream(llvm::StringRef file);
/// Whether a name is of a file that can be read again.
bool isRegular(llvm::StringRef file);
/// The folder of a file, "" for a stream: the working directory.
std::string folderOf(llvm::StringRef file);

/// A file that is written beside the one that it replaces in the end. What is not kept leaves no trace.
class Output {
public:
  /// Opens it. Devices and pipes cannot be renamed over; what goes there goes there directly.
  std::error_code open(llvm::StringRef name);
  llvm::raw_ostream &stream() { return file->os(); }
  /// Puts the file in its place.
  std::error_code keep();

private:
  bool replaceable = false;
  std::string target, temporary;
  std::unique_ptr<llvm::ToolOutputFile> file;
};
} // namespace divi::opt

#endif
