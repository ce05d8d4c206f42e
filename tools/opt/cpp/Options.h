// What the command line of divi-opt says beside what MLIR's own options say.

#ifndef DIVI_OPT_OPTIONS_H
#define DIVI_OPT_OPTIONS_H

#include "Passes.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include <string>

namespace divi::opt {
enum class Emit { Mlir, Problem, Plan, Dot, Onnx, Bundle };
enum class Table { None, Text, Csv };

extern llvm::cl::list<std::string> inputShapes;
extern llvm::cl::list<std::string> dims;
extern llvm::cl::list<std::string> inputValues;
extern llvm::cl::opt<int64_t> batch;
extern llvm::cl::opt<std::string> weightsDir;
extern llvm::cl::opt<std::string> weights;
extern llvm::cl::opt<std::string> cpu;
extern llvm::cl::opt<Emit> emitted;
extern llvm::cl::opt<Table> costTable;
extern llvm::cl::opt<int64_t> tableLimit;
extern llvm::cl::opt<std::string> systemSpec;
extern llvm::cl::opt<std::string> fuseLevel;
extern llvm::cl::opt<int64_t> inputCount;
extern llvm::cl::opt<int64_t> minStageOps;
extern llvm::cl::opt<std::string> report;
extern llvm::cl::opt<std::string> explained;
extern llvm::cl::opt<bool> quiet;
extern llvm::cl::opt<bool> asJson;

/// Whether a plan is made.
bool plans();
/// Whether something else than the module is written.
bool writesText();
/// The files of a plan and of placements that are read; empty where there are none.
std::pair<llvm::StringRef, llvm::StringRef> readByPlanning();
/// The name of the option that asks for something about one module alone; "" if none does.
llvm::StringRef wantsOneModule();
/// Hides the options from `--help` that are neither divi's nor in common use.
void hideOtherOptions();
/// What contradicts itself; "" if nothing does.
std::string contradiction();
/// Options of the partition pass.
PartitionOptions partitionOptions();
} // namespace divi::opt

#endif
