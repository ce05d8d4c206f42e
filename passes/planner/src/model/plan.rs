//! Plan as in its file (`divi-plan/2` and `/3`): schedule, value and certificate.

mod bound;
mod read;
mod write;

use serde::Deserialize;

use crate::model::named::named;
use crate::model::problem::{Contention, Problem};
use crate::model::units::{Micros, short_number};

pub use bound::{Bound, Proof, closes};

/// Name and version of the format.
pub const FORMAT: &str = "divi-plan/2";
/// Name and version of the format for queues with any number of launches ([`LaunchRule::Many`]), and for pipelines of
/// batches ([`Schedule::BatchedPipeline`]).
pub const FORMAT_OF_MANY_LAUNCHES: &str = "divi-plan/3";

/// Allowed number of launches of a task on each device, for a queue of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaunchRule {
    /// At most one (DiviML, eq. 5).
    One,
    /// Any number: inputs may pass in groups, so that launches of different tasks overlap.
    Many,
}

named!(LaunchRule, "number of launches", One = "one", Many = "many");

/// Value that is minimized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Objective {
    /// Finish time of one input.
    Latency,
    /// Finish time of all queued inputs.
    Batch,
    /// Time of the slowest stage in steady state.
    Pipeline,
}

named!(Objective, "objective", Latency = "latency", Batch = "batch", Pipeline = "pipeline");

/// Schedule and its certificate.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Hash of the problem: see [`Problem::hash`].
    pub problem: String,
    /// Names of the tasks, so that the plan can be compared with a changed model.
    pub names: Option<Vec<String>>,
    /// Algorithm that computed it.
    pub algorithm: String,
    /// Objective that was minimized.
    pub objective: Objective,
    /// Makespan, bottleneck or period.
    pub value: Micros,
    /// Lower bound on the value of every plan; `proof` states how reliable it is.
    pub bound: Micros,
    /// Method that found the bound.
    pub bound_by: String,
    /// Kind of proof of the bound.
    pub proof: Proof,
    /// Best verified bound, if `bound` is only claimed by the solver.
    pub verified_bound: Option<Micros>,
    /// `(value − bound) / value`.
    pub gap: f64,
    /// Seed of random numbers.
    pub seed: u64,
    /// Effort that was allowed.
    pub limit: Option<Limit>,
    /// Number of inputs, if it is not that of the problem.
    pub inputs: Option<u32>,
    /// Number of launches that the plan may have; `One` unless the objective is batch. The bound holds under this rule only.
    pub launches: LaunchRule,
    /// Contention of the plan; if unset, that of the problem.
    pub contention: Option<Contention>,
    /// Cost model of the pipeline: `serial` or `overlap`.
    pub pipeline_cost: Option<String>,
    /// True if a device may run several stages of a pipeline.
    pub shared_devices: bool,
    /// Maximum number of split points of a pipeline on an edge network, if it is not that of the problem.
    pub splits: Option<u32>,
    /// Maximum batch size of a stage of a pipeline; if unset, [`Problem::default_batch`].
    pub max_batch: Option<u32>,
    /// Maximum number of devices that take turns at a stage of a pipeline; one if unset.
    pub max_replicas: Option<u32>,
    /// Placement and times.
    pub schedule: Schedule,
    /// Times of transfers; only listed with contention or from a cold start.
    pub transfers: Vec<Transfer>,
    /// Times of parameter copies; only from a cold start.
    pub copies: Vec<ParameterCopy>,
    /// Dropped bounds that contradict the plan's value: see [`Plan::warnings`]. Not part of the file.
    pub dropped: Vec<Bound>,
}

/// Effort that was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Limit {
    /// Number of iterations: reproducible.
    Iterations(u64),
    /// Time limit in seconds: not reproducible.
    Seconds(f64),
}

impl Limit {
    /// Returns the limit with its seconds replaced by `seconds(old)`. A limit of iterations holds for each part of a
    /// portfolio separately, and does not change.
    pub(crate) fn with_seconds(self, seconds: impl FnOnce(f64) -> f64) -> Self {
        match self {
            Self::Seconds(all) => Self::Seconds(seconds(all)),
            Self::Iterations(_) => self,
        }
    }
}

/// Placement and times, by objective.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// Schedule of one input.
    Latency {
        /// Device of each task.
        device: Vec<usize>,
        /// Start of each task.
        start: Vec<Micros>,
        /// End of the last task.
        makespan: Micros,
    },
    /// Schedule of a queue.
    Batch {
        /// Launches of all tasks.
        batches: Vec<Batch>,
        /// End of the last launch.
        makespan: Micros,
    },
    /// Pipeline on the problem's devices, or on its view of equal devices.
    Pipeline {
        /// Block of each task.
        block: Vec<usize>,
        /// Number of blocks, which are the stages of the pipeline.
        k: u32,
        /// Time of the slowest stage.
        bottleneck: Micros,
        /// Devices of the blocks, and the order of the tasks in each.
        stages: Option<Stages>,
    },
    /// Pipeline whose stages take several inputs at once, or whose devices take turns.
    BatchedPipeline {
        /// Block of each task.
        block: Vec<usize>,
        /// Number of blocks.
        k: u32,
        /// Period: time of the slowest device, link or bus for one input.
        bottleneck: Micros,
        /// Batch sizes and devices of the blocks.
        turns: Turns,
        /// Tasks of each block in execution order.
        order: Option<Vec<Vec<usize>>>,
    },
    /// Pipeline on an edge network.
    Edge {
        /// Machine of each task.
        place: Vec<usize>,
        /// Time of the slowest machine or link.
        period: Micros,
    },
}

impl Schedule {
    /// Returns the value of the schedule.
    pub fn value(&self) -> Micros {
        match self {
            Self::Latency { makespan, .. } | Self::Batch { makespan, .. } => *makespan,
            Self::Pipeline { bottleneck, .. } | Self::BatchedPipeline { bottleneck, .. } => *bottleneck,
            Self::Edge { period, .. } => *period,
        }
    }

    /// Returns true if tensors are transferred over the links between the problem's devices.
    pub(crate) fn uses_links(&self) -> bool {
        match self {
            Self::Latency { .. } | Self::Batch { .. } => true,
            Self::Pipeline { stages, .. } => stages.as_ref().is_some_and(|stages| stages.block_device.is_some()),
            Self::BatchedPipeline { turns, .. } => matches!(turns, Turns::Devices { .. }),
            Self::Edge { .. } => false,
        }
    }

    /// Returns the devices of each of `nodes` nodes, ascending: several if a queue is divided, none in a pipeline on
    /// equal devices, and the machine on an edge network.
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
            Self::BatchedPipeline { .. } => {}
        }
        if let Self::BatchedPipeline { block, turns: Turns::Devices { devices, .. }, .. } = self {
            places
                .iter_mut()
                .zip(block)
                .for_each(|(places, &block)| places.extend(devices.get(block).into_iter().flatten()));
        }
        for devices in &mut places {
            devices.sort_unstable();
            devices.dedup();
        }
        places
    }

    /// Returns the objective of the schedule.
    pub fn objective(&self) -> Objective {
        match self {
            Self::Latency { .. } => Objective::Latency,
            Self::Batch { .. } => Objective::Batch,
            Self::Pipeline { .. } | Self::BatchedPipeline { .. } | Self::Edge { .. } => Objective::Pipeline,
        }
    }
}

/// One launch: a task for some of the queued inputs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Batch {
    /// Task.
    pub node: usize,
    /// Device that runs it.
    pub device: usize,
    /// Queued inputs, numbered from zero.
    pub inputs: Vec<u32>,
    /// Start time.
    pub start: Micros,
}

/// Devices of the blocks of a pipeline, and the order of their tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    /// Device of each block; unset on equal devices.
    pub block_device: Option<Vec<usize>>,
    /// Tasks of each block in execution order.
    pub order: Option<Vec<Vec<usize>>>,
}

/// Batch size of each block of a pipeline, and the devices that take turns at it: launch n of a block, for inputs
/// `n * size` to `(n + 1) * size - 1`, is on device `n mod r` of its r devices.
#[derive(Clone, Debug, PartialEq)]
pub enum Turns {
    /// On the problem's devices.
    Devices {
        /// Batch size of each block.
        batch: Vec<u32>,
        /// Devices of each block.
        devices: Vec<Vec<usize>>,
    },
    /// On equal devices, one input at a time.
    Equal {
        /// Number of devices of each block.
        replicas: Vec<u32>,
    },
}

/// Transfer of the tensor of one launch, for all of its inputs that are read on the destination.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Transfer {
    /// Index of the tensor.
    pub tensor: usize,
    /// Source device.
    pub from: usize,
    /// Destination device.
    pub to: usize,
    /// Transferred inputs, which identify the launch; may be unset if only one launch on the source computes the tensor.
    #[serde(default)]
    pub inputs: Option<Vec<u32>>,
    /// Start time.
    pub start: Micros,
    /// End time.
    pub end: Micros,
}

/// Copy of the parameters of a task to a device.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct ParameterCopy {
    /// Task whose parameters are copied.
    pub node: usize,
    /// Destination device.
    pub to: usize,
    /// Source device of a second hop, which has received the parameters before; unset if the source is the host.
    #[serde(default)]
    pub via: Option<usize>,
    /// Start time.
    pub start: Micros,
    /// End time.
    pub end: Micros,
}

/// Returns `(value − bound) / value`; zero if the value is zero.
pub fn gap(value: Micros, bound: Micros) -> f64 {
    if value > Micros::ZERO { ((value - bound) / value).max(0.0) } else { 0.0 }
}

impl Plan {
    /// Creates the plan of a schedule with a bound.
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
            bound: Micros::ZERO,
            bound_by: String::new(),
            proof: Proof::Exact,
            verified_bound: None,
            gap: 0.0,
            seed: 0,
            limit: None,
            inputs: None,
            launches: LaunchRule::One,
            contention,
            pipeline_cost: None,
            shared_devices: false,
            splits: None,
            max_batch: None,
            max_replicas: None,
            schedule,
            transfers: Vec::new(),
            copies: Vec::new(),
            dropped: Vec::new(),
        };
        plan.prove(bound);
        plan
    }

    /// Replaces the bound of the certificate. A bound above the plan's value is wrong, since the plan is verified: it is
    /// dropped in favor of its best verified bound, or of none, and [`Plan::warnings`] names it.
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
        // Sums in another order differ by rounding: such a bound is rounded to the value.
        self.bound = if closes(bound.value, self.value) { self.value } else { bound.value };
        self.verified_bound = bound.verified.map(|verified| verified.value.min(self.value));
        (self.bound_by, self.proof) = (bound.by, bound.proof);
        self.gap = gap(self.value, self.bound);
    }

    /// Returns the bound of the certificate. A plan does not store the method of its verified bound: it is `verified`
    /// here.
    pub fn bound(&self) -> Bound {
        let bound = Bound { value: self.bound, by: self.bound_by.clone(), proof: self.proof, verified: None };
        match self.verified_bound {
            Some(value) => bound.or_verified(Bound::by(value, "verified", Proof::SafeDual)),
            None => bound,
        }
    }

    /// Returns true if a verified bound equals the value, up to rounding.
    pub fn is_optimal(&self) -> bool {
        self.proof != Proof::Solver && closes(self.bound, self.value)
    }

    /// Returns the text to print after a bound; empty if the bound is verified.
    pub fn bound_remark(&self) -> String {
        match (self.proof, self.verified_bound.filter(|verified| *verified > Micros::ZERO)) {
            (Proof::Solver, Some(verified)) => format!(" ({}; verified: {verified:.1} µs)", self.proof.describe()),
            (Proof::Solver, None) => format!(" ({})", self.proof.describe()),
            _ => String::new(),
        }
    }

    /// Returns warnings about the certificate: a bound that contradicts the plan is an error of the solver or of divi,
    /// and does not invalidate the plan.
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
