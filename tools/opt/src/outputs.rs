//! Drafts and checks of outputs for the driver.

use divi_cost::system::System;
use divi_files::{Draft, Inputs, check_distinct, clean_up_on_signals};
use mlir_sys::MlirStringRef;
use std::{
    ffi::{OsStr, c_void},
    os::unix::ffi::OsStrExt,
    path::Path,
};

type Sink = extern "C" fn(MlirStringRef, *mut c_void);

fn string(bytes: &[u8]) -> MlirStringRef {
    MlirStringRef { data: bytes.as_ptr().cast(), length: bytes.len() }
}

/// # Safety
/// The string must live for `'a`.
unsafe fn path<'a>(text: MlirStringRef) -> &'a Path {
    // SAFETY: the caller's promise.
    Path::new(OsStr::from_bytes(unsafe { crate::slice(text) }))
}

#[unsafe(no_mangle)]
extern "C" fn diviCleanUpOnSignals() {
    // Without it, the next run for the same output removes what is left.
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
    // SAFETY: it was made by diviDraftCreate, and the path lives as long as the draft.
    string(unsafe { &*draft }.path().as_os_str().as_bytes())
}

#[unsafe(no_mangle)]
extern "C" fn diviDraftCommit(draft: *mut Draft, sink: Sink, user: *mut c_void) -> bool {
    // SAFETY: it was made by diviDraftCreate, and the driver gives it back once.
    let outcome = unsafe { Box::from_raw(draft) }.commit();
    outcome.inspect_err(|problem| sink(string(plain(problem).as_bytes()), user)).is_ok()
}

#[unsafe(no_mangle)]
extern "C" fn diviDraftDiscard(draft: *mut Draft) {
    // SAFETY: as for diviDraftCommit.
    drop(unsafe { Box::from_raw(draft) });
}

/// An error as LLVM prints it, without its number.
fn plain(problem: &std::io::Error) -> String {
    let text = problem.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// As in `cpp/Output.cpp`.
#[repr(C)]
struct Outputs {
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
extern "C" fn diviCheckOutputs(outputs: *const Outputs, sink: Sink, user: *mut c_void) -> bool {
    // SAFETY: the driver's strings outlive the call.
    let outcome = unsafe { check(&*outputs) };
    outcome.inspect_err(|message| sink(string(message.as_bytes()), user)).is_ok()
}

/// # Safety
/// The strings must be alive.
unsafe fn check(outputs: &Outputs) -> Result<(), String> {
    // SAFETY: the caller's promise.
    let [input, system, plan, placement, output, report] = unsafe {
        [outputs.input, outputs.system, outputs.plan, outputs.placement, outputs.output, outputs.report]
            .map(|text| path(text))
    };
    let is_given = |path: &Path| !path.as_os_str().is_empty() && path != Path::new("-");
    let mut read = Inputs::default();
    for (description, path) in [("the plan", plan), ("the placement", placement)] {
        if is_given(path) {
            read.add(description, path);
        }
    }
    // Presets have names that no file needs to have.
    if system.is_file() {
        read.add("the system", system);
        let described = system.to_str().and_then(|system| System::load(system).ok());
        let profiles = described.iter().flat_map(|system| &system.devices).filter_map(|device| device.profile.as_ref());
        profiles.for_each(|path| read.add("a profile of the system", path));
    }
    let mut all = read.clone();
    if is_given(input) {
        all.add("the model", input);
    }
    if is_given(report) {
        all.check_file(report)?;
    }
    if !is_given(output) {
        return Ok(());
    }
    let inputs = if outputs.in_place { read } else { all };
    if outputs.is_folder {
        inputs.check_folder(output)?;
        let mut folder = Inputs::default();
        folder.add("the folder that -o replaces,", output);
        return if is_given(report) { folder.check_file(report) } else { Ok(()) };
    }
    inputs.check_file(output)?;
    if is_given(report) { check_distinct(&[("-o", output), ("--report", report)]) } else { Ok(()) }
}
