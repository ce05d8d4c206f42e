// Command-line options of divi-opt besides those of MLIR.

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
extern llvm::cl::opt<std::string> precision;
extern llvm::cl::list<std::string> precisionExclusions;
extern llvm::cl::opt<std::string> markedOutputs;
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
extern llvm::cl::opt<int64_t> survivedLosses;
extern llvm::cl::opt<std::string> report;
extern llvm::cl::opt<std::string> explained;
extern llvm::cl::opt<bool> quiet;
extern llvm::cl::opt<bool> asJson;

/// Returns true if a plan is made.
bool plans();
/// Returns true if the output is not the module.
bool writesText();
/// Returns the paths of the plan and of the placement file that are read; empty if not given.
std::pair<llvm::StringRef, llvm::StringRef> readByPlanning();
/// Returns the name of the option that requires a single module; "" if none does.
llvm::StringRef wantsOneModule();
/// Hides the options from `--help` that are neither divi's nor common.
void hideOtherOptions();
/// Returns an error message if options are invalid or contradict each other; "" otherwise.
std::string contradiction();
/// Returns the options of the partition pass.
PartitionOptions partitionOptions();
} // namespace divi::opt

#endif
