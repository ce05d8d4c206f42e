// Plans for the loss of a node (--survive=1).

#ifndef DIVI_OPT_LOSSES_H
#define DIVI_OPT_LOSSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include <functional>
#include <memory>

namespace divi::opt {
/// Adds the phases that plan a module without a node, up to the outlined plan.
using PlanWithout = std::function<void(mlir::OpPassManager &manager, int64_t node)>;

/// Module before it was planned.
struct Unplanned {
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Copies the module, before costs are annotated.
std::unique_ptr<mlir::Pass> createKeepUnplanned(std::shared_ptr<Unplanned> unplanned);

/// Plans the copied module without each node but the first. Appends the plans to the planned module as nested modules, with the
/// attribute `divi.without`. A node that cannot be lost is a warning, and an empty module with `divi.reason`.
std::unique_ptr<mlir::Pass> createPlanLosses(std::shared_ptr<Unplanned> unplanned, PlanWithout planWithout);
} // namespace divi::opt

#endif
