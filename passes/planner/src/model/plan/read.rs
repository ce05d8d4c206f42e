//! Reader of plans.

use serde::Deserialize;

use super::{
    Batch, FORMAT, LaunchRule, Limit, Objective, ParameterCopy, Plan, Proof, Schedule, Stages, Transfer, Turns,
};
use crate::model::error::Error;
use crate::model::json::read_format;
use crate::model::options::PipelineCost;
use crate::model::problem::Contention;
use crate::model::units::{Micros, number};

impl Plan {
    /// Reads a plan; [`crate::verify()`] checks it against its problem.
    pub fn read(text: &str) -> Result<Self, Error> {
        read_format::<Format, Keys>(text, FORMAT)?.plan()
    }
}

/// Keys of all kinds of plans; each kind has some of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct Keys {
    format: Format,
    problem: String,
    #[serde(default)]
    names: Option<Vec<String>>,
    algorithm: String,
    objective: Objective,
    value: Micros,
    bound: Micros,
    bound_by: String,
    #[serde(default)]
    proof: Option<String>,
    #[serde(default)]
    verified_bound: Option<Micros>,
    gap: f64,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    limit: Option<Limit>,
    #[serde(default)]
    inputs: Option<u32>,
    #[serde(default)]
    contention: Option<Contention>,
    #[serde(default)]
    pipeline_cost: Option<String>,
    #[serde(default)]
    shared_devices: bool,
    #[serde(default)]
    splits: Option<u32>,
    #[serde(default)]
    max_batch: Option<u32>,
    #[serde(default)]
    max_replicas: Option<u32>,
    #[serde(default)]
    device: Option<Vec<usize>>,
    #[serde(default)]
    start: Option<Vec<Micros>>,
    #[serde(default)]
    batches: Option<Vec<Batch>>,
    #[serde(default)]
    makespan: Option<Micros>,
    #[serde(default)]
    block: Option<Vec<usize>>,
    #[serde(default)]
    k: Option<u32>,
    #[serde(default)]
    bottleneck: Option<Micros>,
    #[serde(default)]
    block_device: Option<Vec<usize>>,
    #[serde(default)]
    batch: Option<Vec<u32>>,
    #[serde(default)]
    block_devices: Option<Vec<Vec<usize>>>,
    #[serde(default)]
    replicas: Option<Vec<u32>>,
    #[serde(default)]
    order: Option<Vec<Vec<usize>>>,
    #[serde(default)]
    place: Option<Vec<usize>>,
    #[serde(default)]
    period: Option<Micros>,
    #[serde(default)]
    transfers: Vec<Transfer>,
    #[serde(default)]
    copies: Vec<ParameterCopy>,
}

/// Accepted formats.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
enum Format {
    /// Without `proof`: the kind of proof of a bound was not recorded.
    #[serde(rename = "divi-plan/1")]
    One,
    /// At most one launch of a task on each device.
    #[serde(rename = "divi-plan/2")]
    Two,
    /// Any number of launches of a queue; pipelines with batch sizes and several devices of a stage.
    #[serde(rename = "divi-plan/3")]
    Three,
}

impl Keys {
    fn plan(self) -> Result<Plan, Error> {
        let (objective, schedule) = (self.objective, self.schedule()?);
        if schedule.objective() != objective {
            let message = format!("the keys are those of objective {}, not {objective}", schedule.objective());
            return Err(wrong("objective", &message));
        }
        let launches = match (self.format, objective) {
            (Format::Three, Objective::Batch) => LaunchRule::Many,
            (Format::Three, Objective::Latency) => {
                return Err(wrong(
                    "format",
                    &format!("divi-plan/3 is for objectives batch and pipeline, not {objective}"),
                ));
            }
            _ => LaunchRule::One,
        };
        self.check_batches(&schedule)?;
        let proof = self.proof()?;
        self.check_limit()?;
        self.check_pipeline_cost()?;
        Ok(Plan {
            problem: self.problem,
            names: self.names,
            algorithm: self.algorithm,
            objective,
            value: self.value,
            bound: self.bound,
            bound_by: self.bound_by,
            proof,
            verified_bound: self.verified_bound,
            gap: self.gap,
            seed: self.seed,
            limit: self.limit,
            inputs: self.inputs,
            launches,
            contention: self.contention,
            pipeline_cost: self.pipeline_cost,
            shared_devices: self.shared_devices,
            splits: self.splits,
            max_batch: self.max_batch,
            max_replicas: self.max_replicas,
            schedule,
            transfers: self.transfers,
            copies: self.copies,
            dropped: Vec::new(),
        })
    }

    /// Returns the kind of proof. The first version does not state it: its bounds count as claims of a solver.
    fn proof(&self) -> Result<Proof, Error> {
        match &self.proof {
            None if self.format == Format::One => Ok(Proof::Solver),
            None => Err(wrong("proof", "is missing")),
            Some(name) => name.parse().map_err(|error: Error| wrong("proof", &error.to_string())),
        }
    }

    fn check_limit(&self) -> Result<(), Error> {
        match self.limit {
            Some(Limit::Seconds(seconds)) if seconds < 0.0 => {
                Err(wrong("limit.seconds", &format!("{} is negative", number(seconds))))
            }
            _ => Ok(()),
        }
    }

    /// Checks that only a pipeline has a cost model, and that it exists.
    fn check_pipeline_cost(&self) -> Result<(), Error> {
        let Some(name) = &self.pipeline_cost else { return Ok(()) };
        if self.objective != Objective::Pipeline {
            let message = format!("is for objective pipeline, not {}", self.objective);
            return Err(wrong("pipeline_cost", &message));
        }
        let known = name.parse::<PipelineCost>();
        known.map(drop).map_err(|error| wrong("pipeline_cost", &error.to_string()))
    }

    /// Checks that pipelines of batches, and only those, have the keys and the version for them.
    fn check_batches(&self, schedule: &Schedule) -> Result<(), Error> {
        let has_batches = matches!(schedule, Schedule::BatchedPipeline { .. });
        let is_third = self.format == Format::Three && self.objective == Objective::Pipeline;
        if has_batches && !is_third {
            return Err(wrong("format", "batch sizes and several devices of a block need divi-plan/3"));
        }
        if is_third && !has_batches {
            let message = "a pipeline in divi-plan/3 has batch and block_devices, or replicas with the view mtpp";
            return Err(wrong("format", message));
        }
        let terms = [("max_batch", self.max_batch), ("max_replicas", self.max_replicas)];
        match terms.into_iter().find(|(_, most)| most.is_some()) {
            Some((key, _)) if !has_batches => Err(wrong(key, "is for pipelines in divi-plan/3")),
            _ => Ok(()),
        }
    }

    /// Builds the schedule. Exactly one kind's keys must be present: each key belongs to one kind, but `makespan` to two.
    fn schedule(&self) -> Result<Schedule, Error> {
        let present = |keys: &[(&'static str, bool)]| keys.iter().find(|(_, there)| *there).map(|(key, _)| *key);
        let forms = [
            present(&[("device", self.device.is_some()), ("start", self.start.is_some())]),
            present(&[("batches", self.batches.is_some())]),
            present(&[
                ("block", self.block.is_some()),
                ("k", self.k.is_some()),
                ("bottleneck", self.bottleneck.is_some()),
                ("block_device", self.block_device.is_some()),
                ("batch", self.batch.is_some()),
                ("block_devices", self.block_devices.is_some()),
                ("replicas", self.replicas.is_some()),
                ("order", self.order.is_some()),
            ]),
            present(&[("place", self.place.is_some()), ("period", self.period.is_some())]),
        ];
        let mut found = forms.into_iter().flatten();
        let Some(first) = found.next() else {
            return Err(wrong("", "no schedule; expected one of device, batches, block or place"));
        };
        if let Some(second) = found.next() {
            return Err(wrong(second, &format!("belongs to another kind of plan than '{first}'")));
        }
        if forms[0].is_some() {
            let (device, start) = (need(&self.device, "device")?, need(&self.start, "start")?);
            return Ok(Schedule::Latency { device, start, makespan: need(&self.makespan, "makespan")? });
        }
        if forms[1].is_some() {
            let batches = need(&self.batches, "batches")?;
            return Ok(Schedule::Batch { batches, makespan: need(&self.makespan, "makespan")? });
        }
        if self.makespan.is_some() {
            return Err(wrong("makespan", &format!("belongs to another kind of plan than '{first}'")));
        }
        if forms[2].is_some() && (self.batch.is_some() || self.block_devices.is_some() || self.replicas.is_some()) {
            return self.batched_pipeline();
        }
        if forms[2].is_some() {
            let stages = match (&self.block_device, &self.order) {
                (None, None) => None,
                (device, order) => Some(Stages { block_device: device.clone(), order: order.clone() }),
            };
            let (block, k) = (need(&self.block, "block")?, need(&self.k, "k")?);
            return Ok(Schedule::Pipeline { block, k, bottleneck: need(&self.bottleneck, "bottleneck")?, stages });
        }
        Ok(Schedule::Edge { place: need(&self.place, "place")?, period: need(&self.period, "period")? })
    }

    fn batched_pipeline(&self) -> Result<Schedule, Error> {
        if self.block_device.is_some() {
            return Err(wrong("block_device", "is replaced by block_devices in divi-plan/3"));
        }
        let turns = match &self.replicas {
            Some(replicas) if self.batch.is_none() && self.block_devices.is_none() => {
                Turns::Equal { replicas: replicas.clone() }
            }
            Some(_) => {
                let message = "is for equal devices (mtpp); batch and block_devices are for the problem's devices";
                return Err(wrong("replicas", message));
            }
            None => Turns::Devices {
                batch: need(&self.batch, "batch")?,
                devices: need(&self.block_devices, "block_devices")?,
            },
        };
        let (block, k) = (need(&self.block, "block")?, need(&self.k, "k")?);
        let bottleneck = need(&self.bottleneck, "bottleneck")?;
        Ok(Schedule::BatchedPipeline { block, k, bottleneck, turns, order: self.order.clone() })
    }
}

fn need<T: Clone>(value: &Option<T>, key: &str) -> Result<T, Error> {
    value.clone().ok_or_else(|| wrong(key, "is missing"))
}

fn wrong(place: &str, message: &str) -> Error {
    Error::Format { format: FORMAT, place: place.to_owned(), message: message.to_owned() }
}
