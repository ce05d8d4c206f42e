// Registers the passes of td/Passes.td with MLIR. Their generated classes hand options to Rust, and add what is counted there to
// their statistics.

#include "Passes.h"

#include "Divi.h"
#include "Onnx.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

extern "C" {
/// Takes the text that a pass makes.
using DiviSink = void (*)(MlirStringRef text, void *stream);
void diviInstallDeviceKinds();
}

static void appendToStream(MlirStringRef text, void *stream) {
  *static_cast<llvm::raw_ostream *>(stream) << unwrap(text);
}

static SmallVector<MlirStringRef> wrapAll(ArrayRef<std::string> strings) {
  return llvm::map_to_vector(strings, [](StringRef string) { return wrap(string); });
}

/// The value of an option without a default, or null. Only users who write `unset` give it; in options that a driver assigns, it
/// stands for none.
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
