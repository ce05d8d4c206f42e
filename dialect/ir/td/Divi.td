// The `divi` dialect: the results of planning a model. Devices and links describe the machine, clusters are tasks,
// launches and transfers make a plan explicit.
//
// Discardable attributes on operations of any dialect, verified by this dialect:
//   divi.pin = @gpu0        constraint: the device to run on
//   divi.exclude = [@gpu0]  constraint: devices not to run on
//   divi.colocate = "head"  constraint: a group of operations that run on one device
//   divi.weights = "host"   constraint: memory that holds the parameters ("host" or "device")
//   divi.precision = "f32"  constraint: element type that divi-convert-precision gives it ("f32", "bf16" or "f16")
//   divi.device = @gpu0     decision: the device to run on
//   divi.start = 120.5 : f64            start in microseconds; in a pipeline relative to the start of the stage
//   divi.stage = 2 : i64                index of the pipeline stage
//   divi.batches = [#divi.batch<…>]     replaces divi.device and divi.start for queued inputs: one launch per batch; beside
//                                       divi.stage, the launches for one request of a pipeline of batches
//   divi.moves = [#divi.move<…>]        transfers of the results, if contention on buses is modeled; on the function
//                                       that runs the model, transfers of its arguments
//   divi.end = 130.5 : f64              on a transfer: its end in microseconds, if contention on buses is modeled
//   divi.copies = [#divi.move<…>]       transfers of the parameters from host memory to the device, for cold starts
//   divi.resident = @gpu0               device that holds the parameters from an earlier run
//   divi.inputs = array<i64: 4, 5>      inputs of a launch, of a queue or of a request of a pipeline of batches
//   divi.cost = #divi.cost<…>           time on each device
//   divi.flops = 2048 : i64, divi.bound = {gpu0 = "memory"}, divi.weight_bytes and divi.{input,output,scratch}_bytes
//                           work, and the bottleneck on each device
//   divi.read_weight_bytes = 512 : i64  bytes of the weights that are read, if not all are: rows of a table
//   divi.constant_bytes = 512 : i64     on a computed constant: bytes of the constants that it is computed from
//   divi.costs = {gpu0 = {measured = 3, …}}     on the module: sources of the times
//   divi.contention = "exclusive"               on the module: model of concurrent transfers on one bus
//   divi.cold                                   on the module: parameters are in host memory when an input arrives
//   divi.computed_from = array<i64: 0>  on a result of the function that runs the model, which is the result of a task: the
//                                       results that the task reads, directly or through tasks whose results are none
//   divi.members = ["/conv1/Conv", …]   names of the ONNX nodes of a cluster
//   divi.plan = {objective = …, …}      on the module: the certificate
//   divi.without = 1 : i64              on a nested module: the node that its plan does without
//   divi.reason = "…"                   on a nested module without a plan: the reason

#ifndef DIVI_DIVI
#define DIVI_DIVI

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Divi_Dialect : Dialect {
  let name = "divi";
  let cppNamespace = "::divi";
  let summary = "devices, tasks and plans";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Divi_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<Divi_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Divi_ExternalAttr : Divi_Attr<"External", "external", [TypedAttrInterface]> {
  let summary = "elements of a constant, stored in a file";
  let description = [{
    The path is relative to the IR file. The elements are read by code generation only, so the file need not exist for
    planning.

    ```mlir
    #divi.external<"weights.bin", offset = 4096, length = 37632> : tensor<64x3x7x7xf32>
    ```
  }];
  let parameters = (ins StringRefParameter<"relative to the IR">:$path, "uint64_t":$offset, "uint64_t":$length,
    AttributeSelfTypeParameter<"">:$type);
  let assemblyFormat = "`<` $path `,` `offset` `=` $offset `,` `length` `=` $length `>`";
  let genVerifyDecl = 1;
}

def Divi_CostAttr : Divi_Attr<"Cost", "cost"> {
  let summary = "time in microseconds for each device and batch size";
  let description = [{
    ```mlir
    #divi.cost<@gpu0 = {1 = 37.0, 4 = 58.1}, @cpu0 = {1 = 345.1}>
    ```
    A device that is not named does not support the task.
  }];
  // One entry per device and batch size; entries of one device are adjacent.
  let parameters = (ins ArrayRefParameter<"::mlir::FlatSymbolRefAttr">:$devices, ArrayRefParameter<"int64_t">:$batches,
    ArrayRefParameter<"::mlir::FloatAttr">:$micros);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Divi_BatchAttr : Divi_Attr<"Batch", "batch"> {
  let summary = "one launch of a task for a batch of queued inputs: its device, start and inputs";
  let description = [{
    ```mlir
    #divi.batch<@gpu0, start = 12.5, inputs = [0, 1, 2, 3]>
    ```
    The start is in microseconds; inputs are counted from 0 and strictly increasing.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$device, "::mlir::FloatAttr":$start,
    ArrayRefParameter<"int64_t">:$inputs);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Divi_MoveAttr : Divi_Attr<"Move", "move"> {
  let summary = "start and end of a transfer of a tensor between two devices";
  let description = [{
    ```mlir
    #divi.move<0, @gpu0 -> @gpu1, start = 12.5, end = 20.0>
    ```
    The number is the index of the operation's result or of the function's argument. Times are in microseconds. With
    queued inputs, one transfer moves all inputs of a launch that the destination reads. If a task may have several
    launches on a device, `inputs = [2, 3]` after the end lists them, strictly increasing, counted from 0.
  }];
  let parameters = (ins "int64_t":$index, "::mlir::FlatSymbolRefAttr":$from, "::mlir::FlatSymbolRefAttr":$to,
    "::mlir::FloatAttr":$start, "::mlir::FloatAttr":$end, ArrayRefParameter<"int64_t">:$inputs);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class Divi_Op<string mnemonic, list<Trait> traits = []> : Op<Divi_Dialect, mnemonic, traits>;

def Divi_DeviceOp : Divi_Op<"device", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "processor with its memory";
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$kind, I64Attr:$memory, OptionalAttr<StrAttr>:$arch,
    OptionalAttr<I64ArrayAttr>:$batch_sizes, OptionalAttr<I64Attr>:$threads, OptionalAttr<StrAttr>:$weights,
    OptionalAttr<I64Attr>:$node);
  let description = [{
    `weights` is `"resident"` (the default) or `"streamed"`. Streamed weights stay in host memory and are copied whenever a
    task needs them, so that device memory holds tensors and a few weights at a time.

    `node` is the index of the host that the device belongs to, in a system of several hosts.
  }];
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
}

def Divi_LinkOp : Divi_Op<"link", [HasParent<"::mlir::ModuleOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "directed connection from one device to another";
  let description = "Bandwidth in bytes per second, latency in seconds. Links on one bus share it.";
  let arguments = (ins FlatSymbolRefAttr:$from, FlatSymbolRefAttr:$to, F64Attr:$bandwidth, F64Attr:$latency,
    OptionalAttr<StrAttr>:$bus);
  let assemblyFormat = "$from `->` $to attr-dict";
  let hasVerifier = 1;
}

def Divi_ClusterOp : Divi_Op<"cluster", [IsolatedFromAbove, RecursiveMemoryEffects,
                                         SingleBlockImplicitTerminator<"::divi::YieldOp">]> {
  let summary = "operators that run as one task";
  let arguments = (ins StrAttr:$kind, Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $kind `(` ($inputs^ `:` type($inputs))? `)` custom<Results>(type($results)) attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Divi_YieldOp : Divi_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"::divi::ClusterOp">]> {
  let summary = "returns the results of a cluster";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ /* yields nothing */ }]>];
}

def Divi_TransferOp : Divi_Op<"transfer", [Pure, SameOperandsAndResultType,
                                           DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "moves a tensor to another device";
  let arguments = (ins AnyTensor:$input, FlatSymbolRefAttr:$from, FlatSymbolRefAttr:$to);
  let results = (outs AnyTensor:$output);
  let assemblyFormat = "$input `from` $from `to` $to attr-dict `:` type($input)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Divi_LaunchOp : Divi_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a function on a device as soon as its operands have arrived";
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$inputs, FlatSymbolRefAttr:$device);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$callee `(` $inputs `)` `on` $device attr-dict `:` functional-type($inputs, $results)";
}

def Divi_SliceOp : Divi_Op<"slice", [Pure]> {
  let summary = "extracts some inputs of a batched tensor";
  let description = [{
    ```mlir
    %1 = divi.slice %0[4, 5, 6, 7] of 16 axis 0 : tensor<16x3xf32> -> tensor<4x3xf32>
    ```
    Positions index the inputs of the operand, here 16, which are contiguous along one axis. With `outer 2` the axis
    consists of two parts, each with all inputs. Runs on the device of its operand, in zero time.
  }];
  let arguments = (ins AnyRankedTensor:$input, DenseI64ArrayAttr:$positions, I64Attr:$count, I64Attr:$axis,
    DefaultValuedAttr<I64Attr, "1">:$outer);
  let results = (outs AnyRankedTensor:$output);
  let assemblyFormat = [{
    $input `` $positions `of` $count `axis` $axis (`outer` $outer^)? attr-dict `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Divi_GatherOp : Divi_Op<"gather", [Pure]> {
  let summary = "concatenates the inputs of several batched tensors";
  let description = [{
    ```mlir
    %2 = divi.gather %0 of 4, %1 of 8 axis 0 : (tensor<4x3xf32>, tensor<8x3xf32>) -> tensor<12x3xf32>
    ```
    `axis` and `outer` are those of `divi.slice`. Runs on the device of its operands, in zero time.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, DenseI64ArrayAttr:$counts, I64Attr:$axis,
    DefaultValuedAttr<I64Attr, "1">:$outer);
  let results = (outs AnyRankedTensor:$output);
  let assemblyFormat = [{
    custom<Parts>($inputs, $counts) `axis` $axis (`outer` $outer^)? attr-dict `:` functional-type($inputs, $output)
  }];
  let hasVerifier = 1;
}

#endif // DIVI_DIVI
