//! `divi-verify-plan`: verifies the plan in a module, and its certificate.
//!
//! Everything is recomputed from the module. No code is shared with solvers or with the passes that write plans, so
//! that both cannot have the same bug. Both forms are verified: decisions on tasks (`divi-partition`), and stages with
//! launches and transfers (`divi-outline`).

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
mod turns;

use crate::{
    declared::VerifyPlan,
    fingerprint::fingerprint,
    ir::{Failure, error, value_bytes, warning},
    tasks::entry,
};
use certificate::Certificate;
use divi_dialect::{Operation, Value, op};
use divi_planner::units::{Bytes, Micros, short_number};
use machine::Machine;

/// Relative tolerance of sums, which may be computed in another order.
const ROUNDING: f64 = 1e-9;
/// Maximum number of errors that are emitted.
const MOST_FINDINGS: usize = 20;

/// Errors of a plan. The first ones are emitted, the others only counted.
#[derive(Default)]
struct Findings {
    count: usize,
    is_failed: bool,
}

impl Findings {
    /// Emits an error, unless there have been too many.
    fn add(&mut self, operation: Operation<'_>, message: &str) {
        self.is_failed = true;
        self.count += 1;
        if self.count <= MOST_FINDINGS {
            error(operation, message);
        }
    }

    /// Records an error that was emitted elsewhere.
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

/// Returns true if a number is above another by more than rounding, or NaN.
fn exceeds<T: Into<f64>>(number: T, limit: T) -> bool {
    let (number, limit) = (number.into(), limit.into());
    number.is_nan() || number > limit + ROUNDING * number.abs().max(limit.abs())
}

/// Returns the size of a value.
fn size(value: Value<'_>) -> Bytes {
    Bytes(value_bytes(value) as f64)
}

/// Formats inputs for messages: `0, 1, 2` or, if there are many, `0 … 15 (16 of them)`.
fn list(inputs: &[i64]) -> String {
    match inputs {
        [first, .., last] if inputs.len() > 8 => format!("{first} … {last} ({} of them)", inputs.len()),
        _ => inputs.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Formats a time for messages: rounded to a nanosecond, unless that would be zero.
fn micros(time: Micros) -> String {
    let rounded = Micros((time.0 * 1e3).round() / 1e3);
    format!("{} us", short_number(if rounded == Micros::ZERO { time } else { rounded }))
}

//===----------------------------------------------------------------------===//
// --divi-verify-plan
//===----------------------------------------------------------------------===//

/// Verifies the plan of a module. Errors are emitted on the operations at fault, at most twenty of them.
///
/// A plan whose decisions were changed by hand is verified as it is now: its starts are recomputed, and a warning gives
/// its value. Under contention, the times of transfers are verified.
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

/// Checks that the function computes the same as when it was planned, outlined or not.
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
            "constants were elided from the text, so it cannot be checked whether the model has changed since it was \
             planned",
        ),
    }
}

impl VerifyPlan {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<(), Failure> {
        verify_plan(module)
    }
}
