// Creation of onnx operators with static shapes.

#ifndef DIVI_ONNX_BUILDER_H
#define DIVI_ONNX_BUILDER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace divi {

/// Creates the operators that replace one operation. Values are tensors of static shape.
class OnnxBuilder {
public:
  /// The operators are inserted before `replaced`, have names that begin with `name`, and its attributes of divi.
  OnnxBuilder(mlir::Operation *replaced, llvm::StringRef name);

  mlir::Value create(llvm::StringRef op, mlir::RankedTensorType type, mlir::ValueRange operands,
                     llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  /// Creates an operator whose result has the type of its operand.
  mlir::Value unary(llvm::StringRef op, mlir::Value x) { return create(op, typeOf(x), x); }
  /// Creates an operator that broadcasts its operands; the result has the element type of the last one, or `element`.
  mlir::Value elementwise(llvm::StringRef op, mlir::ValueRange operands, mlir::Type element = {});
  mlir::Value cast(mlir::Value x, mlir::Type element);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> order);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value expand(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> sizes,
                    llvm::ArrayRef<int64_t> strides);
  mlir::Value concat(mlir::ValueRange parts, int64_t axis);
  /// Creates an operator that reduces axes to size 1, and returns its result.
  mlir::Value reduce(llvm::StringRef op, mlir::Value x, llvm::ArrayRef<int64_t> axes);

  mlir::Value constant(mlir::ElementsAttr elements);
  /// Creates a constant of rank 0.
  mlir::Value scalar(mlir::TypedAttr scalar);
  mlir::Value number(double value, mlir::Type element);
  mlir::Value list(llvm::ArrayRef<int64_t> numbers);
  mlir::Value none();

  mlir::NamedAttribute attribute(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute attribute(llvm::StringRef name, llvm::ArrayRef<int64_t> values);

  /// Returns the elements of a constant if they are equal.
  static mlir::SplatElementsAttr splatOf(mlir::Value x);
  static mlir::RankedTensorType typeOf(mlir::Value x) { return mlir::cast<mlir::RankedTensorType>(x.getType()); }
  static llvm::ArrayRef<int64_t> shapeOf(mlir::Value x) { return typeOf(x).getShape(); }
  static mlir::Type elementOf(mlir::Value x) { return typeOf(x).getElementType(); }

  mlir::Builder &types() { return builder; }

private:
  mlir::OpBuilder builder;
  mlir::Location location;
  std::string name;
  llvm::SmallVector<mlir::NamedAttribute> inherited;
};

} // namespace divi

#endif
