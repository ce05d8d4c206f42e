//! Constants in files: passes `divi-verify-weights` and `divi-rebase-weights`, and protection of the files against
//! being overwritten.

use crate::{
    declared::{RebaseWeights, VerifyWeights, VerifyWeightsStatistics},
    ir::{Failure, ONNX_CONSTANT, describe, error},
    paths::relative,
};
use divi_dialect::{ExternalAttribute, Operation, attr, elements_of};
use divi_files::Inputs;
use divi_runtime::weights::{check_extent, size};
use melior::ir::Attribute;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// Returns every `onnx.Constant` below `module` with its value.
fn constants(module: Operation<'_>) -> Vec<(Operation<'_>, Attribute<'_>)> {
    let mut constants = vec![];
    module.walk(|operation| {
        if operation.name() == ONNX_CONSTANT
            && let Some(value) = operation.get(attr::VALUE)
        {
            constants.push((operation, value));
        }
    });
    constants
}

/// Checks that files and a folder that are about to be written do not replace weights of a module, whose paths are
/// relative to `ir_folder`.
pub fn check_outputs(
    module: Operation<'_>,
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

/// Writes the text of a pass to a file.
pub(crate) fn write_file(module: Operation<'_>, file: &Path, text: &str) -> Result<(), Failure> {
    check_outputs(module, Path::new(""), &[file], None)?;
    divi_files::write(file, text.as_bytes()).map_err(|problem| {
        error(module, &format!("cannot write '{}': {problem}", file.display()));
        Failure
    })
}

//===----------------------------------------------------------------------===//
// --divi-verify-weights
//===----------------------------------------------------------------------===//

/// Checks that the bytes of every constant exist, without reading them. Returns the number of constants in files. All
/// errors are emitted, on the constants.
pub fn verify_weights(module: Operation<'_>, folder: &Path) -> Result<u64, Failure> {
    let mut external = 0;
    let mut failed = false;
    for (operation, value) in constants(module) {
        let problem = match ExternalAttribute::from_attribute(value) {
            Some(reference) => {
                external += 1;
                let path = folder.join(reference.path());
                match size(&path) {
                    None => Some(format!(
                        "refers to '{}', which does not exist; restore the weights or pass their folder with weights-dir",
                        path.display()
                    )),
                    Some(size) => check_extent(&path, size, reference.offset(), reference.length())
                        .err()
                        .map(|error| error.to_string()),
                }
            }
            None if attr::is_resource(value) && elements_of(value, u64::MAX).is_none() => Some(
                "has elements that were elided from the IR, or too few: print it without --mlir-elide-elementsattrs"
                    .into(),
            ),
            None => None,
        };
        if let Some(problem) = problem {
            error(operation, &format!("{} {problem}", describe(operation)));
            failed = true;
        }
    }
    if failed { Err(Failure) } else { Ok(external) }
}

impl VerifyWeights {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<VerifyWeightsStatistics, Failure> {
        Ok(VerifyWeightsStatistics { num_external: verify_weights(module, &self.weights_dir)? })
    }
}

//===----------------------------------------------------------------------===//
// --divi-rebase-weights
//===----------------------------------------------------------------------===//

/// Rewrites the paths of external constants, relative to `from`, to be relative to `to`. Files are not changed.
pub fn rebase_weights(module: Operation<'_>, from: &Path, to: &Path) -> Result<(), Failure> {
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
        let (location, r#type) = (operation.location(), attr::type_of(value));
        let moved =
            ExternalAttribute::new(location, r#type, path, reference.offset(), reference.length()).ok_or(Failure)?;
        operation.set(attr::VALUE, moved.as_attribute());
    }
    Ok(())
}

impl RebaseWeights {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<(), Failure> {
        rebase_weights(module, &self.from, &self.to)
    }
}
