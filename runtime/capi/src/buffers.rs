//! Buffers of C programs for inputs and outputs.

use crate::{Port, failure::Failure};
use divi_runtime::{Runtime, TensorRef};
use std::{ffi::c_void, slice};

/// Buffer of the caller: `divi_buffer` of the header.
#[repr(C)]
pub struct DiviBuffer {
    /// First byte; may be null if `bytes` is 0.
    pub data: *mut c_void,
    /// Size in bytes.
    pub bytes: usize,
}

/// Returns the named inputs of a model from buffers in the model's order.
///
/// # Safety
/// `buffers` points to `count` buffers, each valid for reads of its size.
pub(crate) unsafe fn inputs<'a>(
    runtime: &'a Runtime,
    ports: &'a [Port],
    buffers: *const DiviBuffer,
    count: usize,
) -> Result<Vec<(&'a str, TensorRef<'a>)>, Failure> {
    if count != ports.len() {
        return Err(format!("the model has {} inputs, and {count} are given", ports.len()).into());
    }
    // SAFETY: guaranteed by the caller.
    let buffers = unsafe { list(buffers, count)? };
    let given = runtime.inputs().zip(ports).zip(buffers).map(|(((name, _), port), buffer)| {
        let dtype = port.kind.ok_or_else(|| format!("input '{name}' has an unknown element type"))?;
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { bytes(buffer)? };
        Ok((name, TensorRef { dtype, shape: &port.shape, bytes }))
    });
    given.collect()
}

/// Returns the buffers of outputs as slices.
///
/// # Safety
/// As for [`inputs`]; in addition, the buffers are valid for writes and no other thread accesses them.
pub(crate) unsafe fn outputs<'a>(buffers: *const DiviBuffer, count: usize) -> Result<Vec<&'a mut [u8]>, Failure> {
    // SAFETY: guaranteed by the caller.
    let buffers = unsafe { list(buffers, count)? };
    // SAFETY: guaranteed by the caller.
    buffers.iter().map(|buffer| unsafe { bytes_mut(buffer) }).collect()
}

/// # Safety
/// `buffers` points to `count` buffers.
unsafe fn list<'a>(buffers: *const DiviBuffer, count: usize) -> Result<&'a [DiviBuffer], Failure> {
    match (buffers.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err("no buffers are given".into()),
        // SAFETY: guaranteed by the caller.
        (false, _) => Ok(unsafe { slice::from_raw_parts(buffers, count) }),
    }
}

/// # Safety
/// The buffer is valid for reads of its size.
unsafe fn bytes(buffer: &DiviBuffer) -> Result<&[u8], Failure> {
    match (buffer.data.is_null(), buffer.bytes) {
        (_, 0) => Ok(&[]),
        (true, _) => Err("a buffer's data are NULL".into()),
        // SAFETY: guaranteed by the caller.
        (false, length) => Ok(unsafe { slice::from_raw_parts(buffer.data.cast(), length) }),
    }
}

/// # Safety
/// As for [`bytes`]; in addition, the buffer is valid for writes and no other thread accesses it.
unsafe fn bytes_mut<'a>(buffer: &DiviBuffer) -> Result<&'a mut [u8], Failure> {
    match (buffer.data.is_null(), buffer.bytes) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err("a buffer's data are NULL".into()),
        // SAFETY: guaranteed by the caller.
        (false, length) => Ok(unsafe { slice::from_raw_parts_mut(buffer.data.cast(), length) }),
    }
}
