#include "OnnxBuilder.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;
using namespace divi;

OnnxBuilder::OnnxBuilder(Operation *replaced, StringRef name)
    : builder(replaced), location(replaced->getLoc()), name(name.str()) {
  for (NamedAttribute attribute : replaced->getDiscardableAttrs())
    if (attribute.getName().strref().starts_with("divi."))
      inherited.push_back(attribute);
}

Value OnnxBuilder::create(StringRef op, RankedTensorType type, ValueRange operands,
                          ArrayRef<NamedAttribute> attributes) {
  OperationState state(location, ("onnx." + op).str());
  state.addOperands(operands);
  state.addTypes(type);
  state.addAttributes(attributes);
  state.addAttributes(inherited);
  state.addAttribute("onnx_node_name", builder.getStringAttr(name + "/" + op));
  return builder.create(state)->getResult(0);
}

Value OnnxBuilder::elementwise(StringRef op, ValueRange operands, Type element) {
  size_t rank = 0;
  for (Value operand : operands)
    rank = std::max(rank, shapeOf(operand).size());
  SmallVector<int64_t> shape(rank, 1);
  for (Value operand : operands) {
    ArrayRef<int64_t> own = shapeOf(operand);
    for (auto [size, ownSize] : llvm::zip_equal(MutableArrayRef(shape).take_back(own.size()), own))
      size = size == 1 ? ownSize : size;
  }
  return create(op, RankedTensorType::get(shape, element ? element : elementOf(operands.back())), operands);
}

Value OnnxBuilder::cast(Value x, Type element) {
  if (elementOf(x) == element)
    return x;
  return create("Cast", RankedTensorType::get(shapeOf(x), element), x,
                builder.getNamedAttr("to", TypeAttr::get(element)));
}

Value OnnxBuilder::transpose(Value x, ArrayRef<int64_t> order) {
  if (llvm::equal(order, llvm::seq<int64_t>(0, order.size())))
    return x;
  ArrayRef<int64_t> shape = shapeOf(x);
  auto permuted = llvm::map_to_vector(order, [&](int64_t axis) { return shape[axis]; });
  return create("Transpose", RankedTensorType::get(permuted, elementOf(x)), x, attribute("perm", order));
}

Value OnnxBuilder::reshape(Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  // In the list of sizes, 0 means an unchanged one unless `allowzero` is set.
  return create("Reshape", RankedTensorType::get(shape, elementOf(x)), {x, list(shape)}, attribute("allowzero", 1));
}

Value OnnxBuilder::expand(Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  if (auto elements = splatOf(x))
    return constant(elements.resizeSplat(RankedTensorType::get(shape, elementOf(x))));
  return create("Expand", RankedTensorType::get(shape, elementOf(x)), {x, list(shape)});
}

Value OnnxBuilder::slice(Value x, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  if (shapeOf(x) == sizes)
    return x;
  SmallVector<int64_t> ends;
  for (auto [offset, size, stride] : llvm::zip_equal(offsets, sizes, strides))
    ends.push_back(size == 0 ? offset : offset + (size - 1) * stride + 1);
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, sizes.size()));
  return create("Slice", RankedTensorType::get(sizes, elementOf(x)),
                {x, list(offsets), list(ends), list(axes), list(strides)});
}

Value OnnxBuilder::concat(ValueRange parts, int64_t axis) {
  SmallVector<Value> present;
  llvm::copy_if(parts, std::back_inserter(present), [&](Value part) { return part && shapeOf(part)[axis] != 0; });
  if (present.size() == 1)
    return present.front();
  auto shape = llvm::to_vector(shapeOf(present.front()));
  shape[axis] = 0;
  for (Value part : present)
    shape[axis] += shapeOf(part)[axis];
  return create("Concat", RankedTensorType::get(shape, elementOf(present.front())), present, attribute("axis", axis));
}

Value OnnxBuilder::reduce(StringRef op, Value x, ArrayRef<int64_t> axes) {
  auto shape = llvm::to_vector(shapeOf(x));
  for (int64_t axis : axes)
    shape[axis] = 1;
  return create(op, RankedTensorType::get(shape, elementOf(x)), {x, list(axes)}, attribute("keepdims", 1));
}

Value OnnxBuilder::constant(ElementsAttr elements) {
  OperationState state(location, "onnx.Constant");
  state.addTypes(elements.getType());
  state.addAttribute("value", elements);
  return builder.create(state)->getResult(0);
}

Value OnnxBuilder::scalar(TypedAttr scalar) {
  return constant(DenseElementsAttr::get(RankedTensorType::get({}, scalar.getType()), Attribute(scalar)));
}

Value OnnxBuilder::number(double value, Type element) {
  if (isa<FloatType>(element))
    return scalar(builder.getFloatAttr(element, value));
  return scalar(builder.getIntegerAttr(element, int64_t(value)));
}

Value OnnxBuilder::list(ArrayRef<int64_t> numbers) { return constant(builder.getI64TensorAttr(numbers)); }

Value OnnxBuilder::none() {
  OperationState state(location, "onnx.NoValue");
  state.addTypes(builder.getNoneType());
  state.addAttribute("value", builder.getUnitAttr());
  return builder.create(state)->getResult(0);
}

SplatElementsAttr OnnxBuilder::splatOf(Value x) {
  Operation *definer = x.getDefiningOp();
  return definer ? definer->getAttrOfType<SplatElementsAttr>("value") : SplatElementsAttr();
}

NamedAttribute OnnxBuilder::attribute(StringRef name, int64_t value) {
  return builder.getNamedAttr(name, IntegerAttr::get(builder.getIntegerType(64, /*isSigned=*/true), value));
}

NamedAttribute OnnxBuilder::attribute(StringRef name, ArrayRef<int64_t> values) {
  return builder.getNamedAttr(name, builder.getI64ArrayAttr(values));
}
