//! `divi-emit-onnx`: writes a module as ONNX models.

use super::{Options, write_model, write_stages};
use crate::{
    declared::EmitOnnx,
    ir::{Failure, error},
    session::Session,
};
use divi_dialect::Operation;
use std::path::Path;

//===----------------------------------------------------------------------===//
// --divi-emit-onnx
//===----------------------------------------------------------------------===//

/// Writes a module to a file that ends in `.onnx`, as one model, or an outlined plan to a folder, as one model per
/// stage, with `plan.json` if the session has the plan. Does not change the module.
pub fn emit_onnx(
    module: Operation<'_>,
    output: &Path,
    options: &Options,
    session: Option<&Session>,
) -> Result<(), Failure> {
    if output.as_os_str().is_empty() {
        error(module, "output is missing: name a folder for stages, or a file that ends in .onnx for one model");
        return Err(Failure);
    }
    if output.extension().is_some_and(|extension| extension == "onnx") {
        return write_model(module, output, options).map(drop);
    }
    let plan = session.and_then(Session::planned_module).map(|planned| planned.plan.write());
    let beside: Vec<(&str, &[u8])> = plan.iter().map(|plan| ("plan.json", plan.as_bytes())).collect();
    write_stages(module, output, options, &beside).map(drop)
}

/// Parses `random:SEED`. An empty string means that weights come from their files.
pub(crate) fn seed(weights: &str) -> Result<Option<u64>, String> {
    if weights.is_empty() {
        return Ok(None);
    }
    let seed = weights.strip_prefix("random:").and_then(|seed| seed.parse().ok());
    seed.map(Some).ok_or_else(|| format!("weights is '{weights}': it must be random:SEED, as in random:1"))
}

impl EmitOnnx {
    pub(crate) fn run(&self, module: Operation<'_>, session: Option<&mut Session>) -> Result<(), Failure> {
        let random_seed = seed(&self.weights).map_err(|message| {
            error(module, &message);
            Failure
        })?;
        let options = Options { ir_folder: self.weights_dir.clone(), random_seed, ..Options::default() };
        emit_onnx(module, &self.output, &options, session.as_deref())
    }
}
