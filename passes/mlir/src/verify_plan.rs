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
    ir::{Failure, error, warning},
    tasks::entry,
};
use certificate::Certificate;
use divi_dialect::{Operation, op};
use divi_planner::units::{Micros, short_number};
use machine::Machine;

/// Sums may differ by this share, added up in another order.
const ROUNDING: f64 = 1e-9;
/// The most errors that are emitted one by one.
const MOST_FINDINGS: usize = 20;

/// Errors of a plan. The first ones are emitted, the others counted.
#[derive(Default)]
struct Findings {
    count: usize,
    is_failed: bool,
}

impl Findings {
    /// Emits an error, if there have not been too many.
    fn add(&mut self, operation: Operation<'_>, message: &str) {
        self.is_failed = true;
        self.count += 1;
        if self.count <= MOST_FINDINGS {
            error(operation, message);
        }
    }

    /// Counts an error that was emitted elsewhere.
    fn said(&mut self) {
        self.is_failed = true;
    }

    fn finish(self, module: Operation<'_>) -> Result<(), Failure> {
        if let Some(more) = self.count.checked_sub(MOST_FINDINGS).filter(|&more| more > 0) {
            error(module, &format!("{more} more findings are left out"));
        }
        if self.is_failed { Err(Failure) } else { Ok(()) }
    }
}

/// Returns true if a number is above another by more than rounding; so is one that is no number.
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
pub fn verify_plan(module: Operation<'_>) -> Result<(), Failure> {
    let function = entry(module)?;
    let mut findings = Findings::default();
    let machine = Machine::of(module, &mut findings);
    let certificate = Certificate::of(module, &mut findings);
    if let (Some(machine), Some(certificate)) = (machine, certificate) {
        let is_step = |step: Operation<'_>| matches!(step.name(), op::LAUNCH | op::TRANSFER | op::SLICE | op::GATHER);
        let is_outlined = function.children().into_iter().any(is_step);
        if is_outlined {
            outlined::verify(module, function, &machine, &certificate, &mut findings);
        } else {
            planned::verify(module, function, &machine, &certificate, &mut findings)?;
        }
        verify_model(module, function, is_outlined, &certificate, &mut findings);
    }
    findings.finish(module)
}

/// The function computes what it did when it was planned, however it is cut into stages.
fn verify_model<'m>(
    module: Operation<'m>,
    function: Operation<'m>,
    is_outlined: bool,
    certificate: &Certificate<'_>,
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
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<(), Failure> {
        verify_plan(module)
    }
}
