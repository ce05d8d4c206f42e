//! Between constants and MLIR's elements attributes.

use crate::{ffi, tensor_type, tensor_type_of};
use divi_onnx::{Dim, Tensor, TensorType};
use melior::{
    Context, StringRef,
    ir::{Attribute, AttributeLike, Type, TypeLike},
};
use mlir_sys::*;
use std::ffi::c_void;

fn type_of<'c>(context: &'c Context, tensor: &Tensor) -> Type<'c> {
    let shape: Vec<_> = tensor.dims().iter().copied().map(Dim::Known).collect();
    tensor_type(context, &TensorType::new(tensor.dtype(), shape))
}

/// `dense<…>`: the elements become part of the IR's text. For small constants.
pub fn dense_elements<'c>(context: &'c Context, tensor: &Tensor) -> Attribute<'c> {
    let bytes = tensor.bytes();
    // SAFETY: a tensor's bytes are what its type and shape ask for; they are copied.
    unsafe {
        Attribute::from_raw(ffi::diviDenseElementsGet(type_of(context, tensor).to_raw(), bytes.as_ptr(), bytes.len()))
    }
}

/// `dense_resource<name>`: the elements stay outside the IR's text, and are not copied. For large constants.
pub fn dense_resource<'c>(context: &'c Context, name: &str, tensor: &Tensor) -> Attribute<'c> {
    unsafe extern "C" fn release(owner: *mut c_void, _: *const c_void, _: usize, _: usize) {
        // SAFETY: `owner` is the box that was given away below, and MLIR calls this once.
        drop(unsafe { Box::from_raw(owner.cast::<bytes::Bytes>()) });
    }
    let owner = Box::new(tensor.bytes().clone());
    let (data, length) = (owner.as_ptr(), owner.len());
    // SAFETY: the bytes live until `release` is called; an alignment of 1 promises nothing about them.
    unsafe {
        Attribute::from_raw(mlirUnmanagedDenseResourceElementsAttrGet(
            type_of(context, tensor).to_raw(),
            StringRef::new(name).to_raw(),
            data.cast_mut().cast(),
            length,
            1,
            false,
            Some(release),
            Box::into_raw(owner).cast(),
        ))
    }
}

/// The constant that `dense<…>` or `dense_resource<…>` holds, if it has at most `limit` bytes. `None` also for a
/// resource whose bytes are not there (`__elided__`), strings, and attributes of other kinds.
pub fn elements_of(attribute: Attribute<'_>, limit: u64) -> Option<Tensor> {
    // SAFETY: the attribute is alive; a length that is not negative says that it has bytes to copy.
    let length = unsafe { ffi::diviElementsGetByteLength(attribute.to_raw()) };
    let length = u64::try_from(length).ok().filter(|&length| length <= limit)? as usize;
    // SAFETY: an elements attribute has a type.
    let ty = tensor_type_of(unsafe { Type::from_raw(mlirAttributeGetType(attribute.to_raw())) })?;
    let mut bytes = vec![0; length];
    // SAFETY: the buffer has the length asked for.
    unsafe { ffi::diviElementsCopyBytes(attribute.to_raw(), bytes.as_mut_ptr(), length) };
    Tensor::new(ty.dtype, ty.static_shape()?, bytes.into())
}
