// Files that are written whole or not at all.

#ifndef DIVI_OPT_OUTPUT_H
#define DIVI_OPT_OUTPUT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <optional>
#include <string>

/// A file in the making (crate divi-files).
struct DiviDraft;

namespace divi::opt {
/// Whether a name stands for standard input or output.
bool isStream(llvm::StringRef file);
/// Whether a name is of a file that can be read again.
bool isRegular(llvm::StringRef file);
/// The folder of a file, "" for a stream: the working directory.
std::string folderOf(llvm::StringRef file);

/// Returns why outputs cannot be written: they are inputs or contain them, or two are the same. Empty if they can. The main
/// output is a folder if `isFolder`; `inPlace` allows it to replace the input.
std::string objection(llvm::StringRef input, llvm::StringRef output, bool isFolder, bool inPlace);

/// A file that is written beside the one that it replaces in the end. Without `keep` it leaves no trace.
class Output {
public:
  Output() = default;
  Output(const Output &) = delete;
  ~Output();
  /// Opens it; returns what is wrong, or "". Devices and pipes are written to directly.
  std::string open(llvm::StringRef name);
  llvm::raw_ostream &stream() { return isStandard ? llvm::outs() : *file; }
  /// Puts the file in its place; returns what is wrong, or "".
  std::string keep();

private:
  bool isStandard = false;
  DiviDraft *draft = nullptr;
  std::optional<llvm::raw_fd_ostream> file;
};
} // namespace divi::opt

#endif
