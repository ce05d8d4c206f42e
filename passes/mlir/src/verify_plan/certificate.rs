//! What a plan says of itself: `divi.plan`.

use super::{Findings, micros};
use crate::{
    cost::Posed,
    decisions,
    inline_stages::with_inlined,
    ir::{Failure, warning},
};
use divi_dialect::{Operation, attr};
use divi_planner::units::{Micros, short_number};

/// What a plan says of itself may be rounded by this share.
const TOLERANCE: f64 = 1e-6;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Objective {
    Latency,
    Batch,
    Pipeline,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum PipelineCost {
    /// A device works and moves tensors in turn.
    Serial,
    /// Devices and links each take their own time.
    Overlap,
}

pub(super) struct Certificate<'m> {
    module: Operation<'m>,
    pub(super) objective: Objective,
    value: Micros,
    bound: Micros,
    /// Beside a bound that is the solver's word.
    verified_bound: Option<Micros>,
    gap: f64,
    /// How many inputs are queued: 1 unless the objective is batch.
    pub(super) inputs: i64,
    /// The most stages.
    pub(super) stages: Option<i64>,
    pub(super) pipeline_cost: PipelineCost,
    pub(super) shared_devices: bool,
    pub(super) decisions: Option<String>,
    pub(super) model: Option<String>,
    /// What the bound was proven for.
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
                "has divi.contention \"{contention}\", but its divi.plan is for contention \"{planned_for}\": when transfers \
                 are follows from that, so run divi-partition again"
            );
            findings.add(module, &message);
            return None;
        }
        let is_cold = module.has(attr::COLD);
        if is_cold != attr::entry(plan, "cold").is_some() {
            let message = match is_cold {
                true => "has divi.cold, but its divi.plan is for parameters that are where they are needed",
                false => "has a divi.plan for a cold start, but no divi.cold",
            };
            findings.add(module, &format!("{message}: run divi-partition again"));
            return None;
        }
        let whole = |key| attr::entry(plan, key).and_then(attr::as_integer);
        // The dialect's own verifier has seen that these are there.
        let number = |key| attr::entry(plan, key).and_then(attr::as_float).unwrap_or(f64::NAN);
        let objective = match text("objective") {
            Some("batch") => Objective::Batch,
            Some("pipeline") => Objective::Pipeline,
            _ => Objective::Latency,
        };
        let inputs = match (objective, whole("inputs")) {
            (Objective::Batch, Some(inputs)) if (1..=i64::from(u32::MAX)).contains(&inputs) => inputs,
            (Objective::Batch, Some(inputs)) => {
                findings.add(module, &format!("has a divi.plan of {inputs} queued inputs: there must be one at least"));
                return None;
            }
            (Objective::Batch, None) => {
                findings
                    .add(module, "has a divi.plan that does not say how many inputs are queued: add inputs = … : i64");
                return None;
            }
            _ => 1,
        };
        let pipeline_cost = match text("pipeline_cost") {
            None | Some("serial") => PipelineCost::Serial,
            Some("overlap") => PipelineCost::Overlap,
            Some(other) => {
                let message = format!("has a divi.plan with pipeline_cost \"{other}\": there are serial and overlap");
                findings.add(module, &message);
                return None;
            }
        };
        Some(Self {
            module,
            objective,
            value: number("value"),
            bound: number("bound"),
            verified_bound: attr::entry(plan, "verified_bound").and_then(attr::as_float),
            gap: number("gap"),
            inputs,
            stages: whole("k"),
            pipeline_cost,
            shared_devices: attr::entry(plan, "shared_devices").is_some(),
            decisions: text("decisions").map(str::to_owned),
            problem: text("problem").map(str::to_owned),
            // Another batch has other types and constants.
            model: text("model").filter(|_| objective != Objective::Batch).map(str::to_owned),
        })
    }

    /// What the plan says is what was found.
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
        if !self.bound.is_finite() || self.bound < 0.0 {
            wrong(format!("has a divi.plan whose bound is {}, which is no time", short_number(self.bound)));
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

    /// Whether the bound is still proven: costs, sizes, devices, links and constraints are those of the problem that was
    /// solved.
    pub(super) fn is_bound_proven(&self, findings: &mut Findings) -> bool {
        let Some(known) = &self.problem else { return true };
        let Ok(posed) = Posed::by(self.module, u32::try_from(self.inputs).unwrap_or(1)) else {
            findings.said();
            return true;
        };
        self.mark(&posed) == *known
    }

    /// The same for a module of stages, whose tasks are in another order: where that matters, there is no telling. Nor is there
    /// for queued inputs, whose stages are no longer tasks.
    pub(super) fn is_bound_of_stages_proven(&self, findings: &mut Findings) -> bool {
        let Some(known) = self.problem.as_ref().filter(|_| self.objective != Objective::Batch) else { return true };
        let is_same = |tasks: Operation<'_>| {
            let posed = Posed::by(tasks, 1)?;
            Ok::<_, Failure>(!decisions::has_names(&posed.problem) || self.mark(&posed) == *known)
        };
        with_inlined(self.module, is_same).flatten().unwrap_or_else(|Failure| {
            findings.said();
            true
        })
    }

    /// What tells the problem from others.
    fn mark(&self, posed: &Posed<'_>) -> String {
        let cost = match self.pipeline_cost {
            PipelineCost::Serial => "serial",
            PipelineCost::Overlap => "overlap",
        };
        decisions::problem(&posed.problem, Some(cost), self.shared_devices)
    }

    /// Tells what a plan is worth whose costs or constraints were changed by hand, and which pass `finds` another bound.
    pub(super) fn tell_unproven(&self, found: Micros, finds: &str) {
        let message = format!(
            "costs, devices or constraints were changed since it was planned: {} is {} now (it was {}), and the bound of {} \
             is not proven for it; {finds} goes on from there with another, divi-partition plans anew",
            self.what(),
            micros(found),
            micros(self.value),
            micros(self.bound)
        );
        warning(self.module, &message);
    }

    /// Tells what a plan that was changed by hand is worth.
    pub(super) fn tell_edited(&self, found: Micros) {
        let message = format!(
            "the placement was edited since it was planned: {} is {} now (it was {}), bound {}, gap {:.1} %; divi-outline \
             goes on from there",
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
    if value > 0.0 { (value - bound) / value } else { 0.0 }
}

fn above(number: f64, limit: f64) -> bool {
    number - limit > TOLERANCE * number.abs().max(limit.abs())
}

fn same(stated: f64, found: f64) -> bool {
    (stated - found).abs() <= TOLERANCE * stated.abs().max(found.abs())
}
