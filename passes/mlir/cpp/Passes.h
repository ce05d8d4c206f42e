// The passes of td/Passes.td, for drivers that make pipelines of them.

#ifndef DIVI_PASSES_H
#define DIVI_PASSES_H

#include "mlir/Pass/Pass.h"

/// Problem, plan and observer that one run of a driver keeps beside the module. It outlives the passes that share it.
struct DiviSession;

namespace divi {
#define GEN_PASS_DECL
#include "Passes.h.inc"
// With the driver's session, or with an open stream that the text of a pass goes to. Null stands for none.
#include "PassConstructors.h.inc"
} // namespace divi

/// Registers every pass under its `divi-…` name.
extern "C" void diviRegisterPasses();

#endif
