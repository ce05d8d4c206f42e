//! Memory of C programs: inputs and places for outputs.

use crate::{Port, failure::Failure};
use divi_runtime::{Runtime, TensorRef};
use std::{ffi::c_void, slice};

#[repr(C)]
pub struct DiviBuffer {
    pub data: *mut c_void,
    pub bytes: usize,
}

/// The inputs of a model in its order, from buffers in the same order.
///
/// # Safety
/// There are as many buffers as `count` says, each as long as it says.
pub(crate) unsafe fn inputs<'a>(
    runtime: &'a Runtime,
    ports: &'a [Port],
    buffers: *const DiviBuffer,
    count: usize,
) -> Result<Vec<(&'a str, TensorRef<'a>)>, Failure> {
    if count != ports.len() {
        return Err(format!("the model has {} inputs, and {count} are given", ports.len()).into());
    }
    // SAFETY: the caller's.
    let buffers = unsafe { list(buffers, count)? };
    let given = runtime.inputs().zip(ports).zip(buffers).map(|(((name, _), port), buffer)| {
        let dtype = port.kind.ok_or_else(|| format!("input '{name}' has an unknown element type"))?;
        // SAFETY: the caller's.
        let bytes = unsafe { bytes(buffer)? };
        Ok((name, TensorRef { dtype, shape: &port.shape, bytes }))
    });
    given.collect()
}

/// The places for outputs.
///
/// # Safety
/// As of [`inputs`], and no other thread uses the memory.
pub(crate) unsafe fn outputs<'a>(buffers: *const DiviBuffer, count: usize) -> Result<Vec<&'a mut [u8]>, Failure> {
    // SAFETY: the caller's.
    let buffers = unsafe { list(buffers, count)? };
    // SAFETY: the caller's.
    buffers.iter().map(|buffer| unsafe { bytes_mut(buffer) }).collect()
}

/// # Safety
/// There are as many buffers.
unsafe fn list<'a>(buffers: *const DiviBuffer, count: usize) -> Result<&'a [DiviBuffer], Failure> {
    match (buffers.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err("no buffers are given".into()),
        // SAFETY: the caller's.
        (false, _) => Ok(unsafe { slice::from_raw_parts(buffers, count) }),
    }
}

/// # Safety
/// The buffer is as long as it says.
unsafe fn bytes(buffer: &DiviBuffer) -> Result<&[u8], Failure> {
    match (buffer.data.is_null(), buffer.bytes) {
        (_, 0) => Ok(&[]),
        (true, _) => Err("a buffer's data are NULL".into()),
        // SAFETY: the caller's.
        (false, length) => Ok(unsafe { slice::from_raw_parts(buffer.data.cast(), length) }),
    }
}

/// # Safety
/// As of [`bytes`], and no other thread uses the buffer.
unsafe fn bytes_mut<'a>(buffer: &DiviBuffer) -> Result<&'a mut [u8], Failure> {
    match (buffer.data.is_null(), buffer.bytes) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err("a buffer's data are NULL".into()),
        // SAFETY: the caller's.
        (false, length) => Ok(unsafe { slice::from_raw_parts_mut(buffer.data.cast(), length) }),
    }
}
