#include "ScalarToOnnx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace divi;

Type divi::storageType(Type scalar) {
  return isa<IndexType>(scalar) ? IntegerType::get(scalar.getContext(), 64) : scalar;
}

bool divi::isNumber(Type element) {
  return element.isF16() || element.isBF16() || element.isF32() || element.isF64() || element.isInteger(1) ||
         element.isInteger(8) || element.isInteger(16) || element.isInteger(32) || element.isInteger(64);
}

namespace {

struct Scalars {
  OnnxBuilder &onnx;
  ValueRange x;

  Type element() const { return OnnxBuilder::elementOf(x.front()); }
  bool isBool() const { return element().isInteger(1); }
  Type boolean() const { return onnx.types().getI1Type(); }

  Value add(Value a, Value b) { return onnx.elementwise("Add", {a, b}); }
  Value subtract(Value a, Value b) { return onnx.elementwise("Sub", {a, b}); }
  Value multiply(Value a, Value b) { return onnx.elementwise("Mul", {a, b}); }
  Value divide(Value a, Value b) { return onnx.elementwise("Div", {a, b}); }
  Value where(Value condition, Value a, Value b) { return onnx.elementwise("Where", {condition, a, b}); }
  Value compare(StringRef op, Value a, Value b) { return onnx.elementwise(op, {a, b}, boolean()); }
  Value isNan(Value a) { return onnx.elementwise("IsNaN", a, boolean()); }
  Value invert(Value a) { return onnx.unary("Not", a); }
  Value number(double value) { return onnx.number(value, element()); }

  /// Converts between integers of the same width, signless or unsigned; the bits do not change.
  Value withSign(Value a, bool isSigned) {
    unsigned width = OnnxBuilder::elementOf(a).getIntOrFloatBitWidth();
    auto sign = isSigned ? IntegerType::Signless : IntegerType::Unsigned;
    return onnx.cast(a, IntegerType::get(a.getContext(), width, sign));
  }

  /// Converts an integer without sign to `to`.
  Value fromUnsigned(Type to) {
    if (isBool())
      return onnx.cast(x[0], to);
    return onnx.cast(withSign(x[0], /*isSigned=*/false), to);
  }

  /// Converts an integer with sign to `to`: the only bit of i1 is its sign.
  Value fromSigned(Type to) {
    Value converted = onnx.cast(x[0], to);
    return isBool() ? onnx.unary("Neg", converted) : converted;
  }

  /// Computes with unsigned integers.
  Value asUnsigned(StringRef op) {
    Value a = withSign(x[0], /*isSigned=*/false), b = withSign(x[1], /*isSigned=*/false);
    return withSign(onnx.elementwise(op, {a, b}), /*isSigned=*/true);
  }

  /// Returns the larger or smaller number; the other one where one is NaN.
  Value ignoringNan(StringRef op) {
    Value a = x[0], b = x[1];
    return where(isNan(a), b, where(isNan(b), a, onnx.elementwise(op, {a, b})));
  }

  Value compareFloats(arith::CmpFPredicate predicate) {
    using P = arith::CmpFPredicate;
    Value a = x[0], b = x[1];
    auto unordered = [&] { return compare("Or", isNan(a), isNan(b)); };
    switch (predicate) {
    case P::OEQ:
      return compare("Equal", a, b);
    case P::OGT:
      return compare("Greater", a, b);
    case P::OGE:
      return compare("GreaterOrEqual", a, b);
    case P::OLT:
      return compare("Less", a, b);
    case P::OLE:
      return compare("LessOrEqual", a, b);
    case P::ONE:
      return compare("Or", compare("Less", a, b), compare("Greater", a, b));
    case P::ORD:
      return invert(unordered());
    case P::UEQ:
      return compare("Or", compare("Equal", a, b), unordered());
    case P::UGT:
      return invert(compare("LessOrEqual", a, b));
    case P::UGE:
      return invert(compare("Less", a, b));
    case P::ULT:
      return invert(compare("GreaterOrEqual", a, b));
    case P::ULE:
      return invert(compare("Greater", a, b));
    case P::UNE:
      return invert(compare("Equal", a, b));
    case P::UNO:
      return unordered();
    default:
      return {};
    }
  }

  Value compareIntegers(arith::CmpIPredicate predicate) {
    using P = arith::CmpIPredicate;
    Value a = x[0], b = x[1];
    if (predicate == P::eq || predicate == P::ne) {
      Value equal = compare("Equal", a, b);
      return predicate == P::eq ? equal : invert(equal);
    }
    bool isUnsigned = llvm::is_contained({P::ult, P::ule, P::ugt, P::uge}, predicate);
    if (isBool())
      return {};
    if (isUnsigned)
      a = withSign(a, /*isSigned=*/false), b = withSign(b, /*isSigned=*/false);
    switch (predicate) {
    case P::slt:
    case P::ult:
      return compare("Less", a, b);
    case P::sle:
    case P::ule:
      return compare("LessOrEqual", a, b);
    case P::sgt:
    case P::ugt:
      return compare("Greater", a, b);
    default:
      return compare("GreaterOrEqual", a, b);
    }
  }

  /// Returns the nearest integer toward zero.
  Value truncate(Value a) { return multiply(onnx.unary("Sign", a), onnx.unary("Floor", onnx.unary("Abs", a))); }

  /// Returns the nearest integer, half away from zero. The largest number below 0.5 is not rounded up.
  Value round() {
    Value whole = truncate(x[0]);
    Value fraction = onnx.unary("Abs", subtract(x[0], whole));
    Value away = where(compare("GreaterOrEqual", fraction, number(0.5)), onnx.unary("Sign", x[0]), number(0.0));
    return add(whole, away);
  }

  /// Returns log(1 + x), accurate near zero: the error of u = 1 + x is cancelled by x / (u - 1).
  Value log1p() {
    Value u = add(x[0], number(1.0)), less = subtract(u, number(1.0));
    Value scaled = divide(multiply(onnx.unary("Log", u), x[0]), less);
    Value large = where(compare("Equal", u, number(HUGE_VAL)), u, scaled);
    return where(compare("Equal", u, number(1.0)), x[0], large);
  }

  /// Returns exp(x) - 1, accurate near zero: the error of u = exp(x) is cancelled by x / log(u).
  Value expm1() {
    Value u = onnx.unary("Exp", x[0]), less = subtract(u, number(1.0));
    Value scaled = divide(multiply(less, x[0]), onnx.unary("Log", u));
    Value bounded = where(compare("Or", compare("Equal", less, number(-1.0)), onnx.elementwise("IsInf", u, boolean())),
                          less, scaled);
    return where(compare("Equal", u, number(1.0)), x[0], bounded);
  }

  Value cbrt() {
    Value root = onnx.elementwise("Pow", {onnx.unary("Abs", x[0]), number(1.0 / 3.0)}, element());
    return multiply(onnx.unary("Sign", x[0]), root);
  }

  Value convert(Operation *op, Type to);
  Value convertBooleans(StringRef op);
};

/// Arithmetic of i1, a field with two elements.
Value Scalars::convertBooleans(StringRef op) {
  StringRef name = llvm::StringSwitch<StringRef>(op)
                       .Cases({"arith.addi", "arith.subi", "arith.xori"}, "Xor")
                       .Cases({"arith.muli", "arith.andi", "arith.minui"}, "And")
                       .Cases({"arith.ori", "arith.maxui"}, "Or")
                       .Default("");
  return name.empty() ? Value() : onnx.elementwise(name, x);
}

Value Scalars::convert(Operation *op, Type to) {
  StringRef name = op->getName().getStringRef();
  if (isBool() && name.starts_with("arith.") && op->getNumOperands() == 2 && !isa<arith::CmpIOp>(op))
    return convertBooleans(name);
  StringRef same = llvm::StringSwitch<StringRef>(name)
                       .Cases({"arith.addf", "arith.addi"}, "Add")
                       .Cases({"arith.subf", "arith.subi"}, "Sub")
                       .Cases({"arith.mulf", "arith.muli"}, "Mul")
                       .Cases({"arith.divf", "arith.divsi"}, "Div")
                       .Cases({"arith.maximumf", "arith.maxsi"}, "Max")
                       .Cases({"arith.minimumf", "arith.minsi"}, "Min")
                       .Case("arith.negf", "Neg")
                       .Case("arith.andi", "BitwiseAnd")
                       .Case("arith.ori", "BitwiseOr")
                       .Case("arith.xori", "BitwiseXor")
                       .Case("math.absf", "Abs")
                       .Case("math.absi", "Abs")
                       .Case("math.acos", "Acos")
                       .Case("math.acosh", "Acosh")
                       .Case("math.asin", "Asin")
                       .Case("math.asinh", "Asinh")
                       .Case("math.atan", "Atan")
                       .Case("math.atanh", "Atanh")
                       .Case("math.ceil", "Ceil")
                       .Case("math.cos", "Cos")
                       .Case("math.cosh", "Cosh")
                       .Case("math.erf", "Erf")
                       .Case("math.exp", "Exp")
                       .Case("math.floor", "Floor")
                       .Case("math.log", "Log")
                       .Case("math.powf", "Pow")
                       .Case("math.roundeven", "Round")
                       .Case("math.sin", "Sin")
                       .Case("math.sinh", "Sinh")
                       .Case("math.sqrt", "Sqrt")
                       .Case("math.tan", "Tan")
                       .Case("math.tanh", "Tanh")
                       .Default("");
  if (!same.empty())
    return onnx.elementwise(same, x);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<arith::CmpFOp>([&](auto cmp) { return compareFloats(cmp.getPredicate()); })
      .Case<arith::CmpIOp>([&](auto cmp) { return compareIntegers(cmp.getPredicate()); })
      .Case<arith::SelectOp>([&](auto) { return where(x[0], x[1], x[2]); })
      .Case<arith::MaxNumFOp>([&](auto) { return ignoringNan("Max"); })
      .Case<arith::MinNumFOp>([&](auto) { return ignoringNan("Min"); })
      .Case<arith::MaxUIOp>([&](auto) { return asUnsigned("Max"); })
      .Case<arith::MinUIOp>([&](auto) { return asUnsigned("Min"); })
      .Case<arith::DivUIOp>([&](auto) { return asUnsigned("Div"); })
      .Case<arith::RemFOp, arith::RemSIOp>(
          [&](auto) { return onnx.create("Mod", OnnxBuilder::typeOf(add(x[0], x[1])), x, onnx.attribute("fmod", 1)); })
      // Conversions toward zero, and to the nearest number.
      .Case<arith::ExtFOp, arith::TruncFOp, arith::FPToSIOp>([&](auto) { return onnx.cast(x[0], to); })
      .Case<arith::FPToUIOp>([&](auto) {
        unsigned width = to.getIntOrFloatBitWidth();
        return withSign(onnx.cast(x[0], IntegerType::get(to.getContext(), width, IntegerType::Unsigned)), true);
      })
      .Case<arith::SIToFPOp, arith::ExtSIOp, arith::IndexCastOp>([&](auto) { return fromSigned(to); })
      .Case<arith::UIToFPOp, arith::ExtUIOp, arith::IndexCastUIOp>([&](auto) { return fromUnsigned(to); })
      .Case<arith::TruncIOp>([&](auto) -> Value {
        // The low bit, while a cast to i1 compares with zero.
        if (to.isInteger(1))
          return onnx.cast(onnx.elementwise("BitwiseAnd", {x[0], number(1)}), to);
        return onnx.cast(x[0], to);
      })
      .Case<math::FmaOp>([&](auto) { return add(multiply(x[0], x[1]), x[2]); })
      .Case<math::RsqrtOp>([&](auto) { return onnx.unary("Reciprocal", onnx.unary("Sqrt", x[0])); })
      .Case<math::Exp2Op>([&](auto) { return onnx.elementwise("Pow", {number(2.0), x[0]}); })
      .Case<math::ExpM1Op>([&](auto) { return expm1(); })
      .Case<math::Log1pOp>([&](auto) { return log1p(); })
      .Case<math::Log2Op>([&](auto) { return divide(onnx.unary("Log", x[0]), number(std::log(2.0))); })
      .Case<math::Log10Op>([&](auto) { return divide(onnx.unary("Log", x[0]), number(std::log(10.0))); })
      .Case<math::CbrtOp>([&](auto) { return cbrt(); })
      .Case<math::FPowIOp>([&](auto) { return onnx.elementwise("Pow", {x[0], onnx.cast(x[1], element())}); })
      .Case<math::TruncOp>([&](auto) { return truncate(x[0]); })
      .Case<math::RoundOp>([&](auto) { return round(); })
      .Case<math::ClampFOp>([&](auto) { return onnx.elementwise("Min", {onnx.elementwise("Max", {x[0], x[1]}), x[2]}); })
      .Case<math::IsNaNOp>([&](auto) { return isNan(x[0]); })
      .Case<math::IsInfOp>([&](auto) { return onnx.elementwise("IsInf", x[0], boolean()); })
      .Case<math::IsFiniteOp>(
          [&](auto) { return invert(compare("Or", isNan(x[0]), onnx.elementwise("IsInf", x[0], boolean()))); })
      .Default([](Operation *) { return Value(); });
}

} // namespace

Value divi::constantScalar(OnnxBuilder &onnx, Value scalar) {
  TypedAttr known;
  if (!matchPattern(scalar, m_Constant(&known)))
    return {};
  if (auto index = dyn_cast<IntegerAttr>(known); index && isa<IndexType>(index.getType()))
    known = onnx.types().getI64IntegerAttr(index.getInt());
  return onnx.scalar(known);
}

Value divi::scalarToOnnx(OnnxBuilder &onnx, Operation *op, ValueRange operands, std::string &reason) {
  Value result;
  if (op->getNumResults() == 1 && !operands.empty())
    if (Type to = storageType(getElementTypeOrSelf(op->getResult(0).getType())); isNumber(to))
      result = Scalars{onnx, operands}.convert(op, to);
  if (!result)
    reason = ("'" + op->getName().getStringRef() + "' of " +
              (operands.empty() ? "no operands" : llvm::formatv("{0}", OnnxBuilder::elementOf(operands.front())).str()) +
              " has no counterpart in onnx")
                 .str();
  return result;
}
