// Conversion of one structured operation of linalg on tensors.

#ifndef DIVI_LINALG_TO_ONNX_H
#define DIVI_LINALG_TO_ONNX_H

#include "OnnxBuilder.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace divi {

/// Returns true for tensors of static shape whose elements are numbers.
bool isStatic(mlir::Type type);

/// Creates the operators that compute the results of `op`. Returns nothing and the reason if there are none.
llvm::SmallVector<mlir::Value> linalgToOnnx(OnnxBuilder &onnx, mlir::linalg::LinalgOp op, std::string &reason);

} // namespace divi

#endif
