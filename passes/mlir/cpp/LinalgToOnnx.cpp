// A structured operation of linalg is a loop nest over its operands. Its loops and its body determine what it computes,
// whatever its name: a product or convolution, a pool, another reduction, or an element-wise function. Operands are brought
// into the loops' order by transposes, the results back into that of the output.

#include "LinalgToOnnx.h"

#include "ScalarToOnnx.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace divi;

namespace {

/// Function that combines an element with the accumulator of a reduction.
struct Combiner {
  StringRef reduction, elementwise, pool;
  /// Value that changes nothing.
  double neutral;
};

/// Returns the combiner of an operation in the body of a reduction.
std::optional<Combiner> combinerOf(Operation *op) {
  constexpr double infinity = HUGE_VAL;
  return llvm::TypeSwitch<Operation *, std::optional<Combiner>>(op)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return Combiner{"ReduceSum", "Add", "AveragePool", 0.0}; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return Combiner{"ReduceProd", "Mul", "", 1.0}; })
      .Case<arith::MaximumFOp, arith::MaxSIOp, arith::MaxNumFOp>(
          [=](auto) { return Combiner{"ReduceMax", "Max", "MaxPoolSingleOut", -infinity}; })
      .Case<arith::MinimumFOp, arith::MinSIOp, arith::MinNumFOp>(
          [=](auto) { return Combiner{"ReduceMin", "Min", "MaxPoolSingleOut", infinity}; })
      .Default([](Operation *) { return std::nullopt; });
}

/// Two loops that index one dimension of an operand: `stride * output + dilation * tap`.
struct Window {
  unsigned output;
  /// Absent if the window has one element.
  std::optional<unsigned> tap;
  int64_t stride, dilation;
};

/// Returns the loop and factor of `loop` or `loop * factor`.
std::optional<std::pair<unsigned, int64_t>> scaledLoop(AffineExpr expression) {
  if (auto loop = dyn_cast<AffineDimExpr>(expression))
    return std::pair(loop.getPosition(), int64_t(1));
  auto product = dyn_cast<AffineBinaryOpExpr>(expression);
  if (!product || product.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  auto loop = dyn_cast<AffineDimExpr>(product.getLHS());
  auto factor = dyn_cast<AffineConstantExpr>(product.getRHS());
  if (!loop || !factor || factor.getValue() <= 0)
    return std::nullopt;
  return std::pair(loop.getPosition(), factor.getValue());
}

class LinalgConverter {
public:
  LinalgConverter(OnnxBuilder &onnx, linalg::LinalgOp op, std::string &reason)
      : onnx(onnx), op(op), reason(reason), ranges(op.getStaticLoopRanges()), isReduction(ranges.size()) {
    auto iterators = op.getIteratorTypesArray();
    for (auto [loop, iterator] : llvm::enumerate(iterators))
      isReduction[loop] = iterator == utils::IteratorType::reduction;
  }

  SmallVector<Value> convert();

private:
  Value fail(const Twine &why) {
    if (reason.empty())
      reason = why.str();
    return {};
  }

  AffineMap mapOf(OpOperand *operand) { return op.getMatchingIndexingMap(operand); }
  OpOperand *operandOf(Value value);
  int64_t rangeOf(unsigned loop) const { return ranges[loop]; }
  SmallVector<int64_t> rangesOf(ArrayRef<unsigned> loops) const {
    return llvm::map_to_vector(loops, [&](unsigned loop) { return ranges[loop]; });
  }
  int64_t tapsOf(const Window &window) const { return window.tap ? ranges[*window.tap] : 1; }
  static int64_t product(ArrayRef<int64_t> sizes) {
    int64_t all = 1;
    for (int64_t size : sizes)
      all *= size;
    return all;
  }

  Value inLoops(OpOperand *operand);
  Value evaluate(Value value);
  Value convertedCasts(Value value, Value data);
  Value toOutput(Value value, ArrayRef<unsigned> loops, OpOperand *init);
  Value combinedWithInit(Value value, OpOperand *init, const Combiner &combiner);
  bool isNeutral(Value init, const Combiner &combiner);

  Value reduction(Value yielded, OpOperand *init);
  Value elements(Value yielded, OpOperand *init);
  std::optional<Value> productOrConvolution(Value factors, OpOperand *init);
  std::optional<Value> pool(Value element, OpOperand *init, const Combiner &combiner);
  Value reduced(Value element, OpOperand *init, const Combiner &combiner, bool skipsNan);
  std::optional<SmallVector<Window>> windowsOf(AffineMap map);
  Value windowed(Value data, AffineMap map, ArrayRef<unsigned> leading, ArrayRef<int64_t> leadingShape,
                 ArrayRef<Window> windows);
  SmallVector<NamedAttribute> windowAttributes(ArrayRef<Window> windows);

  OnnxBuilder &onnx;
  linalg::LinalgOp op;
  std::string &reason;
  SmallVector<int64_t> ranges;
  llvm::SmallBitVector isReduction;
  /// Tensors over all loops, of size 1 along loops that they do not depend on, for scalars of the body.
  DenseMap<Value, Value> tensors;
};

/// Returns the operand of a block argument, through conversions between types.
OpOperand *LinalgConverter::operandOf(Value value) {
  while (Operation *definer = value.getDefiningOp()) {
    if (!isa<CastOpInterface>(definer) || definer->getNumOperands() != 1)
      return nullptr;
    value = definer->getOperand(0);
  }
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != op.getBlock() || argument.getArgNumber() >= op->getNumOperands())
    return nullptr;
  return op.getMatchingOpOperand(argument);
}

/// Applies the conversions between a block argument and `value` to the whole operand.
Value LinalgConverter::convertedCasts(Value value, Value data) {
  Operation *definer = value.getDefiningOp();
  if (!definer)
    return data;
  Value inner = convertedCasts(definer->getOperand(0), data);
  return inner ? scalarToOnnx(onnx, definer, inner, reason) : inner;
}

/// Returns an operand as a tensor over all loops.
Value LinalgConverter::inLoops(OpOperand *operand) {
  Value value = operand->get();
  if (!isa<RankedTensorType>(value.getType())) {
    Value scalar = constantScalar(onnx, value);
    return scalar ? scalar : fail("a scalar operand is not a constant");
  }
  SmallVector<std::pair<unsigned, int64_t>> axes;
  SmallVector<int64_t> shape;
  for (auto [axis, expression] : llvm::enumerate(mapOf(operand).getResults())) {
    int64_t size = OnnxBuilder::shapeOf(value)[axis];
    if (auto loop = dyn_cast<AffineDimExpr>(expression)) {
      axes.emplace_back(loop.getPosition(), shape.size());
      shape.push_back(size);
    } else if (!isa<AffineConstantExpr>(expression) || size != 1) {
      return fail("an operand is not indexed by loops");
    }
  }
  value = onnx.reshape(value, shape);
  llvm::sort(axes);
  SmallVector<int64_t> order, full(ranges.size(), 1);
  for (auto [index, axis] : llvm::enumerate(axes)) {
    if (index > 0 && axes[index - 1].first == axis.first)
      return fail("one loop indexes two dimensions of an operand");
    order.push_back(axis.second);
    full[axis.first] = shape[axis.second];
  }
  return onnx.reshape(onnx.transpose(value, order), full);
}

/// Returns a scalar of the body as a tensor over all loops.
Value LinalgConverter::evaluate(Value value) {
  if (Value known = tensors.lookup(value))
    return known;
  Value result;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    OpOperand *operand = argument.getOwner() == op.getBlock() ? operandOf(argument) : nullptr;
    if (!operand)
      return fail("the body reads a scalar argument of the function");
    if (op.isDpsInit(operand) && isReduction.any())
      return fail("the body uses its accumulator in another way than a sum, product, minimum or maximum");
    if (op.isDpsInit(operand) && operand->get().getDefiningOp<tensor::EmptyOp>())
      return fail("the body reads a tensor.empty");
    result = inLoops(operand);
  } else if (Value scalar = constantScalar(onnx, value)) {
    result = scalar;
  } else if (auto index = value.getDefiningOp<linalg::IndexOp>()) {
    SmallVector<int64_t> numbers(rangeOf(index.getDim())), shape(ranges.size(), 1);
    std::iota(numbers.begin(), numbers.end(), 0);
    shape[index.getDim()] = numbers.size();
    result = onnx.constant(DenseElementsAttr::get(
        RankedTensorType::get(shape, onnx.types().getI64Type()), ArrayRef<int64_t>(numbers)));
  } else {
    Operation *definer = value.getDefiningOp();
    if (definer->getBlock() != op.getBlock())
      return fail("the body reads a scalar that is not a constant");
    SmallVector<Value> operands;
    for (Value operand : definer->getOperands()) {
      operands.push_back(evaluate(operand));
      if (!operands.back())
        return {};
    }
    result = scalarToOnnx(onnx, definer, operands, reason);
  }
  return tensors[value] = result;
}

/// Brings a tensor over `loops` into the dimensions of the output.
Value LinalgConverter::toOutput(Value value, ArrayRef<unsigned> loops, OpOperand *init) {
  AffineMap map = mapOf(init);
  SmallVector<int64_t> order;
  for (AffineExpr expression : map.getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(expression);
    const unsigned *found = loop ? llvm::find(loops, loop.getPosition()) : loops.end();
    if (found == loops.end())
      return fail("the output is not indexed by loops");
    order.push_back(found - loops.begin());
  }
  if (order.size() != loops.size())
    return fail("the output does not have all parallel loops");
  return onnx.transpose(value, order);
}

/// Returns true if a tensor has the combiner's neutral value everywhere, or no defined values.
bool LinalgConverter::isNeutral(Value init, const Combiner &combiner) {
  if (init.getDefiningOp<tensor::EmptyOp>())
    return true;
  SplatElementsAttr elements = OnnxBuilder::splatOf(init);
  if (!elements)
    return false;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().convertToDouble() == combiner.neutral;
  APInt value = elements.getSplatValue<APInt>();
  if (std::isinf(combiner.neutral))
    return combiner.neutral < 0 ? value.isMinSignedValue() : value.isMaxSignedValue();
  return value.getSExtValue() == int64_t(combiner.neutral);
}

Value LinalgConverter::combinedWithInit(Value value, OpOperand *init, const Combiner &combiner) {
  if (!value || isNeutral(init->get(), combiner))
    return value;
  return onnx.elementwise(combiner.elementwise, {init->get(), value});
}

/// Returns the windows of an operand whose other dimensions are indexed by one loop each; nothing if some are not.
std::optional<SmallVector<Window>> LinalgConverter::windowsOf(AffineMap map) {
  SmallVector<Window> windows;
  llvm::SmallBitVector seen(ranges.size());
  auto take = [&](unsigned loop) { return !seen.test(loop) && (seen.set(loop), true); };
  for (AffineExpr expression : map.getResults()) {
    if (auto loop = dyn_cast<AffineDimExpr>(expression)) {
      if (!take(loop.getPosition()))
        return std::nullopt;
      continue;
    }
    auto sum = dyn_cast<AffineBinaryOpExpr>(expression);
    if (!sum)
      return std::nullopt;
    if (auto only = scaledLoop(expression)) {
      if (isReduction[only->first] || !take(only->first))
        return std::nullopt;
      windows.push_back({only->first, std::nullopt, only->second, 1});
      continue;
    }
    if (sum.getKind() != AffineExprKind::Add)
      return std::nullopt;
    auto first = scaledLoop(sum.getLHS()), second = scaledLoop(sum.getRHS());
    if (first && second && isReduction[first->first])
      std::swap(first, second);
    if (!first || !second || isReduction[first->first] || !isReduction[second->first] || !take(first->first) ||
        !take(second->first))
      return std::nullopt;
    windows.push_back({first->first, second->first, first->second, second->second});
  }
  return windows;
}

/// Returns data with the loops `leading` first, as dimensions of `leadingShape`, and then the dimensions of windows.
Value LinalgConverter::windowed(Value data, AffineMap map, ArrayRef<unsigned> leading, ArrayRef<int64_t> leadingShape,
                                ArrayRef<Window> windows) {
  SmallVector<int64_t> order, sizes, shape(leadingShape);
  auto axisOf = [&](auto matches) {
    return llvm::find_if(map.getResults(), matches) - map.getResults().begin();
  };
  for (unsigned loop : leading)
    order.push_back(axisOf([&](AffineExpr result) {
      auto dim = dyn_cast<AffineDimExpr>(result);
      return dim && dim.getPosition() == loop;
    }));
  // Data beyond the last window are cut off.
  sizes = llvm::to_vector(OnnxBuilder::shapeOf(data));
  for (const Window &window : windows) {
    int64_t axis = axisOf([&](AffineExpr result) { return !isa<AffineDimExpr>(result) && result.isFunctionOfDim(window.output); });
    sizes[axis] = (rangeOf(window.output) - 1) * window.stride + (tapsOf(window) - 1) * window.dilation + 1;
    order.push_back(axis);
    shape.push_back(sizes[axis]);
  }
  data = onnx.slice(data, SmallVector<int64_t>(sizes.size(), 0), sizes, SmallVector<int64_t>(sizes.size(), 1));
  return onnx.reshape(onnx.transpose(data, order), shape);
}

SmallVector<NamedAttribute> LinalgConverter::windowAttributes(ArrayRef<Window> windows) {
  SmallVector<int64_t> taps, strides, dilations, pads(2 * windows.size(), 0);
  for (const Window &window : windows) {
    taps.push_back(tapsOf(window));
    strides.push_back(window.stride);
    dilations.push_back(window.dilation);
  }
  return {onnx.attribute("kernel_shape", taps), onnx.attribute("strides", strides),
          onnx.attribute("dilations", dilations), onnx.attribute("pads", pads)};
}

/// Converts a sum of products of two operands; nothing if it is none, or indexed in another way.
std::optional<Value> LinalgConverter::productOrConvolution(Value factors, OpOperand *init) {
  Operation *multiplication = factors.getDefiningOp();
  if (!isa_and_present<arith::MulFOp, arith::MulIOp>(multiplication))
    return std::nullopt;
  Value factor[] = {multiplication->getOperand(0), multiplication->getOperand(1)};
  OpOperand *operand[] = {operandOf(factor[0]), operandOf(factor[1])};
  auto isInput = [&](OpOperand *it) { return it && op.isDpsInput(it) && isa<RankedTensorType>(it->get().getType()); };
  if (!isInput(operand[0]) || !isInput(operand[1]) || operand[0] == operand[1])
    return std::nullopt;
  auto hasWindow = [&](OpOperand *it) { return !mapOf(it).isProjectedPermutation(); };
  if (hasWindow(operand[1])) {
    std::swap(factor[0], factor[1]);
    std::swap(operand[0], operand[1]);
  }
  if (hasWindow(operand[1]) || !mapOf(init).isProjectedPermutation())
    return std::nullopt;
  AffineMap dataMap = mapOf(operand[0]), weightMap = mapOf(operand[1]), outputMap = mapOf(init);
  std::optional<SmallVector<Window>> windows = windowsOf(dataMap);
  if (!windows)
    return std::nullopt;
  auto isTap = [&](unsigned loop) { return llvm::any_of(*windows, [&](const Window &it) { return it.tap == loop; }); };
  auto isPixel = [&](unsigned loop) {
    return llvm::any_of(*windows, [&](const Window &it) { return it.output == loop; });
  };
  // Loops by the operands that they index.
  SmallVector<unsigned> groups, rows, columns, depth, taps;
  for (unsigned loop = 0; loop < ranges.size(); ++loop) {
    bool data = dataMap.isFunctionOfDim(loop), weight = weightMap.isFunctionOfDim(loop),
         output = outputMap.isFunctionOfDim(loop);
    if (isPixel(loop) && !weight && output)
      continue;
    if (isTap(loop) && weight && !output)
      continue;
    if (isPixel(loop) || isTap(loop))
      return std::nullopt;
    if (data && weight && output)
      groups.push_back(loop);
    else if (data && output)
      rows.push_back(loop);
    else if (weight && output)
      columns.push_back(loop);
    else if (data && weight)
      depth.push_back(loop);
    else
      return std::nullopt;
  }
  for (const Window &window : *windows)
    if (window.tap)
      taps.push_back(*window.tap);
  Value data = convertedCasts(factor[0], operand[0]->get()), weights = convertedCasts(factor[1], operand[1]->get());
  if (!data || !weights)
    return Value();
  auto joined = [](std::initializer_list<ArrayRef<unsigned>> parts) {
    SmallVector<unsigned> all;
    for (ArrayRef<unsigned> part : parts)
      llvm::append_range(all, part);
    return all;
  };
  auto count = [&](ArrayRef<unsigned> loops) { return product(rangesOf(loops)); };
  auto axesOf = [&](AffineMap map, ArrayRef<unsigned> loops) {
    return llvm::map_to_vector(loops, [&](unsigned loop) {
      return int64_t(*map.getResultPosition(getAffineDimExpr(loop, map.getContext())));
    });
  };
  Type element = OnnxBuilder::elementOf(data);
  SmallVector<unsigned> order = joined({groups, rows, columns});
  Value result;
  if (windows->empty()) {
    SmallVector<int64_t> left = {count(rows), count(depth)}, right = {count(depth), count(columns)},
                         both = {count(rows), count(columns)};
    if (!groups.empty())
      for (SmallVector<int64_t> *shape : {&left, &right, &both})
        shape->insert(shape->begin(), count(groups));
    Value a = onnx.reshape(onnx.transpose(data, axesOf(dataMap, joined({groups, rows, depth}))), left);
    Value b = onnx.reshape(onnx.transpose(weights, axesOf(weightMap, joined({groups, depth, columns}))), right);
    result = onnx.create("MatMul", RankedTensorType::get(both, element), {a, b});
    result = onnx.reshape(result, rangesOf(order));
  } else {
    SmallVector<unsigned> pixels = llvm::map_to_vector(*windows, [](const Window &it) { return it.output; });
    order = joined({rows, groups, columns, pixels});
    data = windowed(data, dataMap, joined({rows, groups, depth}), {count(rows), count(groups) * count(depth)}, *windows);
    weights = onnx.transpose(weights, axesOf(weightMap, joined({groups, columns, depth, taps})));
    SmallVector<int64_t> kernel = {count(groups) * count(columns), count(depth)};
    for (const Window &window : *windows)
      kernel.push_back(tapsOf(window));
    weights = onnx.reshape(weights, kernel);
    SmallVector<int64_t> shape = {count(rows), kernel[0]};
    llvm::append_range(shape, rangesOf(pixels));
    SmallVector<NamedAttribute> attributes = windowAttributes(*windows);
    attributes.push_back(onnx.attribute("group", count(groups)));
    result = onnx.create("Conv", RankedTensorType::get(shape, element), {data, weights, onnx.none()}, attributes);
    result = onnx.reshape(result, rangesOf(order));
  }
  return toOutput(result, order, init);
}

/// Converts a pool; nothing if the operation is none.
std::optional<Value> LinalgConverter::pool(Value element, OpOperand *init, const Combiner &combiner) {
  OpOperand *operand = operandOf(element);
  if (!operand || !op.isDpsInput(operand) || combiner.pool.empty() || !mapOf(init).isProjectedPermutation())
    return std::nullopt;
  AffineMap map = mapOf(operand);
  std::optional<SmallVector<Window>> windows = windowsOf(map);
  if (!windows || windows->empty())
    return std::nullopt;
  Value data = convertedCasts(element, operand->get());
  if (!data || !isa<FloatType>(OnnxBuilder::elementOf(data)))
    return fail("there are no pools of integers");
  SmallVector<unsigned> order;
  for (unsigned loop = 0; loop < ranges.size(); ++loop) {
    bool isWindow =
        llvm::any_of(*windows, [&](const Window &it) { return it.output == loop || it.tap == loop; });
    if (!isWindow && isReduction[loop])
      return fail("a pool also reduces another dimension");
    if (!isWindow)
      order.push_back(loop);
  }
  SmallVector<int64_t> shape = {1, product(rangesOf(order))};
  data = windowed(data, map, order, shape, *windows);
  bool isMinimum = combiner.reduction == "ReduceMin";
  if (isMinimum)
    data = onnx.unary("Neg", data);
  int64_t taps = 1;
  for (const Window &window : *windows) {
    shape.push_back(rangeOf(window.output));
    order.push_back(window.output);
    taps *= tapsOf(window);
  }
  Type type = OnnxBuilder::elementOf(data);
  Value result =
      onnx.create(combiner.pool, RankedTensorType::get(shape, type), data, windowAttributes(*windows));
  if (isMinimum)
    result = onnx.unary("Neg", result);
  if (combiner.reduction == "ReduceSum" && taps != 1)
    result = onnx.elementwise("Mul", {onnx.number(double(taps), type), result});
  return toOutput(onnx.reshape(result, rangesOf(order)), order, init);
}

Value LinalgConverter::reduction(Value yielded, OpOperand *init) {
  Operation *combination = yielded.getDefiningOp();
  std::optional<Combiner> combiner = combination ? combinerOf(combination) : std::nullopt;
  if (!combiner)
    return fail("its body is not a sum, product, minimum or maximum");
  Value accumulator = op.getMatchingBlockArgument(init);
  Value element = combination->getOperand(0) == accumulator ? combination->getOperand(1) : combination->getOperand(0);
  if (!llvm::is_contained(combination->getOperands(), accumulator) || element == accumulator)
    return fail("its body does not combine an element with the accumulator");
  // The number that is not NaN.
  bool skipsNan = isa<arith::MaxNumFOp, arith::MinNumFOp>(combination);
  std::optional<Value> result;
  if (combiner->reduction == "ReduceSum")
    result = productOrConvolution(element, init);
  if (!result && !skipsNan)
    result = pool(element, init, *combiner);
  return combinedWithInit(result ? *result : reduced(element, init, *combiner, skipsNan), init, *combiner);
}

/// Converts a reduction of any element: computes it for all loops first.
Value LinalgConverter::reduced(Value element, OpOperand *init, const Combiner &combiner, bool skipsNan) {
  Value all = evaluate(element);
  if (!all)
    return {};
  Type type = OnnxBuilder::elementOf(all);
  if (type.isInteger(1))
    return fail("there are no reductions of i1");
  if (skipsNan)
    all = onnx.elementwise("Where", {onnx.elementwise("IsNaN", all, onnx.types().getI1Type()),
                                     onnx.number(combiner.neutral, type), all});
  SmallVector<unsigned> parallel;
  SmallVector<int64_t> axes;
  for (unsigned loop = 0; loop < ranges.size(); ++loop) {
    if (isReduction[loop])
      axes.push_back(loop);
    else
      parallel.push_back(loop);
  }
  all = onnx.expand(all, ranges);
  Value result = onnx.reshape(onnx.reduce(combiner.reduction, all, axes), rangesOf(parallel));
  return toOutput(result, parallel, init);
}

Value LinalgConverter::elements(Value yielded, OpOperand *init) {
  Value result = evaluate(yielded);
  if (!result)
    return {};
  auto loops = llvm::to_vector(llvm::seq<unsigned>(0, ranges.size()));
  return toOutput(onnx.expand(result, ranges), loops, init);
}

SmallVector<Value> LinalgConverter::convert() {
  auto isSupported = [](Type type) { return isStatic(type) || !isa<ShapedType>(type); };
  if (!llvm::all_of(op->getOperandTypes(), isSupported) || llvm::any_of(ranges, ShapedType::isDynamic)) {
    fail("its operands are not tensors of static shape, with numbers as elements");
    return {};
  }
  SmallVector<Value> results;
  for (auto [index, yielded] : llvm::enumerate(op.getBlock()->getTerminator()->getOperands())) {
    OpOperand *init = op.getDpsInitOperand(index);
    Value result = isReduction.any() ? reduction(yielded, init) : elements(yielded, init);
    if (!result)
      return {};
    results.push_back(result);
  }
  return results;
}

} // namespace

bool divi::isStatic(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && isNumber(tensor.getElementType());
}

SmallVector<Value> divi::linalgToOnnx(OnnxBuilder &onnx, linalg::LinalgOp op, std::string &reason) {
  return LinalgConverter(onnx, op, reason).convert();
}
