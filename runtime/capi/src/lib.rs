//! The runtime for other languages: what `runtime/include/divi.h` declares.

use divi_runtime::{DType, Options, Runtime, TensorRef, bundle::Tensor};
use std::{
    cell::RefCell,
    ffi::{CStr, CString, OsStr, c_char, c_int, c_void},
    os::unix::ffi::OsStrExt,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

#[repr(C)]
pub struct DiviOptions {
    threads: usize,
    in_flight: usize,
}

#[repr(C)]
pub struct DiviTensor {
    name: *const c_char,
    dtype: *const c_char,
    shape: *const u64,
    rank: usize,
    bytes: usize,
}

#[repr(C)]
pub struct DiviBuffer {
    data: *mut c_void,
    bytes: usize,
}

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

/// What is behind a NUL cannot be said in C.
fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// Keeps the error of a call for its thread; a panic is one, and does not cross into C.
fn guarded<T>(call: impl FnOnce() -> Result<T, String>) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err("divi panicked: this is a bug".into()));
    ERROR.with_borrow_mut(|error| *error = c_string(result.as_ref().err().map_or("", |message| message)));
    result.ok()
}

/// # Safety
/// `folder` is a string that ends with a NUL; `options` is null or leads to some.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_load(folder: *const c_char, options: *const DiviOptions) -> *mut DiviRuntime {
    let load = || {
        if folder.is_null() {
            return Err("no folder is given".to_owned());
        }
        // SAFETY: the caller's.
        let folder = unsafe { CStr::from_ptr(folder) };
        // SAFETY: the caller's.
        let given = unsafe { options.as_ref() };
        let positive = |number: usize| (number > 0).then_some(number);
        let options = Options {
            threads: given.and_then(|given| positive(given.threads)),
            in_flight: given.and_then(|given| positive(given.in_flight)),
            ..Options::default()
        };
        let runtime =
            Runtime::load(OsStr::from_bytes(folder.to_bytes()), options).map_err(|error| error.to_string())?;
        let (inputs, outputs) = (runtime.inputs().map(Port::new).collect(), runtime.outputs().map(Port::new).collect());
        Ok(Box::into_raw(Box::new(DiviRuntime { runtime, inputs, outputs })))
    };
    guarded(load).unwrap_or(ptr::null_mut())
}

/// # Safety
/// `runtime` is null or comes from [`divi_load`], and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_free(runtime: *mut DiviRuntime) {
    if !runtime.is_null() {
        // SAFETY: the caller's.
        let runtime = unsafe { Box::from_raw(runtime) };
        guarded(|| {
            drop(runtime);
            Ok(())
        });
    }
}

/// # Safety
/// `runtime` is null or comes from [`divi_load`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_input_count(runtime: *const DiviRuntime) -> usize {
    // SAFETY: the caller's.
    unsafe { runtime.as_ref() }.map_or(0, |runtime| runtime.inputs.len())
}

/// # Safety
/// As of [`divi_input_count`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_output_count(runtime: *const DiviRuntime) -> usize {
    // SAFETY: the caller's.
    unsafe { runtime.as_ref() }.map_or(0, |runtime| runtime.outputs.len())
}

/// # Safety
/// As of [`divi_input_count`]; `tensor` leads to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_input(runtime: *const DiviRuntime, index: usize, tensor: *mut DiviTensor) -> c_int {
    // SAFETY: the caller's.
    let port = unsafe { runtime.as_ref() }.and_then(|runtime| runtime.inputs.get(index));
    // SAFETY: the caller's.
    unsafe { describe(port, tensor) }
}

/// # Safety
/// As of [`divi_input`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_output(runtime: *const DiviRuntime, index: usize, tensor: *mut DiviTensor) -> c_int {
    // SAFETY: the caller's.
    let port = unsafe { runtime.as_ref() }.and_then(|runtime| runtime.outputs.get(index));
    // SAFETY: the caller's.
    unsafe { describe(port, tensor) }
}

/// # Safety
/// `tensor` is null or leads to a place for one.
unsafe fn describe(port: Option<&Port>, tensor: *mut DiviTensor) -> c_int {
    let described = guarded(|| {
        let port = port.ok_or("there is no input or output with this index")?;
        if tensor.is_null() {
            return Err("no place for the description is given".to_owned());
        }
        let Port { name, dtype, shape, bytes, .. } = port;
        let (name, dtype, rank, shape) = (name.as_ptr(), dtype.as_ptr(), shape.len(), shape.as_ptr());
        // SAFETY: the caller's.
        unsafe { tensor.write(DiviTensor { name, dtype, shape, rank, bytes: *bytes }) };
        Ok(())
    });
    described.map_or(-1, |()| 0)
}

/// # Safety
/// `runtime` comes from [`divi_load`]; there are as many buffers as is said, each as long as it says, and those of outputs
/// are nobody else's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn divi_run(
    runtime: *mut DiviRuntime,
    inputs: *const DiviBuffer,
    input_count: usize,
    outputs: *const DiviBuffer,
    output_count: usize,
) -> c_int {
    let run = || {
        // SAFETY: the caller's.
        let DiviRuntime { runtime, inputs: ports, .. } = unsafe { runtime.as_ref() }.ok_or("no runtime is given")?;
        if input_count != ports.len() {
            return Err(format!("the model has {} inputs, and {input_count} are given", ports.len()));
        }
        // SAFETY: the caller's.
        let (inputs, outputs) = unsafe { (buffers(inputs, input_count)?, buffers(outputs, output_count)?) };
        let given = runtime.inputs().zip(ports).zip(inputs).map(|(((name, _), port), buffer)| {
            let dtype = port.kind.ok_or_else(|| format!("input '{name}' has a type that is not known"))?;
            // SAFETY: the caller's.
            let bytes = unsafe { bytes(buffer)? };
            Ok((name, TensorRef { dtype, shape: &port.shape, bytes }))
        });
        let given = given.collect::<Result<Vec<_>, String>>()?;
        // SAFETY: the caller's.
        let places = outputs.iter().map(|buffer| unsafe { bytes_mut(buffer) });
        let mut places = places.collect::<Result<Vec<_>, String>>()?;
        runtime.run_into(&given, &mut places).map_err(|error| error.to_string())
    };
    guarded(run).map_or(-1, |()| 0)
}

/// # Safety
/// There are as many buffers.
unsafe fn buffers<'a>(buffers: *const DiviBuffer, count: usize) -> Result<&'a [DiviBuffer], String> {
    match (buffers.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err("no buffers are given".to_owned()),
        // SAFETY: the caller's.
        (false, _) => Ok(unsafe { slice::from_raw_parts(buffers, count) }),
    }
}

/// # Safety
/// The buffer is as long as it says.
unsafe fn bytes(buffer: &DiviBuffer) -> Result<&[u8], String> {
    match (buffer.data.is_null(), buffer.bytes) {
        (_, 0) => Ok(&[]),
        (true, _) => Err("a buffer leads nowhere".to_owned()),
        // SAFETY: the caller's.
        (false, length) => Ok(unsafe { slice::from_raw_parts(buffer.data.cast(), length) }),
    }
}

/// # Safety
/// As of [`bytes`], and the buffer is nobody else's.
unsafe fn bytes_mut<'a>(buffer: &DiviBuffer) -> Result<&'a mut [u8], String> {
    match (buffer.data.is_null(), buffer.bytes) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err("a buffer leads nowhere".to_owned()),
        // SAFETY: the caller's.
        (false, length) => Ok(unsafe { slice::from_raw_parts_mut(buffer.data.cast(), length) }),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn divi_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}
