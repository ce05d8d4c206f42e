// Declares the passes of td/Passes.td, for drivers that build pipelines of them.

#ifndef DIVI_PASSES_H
#define DIVI_PASSES_H

#include "mlir/Pass/Pass.h"

/// Problem, plan and observer of one run of a driver. It outlives the passes that share it.
struct DiviSession;

namespace divi {
#define GEN_PASS_DECL
#include "Passes.h.inc"
// Overloads with the driver's session, or with an open stream for the text of a pass. Null means none.
#include "PassConstructors.h.inc"
} // namespace divi

/// Registers every pass under its `divi-…` name.
extern "C" void diviRegisterPasses();

#endif
