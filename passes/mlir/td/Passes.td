// divi's passes: names, options and statistics. From these records, build/ generates a C++ class for each pass and a
// Rust struct, whose method `run` (src/) is the body of the pass. docs/add-a-pass.md describes how to add a pass or an
// option.

#ifndef DIVI_PASSES
#define DIVI_PASSES

include "mlir/Pass/PassBase.td"

// Option that names a file or a folder: a `PathBuf` in Rust, which need not be UTF-8.
class PathOption<string varName, string arg, string default, string desc>
    : Option<varName, arg, "std::string", default, desc>;

// Option without a default value: an `Option` in Rust, `None` unless it is given. In C++, `unset` means none.
class OptionalOption<string varName, string arg, string valueType, string unset, string desc>
    : Option<varName, arg, valueType, unset, desc>;

// Pass on modules with a body in Rust.
class DiviPass<string passArg> : Pass<passArg, "::mlir::ModuleOp"> {
  // The pass does not change the module: all analyses are preserved.
  bit isReadOnly = 0;
  // The pass shares the session of the driver that creates it, if there is one.
  bit usesSession = 0;
  // The pass produces text, which is written to the option `output`, or to a stream of the driver.
  bit writesText = 0;
}

def InferShapes : DiviPass<"divi-infer-shapes"> {
  let summary = "Infer the types of onnx operators and fold constants";
  let description = [{
    Walks every function once. Results get the inferred types; operators whose results are known become constants (shape
    arithmetic, Identity). Options change the arguments' shapes first, so that the same model is inferred at another batch
    size. Operators that divi does not know keep their types.
  }];
  let options = [
    Option<"batch", "batch", "int64_t", /*default=*/"0",
           "Size of the first dimension of every argument where it is dynamic (0: keep it dynamic)">,
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
  let summary = "Check that the bytes of every constant exist, as code generation requires";
  let description = [{
    Planning does not need weights; code generation does. Read-only: reports constants whose elements were elided from the
    text (`dense_resource<__elided__>`) and references to files that are missing or too short.
  }];
  let options = [
    PathOption<"weightsDir", "weights-dir", /*default=*/"\".\"",
               "Folder that the paths of external constants are relative to">,
  ];
  let statistics = [
    Statistic<"numExternal", "num-external", "Number of constants whose bytes are in files">,
  ];
  let isReadOnly = 1;
}

def VerifyPlan : DiviPass<"divi-verify-plan"> {
  let summary = "Verify the plan in a module and its certificate";
  let description = [{
    Read-only, and shares no code with the passes that make plans. Verifies decisions on tasks (as `divi-partition` writes
    them) and stages with launches and transfers (as `divi-outline` does), for every objective: operands are on the device
    and computed before they are used; a device runs one task at a time and its memory suffices; batches have sizes that
    devices support, and every queued input is run once; pins, exclusions and groups are satisfied; pipelines only flow
    forwards. The objective is recomputed and compared with `divi.plan`.

    A plan whose devices, stages or batches were edited by hand (detected by `decisions` in `divi.plan`) is verified
    without its starts: these are recomputed, on each device in the order of the old ones, and a warning gives the new
    value.

    `model` in `divi.plan` is a fingerprint of the computation, for which stages are transparent. Plans of queued inputs
    have none: the batch sizes of their stages, and so types and constants, differ from those of the model.
  }];
  let isReadOnly = 1;
}

def RebaseWeights : DiviPass<"divi-rebase-weights"> {
  let summary = "Make the paths of external constants relative to another folder";
  let options = [
    PathOption<"from", "from", /*default=*/"\".\"", "Folder that the paths are relative to now">,
    PathOption<"to", "to", /*default=*/"\".\"", "Folder that they will be relative to">,
  ];
  let dependentDialects = ["::divi::DiviDialect"];
}

def Fuse : DiviPass<"divi-fuse"> {
  let summary = "Form clusters of operators that run as one task";
  let description = [{
    Forms `divi.cluster` operations, each a task for the planner: convolutions and matrix products with their epilogues
    (BatchNormalization, bias, activation, residual), normalizations and activations that exporters decompose, Softmax
    with scale and mask, chains of element-wise operators, and views with a neighbor. A cluster never delays or duplicates
    work, so nothing is lost that could have run elsewhere or earlier. Constants stay outside. The pass is idempotent.
  }];
  let options = [
    Option<"level", "level", "std::string", /*default=*/"\"full\"",
           "Extent of fusion: none, conv (convolutions and matrix products only) or full">,
    Option<"maxClusterOps", "max-cluster-ops", "int64_t", /*default=*/"0",
           "Maximum number of operators of a cluster, without views (0: no limit)">,
  ];
  let statistics = [
    Statistic<"numConvolutions", "num-conv-clusters", "Number of clusters around a convolution">,
    Statistic<"numProducts", "num-matmul-clusters", "Number of clusters around a matrix product">,
    Statistic<"numNormalizations", "num-norm-clusters", "Number of normalizations">,
    Statistic<"numSoftmaxes", "num-softmax-clusters", "Number of clusters around a Softmax">,
    Statistic<"numAttentions", "num-attention-clusters", "Number of clusters of attention">,
    Statistic<"numElementwise", "num-elementwise-clusters", "Number of clusters of element-wise operators">,
    Statistic<"numOthers", "num-view-clusters", "Number of clusters of one operator with views">,
    Statistic<"numTasksBefore", "num-tasks-before", "Number of operators before, without constants">,
    Statistic<"numTasksAfter", "num-tasks-after", "Number of operators and clusters after, without constants">,
  ];
  let dependentDialects = ["::divi::DiviDialect", "::divi::onnx::ONNXDialect"];
}

def MarkOutputs : DiviPass<"divi-mark-outputs"> {
  let summary = "Return results of tasks as outputs of the model";
  let description = [{
    Adds the floating-point results of tasks to the results of the function that runs the model, each with the name of the task's
    convolution or matrix product, otherwise of the operator that computes it. `divi.computed_from` on a result lists the results
    that its task reads. Results that are outputs already, and views, are not added. The pass runs after divi-fuse, on a module
    without a plan. `divi-run --compare --by-task` then shows where two bundles differ.
  }];
  let options = [
    Option<"tasks", "tasks", "std::string", /*default=*/"\"*\"", "Pattern of the names of results, with * for any characters">,
  ];
  let statistics = [
    Statistic<"numMarked", "num-marked", "Number of results that became outputs">,
  ];
}

def InlineClusters : DiviPass<"divi-inline-clusters"> {
  let summary = "Replace clusters by their members";
  let description = [{
    Undoes `divi-fuse`. A `divi.pin` or `divi.device` of a cluster is moved to its members.
  }];
  let statistics = [
    Statistic<"numInlined", "num-inlined", "Number of clusters that were inlined">,
  ];
}

def Rebatch : DiviPass<"divi-rebatch"> {
  let summary = "Change the batch size of functions";
  let description = [{
    The batch of a function is the first dimension of its first argument that has one; arguments whose first dimension
    has the same size are batched, others are shared by all inputs. The batch is followed through the operators, and types
    and constants that contain it change: `[1, 12, 128, 64]` as the shape of a Reshape becomes `[8, 12, 128, 64]`. The new
    size must be a multiple of the present one, unless that is dynamic.

    Operators that mix the inputs of a batch, such as a softmax over it, are unrolled: they run once for each multiple
    of the present batch, on a slice, and their results are concatenated. A warning names them. A scalar that such an
    operator computes has no axis to be concatenated on; if it is returned, it gets one. Functions that are called stay
    as they are, and calls are unrolled.
  }];
  let options = [
    Option<"batch", "batch", "int64_t", /*default=*/"0", "Size of the batch">,
  ];
  let statistics = [
    Statistic<"numRepeated", "num-repeated", "Number of operators that were unrolled, because they mix inputs">,
    Statistic<"numConstants", "num-constants", "Number of constants that were created">,
  ];
  let dependentDialects = ["::divi::onnx::ONNXDialect"];
}

def ConvertLinalg : DiviPass<"divi-convert-linalg"> {
  let summary = "Convert linalg operations on tensors to onnx operators";
  let description = [{
    Converts operations on tensors of the linalg, tensor, arith and math dialects to onnx operators, for which there is code on every
    kind of device. Loops and body of a linalg operation determine its operators, whether it has a name or is a linalg.generic:
    products and convolutions in any layout (with groups, strides and dilations), pools, sums, products, minima and maxima over
    some loops, and element-wise functions. Operands are transposed into the order of the loops where necessary. Operations of
    tosa are first converted to these dialects (`--tosa-to-linalg-pipeline`).

    An operation without counterpart stays, with a warning that tells the reason: it can be planned, but not compiled. Shapes
    must be static. The pass runs before divi-fuse, on a module without a plan. `divi.` attributes of an operation are copied to
    its operators.
  }];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Number of operations that were converted">,
    Statistic<"numLeft", "num-left", "Number of operations that were left with a warning">,
  ];
  let dependentDialects = ["::divi::onnx::ONNXDialect"];
}

def ConvertPrecision : DiviPass<"divi-convert-precision"> {
  let summary = "Compute convolutions and matrix products in a half-precision type";
  let description = [{
    Convolutions (Conv, ConvTranspose) and matrix products (MatMul, Gemm) of f32 operands get operands and results of a
    half-precision type. Sums are computed in f32 and rounded once. Operators between them (activations, additions, pooling,
    data movement) follow: they have the type of their operands if these are all of half precision, besides constants.
    Softmax, normalizations, reductions, exponentials and all other operators stay in f32. Casts are inserted where types
    differ. Inputs and outputs of functions keep their types.

    An operator with constants beyond the range of f16 stays in f32 instead of getting infinite constants. `divi.precision` on
    an operator overrides the option. The pass runs before divi-fuse: members of clusters are not converted.

    `auto` is the type that is fastest on all devices of the system: bf16 if they are CPUs with tile registers (AMX), otherwise f32.
  }];
  let options = [
    Option<"precision", "precision", "std::string", /*default=*/"\"f32\"", "Type of convolutions and matrix products: f32, bf16, f16 or auto">,
    ListOption<"exclusions", "exclude", "std::string",
               "Operators that stay in f32: a pattern of their names, with * for any characters">,
    Option<"system", "system", "std::string", /*default=*/"\"\"",
           "The machine of auto: a preset's name or the path of a system description (default: the declared devices, or host)">,
    Option<"cpu", "cpu", "std::string", /*default=*/"\"native\"",
           "The processor of auto: native, x86-64-v3, x86-64-v4 or sapphirerapids">,
  ];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Number of operators that were converted">,
    Statistic<"numCasts", "num-casts", "Number of inserted casts">,
  ];
  let dependentDialects = ["::divi::onnx::ONNXDialect"];
}

def AnnotateCost : DiviPass<"divi-annotate-cost"> {
  let summary = "Annotate every task with its time on every device";
  let description = [{
    Declares the devices and links of a system (`divi.device`, `divi.link`) and annotates every task with its time on each
    device at every batch size that the device supports (`divi.cost`), its operations (`divi.flops`) and bytes
    (`divi.weight_bytes`, `divi.input_bytes`, `divi.output_bytes`, `divi.scratch_bytes`), and its limiting resource
    (`divi.bound`). A task that reads only a part of its weights, such as a lookup in a table, has
    `divi.read_weight_bytes`. A batch of b is b times the module's own batch. Times are measured if the profile of a device
    has the task, interpolated between measured batch sizes or from the main operator of a cluster, and otherwise
    estimated by a model; `divi.costs` on the module has the number of each. Devices that cannot run a task are omitted.
  }];
  let options = [
    Option<"system", "system", "std::string", /*default=*/"\"\"",
           "The machine: a preset's name or the path of a system description (default: host, unless every task has a "
           "cost already)">,
    OptionalOption<"without", "without", "int64_t", "-1",
                   "Index of a node of the machine that is left out, to plan for its loss">,
  ];
  let statistics = [
    Statistic<"numTasks", "num-tasks", "Number of tasks">,
    Statistic<"numMeasured", "num-measured", "Number of times of a task on a device that were measured">,
    Statistic<"numInterpolated", "num-interpolated", "Number of those between measured batches">,
    Statistic<"numCalibrated", "num-calibrated", "Number of those from a model that was fitted to the machine">,
    Statistic<"numEstimated", "num-estimated", "Number of those estimated by a model">,
  ];
  let dependentDialects = ["::divi::DiviDialect"];
}

def PrintCosts : DiviPass<"divi-print-costs"> {
  let summary = "Print the costs of a module's tasks as a table";
  let options = [
    Option<"format", "format", "std::string", /*default=*/"\"text\"",
           "text (the most expensive tasks at the smallest batch) or csv (every task and batch)">,
    Option<"limit", "limit", "int64_t", /*default=*/"20", "Maximum number of tasks in the text (0: all)">,
    PathOption<"output", "output", /*default=*/"\"-\"", "File to write to">,
  ];
  let isReadOnly = 1;
  let writesText = 1;
}

def EmitProblem : DiviPass<"divi-emit-problem"> {
  let summary = "Write the planning problem of a module with costs";
  let description = [{
    The problem is a `divi-problem/1` JSON object: tasks with their times, weights and tensors, devices and links. The
    model's inputs and outputs are tasks of no time on the host.
  }];
  let options = [
    Option<"inputs", "inputs", "int64_t", /*default=*/"1", "Number of queued inputs">,
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
    after this pass can be compiled; for ONNX models, every ONNX operator can be run. A task that no device can run is an
    error, and so is a pin to a device that cannot run the task.
  }];
  let options = [
    Option<"output", "output", "std::string", /*default=*/"\"bundle\"", "Output that the plan is for: bundle or onnx">,
    PathOption<"weightsDir", "weights-dir", /*default=*/"\".\"",
               "Folder that the paths of external constants are relative to">,
    Option<"weights", "weights", "std::string", /*default=*/"\"\"",
           "Source of weights whose files are missing: random:SEED">,
  ];
  let dependentDialects = ["::divi::DiviDialect"];
}

def Partition : DiviPass<"divi-partition"> {
  let summary = "Assign tasks to devices and times, and prove a bound";
  let description = [{
    Solves the planning problem of a module with costs (`divi-emit-problem` writes it). Every task gets `divi.device` and
    `divi.start`, with queued inputs `divi.batches`, in a pipeline `divi.stage`; the module gets the certificate,
    `divi.plan`. If stages of a pipeline take batches or have several devices, `divi.stage` and `divi.batches`: the launches
    for one request, which has `inputs` inputs (an entry of `divi.plan`). Values cross devices implicitly until `divi-outline` inserts transfers.

    Under contention on buses (`divi.contention`), `divi.moves` has the times of transfers; in a cold start (`divi.cold`),
    `divi.copies` has the times at which parameters are copied to devices.

    Constraints are `divi.pin`, `divi.exclude` and `divi.colocate` on operators, and those of the options, which are
    written onto the tasks. They are satisfied, or an error gives the reason why they cannot be. A task with
    `divi.weights = "host"` reads its weights from the host's memory if it runs on a GPU: they are never copied there.
  }];
  let options = [
    Option<"objective", "objective", "std::string", /*default=*/"\"\"",
           "Objective to minimize: latency (one input), batch (all queued inputs) or pipeline (the slowest stage); by "
           "default batch if several inputs are queued, otherwise latency">,
    Option<"algorithm", "algorithm", "std::string", /*default=*/"\"auto\"", "Planning algorithm; divi-plan solve --help lists all">,
    Option<"inputs", "inputs", "int64_t", /*default=*/"0", "Number of queued inputs, for batch">,
    Option<"launches", "launches", "std::string", /*default=*/"\"\"",
           "Number of launches of a task on each device, for batch: many (inputs pass in groups, so that stages overlap) or one">,
    Option<"stages", "k", "int64_t", /*default=*/"0", "Maximum number of stages of a pipeline (0: one per device)">,
    Option<"sharedDevices", "allow-shared-devices", "bool", /*default=*/"false",
           "A device may have several stages of a pipeline, and takes the sum of their times">,
    Option<"maxBatch", "max-batch", "int64_t", /*default=*/"0",
           "Maximum number of inputs that a stage of a pipeline takes at once, of the batch sizes of its device (0: the least "
           "with which every task has a device, mostly 1)">,
    Option<"replicas", "replicas", "int64_t", /*default=*/"0",
           "Maximum number of equal devices that take turns at a stage of a pipeline (0: 1)">,
    Option<"pipelineCost", "pipeline-cost", "std::string", /*default=*/"\"\"",
           "Cost model of a stage: serial (inputs, work, outputs; the default) or overlap (the longest of them)">,
    Option<"order", "order", "std::string", /*default=*/"\"\"",
           "Source of slicegraph's orders: brkga, random, mla or mla-weighted">,
    Option<"contention", "contention", "std::string", /*default=*/"\"\"",
           "Contention between transfers on one bus, instead of the system's: off, exclusive or shared">,
    Option<"symmetry", "symmetry", "std::string", /*default=*/"\"\"",
           "Symmetry breaking of equal devices and nodes in integer programs: first-use (the default), batches, tasks, time or off">,
    Option<"cold", "cold", "bool", /*default=*/"false",
           "Parameters are in the host's memory when an input arrives (latency)">,
    OptionalOption<"resident", "resident", "double", /*unset=*/"-1.0",
                   "Plan a second input after a cold start, with this fraction of the copied parameters still resident">,
    OptionalOption<"minGain", "min-gain", "double", /*unset=*/"-1.0",
                   "Use several devices only if one alone takes longer by at least this fraction, such as 0.05 for 5 %; default: the "
                   "accuracy of the costs, 2 % if they were measured, 3 % if most were, 5 % if they are estimated">,
    Option<"seed", "seed", "int64_t", /*default=*/"1", "Seed of randomized algorithms">,
    OptionalOption<"iterations", "iterations", "int64_t", /*unset=*/"-1", "Limit of iterations; reproducible">,
    OptionalOption<"timeLimit", "time-limit", "double", /*unset=*/"-1.0", "Time limit in seconds; not reproducible">,
    ListOption<"pins", "pin", "std::string", "Pin tasks to a device: PATTERN=DEVICE, with * for any characters of a node's name">,
    ListOption<"exclusions", "exclude", "std::string", "Exclude tasks from a device: PATTERN=DEVICE">,
    ListOption<"groups", "colocate", "std::string", "Tasks that share a device with all others of their group: PATTERN=GROUP">,
    ListOption<"hostWeights", "host-weights", "std::string",
               "PATTERN of tasks that read their weights from the host's memory if they run on a GPU">,
    PathOption<"placement", "placement", /*default=*/"\"\"",
               "File of placements in the format of onnx-mlir: regular expressions on node_type and onnx_node_name">,
    PathOption<"plan", "plan", /*default=*/"\"\"", "File of a plan to replay, instead of planning">,
    Option<"poseOnly", "pose-only", "bool", /*default=*/"false",
           "Write the options that are part of the problem onto the module, without planning">,
  ];
  let dependentDialects = ["::divi::DiviDialect"];
  let usesSession = 1;
}

def Outline : DiviPass<"divi-outline"> {
  let summary = "Make a plan explicit: a function for each stage, launches and transfers";
  let description = [{
    Tasks that a device runs without waiting for another become a private function, a stage, named after the model's
    function, the device and a number (`@main.gpu0.0`). The model's function launches the stages and transfers tensors,
    once to every device that reads them, in order of start. Constants are copied into every stage that reads them. Starts
    that are out of date are updated, and `divi.plan` has the value of the stages.

    With queued inputs (objective batch), the model's function takes the whole queue: `divi.slice` selects inputs of a
    tensor, `divi.gather` concatenates them, and each stage has the batch size of its launch. A pipeline whose stages take
    batches or have several devices takes the inputs of one request in the same way.
  }];
  let options = [
    Option<"minStageOps", "min-stage-ops", "int64_t", /*default=*/"0",
           "Stages of fewer tasks are merged into others, or moved to their devices, where that is possible">,
  ];
  let statistics = [
    Statistic<"numStages", "num-stages", "Number of stages">,
    Statistic<"numTransfers", "num-transfers", "Number of transfers">,
    Statistic<"numElided", "num-transfers-elided", "Number of reads on other devices that needed no transfer of their own">,
    Statistic<"numMerged", "num-merged", "Number of stages that were too small and merged into others">,
  ];
  let dependentDialects = ["::divi::DiviDialect", "::divi::onnx::ONNXDialect"];
  let usesSession = 1;
}

def InlineStages : DiviPass<"divi-inline-stages"> {
  let summary = "Replace launches by the tasks of their stages";
  let description = [{
    Undoes `divi-outline` for plans of one input and of pipelines: every task gets its device and start again, so that the
    plan can be changed by hand and outlined again. Stages of queued inputs and of pipelines of batches are an error.
  }];
  let statistics = [
    Statistic<"numInlined", "num-inlined", "Number of stages that were inlined">,
  ];
}

def EmitOnnx : DiviPass<"divi-emit-onnx"> {
  let summary = "Write a module as ONNX models";
  let description = [{
    An outlined plan becomes a folder: `stages/` has a model for each stage and their weights, `stages.json` describes their
    order and the transfers between them. A module of one function becomes one model, if the output ends in `.onnx`.
    Models use the oldest opset that has all of their operators. Output is written completely or not at all.
  }];
  let options = [
    PathOption<"output", "output", /*default=*/"\"\"", "Folder, or file that ends in .onnx, to write to">,
    PathOption<"weightsDir", "weights-dir", /*default=*/"\".\"",
               "Folder that the paths of external constants are relative to">,
    Option<"weights", "weights", "std::string", /*default=*/"\"\"",
           "Source of weights whose files are missing: random:SEED">,
  ];
  let isReadOnly = 1;
  let usesSession = 1;
}

def EmitBundle : DiviPass<"divi-emit-bundle"> {
  let summary = "Compile a plan for CPUs and GPUs";
  let description = [{
    An outlined plan becomes a bundle, a folder that the runtime runs: `bundle.json` has the steps and the kernels of each
    stage, a shared object the kernels of CPUs, PTX those of GPUs, `weights.bin` the constants in the layouts of kernels.
    Shapes must be static, and GPUs must have an `arch`. Output is written completely or not at all.

    A nested module with `divi.without = N` is the outlined plan for the loss of node N, or has `divi.reason`, the reason why
    there is none. The bundle has its program as well, with shared code and constants.
  }];
  let options = [
    PathOption<"output", "output", /*default=*/"\"\"", "Folder to write to">,
    PathOption<"weightsDir", "weights-dir", /*default=*/"\".\"",
               "Folder that the paths of external constants are relative to">,
    Option<"weights", "weights", "std::string", /*default=*/"\"\"",
           "Source of weights whose files are missing: random:SEED">,
    Option<"cpu", "cpu", "std::string", /*default=*/"\"native\"",
           "The processor to compile for: native, x86-64-v3, x86-64-v4 or sapphirerapids">,
    Option<"model", "model", "std::string", /*default=*/"\"\"", "Name of the model in the bundle">,
  ];
  let isReadOnly = 1;
}

def Canonicalize : DiviPass<"divi-canonicalize"> {
  let summary = "Remove redundant onnx operators";
  let description = [{
    Until a fixed point is reached: no-ops (Identity, Dropout, a Cast to the same type, a Transpose, Reshape, Expand, Pad,
    Slice, Tile or Concat that changes nothing, an addition of zero, a multiplication by one) are replaced by their
    operand, consecutive Transposes and Reshapes become one, operators that compute the same value are merged, constants
    included, and dead operators are removed.

    Functions keep their signatures, and remaining operators their `onnx_node_name`. Operators are only merged with those
    that have the same `divi.pin` and `divi.device`. Random operators are not merged, and operators that divi does not know
    are not changed. Adding `+0.0` is removed although it turns `-0.0` into `+0.0`; everything else is exact.
  }];
  let statistics = [
    Statistic<"numRemoved", "num-removed", "Number of no-ops, and of operators that were merged into their users">,
    Statistic<"numMerged", "num-merged", "Number of duplicate operators">,
    Statistic<"numDead", "num-dead", "Number of dead operators">,
  ];
}

#endif // DIVI_PASSES
