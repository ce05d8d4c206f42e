// Conversion of one operation of the arith and math dialects, applied to each element of tensors.

#ifndef DIVI_SCALAR_TO_ONNX_H
#define DIVI_SCALAR_TO_ONNX_H

#include "OnnxBuilder.h"

namespace divi {

/// Returns the type of a tensor's elements that holds a scalar: i64 for an index.
mlir::Type storageType(mlir::Type scalar);

/// Returns true for the types of elements that operators of arithmetic have.
bool isNumber(mlir::Type element);

/// Returns a constant of rank 0 for a scalar that is known; null for any other.
mlir::Value constantScalar(OnnxBuilder &onnx, mlir::Value scalar);

/// Creates the operators that compute `op` for each element of `operands`, which are broadcast. Returns null and the reason if
/// there are none.
mlir::Value scalarToOnnx(OnnxBuilder &onnx, mlir::Operation *op, mlir::ValueRange operands, std::string &reason);

} // namespace divi

#endif
