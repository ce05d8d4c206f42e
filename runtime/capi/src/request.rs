//! Asynchronous requests.

use crate::{
    DiviRuntime,
    buffers::{self, DiviBuffer},
    failure::{CLOSED, Failure, INVALID, TIMEOUT, guarded, status},
    handles::Handles,
    runtime,
};
use divi_runtime::{TensorData, Ticket};
use std::{
    ffi::c_int,
    ptr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

static REQUESTS: Handles<DiviRequest> = Handles::new(2);

/// Submitted request.
pub struct DiviRequest {
    ticket: Ticket,
    /// Result of the request, stored so that later calls of [`divi_wait`] return it again.
    result: Mutex<Option<Result<Vec<TensorData>, Failure>>>,
}

fn request(handle: *const DiviRequest) -> Result<Arc<DiviRequest>, Failure> {
    if handle.is_null() {
        return Err(Failure::new(INVALID, "no request is given"));
    }
    REQUESTS.get(handle).ok_or_else(|| Failure::new(INVALID, "the request was freed, or never submitted"))
}

/// Submits a request and returns its handle without waiting for outputs. Returns null on error.
///
/// # Safety
/// `inputs` points to `input_count` buffers, each valid for reads of its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_submit(
    handle: *mut DiviRuntime,
    inputs: *const DiviBuffer,
    input_count: usize,
) -> *mut DiviRequest {
    let submit = || {
        let loaded = runtime(handle)?;
        // SAFETY: guaranteed by the caller.
        let given = unsafe { buffers::inputs(&loaded.runtime, &loaded.inputs, inputs, input_count)? };
        let ticket = loaded.runtime.submit(&given)?;
        Ok(REQUESTS.insert(DiviRequest { ticket, result: Mutex::new(None) }))
    };
    guarded(submit).unwrap_or(ptr::null_mut())
}

/// Waits for a request, for at most `timeout_ms` milliseconds (negative: no limit), and copies its outputs.
///
/// # Safety
/// `outputs` points to `output_count` buffers, each valid for writes of its size; no other thread accesses them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_wait(
    handle: *mut DiviRequest,
    timeout_ms: i64,
    outputs: *const DiviBuffer,
    output_count: usize,
) -> c_int {
    status(|| {
        let request = request(handle)?;
        let timeout = u64::try_from(timeout_ms).map_or(Duration::MAX, Duration::from_millis);
        if !request.ticket.wait_timeout(timeout) {
            return Err(Failure::new(TIMEOUT, format!("the request is not done after {timeout_ms} ms")));
        }
        let mut result = request.result.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = || match request.ticket.try_take() {
            Some(result) => Ok(result?.into_iter().map(|(_, tensor)| tensor).collect()),
            None => Err(Failure::new(CLOSED, "the request has no result")),
        };
        match result.get_or_insert_with(taken) {
            Err(failure) => Err(failure.clone()),
            Ok(_) if outputs.is_null() && output_count == 0 => Ok(()),
            // SAFETY: guaranteed by the caller.
            Ok(tensors) => copy(tensors, unsafe { buffers::outputs(outputs, output_count)? }),
        }
    })
}

/// Copies outputs to the caller's buffers, all or none.
fn copy(tensors: &[TensorData], buffers: Vec<&mut [u8]>) -> Result<(), Failure> {
    if tensors.len() != buffers.len() {
        return Err(format!("the model has {} outputs, and {} are given", tensors.len(), buffers.len()).into());
    }
    let mismatch = tensors.iter().zip(&buffers).position(|(tensor, buffer)| tensor.bytes().len() != buffer.len());
    if let Some(index) = mismatch {
        let (expected, given) = (tensors[index].bytes().len(), buffers[index].len());
        return Err(format!("output {index} has {expected} bytes, and its buffer {given}").into());
    }
    tensors.iter().zip(buffers).for_each(|(tensor, buffer)| buffer.copy_from_slice(tensor.bytes()));
    Ok(())
}

/// Cancels a request without waiting for it to end.
#[unsafe(no_mangle)]
pub extern "C" fn divi_cancel(handle: *mut DiviRequest) -> c_int {
    status(|| {
        request(handle)?.ticket.cancel();
        Ok(())
    })
}

/// Cancels a request if it is not complete, and frees its handle.
#[unsafe(no_mangle)]
pub extern "C" fn divi_request_free(handle: *mut DiviRequest) -> c_int {
    status(|| {
        if handle.is_null() {
            return Ok(());
        }
        let Some(request) = REQUESTS.remove(handle) else {
            return Err(Failure::new(INVALID, "the request was freed already, or never submitted"));
        };
        request.ticket.cancel();
        Ok(())
    })
}
