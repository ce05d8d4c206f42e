// The body of each shard of the generated operators; the build script defines which shard it is.

#include "Onnx.h"

#include "mlir/IR/Builders.h"

#include "OnnxOps.cpp.inc"
