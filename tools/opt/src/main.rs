//! `divi-opt`: everything that `mlir-opt` does, with divi's dialects and passes, and ONNX models as input.

mod outputs;
mod planning;

use bytes::Bytes;
use divi_passes::import::{Options, Source, import, is_onnx};
use mlir_sys::{
    MlirStringRef, mlirBytecodeWriterConfigCreate, mlirBytecodeWriterConfigDestroy,
    mlirOperationWriteBytecodeWithConfig,
};
use std::{
    env,
    ffi::{CString, OsStr, c_char, c_int, c_void},
    os::unix::ffi::{OsStrExt, OsStringExt},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::ExitCode,
};

unsafe extern "C" {
    fn diviOptMain(argc: c_int, argv: *mut *mut c_char) -> c_int;
}

fn main() -> ExitCode {
    divi_papers::register();
    let arguments: Vec<CString> =
        env::args_os().map(|argument| CString::new(argument.into_vec()).expect("arguments have no NUL")).collect();
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|argument| argument.as_ptr().cast_mut()).collect();
    pointers.push(std::ptr::null_mut());
    // SAFETY: as for any main: the arguments outlive the call and end with null.
    let code = unsafe { diviOptMain(arguments.len() as c_int, pointers.as_mut_ptr()) };
    let status = u8::try_from(code).unwrap_or(1);
    divi_planner::exit_past_solvers(status);
    ExitCode::from(status)
}

/// As in `cpp/Driver.cpp`.
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
extern "C" fn diviVersions(llvm: MlirStringRef, sink: extern "C" fn(MlirStringRef, *mut c_void), user: *mut c_void) {
    let cuda = match divi_cost::device::driver_version() {
        Ok(Some(version)) => version,
        Ok(None) => "no driver".to_owned(),
        Err(problem) => problem,
    };
    // SAFETY: the driver's string outlives the call.
    let llvm = String::from_utf8_lossy(unsafe { slice(llvm) });
    let (divi, highs) = (env!("CARGO_PKG_VERSION"), divi_planner::highs_version());
    let text = format!("divi-opt {divi}\nLLVM {llvm}\nHiGHS {highs}\nCUDA {cuda}\n");
    sink(MlirStringRef { data: text.as_ptr().cast(), length: text.len() }, user);
}

#[unsafe(no_mangle)]
extern "C" fn diviCheckCpu(cpu: MlirStringRef) -> bool {
    // SAFETY: the driver's string outlives the call.
    let cpu = String::from_utf8_lossy(unsafe { slice(cpu) });
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

/// The bytes behind a string of MLIR's.
///
/// # Safety
/// They must live for `'a`.
unsafe fn slice<'a>(bytes: MlirStringRef) -> &'a [u8] {
    if bytes.length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(bytes.data.cast(), bytes.length) }
}

#[unsafe(no_mangle)]
extern "C" fn diviImportOnnx(
    name: MlirStringRef,
    is_file: bool,
    bytes: MlirStringRef,
    options: *const ImportOptions,
    sink: extern "C" fn(MlirStringRef, *mut c_void),
    buffer: *mut c_void,
) -> bool {
    // SAFETY: the caller's strings and options outlive the call.
    let outcome = catch_unwind(AssertUnwindSafe(|| unsafe {
        let options = &*options;
        let path = |bytes| Path::new(OsStr::from_bytes(slice(bytes)));
        let weights_dir = path(options.weights_dir);
        let text = |bytes| String::from_utf8_lossy(slice(bytes));
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
            // What comes through a pipe comes once.
            Source::from_memory(&String::from_utf8_lossy(slice(name)), Bytes::copy_from_slice(slice(bytes)))
        };
        bytecode(&source, &import_options, options.quiet)
    }));
    match outcome {
        Ok(Ok(bytecode)) => {
            let bytecode = MlirStringRef { data: bytecode.as_ptr().cast(), length: bytecode.len() };
            sink(bytecode, buffer);
            true
        }
        Ok(Err(message)) => {
            eprintln!("{message}");
            false
        }
        Err(_) => {
            eprintln!("divi-opt: error: import panicked, which is a bug: please report it with the model");
            false
        }
    }
}

fn bytecode(source: &Source, options: &Options, quiet: bool) -> Result<Vec<u8>, String> {
    let context = divi_passes::new_context();
    let (module, warnings) = import(&context, source, options).map_err(|error| error.to_string())?;
    if !quiet {
        for warning in warnings {
            eprintln!("{warning}");
        }
    }
    let mut bytecode: Vec<u8> = vec![];
    unsafe extern "C" fn append(chunk: MlirStringRef, buffer: *mut c_void) {
        // SAFETY: the writer hands over live bytes and the vector below.
        unsafe { (*buffer.cast::<Vec<u8>>()).extend_from_slice(slice(chunk)) };
    }
    // SAFETY: the module is alive, the vector outlives the call.
    unsafe {
        let config = mlirBytecodeWriterConfigCreate();
        mlirOperationWriteBytecodeWithConfig(
            module.as_operation().to_raw(),
            config,
            Some(append),
            (&raw mut bytecode).cast(),
        );
        mlirBytecodeWriterConfigDestroy(config);
    }
    Ok(bytecode)
}
