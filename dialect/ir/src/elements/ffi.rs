//! Accessors and constructors of MLIR's elements attributes.

use crate::{
    ContextLike, attr,
    context::text,
    ffi::{call, diviDenseElementsGet, diviElementsCopyBytes, diviElementsGetByteLength},
    tensor_type, tensor_type_of,
};
use divi_onnx::{DType, Dim, Tensor, TensorType};
use melior::{
    StringRef,
    ir::{Attribute, AttributeLike, Type, TypeLike},
};
use mlir_sys::*;
use std::ffi::c_void;

fn type_of<'c>(context: impl ContextLike<'c>, tensor: &Tensor) -> Type<'c> {
    let shape: Vec<_> = tensor.dims().iter().copied().map(Dim::Known).collect();
    tensor_type(context, &TensorType::new(tensor.dtype(), shape))
}

fn wrap<'m>(raw: MlirAttribute) -> Attribute<'m> {
    // SAFETY: attributes live as long as their context.
    unsafe { Attribute::from_raw(raw) }
}

/// Creates `dense<…>`, whose elements are part of the IR's text. For small constants.
pub fn dense_elements<'c>(context: impl ContextLike<'c>, tensor: &Tensor) -> Attribute<'c> {
    let bytes = tensor.bytes();
    // The length of a tensor's bytes matches its type and shape.
    wrap(call!(diviDenseElementsGet(type_of(context, tensor).to_raw(), bytes.as_ptr(), bytes.len())))
}

/// Creates `dense_resource<name>`, whose elements are outside the IR's text and are not copied. For large constants.
pub fn dense_resource<'c>(context: impl ContextLike<'c>, name: &str, tensor: &Tensor) -> Attribute<'c> {
    unsafe extern "C" fn release(owner: *mut c_void, _: *const c_void, _: usize, _: usize) {
        // SAFETY: `owner` is the box that `Box::into_raw` released below, and MLIR calls this once.
        drop(unsafe { Box::from_raw(owner.cast::<bytes::Bytes>()) });
    }
    let owner = Box::new(tensor.bytes().clone());
    let (data, length) = (owner.as_ptr(), owner.len());
    // The bytes live until `release` is called; an alignment of 1 is always valid.
    wrap(call!(mlirUnmanagedDenseResourceElementsAttrGet(
        type_of(context, tensor).to_raw(),
        StringRef::new(name).to_raw(),
        data.cast_mut().cast(),
        length,
        1,
        false,
        Some(release),
        Box::into_raw(owner).cast(),
    )))
}

/// Creates `dense<…>` of strings; `r#type` is a tensor type of `texts.len()` elements.
pub fn string_elements<'c>(r#type: Type<'c>, texts: &[&[u8]]) -> Attribute<'c> {
    let raw = |text: &&[u8]| MlirStringRef { data: text.as_ptr().cast(), length: text.len() };
    let texts: Vec<_> = texts.iter().map(raw).collect();
    wrap(call!(mlirDenseElementsAttrStringGet(r#type.to_raw(), texts.len() as isize, texts.as_ptr().cast_mut())))
}

/// Returns the contents of `dense<…>` or `dense_resource<…>` if they have at most `limit` bytes. Returns `None` also for
/// elided resources (`__elided__`), strings, and attributes of other kinds.
pub fn elements_of(attribute: Attribute<'_>, limit: u64) -> Option<Tensor> {
    // The length is negative if there are no bytes to copy.
    let length = call!(diviElementsGetByteLength(attribute.to_raw()));
    let length = u64::try_from(length).ok().filter(|&length| length <= limit)? as usize;
    let ty = tensor_type_of(attr::type_of(attribute))?;
    let mut bytes = vec![0; length];
    call!(diviElementsCopyBytes(attribute.to_raw(), bytes.as_mut_ptr(), length));
    Tensor::new(ty.dtype, ty.static_shape()?, bytes.into())
}

/// Returns the number of elements of `dense<…>`; `None` for attributes of other kinds.
pub fn element_count(attribute: Attribute<'_>) -> Option<usize> {
    let raw = attribute.to_raw();
    call!(mlirAttributeIsADenseElements(raw)).then(|| call!(mlirElementsAttrGetNumElements(raw)) as usize)
}

/// Returns the elements of a `dense<…>` of strings; `None` for attributes of other kinds.
pub fn strings_of(attribute: Attribute<'_>) -> Option<Vec<&str>> {
    let raw = attribute.to_raw();
    let count = element_count(attribute)?;
    if tensor_type_of(attr::type_of(attribute))?.dtype != DType::String {
        return None;
    }
    let is_splat = call!(mlirDenseElementsAttrIsSplat(raw));
    let element = |i| {
        let value = match is_splat {
            true => call!(mlirDenseElementsAttrGetStringSplatValue(raw)),
            false => call!(mlirDenseElementsAttrGetStringValue(raw, i as isize)),
        };
        call!(text(value))
    };
    Some((0..count).map(element).collect())
}
