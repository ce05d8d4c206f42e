//! Functions called by the C++ driver, and its entry point.

use crate::{
    bytecode,
    outputs::{Outputs, check, plain},
    planning, versions,
};
use bytes::Bytes;
use divi_files::{Draft, clean_up_on_signals};
use divi_passes::{
    import::{Options, Source, is_onnx},
    session::Session,
};
use mlir_sys::MlirStringRef;
use std::{
    env,
    ffi::{CString, OsStr, c_char, c_int, c_void},
    os::unix::ffi::{OsStrExt, OsStringExt},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// Callback that passes a text to a stream of the driver.
type Sink = extern "C" fn(MlirStringRef, *mut c_void);

unsafe extern "C" {
    fn diviOptMain(argc: c_int, argv: *mut *mut c_char) -> c_int;
}

/// Runs the driver on the arguments of the process. Returns its exit status.
pub(crate) fn run_driver() -> u8 {
    let arguments: Vec<CString> =
        env::args_os().map(|argument| CString::new(argument.into_vec()).expect("arguments have no NUL")).collect();
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|argument| argument.as_ptr().cast_mut()).collect();
    pointers.push(std::ptr::null_mut());
    // SAFETY: the arguments outlive the call and end with null, as for any main.
    let code = unsafe { diviOptMain(arguments.len() as c_int, pointers.as_mut_ptr()) };
    u8::try_from(code).unwrap_or(1)
}

/// Returns the bytes of a string of the driver.
///
/// # Safety
/// They must be valid for `'a`.
unsafe fn slice<'a>(bytes: MlirStringRef) -> &'a [u8] {
    if bytes.length == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(bytes.data.cast(), bytes.length) }
}

/// Returns a string of the driver as a path.
///
/// # Safety
/// As for [`slice()`].
unsafe fn path<'a>(text: MlirStringRef) -> &'a Path {
    // SAFETY: guaranteed by the caller.
    Path::new(OsStr::from_bytes(unsafe { slice(text) }))
}

/// Returns a string of the driver as text.
///
/// # Safety
/// As for [`slice()`].
unsafe fn text<'a>(text: MlirStringRef) -> std::borrow::Cow<'a, str> {
    // SAFETY: guaranteed by the caller.
    String::from_utf8_lossy(unsafe { slice(text) })
}

fn string(bytes: &[u8]) -> MlirStringRef {
    MlirStringRef { data: bytes.as_ptr().cast(), length: bytes.len() }
}

//===----------------------------------------------------------------------===//
// Input
//===----------------------------------------------------------------------===//

#[unsafe(no_mangle)]
extern "C" fn diviVersions(llvm: MlirStringRef, sink: Sink, user: *mut c_void) {
    // SAFETY: the driver's string outlives the call.
    let llvm = unsafe { text(llvm) };
    sink(string(versions(&llvm).as_bytes()), user);
}

#[unsafe(no_mangle)]
extern "C" fn diviCheckCpu(cpu: MlirStringRef) -> bool {
    // SAFETY: the driver's string outlives the call.
    let cpu = unsafe { text(cpu) };
    let outcome = divi_codegen::Target::named(&cpu);
    if let Err(problem) = &outcome {
        eprintln!("divi-opt: error: {problem}");
    }
    outcome.is_ok()
}

#[unsafe(no_mangle)]
extern "C" fn diviIsOnnx(bytes: MlirStringRef) -> bool {
    // SAFETY: the caller's buffer outlives the call.
    is_onnx(unsafe { slice(bytes) })
}

/// Mirrors `DiviImportOptions` of `cpp/Driver.cpp`.
#[repr(C)]
struct ImportOptions {
    input_shapes: MlirStringRef,
    dims: MlirStringRef,
    input_values: MlirStringRef,
    weights_dir: MlirStringRef,
    ir_folder: MlirStringRef,
    batch: i64,
    quiet: bool,
}

#[unsafe(no_mangle)]
extern "C" fn diviImportOnnx(
    name: MlirStringRef,
    is_file: bool,
    bytes: MlirStringRef,
    options: *const ImportOptions,
    sink: Sink,
    buffer: *mut c_void,
) -> bool {
    // SAFETY: the caller's options outlive the call.
    let options = unsafe { &*options };
    // SAFETY: the caller's strings outlive the call.
    let (text, path) = (|bytes| unsafe { text(bytes) }, |bytes| unsafe { path(bytes) });
    // SAFETY: the caller's buffers outlive the call.
    let slice = |bytes| unsafe { slice(bytes) };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let weights_dir: &Path = path(options.weights_dir);
        let wrong = |message: String| format!("divi-opt: error: {message}");
        let import_options = Options {
            batch: (options.batch > 0).then_some(options.batch),
            input_shapes: Options::parse_input_shapes(&text(options.input_shapes)).map_err(wrong)?,
            dims: Options::parse_dims(&text(options.dims)).map_err(wrong)?,
            input_values: Options::parse_input_values(&text(options.input_values)).map_err(wrong)?,
            ir_folder: path(options.ir_folder).to_owned(),
            weights_dir: (!weights_dir.as_os_str().is_empty()).then(|| weights_dir.to_owned()),
        };
        let source = if is_file {
            Source::open(path(name)).map_err(|error| format!("divi-opt: error: {error}"))?
        } else {
            // A pipe can be read only once.
            Source::from_memory(&text(name), Bytes::copy_from_slice(slice(bytes)))
        };
        bytecode(&source, &import_options, options.quiet)
    }));
    match outcome {
        Ok(Ok(bytecode)) => {
            sink(string(&bytecode), buffer);
            true
        }
        Ok(Err(message)) => {
            eprintln!("{message}");
            false
        }
        Err(_) => {
            eprintln!("divi-opt: error: import panicked; this is a bug, please report it with the model");
            false
        }
    }
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

#[unsafe(no_mangle)]
extern "C" fn diviSessionCreate(show_progress: bool, title: MlirStringRef) -> *mut Session {
    // SAFETY: the driver's string outlives the call.
    let title = unsafe { text(title) };
    Box::into_raw(Box::new(planning::session(show_progress, &title)))
}

#[unsafe(no_mangle)]
extern "C" fn diviSessionDestroy(session: *mut Session) {
    // SAFETY: created by diviSessionCreate, and destroyed once by the driver.
    drop(unsafe { Box::from_raw(session) });
}

#[unsafe(no_mangle)]
extern "C" fn diviSessionShow(
    session: *mut Session,
    view: MlirStringRef,
    argument: MlirStringRef,
    sink: Sink,
    user: *mut c_void,
) -> bool {
    // SAFETY: the driver's session outlives the call.
    let session = unsafe { &*session };
    // SAFETY: the driver's strings outlive the call.
    let [view, argument] = [view, argument].map(|string| unsafe { text(string) });
    let outcome = catch_unwind(AssertUnwindSafe(|| planning::show(session, &view, &argument)));
    match outcome.unwrap_or_else(|_| Err("showing the plan panicked; this is a bug, please report it".into())) {
        Ok(text) => {
            sink(string(text.as_bytes()), user);
            true
        }
        Err(message) => {
            eprintln!("divi-opt: error: {message}");
            false
        }
    }
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

#[unsafe(no_mangle)]
extern "C" fn diviCleanUpOnSignals() {
    // On failure, temporary files are left; the next run for the same output removes them.
    let _ = clean_up_on_signals();
}

#[unsafe(no_mangle)]
extern "C" fn diviDraftCreate(target: MlirStringRef, sink: Sink, user: *mut c_void) -> *mut Draft {
    // SAFETY: the driver's string outlives the call.
    match Draft::file(unsafe { path(target) }) {
        Ok(draft) => Box::into_raw(Box::new(draft)),
        Err(problem) => {
            sink(string(plain(&problem).as_bytes()), user);
            std::ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn diviDraftPath(draft: *const Draft) -> MlirStringRef {
    // SAFETY: created by diviDraftCreate; the path lives as long as the draft.
    string(unsafe { &*draft }.path().as_os_str().as_bytes())
}

#[unsafe(no_mangle)]
extern "C" fn diviDraftCommit(draft: *mut Draft, sink: Sink, user: *mut c_void) -> bool {
    // SAFETY: created by diviDraftCreate, and passed back once by the driver.
    let outcome = unsafe { Box::from_raw(draft) }.commit();
    outcome.inspect_err(|problem| sink(string(plain(problem).as_bytes()), user)).is_ok()
}

#[unsafe(no_mangle)]
extern "C" fn diviDraftDiscard(draft: *mut Draft) {
    // SAFETY: as for diviDraftCommit.
    drop(unsafe { Box::from_raw(draft) });
}

/// Mirrors `DiviOutputs` of `cpp/Output.cpp`.
#[repr(C)]
struct RawOutputs {
    input: MlirStringRef,
    system: MlirStringRef,
    plan: MlirStringRef,
    placement: MlirStringRef,
    output: MlirStringRef,
    report: MlirStringRef,
    is_folder: bool,
    in_place: bool,
}

#[unsafe(no_mangle)]
extern "C" fn diviCheckOutputs(outputs: *const RawOutputs, sink: Sink, user: *mut c_void) -> bool {
    // SAFETY: the driver's structure outlives the call.
    let outputs = unsafe { &*outputs };
    // SAFETY: the driver's strings outlive the call.
    let path = |text| unsafe { path(text) };
    let outcome = check(&Outputs {
        input: path(outputs.input),
        system: path(outputs.system),
        plan: path(outputs.plan),
        placement: path(outputs.placement),
        output: path(outputs.output),
        report: path(outputs.report),
        is_folder: outputs.is_folder,
        in_place: outputs.in_place,
    });
    outcome.inspect_err(|message| sink(string(message.as_bytes()), user)).is_ok()
}
