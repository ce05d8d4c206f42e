//! `divi-verify-plan`: whether the plan in a module holds, and is worth what its certificate says.
//!
//! Everything is recomputed from the module, and nothing is shared with solvers, nor with the passes that write plans: what
//! is wrong there cannot be wrong here in the same way. Both forms are judged: decisions on tasks (`divi-partition`), and
//! stages with launches and transfers (`divi-outline`).

mod buses;
mod certificate;
mod copies;
mod edited;
mod flow;
mod graph;
mod machine;
mod memory;
mod moves;
mod outlined;
mod pipeline;
mod planned;
mod runs;
mod task;
#[cfg(test)]
mod tests;

use crate::{
    declared::VerifyPlan,
    fingerprint::fingerprint,
    ir::{Failure, blocks, error, operation_name, operations, warning},
    tasks::entry,
};
use certificate::Certificate;
use divi_planner::units::{Micros, short_number};
use machine::Machine;
use mlir_sys::*;

/// Sums may differ by this share, added up in another order.
const ROUNDING: f64 = 1e-9;
/// The most findings that are told one by one.
const MOST_FINDINGS: usize = 20;

/// What is wrong with a plan, and where.
#[derive(Default)]
struct Findings {
    all: Vec<(MlirOperation, String)>,
    is_failed: bool,
}

impl Findings {
    fn add(&mut self, operation: MlirOperation, message: &str) {
        self.is_failed = true;
        self.all.push((operation, message.to_owned()));
    }

    /// Somebody else has told what is wrong.
    fn said(&mut self) {
        self.is_failed = true;
    }

    fn tell(self, module: MlirOperation) -> Result<(), Failure> {
        for (operation, message) in self.all.iter().take(MOST_FINDINGS) {
            error(*operation, message);
        }
        if let Some(more) = self.all.len().checked_sub(MOST_FINDINGS).filter(|&more| more > 0) {
            error(module, &format!("{more} more findings are left out"));
        }
        if self.is_failed { Err(Failure) } else { Ok(()) }
    }
}

/// Whether a number is above another by more than rounding; so is one that is no number.
fn exceeds(number: f64, limit: f64) -> bool {
    number.is_nan() || number > limit + ROUNDING * number.abs().max(limit.abs())
}

/// A time as messages have it: to the nanosecond, or as it is where that would hide it.
fn micros(time: Micros) -> String {
    let rounded = (time * 1e3).round() / 1e3;
    format!("{} us", short_number(if rounded == 0.0 { time } else { rounded }))
}

//===----------------------------------------------------------------------===//
// --divi-verify-plan
//===----------------------------------------------------------------------===//

/// Checks the plan of a module. Errors are emitted on the operations at fault, up to twenty of them.
///
/// A plan whose decisions were changed by hand is judged by what it says now: its starts are recomputed, and a warning tells
/// what it is worth. Where transfers hinder each other on buses, it is checked when they are.
pub fn verify_plan(module: MlirOperation) -> Result<(), Failure> {
    let function = entry(module)?;
    let mut findings = Findings::default();
    let machine = Machine::of(module, &mut findings);
    let certificate = Certificate::of(module, &mut findings);
    if let (Some(machine), Some(certificate)) = (machine, certificate) {
        let is_outlined = blocks(function).into_iter().flat_map(operations).any(|operation| {
            matches!(operation_name(operation), "divi.launch" | "divi.transfer" | "divi.slice" | "divi.gather")
        });
        if is_outlined {
            outlined::verify(module, function, &machine, &certificate, &mut findings);
        } else {
            planned::verify(module, function, &machine, &certificate, &mut findings)?;
        }
        verify_model(module, function, is_outlined, &certificate, &mut findings);
    }
    findings.tell(module)
}

/// The function computes what it did when it was planned, however it is cut into stages.
fn verify_model(
    module: MlirOperation,
    function: MlirOperation,
    is_outlined: bool,
    certificate: &Certificate,
    findings: &mut Findings,
) {
    let Some(model) = &certificate.model else { return };
    match fingerprint(module, function) {
        Some(found) if found == *model => {}
        Some(_) if is_outlined => {
            findings.add(function, "the stages do not compute what was planned: outline again from the planned module")
        }
        Some(_) => findings.add(function, "the model was changed since it was planned: plan it again"),
        None => warning(
            module,
            "constants were elided from the text, so that it cannot be seen whether the model is still the one that was \
             planned",
        ),
    }
}

impl VerifyPlan {
    pub(crate) fn run(&self, module: MlirOperation) -> Result<(), Failure> {
        verify_plan(module)
    }
}
