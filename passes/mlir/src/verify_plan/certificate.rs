//! Certificate of a plan: `divi.plan`.

use super::{Findings, micros};
use crate::{
    cost::ModuleProblem,
    decisions::{self, PipelineRules},
    inline_stages::with_inlined,
    ir::{Failure, warning},
};
use divi_dialect::{Operation, attr};
use divi_planner::units::{Micros, short_number};

/// Relative tolerance of the values in a certificate, which may be rounded.
const TOLERANCE: f64 = 1e-6;
/// Maximum number of inputs of a request of a pipeline.
const MOST_REQUEST_INPUTS: i64 = 4096;

/// Objective of a plan.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Objective {
    Latency,
    Batch,
    Pipeline,
}

/// Cost model of a pipeline.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PipelineCost {
    /// A device computes and transfers in turn.
    Serial,
    /// Computation and transfers overlap.
    Overlap,
}

/// Certificate of a module.
pub(super) struct Certificate<'m> {
    module: Operation<'m>,
    pub(super) objective: Objective,
    value: Micros,
    bound: Micros,
    /// Verified bound beside one that only the solver reports.
    verified_bound: Option<Micros>,
    gap: f64,
    /// Number of queued inputs, or of inputs of a request of a pipeline of batches; otherwise 1.
    pub(super) inputs: i64,
    /// True if launches are for some of several inputs: those of a queue, or of a request of a pipeline of batches.
    pub(super) is_queued: bool,
    /// True if a task may be launched several times on a device.
    pub(super) has_many_launches: bool,
    /// Maximum number of stages.
    pub(super) stages: Option<i64>,
    pub(super) pipeline_cost: PipelineCost,
    pub(super) shared_devices: bool,
    /// Maximum batch size of a stage of a pipeline of batches, and maximum number of its devices.
    pub(super) max_batch: u64,
    pub(super) max_replicas: u64,
    pub(super) decisions: Option<String>,
    pub(super) model: Option<String>,
    /// Fingerprint of the problem that the bound was proven for.
    problem: Option<String>,
}

impl<'m> Certificate<'m> {
    pub(super) fn of(module: Operation<'m>, findings: &mut Findings) -> Option<Self> {
        let Some(plan) = module.get(attr::PLAN) else {
            findings.add(module, "has no divi.plan, so that there is nothing to verify: run divi-partition first");
            return None;
        };
        let text = |key| attr::entry(plan, key).and_then(attr::as_string);
        let contention = module.get(attr::CONTENTION).unwrap_or("off");
        let planned_for = text("contention").unwrap_or("off");
        if contention != planned_for {
            let message = format!(
                "has divi.contention \"{contention}\", but its divi.plan is for contention \"{planned_for}\": the times of \
                 transfers depend on it, so run divi-partition again"
            );
            findings.add(module, &message);
            return None;
        }
        let is_cold = module.has(attr::COLD);
        if is_cold != attr::entry(plan, "cold").is_some() {
            let message = match is_cold {
                true => "has divi.cold, but its divi.plan is for resident parameters",
                false => "has a divi.plan for a cold start, but no divi.cold",
            };
            findings.add(module, &format!("{message}: run divi-partition again"));
            return None;
        }
        let whole = |key| attr::entry(plan, key).and_then(attr::as_integer);
        // The dialect's verifier has checked that these are present.
        let number = |key| attr::entry(plan, key).and_then(attr::as_float).unwrap_or(f64::NAN);
        let objective = match text("objective") {
            Some("batch") => Objective::Batch,
            Some("pipeline") => Objective::Pipeline,
            _ => Objective::Latency,
        };
        let is_queued = objective == Objective::Batch || objective == Objective::Pipeline && whole("inputs").is_some();
        let inputs = match (objective, whole("inputs")) {
            (Objective::Pipeline, Some(inputs)) if (1..=MOST_REQUEST_INPUTS).contains(&inputs) => inputs,
            (Objective::Pipeline, Some(inputs)) => {
                let message = format!(
                    "has a divi.plan of a pipeline with {inputs} inputs per request: there must be 1 to {MOST_REQUEST_INPUTS}"
                );
                findings.add(module, &message);
                return None;
            }
            (Objective::Batch, Some(inputs)) if (1..=i64::from(u32::MAX)).contains(&inputs) => inputs,
            (Objective::Batch, Some(inputs)) => {
                findings.add(module, &format!("has a divi.plan of {inputs} queued inputs: there must be one at least"));
                return None;
            }
            (Objective::Batch, None) => {
                findings.add(module, "has a divi.plan without the number of queued inputs: add inputs = … : i64");
                return None;
            }
            _ => 1,
        };
        let max_batch = whole("max_batch").and_then(|size| u64::try_from(size).ok()).filter(|&size| size > 0);
        if objective == Objective::Pipeline && is_queued && max_batch.is_none() {
            let message =
                "has a divi.plan of a pipeline of batches without their maximum size: add max_batch = … : i64";
            findings.add(module, message);
            return None;
        }
        let max_replicas = whole("max_replicas").and_then(|count| u64::try_from(count).ok());
        let has_many_launches = match text("launches") {
            None if objective == Objective::Pipeline => is_queued,
            None | Some("one") => false,
            Some("many") => true,
            Some(other) => {
                findings.add(module, &format!("has a divi.plan with launches \"{other}\": it must be one or many"));
                return None;
            }
        };
        let pipeline_cost = match text("pipeline_cost") {
            None | Some("serial") => PipelineCost::Serial,
            Some("overlap") => PipelineCost::Overlap,
            Some(other) => {
                let message = format!("has a divi.plan with pipeline_cost \"{other}\": it must be serial or overlap");
                findings.add(module, &message);
                return None;
            }
        };
        Some(Self {
            module,
            objective,
            value: Micros(number("value")),
            bound: Micros(number("bound")),
            verified_bound: attr::entry(plan, "verified_bound").and_then(attr::as_float).map(Micros),
            gap: number("gap"),
            inputs,
            is_queued,
            max_batch: max_batch.unwrap_or(1),
            max_replicas: max_replicas.unwrap_or(1),
            has_many_launches,
            stages: whole("k"),
            pipeline_cost,
            shared_devices: attr::entry(plan, "shared_devices").is_some(),
            decisions: text("decisions").map(str::to_owned),
            problem: text("problem").map(str::to_owned),
            // Another batch size has other types and constants.
            model: text("model").filter(|_| !is_queued).map(str::to_owned),
        })
    }

    /// Compares the certificate with the recomputed value.
    pub(super) fn check(&self, found: Micros, findings: &mut Findings) {
        let (objective, mut wrong) = (self.what(), |message: String| findings.add(self.module, &message));
        if !same(self.value, found) {
            wrong(format!(
                "has a divi.plan whose value is {}, but its {objective} is {}: {} {}",
                micros(self.value),
                micros(found),
                micros((self.value - found).abs()),
                if self.value > found { "too much" } else { "too little" }
            ));
        }
        if !self.bound.is_finite() || self.bound < Micros::ZERO {
            wrong(format!("has a divi.plan whose bound is {}, which is not a time", short_number(self.bound)));
        } else if above(self.bound, found) {
            wrong(format!(
                "has a divi.plan whose bound is {}, but its {objective} is {}: no plan is better than its bound",
                micros(self.bound),
                micros(found)
            ));
        }
        if let Some(verified) = self.verified_bound.filter(|verified| above(*verified, found)) {
            wrong(format!(
                "has a divi.plan whose verified_bound is {}, but its {objective} is {}: no plan is better than its bound",
                micros(verified),
                micros(found)
            ));
        }
        let gap = gap(found, self.bound);
        if same(self.value, found) && (self.gap.is_nan() || (self.gap - gap).abs() > TOLERANCE) {
            let (stated, gap) = (short_number(self.gap), short_number(gap));
            wrong(format!("has a divi.plan whose gap is {stated}, but (value - bound) / value is {gap}"));
        }
    }

    /// Returns true if the bound is still proven: costs, sizes, devices, links and constraints are those of the problem
    /// that was solved.
    pub(super) fn is_bound_proven(&self, findings: &mut Findings) -> bool {
        let Some(known) = &self.problem else { return true };
        let queued = if self.objective == Objective::Batch { self.inputs } else { 1 };
        let Ok(module_problem) = ModuleProblem::build(self.module, u32::try_from(queued).unwrap_or(1)) else {
            findings.said();
            return true;
        };
        self.mark(&module_problem) == *known
    }

    /// Returns true if the bound of an outlined plan is still proven. Its tasks are in another order: if that matters,
    /// or if stages are for several inputs, so that they are not tasks any more, the bound cannot be checked.
    pub(super) fn is_bound_of_stages_proven(&self, findings: &mut Findings) -> bool {
        let Some(known) = self.problem.as_ref().filter(|_| !self.is_queued) else { return true };
        let is_same = |tasks: Operation<'_>| {
            let module_problem = ModuleProblem::build(tasks, 1)?;
            Ok::<_, Failure>(!decisions::has_names(&module_problem.problem) || self.mark(&module_problem) == *known)
        };
        with_inlined(self.module, is_same).flatten().unwrap_or_else(|Failure| {
            findings.said();
            true
        })
    }

    /// Returns the fingerprint of the problem.
    fn mark(&self, module_problem: &ModuleProblem<'_>) -> String {
        let rules = self.module.get(attr::PLAN).map(PipelineRules::of_certificate).unwrap_or_default();
        decisions::problem(&module_problem.problem, &rules)
    }

    /// Warns about the value of a plan whose costs or constraints were changed by hand. `finds` is the pass that
    /// recomputes the bound.
    pub(super) fn tell_unproven(&self, found: Micros, finds: &str) {
        let message = format!(
            "costs, devices or constraints have changed since planning: {} is now {} (was {}), and the bound of {} \
             is no longer proven; {finds} continues with another bound, divi-partition plans again",
            self.what(),
            micros(found),
            micros(self.value),
            micros(self.bound)
        );
        warning(self.module, &message);
    }

    /// Warns about the value of a plan that was changed by hand.
    pub(super) fn tell_edited(&self, found: Micros) {
        let message = format!(
            "the placement was edited after planning: {} is now {} (was {}), bound {}, gap {:.1} %; divi-outline \
             continues from there",
            self.what(),
            micros(found),
            micros(self.value),
            micros(self.bound),
            100.0 * gap(found, self.bound)
        );
        warning(self.module, &message);
    }

    fn what(&self) -> &'static str {
        match self.objective {
            Objective::Latency => "latency",
            Objective::Batch => "makespan",
            Objective::Pipeline => "bottleneck",
        }
    }
}

fn gap(value: Micros, bound: Micros) -> f64 {
    if value > Micros::ZERO { (value - bound) / value } else { 0.0 }
}

fn above(number: Micros, limit: Micros) -> bool {
    number - limit > TOLERANCE * number.abs().max(limit.abs())
}

fn same(stated: Micros, found: Micros) -> bool {
    (stated - found).abs() <= TOLERANCE * stated.abs().max(found.abs())
}
