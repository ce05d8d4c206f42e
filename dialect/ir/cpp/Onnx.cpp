// The `onnx` dialect: types, and operations with custom syntax, folders or verifiers.

#include "Onnx.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace divi::onnx;

#include "OnnxDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "OnnxTypes.cpp.inc"

void ONNXDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "OnnxTypes.cpp.inc"
      >();
  registerONNXDialectOperations(this);
  allowUnknownOperations();
}

/// Returns the name of the attribute of `onnx.Constant` that holds elements.
static StringRef elementsName(Attribute elements) {
  return isa<SparseElementsAttr>(elements) ? "sparse_value" : "value";
}

Operation *ONNXDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  if (isa<UnitAttr>(value) && isa<NoneType>(type))
    return NoValueOp::create(builder, loc, type, builder.getUnitAttr());
  auto typed = dyn_cast<TypedAttr>(value);
  if (!typed || typed.getType() != type)
    return nullptr;
  OperationState state(loc, ConstantOp::getOperationName());
  state.addTypes(type);
  state.addAttribute(elementsName(value), value);
  return builder.create(state);
}

// Defined in Rust (src/verify/ffi.rs): calls shape inference of the crate divi-onnx.
extern "C" bool diviOnnxVerifyByInference(MlirOperation op);

LogicalResult divi::onnx::verifyByInference(Operation *op) { return success(diviOnnxVerifyByInference(wrap(op))); }

//===----------------------------------------------------------------------===//
// onnx.Constant
//===----------------------------------------------------------------------===//

// Textual forms; onnx-mlir prints the first two:
//   onnx.Constant dense<[5, 5]> : tensor<2xi64>
//   onnx.Constant {value_int = 1 : si64} : tensor<i64>
//   onnx.Constant dense<[5, 5]> : tensor<2xi64> {onnx_node_name = "shape"}

void ConstantOp::print(OpAsmPrinter &printer) {
  auto value = dyn_cast_or_null<TypedAttr>(getValueAttr() ? getValueAttr() : getSparseValueAttr());
  // Elements without the name of their attribute are read back as the attribute of their kind.
  if (value && value.getType() == getType() && (*this)->getAttr(elementsName(value)) == value) {
    printer << ' ' << value;
    printer.printOptionalAttrDict((*this)->getAttrs(), elementsName(value));
    return;
  }
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getType();
}

ParseResult ConstantOp::parse(OpAsmParser &parser, OperationState &result) {
  if (parser.parseOptionalAttrDict(result.attributes))
    return failure();
  Attribute value;
  if (result.attributes.empty()) {
    OptionalParseResult parsed = parser.parseOptionalAttribute(value);
    if (parsed.has_value()) {
      auto typed = dyn_cast_or_null<TypedAttr>(value);
      if (failed(*parsed))
        return failure();
      if (!typed)
        return parser.emitError(parser.getNameLoc(), "'onnx.Constant' op needs a value with a tensor type");
      result.addTypes(typed.getType());
      if (parser.parseOptionalAttrDict(result.attributes))
        return failure();
      result.addAttribute(elementsName(value), value);
      return success();
    }
  }
  Type type;
  if (parser.parseColonType(type))
    return failure();
  result.addTypes(type);
  return success();
}

/// Returns the value as one elements attribute, whichever of ONNX's attributes holds it.
OpFoldResult ConstantOp::fold(FoldAdaptor) {
  auto shape = [&](size_t count, Type element) { return RankedTensorType::get({int64_t(count)}, element); };
  MLIRContext *context = getContext();
  if (Attribute value = getValueAttr())
    return value;
  if (Attribute value = getSparseValueAttr())
    return value;
  if (IntegerAttr value = getValueIntAttr())
    return DenseIntElementsAttr::get(RankedTensorType::get({}, IntegerType::get(context, 64)), value.getSInt());
  if (FloatAttr value = getValueFloatAttr())
    return DenseFPElementsAttr::get(RankedTensorType::get({}, value.getType()), value.getValue());
  if (ArrayAttr values = getValueIntsAttr()) {
    auto range = llvm::map_range(values.getAsRange<IntegerAttr>(), [](IntegerAttr v) { return v.getInt(); });
    return DenseIntElementsAttr::get(shape(values.size(), IntegerType::get(context, 64)), llvm::to_vector(range));
  }
  if (ArrayAttr values = getValueFloatsAttr()) {
    auto range = llvm::map_range(values.getAsRange<FloatAttr>(), [](FloatAttr v) { return v.getValue(); });
    return DenseFPElementsAttr::get(shape(values.size(), Float32Type::get(context)), llvm::to_vector(range));
  }
  if (StringAttr value = getValueStringAttr())
    return DenseStringElementsAttr::get(RankedTensorType::get({}, StringType::get(context)), {value.getValue()});
  // Exactly one of the attributes is set.
  auto range = llvm::map_range(getValueStringsAttr().getAsRange<StringAttr>(), [](StringAttr v) { return v.getValue(); });
  SmallVector<StringRef> strings = llvm::to_vector(range);
  return DenseStringElementsAttr::get(shape(strings.size(), StringType::get(context)), strings);
}

LogicalResult ConstantOp::verify() {
  Attribute values[] = {getValueAttr(),     getSparseValueAttr(), getValueIntAttr(),    getValueIntsAttr(),
                        getValueFloatAttr(), getValueFloatsAttr(), getValueStringAttr(), getValueStringsAttr()};
  if (llvm::count_if(values, [](Attribute value) { return bool(value); }) != 1)
    return emitOpError("needs exactly one of value, sparse_value, value_int, value_ints, value_float, value_floats, "
                       "value_string and value_strings");
  auto value = dyn_cast<TypedAttr>(cast<Attribute>(fold(FoldAdaptor({}, *this))));
  if (!value)
    return emitOpError("needs a value with a tensor type");
  if (failed(verifyCompatibleShape(value.getType(), getType())) ||
      getElementTypeOrSelf(value.getType()) != getElementTypeOrSelf(getType()))
    return emitOpError() << "has a value of type " << value.getType() << ", but its result is " << getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Other operations
//===----------------------------------------------------------------------===//

OpFoldResult NoValueOp::fold(FoldAdaptor) { return getValueAttr(); }

LogicalResult ReturnOp::verify() {
  auto function = cast<func::FuncOp>((*this)->getParentOp());
  TypeRange declared = function.getResultTypes();
  if (declared.size() != getNumOperands())
    return emitOpError() << "returns " << getNumOperands() << " values, but function @" << function.getName()
                         << " declares " << declared.size();
  for (auto [index, type, operand] : llvm::enumerate(declared, getOperandTypes()))
    if (failed(verifyCompatibleShape(type, operand)) || getElementTypeOrSelf(type) != getElementTypeOrSelf(operand))
      return emitOpError() << "returns a " << operand << " as result " << index << ", but function @"
                           << function.getName() << " declares " << type;
  return success();
}

/// Rejects functions as parents. Valid parents (If, Loop, Scan, SequenceMap) may be unregistered, so ParentOneOf cannot
/// list them.
LogicalResult YieldOp::verify() {
  if (isa_and_present<func::FuncOp>((*this)->getParentOp()))
    return emitOpError("ends a subgraph, not a function: end the function with 'onnx.Return' or 'func.return'");
  return success();
}

LogicalResult EntryPointOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getFuncAttr()))
    return success();
  return emitOpError() << "names " << getFuncAttr() << ", which is not a function of this module";
}
