// Names, defaults and descriptions of divi-opt's own options.

#include "Options.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace divi::opt;

// Categories are sorted by name, upper case first.
static cl::OptionCategory category("Divi options");
static cl::OptionCategory planning("Divi options for planning");
static cl::OptionCategory common("MLIR options (--help-all has all of them)");

namespace divi::opt {
cl::list<std::string> inputShapes("input-shape", cl::CommaSeparated, cl::cat(category),
                                  cl::desc("Shapes of the model's inputs; the name may be omitted for a single input"),
                                  cl::value_desc("NAME:8x3x224x224"));
cl::list<std::string> dims("dim", cl::CommaSeparated, cl::cat(category),
                           cl::desc("Sizes of the model's named dimensions"),
                           cl::value_desc("NAME=128"));
cl::list<std::string> inputValues("input-value", cl::cat(category),
                                  cl::desc("Replace an input of an ONNX model by a constant"),
                                  cl::value_desc("NAME=16000|NAME=[1,2]"));
cl::opt<int64_t> batch("batch", cl::init(0), cl::cat(category),
                       cl::desc("Batch size; a multiple of the model's if that is static"), cl::value_desc("N"));
cl::opt<std::string> precision("precision", cl::init("f32"), cl::cat(category),
                               cl::desc("Element type of convolutions and matrix products: f32 (default), bf16, f16, or the "
                                        "fastest (auto)"),
                               cl::value_desc("TYPE"));
cl::list<std::string> precisionExclusions("precision-exclude", cl::cat(category),
                                          cl::desc("Nodes that --precision leaves in f32; * stands for any characters"),
                                          cl::value_desc("PATTERN"));
cl::opt<std::string> markedOutputs("mark-outputs", cl::ValueOptional, cl::cat(category),
                                   cl::desc("Return results of tasks as outputs, for divi-run --compare --by-task; * stands for any "
                                            "characters (default: all)"),
                                   cl::value_desc("PATTERN"));
cl::opt<std::string> weightsDir("weights-dir", cl::cat(category),
                                cl::desc("Folder that the input's references to weights are relative to"),
                                cl::value_desc("DIR"));
cl::opt<std::string> weights("weights", cl::cat(category),
                             cl::desc("Generate random weights from a seed instead of reading their files"),
                             cl::value_desc("random:SEED"));
cl::opt<Emit> emitted(
    "emit", cl::init(Emit::Mlir), cl::cat(category), cl::desc("Output kind"),
    cl::values(clEnumValN(Emit::Mlir, "mlir", "the module (default)"),
               clEnumValN(Emit::Problem, "problem", "the planning problem, as JSON"),
               clEnumValN(Emit::Plan, "plan", "the plan, as JSON"),
               clEnumValN(Emit::Dot, "dot", "the task graph for Graphviz, colored by device"),
               clEnumValN(Emit::Onnx, "onnx", "one ONNX model per stage, and the plan; -o names a folder"),
               clEnumValN(Emit::Bundle, "bundle", "native code for divi-run; -o names a folder")));
cl::opt<std::string> cpu("cpu", cl::init("native"), cl::cat(category),
                         cl::desc("Target processor of --emit=bundle (default: native)"),
                         cl::value_desc("native|x86-64-v3|x86-64-v4|sapphirerapids"));
cl::opt<Table> costTable("cost-table", cl::init(Table::None), cl::ValueOptional, cl::cat(category),
                         cl::desc("Write the costs of the most expensive tasks on each device, instead of the module"),
                         cl::values(clEnumValN(Table::Text, "", "columns"), clEnumValN(Table::Text, "text", "columns"),
                                    clEnumValN(Table::Csv, "csv", "comma-separated values, every task and batch")));
cl::opt<int64_t> tableLimit("cost-table-limit", cl::init(20), cl::cat(category),
                            cl::desc("Number of tasks shown by --cost-table=text (0: all)"), cl::value_desc("N"));
cl::opt<std::string> systemSpec("system", cl::cat(category),
                                cl::desc("Target system: a preset or the path of a description (default: host, unless the "
                                         "input has costs already)"),
                                cl::value_desc("NAME|FILE.toml"));
cl::opt<std::string> fuseLevel("fuse", cl::init("full"), cl::cat(category),
                               cl::desc("Operators that are fused into one task"),
                               cl::value_desc("none|conv|full"));
cl::opt<bool> quiet("q", cl::cat(category), cl::desc("Print errors only"));
cl::opt<bool> asJson("json", cl::cat(planning), cl::desc("Print the summary of the plan on stderr as JSON"));

static cl::opt<bool> partition("partition", cl::cat(planning),
                               cl::desc("Plan the model and outline it into functions, one for each stage"));
static cl::opt<std::string> objective("objective", cl::cat(planning),
                                      cl::desc("Objective to minimize (default: batch if inputs are queued, else latency)"),
                                      cl::value_desc("latency|batch|pipeline"));
static cl::opt<std::string> algorithm("algorithm", cl::init("auto"), cl::cat(planning),
                                      cl::desc("Planning algorithm; divi-plan solve --help lists all"), cl::value_desc("NAME"));
cl::opt<int64_t> inputCount("inputs", cl::init(0), cl::cat(planning),
                            cl::desc("Number of queued inputs, for objective batch"), cl::value_desc("L"));
static cl::opt<std::string> launches("launches", cl::cat(planning),
                                     cl::desc("Number of launches of a task on each device, for objective batch"),
                                     cl::value_desc("one|many"));
static cl::opt<int64_t> stages("k", cl::init(0), cl::cat(planning),
                               cl::desc("Maximum number of pipeline stages (default: one per device)"),
                               cl::value_desc("N"));
static cl::opt<bool> sharedDevices("allow-shared-devices", cl::cat(planning),
                                   cl::desc("Allow several pipeline stages on one device, whose times add up"));
static cl::opt<int64_t> maxBatch("max-batch", cl::init(0), cl::cat(planning),
                                 cl::desc("Maximum number of inputs that a pipeline stage takes at once (default: mostly 1)"),
                                 cl::value_desc("N"));
static cl::opt<int64_t> replicas("replicas", cl::init(0), cl::cat(planning),
                                 cl::desc("Maximum number of equal devices that take turns at a pipeline stage (default: 1)"),
                                 cl::value_desc("N"));
static cl::opt<std::string> pipelineCost("pipeline-cost", cl::cat(planning), cl::desc("Cost model of a pipeline stage"),
                                         cl::value_desc("serial|overlap"));
static cl::opt<std::string> order("order", cl::cat(planning), cl::desc("Search for the orders that slicegraph slices"),
                                  cl::value_desc("brkga|random|mla|mla-weighted"));
static cl::opt<std::string> contention("contention", cl::cat(planning),
                                       cl::desc("Contention of transfers on one bus, instead of the system's setting"),
                                       cl::value_desc("off|exclusive|shared"));
static cl::opt<bool> cold("cold", cl::cat(planning),
                          cl::desc("Cold start: parameters are in host memory and are copied with the input (latency)"));
static cl::opt<double> resident("resident", cl::init(-1), cl::cat(planning),
                                cl::desc("Plan a second start, with a share R of the copied parameters still on their devices"),
                                cl::value_desc("R"));
static cl::opt<double> minGain("min-gain", cl::init(-1), cl::cat(planning),
                               cl::desc("Use several devices only if a single one takes at least a share R longer, as 0.05 "
                                        "for 5 %; by default 2 % if costs are measured, 5 % if they are estimated"),
                               cl::value_desc("R"));
static cl::opt<std::string> symmetry("symmetry", cl::cat(planning),
                                     cl::desc("Symmetry breaking between equal devices and nodes in integer programs"),
                                     cl::value_desc("first-use|batches|tasks|time|off"));
static cl::opt<int64_t> seed("seed", cl::init(1), cl::cat(planning), cl::desc("Seed of search algorithms"),
                             cl::value_desc("N"));
static cl::opt<int64_t> iterations("iterations", cl::init(-1), cl::cat(planning),
                                   cl::desc("Search effort in iterations; reproducible"), cl::value_desc("N"));
static cl::opt<double> timeLimit("time-limit", cl::init(-1), cl::cat(planning),
                                 cl::desc("Time limit of the search in seconds; not reproducible"), cl::value_desc("S"));
static cl::list<std::string> pins("pin", cl::cat(planning),
                                  cl::desc("Pin nodes to a device; * in a node name matches any characters"),
                                  cl::value_desc("PATTERN=DEVICE"));
static cl::list<std::string> exclusions("exclude", cl::cat(planning), cl::desc("Exclude nodes from a device"),
                                        cl::value_desc("PATTERN=DEVICE"));
static cl::list<std::string> groups("colocate", cl::cat(planning),
                                    cl::desc("Co-locate the nodes of a group on one device"),
                                    cl::value_desc("PATTERN=GROUP"));
static cl::list<std::string> hostWeights("host-weights", cl::cat(planning),
                                         cl::desc("Nodes that read their weights from host memory if they run on a GPU"),
                                         cl::value_desc("PATTERN"));
static cl::opt<std::string> placement("placement", cl::cat(planning),
                                      cl::desc("Pins in onnx-mlir's format: regular expressions on node_type and "
                                               "onnx_node_name"),
                                      cl::value_desc("FILE.json"));
static cl::opt<std::string> plan("plan", cl::cat(planning), cl::desc("Replay a plan instead of planning"),
                                 cl::value_desc("FILE.json"));
cl::opt<int64_t> minStageOps("min-stage-ops", cl::init(1), cl::cat(planning),
                             cl::desc("Merge stages with fewer tasks if possible"),
                             cl::value_desc("N"));
cl::opt<int64_t> survivedLosses("survive", cl::init(0), cl::cat(planning),
                                cl::desc("Add to a bundle for several nodes the plans for the loss of any one but the first, with which "
                                         "a job continues (--emit=bundle)"),
                                cl::value_desc("1"));
cl::opt<std::string> report("report", cl::cat(planning),
                            cl::desc("Write a report of the plan: a page, or the timeline only"),
                            cl::value_desc("FILE.html|FILE.svg"));
cl::opt<std::string> explained("explain", cl::cat(planning),
                               cl::desc("Explain the placement of an operator, instead of writing the module"),
                               cl::value_desc("NODE"));

bool plans() {
  return partition || emitted == Emit::Plan || emitted == Emit::Dot || emitted == Emit::Onnx ||
         emitted == Emit::Bundle || !plan.empty() ||
         !report.empty() || !explained.empty();
}

std::pair<StringRef, StringRef> readByPlanning() { return {plan, placement}; }

bool writesText() { return emitted != Emit::Mlir || costTable != Table::None || !explained.empty(); }

StringRef wantsOneModule() {
  switch (emitted) {
  case Emit::Mlir:
    break;
  case Emit::Problem:
    return "--emit=problem";
  case Emit::Plan:
    return "--emit=plan";
  case Emit::Dot:
    return "--emit=dot";
  case Emit::Onnx:
    return "--emit=onnx";
  case Emit::Bundle:
    return "--emit=bundle";
  }
  if (!explained.empty())
    return "--explain";
  return report.empty() ? "" : "--report";
}

void hideOtherOptions() {
  static const StringRef shown[] = {"allow-unregistered-dialect", "emit-bytecode", "list-passes", "mlir-elide-elementsattrs-if-larger",
                                    "mlir-print-debuginfo", "mlir-print-ir-after-all", "mlir-print-ir-after-failure", "mlir-timing",
                                    "pass-pipeline", "show-dialects", "split-input-file", "verify-diagnostics",
                                    "verify-each"};
  auto &options = cl::getRegisteredOptions();
  for (StringRef name : shown)
    if (auto option = options.find(name); option != options.end())
      option->second->addCategory(common);
  cl::HideUnrelatedOptions({&category, &planning, &common});
}

/// Returns the first of the options that is given, or null.
static const cl::Option *given(std::initializer_list<std::reference_wrapper<cl::Option>> options) {
  auto isGiven = [](cl::Option &option) { return option.getNumOccurrences() > 0; };
  const auto *found = find_if(options, isGiven);
  return found == options.end() ? nullptr : &found->get();
}

/// Returns an error for an option that would be ignored: a planning option without a plan, or a problem option without a problem.
static std::string unread() {
  if (plans())
    return "";
  if (const cl::Option *option = given({objective, algorithm, launches, stages, sharedDevices, maxBatch, replicas,
                                        pipelineCost, order, resident, minGain, symmetry, seed, iterations, timeLimit, minStageOps, asJson}))
    return ("--" + option->ArgStr + " requires a plan; add --partition, or remove it").str();
  if (const cl::Option *option =
          given({inputCount, contention, cold, pins, exclusions, groups, hostWeights, placement});
      option && emitted != Emit::Problem)
    return ("--" + option->ArgStr + " requires a plan or a problem; add --partition or --emit=problem").str();
  return "";
}

std::string contradiction() {
  if (batch.getNumOccurrences() && batch < 1)
    return "--batch is " + std::to_string(batch) + ": it must be at least 1";
  bool asked[] = {emitted != Emit::Mlir, costTable != Table::None, !explained.empty()};
  if (count(asked, true) > 1)
    return "--emit, --cost-table and --explain are mutually exclusive";
  if (costTable != Table::None && plans())
    return "--cost-table does not plan; remove --cost-table or the planning options";
  if (!weights.empty() && emitted != Emit::Onnx && emitted != Emit::Bundle)
    return "--weights requires --emit=onnx or --emit=bundle";
  if (!llvm::is_contained({"f32", "bf16", "f16", "auto"}, StringRef(precision)))
    return "--precision is '" + precision + "'; expected f32, bf16, f16 or auto";
  if (!precisionExclusions.empty() && precision == "f32")
    return "--precision-exclude requires --precision=bf16, f16 or auto";
  if (cpu.getNumOccurrences() && emitted != Emit::Bundle && precision != "auto")
    return "--cpu requires --emit=bundle or --precision=auto";
  uint64_t weightSeed;
  if (!weights.empty() &&
      (!StringRef(weights).starts_with("random:") || StringRef(weights).drop_front(7).getAsInteger(10, weightSeed)))
    return "--weights is '" + weights + "'; expected random:SEED, for instance random:1";
  if (inputCount.getNumOccurrences() && inputCount < 1)
    return "--inputs must be positive";
  if (iterations.getNumOccurrences() && iterations < 0)
    return "--iterations must not be negative";
  if (timeLimit.getNumOccurrences() && !(timeLimit >= 0))
    return "--time-limit must be a non-negative number of seconds";
  if (resident.getNumOccurrences() && !(resident >= 0 && resident <= 1))
    return "--resident must be a share from 0 to 1";
  if (minGain.getNumOccurrences() && !(minGain >= 0))
    return "--min-gain must be a non-negative fraction, such as 0.05 for 5 %";
  if (explained.getNumOccurrences() && explained.empty())
    return "--explain needs the name of a node";
  if (iterations >= 0 && timeLimit >= 0)
    return "only one of --iterations and --time-limit can be given";
  if (std::string option = unread(); !option.empty())
    return option;
  if (survivedLosses.getNumOccurrences() && (survivedLosses < 0 || survivedLosses > 1))
    return "--survive is " + std::to_string(survivedLosses) + "; expected the number of nodes that may be lost, 0 or 1";
  if (survivedLosses > 0 && emitted != Emit::Bundle)
    return "--survive requires --emit=bundle";
  if (survivedLosses > 0 && systemSpec.empty())
    return "--survive plans for other systems: name the system with --system";
  if (survivedLosses > 0 && !plan.empty())
    return "--survive plans for other systems, and a replayed plan is for one: remove --plan or --survive";
  if (!report.empty() && !StringRef(report).ends_with(".html") && !StringRef(report).ends_with(".svg"))
    return "--report must name a file that ends in .html or .svg";
  return "";
}

PartitionOptions partitionOptions() {
  auto given = [](const cl::list<std::string> &values) {
    SmallVector<std::string> strings;
    copy_if(values, std::back_inserter(strings), [](const std::string &value) { return !value.empty(); });
    return strings;
  };
  PartitionOptions options;
  options.objective = objective;
  options.algorithm = algorithm;
  options.inputs = inputCount;
  options.launches = launches;
  options.stages = stages;
  options.sharedDevices = sharedDevices;
  options.maxBatch = maxBatch;
  options.replicas = replicas;
  options.pipelineCost = pipelineCost;
  options.order = order;
  options.contention = contention;
  options.symmetry = symmetry;
  options.cold = cold;
  options.resident = resident;
  options.minGain = minGain;
  options.seed = seed;
  options.iterations = iterations;
  options.timeLimit = timeLimit;
  options.pins = given(pins);
  options.exclusions = given(exclusions);
  options.groups = given(groups);
  options.hostWeights = given(hostWeights);
  options.placement = placement;
  options.plan = plan;
  return options;
}
} // namespace divi::opt
