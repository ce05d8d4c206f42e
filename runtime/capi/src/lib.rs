//! C API of the runtime, declared in `runtime/include/divi.h`.

mod buffers;
mod failure;
mod handles;
mod request;

pub use buffers::DiviBuffer;
pub use failure::divi_error;
pub use request::{DiviRequest, divi_cancel, divi_request_free, divi_submit, divi_wait};

use divi_runtime::{DType, Options, Runtime, bundle::Tensor};
use failure::{Failure, INVALID, c_string, guarded, status};
use handles::Handles;
use std::{
    ffi::{CStr, CString, OsStr, c_char, c_int},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    ptr,
    sync::Arc,
    thread,
    time::Duration,
};

static RUNTIMES: Handles<DiviRuntime> = Handles::new(1);

/// Options of [`divi_load`]: `divi_options` of the header.
#[repr(C)]
pub struct DiviOptions {
    /// Threads per device; 0 for the number in the plan.
    pub threads: usize,
    /// Maximum number of requests in flight; 0 for the default.
    pub in_flight: usize,
    /// Additional folder that weights may be read from; null for none.
    pub allow_path: *const c_char,
    /// Nonzero to map weights instead of reading them.
    pub map_weights: c_int,
}

/// Description of an input or output: `divi_tensor` of the header.
#[repr(C)]
pub struct DiviTensor {
    name: *const c_char,
    dtype: *const c_char,
    shape: *const u64,
    rank: usize,
    bytes: usize,
}

/// Loaded bundle.
pub struct DiviRuntime {
    runtime: Runtime,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

/// Input or output of the model, with C strings.
struct Port {
    name: CString,
    dtype: CString,
    kind: Option<DType>,
    shape: Vec<u64>,
    bytes: usize,
}

impl Port {
    fn new((name, tensor): (&str, &Tensor)) -> Self {
        Self {
            name: c_string(name),
            dtype: c_string(&tensor.dtype),
            kind: DType::from_name(&tensor.dtype),
            shape: tensor.shape.clone(),
            bytes: tensor.bytes as usize,
        }
    }
}

/// Returns the runtime of a handle.
fn runtime(handle: *const DiviRuntime) -> Result<Arc<DiviRuntime>, Failure> {
    if handle.is_null() {
        return Err(Failure::new(INVALID, "no runtime is given"));
    }
    RUNTIMES.get(handle).ok_or_else(|| Failure::new(INVALID, "the runtime was freed, or never loaded"))
}

/// # Safety
/// `text` is null or a NUL-terminated string.
unsafe fn path(text: *const c_char) -> Option<PathBuf> {
    // SAFETY: guaranteed by the caller.
    (!text.is_null()).then(|| OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()).into())
}

/// Loads the bundle in a folder. Returns null on error.
///
/// # Safety
/// `folder` is null or a NUL-terminated string; `options` is null or points to valid options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_load(folder: *const c_char, options: *const DiviOptions) -> *mut DiviRuntime {
    let load = || {
        // SAFETY: guaranteed by the caller.
        let folder = unsafe { path(folder) }.ok_or("no folder is given")?;
        // SAFETY: guaranteed by the caller.
        let given = unsafe { options.as_ref() };
        let positive = |number: usize| (number > 0).then_some(number);
        let options = Options {
            threads: given.and_then(|given| positive(given.threads)),
            in_flight: given.and_then(|given| positive(given.in_flight)),
            // SAFETY: guaranteed by the caller.
            allowed_paths: given.and_then(|given| unsafe { path(given.allow_path) }).into_iter().collect(),
            map_weights: given.is_some_and(|given| given.map_weights != 0),
            ..Options::default()
        };
        let runtime = Runtime::load(folder, options)?;
        let (inputs, outputs) = (runtime.inputs().map(Port::new).collect(), runtime.outputs().map(Port::new).collect());
        Ok(RUNTIMES.insert(DiviRuntime { runtime, inputs, outputs }))
    };
    guarded(load).unwrap_or(ptr::null_mut())
}

/// Cancels the calls and requests of a runtime, waits until they have ended, and frees it.
#[unsafe(no_mangle)]
pub extern "C" fn divi_free(handle: *mut DiviRuntime) {
    let free = || {
        if handle.is_null() {
            return Ok(());
        }
        let Some(mut loaded) = RUNTIMES.remove(handle) else {
            return Err(Failure::new(INVALID, "the runtime was freed already, or never loaded"));
        };
        loaded.runtime.close();
        // Calls in other threads end when their current kernels return; the last reference can be dropped then.
        loop {
            match Arc::try_unwrap(loaded) {
                Ok(last) => break drop(last),
                Err(shared) => loaded = shared,
            }
            thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    };
    status(free);
}

/// Returns the number of inputs; 0 if the handle is invalid.
#[unsafe(no_mangle)]
pub extern "C" fn divi_input_count(handle: *const DiviRuntime) -> usize {
    guarded(|| Ok(runtime(handle)?.inputs.len())).unwrap_or(0)
}

/// Returns the number of outputs; 0 if the handle is invalid.
#[unsafe(no_mangle)]
pub extern "C" fn divi_output_count(handle: *const DiviRuntime) -> usize {
    guarded(|| Ok(runtime(handle)?.outputs.len())).unwrap_or(0)
}

/// Describes an input.
///
/// # Safety
/// `tensor` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_input(handle: *const DiviRuntime, index: usize, tensor: *mut DiviTensor) -> c_int {
    // SAFETY: guaranteed by the caller.
    status(|| unsafe { describe(runtime(handle)?.inputs.get(index), tensor) })
}

/// Describes an output.
///
/// # Safety
/// As for [`divi_input`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_output(handle: *const DiviRuntime, index: usize, tensor: *mut DiviTensor) -> c_int {
    // SAFETY: guaranteed by the caller.
    status(|| unsafe { describe(runtime(handle)?.outputs.get(index), tensor) })
}

/// # Safety
/// `tensor` is null or valid for writes.
unsafe fn describe(port: Option<&Port>, tensor: *mut DiviTensor) -> Result<(), Failure> {
    let port = port.ok_or("there is no input or output with this index")?;
    if tensor.is_null() {
        return Err("the pointer to the description is NULL".into());
    }
    let Port { name, dtype, shape, bytes, .. } = port;
    let (name, dtype, rank, shape) = (name.as_ptr(), dtype.as_ptr(), shape.len(), shape.as_ptr());
    // SAFETY: guaranteed by the caller.
    unsafe { tensor.write(DiviTensor { name, dtype, shape, rank, bytes: *bytes }) };
    Ok(())
}

/// Runs the model and waits for its outputs.
///
/// # Safety
/// `inputs` and `outputs` point to arrays of the given lengths. Each buffer is valid for its size, and no other thread accesses
/// those of outputs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_run(
    handle: *mut DiviRuntime,
    inputs: *const DiviBuffer,
    input_count: usize,
    outputs: *const DiviBuffer,
    output_count: usize,
) -> c_int {
    status(|| {
        let loaded = runtime(handle)?;
        // SAFETY: guaranteed by the caller.
        let given = unsafe { buffers::inputs(&loaded.runtime, &loaded.inputs, inputs, input_count)? };
        // SAFETY: guaranteed by the caller.
        let mut results = unsafe { buffers::outputs(outputs, output_count)? };
        Ok(loaded.runtime.run_into(&given, &mut results)?)
    })
}
