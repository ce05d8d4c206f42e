//! `divi-emit-bundle`: compiles a plan to native code.

use super::{Options, write_bundle};
use crate::{
    declared::EmitBundle,
    export::random_seed,
    ir::{Failure, error},
};
use divi_codegen::Target;
use divi_dialect::Operation;
use std::path::Path;

//===----------------------------------------------------------------------===//
// --divi-emit-bundle
//===----------------------------------------------------------------------===//

/// Compiles an outlined plan into a folder. Does not change the module.
pub fn emit_bundle(module: Operation<'_>, output: &Path, options: &Options) -> Result<(), Failure> {
    if output.as_os_str().is_empty() {
        error(module, "output is missing: name a folder for the bundle");
        return Err(Failure);
    }
    write_bundle(module, output, options)
}

impl EmitBundle {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<(), Failure> {
        let fail = |message: String| {
            error(module, &message);
            Failure
        };
        let random_seed = random_seed(&self.weights).map_err(fail)?;
        let target = Target::named(&self.cpu).map_err(|problem| fail(problem.to_string()))?;
        let options = Options { model: self.model.clone(), target, ir_folder: self.weights_dir.clone(), random_seed };
        emit_bundle(module, &self.output, &options)
    }
}
