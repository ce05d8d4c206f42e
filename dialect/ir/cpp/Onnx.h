// C++ declarations of the `onnx` dialect, documented in td/Onnx.td.

#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace divi::onnx {
/// Verifies an operator against shape inference; emits errors on the operation.
llvm::LogicalResult verifyByInference(mlir::Operation *op);

template <typename ConcreteOp>
struct VerifiedByInference : mlir::OpTrait::TraitBase<ConcreteOp, VerifiedByInference> {
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) { return verifyByInference(op); }
};
} // namespace divi::onnx

#include "OnnxDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "OnnxTypes.h.inc"
#define GET_OP_CLASSES
#include "OnnxOps.h.inc"
