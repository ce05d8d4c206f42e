//! `divi-emit-bundle`: a plan as native code.

use super::{Options, write_bundle};
use crate::{
    export::random_seed,
    ir::{Failure, error, run, text},
    weights::path,
};
use divi_codegen::Target;
use mlir_sys::*;
use std::path::Path;

//===----------------------------------------------------------------------===//
// --divi-emit-bundle
//===----------------------------------------------------------------------===//

/// Compiles a plan that was made explicit into a folder. The module stays as it is.
pub fn emit_bundle(module: MlirOperation, output: &Path, options: &Options) -> Result<(), Failure> {
    if output.as_os_str().is_empty() {
        error(module, "output is missing: name a folder for the bundle");
        return Err(Failure);
    }
    write_bundle(module, output, options)
}

#[unsafe(no_mangle)]
extern "C" fn diviRunEmitBundle(
    module: MlirOperation,
    output: MlirStringRef,
    weights_dir: MlirStringRef,
    weights: MlirStringRef,
    cpu: MlirStringRef,
    model: MlirStringRef,
) -> bool {
    run(module, || {
        // SAFETY: the caller's strings outlive the call.
        let (output, weights_dir, weights, cpu, model) =
            unsafe { (path(output), path(weights_dir), text(weights), text(cpu), text(model)) };
        let fail = |message: String| {
            error(module, &message);
            Failure
        };
        let random_seed = random_seed(weights).map_err(fail)?;
        let target = Target::named(cpu).map_err(|problem| fail(problem.to_string()))?;
        let options = Options { model: model.to_owned(), target, ir_folder: weights_dir.to_owned(), random_seed };
        emit_bundle(module, output, &options)
    })
}
