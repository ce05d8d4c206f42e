//! Verifier: checks that a plan satisfies its problem and has its stated value, recomputed from the two files alone.
//!
//! It shares no code with a solver, nor the instance that solvers work on, so an error there is not repeated here.
//! Latency is the case of one queued input, so both schedules are verified as launches. Pipelines are verified block by
//! block, or device by device, and those of edge networks machine by machine and link by link; plans that cannot be
//! verified yet are rejected with a message.
//!
//! With contention, or if parameters have to be copied, a plan lists the times of transfers and copies.

mod batches;
mod buses;
mod components;
mod copies;
mod edge;
mod holds;
mod launches;
mod memory;
mod moves;
mod pipeline;
mod precedence;
mod stages;
mod tensors;
mod terms;
mod turns;

use crate::model::error::{Error, Finding};
use crate::model::plan::{Limit, Objective, Plan, Proof, Schedule};
use crate::model::problem::{MOST_INPUTS, Problem};
use crate::model::units::{Micros, number};

use buses::Buses;
use copies::Copies;
use launches::Launches;
use moves::Moves;
use terms::Judged;
pub use terms::Terms;

/// Relative tolerance of the values that a plan states.
const TOLERANCE: f64 = 1e-6;
/// Relative rounding error of sums in another order. A larger one could hide whole tasks in a plan of a second.
const ROUNDING: f64 = 1e-9;

/// Returns the plan's value, recomputed under the problem's own model; or all violated constraints.
pub fn verify(problem: &Problem, plan: &Plan) -> Result<Micros, Error> {
    verify_under(problem, plan, &Terms::default())
}

/// Verifies under the caller's terms: the plan does not decide contention, inputs, stages, their cost or split points.
pub fn verify_under(problem: &Problem, plan: &Plan, terms: &Terms) -> Result<Micros, Error> {
    let (value, mut findings) = judge(problem, plan, terms)?;
    check_certificate(plan, value, &mut findings);
    if findings.is_empty() { Ok(value) } else { Err(Error::Plan(findings)) }
}

/// Returns the value of a plan's schedule, or all violated constraints. The value and bound that the plan states are not
/// checked: they may be out of date.
pub fn value_under(problem: &Problem, plan: &Plan, terms: &Terms) -> Result<Micros, Error> {
    let (value, findings) = judge(problem, plan, terms)?;
    if findings.is_empty() { Ok(value) } else { Err(Error::Plan(findings)) }
}

/// Recomputes the value of a plan, and checks all of it but the certificate.
fn judge(problem: &Problem, plan: &Plan, terms: &Terms) -> Result<(Micros, Vec<Finding>), Error> {
    problem.check_form()?;
    if plan.problem != problem.hash() {
        let message =
            format!("the plan is for another problem: it says {}, this one is {}", plan.problem, problem.hash());
        return Err(refuse(Finding::new("problem", message)));
    }
    refuse_unverifiable(problem, plan)?;
    let judged = &terms::settle(problem, plan, terms)?;
    let mut findings = Vec::new();
    check_names(problem, plan, &mut findings);
    let value = match &plan.schedule {
        Schedule::Pipeline { block, k, stages, .. } => {
            pipeline::bottleneck(problem, judged, block, *k, stages.as_ref()).map_err(Error::Plan)?
        }
        Schedule::BatchedPipeline { block, k, turns, order, .. } => {
            pipeline::batched(problem, judged, block, *k, turns, order.as_ref()).map_err(Error::Plan)?
        }
        Schedule::Edge { place, .. } => edge::period(problem, judged, place).map_err(Error::Plan)?,
        Schedule::Latency { .. } | Schedule::Batch { .. } => {
            let mut launches = Launches::of(problem, plan, judged).map_err(Error::Plan)?;
            let copies = Copies::of(problem, plan, &mut launches, &mut findings);
            launches.check_overlaps(problem, &mut findings);
            let moves = Moves::of(problem, plan, judged, &launches, &mut findings);
            precedence::check(problem, &launches, &moves, &mut findings);
            memory::check(problem, &launches, &moves, &copies, &mut findings);
            let mut buses = Buses::new(problem, judged);
            moves.occupy(problem, &mut buses);
            copies.occupy(problem, &launches, &mut buses);
            buses.check(&mut findings);
            launches.makespan()
        }
    };
    Ok((value, findings))
}

fn refuse(finding: Finding) -> Error {
    Error::Plan(vec![finding])
}

/// Rejects plans that cannot be verified.
fn refuse_unverifiable(problem: &Problem, plan: &Plan) -> Result<(), Error> {
    let not_yet = |place: &str, what: &str| Err(refuse(Finding::new(place, format!("{what}: not verified yet"))));
    if plan.splits.is_some() && !matches!(plan.schedule, Schedule::Edge { .. }) {
        return not_yet("splits", "split points of anything but an edge network");
    }
    if let Some(inputs) = plan.inputs {
        let objective = plan.schedule.objective();
        let most = if objective == Objective::Batch { MOST_INPUTS } else { 1 };
        if inputs == 0 || inputs > most {
            let message = format!("{inputs} queued inputs; at least 1, at most {most} for objective {objective}");
            return Err(refuse(Finding::new("inputs", message)));
        }
    }
    let objective = plan.schedule.objective();
    if let Some(Limit::Seconds(seconds)) = plan.limit
        && (seconds < 0.0 || seconds.is_nan())
    {
        return Err(refuse(Finding::new("limit", format!("{} is not a valid number of seconds", number(seconds)))));
    }
    if objective != Objective::Pipeline && plan.pipeline_cost.is_some() {
        let message = format!("is for objective pipeline; this plan is for {objective}");
        return Err(refuse(Finding::new("pipeline_cost", message)));
    }
    if objective == Objective::Pipeline && !plan.transfers.is_empty() {
        let message = "a pipeline repeats its transfers for each input, and does not list them";
        return Err(refuse(Finding::new("transfers", message)));
    }
    if objective != Objective::Latency && (problem.cold.is_some() || !plan.copies.is_empty()) {
        let place = if problem.cold.is_some() { "cold" } else { "copies" };
        let message = format!("parameters are copied for one input, objective latency; this plan is for {objective}");
        return Err(refuse(Finding::new(place, message)));
    }
    Ok(())
}

fn check_names(problem: &Problem, plan: &Plan, findings: &mut Vec<Finding>) {
    let Some(names) = &plan.names else { return };
    if names.len() != problem.nodes.len() {
        let message = format!("there are {}, but the problem has {} nodes", names.len(), problem.nodes.len());
        findings.push(Finding::new("names", message));
    }
    for (index, (name, node)) in names.iter().zip(&problem.nodes).enumerate() {
        if node.name.as_ref() != Some(name) {
            let message = format!("is \"{name}\", but the problem's is \"{}\"", node.name.as_deref().unwrap_or(""));
            findings.push(Finding::new(format!("names[{index}]"), message));
        }
    }
}

/// Checks that the stated value, bound and gap agree with the recomputed value.
fn check_certificate(plan: &Plan, value: Micros, findings: &mut Vec<Finding>) {
    let key = match plan.schedule {
        Schedule::Latency { .. } | Schedule::Batch { .. } => "makespan",
        Schedule::Pipeline { .. } | Schedule::BatchedPipeline { .. } => "bottleneck",
        Schedule::Edge { .. } => "period",
    };
    let stated = [(key, plan.schedule.value()), ("value", plan.value)];
    for (key, stated) in stated {
        if !same(stated, value) {
            let message =
                format!("is {}, but the plan takes {}: {}", number(stated), number(value), off(stated, value));
            findings.push(Finding::new(key, message));
        }
    }
    if !plan.bound.is_finite() || plan.bound < Micros::ZERO {
        findings.push(Finding::new("bound", format!("{} is not a valid time", number(plan.bound))));
    } else if exceeds_by(TOLERANCE, plan.bound, value) {
        let message = format!(
            "{} is above the plan's own value {}: {}, so it cannot be a lower bound",
            number(plan.bound),
            number(value),
            off(plan.bound, value)
        );
        findings.push(Finding::new("bound", message));
    }
    check_proof(plan, findings);
    let gap = if value > Micros::ZERO { (value - plan.bound) / value } else { 0.0 };
    // A gap is relative already; that of an optimum is zero, so the tolerance is absolute.
    if plan.gap.is_nan() || (plan.gap - gap).abs() > TOLERANCE {
        findings.push(Finding::new("gap", format!("is {}, but (value - bound) / value is {gap}", number(plan.gap))));
    }
}

/// Checks that a verified bound is only stated beside a solver's claim, and is no larger.
fn check_proof(plan: &Plan, findings: &mut Vec<Finding>) {
    let Some(verified) = plan.verified_bound else { return };
    if plan.proof != Proof::Solver {
        let message = format!("is for bounds whose proof is solver; this one's is {}", plan.proof);
        findings.push(Finding::new("verified_bound", message));
    } else if !verified.is_finite() || verified < Micros::ZERO {
        findings.push(Finding::new("verified_bound", format!("{} is not a valid time", number(verified))));
    } else if exceeds_by(TOLERANCE, verified, plan.bound) {
        let message = format!("{} is above the bound {}", number(verified), number(plan.bound));
        findings.push(Finding::new("verified_bound", message));
    }
}

fn off(stated: Micros, value: Micros) -> String {
    format!("off by {}", number((stated - value).abs()))
}

/// Returns true if a number exceeds another by more than rounding, or is NaN.
fn exceeds<T: Into<f64>>(number: T, limit: T) -> bool {
    exceeds_by(ROUNDING, number, limit)
}

/// Returns true if a number exceeds another by more than a share of the larger, or is NaN.
fn exceeds_by<T: Into<f64>>(share: f64, number: T, limit: T) -> bool {
    let (number, limit) = (number.into(), limit.into());
    number.is_nan() || number > limit + share * number.abs().max(limit.abs())
}

/// Returns true if a stated value agrees with the recomputed one.
fn same(stated: Micros, value: Micros) -> bool {
    !exceeds_by(TOLERANCE, stated, value) && !exceeds_by(TOLERANCE, value, stated)
}
