// Names, defaults and descriptions of divi-opt's own options.

#include "Options.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace divi::opt;

// Categories are shown in the order of their names, upper case first.
static cl::OptionCategory category("Divi options");
static cl::OptionCategory planning("Divi options for planning");
static cl::OptionCategory common("MLIR options (--help-all has all of them)");

namespace divi::opt {
cl::list<std::string> inputShapes("input-shape", cl::CommaSeparated, cl::cat(category),
                                  cl::desc("Shapes of the model's inputs; the only one needs no name"),
                                  cl::value_desc("NAME:8x3x224x224"));
cl::list<std::string> dims("dim", cl::CommaSeparated, cl::cat(category),
                           cl::desc("Sizes of the dimensions that the model has names for"),
                           cl::value_desc("NAME=128"));
cl::list<std::string> inputValues("input-value", cl::cat(category),
                                  cl::desc("Fix an input of an ONNX model: it becomes a constant, and is no input any more"),
                                  cl::value_desc("NAME=16000|NAME=[1,2]"));
cl::opt<int64_t> batch("batch", cl::init(0), cl::cat(category),
                       cl::desc("Batch size: a multiple of the model's, if that is fixed"), cl::value_desc("N"));
cl::opt<std::string> weightsDir("weights-dir", cl::cat(category),
                                cl::desc("Folder that the input's references to weights are relative to"),
                                cl::value_desc("DIR"));
cl::opt<std::string> weights("weights", cl::cat(category),
                             cl::desc("Where weights come from, if not from their files: made from a seed"),
                             cl::value_desc("random:SEED"));
cl::opt<Emit> emitted(
    "emit", cl::init(Emit::Mlir), cl::cat(category), cl::desc("What to write"),
    cl::values(clEnumValN(Emit::Mlir, "mlir", "the module (default)"),
               clEnumValN(Emit::Problem, "problem", "the planning problem that the model poses, as JSON"),
               clEnumValN(Emit::Plan, "plan", "the plan, as JSON"),
               clEnumValN(Emit::Dot, "dot", "the tasks as a graph for Graphviz, coloured by device"),
               clEnumValN(Emit::Onnx, "onnx", "an ONNX model a stage, and the plan; -o names a folder"),
               clEnumValN(Emit::Bundle, "bundle", "native code that divi-run runs; -o names a folder")));
cl::opt<std::string> cpu("cpu", cl::init("native"), cl::cat(category),
                         cl::desc("The processor that --emit=bundle compiles for (default: native)"),
                         cl::value_desc("native|x86-64-v3|x86-64-v4"));
cl::opt<Table> costTable("cost-table", cl::init(Table::None), cl::ValueOptional, cl::cat(category),
                         cl::desc("Write what the hottest tasks cost on each device, instead of the module"),
                         cl::values(clEnumValN(Table::Text, "", "columns"), clEnumValN(Table::Text, "text", "columns"),
                                    clEnumValN(Table::Csv, "csv", "comma-separated values, every task and batch")));
cl::opt<int64_t> tableLimit("cost-table-limit", cl::init(20), cl::cat(category),
                            cl::desc("Tasks that --cost-table shows as columns (0: all)"), cl::value_desc("N"));
cl::opt<std::string> systemSpec("system", cl::cat(category),
                                cl::desc("The machine: a preset or the path of a description (default: host, unless the "
                                         "input has costs already)"),
                                cl::value_desc("NAME|FILE.toml"));
cl::opt<std::string> fuseLevel("fuse", cl::init("full"), cl::cat(category),
                               cl::desc("What operators become one task before costs are counted"),
                               cl::value_desc("none|conv|full"));
cl::opt<bool> quiet("q", cl::cat(category), cl::desc("Print errors only"));
cl::opt<bool> asJson("json", cl::cat(planning), cl::desc("Say on stderr how good the plan is as JSON"));

static cl::opt<bool> partition("partition", cl::cat(planning),
                               cl::desc("Plan the model and cut it into functions, one for each stage on a device"));
static cl::opt<std::string> objective("objective", cl::cat(planning),
                                      cl::desc("What is minimised (default: batch where inputs are queued, else latency)"),
                                      cl::value_desc("latency|batch|pipeline"));
static cl::opt<std::string> algorithm("algorithm", cl::init("auto"), cl::cat(planning),
                                      cl::desc("Who plans; divi-plan solve --help lists all"), cl::value_desc("NAME"));
cl::opt<int64_t> inputCount("inputs", cl::init(0), cl::cat(planning),
                            cl::desc("Number of inputs that wait to be run, for objective batch"), cl::value_desc("L"));
static cl::opt<int64_t> stages("k", cl::init(0), cl::cat(planning),
                               cl::desc("Most stages that a pipeline may have (default: one a device)"),
                               cl::value_desc("N"));
static cl::opt<bool> sharedDevices("allow-shared-devices", cl::cat(planning),
                                   cl::desc("A device may have several stages of a pipeline, and takes their sum"));
static cl::opt<std::string> pipelineCost("pipeline-cost", cl::cat(planning), cl::desc("What a stage of a pipeline takes"),
                                         cl::value_desc("serial|overlap"));
static cl::opt<std::string> order("order", cl::cat(planning), cl::desc("Where slicegraph's orders come from"),
                                  cl::value_desc("brkga|random|mla|mla-weighted"));
static cl::opt<std::string> contention("contention", cl::cat(planning),
                                       cl::desc("What transfers on one bus do to each other, instead of what the system says"),
                                       cl::value_desc("off|exclusive|shared"));
static cl::opt<bool> cold("cold", cl::cat(planning),
                          cl::desc("Parameters are in the host's memory and come with the input (latency)"));
static cl::opt<double> resident("resident", cl::init(-1), cl::cat(planning),
                                cl::desc("The same once more, with a share R of what was copied still where it was"),
                                cl::value_desc("R"));
static cl::opt<double> minGain("min-gain", cl::init(-1), cl::cat(planning),
                               cl::desc("Use several devices only where one alone takes at least a share R longer, as 0.05 "
                                        "for 5 %; by default 2 % where costs were measured, 5 % where they are estimated"),
                               cl::value_desc("R"));
static cl::opt<std::string> symmetry("symmetry", cl::cat(planning),
                                     cl::desc("How integer programs tell equal devices and nodes apart"),
                                     cl::value_desc("first-use|batches|tasks|time|off"));
static cl::opt<int64_t> seed("seed", cl::init(1), cl::cat(planning), cl::desc("Of algorithms that search"),
                             cl::value_desc("N"));
static cl::opt<int64_t> iterations("iterations", cl::init(-1), cl::cat(planning),
                                   cl::desc("How much they search; reproducible"), cl::value_desc("N"));
static cl::opt<double> timeLimit("time-limit", cl::init(-1), cl::cat(planning),
                                 cl::desc("How long they search, in seconds; not reproducible"), cl::value_desc("S"));
static cl::list<std::string> pins("pin", cl::cat(planning),
                                  cl::desc("What runs where, by the names of nodes with * for any characters"),
                                  cl::value_desc("PATTERN=DEVICE"));
static cl::list<std::string> exclusions("exclude", cl::cat(planning), cl::desc("What does not run where"),
                                        cl::value_desc("PATTERN=DEVICE"));
static cl::list<std::string> groups("colocate", cl::cat(planning),
                                    cl::desc("What shares a device with all others of its group"),
                                    cl::value_desc("PATTERN=GROUP"));
static cl::list<std::string> hostWeights("host-weights", cl::cat(planning),
                                         cl::desc("What reads its weights from the host's memory if it runs on a GPU"),
                                         cl::value_desc("PATTERN"));
static cl::opt<std::string> placement("placement", cl::cat(planning),
                                      cl::desc("Pins as onnx-mlir has them: regular expressions on node_type and "
                                               "onnx_node_name"),
                                      cl::value_desc("FILE.json"));
static cl::opt<std::string> plan("plan", cl::cat(planning), cl::desc("Replay a plan, instead of making one"),
                                 cl::value_desc("FILE.json"));
cl::opt<int64_t> minStageOps("min-stage-ops", cl::init(1), cl::cat(planning),
                             cl::desc("Merge stages that have fewer tasks, wherever that is possible"),
                             cl::value_desc("N"));
cl::opt<std::string> report("report", cl::cat(planning),
                            cl::desc("Write what the plan looks like: a page, or its timeline alone"),
                            cl::value_desc("FILE.html|FILE.svg"));
cl::opt<std::string> explained("explain", cl::cat(planning),
                               cl::desc("Write why an operator runs where it does, instead of the module"),
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

/// What of these is given first, or null.
static const cl::Option *given(std::initializer_list<std::reference_wrapper<cl::Option>> options) {
  auto isGiven = [](cl::Option &option) { return option.getNumOccurrences() > 0; };
  const auto *found = find_if(options, isGiven);
  return found == options.end() ? nullptr : &found->get();
}

/// An option that nobody reads: one that says how to plan where nothing is planned, or about the problem where none is posed.
static std::string unread() {
  if (plans())
    return "";
  if (const cl::Option *option = given({objective, algorithm, stages, sharedDevices, pipelineCost, order, resident,
                                        minGain, symmetry, seed, iterations, timeLimit, minStageOps, asJson}))
    return ("--" + option->ArgStr + " is for plans, and nothing is planned: add --partition, or leave it out").str();
  if (const cl::Option *option =
          given({inputCount, contention, cold, pins, exclusions, groups, hostWeights, placement});
      option && emitted != Emit::Problem)
    return ("--" + option->ArgStr + " is for plans and their problems: add --partition or --emit=problem").str();
  return "";
}

std::string contradiction() {
  if (batch.getNumOccurrences() && batch < 1)
    return "--batch is " + std::to_string(batch) + ": it must be at least 1";
  bool asked[] = {emitted != Emit::Mlir, costTable != Table::None, !explained.empty()};
  if (count(asked, true) > 1)
    return "--emit, --cost-table and --explain each say what is written: give one of them";
  if (costTable != Table::None && plans())
    return "--cost-table writes costs, and plans nothing: leave --partition out, or --cost-table";
  if (!weights.empty() && emitted != Emit::Onnx && emitted != Emit::Bundle)
    return "--weights is for --emit=onnx and --emit=bundle: nothing else needs the bytes of weights";
  if (cpu.getNumOccurrences() && emitted != Emit::Bundle)
    return "--cpu is for --emit=bundle: nothing else is compiled";
  uint64_t weightSeed;
  if (!weights.empty() &&
      (!StringRef(weights).starts_with("random:") || StringRef(weights).drop_front(7).getAsInteger(10, weightSeed)))
    return "--weights is '" + weights + "': it must be random:SEED, as in random:1";
  if (inputCount.getNumOccurrences() && inputCount < 1)
    return "--inputs must be positive";
  if (iterations.getNumOccurrences() && iterations < 0)
    return "--iterations must not be negative";
  if (timeLimit.getNumOccurrences() && !(timeLimit >= 0))
    return "--time-limit must be a number of seconds from 0 on";
  if (resident.getNumOccurrences() && !(resident >= 0 && resident <= 1))
    return "--resident must be a share from 0 to 1";
  if (minGain.getNumOccurrences() && !(minGain >= 0))
    return "--min-gain must be a share from 0 on, as 0.05 for 5 %";
  if (explained.getNumOccurrences() && explained.empty())
    return "--explain needs the name of a node";
  if (iterations >= 0 && timeLimit >= 0)
    return "only one of --iterations and --time-limit can be given";
  if (std::string option = unread(); !option.empty())
    return option;
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
  options.stages = stages;
  options.sharedDevices = sharedDevices;
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
