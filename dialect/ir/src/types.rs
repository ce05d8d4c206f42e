//! Between ONNX's tensor types and MLIR's.

use crate::ffi::{
    diviOnnxContainedTypeGet, diviOnnxOptTypeGet, diviOnnxSeqTypeGet, diviOnnxStringTypeGet, diviTypeIsAOnnxString,
};
use divi_onnx::{DType, Dim, TensorType};
use melior::{
    Context,
    ir::{Type, TypeLike},
};
use mlir_sys::*;

/// The MLIR type of one element. Integers are signless, as in onnx-mlir, unsigned ones say so.
pub fn element_type(context: &Context, dtype: DType) -> Type<'_> {
    let context = context.to_raw();
    // SAFETY: the context is alive, and every function returns a type that it owns.
    unsafe {
        Type::from_raw(match dtype {
            DType::F32 => mlirF32TypeGet(context),
            DType::F64 => mlirF64TypeGet(context),
            DType::F16 => mlirF16TypeGet(context),
            DType::BF16 => mlirBF16TypeGet(context),
            DType::F8E4M3FN => mlirFloat8E4M3FNTypeGet(context),
            DType::F8E4M3FNUZ => mlirFloat8E4M3FNUZTypeGet(context),
            DType::F8E5M2 => mlirFloat8E5M2TypeGet(context),
            DType::F8E5M2FNUZ => mlirFloat8E5M2FNUZTypeGet(context),
            DType::F8E8M0 => mlirFloat8E8M0FNUTypeGet(context),
            DType::F6E2M3 => mlirFloat6E2M3FNTypeGet(context),
            DType::F6E3M2 => mlirFloat6E3M2FNTypeGet(context),
            DType::F4E2M1 => mlirFloat4E2M1FNTypeGet(context),
            DType::Bool => mlirIntegerTypeGet(context, 1),
            DType::I2 | DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                mlirIntegerTypeGet(context, dtype.bits() as u32)
            }
            DType::U2 | DType::U4 | DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
                mlirIntegerTypeUnsignedGet(context, dtype.bits() as u32)
            }
            DType::Complex64 => mlirComplexTypeGet(mlirF32TypeGet(context)),
            DType::Complex128 => mlirComplexTypeGet(mlirF64TypeGet(context)),
            DType::String => diviOnnxStringTypeGet(context),
        })
    }
}

/// The element type that an MLIR type stands for; `None` for types ONNX does not have.
pub fn element_type_of(r#type: Type<'_>) -> Option<DType> {
    let raw = r#type.to_raw();
    // SAFETY: the type is alive, and each accessor is called on the kind it is for.
    unsafe {
        if mlirTypeIsAF32(raw) {
            return Some(DType::F32);
        }
        if mlirTypeIsAInteger(raw) {
            return match (mlirIntegerTypeGetWidth(raw), mlirIntegerTypeIsUnsigned(raw)) {
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
        if mlirTypeIsAComplex(raw) {
            let element = mlirComplexTypeGetElementType(raw);
            return if mlirTypeIsAF32(element) {
                Some(DType::Complex64)
            } else {
                mlirTypeIsAF64(element).then_some(DType::Complex128)
            };
        }
        let checks: [(DType, unsafe extern "C" fn(MlirType) -> bool); 11] = [
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
        ];
        if let Some(&(dtype, _)) = checks.iter().find(|(_, is)| is(raw)) {
            return Some(dtype);
        }
        diviTypeIsAOnnxString(raw).then_some(DType::String)
    }
}

/// A tensor type; named and unknown dimensions are dynamic.
pub fn tensor_type<'c>(context: &'c Context, ty: &TensorType) -> Type<'c> {
    let element = element_type(context, ty.dtype).to_raw();
    // SAFETY: the element type is alive, the shape outlives the call, and the element type is one tensors may have.
    unsafe {
        Type::from_raw(match &ty.shape {
            None => mlirUnrankedTensorTypeGet(element),
            Some(shape) => {
                let dynamic = mlirShapedTypeGetDynamicSize();
                let dims: Vec<i64> = shape.iter().map(|dim| dim.known().unwrap_or(dynamic)).collect();
                mlirRankedTensorTypeGet(dims.len() as isize, dims.as_ptr(), element, mlirAttributeGetNull())
            }
        })
    }
}

/// What a tensor type says in ONNX's terms; `None` for types that are no tensors or have other elements.
pub fn tensor_type_of(r#type: Type<'_>) -> Option<TensorType> {
    let raw = r#type.to_raw();
    // SAFETY: the type is alive, and each accessor is called on the kind it is for.
    unsafe {
        if mlirTypeIsAUnrankedTensor(raw) {
            return Some(TensorType::unranked(element_type_of(Type::from_raw(mlirShapedTypeGetElementType(raw)))?));
        }
        if !mlirTypeIsARankedTensor(raw) {
            return None;
        }
        let dtype = element_type_of(Type::from_raw(mlirShapedTypeGetElementType(raw)))?;
        let shape = (0..mlirShapedTypeGetRank(raw) as isize).map(|i| {
            if mlirShapedTypeIsDynamicDim(raw, i) { Dim::Unknown } else { Dim::Known(mlirShapedTypeGetDimSize(raw, i)) }
        });
        Some(TensorType::new(dtype, shape.collect::<Vec<_>>()))
    }
}

/// `!onnx.Seq<element>`
pub fn sequence_type(element: Type<'_>) -> Type<'_> {
    // SAFETY: the element type is alive.
    unsafe { Type::from_raw(diviOnnxSeqTypeGet(element.to_raw())) }
}

/// `!onnx.Opt<element>`
pub fn optional_type(element: Type<'_>) -> Type<'_> {
    // SAFETY: the element type is alive.
    unsafe { Type::from_raw(diviOnnxOptTypeGet(element.to_raw())) }
}

/// What a sequence or optional contains; `None` for other types.
pub fn contained_type(r#type: Type<'_>) -> Option<Type<'_>> {
    // SAFETY: the type is alive.
    unsafe { Type::from_option_raw(diviOnnxContainedTypeGet(r#type.to_raw())) }
}
