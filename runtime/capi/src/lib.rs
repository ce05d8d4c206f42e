//! The runtime for other languages: what `runtime/include/divi.h` declares.

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

#[repr(C)]
pub struct DiviOptions {
    pub threads: usize,
    pub in_flight: usize,
    pub allow_path: *const c_char,
    pub map_weights: c_int,
}

#[repr(C)]
pub struct DiviTensor {
    name: *const c_char,
    dtype: *const c_char,
    shape: *const u64,
    rank: usize,
    bytes: usize,
}

/// A loaded bundle.
pub struct DiviRuntime {
    runtime: Runtime,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

/// An input or output, with strings as C has them.
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

/// The runtime of a handle.
fn runtime(handle: *const DiviRuntime) -> Result<Arc<DiviRuntime>, Failure> {
    if handle.is_null() {
        return Err(Failure::new(INVALID, "no runtime is given"));
    }
    RUNTIMES.get(handle).ok_or_else(|| Failure::new(INVALID, "the runtime was freed, or never loaded"))
}

/// # Safety
/// `text` is null or a string that ends with a NUL.
unsafe fn path(text: *const c_char) -> Option<PathBuf> {
    // SAFETY: the caller's.
    (!text.is_null()).then(|| OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()).into())
}

/// # Safety
/// `folder` is null or a string that ends with a NUL; `options` is null or points to some.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_load(folder: *const c_char, options: *const DiviOptions) -> *mut DiviRuntime {
    let load = || {
        // SAFETY: the caller's.
        let folder = unsafe { path(folder) }.ok_or("no folder is given")?;
        // SAFETY: the caller's.
        let given = unsafe { options.as_ref() };
        let positive = |number: usize| (number > 0).then_some(number);
        let options = Options {
            threads: given.and_then(|given| positive(given.threads)),
            in_flight: given.and_then(|given| positive(given.in_flight)),
            // SAFETY: the caller's.
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
        // Calls of other threads end as soon as their kernels return; then everything can be given back.
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

#[unsafe(no_mangle)]
pub extern "C" fn divi_input_count(handle: *const DiviRuntime) -> usize {
    guarded(|| Ok(runtime(handle)?.inputs.len())).unwrap_or(0)
}

#[unsafe(no_mangle)]
pub extern "C" fn divi_output_count(handle: *const DiviRuntime) -> usize {
    guarded(|| Ok(runtime(handle)?.outputs.len())).unwrap_or(0)
}

/// # Safety
/// `tensor` is null or points to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_input(handle: *const DiviRuntime, index: usize, tensor: *mut DiviTensor) -> c_int {
    // SAFETY: the caller's.
    status(|| unsafe { describe(runtime(handle)?.inputs.get(index), tensor) })
}

/// # Safety
/// As of [`divi_input`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_output(handle: *const DiviRuntime, index: usize, tensor: *mut DiviTensor) -> c_int {
    // SAFETY: the caller's.
    status(|| unsafe { describe(runtime(handle)?.outputs.get(index), tensor) })
}

/// # Safety
/// `tensor` is null or points to a place for one.
unsafe fn describe(port: Option<&Port>, tensor: *mut DiviTensor) -> Result<(), Failure> {
    let port = port.ok_or("there is no input or output with this index")?;
    if tensor.is_null() {
        return Err("no place for the description is given".into());
    }
    let Port { name, dtype, shape, bytes, .. } = port;
    let (name, dtype, rank, shape) = (name.as_ptr(), dtype.as_ptr(), shape.len(), shape.as_ptr());
    // SAFETY: the caller's.
    unsafe { tensor.write(DiviTensor { name, dtype, shape, rank, bytes: *bytes }) };
    Ok(())
}

/// # Safety
/// There are as many buffers as is said, each as long as it says, and no other thread uses those of outputs.
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
        // SAFETY: the caller's.
        let given = unsafe { buffers::inputs(&loaded.runtime, &loaded.inputs, inputs, input_count)? };
        // SAFETY: the caller's.
        let mut places = unsafe { buffers::outputs(outputs, output_count)? };
        Ok(loaded.runtime.run_into(&given, &mut places)?)
    })
}
