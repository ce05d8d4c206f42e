//! Model that a plan is verified under: the problem's own, or the caller's.
//!
//! A plan records the model that it was computed for. Its bound holds under that model only, so a plan of another model
//! is rejected.

use std::fmt::Display;

use super::components::most_stages;
use super::refuse;
use crate::model::error::{Error, Finding};
use crate::model::options::{Options, PipelineCost};
use crate::model::plan::{LaunchRule, Objective, Plan, Schedule, Turns};
use crate::model::problem::{Contention, Problem};

/// Parts of the model that override the problem's. Unset ones are the problem's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// Objective; any, if unset.
    pub objective: Option<Objective>,
    /// Number of queued inputs.
    pub inputs: Option<u32>,
    /// Number of launches of a task on a device of a queue; that of the plan if unset, as problems do not state it.
    pub launches: Option<LaunchRule>,
    /// Effect of transfers on the same bus on each other.
    pub contention: Option<Contention>,
    /// Maximum number of stages of a pipeline.
    pub stages: Option<u32>,
    /// Cost of a stage; serial if unset, as problems do not state it.
    pub pipeline_cost: Option<PipelineCost>,
    /// True if a device may run several stages of a pipeline.
    pub shared_devices: bool,
    /// Maximum number of split points on an edge network.
    pub splits: Option<u32>,
    /// Maximum batch size of a stage of a pipeline; if unset, [`Problem::default_batch`].
    pub max_batch: Option<u32>,
    /// Maximum number of devices that take turns at a stage; one if unset.
    pub max_replicas: Option<u32>,
}

impl From<&Options> for Terms {
    /// Converts the options of a request for a plan.
    fn from(options: &Options) -> Self {
        Self {
            objective: None,
            inputs: options.inputs,
            launches: Some(options.launches),
            contention: options.contention,
            stages: options.stages,
            pipeline_cost: options.pipeline_cost,
            shared_devices: options.shared_devices,
            splits: options.splits,
            max_batch: options.max_batch,
            max_replicas: options.max_replicas,
        }
    }
}

impl Terms {
    /// Returns the terms that a plan states itself: for a plan that was verified before, or that is replayed on purpose.
    pub fn stated_by(plan: &Plan) -> Self {
        let stages = match &plan.schedule {
            Schedule::Pipeline { k, .. } | Schedule::BatchedPipeline { k, turns: Turns::Devices { .. }, .. } => {
                Some(*k)
            }
            Schedule::BatchedPipeline { turns: Turns::Equal { replicas }, .. } => Some(total(replicas)),
            Schedule::Latency { .. } | Schedule::Batch { .. } | Schedule::Edge { .. } => None,
        };
        Self {
            objective: Some(plan.objective),
            inputs: plan.inputs,
            launches: Some(plan.launches),
            contention: plan.contention,
            stages,
            pipeline_cost: plan.pipeline_cost.as_deref().and_then(|name| name.parse().ok()),
            shared_devices: plan.shared_devices,
            splits: plan.splits,
            max_batch: plan.max_batch,
            max_replicas: plan.max_replicas,
        }
    }
}

/// Terms with all values set.
pub(super) struct Judged {
    pub(super) inputs: u32,
    pub(super) launches: LaunchRule,
    pub(super) contention: Contention,
    pub(super) pipeline_cost: PipelineCost,
    pub(super) shared_devices: bool,
    pub(super) splits: Option<u32>,
    pub(super) max_batch: u32,
    pub(super) max_replicas: u32,
    /// Maximum number of stages; `None` is as many as fit, one a device unless devices are shared.
    pub(super) stages: Option<u32>,
}

/// Combines problem and terms; rejects a plan that states another model.
pub(super) fn settle(problem: &Problem, plan: &Plan, terms: &Terms) -> Result<Judged, Error> {
    let objective = plan.schedule.objective();
    if let Some(asked) = terms.objective {
        agree("objective", "objective", objective, asked, true)?;
    }
    let queued = if objective == Objective::Batch { problem.inputs } else { 1 };
    let inputs = terms.inputs.unwrap_or(queued);
    agree("inputs", "inputs", plan.inputs.unwrap_or(queued), inputs, terms.inputs.is_some())?;
    let launches = terms.launches.unwrap_or(plan.launches);
    if objective == Objective::Batch && plan.launches != launches {
        let message = format!(
            "{} of a task on each device in the plan, but {launches} here; verify it with --launches={}, or plan it again",
            plan.launches, plan.launches
        );
        return Err(refuse(Finding::new("launches", message)));
    }
    let contention = terms.contention.unwrap_or(problem.contention);
    let planned = plan.contention.unwrap_or(problem.contention);
    agree("contention", "contention", planned, contention, terms.contention.is_some())?;
    let splits = split_points(problem, plan, terms)?;
    let on_network = matches!(plan.schedule, Schedule::Edge { .. });
    let by_default = if on_network { PipelineCost::Overlap } else { PipelineCost::Serial };
    let pipeline_cost = terms.pipeline_cost.unwrap_or(by_default);
    if objective == Objective::Pipeline {
        let planned = plan.pipeline_cost.as_deref().unwrap_or(by_default.name());
        if planned.parse::<PipelineCost>().is_err() {
            let message = format!("unknown pipeline cost '{planned}'; expected one of serial, overlap");
            return Err(refuse(Finding::new("pipeline_cost", message)));
        }
        if on_network && (planned != by_default.name() || pipeline_cost != by_default) {
            let other = if planned == by_default.name() { pipeline_cost.name() } else { planned };
            let message = format!("is {other}, but machines of an edge network overlap");
            return Err(refuse(Finding::new("pipeline_cost", message)));
        }
        let is_asked = terms.pipeline_cost.is_some();
        agree("pipeline_cost", "pipeline-cost", planned, pipeline_cost.name(), is_asked)?;
        check_sharing(plan, terms)?;
    }
    let (max_batch, max_replicas) = batches(problem, plan, terms)?;
    if let Schedule::Pipeline { k, stages, .. } = &plan.schedule
        && stages.as_ref().is_none_or(|stages| stages.block_device.is_none())
    {
        check_stages(problem, *k, 1, terms)?;
    }
    if let Schedule::BatchedPipeline { turns: Turns::Equal { replicas }, .. } = &plan.schedule {
        check_stages(problem, total(replicas), max_replicas, terms)?;
    }
    let shared_devices = terms.shared_devices;
    let stages = terms.stages;
    Ok(Judged { inputs, launches, contention, pipeline_cost, shared_devices, splits, max_batch, max_replicas, stages })
}

/// Rejects a plan that states another value than the verifier uses.
fn agree<T: PartialEq + Display>(key: &str, option: &str, planned: T, judged: T, is_asked: bool) -> Result<(), Error> {
    if planned == judged {
        return Ok(());
    }
    let other = if is_asked { format!("but {judged} is asked for") } else { format!("but {judged} in the problem") };
    let message = format!("is {planned} in the plan, {other}; verify it with --{option}={planned}, or plan it again");
    Err(refuse(Finding::new(key, message)))
}

fn split_points(problem: &Problem, plan: &Plan, terms: &Terms) -> Result<Option<u32>, Error> {
    if !matches!(plan.schedule, Schedule::Edge { .. }) {
        return match terms.splits {
            None => Ok(None),
            Some(_) => Err(refuse(Finding::new("splits", "only a plan for an edge network has split points"))),
        };
    }
    let own = problem.edge.as_ref().and_then(|view| view.splits);
    let (planned, judged) = (plan.splits.or(own), terms.splits.or(own));
    let name = |splits: Option<u32>| splits.map_or_else(|| "unlimited".to_owned(), |splits| splits.to_string());
    agree("splits", "splits", name(planned), name(judged), terms.splits.is_some())?;
    Ok(judged)
}

/// Returns the maximum batch size and number of devices of a stage.
fn batches(problem: &Problem, plan: &Plan, terms: &Terms) -> Result<(u32, u32), Error> {
    let on_devices = plan.objective == Objective::Pipeline && problem.mtpp.is_none() && problem.edge.is_none();
    let default = if on_devices { problem.default_batch() } else { 1 };
    let (planned, judged) = (plan.max_batch.unwrap_or(default), terms.max_batch.unwrap_or(default));
    agree("max_batch", "max-batch", planned, judged, terms.max_batch.is_some())?;
    let replicas = terms.max_replicas.unwrap_or(1);
    agree("max_replicas", "replicas", plan.max_replicas.unwrap_or(1), replicas, terms.max_replicas.is_some())?;
    Ok((judged, replicas))
}

/// Returns the number of devices of all blocks.
fn total(replicas: &[u32]) -> u32 {
    replicas.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

fn check_sharing(plan: &Plan, terms: &Terms) -> Result<(), Error> {
    let message = match (plan.shared_devices, terms.shared_devices) {
        (true, false) => "devices are shared in the plan, but not by default; verify it with --allow-shared-devices",
        (false, true) => "devices are not shared in the plan; verify it without --allow-shared-devices",
        _ => return Ok(()),
    };
    Err(refuse(Finding::new("shared_devices", format!("{message}, or plan it again"))))
}

/// Checks the number of stages on equal devices: one that the problem's view names or, if given, that of the terms.
/// Stages beyond the maximum number of stages of the graph, each with the maximum number of replicas, are empty, and plans
/// do not count them.
fn check_stages(problem: &Problem, k: u32, replicas: u32, terms: &Terms) -> Result<(), Error> {
    let Some(view) = &problem.mtpp else { return Ok(()) };
    let most = u32::try_from(most_stages(problem)).unwrap_or(u32::MAX).saturating_mul(replicas);
    let is_allowed = |allowed: &u32| k == *allowed || k == most && most < *allowed;
    let numbers = |all: &[u32]| all.iter().map(u32::to_string).collect::<Vec<_>>().join(" or ");
    match &terms.stages {
        Some(asked) if is_allowed(asked) => Ok(()),
        Some(asked) => agree("k", "k", k, *asked, true),
        None if view.k.iter().any(is_allowed) => Ok(()),
        None => agree("k", "k", k.to_string(), numbers(&view.k), false),
    }
}
