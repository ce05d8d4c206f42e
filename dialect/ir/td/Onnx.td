// The `onnx` dialect: ONNX's operators with the names and textual forms of onnx-mlir, so that its output can be parsed.
// Unregistered operators are accepted and preserved.

#ifndef DIVI_ONNX
#define DIVI_ONNX

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def ONNX_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::divi::onnx";
  let summary = "ONNX operators, newest opset";
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class ONNX_TypeDef<string name> : TypeDef<ONNX_Dialect, name> {
  let mnemonic = name;
}

def ONNX_String : ONNX_TypeDef<"String"> {
  let summary = "element type of a tensor of strings";
}

class ONNX_Container<string name, string what> : ONNX_TypeDef<name> {
  let summary = what;
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
}

def ONNX_Seq : ONNX_Container<"Seq", "sequence of values of one type">;
def ONNX_Opt : ONNX_Container<"Opt", "optional value">;

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// Verifies the operator against shape inference: rejects operands that violate its definition and results whose type
/// differs from the inferred one.
def ONNX_VerifiedByInference : NativeOpTrait<"VerifiedByInference"> {
  let cppNamespace = "::divi::onnx";
}

class ONNX_Op<string mnemonic, list<Trait> traits = []>
    : Op<ONNX_Dialect, mnemonic, !listconcat(traits, [ONNX_VerifiedByInference])>;

def ONNX_ConstantOp : ONNX_Op<"Constant", [Pure, ConstantLike]> {
  let summary = "tensor known at compile time";
  let description = [{
    Exactly one of the attributes holds the value. The importer always writes `value`: elements, a resource, or a
    reference to bytes in a file (`#divi.external`).
  }];
  let arguments = (ins OptionalAttr<AnyAttr>:$sparse_value, OptionalAttr<AnyAttr>:$value,
    OptionalAttr<F32Attr>:$value_float, OptionalAttr<F32ArrayAttr>:$value_floats,
    OptionalAttr<SI64Attr>:$value_int, OptionalAttr<I64ArrayAttr>:$value_ints,
    OptionalAttr<StrAttr>:$value_string, OptionalAttr<StrArrayAttr>:$value_strings);
  let results = (outs AnyTensor:$output);
  let hasCustomAssemblyFormat = 1;
  let hasFolder = 1;
  let hasVerifier = 1;
}

def ONNX_ConstantOfShapeOp : ONNX_Op<"ConstantOfShape", [Pure]> {
  let summary = "tensor filled with one value, whose shape is an operand";
  let arguments = (ins TensorOf<[I64]>:$input, OptionalAttr<AnyAttr>:$value);
  let results = (outs AnyTensor:$output);
  let assemblyFormat = "`(` $input `)` attr-dict `:` functional-type(operands, results)";
}

def ONNX_NoValueOp : ONNX_Op<"NoValue", [Pure, ConstantLike]> {
  let summary = "placeholder of an absent optional operand";
  let arguments = (ins UnitAttr:$value);
  let results = (outs NoneType:$none_val);
  let hasFolder = 1;
}

def ONNX_ReturnOp : ONNX_Op<"Return", [Pure, Terminator, ReturnLike, ParentOneOf<["::mlir::func::FuncOp"]>]> {
  let summary = "returns from a function";
  let description = "Terminator of functions in onnx-mlir's output; the importer writes `func.return`.";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

def ONNX_YieldOp : ONNX_Op<"Yield", [Pure, Terminator, ReturnLike]> {
  let summary = "terminates a subgraph";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

def ONNX_EntryPointOp : ONNX_Op<"EntryPoint", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "names the function that runs the model";
  let arguments = (ins SymbolRefAttr:$func);
}

def ONNX_BatchNormalizationInferenceModeOp : ONNX_Op<"BatchNormalizationInferenceMode", [Pure]> {
  let summary = "BatchNormalization with fixed mean and variance";
  let arguments = (ins AnyTensor:$X, AnyTensor:$scale, AnyTensor:$B, AnyTensor:$mean, AnyTensor:$var,
    DefaultValuedAttr<F32Attr, "1e-05">:$epsilon, DefaultValuedAttr<F32Attr, "0.9">:$momentum);
  let results = (outs AnyTensor:$Y);
}

def ONNX_MaxPoolSingleOutOp : ONNX_Op<"MaxPoolSingleOut", [Pure]> {
  let summary = "MaxPool without the result Indices";
  let arguments = (ins AnyTensor:$X, DefaultValuedStrAttr<StrAttr, "NOTSET">:$auto_pad,
    DefaultValuedAttr<SI64Attr, "0">:$ceil_mode, OptionalAttr<I64ArrayAttr>:$dilations, I64ArrayAttr:$kernel_shape,
    OptionalAttr<I64ArrayAttr>:$pads, DefaultValuedAttr<SI64Attr, "0">:$storage_order,
    OptionalAttr<I64ArrayAttr>:$strides);
  let results = (outs AnyTensor:$Y);
}

def ONNX_CustomOp : ONNX_Op<"Custom"> {
  let summary = "operator of another domain, preserved as opaque";
  let arguments = (ins Variadic<AnyType>:$inputs, StrAttr:$function_name, OptionalAttr<StrAttr>:$domain_name);
  let results = (outs Variadic<AnyType>:$outputs);
}

include "OnnxOps.td"

#endif // DIVI_ONNX
