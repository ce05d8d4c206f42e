//! The answer as its file has it (`divi-plan/2`): who runs what and when, and how good that is proven to be.

mod bound;
mod read;
mod write;

use serde::Deserialize;

use crate::model::named::named;
use crate::model::problem::{Contention, Problem};
use crate::model::units::{Micros, short_number};

pub use bound::{Bound, Proof, closes};

/// The name of the format, and its version.
pub const FORMAT: &str = "divi-plan/2";

/// Value that is minimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Objective {
    /// The finish time of one input.
    Latency,
    /// The finish time of all queued inputs.
    Batch,
    /// The slowest stage in steady state.
    Pipeline,
}

named!(Objective, "objective", Latency = "latency", Batch = "batch", Pipeline = "pipeline");

/// A plan: the schedule, and the certificate that goes with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The hash of the problem that it is for: see [`Problem::hash`].
    pub problem: String,
    /// The tasks' names, so that the plan can be held against a changed model.
    pub names: Option<Vec<String>>,
    pub algorithm: String,
    pub objective: Objective,
    /// The makespan, bottleneck or period.
    pub value: Micros,
    /// Lower bound on the value of every plan, as far as `proof` goes.
    pub bound: Micros,
    /// The method that has found the bound.
    pub bound_by: String,
    /// Kind of proof of the bound.
    pub proof: Proof,
    /// The best verified bound, where `bound` rests on the solver's word.
    pub verified_bound: Option<Micros>,
    /// `(value − bound) / value`.
    pub gap: f64,
    pub seed: u64,
    pub limit: Option<Limit>,
    /// Number of inputs that was asked for, where that is not what the problem queues.
    pub inputs: Option<u32>,
    /// The contention that it is for: none is that of the problem.
    pub contention: Option<Contention>,
    /// The pipeline's cost model: `serial` or `overlap`.
    pub pipeline_cost: Option<String>,
    /// True if a device may have several stages of a pipeline.
    pub shared_devices: bool,
    /// Maximum number of changes of the machine in a pipeline of an edge network, where that is not what the problem says.
    pub splits: Option<u32>,
    pub schedule: Schedule,
    /// When tensors move, where contention matters.
    pub transfers: Vec<Transfer>,
    /// When parameters move, where that matters.
    pub copies: Vec<Copy>,
    /// Bounds that contradict the plan's value and were dropped: see [`Plan::warnings`]. Not part of the file.
    pub dropped: Vec<Bound>,
}

/// Effort that was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Limit {
    /// Reproducible.
    Iterations(u64),
    /// Not reproducible.
    Seconds(f64),
}

impl Limit {
    /// The limit with other seconds. Iterations are each part's own, and stay.
    pub(crate) fn with_seconds(self, seconds: impl FnOnce(f64) -> f64) -> Self {
        match self {
            Self::Seconds(all) => Self::Seconds(seconds(all)),
            Self::Iterations(_) => self,
        }
    }
}

/// Places and times, by objective.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    Latency { device: Vec<usize>, start: Vec<Micros>, makespan: Micros },
    Batch { batches: Vec<Batch>, makespan: Micros },
    Pipeline { block: Vec<usize>, k: u32, bottleneck: Micros, stages: Option<Stages> },
    Edge { place: Vec<usize>, period: Micros },
}

impl Schedule {
    /// Value of the schedule.
    pub fn value(&self) -> Micros {
        match self {
            Self::Latency { makespan, .. } | Self::Batch { makespan, .. } => *makespan,
            Self::Pipeline { bottleneck, .. } => *bottleneck,
            Self::Edge { period, .. } => *period,
        }
    }

    /// True if tensors go over the links between the problem's devices.
    pub(crate) fn uses_links(&self) -> bool {
        match self {
            Self::Latency { .. } | Self::Batch { .. } => true,
            Self::Pipeline { stages, .. } => stages.as_ref().is_some_and(|stages| stages.block_device.is_some()),
            Self::Edge { .. } => false,
        }
    }

    /// The devices that each of so many nodes runs on, ascending: several where a queue is shared out, none where devices are
    /// all alike.
    pub fn places(&self, nodes: usize) -> Vec<Vec<usize>> {
        let mut places = vec![Vec::new(); nodes];
        match self {
            Self::Latency { device: one, .. } | Self::Edge { place: one, .. } => {
                places.iter_mut().zip(one).for_each(|(places, &device)| places.push(device));
            }
            Self::Batch { batches, .. } => batches.iter().for_each(|batch| places[batch.node].push(batch.device)),
            Self::Pipeline { block, stages, .. } => {
                if let Some(devices) = stages.as_ref().and_then(|stages| stages.block_device.as_ref()) {
                    places.iter_mut().zip(block).for_each(|(places, &block)| places.push(devices[block]));
                }
            }
        }
        for devices in &mut places {
            devices.sort_unstable();
            devices.dedup();
        }
        places
    }

    pub fn objective(&self) -> Objective {
        match self {
            Self::Latency { .. } => Objective::Latency,
            Self::Batch { .. } => Objective::Batch,
            Self::Pipeline { .. } | Self::Edge { .. } => Objective::Pipeline,
        }
    }
}

/// One launch: a task for some of the queued inputs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Batch {
    pub node: usize,
    pub device: usize,
    /// Which of the queued inputs, counted from zero.
    pub inputs: Vec<u32>,
    pub start: Micros,
}

/// Where the blocks of a pipeline run, and in which order their tasks do.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    /// None on equal devices.
    pub block_device: Option<Vec<usize>>,
    pub order: Option<Vec<Vec<usize>>>,
}

/// A tensor, of all inputs that are read there, on its way to another device.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Transfer {
    pub tensor: usize,
    pub from: usize,
    pub to: usize,
    pub start: Micros,
    pub end: Micros,
}

/// The parameters of a task on their way to a device.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Copy {
    pub node: usize,
    pub to: usize,
    /// The device that hands them on, which has them by then; none from the host.
    #[serde(default)]
    pub via: Option<usize>,
    pub start: Micros,
    pub end: Micros,
}

/// `(value − bound) / value`; a plan that costs nothing is optimal.
pub fn gap(value: Micros, bound: Micros) -> f64 {
    if value > 0.0 { ((value - bound) / value).max(0.0) } else { 0.0 }
}

impl Plan {
    /// The plan for a schedule with what is proven about it.
    pub fn new(problem: &Problem, algorithm: &str, schedule: Schedule, bound: Bound) -> Self {
        let value = schedule.value();
        let names: Option<Vec<String>> = problem.nodes.iter().map(|node| node.name.clone()).collect();
        let contention = Some(problem.contention).filter(|other| *other != Contention::Off && schedule.uses_links());
        let mut plan = Self {
            problem: problem.hash(),
            names,
            algorithm: algorithm.to_owned(),
            objective: schedule.objective(),
            value,
            bound: 0.0,
            bound_by: String::new(),
            proof: Proof::Exact,
            verified_bound: None,
            gap: 0.0,
            seed: 0,
            limit: None,
            inputs: None,
            contention,
            pipeline_cost: None,
            shared_devices: false,
            splits: None,
            schedule,
            transfers: Vec::new(),
            copies: Vec::new(),
            dropped: Vec::new(),
        };
        plan.prove(bound);
        plan
    }

    /// Puts a bound into the certificate, in place of the one that is there. A bound above the plan's value is wrong, since the
    /// plan is verified: it is dropped for the best verified one behind it, or for none, and [`Plan::warnings`] names it.
    pub fn prove(&mut self, bound: Bound) {
        let mut next = Some(bound);
        let bound = loop {
            let Some(bound) = next else { break Bound::none() };
            if !bound.contradicts(self.value) {
                break bound;
            }
            next = bound.verified.as_deref().cloned();
            self.dropped.push(bound);
        };
        // Bounds that sum in another order may come out a rounding error beside the value that they prove optimal.
        self.bound = if closes(bound.value, self.value) { self.value } else { bound.value };
        self.verified_bound = bound.verified.map(|verified| verified.value.min(self.value));
        (self.bound_by, self.proof) = (bound.by, bound.proof);
        self.gap = gap(self.value, self.bound);
    }

    /// The bound of the certificate.
    pub fn bound(&self) -> Bound {
        let bound = Bound { value: self.bound, by: self.bound_by.clone(), proof: self.proof, verified: None };
        match self.verified_bound {
            Some(value) => bound.or_verified(Bound::by(value, "verified", Proof::SafeDual)),
            None => bound,
        }
    }

    /// True if a verified bound shows that no plan is better, but for what sums of times differ by.
    pub fn is_optimal(&self) -> bool {
        self.proof != Proof::Solver && closes(self.bound, self.value)
    }

    /// Text behind a printed bound: nothing where it is verified.
    pub fn bound_remark(&self) -> String {
        match (self.proof, self.verified_bound.filter(|verified| *verified > 0.0)) {
            (Proof::Solver, Some(verified)) => format!(" ({}; verified: {verified:.1} µs)", self.proof.describe()),
            (Proof::Solver, None) => format!(" ({})", self.proof.describe()),
            _ => String::new(),
        }
    }

    /// Warnings about the certificate: a bound that contradicts the plan is a fault of the solver or of divi, and
    /// does not invalidate the plan.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |bound: &Bound| {
            format!(
                "the bound {} by {} ({}) is above the value {} of a plan that was verified, so it is wrong and was dropped; the \
                 bound is {} by {} now. Please report this with the problem",
                short_number(bound.value),
                bound.by,
                bound.proof.describe(),
                short_number(self.value),
                short_number(self.bound),
                self.bound_by
            )
        };
        self.dropped.iter().map(warning).collect()
    }
}
