// C API of the two dialects: constructors and accessors of their attributes and types, beyond MLIR's own C API.

#include "Divi.h"
#include "Onnx.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace divi;

/// Returns the width in bits of elements that ONNX packs into bytes (first element in the low bits) while MLIR stores one
/// per byte; 0 for elements whose layout is the same in both.
static unsigned packedWidth(Type element) {
  unsigned width = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  return width < 8 && !element.isInteger(1) ? width : 0;
}

extern "C" {

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Divi, divi, divi::DiviDialect)
MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Onnx, onnx, divi::onnx::ONNXDialect)

/// Returns null and emits a diagnostic at `location` if verification fails.
MlirAttribute diviExternalAttrGetChecked(MlirLocation location, MlirType type, MlirStringRef path, uint64_t offset,
                                         uint64_t length) {
  Location loc = unwrap(location);
  return wrap(Attribute(ExternalAttr::getChecked([&] { return emitError(loc); }, loc.getContext(), unwrap(path), offset,
                                                 length, unwrap(type))));
}

bool diviAttrIsAExternal(MlirAttribute attribute) { return isa<ExternalAttr>(unwrap(attribute)); }
MlirStringRef diviExternalAttrGetPath(MlirAttribute attribute) {
  return wrap(cast<ExternalAttr>(unwrap(attribute)).getPath());
}
uint64_t diviExternalAttrGetOffset(MlirAttribute attribute) {
  return cast<ExternalAttr>(unwrap(attribute)).getOffset();
}
uint64_t diviExternalAttrGetLength(MlirAttribute attribute) {
  return cast<ExternalAttr>(unwrap(attribute)).getLength();
}

/// Takes one entry per device and batch size. Returns null and emits a diagnostic at `location` if verification fails.
MlirAttribute diviCostAttrGetChecked(MlirLocation location, intptr_t count, const MlirStringRef *devices,
                                     const int64_t *batches, const double *micros) {
  Location loc = unwrap(location);
  MLIRContext *context = loc.getContext();
  SmallVector<FlatSymbolRefAttr> names;
  SmallVector<FloatAttr> times;
  for (intptr_t i = 0; i < count; ++i) {
    names.push_back(FlatSymbolRefAttr::get(context, unwrap(devices[i])));
    times.push_back(FloatAttr::get(Float64Type::get(context), micros[i]));
  }
  return wrap(Attribute(CostAttr::getChecked([&] { return emitError(loc); }, context,
                                             ArrayRef<FlatSymbolRefAttr>(names), ArrayRef<int64_t>(batches, count),
                                             ArrayRef<FloatAttr>(times))));
}

bool diviAttrIsACost(MlirAttribute attribute) { return isa<CostAttr>(unwrap(attribute)); }
intptr_t diviCostAttrGetCount(MlirAttribute attribute) { return cast<CostAttr>(unwrap(attribute)).getDevices().size(); }
MlirStringRef diviCostAttrGetDevice(MlirAttribute attribute, intptr_t index) {
  return wrap(cast<CostAttr>(unwrap(attribute)).getDevices()[index].getValue());
}
int64_t diviCostAttrGetBatch(MlirAttribute attribute, intptr_t index) {
  return cast<CostAttr>(unwrap(attribute)).getBatches()[index];
}
double diviCostAttrGetMicros(MlirAttribute attribute, intptr_t index) {
  return cast<CostAttr>(unwrap(attribute)).getMicros()[index].getValueAsDouble();
}

/// Returns null and emits a diagnostic at `location` if verification fails.
MlirAttribute diviBatchAttrGetChecked(MlirLocation location, MlirStringRef device, double start, intptr_t count,
                                      const int64_t *inputs) {
  Location loc = unwrap(location);
  MLIRContext *context = loc.getContext();
  return wrap(Attribute(BatchAttr::getChecked([&] { return emitError(loc); }, context,
                                              FlatSymbolRefAttr::get(context, unwrap(device)),
                                              FloatAttr::get(Float64Type::get(context), start),
                                              ArrayRef<int64_t>(inputs, count))));
}
bool diviAttrIsABatch(MlirAttribute attribute) { return isa<BatchAttr>(unwrap(attribute)); }
MlirStringRef diviBatchAttrGetDevice(MlirAttribute attribute) {
  return wrap(cast<BatchAttr>(unwrap(attribute)).getDevice().getValue());
}
double diviBatchAttrGetStart(MlirAttribute attribute) {
  return cast<BatchAttr>(unwrap(attribute)).getStart().getValueAsDouble();
}
intptr_t diviBatchAttrGetCount(MlirAttribute attribute) { return cast<BatchAttr>(unwrap(attribute)).getInputs().size(); }
int64_t diviBatchAttrGetInput(MlirAttribute attribute, intptr_t index) {
  return cast<BatchAttr>(unwrap(attribute)).getInputs()[index];
}

/// Returns null and emits a diagnostic at `location` if verification fails.
MlirAttribute diviMoveAttrGetChecked(MlirLocation location, int64_t index, MlirStringRef from, MlirStringRef to,
                                     double start, double end, intptr_t count, const int64_t *inputs) {
  Location loc = unwrap(location);
  MLIRContext *context = loc.getContext();
  Type f64 = Float64Type::get(context);
  return wrap(Attribute(MoveAttr::getChecked([&] { return emitError(loc); }, context, index,
                                             FlatSymbolRefAttr::get(context, unwrap(from)),
                                             FlatSymbolRefAttr::get(context, unwrap(to)), FloatAttr::get(f64, start),
                                             FloatAttr::get(f64, end), ArrayRef<int64_t>(inputs, count))));
}
bool diviAttrIsAMove(MlirAttribute attribute) { return isa<MoveAttr>(unwrap(attribute)); }
int64_t diviMoveAttrGetIndex(MlirAttribute attribute) { return cast<MoveAttr>(unwrap(attribute)).getIndex(); }
MlirStringRef diviMoveAttrGetFrom(MlirAttribute attribute) {
  return wrap(cast<MoveAttr>(unwrap(attribute)).getFrom().getValue());
}
MlirStringRef diviMoveAttrGetTo(MlirAttribute attribute) {
  return wrap(cast<MoveAttr>(unwrap(attribute)).getTo().getValue());
}
double diviMoveAttrGetStart(MlirAttribute attribute) {
  return cast<MoveAttr>(unwrap(attribute)).getStart().getValueAsDouble();
}
double diviMoveAttrGetEnd(MlirAttribute attribute) {
  return cast<MoveAttr>(unwrap(attribute)).getEnd().getValueAsDouble();
}
intptr_t diviMoveAttrGetCount(MlirAttribute attribute) { return cast<MoveAttr>(unwrap(attribute)).getInputs().size(); }
int64_t diviMoveAttrGetInput(MlirAttribute attribute, intptr_t index) {
  return cast<MoveAttr>(unwrap(attribute)).getInputs()[index];
}

MlirType diviOnnxStringTypeGet(MlirContext context) { return wrap(Type(onnx::StringType::get(unwrap(context)))); }
MlirType diviOnnxSeqTypeGet(MlirType element) {
  return wrap(Type(onnx::SeqType::get(unwrap(element).getContext(), unwrap(element))));
}
MlirType diviOnnxOptTypeGet(MlirType element) {
  return wrap(Type(onnx::OptType::get(unwrap(element).getContext(), unwrap(element))));
}
/// Returns the element type of a sequence or optional; null for other types.
MlirType diviOnnxContainedTypeGet(MlirType type) {
  if (auto sequence = dyn_cast<onnx::SeqType>(unwrap(type)))
    return wrap(sequence.getElementType());
  if (auto optional = dyn_cast<onnx::OptType>(unwrap(type)))
    return wrap(optional.getElementType());
  return MlirType{nullptr};
}
bool diviTypeIsAOnnxString(MlirType type) { return isa<onnx::StringType>(unwrap(type)); }

void diviEmitError(MlirLocation location, MlirStringRef message) { emitError(unwrap(location)) << unwrap(message); }
void diviEmitWarning(MlirLocation location, MlirStringRef message) { emitWarning(unwrap(location)) << unwrap(message); }

/// Creates elements from a copy of bytes in the layout of ONNX's raw_data.
MlirAttribute diviDenseElementsGet(MlirType type, const uint8_t *bytes, size_t length) {
  auto tensor = cast<RankedTensorType>(unwrap(type));
  Type element = tensor.getElementType();
  if (element.isInteger(1)) {
    SmallVector<bool> values(bytes, bytes + length);
    return wrap(Attribute(DenseElementsAttr::get(tensor, values)));
  }
  if (unsigned width = packedWidth(element)) {
    SmallVector<char> values(tensor.getNumElements());
    for (size_t i = 0; i < values.size(); ++i)
      for (unsigned bit = 0; bit < width; ++bit)
        values[i] |= (bytes[(i * width + bit) / 8] >> ((i * width + bit) % 8) & 1) << bit;
    return wrap(Attribute(DenseElementsAttr::getFromRawBuffer(tensor, values)));
  }
  ArrayRef<char> raw(reinterpret_cast<const char *>(bytes), length);
  return wrap(Attribute(DenseElementsAttr::getFromRawBuffer(tensor, raw)));
}

/// Returns the size in bytes of an elements attribute in ONNX's layout; -1 if its elements cannot be read as bytes.
int64_t diviElementsGetByteLength(MlirAttribute attribute) {
  auto elements = dyn_cast<ElementsAttr>(unwrap(attribute));
  if (!elements || !elements.getShapedType().hasStaticShape())
    return -1;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(unwrap(attribute))) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    return blob ? int64_t(blob->getData().size()) : -1;
  }
  if (!isa<DenseIntOrFPElementsAttr>(elements))
    return -1;
  Type element = elements.getElementType();
  if (unsigned width = packedWidth(element))
    return (elements.getNumElements() * width + 7) / 8;
  if (auto complex = dyn_cast<ComplexType>(element))
    return elements.getNumElements() * 2 * (complex.getElementType().getIntOrFloatBitWidth() / 8);
  if (element.isIndex())
    return elements.getNumElements() * (IndexType::kInternalStorageBitWidth / 8);
  return elements.getNumElements() * (element.isInteger(1) ? 1 : element.getIntOrFloatBitWidth() / 8);
}

/// Copies the elements in ONNX's layout; `length` is the result of `diviElementsGetByteLength`.
void diviElementsCopyBytes(MlirAttribute attribute, uint8_t *bytes, size_t length) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(unwrap(attribute))) {
    ArrayRef<char> data = resource.getRawHandle().getBlob()->getData();
    std::copy_n(data.begin(), std::min(length, data.size()), bytes);
    return;
  }
  auto elements = cast<DenseElementsAttr>(unwrap(attribute));
  if (elements.getElementType().isInteger(1)) {
    llvm::copy(elements.getValues<bool>(), bytes);
    return;
  }
  ArrayRef<char> raw = elements.getRawData();
  if (unsigned width = packedWidth(elements.getElementType())) {
    std::fill_n(bytes, length, 0);
    for (size_t i = 0, n = elements.getNumElements(); i < n; ++i)
      for (unsigned bit = 0; bit < width; ++bit)
        bytes[(i * width + bit) / 8] |= (raw[elements.isSplat() ? 0 : i] >> bit & 1) << ((i * width + bit) % 8);
    return;
  }
  // A splat stores one element.
  for (size_t i = 0; i < length; ++i)
    bytes[i] = raw[i % raw.size()];
}

} // extern "C"
