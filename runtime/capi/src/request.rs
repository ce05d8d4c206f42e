//! Requests that run while their caller does something else.

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

/// A request that was submitted.
pub struct DiviRequest {
    ticket: Ticket,
    /// Kept for callers that wait again.
    result: Mutex<Option<Result<Vec<TensorData>, Failure>>>,
}

fn request(handle: *const DiviRequest) -> Result<Arc<DiviRequest>, Failure> {
    if handle.is_null() {
        return Err(Failure::new(INVALID, "no request is given"));
    }
    REQUESTS.get(handle).ok_or_else(|| Failure::new(INVALID, "the request was freed, or never submitted"))
}

/// # Safety
/// There are as many buffers as is said, each as long as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_submit(
    handle: *mut DiviRuntime,
    inputs: *const DiviBuffer,
    input_count: usize,
) -> *mut DiviRequest {
    let submit = || {
        let loaded = runtime(handle)?;
        // SAFETY: the caller's.
        let given = unsafe { buffers::inputs(&loaded.runtime, &loaded.inputs, inputs, input_count)? };
        let ticket = loaded.runtime.submit(&given)?;
        Ok(REQUESTS.insert(DiviRequest { ticket, result: Mutex::new(None) }))
    };
    guarded(submit).unwrap_or(ptr::null_mut())
}

/// # Safety
/// There are as many buffers as is said, each as long as it says, and no other thread uses them.
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
            // SAFETY: the caller's.
            Ok(tensors) => copy(tensors, unsafe { buffers::outputs(outputs, output_count)? }),
        }
    })
}

/// Copies outputs to the places for them, all or none.
fn copy(tensors: &[TensorData], places: Vec<&mut [u8]>) -> Result<(), Failure> {
    if tensors.len() != places.len() {
        return Err(format!("the model has {} outputs, and {} are given", tensors.len(), places.len()).into());
    }
    let other = tensors.iter().zip(&places).position(|(tensor, place)| tensor.bytes().len() != place.len());
    if let Some(index) = other {
        let (has, given) = (tensors[index].bytes().len(), places[index].len());
        return Err(format!("output {index} has {has} bytes, and its buffer {given}").into());
    }
    tensors.iter().zip(places).for_each(|(tensor, place)| place.copy_from_slice(tensor.bytes()));
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn divi_cancel(handle: *mut DiviRequest) -> c_int {
    status(|| {
        request(handle)?.ticket.cancel();
        Ok(())
    })
}

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
