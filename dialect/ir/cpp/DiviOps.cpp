// Operations of the `divi` dialect: verifiers, folders, and syntax that declarative assembly formats cannot express.

#include "Divi.h"

#include "mlir/CAPI/Support.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace divi;

// Defined in Rust: see src/kind/ffi.rs.
extern "C" {
bool diviDeviceKindIsKnown(MlirStringRef name, void (*sink)(MlirStringRef, void *), void *user);
bool diviDeviceKindHasHostMemory(MlirStringRef name);
bool diviDeviceKindStreamsWeights(MlirStringRef name);
}

/// Parses `-> type` for one result, `-> (types)` for several, nothing for none.
static ParseResult parseResults(OpAsmParser &parser, SmallVectorImpl<Type> &types) {
  return parser.parseOptionalArrowTypeList(types);
}

static void printResults(OpAsmPrinter &printer, Operation *, TypeRange types) {
  printer.printOptionalArrowTypeList(types);
}

/// Parses `%a of 4, %b of 8`.
static ParseResult parseParts(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &inputs,
                              DenseI64ArrayAttr &counts) {
  SmallVector<int64_t> sizes;
  auto parsePart = [&]() -> ParseResult {
    return failure(parser.parseOperand(inputs.emplace_back()) || parser.parseKeyword("of") ||
                   parser.parseInteger(sizes.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(parsePart))
    return failure();
  counts = parser.getBuilder().getDenseI64ArrayAttr(sizes);
  return success();
}

static void printParts(OpAsmPrinter &printer, Operation *, OperandRange inputs, DenseI64ArrayAttr counts) {
  llvm::interleaveComma(llvm::zip(inputs, counts.asArrayRef()), printer, [&](auto part) {
    printer << std::get<0>(part) << " of " << std::get<1>(part);
  });
}

#define GET_OP_CLASSES
#include "DiviOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Devices and the placement of values
//===----------------------------------------------------------------------===//

/// Returns the device that a symbol names; emits an error on `op` and returns null if there is none.
static DeviceOp findDevice(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols) {
  if (auto device = symbols.lookupNearestSymbolFrom<DeviceOp>(op, name))
    return device;
  op->emitOpError() << "names " << name << ", which is not a divi.device of this module: declare it with 'divi.device "
                    << name << " {kind = …, memory = …}'";
  return {};
}

/// Returns the device on which the model's inputs arrive: the first one with host memory, or else the first one.
static DeviceOp hostDevice(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  if (!module)
    return {};
  for (DeviceOp device : module.getOps<DeviceOp>())
    if (diviDeviceKindHasHostMemory(wrap(device.getKind())))
      return device;
  auto devices = module.getOps<DeviceOp>();
  return devices.empty() ? DeviceOp() : *devices.begin();
}

/// Returns the device whose memory holds a value; null if the value is on all devices (constants) or its device is not
/// specified.
static FlatSymbolRefAttr homeOf(Value value, Operation *user) {
  // A slice or gather is where its first operand is. In an unreachable block, it may use its own result.
  SmallPtrSet<Operation *, 4> visited;
  while (isa_and_present<SliceOp, GatherOp>(value.getDefiningOp()) && value.getDefiningOp()->getNumOperands() > 0) {
    if (!visited.insert(value.getDefiningOp()).second)
      return {};
    value = value.getDefiningOp()->getOperand(0);
  }
  // The defining operation may not have been verified yet: its properties may be null.
  if (auto transfer = value.getDefiningOp<TransferOp>())
    return transfer.getProperties().to;
  if (auto launch = value.getDefiningOp<LaunchOp>())
    return launch.getProperties().device;
  if (Operation *definer = value.getDefiningOp())
    return definer->getAttrOfType<FlatSymbolRefAttr>("divi.device");
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast_if_present<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (!function || !argument.getOwner()->isEntryBlock())
    return {};
  if (auto device = function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), "divi.device"))
    return device;
  if (auto device = function->getAttrOfType<FlatSymbolRefAttr>("divi.device"))
    return device;
  DeviceOp host = hostDevice(user);
  return host ? FlatSymbolRefAttr::get(host.getSymNameAttr()) : FlatSymbolRefAttr();
}

/// Verifies that a value that `op` reads on `device` is in that device's memory.
static LogicalResult verifyOnDevice(Operation *op, Value value, unsigned index, FlatSymbolRefAttr device) {
  FlatSymbolRefAttr home = homeOf(value, op);
  if (!home || home == device)
    return success();
  return op->emitOpError() << "reads operand " << index << " on " << device << ", but it is on " << home
                           << ": insert 'divi.transfer … from " << home << " to " << device << "'";
}

static LogicalResult verifyOperandsOnDevice(Operation *op, FlatSymbolRefAttr device) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (failed(verifyOnDevice(op, operand, index, device)))
      return failure();
  return success();
}

/// Returns true if no operation of these kinds precedes `op` in its block. Verifiers of a whole block run on its first one.
template <typename... Ops> static bool isFirstInBlock(Operation *op) {
  for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode())
    if (isa<Ops...>(before))
      return false;
  return true;
}

/// Verifies the placement of all operands in a block with explicit transfers. In a block that has `divi.device` attributes
/// but no transfer or launch, transfers are implicit. Runs once per block: on its first transfer or launch.
static LogicalResult verifyExplicitBlock(Operation *op) {
  if (!isFirstInBlock<TransferOp, LaunchOp>(op))
    return success();
  for (Operation &placed : *op->getBlock())
    if (auto device = placed.getAttrOfType<FlatSymbolRefAttr>("divi.device"))
      if (failed(verifyOperandsOnDevice(&placed, device)))
        return failure();
  return success();
}

LogicalResult DeviceOp::verify() {
  std::string known;
  auto store = [](MlirStringRef names, void *user) { static_cast<std::string *>(user)->assign(names.data, names.length); };
  if (!diviDeviceKindIsKnown(wrap(getKind()), store, &known))
    return emitOpError() << "has kind \"" << getKind() << "\": expected one of " << known;
  if (static_cast<int64_t>(getMemory()) <= 0)
    return emitOpError() << "has " << static_cast<int64_t>(getMemory()) << " bytes of memory: it must be positive";
  if (std::optional<ArrayAttr> sizes = getBatchSizes()) {
    int64_t before = 0;
    for (auto size : sizes->getAsRange<IntegerAttr>()) {
      if (size.getInt() < 1)
        return emitOpError() << "has batch size " << size.getInt() << ": batch sizes start at 1";
      if (size.getInt() <= before)
        return emitOpError() << "has batch size " << size.getInt() << " after batch size " << before
                             << ": batch sizes must be strictly increasing";
      before = size.getInt();
    }
  }
  if (std::optional<StringRef> weights = getWeights()) {
    if (*weights != "resident" && *weights != "streamed")
      return emitOpError() << "has weights \"" << *weights << "\": expected resident or streamed";
    if (*weights == "streamed" && !diviDeviceKindStreamsWeights(wrap(getKind())))
      return emitOpError() << "has weights \"streamed\", which devices of kind " << getKind() << " do not support";
  }
  if (std::optional<uint64_t> node = getNode(); node && static_cast<int64_t>(*node) < 0)
    return emitOpError() << "is part of node " << static_cast<int64_t>(*node) << ": nodes are counted from 0";
  return success();
}

//===----------------------------------------------------------------------===//
// divi.link
//===----------------------------------------------------------------------===//

LogicalResult LinkOp::verify() {
  if (getFrom() == getTo())
    return emitOpError() << "connects " << getFromAttr() << " to itself: remove the link";
  if (!getBandwidth().isFiniteNonZero() || getBandwidth().isNegative())
    return emitOpError("needs a positive bandwidth in bytes per second");
  if (!getLatency().isFinite() || (getLatency().isNegative() && !getLatency().isZero()))
    return emitOpError("needs a latency in seconds that is not negative");
  return success();
}

/// First link of each pair of devices (source, destination).
using Links = llvm::DenseMap<std::pair<Attribute, Attribute>, LinkOp>;

/// Verifies that no two links of a module connect the same devices in the same direction. Runs once per module: on its first
/// link.
static LogicalResult verifyDistinctLinks(LinkOp link) {
  if (!isFirstInBlock<LinkOp>(link))
    return success();
  Links links;
  for (LinkOp later : link->getParentOfType<ModuleOp>().getOps<LinkOp>()) {
    auto [earlier, inserted] = links.try_emplace({later.getFromAttr(), later.getToAttr()}, later);
    if (inserted)
      continue;
    InFlightDiagnostic diagnostic = later.emitOpError() << "from " << later.getFromAttr() << " to " << later.getToAttr()
                                                        << " is declared twice: merge the two into one";
    diagnostic.attachNote(earlier->second.getLoc()) << "the first is here";
    return diagnostic;
  }
  return success();
}

LogicalResult LinkOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!findDevice(*this, getFromAttr(), symbols) || !findDevice(*this, getToAttr(), symbols))
    return failure();
  return verifyDistinctLinks(*this);
}

//===----------------------------------------------------------------------===//
// divi.cluster
//===----------------------------------------------------------------------===//

LogicalResult ClusterOp::verify() {
  if (getKind().empty())
    return emitOpError("needs a kind, as in \"conv_bn_relu\"");
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getInputs().getTypes())
    return emitOpError() << "has a body whose arguments are not its operands: give the body one argument of the same "
                            "type for each of the "
                         << getInputs().size() << " operands";
  return success();
}

LogicalResult ClusterOp::verifyRegions() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getValues().getTypes() != getResults().getTypes())
    return yield.emitOpError() << "yields " << yield.getValues().size()
                               << " values whose types are not those of the cluster's " << getResults().size()
                               << " results";
  return success();
}

//===----------------------------------------------------------------------===//
// divi.transfer
//===----------------------------------------------------------------------===//

LogicalResult TransferOp::verify() {
  if (getFrom() == getTo())
    return emitOpError() << "moves a tensor from " << getFromAttr() << " to itself: use the operand instead";
  return success();
}

/// Verifies that every transfer of a block has a link. A module declares either no links or all of them. Runs once per block:
/// on its first transfer.
static LogicalResult verifyLinked(TransferOp transfer, SymbolTableCollection &symbols) {
  if (!isFirstInBlock<TransferOp>(transfer))
    return success();
  llvm::DenseSet<std::pair<Attribute, Attribute>> links;
  for (LinkOp link : transfer->getParentOfType<ModuleOp>().getOps<LinkOp>())
    links.insert({link.getFromAttr(), link.getToAttr()});
  if (links.empty())
    return success();
  auto isDevice = [&](TransferOp later, FlatSymbolRefAttr name) {
    return bool(symbols.lookupNearestSymbolFrom<DeviceOp>(later, name));
  };
  for (TransferOp later : transfer->getBlock()->getOps<TransferOp>()) {
    FlatSymbolRefAttr from = later.getFromAttr(), to = later.getToAttr();
    // Unknown devices are errors of their own, which each transfer reports.
    if (links.contains({from, to}) || !isDevice(later, from) || !isDevice(later, to))
      continue;
    return later.emitOpError() << "has no link: declare 'divi.link " << from << " -> " << to
                               << " {…}' or transfer through a device that is linked with both";
  }
  return success();
}

LogicalResult TransferOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!findDevice(*this, getFromAttr(), symbols) || !findDevice(*this, getToAttr(), symbols) ||
      failed(verifyOnDevice(*this, getInput(), 0, getFromAttr())) || failed(verifyExplicitBlock(*this)))
    return failure();
  return verifyLinked(*this, symbols);
}

/// Folds a transfer to a device and back to the original tensor.
OpFoldResult TransferOp::fold(FoldAdaptor) {
  auto previous = getInput().getDefiningOp<TransferOp>();
  return previous && previous.getFromAttr() == getToAttr() ? previous.getInput() : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// divi.launch
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!findDevice(*this, getDeviceAttr(), symbols))
    return failure();
  auto callee = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "calls " << getCalleeAttr() << ", which is not a function of this module";
  if (TypeRange(callee.getArgumentTypes()) != getInputs().getTypes() ||
      TypeRange(callee.getResultTypes()) != getResults().getTypes())
    return emitOpError() << "does not match the type of its callee " << getCalleeAttr() << ", which is "
                         << callee.getFunctionType();
  auto compiledFor = callee->getAttrOfType<FlatSymbolRefAttr>("divi.device");
  if (compiledFor && compiledFor != getDeviceAttr())
    return emitOpError() << "runs " << getCalleeAttr() << " on " << getDeviceAttr() << ", but that function is for "
                         << compiledFor << ": launch it there or change its divi.device";
  if (failed(verifyOperandsOnDevice(*this, getDeviceAttr())))
    return failure();
  return verifyExplicitBlock(*this);
}

//===----------------------------------------------------------------------===//
// divi.slice and divi.gather
//===----------------------------------------------------------------------===//

/// Returns the type for one input, given the type for `count` inputs; emits an error on `op` if `axis` cannot be
/// divided into `outer` parts, each of which has all `count` inputs.
static FailureOr<RankedTensorType> forOneInput(Operation *op, RankedTensorType type, int64_t axis, int64_t outer,
                                               int64_t count) {
  if (axis < 0 || axis >= type.getRank())
    return op->emitOpError() << "has its inputs on axis " << axis << ", which " << type << " does not have";
  if (outer < 1 || count < 1)
    return op->emitOpError() << "has " << count << " inputs in each of " << outer << " parts: both must be positive";
  SmallVector<int64_t> shape(type.getShape());
  int64_t parts;
  if (llvm::MulOverflow(outer, count, parts))
    return op->emitOpError() << "has " << count << " inputs in each of " << outer << " parts, whose product overflows";
  if (!ShapedType::isDynamic(shape[axis])) {
    if (shape[axis] % parts != 0)
      return op->emitOpError() << "has " << count << " inputs in each of " << outer
                               << " parts, which do not divide axis " << axis << " of " << type;
    shape[axis] /= count;
  }
  return type.clone(shape);
}

/// Returns the type for `count` inputs, given the type for one; emits an error on `op` if `axis` becomes too large.
static FailureOr<RankedTensorType> forInputs(Operation *op, RankedTensorType one, int64_t axis, int64_t count) {
  SmallVector<int64_t> shape(one.getShape());
  if (!ShapedType::isDynamic(shape[axis]) && llvm::MulOverflow(shape[axis], count, shape[axis]))
    return op->emitOpError() << "has " << count << " inputs of " << one << ", whose size on axis " << axis
                             << " overflows";
  return one.clone(shape);
}

LogicalResult SliceOp::verify() {
  FailureOr<RankedTensorType> one =
      forOneInput(*this, getInput().getType(), getAxis(), getOuter(), getCount());
  if (failed(one))
    return failure();
  if (getPositions().empty())
    return emitOpError("takes no input: it must take at least one");
  for (int64_t position : getPositions())
    if (position < 0 || position >= int64_t(getCount()))
      return emitOpError() << "takes input " << position << " of " << getCount() << ", counted from 0";
  FailureOr<RankedTensorType> expected = forInputs(*this, *one, getAxis(), getPositions().size());
  if (failed(expected))
    return failure();
  if (getOutput().getType() != *expected)
    return emitOpError() << "has result type " << getOutput().getType() << ", but " << getPositions().size()
                         << " inputs of " << getInput().getType() << " have type " << *expected;
  return success();
}

LogicalResult GatherOp::verify() {
  if (getInputs().empty() || getInputs().size() != getCounts().size())
    return emitOpError() << "has " << getInputs().size() << " operands and " << getCounts().size()
                         << " input counts: it needs at least one operand, and one count for each";
  RankedTensorType unit;
  int64_t total = 0;
  for (auto [input, count] : llvm::zip(getInputs(), getCounts())) {
    FailureOr<RankedTensorType> one =
        forOneInput(*this, cast<RankedTensorType>(input.getType()), getAxis(), getOuter(), count);
    if (failed(one))
      return failure();
    if (unit && unit != *one)
      return emitOpError() << "concatenates inputs of different types: " << unit << " and " << *one;
    unit = *one;
    if (llvm::AddOverflow(total, count, total))
      return emitOpError("has input counts whose sum overflows");
  }
  FailureOr<RankedTensorType> expected = forInputs(*this, unit, getAxis(), total);
  if (failed(expected))
    return failure();
  if (getOutput().getType() != *expected)
    return emitOpError() << "has result type " << getOutput().getType() << ", but " << total << " inputs of " << unit
                         << " have type " << *expected;
  return success();
}
