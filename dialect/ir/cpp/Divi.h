// C++ declarations of the `divi` dialect, documented in td/Divi.td.

#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "DiviDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "DiviAttributes.h.inc"
#define GET_OP_CLASSES
#include "DiviOps.h.inc"
