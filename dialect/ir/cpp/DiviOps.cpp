// Operations of the `divi` dialect: verifiers, folders, and the syntax that TableGen cannot say.

#include "Divi.h"

#include "mlir/CAPI/Support.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace divi;

// Written in Rust: see src/kind.rs.
extern "C" {
bool diviDeviceKindIsKnown(MlirStringRef name, void (*sink)(MlirStringRef, void *), void *user);
bool diviDeviceKindHasHostMemory(MlirStringRef name);
bool diviDeviceKindStreamsWeights(MlirStringRef name);
}

/// `-> type` for one result, `-> (types)` for several, nothing for none.
static ParseResult parseResults(OpAsmParser &parser, SmallVectorImpl<Type> &types) {
  return parser.parseOptionalArrowTypeList(types);
}

static void printResults(OpAsmPrinter &printer, Operation *, TypeRange types) {
  printer.printOptionalArrowTypeList(types);
}

/// `%a of 4, %b of 8`
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
// Devices and where values are
//===----------------------------------------------------------------------===//

/// The device a symbol names; an error on `op` if there is none.
static DeviceOp findDevice(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols) {
  if (auto device = symbols.lookupNearestSymbolFrom<DeviceOp>(op, name))
    return device;
  op->emitOpError() << "names " << name << ", which is no divi.device of this module: declare it with 'divi.device "
                    << name << " {kind = …, memory = …}'";
  return {};
}

/// Where the model's inputs arrive: the first device whose memory is the host's, or the first of all if there is none.
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

/// The device whose memory holds a value; null where it is everywhere (constants) or nobody says.
static FlatSymbolRefAttr homeOf(Value value, Operation *user) {
  // The defining operator may not have been verified yet: its properties may be null.
  if (auto transfer = value.getDefiningOp<TransferOp>())
    return transfer.getProperties().to;
  if (auto launch = value.getDefiningOp<LaunchOp>())
    return launch.getProperties().device;
  if (isa_and_present<SliceOp, GatherOp>(value.getDefiningOp()) && value.getDefiningOp()->getNumOperands() > 0)
    return homeOf(value.getDefiningOp()->getOperand(0), user);
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

/// A value that `op` reads on `device` must be there.
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

/// Decisions alone (`divi.device`) are not held against where values are: until a plan is made explicit, values get where
/// they are needed by themselves. The first transfer or launch of a block makes all of it explicit.
static LogicalResult verifyExplicitBlock(Operation *op) {
  for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode())
    if (isa<TransferOp, LaunchOp>(before))
      return success();
  for (Operation &decided : *op->getBlock())
    if (auto device = decided.getAttrOfType<FlatSymbolRefAttr>("divi.device"))
      if (failed(verifyOperandsOnDevice(&decided, device)))
        return failure();
  return success();
}

LogicalResult DeviceOp::verify() {
  std::string known;
  auto keep = [](MlirStringRef names, void *user) { static_cast<std::string *>(user)->assign(names.data, names.length); };
  if (!diviDeviceKindIsKnown(wrap(getKind()), keep, &known))
    return emitOpError() << "has kind \"" << getKind() << "\": expected one of " << known;
  if (static_cast<int64_t>(getMemory()) <= 0)
    return emitOpError() << "has " << static_cast<int64_t>(getMemory()) << " bytes of memory: it must be positive";
  if (std::optional<ArrayAttr> sizes = getBatchSizes())
    for (auto size : sizes->getAsRange<IntegerAttr>())
      if (size.getInt() < 1)
        return emitOpError() << "has batch size " << size.getInt() << ": batch sizes start at 1";
  if (std::optional<StringRef> weights = getWeights()) {
    if (*weights != "resident" && *weights != "streamed")
      return emitOpError() << "has weights \"" << *weights << "\": they are resident or streamed";
    if (*weights == "streamed" && !diviDeviceKindStreamsWeights(wrap(getKind())))
      return emitOpError() << "has weights \"streamed\": a " << getKind() << " device reads them where they are";
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
    return emitOpError() << "goes from " << getFromAttr() << " to itself: a tensor is where it is without a link";
  if (!getBandwidth().isFiniteNonZero() || getBandwidth().isNegative())
    return emitOpError("needs a positive bandwidth in bytes per second");
  if (!getLatency().isFinite() || (getLatency().isNegative() && !getLatency().isZero()))
    return emitOpError("needs a latency in seconds that is not negative");
  return success();
}

LogicalResult LinkOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!findDevice(*this, getFromAttr(), symbols) || !findDevice(*this, getToAttr(), symbols))
    return failure();
  for (LinkOp earlier : (*this)->getParentOfType<ModuleOp>().getOps<LinkOp>()) {
    if (earlier == *this)
      break;
    if (earlier.getFromAttr() == getFromAttr() && earlier.getToAttr() == getToAttr()) {
      InFlightDiagnostic diagnostic = emitOpError() << "from " << getFromAttr() << " to " << getToAttr()
                                                    << " is declared twice: merge the two into one";
      diagnostic.attachNote(earlier.getLoc()) << "the first is here";
      return diagnostic;
    }
  }
  return success();
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
    return emitOpError() << "moves a tensor from " << getFromAttr() << " to itself: use the tensor where it is";
  return success();
}

LogicalResult TransferOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!findDevice(*this, getFromAttr(), symbols) || !findDevice(*this, getToAttr(), symbols) ||
      failed(verifyOnDevice(*this, getInput(), 0, getFromAttr())) || failed(verifyExplicitBlock(*this)))
    return failure();
  // A module without links says nothing of them; one with links says all.
  bool hasLinks = false;
  for (LinkOp link : (*this)->getParentOfType<ModuleOp>().getOps<LinkOp>()) {
    if (link.getFromAttr() == getFromAttr() && link.getToAttr() == getToAttr())
      return success();
    hasLinks = true;
  }
  if (!hasLinks)
    return success();
  return emitOpError() << "has no link to go by: declare 'divi.link " << getFromAttr() << " -> " << getToAttr()
                       << " {…}' or transfer over a device that is linked with both";
}

/// There and back again is the tensor itself.
OpFoldResult TransferOp::fold(FoldAdaptor) {
  auto there = getInput().getDefiningOp<TransferOp>();
  return there && there.getFromAttr() == getToAttr() ? there.getInput() : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// divi.launch
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!findDevice(*this, getDeviceAttr(), symbols))
    return failure();
  auto callee = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "calls " << getCalleeAttr() << ", which is no function of this module";
  if (TypeRange(callee.getArgumentTypes()) != getInputs().getTypes() ||
      TypeRange(callee.getResultTypes()) != getResults().getTypes())
    return emitOpError() << "has another type than its callee " << getCalleeAttr() << ", which is "
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

/// A tensor of `count` inputs, its axis divided by them; an error on `op` if they do not make it up.
static FailureOr<RankedTensorType> forOneInput(Operation *op, RankedTensorType type, int64_t axis, int64_t outer,
                                               int64_t count) {
  if (axis < 0 || axis >= type.getRank())
    return op->emitOpError() << "has its inputs on axis " << axis << ", which " << type << " does not have";
  if (outer < 1 || count < 1)
    return op->emitOpError() << "has " << count << " inputs in " << outer << " parts: both start at 1";
  SmallVector<int64_t> shape(type.getShape());
  int64_t parts;
  if (llvm::MulOverflow(outer, count, parts))
    return op->emitOpError() << "has " << count << " inputs in " << outer << " parts, which no tensor has";
  if (!ShapedType::isDynamic(shape[axis])) {
    if (shape[axis] % parts != 0)
      return op->emitOpError() << "has " << count << " inputs in " << outer << " parts, which axis " << axis << " of "
                               << type << " is not made of";
    shape[axis] /= count;
  }
  return type.clone(shape);
}

/// The other way round.
static RankedTensorType forInputs(RankedTensorType one, int64_t axis, int64_t count) {
  SmallVector<int64_t> shape(one.getShape());
  if (!ShapedType::isDynamic(shape[axis]))
    shape[axis] *= count;
  return one.clone(shape);
}

LogicalResult SliceOp::verify() {
  FailureOr<RankedTensorType> one =
      forOneInput(*this, getInput().getType(), getAxis(), getOuter(), getCount());
  if (failed(one))
    return failure();
  if (getPositions().empty())
    return emitOpError("takes no input: it must take one at least");
  for (int64_t position : getPositions())
    if (position < 0 || position >= int64_t(getCount()))
      return emitOpError() << "takes input " << position << " of " << getCount() << ", counted from 0";
  RankedTensorType expected = forInputs(*one, getAxis(), getPositions().size());
  if (getOutput().getType() != expected)
    return emitOpError() << "gives " << getOutput().getType() << ", but " << getPositions().size() << " inputs of "
                         << getInput().getType() << " are " << expected;
  return success();
}

LogicalResult GatherOp::verify() {
  if (getInputs().empty() || getInputs().size() != getCounts().size())
    return emitOpError() << "has " << getInputs().size() << " operands and " << getCounts().size()
                         << " numbers of inputs: each of at least one operand needs one";
  RankedTensorType unit;
  int64_t total = 0;
  for (auto [input, count] : llvm::zip(getInputs(), getCounts())) {
    FailureOr<RankedTensorType> one =
        forOneInput(*this, cast<RankedTensorType>(input.getType()), getAxis(), getOuter(), count);
    if (failed(one))
      return failure();
    if (unit && unit != *one)
      return emitOpError() << "puts together inputs of different types: " << unit << " and " << *one;
    unit = *one;
    total += count;
  }
  RankedTensorType expected = forInputs(unit, getAxis(), total);
  if (getOutput().getType() != expected)
    return emitOpError() << "gives " << getOutput().getType() << ", but " << total << " inputs of " << unit << " are "
                         << expected;
  return success();
}
