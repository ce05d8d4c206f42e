// Written by generate_onnx_ops.py from the schemas of opset 28; do not edit.

def ONNX_AbsOp : ONNX_Op<"Abs", [Pure]> {
  let summary = "ONNX Abs, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$Y);
}

def ONNX_AcosOp : ONNX_Op<"Acos", [Pure]> {
  let summary = "ONNX Acos, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_AcoshOp : ONNX_Op<"Acosh", [Pure]> {
  let summary = "ONNX Acosh, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_AddOp : ONNX_Op<"Add", [Pure]> {
  let summary = "ONNX Add, opset 14";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$C);
}

def ONNX_AffineGridOp : ONNX_Op<"AffineGrid", [Pure]> {
  let summary = "ONNX AffineGrid, opset 20";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$theta,
    TensorOf<[I64]>:$size,
    DefaultValuedAttr<SI64Attr, "0">:$align_corners);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$grid);
}

def ONNX_AndOp : ONNX_Op<"And", [Pure]> {
  let summary = "ONNX And, opset 7";
  let arguments = (ins
    TensorOf<[I1]>:$A,
    TensorOf<[I1]>:$B);
  let results = (outs
    TensorOf<[I1]>:$C);
}

def ONNX_ArgMaxOp : ONNX_Op<"ArgMax", [Pure]> {
  let summary = "ONNX ArgMax, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$data,
    DefaultValuedAttr<SI64Attr, "0">:$axis,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$select_last_index);
  let results = (outs
    TensorOf<[I64]>:$reduced);
}

def ONNX_ArgMinOp : ONNX_Op<"ArgMin", [Pure]> {
  let summary = "ONNX ArgMin, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$data,
    DefaultValuedAttr<SI64Attr, "0">:$axis,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$select_last_index);
  let results = (outs
    TensorOf<[I64]>:$reduced);
}

def ONNX_AsinOp : ONNX_Op<"Asin", [Pure]> {
  let summary = "ONNX Asin, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_AsinhOp : ONNX_Op<"Asinh", [Pure]> {
  let summary = "ONNX Asinh, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_AtanOp : ONNX_Op<"Atan", [Pure]> {
  let summary = "ONNX Atan, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_AtanhOp : ONNX_Op<"Atanh", [Pure]> {
  let summary = "ONNX Atanh, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_AttentionOp : ONNX_Op<"Attention", [Pure]> {
  let summary = "ONNX Attention, opset 25";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$Q,
    TensorOf<[BF16, F16, F32, F64]>:$K,
    TensorOf<[BF16, F16, F32, F64]>:$V,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64, I1, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>, NoneType]>:$attn_mask,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$past_key,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$past_value,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$nonpad_kv_seqlen,
    DefaultValuedAttr<SI64Attr, "0">:$is_causal,
    OptionalAttr<SI64Attr>:$kv_num_heads,
    DefaultValuedAttr<SI64Attr, "-1">:$left_window_size,
    OptionalAttr<SI64Attr>:$q_num_heads,
    DefaultValuedAttr<SI64Attr, "0">:$qk_matmul_output_mode,
    DefaultValuedAttr<SI64Attr, "-1">:$right_window_size,
    OptionalAttr<F32Attr>:$scale,
    DefaultValuedAttr<F32Attr, "0">:$softcap,
    OptionalAttr<SI64Attr>:$softmax_precision);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$present_key,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$present_value,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$qk_matmul_output);
}

def ONNX_AveragePoolOp : ONNX_Op<"AveragePool", [Pure]> {
  let summary = "ONNX AveragePool, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedStrAttr<StrAttr, "NOTSET">:$auto_pad,
    DefaultValuedAttr<SI64Attr, "0">:$ceil_mode,
    DefaultValuedAttr<SI64Attr, "0">:$count_include_pad,
    OptionalAttr<I64ArrayAttr>:$dilations,
    I64ArrayAttr:$kernel_shape,
    OptionalAttr<I64ArrayAttr>:$pads,
    OptionalAttr<I64ArrayAttr>:$strides);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_BatchNormalizationOp : ONNX_Op<"BatchNormalization", [Pure]> {
  let summary = "ONNX BatchNormalization, opset 15";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$scale,
    TensorOf<[BF16, F16, F32, F64]>:$B,
    TensorOf<[BF16, F16, F32, F64]>:$input_mean,
    TensorOf<[BF16, F16, F32, F64]>:$input_var,
    DefaultValuedAttr<F32Attr, "9.99999975e-06">:$epsilon,
    DefaultValuedAttr<F32Attr, "0.899999976">:$momentum,
    DefaultValuedAttr<SI64Attr, "0">:$training_mode);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$running_mean,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$running_var);
}

def ONNX_BernoulliOp : ONNX_Op<"Bernoulli", []> {
  let summary = "ONNX Bernoulli, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input,
    OptionalAttr<SI64Attr>:$dtype,
    OptionalAttr<F32Attr>:$seed);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I1, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_BitCastOp : ONNX_Op<"BitCast", [Pure]> {
  let summary = "ONNX BitCast, opset 26";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$input,
    TypeAttr:$to);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$output);
}

def ONNX_BitShiftOp : ONNX_Op<"BitShift", [Pure]> {
  let summary = "ONNX BitShift, opset 28";
  let arguments = (ins
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$X,
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$Y,
    StrAttr:$direction);
  let results = (outs
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$Z);
}

def ONNX_BitwiseAndOp : ONNX_Op<"BitwiseAnd", [Pure]> {
  let summary = "ONNX BitwiseAnd, opset 18";
  let arguments = (ins
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$C);
}

def ONNX_BitwiseNotOp : ONNX_Op<"BitwiseNot", [Pure]> {
  let summary = "ONNX BitwiseNot, opset 18";
  let arguments = (ins
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$X);
  let results = (outs
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$Y);
}

def ONNX_BitwiseOrOp : ONNX_Op<"BitwiseOr", [Pure]> {
  let summary = "ONNX BitwiseOr, opset 18";
  let arguments = (ins
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$C);
}

def ONNX_BitwiseXorOp : ONNX_Op<"BitwiseXor", [Pure]> {
  let summary = "ONNX BitwiseXor, opset 18";
  let arguments = (ins
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$C);
}

def ONNX_BlackmanWindowOp : ONNX_Op<"BlackmanWindow", [Pure]> {
  let summary = "ONNX BlackmanWindow, opset 17";
  let arguments = (ins
    TensorOf<[I32, I64]>:$size,
    DefaultValuedAttr<SI64Attr, "1">:$output_datatype,
    DefaultValuedAttr<SI64Attr, "1">:$periodic);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_CastOp : ONNX_Op<"Cast", [Pure]> {
  let summary = "ONNX Cast, opset 28";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F4E2M1FN, F64, F6E2M3FN, F6E3M2FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$input,
    DefaultValuedStrAttr<StrAttr, "up">:$round_mode,
    DefaultValuedAttr<SI64Attr, "1">:$saturate,
    TypeAttr:$to);
  let results = (outs
    TensorOf<[BF16, F16, F32, F4E2M1FN, F64, F6E2M3FN, F6E3M2FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$output);
}

def ONNX_CastLikeOp : ONNX_Op<"CastLike", [Pure]> {
  let summary = "ONNX CastLike, opset 25";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$input,
    TensorOf<[BF16, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$target_type,
    DefaultValuedStrAttr<StrAttr, "up">:$round_mode,
    DefaultValuedAttr<SI64Attr, "1">:$saturate);
  let results = (outs
    TensorOf<[BF16, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$output);
}

def ONNX_CausalConvWithStateOp : ONNX_Op<"CausalConvWithState", [Pure]> {
  let summary = "ONNX CausalConvWithState, opset 27";
  let arguments = (ins
    TensorOf<[BF16, F16, F32]>:$input,
    TensorOf<[BF16, F16, F32]>:$weight,
    AnyTypeOf<[TensorOf<[BF16, F16, F32]>, NoneType]>:$bias,
    AnyTypeOf<[TensorOf<[BF16, F16, F32]>, NoneType]>:$past_state,
    DefaultValuedStrAttr<StrAttr, "none">:$activation);
  let results = (outs
    TensorOf<[BF16, F16, F32]>:$output,
    TensorOf<[BF16, F16, F32]>:$present_state);
}

def ONNX_CeilOp : ONNX_Op<"Ceil", [Pure]> {
  let summary = "ONNX Ceil, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_CeluOp : ONNX_Op<"Celu", [Pure]> {
  let summary = "ONNX Celu, opset 28";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedAttr<F32Attr, "1">:$alpha);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_CenterCropPadOp : ONNX_Op<"CenterCropPad", [Pure]> {
  let summary = "ONNX CenterCropPad, opset 18";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input_data,
    TensorOf<[I32, I64]>:$shape,
    OptionalAttr<I64ArrayAttr>:$axes);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output_data);
}

def ONNX_ClipOp : ONNX_Op<"Clip", [Pure]> {
  let summary = "ONNX Clip, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$input,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>, NoneType]>:$min,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>, NoneType]>:$max);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_Col2ImOp : ONNX_Op<"Col2Im", [Pure]> {
  let summary = "ONNX Col2Im, opset 18";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    TensorOf<[I64]>:$image_shape,
    TensorOf<[I64]>:$block_shape,
    OptionalAttr<I64ArrayAttr>:$dilations,
    OptionalAttr<I64ArrayAttr>:$pads,
    OptionalAttr<I64ArrayAttr>:$strides);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_CompressOp : ONNX_Op<"Compress", [Pure]> {
  let summary = "ONNX Compress, opset 28";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    TensorOf<[I1]>:$condition,
    OptionalAttr<SI64Attr>:$axis);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_ConcatOp : ONNX_Op<"Concat", [Pure]> {
  let summary = "ONNX Concat, opset 13";
  let arguments = (ins
    Variadic<TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>>:$inputs,
    SI64Attr:$axis);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$concat_result);
}

def ONNX_ConcatFromSequenceOp : ONNX_Op<"ConcatFromSequence", [Pure]> {
  let summary = "ONNX ConcatFromSequence, opset 11";
  let arguments = (ins
    ONNX_Seq:$input_sequence,
    SI64Attr:$axis,
    DefaultValuedAttr<SI64Attr, "0">:$new_axis);
  let results = (outs
    TensorOf<[Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$concat_result);
}

def ONNX_ConvOp : ONNX_Op<"Conv", [Pure]> {
  let summary = "ONNX Conv, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$W,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$B,
    DefaultValuedStrAttr<StrAttr, "NOTSET">:$auto_pad,
    OptionalAttr<I64ArrayAttr>:$dilations,
    DefaultValuedAttr<SI64Attr, "1">:$group,
    OptionalAttr<I64ArrayAttr>:$kernel_shape,
    OptionalAttr<I64ArrayAttr>:$pads,
    OptionalAttr<I64ArrayAttr>:$strides);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_ConvIntegerOp : ONNX_Op<"ConvInteger", [Pure]> {
  let summary = "ONNX ConvInteger, opset 10";
  let arguments = (ins
    TensorOf<[I8, UI8]>:$x,
    TensorOf<[I8, UI8]>:$w,
    AnyTypeOf<[TensorOf<[I8, UI8]>, NoneType]>:$x_zero_point,
    AnyTypeOf<[TensorOf<[I8, UI8]>, NoneType]>:$w_zero_point,
    DefaultValuedStrAttr<StrAttr, "NOTSET">:$auto_pad,
    OptionalAttr<I64ArrayAttr>:$dilations,
    DefaultValuedAttr<SI64Attr, "1">:$group,
    OptionalAttr<I64ArrayAttr>:$kernel_shape,
    OptionalAttr<I64ArrayAttr>:$pads,
    OptionalAttr<I64ArrayAttr>:$strides);
  let results = (outs
    TensorOf<[I32]>:$y);
}

def ONNX_ConvTransposeOp : ONNX_Op<"ConvTranspose", [Pure]> {
  let summary = "ONNX ConvTranspose, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$W,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$B,
    DefaultValuedStrAttr<StrAttr, "NOTSET">:$auto_pad,
    OptionalAttr<I64ArrayAttr>:$dilations,
    DefaultValuedAttr<SI64Attr, "1">:$group,
    OptionalAttr<I64ArrayAttr>:$kernel_shape,
    OptionalAttr<I64ArrayAttr>:$output_padding,
    OptionalAttr<I64ArrayAttr>:$output_shape,
    OptionalAttr<I64ArrayAttr>:$pads,
    OptionalAttr<I64ArrayAttr>:$strides);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_CosOp : ONNX_Op<"Cos", [Pure]> {
  let summary = "ONNX Cos, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_CoshOp : ONNX_Op<"Cosh", [Pure]> {
  let summary = "ONNX Cosh, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_CumProdOp : ONNX_Op<"CumProd", [Pure]> {
  let summary = "ONNX CumProd, opset 26";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$x,
    TensorOf<[I32, I64]>:$axis,
    DefaultValuedAttr<SI64Attr, "0">:$exclusive,
    DefaultValuedAttr<SI64Attr, "0">:$reverse);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$y);
}

def ONNX_CumSumOp : ONNX_Op<"CumSum", [Pure]> {
  let summary = "ONNX CumSum, opset 14";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$x,
    TensorOf<[I32, I64]>:$axis,
    DefaultValuedAttr<SI64Attr, "0">:$exclusive,
    DefaultValuedAttr<SI64Attr, "0">:$reverse);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$y);
}

def ONNX_DFTOp : ONNX_Op<"DFT", [Pure]> {
  let summary = "ONNX DFT, opset 20";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input,
    AnyTypeOf<[TensorOf<[I32, I64]>, NoneType]>:$dft_length,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axis,
    DefaultValuedAttr<SI64Attr, "0">:$inverse,
    DefaultValuedAttr<SI64Attr, "0">:$onesided);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_DeformConvOp : ONNX_Op<"DeformConv", [Pure]> {
  let summary = "ONNX DeformConv, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$W,
    TensorOf<[BF16, F16, F32, F64]>:$offset,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$B,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$mask,
    OptionalAttr<I64ArrayAttr>:$dilations,
    DefaultValuedAttr<SI64Attr, "1">:$group,
    OptionalAttr<I64ArrayAttr>:$kernel_shape,
    DefaultValuedAttr<SI64Attr, "1">:$offset_group,
    OptionalAttr<I64ArrayAttr>:$pads,
    OptionalAttr<I64ArrayAttr>:$strides);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_DepthToSpaceOp : ONNX_Op<"DepthToSpace", [Pure]> {
  let summary = "ONNX DepthToSpace, opset 28";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    SI64Attr:$blocksize,
    DefaultValuedStrAttr<StrAttr, "DCR">:$mode);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_DequantizeLinearOp : ONNX_Op<"DequantizeLinear", [Pure]> {
  let summary = "ONNX DequantizeLinear, opset 28";
  let arguments = (ins
    TensorOf<[F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I16, I32, I8, I<2>, I<4>, UI16, UI8, UI<2>, UI<4>]>:$x,
    TensorOf<[BF16, F16, F32, F8E8M0FNU]>:$x_scale,
    AnyTypeOf<[TensorOf<[F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I16, I32, I8, I<2>, I<4>, UI16, UI8, UI<2>, UI<4>]>, NoneType]>:$x_zero_point,
    DefaultValuedAttr<SI64Attr, "1">:$axis,
    DefaultValuedAttr<SI64Attr, "0">:$block_size,
    DefaultValuedAttr<SI64Attr, "0">:$output_dtype);
  let results = (outs
    TensorOf<[BF16, F16, F32]>:$y);
}

def ONNX_DetOp : ONNX_Op<"Det", [Pure]> {
  let summary = "ONNX Det, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_DivOp : ONNX_Op<"Div", [Pure]> {
  let summary = "ONNX Div, opset 14";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$C);
}

def ONNX_DropoutOp : ONNX_Op<"Dropout", []> {
  let summary = "ONNX Dropout, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ]>:$data,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ]>, NoneType]>:$ratio,
    AnyTypeOf<[TensorOf<[I1]>, NoneType]>:$training_mode,
    OptionalAttr<SI64Attr>:$seed);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ]>:$output,
    AnyTypeOf<[TensorOf<[I1]>, NoneType]>:$mask);
}

def ONNX_DynamicQuantizeLinearOp : ONNX_Op<"DynamicQuantizeLinear", [Pure]> {
  let summary = "ONNX DynamicQuantizeLinear, opset 11";
  let arguments = (ins
    TensorOf<[F32]>:$x);
  let results = (outs
    TensorOf<[UI8]>:$y,
    TensorOf<[F32]>:$y_scale,
    TensorOf<[UI8]>:$y_zero_point);
}

def ONNX_EinsumOp : ONNX_Op<"Einsum", [Pure]> {
  let summary = "ONNX Einsum, opset 28";
  let arguments = (ins
    Variadic<TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>>:$Inputs,
    StrAttr:$equation);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$Output);
}

def ONNX_EluOp : ONNX_Op<"Elu", [Pure]> {
  let summary = "ONNX Elu, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedAttr<F32Attr, "1">:$alpha);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_EqualOp : ONNX_Op<"Equal", [Pure]> {
  let summary = "ONNX Equal, opset 19";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[BF16, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[I1]>:$C);
}

def ONNX_ErfOp : ONNX_Op<"Erf", [Pure]> {
  let summary = "ONNX Erf, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_ExpOp : ONNX_Op<"Exp", [Pure]> {
  let summary = "ONNX Exp, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_ExpandOp : ONNX_Op<"Expand", [Pure]> {
  let summary = "ONNX Expand, opset 13";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    TensorOf<[I64]>:$shape);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_EyeLikeOp : ONNX_Op<"EyeLike", [Pure]> {
  let summary = "ONNX EyeLike, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I1, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$input,
    OptionalAttr<SI64Attr>:$dtype,
    DefaultValuedAttr<SI64Attr, "0">:$k);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I1, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_FlattenOp : ONNX_Op<"Flatten", [Pure]> {
  let summary = "ONNX Flatten, opset 25";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$input,
    DefaultValuedAttr<SI64Attr, "1">:$axis);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$output);
}

def ONNX_FloorOp : ONNX_Op<"Floor", [Pure]> {
  let summary = "ONNX Floor, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_GRUOp : ONNX_Op<"GRU", [Pure]> {
  let summary = "ONNX GRU, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$W,
    TensorOf<[BF16, F16, F32, F64]>:$R,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$B,
    AnyTypeOf<[TensorOf<[I32]>, NoneType]>:$sequence_lens,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$initial_h,
    OptionalAttr<F32ArrayAttr>:$activation_alpha,
    OptionalAttr<F32ArrayAttr>:$activation_beta,
    OptionalAttr<StrArrayAttr>:$activations,
    OptionalAttr<F32Attr>:$clip,
    DefaultValuedStrAttr<StrAttr, "forward">:$direction,
    OptionalAttr<SI64Attr>:$hidden_size,
    DefaultValuedAttr<SI64Attr, "0">:$layout,
    DefaultValuedAttr<SI64Attr, "0">:$linear_before_reset);
  let results = (outs
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$Y,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$Y_h);
}

def ONNX_GatherOp : ONNX_Op<"Gather", [Pure]> {
  let summary = "ONNX Gather, opset 13";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$data,
    TensorOf<[I32, I64]>:$indices,
    DefaultValuedAttr<SI64Attr, "0">:$axis);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_GatherElementsOp : ONNX_Op<"GatherElements", [Pure]> {
  let summary = "ONNX GatherElements, opset 13";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$data,
    TensorOf<[I32, I64]>:$indices,
    DefaultValuedAttr<SI64Attr, "0">:$axis);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_GatherNDOp : ONNX_Op<"GatherND", [Pure]> {
  let summary = "ONNX GatherND, opset 13";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$data,
    TensorOf<[I64]>:$indices,
    DefaultValuedAttr<SI64Attr, "0">:$batch_dims);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_GeluOp : ONNX_Op<"Gelu", [Pure]> {
  let summary = "ONNX Gelu, opset 20";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedStrAttr<StrAttr, "none">:$approximate);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_GemmOp : ONNX_Op<"Gemm", [Pure]> {
  let summary = "ONNX Gemm, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$A,
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$B,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>, NoneType]>:$C,
    DefaultValuedAttr<F32Attr, "1">:$alpha,
    DefaultValuedAttr<F32Attr, "1">:$beta,
    DefaultValuedAttr<SI64Attr, "0">:$transA,
    DefaultValuedAttr<SI64Attr, "0">:$transB);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$Y);
}

def ONNX_GlobalAveragePoolOp : ONNX_Op<"GlobalAveragePool", [Pure]> {
  let summary = "ONNX GlobalAveragePool, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_GlobalLpPoolOp : ONNX_Op<"GlobalLpPool", [Pure]> {
  let summary = "ONNX GlobalLpPool, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedAttr<SI64Attr, "2">:$p);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_GlobalMaxPoolOp : ONNX_Op<"GlobalMaxPool", [Pure]> {
  let summary = "ONNX GlobalMaxPool, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_GreaterOp : ONNX_Op<"Greater", [Pure]> {
  let summary = "ONNX Greater, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[I1]>:$C);
}

def ONNX_GreaterOrEqualOp : ONNX_Op<"GreaterOrEqual", [Pure]> {
  let summary = "ONNX GreaterOrEqual, opset 16";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[I1]>:$C);
}

def ONNX_GridSampleOp : ONNX_Op<"GridSample", [Pure]> {
  let summary = "ONNX GridSample, opset 22";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$grid,
    DefaultValuedAttr<SI64Attr, "0">:$align_corners,
    DefaultValuedStrAttr<StrAttr, "linear">:$mode,
    DefaultValuedStrAttr<StrAttr, "zeros">:$padding_mode);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$Y);
}

def ONNX_GroupNormalizationOp : ONNX_Op<"GroupNormalization", [Pure]> {
  let summary = "ONNX GroupNormalization, opset 21";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$scale,
    TensorOf<[BF16, F16, F32, F64]>:$bias,
    DefaultValuedAttr<F32Attr, "9.99999975e-06">:$epsilon,
    SI64Attr:$num_groups,
    DefaultValuedAttr<SI64Attr, "1">:$stash_type);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_HammingWindowOp : ONNX_Op<"HammingWindow", [Pure]> {
  let summary = "ONNX HammingWindow, opset 17";
  let arguments = (ins
    TensorOf<[I32, I64]>:$size,
    DefaultValuedAttr<SI64Attr, "1">:$output_datatype,
    DefaultValuedAttr<SI64Attr, "1">:$periodic);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_HannWindowOp : ONNX_Op<"HannWindow", [Pure]> {
  let summary = "ONNX HannWindow, opset 17";
  let arguments = (ins
    TensorOf<[I32, I64]>:$size,
    DefaultValuedAttr<SI64Attr, "1">:$output_datatype,
    DefaultValuedAttr<SI64Attr, "1">:$periodic);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_HardSigmoidOp : ONNX_Op<"HardSigmoid", [Pure]> {
  let summary = "ONNX HardSigmoid, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedAttr<F32Attr, "0.200000003">:$alpha,
    DefaultValuedAttr<F32Attr, "0.5">:$beta);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_HardSwishOp : ONNX_Op<"HardSwish", [Pure]> {
  let summary = "ONNX HardSwish, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_HardmaxOp : ONNX_Op<"Hardmax", [Pure]> {
  let summary = "ONNX Hardmax, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input,
    DefaultValuedAttr<SI64Attr, "-1">:$axis);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_IdentityOp : ONNX_Op<"Identity", [Pure]> {
  let summary = "ONNX Identity, opset 25";
  let arguments = (ins
    AnyTypeOf<[TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>, ONNX_Seq, ONNX_Opt]>:$input);
  let results = (outs
    AnyTypeOf<[TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>, ONNX_Seq, ONNX_Opt]>:$output);
}

def ONNX_ImageDecoderOp : ONNX_Op<"ImageDecoder", [Pure]> {
  let summary = "ONNX ImageDecoder, opset 20";
  let arguments = (ins
    TensorOf<[UI8]>:$encoded_stream,
    DefaultValuedStrAttr<StrAttr, "RGB">:$pixel_format);
  let results = (outs
    TensorOf<[UI8]>:$image);
}

def ONNX_InstanceNormalizationOp : ONNX_Op<"InstanceNormalization", [Pure]> {
  let summary = "ONNX InstanceNormalization, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input,
    TensorOf<[BF16, F16, F32, F64]>:$scale,
    TensorOf<[BF16, F16, F32, F64]>:$B,
    DefaultValuedAttr<F32Attr, "9.99999975e-06">:$epsilon);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_IsInfOp : ONNX_Op<"IsInf", [Pure]> {
  let summary = "ONNX IsInf, opset 20";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ]>:$X,
    DefaultValuedAttr<SI64Attr, "1">:$detect_negative,
    DefaultValuedAttr<SI64Attr, "1">:$detect_positive);
  let results = (outs
    TensorOf<[I1]>:$Y);
}

def ONNX_IsNaNOp : ONNX_Op<"IsNaN", [Pure]> {
  let summary = "ONNX IsNaN, opset 20";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ]>:$X);
  let results = (outs
    TensorOf<[I1]>:$Y);
}

def ONNX_LRNOp : ONNX_Op<"LRN", [Pure]> {
  let summary = "ONNX LRN, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedAttr<F32Attr, "9.99999975e-05">:$alpha,
    DefaultValuedAttr<F32Attr, "0.75">:$beta,
    DefaultValuedAttr<F32Attr, "1">:$bias,
    SI64Attr:$size);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_LSTMOp : ONNX_Op<"LSTM", [Pure]> {
  let summary = "ONNX LSTM, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$W,
    TensorOf<[BF16, F16, F32, F64]>:$R,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$B,
    AnyTypeOf<[TensorOf<[I32]>, NoneType]>:$sequence_lens,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$initial_h,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$initial_c,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$P,
    OptionalAttr<F32ArrayAttr>:$activation_alpha,
    OptionalAttr<F32ArrayAttr>:$activation_beta,
    OptionalAttr<StrArrayAttr>:$activations,
    OptionalAttr<F32Attr>:$clip,
    DefaultValuedStrAttr<StrAttr, "forward">:$direction,
    OptionalAttr<SI64Attr>:$hidden_size,
    DefaultValuedAttr<SI64Attr, "0">:$input_forget,
    DefaultValuedAttr<SI64Attr, "0">:$layout);
  let results = (outs
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$Y,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$Y_h,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$Y_c);
}

def ONNX_LayerNormalizationOp : ONNX_Op<"LayerNormalization", [Pure]> {
  let summary = "ONNX LayerNormalization, opset 17";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$Scale,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$B,
    DefaultValuedAttr<SI64Attr, "-1">:$axis,
    DefaultValuedAttr<F32Attr, "9.99999975e-06">:$epsilon,
    DefaultValuedAttr<SI64Attr, "1">:$stash_type);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y,
    AnyTypeOf<[TensorOf<[BF16, F32]>, NoneType]>:$Mean,
    AnyTypeOf<[TensorOf<[BF16, F32]>, NoneType]>:$InvStdDev);
}

def ONNX_LeakyReluOp : ONNX_Op<"LeakyRelu", [Pure]> {
  let summary = "ONNX LeakyRelu, opset 16";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedAttr<F32Attr, "0.00999999978">:$alpha);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_LessOp : ONNX_Op<"Less", [Pure]> {
  let summary = "ONNX Less, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[I1]>:$C);
}

def ONNX_LessOrEqualOp : ONNX_Op<"LessOrEqual", [Pure]> {
  let summary = "ONNX LessOrEqual, opset 16";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[I1]>:$C);
}

def ONNX_LinearAttentionOp : ONNX_Op<"LinearAttention", [Pure]> {
  let summary = "ONNX LinearAttention, opset 27";
  let arguments = (ins
    TensorOf<[BF16, F16, F32]>:$query,
    TensorOf<[BF16, F16, F32]>:$key,
    TensorOf<[BF16, F16, F32]>:$value,
    AnyTypeOf<[TensorOf<[BF16, F16, F32]>, NoneType]>:$past_state,
    AnyTypeOf<[TensorOf<[BF16, F16, F32]>, NoneType]>:$decay,
    AnyTypeOf<[TensorOf<[BF16, F16, F32]>, NoneType]>:$beta,
    DefaultValuedAttr<SI64Attr, "64">:$chunk_size,
    SI64Attr:$kv_num_heads,
    SI64Attr:$q_num_heads,
    DefaultValuedAttr<F32Attr, "0">:$scale,
    DefaultValuedStrAttr<StrAttr, "gated_delta">:$update_rule);
  let results = (outs
    TensorOf<[BF16, F16, F32]>:$output,
    TensorOf<[BF16, F16, F32]>:$present_state);
}

def ONNX_LogOp : ONNX_Op<"Log", [Pure]> {
  let summary = "ONNX Log, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_LogSoftmaxOp : ONNX_Op<"LogSoftmax", [Pure]> {
  let summary = "ONNX LogSoftmax, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input,
    DefaultValuedAttr<SI64Attr, "-1">:$axis);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_LpNormalizationOp : ONNX_Op<"LpNormalization", [Pure]> {
  let summary = "ONNX LpNormalization, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input,
    DefaultValuedAttr<SI64Attr, "-1">:$axis,
    DefaultValuedAttr<SI64Attr, "2">:$p);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_LpPoolOp : ONNX_Op<"LpPool", [Pure]> {
  let summary = "ONNX LpPool, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedStrAttr<StrAttr, "NOTSET">:$auto_pad,
    DefaultValuedAttr<SI64Attr, "0">:$ceil_mode,
    OptionalAttr<I64ArrayAttr>:$dilations,
    I64ArrayAttr:$kernel_shape,
    DefaultValuedAttr<SI64Attr, "2">:$p,
    OptionalAttr<I64ArrayAttr>:$pads,
    OptionalAttr<I64ArrayAttr>:$strides);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_MatMulOp : ONNX_Op<"MatMul", [Pure]> {
  let summary = "ONNX MatMul, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$A,
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$B);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$Y);
}

def ONNX_MatMulIntegerOp : ONNX_Op<"MatMulInteger", [Pure]> {
  let summary = "ONNX MatMulInteger, opset 10";
  let arguments = (ins
    TensorOf<[I8, UI8]>:$A,
    TensorOf<[I8, UI8]>:$B,
    AnyTypeOf<[TensorOf<[I8, UI8]>, NoneType]>:$a_zero_point,
    AnyTypeOf<[TensorOf<[I8, UI8]>, NoneType]>:$b_zero_point);
  let results = (outs
    TensorOf<[I32]>:$Y);
}

def ONNX_MaxOp : ONNX_Op<"Max", [Pure]> {
  let summary = "ONNX Max, opset 13";
  let arguments = (ins
    Variadic<TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>>:$data_0);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$max);
}

def ONNX_MaxPoolOp : ONNX_Op<"MaxPool", [Pure]> {
  let summary = "ONNX MaxPool, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I8, UI8]>:$X,
    DefaultValuedStrAttr<StrAttr, "NOTSET">:$auto_pad,
    DefaultValuedAttr<SI64Attr, "0">:$ceil_mode,
    OptionalAttr<I64ArrayAttr>:$dilations,
    I64ArrayAttr:$kernel_shape,
    OptionalAttr<I64ArrayAttr>:$pads,
    DefaultValuedAttr<SI64Attr, "0">:$storage_order,
    OptionalAttr<I64ArrayAttr>:$strides);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I8, UI8]>:$Y,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$Indices);
}

def ONNX_MaxRoiPoolOp : ONNX_Op<"MaxRoiPool", [Pure]> {
  let summary = "ONNX MaxRoiPool, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$rois,
    I64ArrayAttr:$pooled_shape,
    DefaultValuedAttr<F32Attr, "1">:$spatial_scale);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_MaxUnpoolOp : ONNX_Op<"MaxUnpool", [Pure]> {
  let summary = "ONNX MaxUnpool, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[I64]>:$I,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$output_shape,
    I64ArrayAttr:$kernel_shape,
    OptionalAttr<I64ArrayAttr>:$pads,
    OptionalAttr<I64ArrayAttr>:$strides);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_MeanOp : ONNX_Op<"Mean", [Pure]> {
  let summary = "ONNX Mean, opset 13";
  let arguments = (ins
    Variadic<TensorOf<[BF16, F16, F32, F64]>>:$data_0);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$mean);
}

def ONNX_MeanVarianceNormalizationOp : ONNX_Op<"MeanVarianceNormalization", [Pure]> {
  let summary = "ONNX MeanVarianceNormalization, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    OptionalAttr<I64ArrayAttr>:$axes);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_MelWeightMatrixOp : ONNX_Op<"MelWeightMatrix", [Pure]> {
  let summary = "ONNX MelWeightMatrix, opset 17";
  let arguments = (ins
    TensorOf<[I32, I64]>:$num_mel_bins,
    TensorOf<[I32, I64]>:$dft_length,
    TensorOf<[I32, I64]>:$sample_rate,
    TensorOf<[BF16, F16, F32, F64]>:$lower_edge_hertz,
    TensorOf<[BF16, F16, F32, F64]>:$upper_edge_hertz,
    DefaultValuedAttr<SI64Attr, "1">:$output_datatype);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_MinOp : ONNX_Op<"Min", [Pure]> {
  let summary = "ONNX Min, opset 13";
  let arguments = (ins
    Variadic<TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>>:$data_0);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$min);
}

def ONNX_MishOp : ONNX_Op<"Mish", [Pure]> {
  let summary = "ONNX Mish, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_ModOp : ONNX_Op<"Mod", [Pure]> {
  let summary = "ONNX Mod, opset 28";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B,
    DefaultValuedAttr<SI64Attr, "0">:$fmod);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$C);
}

def ONNX_MulOp : ONNX_Op<"Mul", [Pure]> {
  let summary = "ONNX Mul, opset 14";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$C);
}

def ONNX_MultinomialOp : ONNX_Op<"Multinomial", []> {
  let summary = "ONNX Multinomial, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input,
    DefaultValuedAttr<SI64Attr, "6">:$dtype,
    DefaultValuedAttr<SI64Attr, "1">:$sample_size,
    OptionalAttr<F32Attr>:$seed);
  let results = (outs
    TensorOf<[I32, I64]>:$output);
}

def ONNX_NegOp : ONNX_Op<"Neg", [Pure]> {
  let summary = "ONNX Neg, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8]>:$Y);
}

def ONNX_NegativeLogLikelihoodLossOp : ONNX_Op<"NegativeLogLikelihoodLoss", [Pure]> {
  let summary = "ONNX NegativeLogLikelihoodLoss, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input,
    TensorOf<[I32, I64]>:$target,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$weight,
    OptionalAttr<SI64Attr>:$ignore_index,
    DefaultValuedStrAttr<StrAttr, "mean">:$reduction);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$loss);
}

def ONNX_NonMaxSuppressionOp : ONNX_Op<"NonMaxSuppression", [Pure]> {
  let summary = "ONNX NonMaxSuppression, opset 11";
  let arguments = (ins
    TensorOf<[F32]>:$boxes,
    TensorOf<[F32]>:$scores,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$max_output_boxes_per_class,
    AnyTypeOf<[TensorOf<[F32]>, NoneType]>:$iou_threshold,
    AnyTypeOf<[TensorOf<[F32]>, NoneType]>:$score_threshold,
    DefaultValuedAttr<SI64Attr, "0">:$center_point_box);
  let results = (outs
    TensorOf<[I64]>:$selected_indices);
}

def ONNX_NonZeroOp : ONNX_Op<"NonZero", [Pure]> {
  let summary = "ONNX NonZero, opset 13";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$X);
  let results = (outs
    TensorOf<[I64]>:$Y);
}

def ONNX_NotOp : ONNX_Op<"Not", [Pure]> {
  let summary = "ONNX Not, opset 1";
  let arguments = (ins
    TensorOf<[I1]>:$X);
  let results = (outs
    TensorOf<[I1]>:$Y);
}

def ONNX_OneHotOp : ONNX_Op<"OneHot", [Pure]> {
  let summary = "ONNX OneHot, opset 28";
  let arguments = (ins
    TensorOf<[F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$indices,
    TensorOf<[F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$depth,
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$values,
    DefaultValuedAttr<SI64Attr, "-1">:$axis);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_OptionalGetElementOp : ONNX_Op<"OptionalGetElement", [Pure]> {
  let summary = "ONNX OptionalGetElement, opset 28";
  let arguments = (ins
    AnyTypeOf<[TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F6E2M3FN, F6E3M2FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>, ONNX_Seq, ONNX_Opt]>:$input);
  let results = (outs
    AnyTypeOf<[TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F6E2M3FN, F6E3M2FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>, ONNX_Seq]>:$output);
}

def ONNX_OptionalHasElementOp : ONNX_Op<"OptionalHasElement", [Pure]> {
  let summary = "ONNX OptionalHasElement, opset 28";
  let arguments = (ins
    AnyTypeOf<[TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F6E2M3FN, F6E3M2FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>, ONNX_Seq, ONNX_Opt, NoneType]>:$input);
  let results = (outs
    TensorOf<[I1]>:$output);
}

def ONNX_OrOp : ONNX_Op<"Or", [Pure]> {
  let summary = "ONNX Or, opset 7";
  let arguments = (ins
    TensorOf<[I1]>:$A,
    TensorOf<[I1]>:$B);
  let results = (outs
    TensorOf<[I1]>:$C);
}

def ONNX_PReluOp : ONNX_Op<"PRelu", [Pure]> {
  let summary = "ONNX PRelu, opset 16";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$X,
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$slope);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$Y);
}

def ONNX_PadOp : ONNX_Op<"Pad", [Pure]> {
  let summary = "ONNX Pad, opset 25";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$data,
    TensorOf<[I64]>:$pads,
    AnyTypeOf<[TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>, NoneType]>:$constant_value,
    AnyTypeOf<[TensorOf<[I32, I64]>, NoneType]>:$axes,
    DefaultValuedStrAttr<StrAttr, "constant">:$mode);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$output);
}

def ONNX_PowOp : ONNX_Op<"Pow", [Pure]> {
  let summary = "ONNX Pow, opset 15";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64]>:$X,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$Y);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64]>:$Z);
}

def ONNX_QLinearConvOp : ONNX_Op<"QLinearConv", [Pure]> {
  let summary = "ONNX QLinearConv, opset 10";
  let arguments = (ins
    TensorOf<[I8, UI8]>:$x,
    TensorOf<[F32]>:$x_scale,
    TensorOf<[I8, UI8]>:$x_zero_point,
    TensorOf<[I8, UI8]>:$w,
    TensorOf<[F32]>:$w_scale,
    TensorOf<[I8, UI8]>:$w_zero_point,
    TensorOf<[F32]>:$y_scale,
    TensorOf<[I8, UI8]>:$y_zero_point,
    AnyTypeOf<[TensorOf<[I32]>, NoneType]>:$B,
    DefaultValuedStrAttr<StrAttr, "NOTSET">:$auto_pad,
    OptionalAttr<I64ArrayAttr>:$dilations,
    DefaultValuedAttr<SI64Attr, "1">:$group,
    OptionalAttr<I64ArrayAttr>:$kernel_shape,
    OptionalAttr<I64ArrayAttr>:$pads,
    OptionalAttr<I64ArrayAttr>:$strides);
  let results = (outs
    TensorOf<[I8, UI8]>:$y);
}

def ONNX_QLinearMatMulOp : ONNX_Op<"QLinearMatMul", [Pure]> {
  let summary = "ONNX QLinearMatMul, opset 21";
  let arguments = (ins
    TensorOf<[F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I8, UI8]>:$a,
    TensorOf<[BF16, F16, F32]>:$a_scale,
    TensorOf<[F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I8, UI8]>:$a_zero_point,
    TensorOf<[F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I8, UI8]>:$b,
    TensorOf<[BF16, F16, F32]>:$b_scale,
    TensorOf<[F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I8, UI8]>:$b_zero_point,
    TensorOf<[BF16, F16, F32]>:$y_scale,
    TensorOf<[F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I8, UI8]>:$y_zero_point);
  let results = (outs
    TensorOf<[F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I8, UI8]>:$y);
}

def ONNX_QuantizeLinearOp : ONNX_Op<"QuantizeLinear", [Pure]> {
  let summary = "ONNX QuantizeLinear, opset 28";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, I32]>:$x,
    TensorOf<[BF16, F16, F32, F8E8M0FNU, I32]>:$y_scale,
    AnyTypeOf<[TensorOf<[F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I16, I8, I<2>, I<4>, UI16, UI8, UI<2>, UI<4>]>, NoneType]>:$y_zero_point,
    DefaultValuedAttr<SI64Attr, "1">:$axis,
    DefaultValuedAttr<SI64Attr, "0">:$block_size,
    DefaultValuedAttr<SI64Attr, "0">:$output_dtype,
    DefaultValuedAttr<SI64Attr, "0">:$precision,
    DefaultValuedAttr<SI64Attr, "1">:$saturate);
  let results = (outs
    TensorOf<[F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I16, I8, I<2>, I<4>, UI16, UI8, UI<2>, UI<4>]>:$y);
}

def ONNX_RMSNormalizationOp : ONNX_Op<"RMSNormalization", [Pure]> {
  let summary = "ONNX RMSNormalization, opset 23";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$scale,
    DefaultValuedAttr<SI64Attr, "-1">:$axis,
    DefaultValuedAttr<F32Attr, "9.99999975e-06">:$epsilon,
    DefaultValuedAttr<SI64Attr, "1">:$stash_type);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_RNNOp : ONNX_Op<"RNN", [Pure]> {
  let summary = "ONNX RNN, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$W,
    TensorOf<[BF16, F16, F32, F64]>:$R,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$B,
    AnyTypeOf<[TensorOf<[I32]>, NoneType]>:$sequence_lens,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$initial_h,
    OptionalAttr<F32ArrayAttr>:$activation_alpha,
    OptionalAttr<F32ArrayAttr>:$activation_beta,
    OptionalAttr<StrArrayAttr>:$activations,
    OptionalAttr<F32Attr>:$clip,
    DefaultValuedStrAttr<StrAttr, "forward">:$direction,
    OptionalAttr<SI64Attr>:$hidden_size,
    DefaultValuedAttr<SI64Attr, "0">:$layout);
  let results = (outs
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$Y,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$Y_h);
}

def ONNX_RandomNormalOp : ONNX_Op<"RandomNormal", []> {
  let summary = "ONNX RandomNormal, opset 22";
  let arguments = (ins
    DefaultValuedAttr<SI64Attr, "1">:$dtype,
    DefaultValuedAttr<F32Attr, "0">:$mean,
    DefaultValuedAttr<F32Attr, "1">:$scale,
    OptionalAttr<F32Attr>:$seed,
    I64ArrayAttr:$shape);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_RandomNormalLikeOp : ONNX_Op<"RandomNormalLike", []> {
  let summary = "ONNX RandomNormalLike, opset 22";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    OptionalAttr<SI64Attr>:$dtype,
    DefaultValuedAttr<F32Attr, "0">:$mean,
    DefaultValuedAttr<F32Attr, "1">:$scale,
    OptionalAttr<F32Attr>:$seed);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_RandomUniformOp : ONNX_Op<"RandomUniform", []> {
  let summary = "ONNX RandomUniform, opset 22";
  let arguments = (ins
    DefaultValuedAttr<SI64Attr, "1">:$dtype,
    DefaultValuedAttr<F32Attr, "1">:$high,
    DefaultValuedAttr<F32Attr, "0">:$low,
    OptionalAttr<F32Attr>:$seed,
    I64ArrayAttr:$shape);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_RandomUniformLikeOp : ONNX_Op<"RandomUniformLike", []> {
  let summary = "ONNX RandomUniformLike, opset 22";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    OptionalAttr<SI64Attr>:$dtype,
    DefaultValuedAttr<F32Attr, "1">:$high,
    DefaultValuedAttr<F32Attr, "0">:$low,
    OptionalAttr<F32Attr>:$seed);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_RangeOp : ONNX_Op<"Range", [Pure]> {
  let summary = "ONNX Range, opset 27";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64]>:$start,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64]>:$limit,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64]>:$delta,
    DefaultValuedAttr<SI64Attr, "1">:$stash_type);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64]>:$output);
}

def ONNX_ReciprocalOp : ONNX_Op<"Reciprocal", [Pure]> {
  let summary = "ONNX Reciprocal, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_ReduceL1Op : ONNX_Op<"ReduceL1", [Pure]> {
  let summary = "ONNX ReduceL1, opset 18";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$data,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axes,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$noop_with_empty_axes);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$reduced);
}

def ONNX_ReduceL2Op : ONNX_Op<"ReduceL2", [Pure]> {
  let summary = "ONNX ReduceL2, opset 18";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$data,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axes,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$noop_with_empty_axes);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$reduced);
}

def ONNX_ReduceLogSumOp : ONNX_Op<"ReduceLogSum", [Pure]> {
  let summary = "ONNX ReduceLogSum, opset 28";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$data,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axes,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$noop_with_empty_axes);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$reduced);
}

def ONNX_ReduceLogSumExpOp : ONNX_Op<"ReduceLogSumExp", [Pure]> {
  let summary = "ONNX ReduceLogSumExp, opset 28";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$data,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axes,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$noop_with_empty_axes);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$reduced);
}

def ONNX_ReduceMaxOp : ONNX_Op<"ReduceMax", [Pure]> {
  let summary = "ONNX ReduceMax, opset 20";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I1, I32, I64, I8, UI32, UI64, UI8]>:$data,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axes,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$noop_with_empty_axes);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I1, I32, I64, I8, UI32, UI64, UI8]>:$reduced);
}

def ONNX_ReduceMeanOp : ONNX_Op<"ReduceMean", [Pure]> {
  let summary = "ONNX ReduceMean, opset 18";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$data,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axes,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$noop_with_empty_axes);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$reduced);
}

def ONNX_ReduceMinOp : ONNX_Op<"ReduceMin", [Pure]> {
  let summary = "ONNX ReduceMin, opset 20";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I1, I32, I64, I8, UI32, UI64, UI8]>:$data,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axes,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$noop_with_empty_axes);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I1, I32, I64, I8, UI32, UI64, UI8]>:$reduced);
}

def ONNX_ReduceProdOp : ONNX_Op<"ReduceProd", [Pure]> {
  let summary = "ONNX ReduceProd, opset 18";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$data,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axes,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$noop_with_empty_axes);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$reduced);
}

def ONNX_ReduceSumOp : ONNX_Op<"ReduceSum", [Pure]> {
  let summary = "ONNX ReduceSum, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$data,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axes,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$noop_with_empty_axes);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$reduced);
}

def ONNX_ReduceSumSquareOp : ONNX_Op<"ReduceSumSquare", [Pure]> {
  let summary = "ONNX ReduceSumSquare, opset 18";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$data,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axes,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims,
    DefaultValuedAttr<SI64Attr, "0">:$noop_with_empty_axes);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I32, I64, UI32, UI64]>:$reduced);
}

def ONNX_RegexFullMatchOp : ONNX_Op<"RegexFullMatch", [Pure]> {
  let summary = "ONNX RegexFullMatch, opset 20";
  let arguments = (ins
    TensorOf<[ONNX_String]>:$X,
    OptionalAttr<StrAttr>:$pattern);
  let results = (outs
    TensorOf<[I1]>:$Y);
}

def ONNX_ReluOp : ONNX_Op<"Relu", [Pure]> {
  let summary = "ONNX Relu, opset 14";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8]>:$Y);
}

def ONNX_ReshapeOp : ONNX_Op<"Reshape", [Pure]> {
  let summary = "ONNX Reshape, opset 25";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$data,
    TensorOf<[I64]>:$shape,
    DefaultValuedAttr<SI64Attr, "0">:$allowzero);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$reshaped);
}

def ONNX_ResizeOp : ONNX_Op<"Resize", [Pure]> {
  let summary = "ONNX Resize, opset 19";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$X,
    AnyTypeOf<[TensorOf<[F16, F32, F64]>, NoneType]>:$roi,
    AnyTypeOf<[TensorOf<[F32]>, NoneType]>:$scales,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$sizes,
    DefaultValuedAttr<SI64Attr, "0">:$antialias,
    OptionalAttr<I64ArrayAttr>:$axes,
    DefaultValuedStrAttr<StrAttr, "half_pixel">:$coordinate_transformation_mode,
    DefaultValuedAttr<F32Attr, "-0.75">:$cubic_coeff_a,
    DefaultValuedAttr<SI64Attr, "0">:$exclude_outside,
    DefaultValuedAttr<F32Attr, "0">:$extrapolation_value,
    DefaultValuedStrAttr<StrAttr, "stretch">:$keep_aspect_ratio_policy,
    DefaultValuedStrAttr<StrAttr, "nearest">:$mode,
    DefaultValuedStrAttr<StrAttr, "round_prefer_floor">:$nearest_mode);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$Y);
}

def ONNX_ReverseSequenceOp : ONNX_Op<"ReverseSequence", [Pure]> {
  let summary = "ONNX ReverseSequence, opset 28";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    TensorOf<[I64]>:$sequence_lens,
    DefaultValuedAttr<SI64Attr, "1">:$batch_axis,
    DefaultValuedAttr<SI64Attr, "0">:$time_axis);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$Y);
}

def ONNX_RoiAlignOp : ONNX_Op<"RoiAlign", [Pure]> {
  let summary = "ONNX RoiAlign, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    TensorOf<[BF16, F16, F32, F64]>:$rois,
    TensorOf<[I64]>:$batch_indices,
    DefaultValuedStrAttr<StrAttr, "half_pixel">:$coordinate_transformation_mode,
    DefaultValuedStrAttr<StrAttr, "avg">:$mode,
    DefaultValuedAttr<SI64Attr, "1">:$output_height,
    DefaultValuedAttr<SI64Attr, "1">:$output_width,
    DefaultValuedAttr<SI64Attr, "0">:$sampling_ratio,
    DefaultValuedAttr<F32Attr, "1">:$spatial_scale);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_RotaryEmbeddingOp : ONNX_Op<"RotaryEmbedding", [Pure]> {
  let summary = "ONNX RotaryEmbedding, opset 23";
  let arguments = (ins
    TensorOf<[BF16, F16, F32]>:$X,
    TensorOf<[BF16, F16, F32]>:$cos_cache,
    TensorOf<[BF16, F16, F32]>:$sin_cache,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$position_ids,
    DefaultValuedAttr<SI64Attr, "0">:$interleaved,
    OptionalAttr<SI64Attr>:$num_heads,
    DefaultValuedAttr<SI64Attr, "0">:$rotary_embedding_dim);
  let results = (outs
    TensorOf<[BF16, F16, F32]>:$Y);
}

def ONNX_RoundOp : ONNX_Op<"Round", [Pure]> {
  let summary = "ONNX Round, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_STFTOp : ONNX_Op<"STFT", [Pure]> {
  let summary = "ONNX STFT, opset 17";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$signal,
    TensorOf<[I32, I64]>:$frame_step,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$window,
    AnyTypeOf<[TensorOf<[I32, I64]>, NoneType]>:$frame_length,
    DefaultValuedAttr<SI64Attr, "1">:$onesided);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_ScatterElementsOp : ONNX_Op<"ScatterElements", [Pure]> {
  let summary = "ONNX ScatterElements, opset 18";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$data,
    TensorOf<[I32, I64]>:$indices,
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$updates,
    DefaultValuedAttr<SI64Attr, "0">:$axis,
    DefaultValuedStrAttr<StrAttr, "none">:$reduction);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_ScatterNDOp : ONNX_Op<"ScatterND", [Pure]> {
  let summary = "ONNX ScatterND, opset 18";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$data,
    TensorOf<[I64]>:$indices,
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$updates,
    DefaultValuedStrAttr<StrAttr, "none">:$reduction);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_SeluOp : ONNX_Op<"Selu", [Pure]> {
  let summary = "ONNX Selu, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedAttr<F32Attr, "1.67326319">:$alpha,
    DefaultValuedAttr<F32Attr, "1.05070102">:$gamma);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_SequenceAtOp : ONNX_Op<"SequenceAt", [Pure]> {
  let summary = "ONNX SequenceAt, opset 11";
  let arguments = (ins
    ONNX_Seq:$input_sequence,
    TensorOf<[I32, I64]>:$position);
  let results = (outs
    TensorOf<[Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$tensor);
}

def ONNX_SequenceConstructOp : ONNX_Op<"SequenceConstruct", [Pure]> {
  let summary = "ONNX SequenceConstruct, opset 11";
  let arguments = (ins
    Variadic<TensorOf<[Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>>:$inputs);
  let results = (outs
    ONNX_Seq:$output_sequence);
}

def ONNX_SequenceEmptyOp : ONNX_Op<"SequenceEmpty", [Pure]> {
  let summary = "ONNX SequenceEmpty, opset 11";
  let arguments = (ins
    OptionalAttr<SI64Attr>:$dtype);
  let results = (outs
    ONNX_Seq:$output);
}

def ONNX_SequenceEraseOp : ONNX_Op<"SequenceErase", [Pure]> {
  let summary = "ONNX SequenceErase, opset 11";
  let arguments = (ins
    ONNX_Seq:$input_sequence,
    AnyTypeOf<[TensorOf<[I32, I64]>, NoneType]>:$position);
  let results = (outs
    ONNX_Seq:$output_sequence);
}

def ONNX_SequenceInsertOp : ONNX_Op<"SequenceInsert", [Pure]> {
  let summary = "ONNX SequenceInsert, opset 11";
  let arguments = (ins
    ONNX_Seq:$input_sequence,
    TensorOf<[Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$tensor,
    AnyTypeOf<[TensorOf<[I32, I64]>, NoneType]>:$position);
  let results = (outs
    ONNX_Seq:$output_sequence);
}

def ONNX_SequenceLengthOp : ONNX_Op<"SequenceLength", [Pure]> {
  let summary = "ONNX SequenceLength, opset 11";
  let arguments = (ins
    ONNX_Seq:$input_sequence);
  let results = (outs
    TensorOf<[I64]>:$length);
}

def ONNX_ShapeOp : ONNX_Op<"Shape", [Pure]> {
  let summary = "ONNX Shape, opset 25";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$data,
    OptionalAttr<SI64Attr>:$end,
    DefaultValuedAttr<SI64Attr, "0">:$start);
  let results = (outs
    TensorOf<[I64]>:$shape);
}

def ONNX_ShrinkOp : ONNX_Op<"Shrink", [Pure]> {
  let summary = "ONNX Shrink, opset 9";
  let arguments = (ins
    TensorOf<[F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$input,
    DefaultValuedAttr<F32Attr, "0">:$bias,
    DefaultValuedAttr<F32Attr, "0.5">:$lambd);
  let results = (outs
    TensorOf<[F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_SigmoidOp : ONNX_Op<"Sigmoid", [Pure]> {
  let summary = "ONNX Sigmoid, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_SignOp : ONNX_Op<"Sign", [Pure]> {
  let summary = "ONNX Sign, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_SinOp : ONNX_Op<"Sin", [Pure]> {
  let summary = "ONNX Sin, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_SinhOp : ONNX_Op<"Sinh", [Pure]> {
  let summary = "ONNX Sinh, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_SizeOp : ONNX_Op<"Size", [Pure]> {
  let summary = "ONNX Size, opset 25";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$data);
  let results = (outs
    TensorOf<[I64]>:$size);
}

def ONNX_SliceOp : ONNX_Op<"Slice", [Pure]> {
  let summary = "ONNX Slice, opset 13";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$data,
    TensorOf<[I32, I64]>:$starts,
    TensorOf<[I32, I64]>:$ends,
    AnyTypeOf<[TensorOf<[I32, I64]>, NoneType]>:$axes,
    AnyTypeOf<[TensorOf<[I32, I64]>, NoneType]>:$steps);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_SoftmaxOp : ONNX_Op<"Softmax", [Pure]> {
  let summary = "ONNX Softmax, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input,
    DefaultValuedAttr<SI64Attr, "-1">:$axis);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_SoftmaxCrossEntropyLossOp : ONNX_Op<"SoftmaxCrossEntropyLoss", [Pure]> {
  let summary = "ONNX SoftmaxCrossEntropyLoss, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$scores,
    TensorOf<[I32, I64]>:$labels,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$weights,
    OptionalAttr<SI64Attr>:$ignore_index,
    DefaultValuedStrAttr<StrAttr, "mean">:$reduction);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output,
    AnyTypeOf<[TensorOf<[BF16, F16, F32, F64]>, NoneType]>:$log_prob);
}

def ONNX_SoftplusOp : ONNX_Op<"Softplus", [Pure]> {
  let summary = "ONNX Softplus, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_SoftsignOp : ONNX_Op<"Softsign", [Pure]> {
  let summary = "ONNX Softsign, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_SpaceToDepthOp : ONNX_Op<"SpaceToDepth", [Pure]> {
  let summary = "ONNX SpaceToDepth, opset 28";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    SI64Attr:$blocksize,
    DefaultValuedStrAttr<StrAttr, "DCR">:$mode);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_SplitOp : ONNX_Op<"Split", [Pure]> {
  let summary = "ONNX Split, opset 18";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$split,
    DefaultValuedAttr<SI64Attr, "0">:$axis,
    OptionalAttr<SI64Attr>:$num_outputs);
  let results = (outs
    Variadic<TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>>:$outputs);
}

def ONNX_SplitToSequenceOp : ONNX_Op<"SplitToSequence", [Pure]> {
  let summary = "ONNX SplitToSequence, opset 24";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    AnyTypeOf<[TensorOf<[I32, I64]>, NoneType]>:$split,
    DefaultValuedAttr<SI64Attr, "0">:$axis,
    DefaultValuedAttr<SI64Attr, "1">:$keepdims);
  let results = (outs
    ONNX_Seq:$output_sequence);
}

def ONNX_SqrtOp : ONNX_Op<"Sqrt", [Pure]> {
  let summary = "ONNX Sqrt, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_SqueezeOp : ONNX_Op<"Squeeze", [Pure]> {
  let summary = "ONNX Squeeze, opset 25";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$data,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$axes);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$squeezed);
}

def ONNX_StringConcatOp : ONNX_Op<"StringConcat", [Pure]> {
  let summary = "ONNX StringConcat, opset 20";
  let arguments = (ins
    TensorOf<[ONNX_String]>:$X,
    TensorOf<[ONNX_String]>:$Y);
  let results = (outs
    TensorOf<[ONNX_String]>:$Z);
}

def ONNX_StringNormalizerOp : ONNX_Op<"StringNormalizer", [Pure]> {
  let summary = "ONNX StringNormalizer, opset 10";
  let arguments = (ins
    TensorOf<[ONNX_String]>:$X,
    DefaultValuedStrAttr<StrAttr, "NONE">:$case_change_action,
    DefaultValuedAttr<SI64Attr, "0">:$is_case_sensitive,
    OptionalAttr<StrAttr>:$locale,
    OptionalAttr<StrArrayAttr>:$stopwords);
  let results = (outs
    TensorOf<[ONNX_String]>:$Y);
}

def ONNX_StringSplitOp : ONNX_Op<"StringSplit", [Pure]> {
  let summary = "ONNX StringSplit, opset 20";
  let arguments = (ins
    TensorOf<[ONNX_String]>:$X,
    OptionalAttr<StrAttr>:$delimiter,
    OptionalAttr<SI64Attr>:$maxsplit);
  let results = (outs
    TensorOf<[ONNX_String]>:$Y,
    TensorOf<[I64]>:$Z);
}

def ONNX_SubOp : ONNX_Op<"Sub", [Pure]> {
  let summary = "ONNX Sub, opset 14";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$A,
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$B);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$C);
}

def ONNX_SumOp : ONNX_Op<"Sum", [Pure]> {
  let summary = "ONNX Sum, opset 13";
  let arguments = (ins
    Variadic<TensorOf<[BF16, F16, F32, F64]>>:$data_0);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$sum);
}

def ONNX_SwiGLUOp : ONNX_Op<"SwiGLU", [Pure]> {
  let summary = "ONNX SwiGLU, opset 28";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$A,
    TensorOf<[BF16, F16, F32, F64]>:$B,
    DefaultValuedAttr<F32Attr, "1">:$alpha);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_SwishOp : ONNX_Op<"Swish", [Pure]> {
  let summary = "ONNX Swish, opset 24";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedAttr<F32Attr, "1">:$alpha);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_TanOp : ONNX_Op<"Tan", [Pure]> {
  let summary = "ONNX Tan, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_TanhOp : ONNX_Op<"Tanh", [Pure]> {
  let summary = "ONNX Tanh, opset 13";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$input);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$output);
}

def ONNX_TensorScatterOp : ONNX_Op<"TensorScatter", [Pure]> {
  let summary = "ONNX TensorScatter, opset 24";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<4>]>:$past_cache,
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<4>]>:$update,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$write_indices,
    DefaultValuedAttr<SI64Attr, "-2">:$axis,
    DefaultValuedStrAttr<StrAttr, "linear">:$mode);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<4>]>:$present_cache);
}

def ONNX_TfIdfVectorizerOp : ONNX_Op<"TfIdfVectorizer", [Pure]> {
  let summary = "ONNX TfIdfVectorizer, opset 9";
  let arguments = (ins
    TensorOf<[I32, I64, ONNX_String]>:$X,
    SI64Attr:$max_gram_length,
    SI64Attr:$max_skip_count,
    SI64Attr:$min_gram_length,
    StrAttr:$mode,
    I64ArrayAttr:$ngram_counts,
    I64ArrayAttr:$ngram_indexes,
    OptionalAttr<I64ArrayAttr>:$pool_int64s,
    OptionalAttr<StrArrayAttr>:$pool_strings,
    OptionalAttr<F32ArrayAttr>:$weights);
  let results = (outs
    TensorOf<[F32]>:$Y);
}

def ONNX_ThresholdedReluOp : ONNX_Op<"ThresholdedRelu", [Pure]> {
  let summary = "ONNX ThresholdedRelu, opset 22";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64]>:$X,
    DefaultValuedAttr<F32Attr, "1">:$alpha);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64]>:$Y);
}

def ONNX_TileOp : ONNX_Op<"Tile", [Pure]> {
  let summary = "ONNX Tile, opset 13";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    TensorOf<[I64]>:$repeats);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_TopKOp : ONNX_Op<"TopK", [Pure]> {
  let summary = "ONNX TopK, opset 24";
  let arguments = (ins
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$X,
    TensorOf<[I64]>:$K,
    DefaultValuedAttr<SI64Attr, "-1">:$axis,
    DefaultValuedAttr<SI64Attr, "1">:$largest,
    DefaultValuedAttr<SI64Attr, "1">:$sorted);
  let results = (outs
    TensorOf<[BF16, F16, F32, F64, I16, I32, I64, I8, UI16, UI32, UI64, UI8]>:$Values,
    TensorOf<[I64]>:$Indices);
}

def ONNX_TransposeOp : ONNX_Op<"Transpose", [Pure]> {
  let summary = "ONNX Transpose, opset 25";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$data,
    OptionalAttr<I64ArrayAttr>:$perm);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$transposed);
}

def ONNX_TriluOp : ONNX_Op<"Trilu", [Pure]> {
  let summary = "ONNX Trilu, opset 14";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$input,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$k,
    DefaultValuedAttr<SI64Attr, "1">:$upper);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_UniqueOp : ONNX_Op<"Unique", [Pure]> {
  let summary = "ONNX Unique, opset 28";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$X,
    OptionalAttr<SI64Attr>:$axis,
    DefaultValuedAttr<SI64Attr, "1">:$sorted);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$Y,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$indices,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$inverse_indices,
    AnyTypeOf<[TensorOf<[I64]>, NoneType]>:$counts);
}

def ONNX_UnsqueezeOp : ONNX_Op<"Unsqueeze", [Pure]> {
  let summary = "ONNX Unsqueeze, opset 25";
  let arguments = (ins
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$data,
    TensorOf<[I64]>:$axes);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F4E2M1FN, F64, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, I1, I16, I32, I64, I8, I<2>, I<4>, ONNX_String, UI16, UI32, UI64, UI8, UI<2>, UI<4>]>:$expanded);
}

def ONNX_WhereOp : ONNX_Op<"Where", [Pure]> {
  let summary = "ONNX Where, opset 16";
  let arguments = (ins
    TensorOf<[I1]>:$condition,
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$X,
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$Y);
  let results = (outs
    TensorOf<[BF16, Complex<F32>, Complex<F64>, F16, F32, F64, I1, I16, I32, I64, I8, ONNX_String, UI16, UI32, UI64, UI8]>:$output);
}

def ONNX_XorOp : ONNX_Op<"Xor", [Pure]> {
  let summary = "ONNX Xor, opset 7";
  let arguments = (ins
    TensorOf<[I1]>:$A,
    TensorOf<[I1]>:$B);
  let results = (outs
    TensorOf<[I1]>:$C);
}
