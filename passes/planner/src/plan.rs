//! The answer as its file has it (`divi-plan/1`): who runs what and when, and how good that is proven to be.

mod read;
mod write;

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::error::Error;
use crate::problem::{Contention, Problem};
use crate::units::Micros;

/// The name of the format, and its version.
pub const FORMAT: &str = "divi-plan/1";

/// What is minimised.
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

impl Objective {
    pub const ALL: [Self; 3] = [Self::Latency, Self::Batch, Self::Pipeline];

    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Batch => "batch",
            Self::Pipeline => "pipeline",
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Objective {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|objective| objective.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::Unsupported(format!("there is no objective '{name}'; there are {names}"))
        })
    }
}

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
    /// No plan is better than this.
    pub bound: Micros,
    /// What proves the bound.
    pub bound_by: String,
    /// `(value − bound) / value`.
    pub gap: f64,
    pub seed: u64,
    pub limit: Option<Limit>,
    /// How many inputs were asked for, where that is not what the problem queues.
    pub inputs: Option<u32>,
    /// The contention that it is for: none is that of the problem.
    pub contention: Option<Contention>,
    /// The pipeline's cost model: `serial` or `overlap`.
    pub pipeline_cost: Option<String>,
    /// Whether a device may have several stages of a pipeline.
    pub shared_devices: bool,
    /// How often a pipeline of an edge network may change its machine, where that is not what the problem says.
    pub splits: Option<u32>,
    pub schedule: Schedule,
    /// When tensors move, where contention matters.
    pub transfers: Vec<Transfer>,
    /// When parameters move, where that matters.
    pub copies: Vec<Copy>,
}

/// How much effort was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Limit {
    /// Reproducible.
    Iterations(u64),
    /// Not reproducible.
    Seconds(f64),
}

/// Who runs what, by objective.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    Latency { device: Vec<usize>, start: Vec<Micros>, makespan: Micros },
    Batch { batches: Vec<Batch>, makespan: Micros },
    Pipeline { block: Vec<usize>, k: u32, bottleneck: Micros, stages: Option<Stages> },
    Edge { place: Vec<usize>, period: Micros },
}

impl Schedule {
    /// What the schedule costs.
    pub fn value(&self) -> Micros {
        match self {
            Self::Latency { makespan, .. } | Self::Batch { makespan, .. } => *makespan,
            Self::Pipeline { bottleneck, .. } => *bottleneck,
            Self::Edge { period, .. } => *period,
        }
    }

    /// Whether tensors go over the links between the problem's devices.
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

/// A proven lower bound, and what proves it.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub value: Micros,
    pub by: String,
}

impl Bound {
    pub fn new(value: Micros, by: impl Into<String>) -> Self {
        Self { value, by: by.into() }
    }
}

/// What sums of times differ by when they are added up in another order.
const ROUNDING: f64 = 1e-9;

/// Whether a bound proves that nothing is better than what has this value.
pub(crate) fn closes(bound: Micros, value: Micros) -> bool {
    bound >= value * (1.0 - ROUNDING)
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
        };
        plan.prove(bound);
        plan
    }

    /// Puts a bound into the certificate, instead of what was there.
    pub fn prove(&mut self, bound: Bound) {
        // Bounds that sum in another order may come out a rounding error above the value that they prove optimal.
        let rounded = bound.value > self.value && bound.value <= self.value * (1.0 + ROUNDING);
        self.bound = if rounded { self.value } else { bound.value };
        self.bound_by = bound.by;
        self.gap = gap(self.value, self.bound);
    }
}
