//! `divi-opt`: `mlir-opt` with divi's dialects and passes, and with ONNX models as input.

mod ffi;
mod outputs;
mod planning;

use divi_passes::import::{Options, Source, import};
use melior::ir::operation::OperationLike;
use std::process::ExitCode;

fn main() -> ExitCode {
    divi_papers::register();
    let status = ffi::run_driver();
    divi_planner::exit_if_solver_detached(status);
    ExitCode::from(status)
}

/// Returns the versions of divi and of its libraries.
fn versions(llvm: &str) -> String {
    let cuda = match divi_cost::device::driver_version() {
        Ok(Some(version)) => version,
        Ok(None) => "no driver".to_owned(),
        Err(problem) => problem,
    };
    let (divi, highs) = (env!("CARGO_PKG_VERSION"), divi_planner::highs_version());
    format!("divi-opt {divi}\nLLVM {llvm}\nHiGHS {highs}\nCUDA {cuda}\n")
}

/// Imports a model. Returns the module as bytecode.
fn bytecode(source: &Source, options: &Options, quiet: bool) -> Result<Vec<u8>, String> {
    let context = divi_passes::new_context();
    let (module, warnings) = import(&context, source, options).map_err(|error| error.to_string())?;
    if !quiet {
        for warning in warnings {
            eprintln!("{warning}");
        }
    }
    Ok(module.as_operation().write_bytecode())
}
