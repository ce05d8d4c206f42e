// Attributes of the `divi` dialect, and verifiers of the discardable `divi.*` attributes on operations of any dialect.

#include "Divi.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"
#include <charconv>

using namespace mlir;
using namespace divi;

#include "DiviDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "DiviAttributes.cpp.inc"

void DiviDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "DiviAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "DiviOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// #divi.external
//===----------------------------------------------------------------------===//

/// Returns the width of an element in a file; nullopt for types without a fixed width.
static std::optional<uint64_t> bitWidth(Type type) {
  if (type.isInteger(1))
    return 8; // ONNX stores one byte per bool.
  if (type.isIntOrFloat())
    return type.getIntOrFloatBitWidth();
  if (auto complex = dyn_cast<ComplexType>(type))
    return 2 * complex.getElementType().getIntOrFloatBitWidth();
  return std::nullopt;
}

LogicalResult ExternalAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef path, uint64_t offset,
                                   uint64_t length, Type type) {
  if (path.empty())
    return emitError() << "#divi.external needs the path of a file";
  if (!llvm::json::isUTF8(path))
    return emitError() << "#divi.external needs a path in UTF-8, has \"" << llvm::json::fixUTF8(path) << "\"";
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return emitError() << "#divi.external needs a tensor type of static shape, has " << type;
  std::optional<uint64_t> width = bitWidth(tensor.getElementType());
  if (!width)
    return emitError() << "#divi.external cannot hold elements of type " << tensor.getElementType();
  uint64_t count = 1;
  bool overflow = false;
  for (int64_t dim : tensor.getShape())
    overflow |= __builtin_mul_overflow(count, uint64_t(dim), &count);
  overflow |= __builtin_mul_overflow(count, *width, &count);
  uint64_t expected = count / 8 + (count % 8 != 0);
  if (overflow || length != expected) {
    InFlightDiagnostic diagnostic = emitError() << "#divi.external has length " << length << ", but " << type;
    return overflow ? diagnostic << " is larger than any file" : diagnostic << " takes " << expected << " bytes";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// #divi.cost
//===----------------------------------------------------------------------===//

/// Prints the shortest decimal that parses to the same number, always with a point so that it lexes as a float.
static void printNumber(raw_ostream &os, double value) {
  char buffer[32];
  // The shortest form of a double takes at most 24 characters.
  char *end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  StringRef digits(buffer, end - buffer);
  size_t exponent = digits.find('e');
  os << digits.substr(0, exponent);
  if (digits.substr(0, exponent).find('.') == StringRef::npos)
    os << ".0";
  os << digits.substr(std::min(exponent, digits.size()));
}

Attribute CostAttr::parse(AsmParser &parser, Type) {
  SmallVector<FlatSymbolRefAttr> devices;
  SmallVector<int64_t> batches;
  SmallVector<FloatAttr> micros;
  auto parseDevice = [&]() -> ParseResult {
    StringAttr device;
    if (parser.parseSymbolName(device) || parser.parseEqual())
      return failure();
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, [&]() -> ParseResult {
      int64_t batch;
      double time;
      if (parser.parseInteger(batch) || parser.parseEqual() || parser.parseFloat(time))
        return failure();
      devices.push_back(FlatSymbolRefAttr::get(device));
      batches.push_back(batch);
      micros.push_back(FloatAttr::get(Float64Type::get(parser.getContext()), time));
      return success();
    });
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseDevice))
    return {};
  return CostAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                              ArrayRef<FlatSymbolRefAttr>(devices), ArrayRef<int64_t>(batches),
                              ArrayRef<FloatAttr>(micros));
}

void CostAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << '<';
  for (size_t i = 0, n = getDevices().size(); i < n; ++i) {
    bool first = i == 0 || getDevices()[i] != getDevices()[i - 1];
    bool last = i + 1 == n || getDevices()[i] != getDevices()[i + 1];
    if (first)
      os << (i == 0 ? "" : ", ") << getDevices()[i] << " = {";
    os << (first ? "" : ", ") << getBatches()[i] << " = ";
    printNumber(os, getMicros()[i].getValueAsDouble());
    if (last)
      os << '}';
  }
  os << '>';
}

LogicalResult CostAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<FlatSymbolRefAttr> devices,
                               ArrayRef<int64_t> batches, ArrayRef<FloatAttr> micros) {
  if (devices.size() != batches.size() || devices.size() != micros.size())
    return emitError() << "#divi.cost needs a device, a batch size and a time for each entry";
  llvm::SmallDenseSet<std::pair<Attribute, int64_t>> seen;
  llvm::SmallDenseSet<Attribute> finished;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (i > 0 && devices[i] != devices[i - 1])
      finished.insert(devices[i - 1]);
    if (finished.contains(devices[i]))
      return emitError() << "#divi.cost names " << devices[i] << " twice: put all its batch sizes into one {…}";
    if (batches[i] < 1)
      return emitError() << "#divi.cost has batch size " << batches[i] << " for " << devices[i]
                         << ": batch sizes start at 1";
    double time = micros[i].getValueAsDouble();
    if (!(time >= 0) || std::isinf(time))
      return emitError() << "#divi.cost has a time for " << devices[i]
                         << " that is negative or not finite: omit devices that do not support the task";
    if (!seen.insert({devices[i], batches[i]}).second)
      return emitError() << "#divi.cost gives batch size " << batches[i] << " twice for " << devices[i];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// #divi.batch
//===----------------------------------------------------------------------===//

/// Parses `inputs = [0, 1]`.
static ParseResult parseInputs(AsmParser &parser, SmallVectorImpl<int64_t> &inputs) {
  auto parseInput = [&] { return parser.parseInteger(inputs.emplace_back()); };
  return failure(parser.parseKeyword("inputs") || parser.parseEqual() ||
                 parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseInput));
}

static void printInputs(raw_ostream &os, ArrayRef<int64_t> inputs) {
  os << "inputs = [";
  llvm::interleaveComma(inputs, os);
  os << ']';
}

/// Verifies that inputs are strictly increasing, and counted from 0.
static LogicalResult verifyInputs(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                  ArrayRef<int64_t> inputs) {
  for (auto [before, after] : llvm::zip(inputs, inputs.drop_front(inputs.empty() ? 0 : 1)))
    if (before >= after)
      return emitError() << name << " has input " << after << " after input " << before
                         << ": inputs must be strictly increasing";
  if (!inputs.empty() && inputs.front() < 0)
    return emitError() << name << " has input " << inputs.front() << ": inputs are counted from 0";
  return success();
}

Attribute BatchAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  StringAttr device;
  double start;
  SmallVector<int64_t> inputs;
  if (parser.parseLess() || parser.parseSymbolName(device) || parser.parseComma() || parser.parseKeyword("start") ||
      parser.parseEqual() || parser.parseFloat(start) || parser.parseComma() || parseInputs(parser, inputs) || parser.parseGreater())
    return {};
  return BatchAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                               FlatSymbolRefAttr::get(device),
                               FloatAttr::get(Float64Type::get(parser.getContext()), start),
                               ArrayRef<int64_t>(inputs));
}

void BatchAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << '<' << getDevice() << ", start = ";
  printNumber(os, getStart().getValueAsDouble());
  os << ", ";
  printInputs(os, getInputs());
  os << '>';
}

LogicalResult BatchAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr, FloatAttr start,
                                ArrayRef<int64_t> inputs) {
  double time = start.getValueAsDouble();
  if (!(time >= 0) || std::isinf(time))
    return emitError() << "#divi.batch has a start that is negative or not finite";
  if (inputs.empty())
    return emitError() << "#divi.batch has no inputs: remove it";
  return verifyInputs(emitError, "#divi.batch", inputs);
}

//===----------------------------------------------------------------------===//
// #divi.move
//===----------------------------------------------------------------------===//

Attribute MoveAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t index;
  StringAttr from, to;
  double start, end;
  SmallVector<int64_t> inputs;
  if (parser.parseLess() || parser.parseInteger(index) || parser.parseComma() || parser.parseSymbolName(from) ||
      parser.parseArrow() || parser.parseSymbolName(to) || parser.parseComma() || parser.parseKeyword("start") ||
      parser.parseEqual() || parser.parseFloat(start) || parser.parseComma() || parser.parseKeyword("end") ||
      parser.parseEqual() || parser.parseFloat(end) ||
      (succeeded(parser.parseOptionalComma()) && parseInputs(parser, inputs)) || parser.parseGreater())
    return {};
  Type f64 = Float64Type::get(parser.getContext());
  return MoveAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), index,
                              FlatSymbolRefAttr::get(from), FlatSymbolRefAttr::get(to), FloatAttr::get(f64, start),
                              FloatAttr::get(f64, end), ArrayRef<int64_t>(inputs));
}

void MoveAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << '<' << getIndex() << ", " << getFrom() << " -> " << getTo() << ", start = ";
  printNumber(os, getStart().getValueAsDouble());
  os << ", end = ";
  printNumber(os, getEnd().getValueAsDouble());
  if (!getInputs().empty()) {
    os << ", ";
    printInputs(os, getInputs());
  }
  os << '>';
}

LogicalResult MoveAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t index, FlatSymbolRefAttr from,
                               FlatSymbolRefAttr to, FloatAttr start, FloatAttr end, ArrayRef<int64_t> inputs) {
  if (index < 0)
    return emitError() << "#divi.move has index " << index << ": indices start at 0";
  if (from == to)
    return emitError() << "#divi.move moves a tensor from " << from << " to itself: remove it";
  double first = start.getValueAsDouble(), last = end.getValueAsDouble();
  if (!(first >= 0) || !(last >= first) || std::isinf(last))
    return emitError() << "#divi.move has a start that is negative, or an end that is before it or not finite";
  return verifyInputs(emitError, "#divi.move", inputs);
}

//===----------------------------------------------------------------------===//
// Attributes on operations of any dialect
//===----------------------------------------------------------------------===//

/// Verifies that the device that an attribute names is declared in the module.
static LogicalResult verifyIsDevice(Operation *op, StringRef attribute, FlatSymbolRefAttr device) {
  if (isa_and_present<DeviceOp>(SymbolTable::lookupNearestSymbolFrom(op, device)))
    return success();
  return op->emitOpError() << "attribute '" << attribute << "' names " << device
                           << ", which is not a divi.device of this module: declare it with 'divi.device " << device
                           << " {kind = …, memory = …}'";
}

/// Verifies `divi.device`, `divi.pin` and `divi.resident`, which name a device of the module.
static LogicalResult verifyDeviceReference(Operation *op, NamedAttribute attribute) {
  auto device = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
  if (!device)
    return op->emitOpError() << "attribute '" << attribute.getName().getValue()
                             << "' must name a device, as in @gpu0; it is " << attribute.getValue();
  return verifyIsDevice(op, attribute.getName().getValue(), device);
}

/// Verifies `divi.exclude`, a list of devices of the module.
static LogicalResult verifyExclude(Operation *op, StringRef name, Attribute value) {
  auto devices = dyn_cast<ArrayAttr>(value);
  if (!devices || !llvm::all_of(devices, llvm::IsaPred<FlatSymbolRefAttr>))
    return op->emitOpError() << "attribute '" << name << "' must be a list of devices, as in [@gpu0]; it is " << value;
  for (auto device : devices.getAsRange<FlatSymbolRefAttr>())
    if (failed(verifyIsDevice(op, name, device)))
      return failure();
  return success();
}

/// Verifies `divi.batches`: launches on devices of the module, at most one for each queued input.
static LogicalResult verifyBatches(Operation *op, StringRef name, Attribute value) {
  auto batches = dyn_cast<ArrayAttr>(value);
  if (!batches || !llvm::all_of(batches, llvm::IsaPred<BatchAttr>))
    return op->emitOpError() << "attribute '" << name
                             << "' must be a list of batches, as in [#divi.batch<@gpu0, start = 0.0, inputs = [0, 1]>]; "
                                "it is "
                             << value;
  llvm::SmallDenseSet<int64_t> seen;
  for (auto batch : batches.getAsRange<BatchAttr>()) {
    if (failed(verifyIsDevice(op, name, batch.getDevice())))
      return failure();
    for (int64_t input : batch.getInputs())
      if (!seen.insert(input).second)
        return op->emitOpError() << "attribute '" << name << "' has input " << input << " in two batches";
  }
  return success();
}

/// Verifies `divi.moves` (transfers of the operation's results, or of a function's arguments) and `divi.copies` (transfers
/// of its parameters, which all have index 0). An index moves at most once between two devices, for each input.
static LogicalResult verifyMoves(Operation *op, StringRef name, Attribute value) {
  auto moves = dyn_cast<ArrayAttr>(value);
  if (!moves || !llvm::all_of(moves, llvm::IsaPred<MoveAttr>))
    return op->emitOpError() << "attribute '" << name
                             << "' must be a list of moves, as in [#divi.move<0, @gpu0 -> @gpu1, start = 0.0, end = 1.5>]; it "
                                "is "
                             << value;
  auto function = dyn_cast<FunctionOpInterface>(op);
  bool copies = name == "divi.copies";
  int64_t count = copies ? 1 : function ? function.getNumArguments() : op->getNumResults();
  std::string what = copies ? "the parameters" : function ? "argument " : "result ";
  // A move without inputs has that of no input.
  llvm::SmallDenseSet<std::tuple<int64_t, Attribute, Attribute, int64_t>> seen;
  for (auto move : moves.getAsRange<MoveAttr>()) {
    if (failed(verifyIsDevice(op, name, move.getFrom())) || failed(verifyIsDevice(op, name, move.getTo())))
      return failure();
    if (copies && move.getIndex() != 0)
      return op->emitOpError() << "attribute '" << name << "' has index " << move.getIndex()
                               << ": the parameters of an operation have index 0";
    if (move.getIndex() >= count)
      return op->emitOpError() << "attribute '" << name << "' moves " << what << move.getIndex() << ", but there "
                               << (count == 1 ? "is " : "are ") << count << ", counted from 0";
    int64_t none = -1;
    for (int64_t input : move.getInputs().empty() ? ArrayRef<int64_t>(none) : move.getInputs())
      if (!seen.insert({move.getIndex(), move.getFrom(), move.getTo(), input}).second) {
        InFlightDiagnostic diagnostic = op->emitOpError() << "attribute '" << name << "' moves "
                                                          << (copies ? what : what + std::to_string(move.getIndex()))
                                                          << " from " << move.getFrom() << " to " << move.getTo()
                                                          << " twice";
        return input == none ? diagnostic : diagnostic << " for input " << input;
      }
  }
  return success();
}

/// Verifies that an attribute is present and has type `AttrT`, described by `expected`.
template <typename AttrT>
static LogicalResult verifyKind(Operation *op, StringRef name, Attribute value, StringRef expected) {
  if (isa_and_present<AttrT>(value))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError() << "attribute '" << name << "' must be " << expected;
  if (!value)
    return diagnostic << ", is missing";
  return diagnostic << ", is " << value;
}

/// Verifies `divi.cost`: times on devices of the module.
static LogicalResult verifyCost(Operation *op, StringRef name, Attribute value) {
  if (failed(verifyKind<CostAttr>(op, name, value, "a #divi.cost")))
    return failure();
  // Entries of one device are adjacent.
  FlatSymbolRefAttr checked;
  for (FlatSymbolRefAttr device : cast<CostAttr>(value).getDevices()) {
    if (device != checked && failed(verifyIsDevice(op, name, device)))
      return failure();
    checked = device;
  }
  return success();
}

/// Verifies the proof of a certificate's bound; certificates of older versions have none. With proof "solver" there may
/// be a weaker bound that was verified.
static LogicalResult verifyProof(Operation *op, DictionaryAttr plan, double bound) {
  StringRef proof = "solver";
  if (Attribute value = plan.get("proof")) {
    if (failed(verifyKind<StringAttr>(op, "divi.plan.proof", value, "a string")))
      return failure();
    proof = cast<StringAttr>(value).getValue();
    if (proof != "exact" && proof != "safe-dual" && proof != "solver")
      return op->emitOpError() << "attribute 'divi.plan.proof' is \"" << proof
                               << "\": it must be exact, safe-dual or solver";
  }
  Attribute verified = plan.get("verified_bound");
  if (!verified)
    return success();
  if (failed(verifyKind<FloatAttr>(op, "divi.plan.verified_bound", verified, "a float")))
    return failure();
  if (proof != "solver")
    return op->emitOpError() << "attribute 'divi.plan.verified_bound' is for bounds whose proof is \"solver\", not \"" << proof
                             << "\"";
  if (cast<FloatAttr>(verified).getValueAsDouble() > bound)
    return op->emitOpError("attribute 'divi.plan.verified_bound' is above the bound");
  return success();
}

/// Verifies the certificate: objective, value, bound and gap of a plan.
static LogicalResult verifyPlan(Operation *op, Attribute value) {
  if (!isa<ModuleOp>(op))
    return op->emitOpError("attribute 'divi.plan' belongs on the module");
  auto plan = dyn_cast<DictionaryAttr>(value);
  if (!plan)
    return op->emitOpError() << "attribute 'divi.plan' must be a dictionary, is " << value;
  for (StringRef key : {"objective", "bound_by", "algorithm"})
    if (failed(verifyKind<StringAttr>(op, ("divi.plan." + key).str(), plan.get(key), "a string")))
      return failure();
  for (StringRef key : {"value", "bound", "gap"})
    if (failed(verifyKind<FloatAttr>(op, ("divi.plan." + key).str(), plan.get(key), "a float")))
      return failure();
  StringRef objective = plan.getAs<StringAttr>("objective").getValue();
  if (objective != "latency" && objective != "batch" && objective != "pipeline")
    return op->emitOpError() << "attribute 'divi.plan.objective' is \"" << objective
                             << "\": it must be latency, batch or pipeline";
  double achieved = plan.getAs<FloatAttr>("value").getValueAsDouble();
  double bound = plan.getAs<FloatAttr>("bound").getValueAsDouble();
  if (bound > achieved)
    return op->emitOpError() << "attribute 'divi.plan' has a bound above its value: no plan can be better than its bound";
  return verifyProof(op, plan, bound);
}

/// Verifies `divi.costs`: the number of tasks whose time on each device was measured, interpolated and estimated.
static LogicalResult verifyCosts(Operation *op, Attribute value) {
  if (!isa<ModuleOp>(op))
    return op->emitOpError("attribute 'divi.costs' belongs on the module");
  auto devices = dyn_cast<DictionaryAttr>(value);
  if (!devices)
    return op->emitOpError() << "attribute 'divi.costs' must be a dictionary of devices, is " << value;
  for (NamedAttribute device : devices) {
    if (failed(verifyIsDevice(op, "divi.costs", FlatSymbolRefAttr::get(device.getName()))))
      return failure();
    auto counts = dyn_cast<DictionaryAttr>(device.getValue());
    for (StringRef key : {"measured", "interpolated", "estimated"})
      if (!counts || !isa_and_present<IntegerAttr>(counts.get(key)))
        return op->emitOpError() << "attribute 'divi.costs' must count tasks as measured, interpolated and estimated; "
                                 << device.getName() << " has " << device.getValue();
  }
  return success();
}

/// Verifies `divi.contention`, the model of concurrent transfers on one bus.
static LogicalResult verifyContention(Operation *op, Attribute value) {
  if (!isa<ModuleOp>(op))
    return op->emitOpError("attribute 'divi.contention' belongs on the module");
  auto contention = dyn_cast<StringAttr>(value);
  if (contention && llvm::is_contained({"off", "exclusive", "shared"}, contention.getValue()))
    return success();
  return op->emitOpError() << "attribute 'divi.contention' must be \"off\", \"exclusive\" or \"shared\", is " << value;
}

/// Verifies `divi.bound`, the bottleneck of a task on each device.
static LogicalResult verifyBound(Operation *op, Attribute value) {
  auto devices = dyn_cast<DictionaryAttr>(value);
  if (!devices)
    return op->emitOpError() << "attribute 'divi.bound' must be a dictionary of devices, is " << value;
  for (NamedAttribute device : devices) {
    if (failed(verifyIsDevice(op, "divi.bound", FlatSymbolRefAttr::get(device.getName()))))
      return failure();
    auto bound = dyn_cast<StringAttr>(device.getValue());
    if (!bound || !llvm::is_contained({"compute", "memory", "launch"}, bound.getValue()))
      return op->emitOpError() << "attribute 'divi.bound' must be \"compute\", \"memory\" or \"launch\" for each device; "
                               << device.getName() << " has " << device.getValue();
  }
  return success();
}

/// Verifies a nonnegative 64-bit count of `what`; the message shows `example`.
static LogicalResult verifyCount(Operation *op, StringRef name, Attribute value, StringRef what, StringRef example) {
  auto count = dyn_cast<IntegerAttr>(value);
  if (count && count.getType().isInteger(64) && count.getInt() >= 0)
    return success();
  return op->emitOpError() << "attribute '" << name << "' must be a number of " << what << ", as in " << example
                           << " : i64; it is " << value;
}

LogicalResult DiviDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  Attribute value = attribute.getValue();
  if (name == "divi.device" || name == "divi.pin" || name == "divi.resident")
    return verifyDeviceReference(op, attribute);
  if (name == "divi.cost")
    return verifyCost(op, name, value);
  if (name == "divi.plan")
    return verifyPlan(op, value);
  if (name == "divi.start" || name == "divi.end") {
    auto time = dyn_cast<FloatAttr>(value);
    if (!time || !time.getType().isF64() || !(time.getValueAsDouble() >= 0) || time.getValue().isInfinity())
      return op->emitOpError() << "attribute '" << name << "' must be a time in microseconds, as in 120.5 : f64; it is "
                               << value;
    return success();
  }
  if (name == "divi.exclude")
    return verifyExclude(op, name, value);
  if (name == "divi.colocate")
    return verifyKind<StringAttr>(op, name, value, "the name of a group");
  if (name == "divi.weights") {
    auto where = dyn_cast<StringAttr>(value);
    if (where && llvm::is_contained({"host", "device"}, where.getValue()))
      return success();
    return op->emitOpError() << "attribute 'divi.weights' must be \"host\" or \"device\", is " << value;
  }
  if (name == "divi.precision") {
    auto type = dyn_cast<StringAttr>(value);
    if (type && llvm::is_contained({"f32", "bf16", "f16"}, type.getValue()))
      return success();
    return op->emitOpError() << "attribute 'divi.precision' must be \"f32\", \"bf16\" or \"f16\", is " << value;
  }
  if (name == "divi.batches")
    return verifyBatches(op, name, value);
  if (name == "divi.moves" || name == "divi.copies")
    return verifyMoves(op, name, value);
  if (name == "divi.inputs")
    return verifyKind<DenseI64ArrayAttr>(op, name, value, "a list of inputs, as in array<i64: 0, 1>");
  if (name == "divi.stage")
    return verifyCount(op, name, value, "preceding stages", "2");
  if (name == "divi.members") {
    auto members = dyn_cast<ArrayAttr>(value);
    if (!members || !llvm::all_of(members, llvm::IsaPred<StringAttr>))
      return op->emitOpError() << "attribute 'divi.members' must be a list of node names, is " << value;
    return success();
  }
  if (name == "divi.costs")
    return verifyCosts(op, value);
  if (name == "divi.bound")
    return verifyBound(op, value);
  if (name == "divi.contention")
    return verifyContention(op, value);
  if (name == "divi.cold") {
    if (isa<ModuleOp>(op))
      return verifyKind<UnitAttr>(op, name, value, "a unit attribute");
    return op->emitOpError("attribute 'divi.cold' belongs on the module");
  }
  if (name == "divi.without" || name == "divi.reason") {
    if (!isa<ModuleOp>(op) || !op->getParentOp())
      return op->emitOpError() << "attribute '" << name << "' belongs on a nested module, the plan for the loss of a node";
    if (name == "divi.reason")
      return verifyKind<StringAttr>(op, name, value, "the reason why there is no plan");
    return verifyCount(op, name, value, "preceding nodes", "1");
  }
  if (name == "divi.flops")
    return verifyCount(op, name, value, "operations", "2048");
  if (name.ends_with("_bytes"))
    return verifyCount(op, name, value, "bytes", "4096");
  return op->emitOpError() << "has unknown attribute '" << name
                           << "': use another prefix, or one of divi.device, divi.pin, divi.exclude, "
                              "divi.colocate, divi.weights, divi.precision, divi.start, divi.end, divi.stage, divi.batches, divi.moves, divi.copies, divi.resident, divi.inputs, "
                              "divi.cost, divi.costs, divi.bound, divi.contention, divi.cold, divi.flops, divi.members, divi.plan, divi.without, divi.reason and divi.*_bytes";
}

LogicalResult DiviDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  if (attribute.getName().getValue() == "divi.device")
    return verifyDeviceReference(op, attribute);
  return op->emitOpError() << "argument " << index << " has attribute '" << attribute.getName().getValue()
                           << "': divi.device is the only divi attribute of arguments";
}

LogicalResult DiviDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  if (attribute.getName().getValue() != "divi.computed_from")
    return op->emitOpError() << "result " << index << " has attribute '" << attribute.getName().getValue()
                             << "': divi.computed_from is the only divi attribute of results";
  auto indices = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
  auto function = dyn_cast<FunctionOpInterface>(op);
  int64_t count = function ? function.getNumResults() : 0;
  if (indices && llvm::all_of(indices.asArrayRef(), [&](int64_t i) { return 0 <= i && i < count && i != index; }))
    return success();
  return op->emitOpError() << "result " << index << " has divi.computed_from = " << attribute.getValue()
                           << ": it must be a list of other results, as in array<i64: 0, 1>";
}
