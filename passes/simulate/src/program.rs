//! Steps of one request of a plan, and the devices, links and buses that they occupy.

mod launches;
mod pipeline;

use divi_planner::{
    Error, Plan, Problem, Terms,
    plan::{Schedule, Turns},
    problem::Contention,
    units::{Bytes, BytesPerMicro, Micros},
    verify_under,
};
use std::collections::BTreeMap;

/// Steps of one request, which may have several inputs.
#[derive(Clone, Debug)]
pub struct Program {
    /// Resources, each of which serves one step at a time.
    pub resources: Vec<Resource>,
    /// Steps. A request ends with its last step.
    pub steps: Vec<Step>,
    /// Inputs of a request.
    pub inputs: u64,
    /// Requests that the runtime runs at a time by default: the number of stages and one, or one without stages.
    pub in_flight: usize,
    /// Number of hosts of the plan.
    pub hosts: usize,
    /// Inputs per second according to the plan.
    pub planned_throughput: f64,
}

/// Device, link or bus.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Name of the device, or of the devices that a link joins: `cpu0 -> gpu0`.
    pub name: String,
    /// Host of a device.
    pub host: Option<usize>,
}

/// Step of a request: launches of tasks, or a transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Resource that the step occupies.
    pub resource: Option<usize>,
    /// Duration.
    pub time: Micros,
    /// Steps that precede it.
    pub predecessors: Vec<usize>,
    /// Device that sends, and the one that receives, if it is a transfer.
    pub link: Option<(usize, usize)>,
}

impl Program {
    /// Returns the steps of a verified plan. Fails if the plan is invalid, or has a form that is not simulated.
    pub fn of(problem: &Problem, plan: &Plan) -> Result<Self, Error> {
        verify_under(problem, plan, &Terms::stated_by(plan))?;
        if problem.cold.is_some() || !plan.copies.is_empty() {
            return unsupported("a cold start is one request: simulate a plan without copies of parameters");
        }
        let contention = plan.contention.unwrap_or(problem.contention);
        let mut builder = Builder::new(problem, contention);
        let stages = match &plan.schedule {
            Schedule::Latency { .. } | Schedule::Batch { .. } => {
                launches::build(&mut builder, plan);
                0
            }
            Schedule::Pipeline { block, stages, .. } => {
                let Some(devices) = stages.as_ref().and_then(|stages| stages.block_device.as_ref()) else {
                    return unsupported(EQUAL_DEVICES);
                };
                let devices: Vec<Vec<usize>> = devices.iter().map(|device| vec![*device]).collect();
                let blocks = pipeline::Blocks { of: block, batch: &vec![1; devices.len()], devices: &devices };
                pipeline::build(&mut builder, plan, &blocks)?
            }
            Schedule::BatchedPipeline { block, turns: Turns::Devices { batch, devices }, .. } => {
                pipeline::build(&mut builder, plan, &pipeline::Blocks { of: block, batch, devices })?
            }
            Schedule::BatchedPipeline { .. } => return unsupported(EQUAL_DEVICES),
            Schedule::Edge { .. } => return unsupported("plans of edge networks are not simulated yet"),
        };
        let per_input = match &plan.schedule {
            Schedule::Latency { .. } | Schedule::Batch { .. } => plan.value.0 / builder.inputs as f64,
            _ => plan.value.0,
        };
        Ok(Self {
            resources: builder.resources,
            steps: builder.steps,
            inputs: builder.inputs,
            in_flight: stages + 1,
            hosts: builder.hosts,
            planned_throughput: 1e6 / per_input,
        })
    }
}

const EQUAL_DEVICES: &str =
    "pipelines of equal devices (mtpp) are not simulated yet: simulate a plan for the devices of a system";

fn unsupported<T>(reason: &str) -> Result<T, Error> {
    Err(Error::Unsupported(reason.to_owned()))
}

/// Program under construction.
struct Builder<'a> {
    problem: &'a Problem,
    contention: Contention,
    resources: Vec<Resource>,
    /// Resources of links and buses by name.
    shared: BTreeMap<String, usize>,
    steps: Vec<Step>,
    inputs: u64,
    hosts: usize,
}

impl<'a> Builder<'a> {
    /// Starts with the devices of a problem as resources. Devices that no host has are on a host of their own, unless the
    /// problem has no hosts.
    fn new(problem: &'a Problem, contention: Contention) -> Self {
        let machines = problem.machines.as_deref().unwrap_or_default();
        let mut hosts = machines.len();
        let mut host_of = |device: usize| {
            let known = machines.iter().position(|devices| devices.contains(&device));
            known.unwrap_or_else(|| {
                hosts = (hosts + 1).min(if machines.is_empty() { 1 } else { usize::MAX });
                hosts - 1
            })
        };
        let resource =
            |device: usize| Resource { name: problem.devices[device].name.clone(), host: Some(host_of(device)) };
        let resources = (0..problem.devices.len()).map(resource).collect();
        let (shared, steps) = (BTreeMap::new(), vec![]);
        Self { problem, contention, resources, shared, steps, inputs: 1, hosts }
    }

    fn add(&mut self, resource: Option<usize>, time: Micros, predecessors: Vec<usize>) -> usize {
        self.steps.push(Step { resource, time, predecessors, link: None });
        self.steps.len() - 1
    }

    fn resource(&mut self, name: String) -> usize {
        let next = self.resources.len();
        let index = *self.shared.entry(name.clone()).or_insert(next);
        if index == next {
            self.resources.push(Resource { name, host: None });
        }
        index
    }

    /// Returns the resource of the bus between two devices, if transfers on it affect each other.
    fn bus(&mut self, from: usize, to: usize) -> Option<usize> {
        let names = self.problem.bus.as_ref().filter(|_| self.contention != Contention::Off)?;
        let name = names[from][to].as_deref()?;
        Some(self.resource(format!("bus {name}")))
    }

    fn link(&mut self, from: usize, to: usize) -> usize {
        let [from, to] = [from, to].map(|device| &self.problem.devices[device].name);
        self.resource(format!("{from} -> {to}"))
    }

    /// Returns the duration of a transfer.
    fn duration(&self, from: usize, to: usize, bytes: Bytes) -> Micros {
        let latency = self.problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default();
        let of_bytes = |bandwidth: BytesPerMicro| bytes / bandwidth;
        latency + self.problem.bandwidth[from][to].map_or(Micros::ZERO, of_bytes)
    }
}
