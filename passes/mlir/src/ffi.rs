//! Functions that C++ calls, with raw pointers. The build script generates one for each pass: it converts the options,
//! calls `run` of the pass and returns the statistics. `cpp/Passes.cpp` includes the C++ side.

use crate::{
    declared::*,
    install_device_kinds,
    ir::{Failure, error},
    session::Session,
    weights::{check_outputs, write_file},
};
use divi_dialect::{Operation, text};
use mlir_sys::{MlirOperation, MlirStringRef};
use std::{
    ffi::{OsStr, c_void},
    io::Write,
    os::unix::ffi::OsStrExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    slice,
};

unsafe extern "C" {
    fn diviRegisterPasses();
}

/// Registers the passes with MLIR.
pub(crate) fn register_passes() {
    // SAFETY: the caller does so once, and registration changes only MLIR's pass registry.
    unsafe { diviRegisterPasses() }
}

/// Installs the kinds of devices. `diviRegisterPasses`, which every program that runs passes calls first, calls it.
#[unsafe(no_mangle)]
extern "C" fn diviInstallDeviceKinds() {
    install_device_kinds();
}

include!(concat!(env!("OUT_DIR"), "/entry_points.rs"));

/// Checks that outputs of a driver do not replace weights. `files` is a list of paths with NUL between them; `folder` may be empty.
#[unsafe(no_mangle)]
unsafe extern "C" fn diviRunCheckOutputs(
    module: MlirOperation,
    ir_folder: MlirStringRef,
    files: MlirStringRef,
    folder: MlirStringRef,
) -> bool {
    run(module, |module| {
        // SAFETY: the caller's strings outlive the call.
        let [ir_folder, folder] = [ir_folder, folder].map(|folder| unsafe { path(folder) });
        // SAFETY: as above.
        let files = unsafe { bytes(files) };
        let files = files.split(|&byte| byte == 0).filter(|file| !file.is_empty());
        let files: Vec<_> = files.map(|file| Path::new(OsStr::from_bytes(file))).collect();
        check_outputs(module, ir_folder, &files, (!folder.as_os_str().is_empty()).then_some(folder))
    })
}

/// Callback that writes text to a stream of the driver.
type Sink = extern "C" fn(MlirStringRef, *mut c_void);

/// Writes the text of a pass to the driver's stream, if there is one, or else to a file, or to stdout for `-`.
fn write_text(
    module: Operation<'_>,
    file: &Path,
    sink: Option<Sink>,
    stream: *mut c_void,
    text: &str,
) -> Result<(), Failure> {
    match sink {
        Some(sink) => sink(MlirStringRef { data: text.as_ptr().cast(), length: text.len() }, stream),
        None if file == Path::new("-") => {
            let mut stdout = std::io::stdout();
            stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|problem| {
                error(module, &format!("cannot write to stdout: {problem}"));
                Failure
            })?;
        }
        None => write_file(module, file, text)?,
    }
    Ok(())
}

/// Runs the body of a pass. A panic is a bug of divi: it is reported on the module and never aborts.
fn run(module: MlirOperation, body: impl FnOnce(Operation<'_>) -> Result<(), Failure>) -> bool {
    // SAFETY: MLIR's pass manager keeps the module alive while the pass runs.
    let module = unsafe { Operation::from_raw(module) };
    let outcome = catch_unwind(AssertUnwindSafe(|| body(module)));
    if outcome.is_err() {
        error(module, "divi panicked, which is a bug: please report it with this module");
    }
    matches!(outcome, Ok(Ok(())))
}

/// Returns the bytes of a string.
///
/// # Safety
/// The string must be alive for `'a`.
unsafe fn bytes<'a>(string: MlirStringRef) -> &'a [u8] {
    if string.length == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { slice::from_raw_parts(string.data.cast(), string.length) }
}

/// Returns a path, which need not be UTF-8.
///
/// # Safety
/// The string must be alive for `'a`.
unsafe fn path<'a>(string: MlirStringRef) -> &'a Path {
    // SAFETY: guaranteed by the caller.
    Path::new(OsStr::from_bytes(unsafe { bytes(string) }))
}

/// Copies a list of strings.
///
/// # Safety
/// If there are any, `strings` must point to `length` strings that are alive.
unsafe fn texts(strings: *const MlirStringRef, length: usize) -> Vec<String> {
    if length == 0 {
        return vec![];
    }
    // SAFETY: guaranteed by the caller.
    let strings = unsafe { slice::from_raw_parts(strings, length) };
    // SAFETY: guaranteed by the caller.
    strings.iter().map(|&string| unsafe { text(string) }.to_owned()).collect()
}
