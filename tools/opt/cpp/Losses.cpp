// Plans for the loss of a node (--survive=1).

#include "Losses.h"

#include "Divi.h"
#include "Onnx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace divi;
using namespace divi::opt;

namespace {
struct KeepUnplanned : PassWrapper<KeepUnplanned, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepUnplanned)
  explicit KeepUnplanned(std::shared_ptr<Unplanned> unplanned) : unplanned(std::move(unplanned)) {}
  StringRef getArgument() const override { return "keep-unplanned"; }
  void runOnOperation() override {
    unplanned->module = getOperation().clone();
    markAllAnalysesPreserved();
  }
  std::shared_ptr<Unplanned> unplanned;
};

/// Returns the number of nodes that the devices of a module belong to.
int64_t countNodes(ModuleOp module) {
  int64_t count = 0;
  for (DeviceOp device : module.getOps<DeviceOp>())
    if (std::optional<uint64_t> node = device.getNode())
      count = std::max(count, static_cast<int64_t>(*node) + 1);
  return count;
}

struct PlanLosses : PassWrapper<PlanLosses, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlanLosses)
  PlanLosses(std::shared_ptr<Unplanned> unplanned, PlanWithout planWithout)
      : unplanned(std::move(unplanned)), planWithout(std::move(planWithout)) {}
  StringRef getArgument() const override { return "plan-losses"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager passes = pipeline(0);
    passes.getDependentDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    int64_t count = countNodes(module);
    if (count < 2) {
      module.emitError("--survive plans for the loss of a node, and the system has no second one: describe it with [[node]]");
      return signalPassFailure();
    }
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    for (int64_t node = 1; node < count; node++) {
      auto plan = cast<ModuleOp>(builder.insert(unplanned->module->clone().getOperation()));
      std::string reason;
      if (failed(planLoss(plan, node, reason))) {
        module.emitWarning("the loss of node ") << node << " ends a job: " << reason;
        plan.erase();
        plan = ModuleOp::create(builder, module.getLoc());
        plan->setAttr("divi.reason", builder.getStringAttr(reason));
      }
      plan.setSymName("without_" + std::to_string(node));
      plan->setAttr("divi.without", builder.getI64IntegerAttr(node));
    }
    unplanned->module = nullptr;
  }

  /// Plans and outlines a nested module without a node. On failure, sets the reason.
  LogicalResult planLoss(ModuleOp plan, int64_t node, std::string &reason) {
    // Warnings are those of the plan for all nodes.
    ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && reason.empty())
        reason = diagnostic.str();
      return success();
    });
    OpPassManager passes = pipeline(node);
    return runPipeline(passes, plan);
  }

  OpPassManager pipeline(int64_t node) const {
    OpPassManager passes(ModuleOp::getOperationName());
    planWithout(passes, node);
    return passes;
  }

  std::shared_ptr<Unplanned> unplanned;
  PlanWithout planWithout;
};
} // namespace

std::unique_ptr<Pass> divi::opt::createKeepUnplanned(std::shared_ptr<Unplanned> unplanned) {
  return std::make_unique<KeepUnplanned>(std::move(unplanned));
}

std::unique_ptr<Pass> divi::opt::createPlanLosses(std::shared_ptr<Unplanned> unplanned, PlanWithout planWithout) {
  return std::make_unique<PlanLosses>(std::move(unplanned), std::move(planWithout));
}
