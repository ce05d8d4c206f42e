// C++ side of the plugin's entry points for mlir-opt.

#include "Divi.h"
#include "Onnx.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

extern "C" void diviRegisterPasses();

/// Registers the passes once, even if both plugin flags of mlir-opt are given.
static void registerPassesOnce() {
  static bool registered = [] {
    diviRegisterPasses();
    return true;
  }();
  (void)registered;
}

extern "C" void diviPassPluginInfo(PassPluginLibraryInfo *info) {
  *info = {MLIR_PLUGIN_API_VERSION, "divi", "v0.1", registerPassesOnce};
}

extern "C" void diviDialectPluginInfo(DialectPluginLibraryInfo *info) {
  *info = {MLIR_PLUGIN_API_VERSION, "divi", "v0.1", [](DialectRegistry *registry) {
             registry->insert<divi::DiviDialect, divi::onnx::ONNXDialect>();
             registerPassesOnce();
           }};
}
