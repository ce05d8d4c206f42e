//! Constants whose bytes lie in files: passes `divi-verify-weights` and `divi-rebase-weights`, and the files as inputs.

use crate::{
    ir::{Failure, ONNX_CONSTANT, attribute, describe, error, operation_name, run, walk},
    paths::relative,
};
use divi_dialect::{ExternalAttribute, elements_of};
use divi_files::Inputs;
use divi_runtime::weights::{check_extent, size};
use melior::{
    StringRef,
    ir::{Attribute, AttributeLike, Location, Type},
};
use mlir_sys::*;
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io::Write,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// A path that MLIR owns; it need not be UTF-8.
///
/// # Safety
/// The string must be alive for `'a`.
pub(crate) unsafe fn path<'a>(string: MlirStringRef) -> &'a Path {
    if string.length == 0 {
        return Path::new("");
    }
    // SAFETY: the caller's promise.
    Path::new(OsStr::from_bytes(unsafe { std::slice::from_raw_parts(string.data.cast(), string.length) }))
}

/// Every `onnx.Constant` below `module` with its value.
fn constants(module: MlirOperation) -> Vec<(MlirOperation, Attribute<'static>)> {
    let mut constants = vec![];
    walk(module, &mut |operation| {
        if operation_name(operation) == ONNX_CONSTANT
            && let Some(value) = attribute(operation, "value")
        {
            // SAFETY: the attribute lives as long as the context, which outlives the pass.
            constants.push((operation, unsafe { Attribute::from_raw(value) }));
        }
    });
    constants
}

/// Checks that files and a folder that are about to be written do not replace weights of a module. `ir_folder` is the folder that
/// paths of weights are relative to.
pub fn check_outputs(
    module: MlirOperation,
    ir_folder: &Path,
    files: &[&Path],
    folder: Option<&Path>,
) -> Result<(), Failure> {
    let paths: BTreeSet<PathBuf> = constants(module)
        .into_iter()
        .filter_map(|(_, value)| Some(ir_folder.join(ExternalAttribute::from_attribute(value)?.path())))
        .collect();
    let mut inputs = Inputs::default();
    paths.iter().for_each(|path| inputs.add("a file with weights of the model", path));
    let outcome = files
        .iter()
        .try_for_each(|file| inputs.check_file(file))
        .and_then(|()| folder.map_or(Ok(()), |folder| inputs.check_folder(folder)));
    outcome.map_err(|message| {
        error(module, &message);
        Failure
    })
}

/// `files` is a list of paths with NUL between them; `folder` may be empty.
#[unsafe(no_mangle)]
extern "C" fn diviRunCheckOutputs(
    module: MlirOperation,
    ir_folder: MlirStringRef,
    files: MlirStringRef,
    folder: MlirStringRef,
) -> bool {
    run(module, || {
        // SAFETY: the caller's strings outlive the call.
        let (ir_folder, files, folder) = unsafe { (path(ir_folder), path(files), path(folder)) };
        let files = files.as_os_str().as_bytes().split(|&byte| byte == 0);
        let files: Vec<_> =
            files.filter(|file| !file.is_empty()).map(|file| Path::new(OsStr::from_bytes(file))).collect();
        check_outputs(module, ir_folder, &files, (!folder.as_os_str().is_empty()).then_some(folder))
    })
}

/// Writes what a pass has to say to a file, or to stdout for `-`.
#[unsafe(no_mangle)]
extern "C" fn diviRunWriteText(module: MlirOperation, file: MlirStringRef, text: MlirStringRef) -> bool {
    run(module, || {
        // SAFETY: the caller's strings outlive the call.
        let (file, text) = unsafe { (path(file), path(text).as_os_str().as_bytes()) };
        if file == Path::new("-") {
            return std::io::stdout().write_all(text).map_err(|_| Failure);
        }
        check_outputs(module, Path::new(""), &[file], None)?;
        divi_files::write(file, text).map_err(|problem| {
            error(module, &format!("cannot write '{}': {problem}", file.display()));
            Failure
        })
    })
}

//===----------------------------------------------------------------------===//
// --divi-verify-weights
//===----------------------------------------------------------------------===//

/// Checks that the bytes of every constant are there, without reading them; returns how many lie in files. Errors are
/// emitted on the constants, all of them.
pub fn verify_weights(module: MlirOperation, folder: &Path) -> Result<u64, Failure> {
    let mut external = 0;
    let mut failed = false;
    for (operation, value) in constants(module) {
        let problem = match ExternalAttribute::from_attribute(value) {
            Some(reference) => {
                external += 1;
                let path = folder.join(reference.path());
                match size(&path) {
                    None => Some(format!(
                        "refers to '{}', which is not there: put the weights back or say where they are with weights-dir",
                        path.display()
                    )),
                    Some(size) => check_extent(&path, size, reference.offset(), reference.length())
                        .err()
                        .map(|error| error.to_string()),
                }
            }
            // SAFETY: the attribute is alive.
            None if unsafe { mlirAttributeIsADenseResourceElements(value.to_raw()) }
                && elements_of(value, u64::MAX).is_none() =>
            {
                Some("has elements that were elided from the IR, or too few: print it without --mlir-elide-elementsattrs".into())
            }
            None => None,
        };
        if let Some(problem) = problem {
            error(operation, &format!("{} {problem}", describe(operation)));
            failed = true;
        }
    }
    if failed { Err(Failure) } else { Ok(external) }
}

#[unsafe(no_mangle)]
extern "C" fn diviRunVerifyWeights(module: MlirOperation, folder: MlirStringRef, external: *mut u64) -> bool {
    run(module, || {
        // SAFETY: the caller's string and counter outlive the call.
        unsafe { *external = verify_weights(module, path(folder))? };
        Ok(())
    })
}

//===----------------------------------------------------------------------===//
// --divi-rebase-weights
//===----------------------------------------------------------------------===//

/// Rewrites the paths of external constants, relative to `from`, to be relative to `to`. Files are not touched.
pub fn rebase_weights(module: MlirOperation, from: &Path, to: &Path) -> Result<(), Failure> {
    for (operation, value) in constants(module) {
        let Some(reference) = ExternalAttribute::from_attribute(value) else { continue };
        if Path::new(reference.path()).is_absolute() {
            continue;
        }
        let path = relative(&from.join(reference.path()), to);
        let Some(path) = path.to_str() else {
            error(
                operation,
                &format!("{} refers to '{}', a path that is not UTF-8", describe(operation), path.display()),
            );
            return Err(Failure);
        };
        // SAFETY: the operation is alive; type and location belong to its context.
        unsafe {
            let location = Location::from_raw(mlirOperationGetLocation(operation));
            let r#type = Type::from_raw(mlirAttributeGetType(value.to_raw()));
            let moved = ExternalAttribute::new(location, r#type, path, reference.offset(), reference.length())
                .ok_or(Failure)?;
            mlirOperationSetAttributeByName(operation, StringRef::new("value").to_raw(), moved.as_attribute().to_raw());
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn diviRunRebaseWeights(module: MlirOperation, from: MlirStringRef, to: MlirStringRef) -> bool {
    // SAFETY: the caller's strings outlive the call.
    run(module, || unsafe { rebase_weights(module, path(from), path(to)) })
}
