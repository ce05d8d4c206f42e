// The `divi` dialect: what planning adds to a model. Devices and links describe the machine, clusters are the tasks,
// launches and transfers are the plan made explicit.
//
// Attributes on operators of any dialect (checked by the dialect wherever they stand):
//   divi.pin = @gpu0        a constraint: this must run there
//   divi.exclude = [@gpu0]  a constraint: this must not run there
//   divi.colocate = "head"  a constraint: all that say the same run on one device
//   divi.device = @gpu0     a decision: this runs there
//   divi.start = 120.5 : f64            when, in microseconds; in a pipeline from the beginning of its stage
//   divi.stage = 2 : i64                which stage of a pipeline it belongs to
//   divi.batches = [#divi.batch<…>]     instead, where inputs are queued: which of them run where and when
//   divi.moves = [#divi.move<…>]        when its results go to other devices, where transfers hinder each other on buses;
//                                       on the function that runs the model, when its arguments do
//   divi.end = 130.5 : f64              on a transfer: when all of it is there, where that is so
//   divi.copies = [#divi.move<…>]       when its parameters go to where it runs, where they are still in the host's memory
//   divi.resident = @gpu0               the device that has its parameters from an earlier run
//   divi.inputs = array<i64: 4, 5>      which of the queued inputs a launch is for
//   divi.cost = #divi.cost<…>           how long it takes where
//   divi.flops = 2048 : i64, divi.bound = {gpu0 = "memory"}, divi.weight_bytes and divi.{input,output,scratch}_bytes
//                           what it does, and what limits it where
//   divi.read_weight_bytes = 512 : i64  what it reads of its weights, where that is not all of them: rows of a table
//   divi.costs = {gpu0 = {measured = 3, …}}     on the module: where the times come from
//   divi.contention = "exclusive"               on the module: what transfers on one bus do to each other
//   divi.cold                                   on the module: parameters are in the host's memory when an input comes
//   divi.members = ["/conv1/Conv", …]   the ONNX nodes a cluster was made of
//   divi.plan = {objective = …, …}      on the module: the certificate

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
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Divi_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<Divi_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Divi_ExternalAttr : Divi_Attr<"External", "external", [TypedAttrInterface]> {
  let summary = "the elements of a constant, as they lie in a file";
  let description = [{
    The path is relative to the file that the IR is in. Nothing is read until code is generated, so the file need not
    be there for planning.

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
  // One entry a device and batch size, those of a device together.
  let parameters = (ins ArrayRefParameter<"::mlir::FlatSymbolRefAttr">:$devices, ArrayRefParameter<"int64_t">:$batches,
    ArrayRefParameter<"::mlir::FloatAttr">:$micros);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Divi_BatchAttr : Divi_Attr<"Batch", "batch"> {
  let summary = "some of the queued inputs, and where and when a task runs for them at once";
  let description = [{
    ```mlir
    #divi.batch<@gpu0, start = 12.5, inputs = [0, 1, 2, 3]>
    ```
    The start is in microseconds; inputs are counted from 0 and in increasing order.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$device, "::mlir::FloatAttr":$start,
    ArrayRefParameter<"int64_t">:$inputs);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Divi_MoveAttr : Divi_Attr<"Move", "move"> {
  let summary = "when a tensor goes from one device to another";
  let description = [{
    ```mlir
    #divi.move<0, @gpu0 -> @gpu1, start = 12.5, end = 20.0>
    ```
    The number says which of the operation's results it is, or which argument of the function. Times are in microseconds.
    With queued inputs, all that are read there go at once.
  }];
  let parameters = (ins "int64_t":$index, "::mlir::FlatSymbolRefAttr":$from, "::mlir::FlatSymbolRefAttr":$to,
    "::mlir::FloatAttr":$start, "::mlir::FloatAttr":$end);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class Divi_Op<string mnemonic, list<Trait> traits = []> : Op<Divi_Dialect, mnemonic, traits>;

def Divi_DeviceOp : Divi_Op<"device", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "a processor with its memory";
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$kind, I64Attr:$memory, OptionalAttr<StrAttr>:$arch,
    OptionalAttr<I64ArrayAttr>:$batch_sizes, OptionalAttr<I64Attr>:$threads, OptionalAttr<StrAttr>:$weights,
    OptionalAttr<I64Attr>:$node);
  let description = [{
    Weights are `"resident"`, which is what they are if nothing is said, or `"streamed"`: then they stay in the host's memory
    and come whenever they are needed, so that the device's memory is for tensors and a few weights at a time.

    `node` says which node of a cluster it is part of, counted from 0.
  }];
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
}

def Divi_LinkOp : Divi_Op<"link", [HasParent<"::mlir::ModuleOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a way for tensors from one device to another";
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
  let summary = "the results of a cluster";
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
  let summary = "runs a function on a device as soon as its operands are there";
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$inputs, FlatSymbolRefAttr:$device);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$callee `(` $inputs `)` `on` $device attr-dict `:` functional-type($inputs, $results)";
}

def Divi_SliceOp : Divi_Op<"slice", [Pure]> {
  let summary = "some of the inputs that a batched tensor is for";
  let description = [{
    ```mlir
    %1 = divi.slice %0[4, 5, 6, 7] of 16 axis 0 : tensor<16x3xf32> -> tensor<4x3xf32>
    ```
    Positions are those in the operand, which is for 16 inputs. They lie on one axis, behind each other; `outer 2` says
    that it is made of two parts, each with all the inputs. Runs where its operand is, and takes no time.
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
  let summary = "the inputs of several batched tensors, one behind the other";
  let description = [{
    ```mlir
    %2 = divi.gather %0 of 4, %1 of 8 axis 0 : (tensor<4x3xf32>, tensor<8x3xf32>) -> tensor<12x3xf32>
    ```
    Axis and parts are as for `divi.slice`. Runs where its operands are, and takes no time.
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
