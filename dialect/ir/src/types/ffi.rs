//! Accessors and constructors of MLIR's types.

use crate::{
    ContextLike,
    context::{Sink, print_to_sink},
    ffi::{
        call, diviOnnxContainedTypeGet, diviOnnxOptTypeGet, diviOnnxSeqTypeGet, diviOnnxStringTypeGet,
        diviTypeIsAOnnxString,
    },
};
use divi_onnx::{DType, Dim, TensorType};
use melior::ir::{Type, TypeLike};
use mlir_sys::*;

fn wrap<'c>(raw: MlirType) -> Type<'c> {
    // SAFETY: types live as long as their context.
    unsafe { Type::from_raw(raw) }
}

/// Returns the MLIR type of an element. Signed integers are signless, as in onnx-mlir; unsigned ones are explicitly unsigned.
pub fn element_type<'c>(context: impl ContextLike<'c>, dtype: DType) -> Type<'c> {
    let context = context.raw();
    wrap(match dtype {
        DType::F32 => call!(mlirF32TypeGet(context)),
        DType::F64 => call!(mlirF64TypeGet(context)),
        DType::F16 => call!(mlirF16TypeGet(context)),
        DType::BF16 => call!(mlirBF16TypeGet(context)),
        DType::F8E4M3FN => call!(mlirFloat8E4M3FNTypeGet(context)),
        DType::F8E4M3FNUZ => call!(mlirFloat8E4M3FNUZTypeGet(context)),
        DType::F8E5M2 => call!(mlirFloat8E5M2TypeGet(context)),
        DType::F8E5M2FNUZ => call!(mlirFloat8E5M2FNUZTypeGet(context)),
        DType::F8E8M0 => call!(mlirFloat8E8M0FNUTypeGet(context)),
        DType::F6E2M3 => call!(mlirFloat6E2M3FNTypeGet(context)),
        DType::F6E3M2 => call!(mlirFloat6E3M2FNTypeGet(context)),
        DType::F4E2M1 => call!(mlirFloat4E2M1FNTypeGet(context)),
        DType::Bool => call!(mlirIntegerTypeGet(context, 1)),
        DType::I2 | DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            call!(mlirIntegerTypeGet(context, dtype.bits() as u32))
        }
        DType::U2 | DType::U4 | DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
            call!(mlirIntegerTypeUnsignedGet(context, dtype.bits() as u32))
        }
        DType::Complex64 => {
            let part = call!(mlirF32TypeGet(context));
            call!(mlirComplexTypeGet(part))
        }
        DType::Complex128 => {
            let part = call!(mlirF64TypeGet(context));
            call!(mlirComplexTypeGet(part))
        }
        DType::String => call!(diviOnnxStringTypeGet(context)),
    })
}

/// Returns the ONNX element type of an MLIR type; `None` for types that ONNX does not have.
pub fn element_type_of(r#type: Type<'_>) -> Option<DType> {
    let raw = r#type.to_raw();
    if call!(mlirTypeIsAF32(raw)) {
        return Some(DType::F32);
    }
    if call!(mlirTypeIsAInteger(raw)) {
        return match (call!(mlirIntegerTypeGetWidth(raw)), call!(mlirIntegerTypeIsUnsigned(raw))) {
            (1, false) => Some(DType::Bool),
            (2, false) => Some(DType::I2),
            (4, false) => Some(DType::I4),
            (8, false) => Some(DType::I8),
            (16, false) => Some(DType::I16),
            (32, false) => Some(DType::I32),
            (64, false) => Some(DType::I64),
            (2, true) => Some(DType::U2),
            (4, true) => Some(DType::U4),
            (8, true) => Some(DType::U8),
            (16, true) => Some(DType::U16),
            (32, true) => Some(DType::U32),
            (64, true) => Some(DType::U64),
            _ => None,
        };
    }
    if call!(mlirTypeIsAComplex(raw)) {
        let element = call!(mlirComplexTypeGetElementType(raw));
        return if call!(mlirTypeIsAF32(element)) {
            Some(DType::Complex64)
        } else {
            call!(mlirTypeIsAF64(element)).then_some(DType::Complex128)
        };
    }
    let checks: [(DType, unsafe extern "C" fn(MlirType) -> bool); 12] = [
        (DType::F16, mlirTypeIsAF16),
        (DType::F64, mlirTypeIsAF64),
        (DType::BF16, mlirTypeIsABF16),
        (DType::F8E4M3FN, mlirTypeIsAFloat8E4M3FN),
        (DType::F8E4M3FNUZ, mlirTypeIsAFloat8E4M3FNUZ),
        (DType::F8E5M2, mlirTypeIsAFloat8E5M2),
        (DType::F8E5M2FNUZ, mlirTypeIsAFloat8E5M2FNUZ),
        (DType::F8E8M0, mlirTypeIsAFloat8E8M0FNU),
        (DType::F6E2M3, mlirTypeIsAFloat6E2M3FN),
        (DType::F6E3M2, mlirTypeIsAFloat6E3M2FN),
        (DType::F4E2M1, mlirTypeIsAFloat4E2M1FN),
        (DType::String, diviTypeIsAOnnxString),
    ];
    checks.into_iter().find(|(_, is)| call!(is(raw))).map(|(dtype, _)| dtype)
}

/// Returns the MLIR type of a tensor; symbolic and unknown dimensions are dynamic.
pub fn tensor_type<'c>(context: impl ContextLike<'c>, ty: &TensorType) -> Type<'c> {
    let element = element_type(context, ty.dtype).to_raw();
    shaped(element, ty, call!(mlirAttributeGetNull()))
}

fn shaped<'c>(element: MlirType, ty: &TensorType, encoding: MlirAttribute) -> Type<'c> {
    let Some(shape) = &ty.shape else { return wrap(call!(mlirUnrankedTensorTypeGet(element))) };
    let dynamic = call!(mlirShapedTypeGetDynamicSize());
    let dims: Vec<i64> = shape.iter().map(|dim| dim.known().unwrap_or(dynamic)).collect();
    wrap(call!(mlirRankedTensorTypeGet(dims.len() as isize, dims.as_ptr(), element, encoding)))
}

/// Returns a tensor type with the shape of `ty` and the element type of `original`, optionally also its encoding. `original`
/// must be a tensor type.
pub(super) fn with_shape<'c>(original: Type<'c>, ty: &TensorType, keep_encoding: bool) -> Type<'c> {
    let raw = original.to_raw();
    let element = call!(mlirShapedTypeGetElementType(raw));
    let is_ranked = call!(mlirTypeIsARankedTensor(raw));
    let encoding = match keep_encoding && is_ranked {
        true => call!(mlirRankedTensorTypeGetEncoding(raw)),
        false => call!(mlirAttributeGetNull()),
    };
    shaped(element, ty, encoding)
}

/// Returns the ONNX tensor type of an MLIR type; `None` for types that are not tensors or whose elements ONNX does not have.
pub fn tensor_type_of(r#type: Type<'_>) -> Option<TensorType> {
    let raw = r#type.to_raw();
    let is_unranked = call!(mlirTypeIsAUnrankedTensor(raw));
    if !is_unranked && !call!(mlirTypeIsARankedTensor(raw)) {
        return None;
    }
    let dtype = element_type_of(wrap(call!(mlirShapedTypeGetElementType(raw))))?;
    if is_unranked {
        return Some(TensorType::unranked(dtype));
    }
    let dim = |i| match call!(mlirShapedTypeIsDynamicDim(raw, i)) {
        true => Dim::Unknown,
        false => Dim::Known(call!(mlirShapedTypeGetDimSize(raw, i))),
    };
    let rank = call!(mlirShapedTypeGetRank(raw)) as isize;
    Some(TensorType::new(dtype, (0..rank).map(dim).collect::<Vec<_>>()))
}

/// Returns the size in bytes of a ranked tensor of any element type. Dynamic dimensions count as 1. `None` for other types.
pub fn ranked_tensor_bytes(r#type: Type<'_>) -> Option<u64> {
    let raw = r#type.to_raw();
    if !call!(mlirTypeIsARankedTensor(raw)) {
        return None;
    }
    let element = call!(mlirShapedTypeGetElementType(raw));
    let bits = if call!(mlirTypeIsAInteger(element)) {
        call!(mlirIntegerTypeGetWidth(element))
    } else if call!(mlirTypeIsAFloat(element)) {
        call!(mlirFloatTypeGetWidth(element))
    } else {
        // An index, or a type of unknown width.
        64
    };
    let size = |i| match call!(mlirShapedTypeIsDynamicDim(raw, i)) {
        true => 1,
        false => u64::try_from(call!(mlirShapedTypeGetDimSize(raw, i))).unwrap_or(0),
    };
    let rank = call!(mlirShapedTypeGetRank(raw)) as isize;
    Some((0..rank).map(size).fold(u64::from(bits).div_ceil(8), u64::saturating_mul))
}

/// Returns `!onnx.Seq<element>`.
pub fn sequence_type(element: Type<'_>) -> Type<'_> {
    wrap(call!(diviOnnxSeqTypeGet(element.to_raw())))
}

/// Returns `!onnx.Opt<element>`.
pub fn optional_type(element: Type<'_>) -> Type<'_> {
    wrap(call!(diviOnnxOptTypeGet(element.to_raw())))
}

/// Returns the element type of a sequence or optional; `None` for other types.
pub fn contained_type(r#type: Type<'_>) -> Option<Type<'_>> {
    let contained = call!(diviOnnxContainedTypeGet(r#type.to_raw()));
    // SAFETY: types live as long as their context.
    unsafe { Type::from_option_raw(contained) }
}

/// Returns the type of a function.
pub fn function_type<'c>(context: impl ContextLike<'c>, inputs: &[Type<'c>], results: &[Type<'c>]) -> Type<'c> {
    let [inputs, results] = [inputs, results].map(|types| types.iter().map(TypeLike::to_raw).collect::<Vec<_>>());
    wrap(call!(mlirFunctionTypeGet(
        context.raw(),
        inputs.len() as isize,
        inputs.as_ptr(),
        results.len() as isize,
        results.as_ptr(),
    )))
}

/// Returns true for `none`, the type of absent values.
pub(crate) fn is_none(r#type: Type<'_>) -> bool {
    call!(mlirTypeIsANone(r#type.to_raw()))
}

/// Returns true for memrefs, whose order of accesses matters.
pub fn is_memory(r#type: Type<'_>) -> bool {
    call!(mlirTypeIsAMemRef(r#type.to_raw())) || call!(mlirTypeIsAUnrankedMemRef(r#type.to_raw()))
}

/// Prints a type to `sink`, in chunks.
pub fn print_type(r#type: Type<'_>, mut sink: &mut dyn FnMut(&[u8])) {
    let sink: &mut Sink<'_> = &mut sink;
    call!(mlirTypePrint(r#type.to_raw(), Some(print_to_sink), std::ptr::from_mut(sink).cast()));
}

/// Returns the result types of a function type; empty for other types.
pub fn function_results(r#type: Type<'_>) -> Vec<Type<'_>> {
    let raw = r#type.to_raw();
    if !call!(mlirTypeIsAFunction(raw)) {
        return vec![];
    }
    let count = call!(mlirFunctionTypeGetNumResults(raw));
    (0..count).map(|i| wrap(call!(mlirFunctionTypeGetResult(raw, i)))).collect()
}

/// Returns true for ranked and unranked tensors of any element type.
pub fn is_tensor(r#type: Type<'_>) -> bool {
    call!(mlirTypeIsATensor(r#type.to_raw()))
}
