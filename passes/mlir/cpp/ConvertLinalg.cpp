// Conversion of operations on tensors of the linalg, tensor, arith and math dialects to onnx operators, for which there is
// code.

#include "LinalgToOnnx.h"
#include "ScalarToOnnx.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace divi;

extern "C" {
/// Converts the operations of a module. Sets the numbers of converted operations, and of those that were left with a warning.
/// Returns false and emits an error if there are such operations, but the module has a plan of them.
bool diviConvertLinalgToOnnx(MlirOperation module, uint64_t *converted, uint64_t *left);
}

namespace {

/// Returns `whole` with `part` at `offsets`, from dimension `axis` on.
Value inserted(OnnxBuilder &onnx, Value part, Value whole, ArrayRef<int64_t> offsets, unsigned axis) {
  auto shape = llvm::to_vector(OnnxBuilder::shapeOf(whole));
  if (axis == shape.size() || OnnxBuilder::shapeOf(part) == ArrayRef(shape))
    return part;
  auto cut = [&](int64_t from, int64_t to) {
    SmallVector<int64_t> start(shape.size(), 0), sizes = shape;
    start[axis] = from;
    sizes[axis] = to - from;
    return to == from ? Value() : onnx.slice(whole, start, sizes, SmallVector<int64_t>(shape.size(), 1));
  };
  int64_t from = offsets[axis], to = from + OnnxBuilder::shapeOf(part)[axis];
  Value middle = to == from ? Value() : inserted(onnx, part, cut(from, to), offsets, axis + 1);
  return onnx.concat({cut(0, from), middle, cut(to, shape[axis])}, axis);
}

/// Creates the operators that compute the results of an operation. Returns nothing and the reason if there are none.
SmallVector<Value> convert(OnnxBuilder &onnx, Operation *op, std::string &reason) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgToOnnx(onnx, linalgOp, reason);
  if (op->getNumResults() != 1 || !llvm::all_of(op->getResultTypes(), isStatic)) {
    reason = "its result is not a tensor of static shape, with numbers as elements";
    return {};
  }
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto fail = [&](StringRef why) {
    reason = why.str();
    return Value();
  };
  auto isDynamic = [](ArrayRef<int64_t> numbers) { return llvm::any_of(numbers, ShapedType::isDynamic); };
  Value result =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case<arith::ConstantOp>([&](auto constant) {
            auto elements = dyn_cast<ElementsAttr>(constant.getValue());
            return elements ? onnx.constant(elements) : fail("its value is not dense");
          })
          .Case<tensor::CastOp>([&](auto same) {
            Value source = same.getSource();
            return source.getType() == type ? source : fail("its operand's shape is not static");
          })
          .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
              [&](auto reshape) { return onnx.reshape(reshape.getSrc(), type.getShape()); })
          .Case<tensor::ReshapeOp>([&](auto reshape) {
            return isStatic(reshape.getSource().getType()) ? onnx.reshape(reshape.getSource(), type.getShape())
                                                           : fail("its operand's shape is not static");
          })
          .Case<tensor::ConcatOp>([&](auto concat) {
            return onnx.concat(SmallVector<Value>(concat.getInputs()), concat.getDim());
          })
          .Case<tensor::SplatOp>([&](auto splat) {
            Value scalar = constantScalar(onnx, splat.getInput());
            return scalar ? onnx.expand(scalar, type.getShape()) : fail("its scalar is not a constant");
          })
          .Case<tensor::ExtractSliceOp>([&](auto slice) {
            if (isDynamic(slice.getStaticOffsets()) || isDynamic(slice.getStaticStrides()) || !isStatic(slice.getSource().getType()))
              return fail("its offsets are not constants");
            Value part = onnx.slice(slice.getSource(), slice.getStaticOffsets(), slice.getStaticSizes(),
                                    slice.getStaticStrides());
            return onnx.reshape(part, type.getShape());
          })
          .Case<tensor::InsertSliceOp>([&](auto slice) {
            bool isUnit = llvm::all_of(slice.getStaticStrides(), [](int64_t stride) { return stride == 1; });
            if (isDynamic(slice.getStaticOffsets()) || !isUnit || !isStatic(slice.getSource().getType()))
              return fail("its offsets are not constants, or its strides are not 1");
            Value part = onnx.reshape(slice.getSource(), slice.getStaticSizes());
            Value whole = slice.getDest();
            // An element that is never written may have any value.
            if (whole.getDefiningOp<tensor::EmptyOp>())
              whole = onnx.expand(onnx.number(0.0, type.getElementType()), type.getShape());
            return inserted(onnx, part, whole, slice.getStaticOffsets(), 0);
          })
          .Case<tensor::PadOp>([&](auto pad) {
            Value padding = pad.getConstantPaddingValue();
            Value scalar = padding ? constantScalar(onnx, padding) : Value();
            SmallVector<int64_t> pads(pad.getStaticLow());
            llvm::append_range(pads, pad.getStaticHigh());
            if (!scalar || isDynamic(pads) || !isStatic(pad.getSource().getType()))
              return fail("its padding is not constant");
            return onnx.create("Pad", type, {pad.getSource(), onnx.list(pads), scalar, onnx.none()});
          })
          .Case<linalg::SoftmaxOp>([&](auto softmax) {
            return onnx.create("Softmax", type, softmax.getInput(), onnx.attribute("axis", softmax.getDimension()));
          })
          .Default([&](Operation *other) {
            if (!isa_and_present<arith::ArithDialect, math::MathDialect>(other->getDialect()) ||
                !llvm::all_of(other->getOperandTypes(), isStatic))
              return fail("it has no counterpart in onnx");
            return scalarToOnnx(onnx, other, other->getOperands(), reason);
          });
  return result ? SmallVector<Value>{result} : SmallVector<Value>();
}

/// Returns true for operations that may be converted. A tensor.empty has no values: it is dead afterwards.
bool isCandidate(Operation *op) {
  if (isa<tensor::EmptyOp>(op) || !llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>))
    return false;
  // Lists of sizes, for instance.
  if (isa<arith::ConstantOp>(op) && !isStatic(op->getResult(0).getType()))
    return false;
  return isa_and_present<linalg::LinalgDialect, tensor::TensorDialect, arith::ArithDialect, math::MathDialect>(
      op->getDialect());
}

} // namespace

bool diviConvertLinalgToOnnx(MlirOperation operation, uint64_t *converted, uint64_t *left) {
  Operation *module = unwrap(operation);
  // In their order: operands are converted before users.
  SmallVector<Operation *> candidates, unused;
  module->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isCandidate(op)) {
      candidates.push_back(op);
      return WalkResult::skip();
    }
    if (isa<tensor::EmptyOp>(op) || (op->hasTrait<OpTrait::ConstantLike>() && op->getName().getDialectNamespace() != "onnx"))
      unused.push_back(op);
    return WalkResult::advance();
  });
  if (!candidates.empty() && module->hasAttr("divi.plan")) {
    module->emitError("has a plan for operations that this pass would replace: run divi-convert-linalg before planning");
    return false;
  }
  llvm::StringMap<unsigned> counts;
  for (Operation *op : candidates) {
    StringRef kind = op->getName().stripDialect();
    std::string name = (kind + "_" + Twine(counts[kind]++)).str(), reason;
    if (auto given = op->getAttrOfType<StringAttr>("onnx_node_name"))
      name = given.str();
    OnnxBuilder onnx(op, name);
    Operation *before = op->getPrevNode();
    SmallVector<Value> results = convert(onnx, op, reason);
    if (results.empty()) {
      // Operators that were created before the conversion failed.
      while (op->getPrevNode() != before)
        op->getPrevNode()->erase();
      op->emitWarning() << "'" << op->getName() << "' cannot be converted to onnx operators: " << reason
                        << "; it can be planned, but not compiled";
      ++*left;
      continue;
    }
    op->replaceAllUsesWith(results);
    op->erase();
    ++*converted;
  }
  for (Operation *op : llvm::reverse(unused))
    if (op->use_empty())
      op->erase();
  return true;
}
