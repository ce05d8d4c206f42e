// Files that are written atomically.

#ifndef DIVI_OPT_OUTPUT_H
#define DIVI_OPT_OUTPUT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <optional>
#include <string>

/// A file under construction (crate divi-files).
struct DiviDraft;

namespace divi::opt {
/// Returns true if a name denotes standard input or output.
bool isStream(llvm::StringRef file);
/// Returns true if a name denotes a file that can be read again.
bool isRegular(llvm::StringRef file);
/// Returns the folder of a file; "" for a stream and for the working directory.
std::string folderOf(llvm::StringRef file);

/// Returns the reason why outputs cannot be written: they are inputs or contain them, or two are the same; "" if they can. The
/// main output is a folder if `isFolder`; `inPlace` allows it to replace the input.
std::string objection(llvm::StringRef input, llvm::StringRef output, bool isFolder, bool inPlace);

/// A temporary file that replaces its target on `keep`, and is removed otherwise.
class Output {
public:
  Output() = default;
  Output(const Output &) = delete;
  ~Output();
  /// Opens the file; returns the error, or "". Devices and pipes are written directly.
  std::string open(llvm::StringRef name);
  llvm::raw_ostream &stream() { return isStandard ? llvm::outs() : *file; }
  /// Moves the file to its target; returns the error, or "".
  std::string keep();

private:
  bool isStandard = false;
  DiviDraft *draft = nullptr;
  std::optional<llvm::raw_fd_ostream> file;
};
} // namespace divi::opt

#endif
