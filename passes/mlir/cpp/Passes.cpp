// Registers the passes of td/Passes.td with MLIR. The generated classes pass their options to Rust and add the counters
// that it returns to their statistics.

#include "Passes.h"

#include "Divi.h"
#include "Onnx.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

extern "C" {
/// Receives the text that a pass produces.
using DiviSink = void (*)(MlirStringRef text, void *stream);
void diviInstallDeviceKinds();
}

static void appendToStream(MlirStringRef text, void *stream) {
  *static_cast<llvm::raw_ostream *>(stream) << unwrap(text);
}

static SmallVector<MlirStringRef> wrapAll(ArrayRef<std::string> strings) {
  return llvm::map_to_vector(strings, [](StringRef string) { return wrap(string); });
}

/// Returns the value of an option without a default, or null if it is not set. A driver assigns `unset` to leave the
/// option out; on a command line, `unset` is a value like any other.
template <typename Option, typename T> static auto given(Option &option, bool isParsed, T unset) {
  bool isUnset = !option.hasValue() || (!isParsed && option.getValue() == unset);
  return isUnset ? nullptr : &option.getValue();
}

#include "PassClasses.cpp.inc"

namespace divi {
#define GEN_PASS_REGISTRATION
#include "Passes.h.inc"
} // namespace divi

extern "C" void diviRegisterPasses() {
  diviInstallDeviceKinds();
  divi::registerDiviPasses();
}
