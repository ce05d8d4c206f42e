// What mlir-opt asks a plugin for.

#include "Divi.h"
#include "Onnx.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

extern "C" void diviRegisterPasses();

/// Either flag of mlir-opt registers the passes; both together must not do it twice.
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
