// divi's passes: names, options and statistics. build/ generates from these records a C++ class for each pass and a Rust struct,
// whose method `run` (src/) is the body of the pass. docs/add-a-pass.md says how to add a pass or an option.

#ifndef DIVI_PASSES
#define DIVI_PASSES

include "mlir/Pass/PassBase.td"

// Option that names a file or a folder: a `PathBuf` in Rust, which need not be UTF-8.
class PathOption<string varName, string arg, string default, string desc>
    : Option<varName, arg, "std::string", default, desc>;

// Option without a default value: an `Option` in Rust, `None` unless it is given. In C++, `unset` stands for none.
class OptionalOption<string varName, string arg, string valueType, string unset, string desc>
    : Option<varName, arg, valueType, unset, desc>;

// Pass on modules with a body in Rust.
class DiviPass<string passArg> : Pass<passArg, "::mlir::ModuleOp"> {
  // The pass does not change the module: all analyses are preserved.
  bit isReadOnly = 0;
  // The pass shares the session of the driver that creates it, if there is one.
  bit usesSession = 0;
  // The pass makes a text, which is written to the option `output`, or to a stream of the driver.
  bit writesText = 0;
}

def InferShapes : DiviPass<"divi-infer-shapes"> {
  let summary = "Infer the types of onnx operators and fold what is constant";
  let description = [{
    Walks every function once. Results get the type that shape inference finds; operators whose results are known become
    constants (shape arithmetic, Identity). Options change the arguments' shapes first, so that the same model is
    inferred at another batch size. Operators that divi does not know keep their types.
  }];
  let options = [
    Option<"batch", "batch", "int64_t", /*default=*/"0",
           "Size of the first dimension of every argument that leaves it open (0: leave it open)">,
    ListOption<"inputShapes", "input-shape", "std::string",
               "Shapes of arguments: NAME:8x3x224x224, or 8x3x224x224 for the only one">,
    ListOption<"dims", "dim", "std::string", "Sizes of symbolic dimensions (onnx.dim_params): NAME=128">,
  ];
  let statistics = [
    Statistic<"numInferred", "num-inferred", "Number of results whose type became more precise">,
    Statistic<"numFolded", "num-folded", "Number of operators replaced by constants">,
  ];
  let dependentDialects = ["::divi::onnx::ONNXDialect"];
}

def VerifyWeights : DiviPass<"divi-verify-weights"> {
  let summary = "Check that the bytes of every constant are there, as code generation needs";
  let description = [{
    Planning does without weights; code generation does not. Read-only: reports constants whose elements were elided
    from the text (`dense_resource<__elided__>`) and references to files that are missing or too short.
  }];
  let options = [
    PathOption<"weightsDir", "weights-dir", /*default=*/"\".\"",
               "Folder that the paths of external constants are relative to">,
  ];
  let statistics = [
    Statistic<"numExternal", "num-external", "Number of constants whose bytes lie in files">,
  ];
  let isReadOnly = 1;
}

def VerifyPlan : DiviPass<"divi-verify-plan"> {
  let summary = "Check that the plan in a module holds, and is worth what it says";
  let description = [{
    Read-only, and shares nothing with what made the plan. Judges decisions on tasks (as `divi-partition` writes them) and
    stages with launches and transfers (as `divi-outline` does), for every objective: values are where they are used, and
    not before they can be; a device runs one thing at a time and holds what it has to; batches are of sizes that devices
    take, and every queued input is run once; pins, exclusions and groups hold; pipelines only flow forwards. What was
    minimised is recomputed and compared with `divi.plan`.

    A plan whose devices, stages or batches were edited by hand (`decisions` in `divi.plan` tells) is judged without its
    starts: these are recomputed, each device in the order of the old ones, and a warning says what the plan is worth now.

    `model` in `divi.plan` tells whether the module still computes what was planned; stages are looked through. Plans of
    queued inputs do without: their stages have other batches, and so other types and constants, than the model.
  }];
  let isReadOnly = 1;
}

def RebaseWeights : DiviPass<"divi-rebase-weights"> {
  let summary = "Make the paths of external constants hold from another folder";
  let options = [
    PathOption<"from", "from", /*default=*/"\".\"", "Folder that the paths are relative to now">,
    PathOption<"to", "to", /*default=*/"\".\"", "Folder that they shall be relative to">,
  ];
  let dependentDialects = ["::divi::DiviDialect"];
}

def Fuse : DiviPass<"divi-fuse"> {
  let summary = "Put operators that run as one task into one cluster";
  let description = [{
    Forms `divi.cluster` operations, each a task for the planner: convolutions and products of matrices with what is
    attached to them (BatchNormalization, bias, activation, residual), normalizations and activations that exporters
    spell out, Softmax with scale and mask, chains of element-wise operators, and views with a neighbour. A cluster never
    delays or duplicates work, so that nothing is lost that could have run elsewhere or earlier. Constants stay outside.
    Running the pass again changes nothing.
  }];
  let options = [
    Option<"level", "level", "std::string", /*default=*/"\"full\"",
           "How much is fused: none, conv (convolutions and products of matrices only) or full">,
    Option<"maxClusterOps", "max-cluster-ops", "int64_t", /*default=*/"0",
           "The most operators that a cluster may have, views not counted (0: no limit)">,
  ];
  let statistics = [
    Statistic<"numConvolutions", "num-conv-clusters", "Number of clusters around a convolution">,
    Statistic<"numProducts", "num-matmul-clusters", "Number of clusters around a product of matrices">,
    Statistic<"numNormalizations", "num-norm-clusters", "Number of normalizations">,
    Statistic<"numSoftmaxes", "num-softmax-clusters", "Number of clusters around a Softmax">,
    Statistic<"numElementwise", "num-elementwise-clusters", "Number of clusters of element-wise operators">,
    Statistic<"numOthers", "num-view-clusters", "Number of clusters of one operator with views">,
    Statistic<"numTasksBefore", "num-tasks-before", "Number of operators before, without constants">,
    Statistic<"numTasksAfter", "num-tasks-after", "Number of operators and clusters after, without constants">,
  ];
  let dependentDialects = ["::divi::DiviDialect", "::divi::onnx::ONNXDialect"];
}

def InlineClusters : DiviPass<"divi-inline-clusters"> {
  let summary = "Take clusters away and leave their members";
  let description = [{
    Undoes `divi-fuse`. A `divi.pin` or `divi.device` that a cluster has as a whole goes to its members.
  }];
  let statistics = [
    Statistic<"numInlined", "num-inlined", "Number of clusters taken away">,
  ];
}

def Rebatch : DiviPass<"divi-rebatch"> {
  let summary = "Give functions another batch size";
  let description = [{
    The batch of a function is the first dimension of its first argument that has one; arguments whose first dimension
    has the same size are batched, others are the same for all inputs. It is followed through the operators, and types
    and constants that name it change: `[1, 12, 128, 64]` as the shape of a Reshape becomes `[8, 12, 128, 64]`. The new
    size must be a multiple of the present one, unless that is open.

    Operators that mix the inputs of a batch, such as a softmax over it, are unrolled: they run once for each multiple
    of the present batch, on a slice, and their results are concatenated. A warning names them. A scalar that such an
    operator computes has no axis to be concatenated on; if it is returned, it gets one. Functions that others call stay
    as they are, and calls are unrolled.
  }];
  let options = [
    Option<"batch", "batch", "int64_t", /*default=*/"0", "Size of the batch">,
  ];
  let statistics = [
    Statistic<"numRepeated", "num-repeated", "Number of operators that were unrolled, because they mix inputs">,
    Statistic<"numConstants", "num-constants", "Number of constants that were made">,
  ];
  let dependentDialects = ["::divi::onnx::ONNXDialect"];
}

def AnnotateCost : DiviPass<"divi-annotate-cost"> {
  let summary = "Say of every task what it takes on every device";
  let description = [{
    Declares the devices and links of a system (`divi.device`, `divi.link`) and puts on every task its time on each at
    every batch size that the device supports (`divi.cost`), its operations (`divi.flops`) and bytes
    (`divi.weight_bytes`, `divi.input_bytes`, `divi.output_bytes`, `divi.scratch_bytes`), and what limits it
    (`divi.bound`). What reads only a part of its weights, as a lookup does of a table, has `divi.read_weight_bytes`. A batch
    of b is b times the module as it stands. Times are measured where a device has a profile that knows the task,
    interpolated between batches that it knows or from the operator that a cluster is made around, and estimated by a model
    otherwise; `divi.costs` on the module counts which. A device that a task does not run on is not named.
  }];
  let options = [
    Option<"system", "system", "std::string", /*default=*/"\"\"",
           "The machine: a preset's name or the path of a system description (default: host, unless every task has a "
           "cost already)">,
  ];
  let statistics = [
    Statistic<"numTasks", "num-tasks", "Number of tasks">,
    Statistic<"numMeasured", "num-measured", "Number of times of a task on a device that were measured">,
    Statistic<"numInterpolated", "num-interpolated", "Number of those between measured batches">,
    Statistic<"numEstimated", "num-estimated", "Number of those that a model estimates">,
  ];
  let dependentDialects = ["::divi::DiviDialect"];
}

def PrintCosts : DiviPass<"divi-print-costs"> {
  let summary = "Print the costs of a module's tasks as a table";
  let options = [
    Option<"format", "format", "std::string", /*default=*/"\"text\"",
           "text (the hottest tasks at the smallest batch) or csv (every task and batch)">,
    Option<"limit", "limit", "int64_t", /*default=*/"20", "Tasks that text shows (0: all)">,
    PathOption<"output", "output", /*default=*/"\"-\"", "File to write to">,
  ];
  let isReadOnly = 1;
  let writesText = 1;
}

def EmitProblem : DiviPass<"divi-emit-problem"> {
  let summary = "Write the planning problem that a module with costs poses";
  let description = [{
    The problem is a `divi-problem/1` JSON object: tasks with their times, weights and tensors, devices and links. The
    model's inputs and outputs are tasks of no time on the host.
  }];
  let options = [
    Option<"inputs", "inputs", "int64_t", /*default=*/"1", "Number of inputs that wait to be run">,
    PathOption<"output", "output", /*default=*/"\"-\"", "File to write to">,
  ];
  let isReadOnly = 1;
  let writesText = 1;
}

def ExcludeUnsupported : DiviPass<"divi-exclude-unsupported"> {
  let summary = "Exclude tasks from devices that cannot run them";
  let description = [{
    Adds to `divi.exclude` of every task the devices that cannot run it, with one warning for each device that gives the
    reasons. For a bundle, the back ends that compile the stages decide by operator, types and constants, so that a plan made
    after this pass can be compiled; for ONNX models, every operator of ONNX can be run. A task that no device can run is an
    error, and so is a pin to a device that cannot run the task.
  }];
  let options = [
    Option<"output", "output", "std::string", /*default=*/"\"bundle\"", "What the plan is for: bundle or onnx">,
    PathOption<"weightsDir", "weights-dir", /*default=*/"\".\"",
               "Folder that the paths of external constants are relative to">,
    Option<"weights", "weights", "std::string", /*default=*/"\"\"",
           "Where weights come from whose files are missing: random:SEED">,
  ];
  let dependentDialects = ["::divi::DiviDialect"];
}

def Partition : DiviPass<"divi-partition"> {
  let summary = "Decide which device runs what and when, and prove how good that is";
  let description = [{
    Solves the planning problem that a module with costs poses (`divi-emit-problem` writes it). Every task gets
    `divi.device` and `divi.start`, with queued inputs `divi.batches`, in a pipeline `divi.stage`; the module gets the
    certificate, `divi.plan`. Values cross devices implicitly until `divi-outline` makes transfers of that.

    Where transfers hinder each other on buses (`divi.contention`), `divi.moves` says when they are; in a cold start
    (`divi.cold`), `divi.copies` says when parameters come to where they are needed.

    Constraints are `divi.pin`, `divi.exclude` and `divi.colocate` on operators, and those of the options, which are
    written onto the tasks. They are honoured, or the reason why they cannot be is an error. A task with
    `divi.weights = "host"` reads its weights from the host's memory if it runs on a GPU: they are never copied there.
  }];
  let options = [
    Option<"objective", "objective", "std::string", /*default=*/"\"\"",
           "What is minimised: latency (one input), batch (all queued inputs) or pipeline (the slowest stage); by "
           "default batch where several inputs are queued, else latency">,
    Option<"algorithm", "algorithm", "std::string", /*default=*/"\"auto\"", "Who plans; divi-plan solve --help lists all">,
    Option<"inputs", "inputs", "int64_t", /*default=*/"0", "Number of inputs that wait to be run, for batch">,
    Option<"stages", "k", "int64_t", /*default=*/"0", "Most stages that a pipeline may have (0: one a device)">,
    Option<"sharedDevices", "allow-shared-devices", "bool", /*default=*/"false",
           "A device may have several stages of a pipeline, and takes their sum">,
    Option<"pipelineCost", "pipeline-cost", "std::string", /*default=*/"\"\"",
           "What a stage takes: serial (inputs, work, outputs; the default) or overlap (the longest of them)">,
    Option<"order", "order", "std::string", /*default=*/"\"\"",
           "Where slicegraph's orders come from: brkga, random, mla or mla-weighted">,
    Option<"contention", "contention", "std::string", /*default=*/"\"\"",
           "What transfers on one bus do to each other, instead of what the system says: off, exclusive or shared">,
    Option<"symmetry", "symmetry", "std::string", /*default=*/"\"\"",
           "How integer programs tell equal devices and nodes apart: first-use (the default), batches, tasks, time or off">,
    Option<"cold", "cold", "bool", /*default=*/"false",
           "Parameters are in the host's memory and come with the input (latency)">,
    OptionalOption<"resident", "resident", "double", /*unset=*/"-1.0",
                   "The same once more, with this share of what was copied still where it was">,
    OptionalOption<"minGain", "min-gain", "double", /*unset=*/"-1.0",
                   "Several devices are used only where one alone takes at least this share longer, as 0.05 for 5 %; by default "
                   "what the costs are exact to: 2 % where they were measured, 3 % where most were, 5 % where they are estimated">,
    Option<"seed", "seed", "int64_t", /*default=*/"1", "Of algorithms that search">,
    OptionalOption<"iterations", "iterations", "int64_t", /*unset=*/"-1", "How much they search; reproducible">,
    OptionalOption<"timeLimit", "time-limit", "double", /*unset=*/"-1.0", "How long they search, in seconds; not reproducible">,
    ListOption<"pins", "pin", "std::string", "What runs where: PATTERN=DEVICE, with * for any characters of a node's name">,
    ListOption<"exclusions", "exclude", "std::string", "What does not run where: PATTERN=DEVICE">,
    ListOption<"groups", "colocate", "std::string", "What shares a device with all others of its group: PATTERN=GROUP">,
    ListOption<"hostWeights", "host-weights", "std::string",
               "PATTERN of what reads its weights where they are, in the host's memory, if it runs on a GPU">,
    PathOption<"placement", "placement", /*default=*/"\"\"",
               "File of placements as onnx-mlir has them: regular expressions on node_type and onnx_node_name">,
    PathOption<"plan", "plan", /*default=*/"\"\"", "File of a plan to replay, instead of planning">,
    Option<"poseOnly", "pose-only", "bool", /*default=*/"false",
           "Write what the options say about the problem onto the module, and plan nothing">,
  ];
  let dependentDialects = ["::divi::DiviDialect"];
  let usesSession = 1;
}

def Outline : DiviPass<"divi-outline"> {
  let summary = "Make a plan explicit: a function for each stage, launches and transfers";
  let description = [{
    What a device runs without waiting for another becomes a private function, a stage, called by the model's function, the
    device and a number (`@main.gpu0.0`). The model's function launches the stages and transfers tensors, each once to every
    device that reads it, in the order in which they start. Constants go into every stage that reads them. Starts that are
    out of date are brought up to date, and `divi.plan` says what the stages come to.

    Queued inputs (objective batch) make the model's function one of the whole queue: `divi.slice` takes inputs out of a
    tensor, `divi.gather` puts them together, and each stage is at the batch of its launch.
  }];
  let options = [
    Option<"minStageOps", "min-stage-ops", "int64_t", /*default=*/"0",
           "Stages of fewer tasks become part of others, or move to their devices, where that is possible">,
  ];
  let statistics = [
    Statistic<"numStages", "num-stages", "Number of stages">,
    Statistic<"numTransfers", "num-transfers", "Number of transfers">,
    Statistic<"numElided", "num-transfers-elided", "Number of reads on other devices that needed no transfer of their own">,
    Statistic<"numMerged", "num-merged", "Number of stages that were too small and became part of others">,
  ];
  let dependentDialects = ["::divi::DiviDialect", "::divi::onnx::ONNXDialect"];
  let usesSession = 1;
}

def InlineStages : DiviPass<"divi-inline-stages"> {
  let summary = "Take stages away and leave their tasks where they were launched";
  let description = [{
    Undoes `divi-outline` for plans of one input and of pipelines: every task says again on which device it runs and when,
    so that the plan can be changed by hand and outlined anew. Stages of queued inputs are refused.
  }];
  let statistics = [
    Statistic<"numInlined", "num-inlined", "Number of stages taken away">,
  ];
}

def EmitOnnx : DiviPass<"divi-emit-onnx"> {
  let summary = "Write a module as ONNX models";
  let description = [{
    A plan that was made explicit becomes a folder: `stages/` has a model for each stage and their weights, `stages.json`
    says in which order they run and what moves between them. A module of one function becomes one model, if the output
    ends in `.onnx`. Models are in the oldest opset that has what they use. Output is written whole or not at all.
  }];
  let options = [
    PathOption<"output", "output", /*default=*/"\"\"", "Folder, or file that ends in .onnx, to write to">,
    PathOption<"weightsDir", "weights-dir", /*default=*/"\".\"",
               "Folder that the paths of external constants are relative to">,
    Option<"weights", "weights", "std::string", /*default=*/"\"\"",
           "Where weights come from whose files are missing: random:SEED">,
  ];
  let isReadOnly = 1;
  let usesSession = 1;
}

def EmitBundle : DiviPass<"divi-emit-bundle"> {
  let summary = "Compile a plan for CPUs and GPUs";
  let description = [{
    A plan that was made explicit becomes a bundle, a folder that the runtime runs: `bundle.json` has the steps and what each
    stage calls, a shared object the kernels of CPUs, PTX those of GPUs, `weights.bin` the constants as kernels want them. Shapes
    must be fixed, and GPUs say their `arch`. Output is written whole or not at all.
  }];
  let options = [
    PathOption<"output", "output", /*default=*/"\"\"", "Folder to write to">,
    PathOption<"weightsDir", "weights-dir", /*default=*/"\".\"",
               "Folder that the paths of external constants are relative to">,
    Option<"weights", "weights", "std::string", /*default=*/"\"\"",
           "Where weights come from whose files are missing: random:SEED">,
    Option<"cpu", "cpu", "std::string", /*default=*/"\"native\"",
           "The processor to compile for: native, x86-64-v3 or x86-64-v4">,
    Option<"model", "model", "std::string", /*default=*/"\"\"", "What the bundle calls the model">,
  ];
  let isReadOnly = 1;
}

def Canonicalize : DiviPass<"divi-canonicalize"> {
  let summary = "Take away onnx operators that are not needed";
  let description = [{
    Until nothing is left to do: operators that do nothing (Identity, Dropout, a Cast to the same type, a Transpose,
    Reshape, Expand, Pad, Slice, Tile or Concat that changes nothing, adding zero, multiplying by one) are replaced by
    their operand, Transposes and Reshapes in a row become one, operators that compute the same are merged, constants
    included, and those that nobody uses go.

    Functions keep their signatures, and operators that stay their `onnx_node_name`. Operators are only merged with
    those that have the same `divi.pin` and `divi.device`. Random operators are not merged, and operators that divi does
    not know are not touched. Adding `+0.0` is taken away although it makes `-0.0` positive; all else is exact.
  }];
  let statistics = [
    Statistic<"numRemoved", "num-removed", "Number of operators that did nothing, or that another did the work of">,
    Statistic<"numMerged", "num-merged", "Number of operators that were the same as others">,
    Statistic<"numDead", "num-dead", "Number of operators that nobody used">,
  ];
}

#endif // DIVI_PASSES
