// Body of each shard of the generated operators; the build script selects the shard by GET_OP_DEFS_<index>.

#include "Onnx.h"

#include "mlir/IR/Builders.h"

#include "OnnxOps.cpp.inc"
