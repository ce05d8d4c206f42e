//! Explanation of a task's placement: its time on each device, the transfers that a move would cause, and the objective of
//! the best plan with the task pinned there.

use std::collections::BTreeSet;
use std::fmt;

use divi_planner::plan::{Schedule, Turns, gap};
use divi_planner::problem::{Node, Tensor};
use divi_planner::units::{Bytes, Micros, human_bytes};
use divi_planner::{Error, Objective, Options, Plan, Problem, solve};

/// Explanation of one task's placement.
#[derive(Clone, Debug)]
pub struct Explanation {
    task: String,
    objective: Objective,
    value: Micros,
    bound: Micros,
    /// Text to print after the bound.
    bound_remark: String,
    /// Device that the task is pinned to.
    pinned: Option<String>,
    /// Tasks co-located with it.
    colocated: Vec<String>,
    /// One entry per device.
    pub choices: Vec<Choice>,
}

/// The task placed on one device.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Name of the device.
    pub device: String,
    /// Launches of the task on this device in the plan; empty if it runs elsewhere.
    pub launches: Vec<Launch>,
    /// Time for each batch size; empty if the device does not support the task.
    pub times: Vec<(u32, Micros)>,
    /// Transfers needed if the task ran here and all other tasks stayed in place.
    pub transfers: Vec<Transfer>,
    /// Plan with the task pinned here, or the reason why there is none.
    pub replanned: Result<Outcome, NoPlan>,
}

/// One launch of the task.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Start time.
    pub start: Micros,
    /// End time.
    pub end: Micros,
    /// Number of inputs in the batch.
    pub inputs: usize,
}

/// Objective of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Objective value.
    pub value: Micros,
    /// Lower bound, which the solver may only claim.
    pub bound: Micros,
    /// Text to print after the bound.
    pub bound_remark: String,
    /// Best verified lower bound.
    pub verified_bound: Micros,
}

/// Reason why there is no plan with the task pinned to a device.
#[derive(Clone, Debug, PartialEq)]
pub enum NoPlan {
    /// The device does not support the task.
    Unsupported,
    /// It is proven that there is no plan.
    Infeasible(String),
    /// No plan was found, though one may exist.
    NotFound(String),
}

/// A tensor that has to be transferred.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Producing task.
    pub from: String,
    /// Consuming task.
    pub to: String,
    /// Device of the producer.
    pub device_from: String,
    /// Device of the consumer.
    pub device_to: String,
    /// Size of the tensor.
    pub bytes: Bytes,
}

/// Explains where a plan runs a node: plans again with the node pinned to each device. This overrides the node's own pin;
/// co-located nodes move with it.
pub fn explain(problem: &Problem, plan: &Plan, node: usize, options: &Options) -> Explanation {
    let colocated = colocated(problem, node);
    let tensors = problem.all_tensors();
    let places = plan.schedule.places(problem.nodes.len());
    let (max_batch, max_replicas) = (options.max_batch.or(plan.max_batch), options.max_replicas.or(plan.max_replicas));
    let options = &Options { launches: plan.launches, max_batch, max_replicas, ..options.clone() };
    let choices = (0..problem.devices.len()).map(|device| Choice {
        device: problem.devices[device].name.clone(),
        launches: launches(problem, plan, node, device),
        times: times(&problem.nodes[node], device),
        transfers: transfers(problem, &tensors, &places, node, device, plan.objective == Objective::Pipeline),
        replanned: replan(problem, plan, node, device, &colocated, options),
    });
    let choices = choices.collect();
    Explanation {
        task: name(problem, node),
        objective: plan.objective,
        value: plan.value,
        bound: plan.bound,
        bound_remark: plan.bound_remark(),
        pinned: problem.nodes[node].pin.map(|device| problem.devices[device].name.clone()),
        colocated: colocated.into_iter().map(|other| name(problem, other)).collect(),
        choices,
    }
}

fn name(problem: &Problem, node: usize) -> String {
    problem.nodes[node].name.clone().unwrap_or_else(|| problem.node_label(node))
}

/// Returns the nodes that share a device with a node, also through other nodes; ascending.
fn colocated(problem: &Problem, node: usize) -> Vec<usize> {
    let mut all = BTreeSet::from([node]);
    loop {
        let before = all.len();
        for group in problem.colocate.iter().flatten() {
            if group.iter().any(|other| all.contains(other)) {
                all.extend(group);
            }
        }
        if all.len() == before {
            break;
        }
    }
    all.into_iter().filter(|&other| other != node).collect()
}

fn times(node: &Node, device: usize) -> Vec<(u32, Micros)> {
    node.time.iter().filter_map(|(&batch, times)| Some((batch, times[device]?))).collect()
}

fn launches(problem: &Problem, plan: &Plan, node: usize, device: usize) -> Vec<Launch> {
    let time = |inputs: usize| {
        let times = u32::try_from(inputs).ok().and_then(|inputs| problem.nodes[node].time.get(&inputs));
        times.and_then(|times| times[device]).unwrap_or_default()
    };
    match &plan.schedule {
        Schedule::Latency { device: devices, start, .. } if devices[node] == device => {
            vec![Launch { start: start[node], end: start[node] + time(1), inputs: 1 }]
        }
        Schedule::Batch { batches, .. } => {
            let here = batches.iter().filter(|batch| batch.node == node && batch.device == device);
            let launch = |start, inputs| Launch { start, end: start + time(inputs), inputs };
            let mut launches: Vec<Launch> = here.map(|batch| launch(batch.start, batch.inputs.len())).collect();
            launches.sort_by(|a, b| a.start.total_cmp(&b.start));
            launches
        }
        Schedule::Pipeline { block, stages, .. } => {
            let devices = stages.as_ref().and_then(|stages| stages.block_device.as_ref());
            // A pipeline has no start times; only the device is shown.
            let here = devices.is_some_and(|devices| devices[block[node]] == device);
            if here { vec![Launch { start: Micros::ZERO, end: time(1), inputs: 1 }] } else { Vec::new() }
        }
        Schedule::BatchedPipeline { block, turns: Turns::Devices { batch, devices }, .. } => {
            let (of, size) = (&devices[block[node]], batch[block[node]] as usize);
            let launch = Launch { start: Micros::ZERO, end: time(size), inputs: size };
            if of.contains(&device) { vec![launch] } else { Vec::new() }
        }
        Schedule::Latency { .. } | Schedule::BatchedPipeline { .. } | Schedule::Edge { .. } => Vec::new(),
    }
}

/// Returns the transfers between a node on `device` and its neighbors, which stay where the plan has them.
fn transfers(
    problem: &Problem,
    tensors: &[Tensor],
    places: &[Vec<usize>],
    node: usize,
    device: usize,
    is_pipeline: bool,
) -> Vec<Transfer> {
    let transfer = |tensor: &Tensor, to: usize, (a, b): (usize, usize)| Transfer {
        from: name(problem, tensor.from),
        to: name(problem, to),
        device_from: problem.devices[a].name.clone(),
        device_to: problem.devices[b].name.clone(),
        bytes: tensor.bytes,
    };
    // Devices of one list take turns at both nodes, in a pipeline, so that each passes values to itself.
    let passes_on = |other: usize| is_pipeline && places[other] == places[node] && places[node].contains(&device);
    let mut found = Vec::new();
    for tensor in tensors {
        if tensor.from == node {
            let mut sent = Vec::new();
            for &to in tensor.to.iter().filter(|to| !passes_on(**to)) {
                for &there in places[to].iter().filter(|&&there| there != device) {
                    // One transfer per destination device.
                    if !sent.contains(&there) {
                        sent.push(there);
                        found.push(transfer(tensor, to, (device, there)));
                    }
                }
            }
        } else if tensor.to.contains(&node) && !places[tensor.from].contains(&device) {
            // Another consumer may already have caused the transfer to this device.
            let is_there = tensor.to.iter().any(|&to| to != node && places[to].contains(&device));
            if let Some(&from) = places[tensor.from].first().filter(|_| !is_there) {
                found.push(transfer(tensor, node, (from, device)));
            }
        }
    }
    found
}

fn replan(
    problem: &Problem,
    plan: &Plan,
    node: usize,
    device: usize,
    colocated: &[usize],
    options: &Options,
) -> Result<Outcome, NoPlan> {
    if times(&problem.nodes[node], device).is_empty() {
        return Err(NoPlan::Unsupported);
    }
    let mut pinned = problem.clone();
    for &moved in colocated.iter().chain([&node]) {
        pinned.nodes[moved].pin = Some(device);
    }
    let plan = solve(&pinned, plan.objective, &plan.algorithm, options).map_err(|error| match &error {
        Error::Infeasible(findings) if findings.len() == 1 => NoPlan::Infeasible(format!("no plan: {}", findings[0])),
        Error::Infeasible(_) => NoPlan::Infeasible(error.to_string()),
        _ => NoPlan::NotFound(error.to_string()),
    })?;
    Ok(Outcome {
        value: plan.value,
        bound: plan.bound,
        bound_remark: plan.bound_remark(),
        verified_bound: plan.bound().verified_value(),
    })
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, objective, value, bound, bound_remark, pinned, colocated, choices } = self;
        let here: Vec<&Choice> = choices.iter().filter(|choice| !choice.launches.is_empty()).collect();
        let devices: Vec<String> = here.iter().map(|choice| format!("@{}", choice.device)).collect();
        writeln!(out, "{task} runs on {}", devices.join(" and "))?;
        if let Some(device) = pinned {
            writeln!(out, "  pinned to @{device}; the pin is ignored below")?;
        }
        if !colocated.is_empty() {
            writeln!(out, "  co-located with {}", colocated.join(", "))?;
        }
        let gap_percent = 100.0 * gap(*value, *bound);
        let objective_name = objective.name();
        writeln!(
            out,
            "  the plan: {objective_name} {value:.1} µs, bound {bound:.1} µs{bound_remark}, gap {gap_percent:.2} %"
        )?;
        for choice in choices {
            choice.describe(out, *objective, *value)?;
        }
        writeln!(out, "{}", self.verdict(&here))
    }
}

impl Explanation {
    /// Summarizes the comparison of the devices. Statements about all plans follow from verified bounds only.
    fn verdict(&self, here: &[&Choice]) -> String {
        let is_elsewhere = |choice: &&Choice| !here.iter().any(|other| other.device == choice.device);
        let elsewhere: Vec<&Choice> = self.choices.iter().filter(is_elsewhere).collect();
        let bound = elsewhere.iter().map(|choice| choice.verified_bound()).fold(Micros::INFINITY, Micros::min);
        let outcomes = elsewhere.iter().filter_map(|choice| Some((&choice.device, choice.replanned.as_ref().ok()?)));
        let best = outcomes.min_by(|a, b| a.1.value.total_cmp(&b.1.value));
        let Some((device, outcome)) = best else {
            return match bound.is_finite() {
                true => "no plan was found on another device; it is not proven that there is none".to_owned(),
                false => "no other device can run it".to_owned(),
            };
        };
        let change = change(outcome.value, self.value);
        if bound > self.value * (1.0 + 1e-9) {
            let least = change_of(bound, self.value);
            return format!(
                "every plan on another device is worse by at least {least}; the best one found uses @{device} \
                 ({change})"
            );
        }
        if (outcome.value - self.value).abs() <= 1e-9 * self.value {
            return format!("@{device} gives a plan of the same value");
        }
        if outcome.value < self.value {
            return format!(
                "the plan with it on @{device} is better ({change}): increase the planner's limit, or lower min-gain"
            );
        }
        format!("the best plan found on another device uses @{device} ({change}); it is not proven that none is better")
    }
}

impl Choice {
    /// Returns a verified lower bound on all plans with the task on this device; infinite if it is proven that there
    /// are none.
    fn verified_bound(&self) -> Micros {
        match &self.replanned {
            Ok(outcome) => outcome.verified_bound,
            Err(NoPlan::Unsupported | NoPlan::Infeasible(_)) => Micros::INFINITY,
            Err(NoPlan::NotFound(_)) => Micros::ZERO,
        }
    }

    fn describe(&self, out: &mut fmt::Formatter<'_>, objective: Objective, value: Micros) -> fmt::Result {
        let times = match self.times.as_slice() {
            [] => "does not support it".to_owned(),
            [(1, micros)] => format!("takes {micros:.1} µs"),
            several => {
                let by_size: Vec<String> =
                    several.iter().map(|(batch, micros)| format!("{batch}: {micros:.1}")).collect();
                format!("takes {} µs by batch size", by_size.join(", "))
            }
        };
        write!(out, "@{}: {times}", self.device)?;
        match (objective, self.launches.as_slice()) {
            (_, []) => {}
            (Objective::Pipeline, [Launch { inputs, .. }]) if *inputs > 1 => {
                write!(out, "; it runs here in batches of {inputs}")?;
            }
            (Objective::Pipeline, _) => write!(out, "; it runs here")?,
            (_, [Launch { start, end, inputs: 1 }]) => write!(out, "; it runs here from {start:.1} to {end:.1} µs")?,
            (_, [Launch { start, end, inputs }]) => {
                write!(out, "; it runs here for {inputs} inputs from {start:.1} to {end:.1} µs")?;
            }
            (_, [Launch { start, .. }, .., Launch { end, .. }]) => {
                let inputs: usize = self.launches.iter().map(|launch| launch.inputs).sum();
                let launches = self.launches.len();
                write!(
                    out,
                    "; it runs here for {inputs} inputs in {launches} launches from {start:.1} to {end:.1} µs"
                )?;
            }
        }
        writeln!(out)?;
        match &self.replanned {
            Ok(outcome) => {
                let change = change(outcome.value, value);
                let Outcome { value, bound, bound_remark, .. } = outcome;
                let objective = objective.name();
                writeln!(
                    out,
                    "  {objective} with it here: {value:.1} µs ({change}), bound {bound:.1} µs{bound_remark}"
                )?;
            }
            Err(NoPlan::Unsupported) => return Ok(()),
            Err(NoPlan::Infeasible(reason) | NoPlan::NotFound(reason)) => writeln!(out, "  {reason}")?,
        }
        if self.transfers.is_empty() {
            return writeln!(out, "  no transfers");
        }
        let bytes: Bytes = self.transfers.iter().map(|transfer| transfer.bytes).sum();
        writeln!(out, "  transfers of {} for each input:", human_bytes(bytes))?;
        for transfer in &self.transfers {
            let Transfer { from, to, device_from, device_to, bytes } = transfer;
            writeln!(out, "    {} from {from} (@{device_from}) to {to} (@{device_to})", human_bytes(*bytes))?;
        }
        Ok(())
    }
}

/// Minimum divisor of a relative change, so that a plan of zero time does not divide by zero.
const LEAST: Micros = Micros(f64::MIN_POSITIVE);

/// Formats a relative change (`+1.67 %`), or "the same".
fn change(value: Micros, before: Micros) -> String {
    if (value - before).abs() <= 1e-9 * before.max(LEAST) { "the same".into() } else { change_of(value, before) }
}

fn change_of(value: Micros, before: Micros) -> String {
    format!("{:+.2} %", 100.0 * (value - before) / before.max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_planner::problem::Device;
    use divi_planner::units::BytesPerMicro;

    /// Two tasks in sequence; the second is faster on the second device, and the transfer takes 10 µs.
    fn problem() -> Problem {
        let device = |id: usize, name: &str| Device { id, name: name.into(), memory: None, batch_sizes: vec![1] };
        let link = Some(BytesPerMicro(1.0));
        let links = vec![vec![None, link], vec![link, None]];
        let mut problem = Problem::new("two", vec![device(0, "cpu"), device(1, "gpu")], links);
        let node = |id: usize, name: &str, times: [Option<f64>; 2], output: f64| Node {
            id,
            name: Some(name.into()),
            time: [(1, times.map(|time| time.map(Micros)).to_vec())].into(),
            weight: Bytes::ZERO,
            input: Bytes::ZERO,
            output: Some(Bytes(output)),
            scratch: Bytes::ZERO,
            pin: None,
            module: None,
        };
        problem.nodes =
            vec![node(0, "first", [Some(1.0), None], 10.0), node(1, "second", [Some(100.0), Some(5.0)], 0.0)];
        problem.edges = Some(vec![(0, 1)]);
        problem
    }

    #[test]
    fn choices_are_replanned_with_a_pin() {
        let problem = problem();
        let options = Options::default();
        let plan = solve(&problem, Objective::Latency, "exact", &options).expect("has a plan");
        assert_eq!(plan.value, Micros(16.0));
        let explanation = explain(&problem, &plan, 1, &options);
        let [cpu, gpu] = &explanation.choices[..] else { panic!("one choice per device") };
        assert_eq!(cpu.replanned.as_ref().map(|outcome| outcome.value), Ok(Micros(101.0)));
        assert!(cpu.transfers.is_empty() && cpu.launches.is_empty());
        assert_eq!(gpu.replanned.as_ref().map(|outcome| outcome.value), Ok(Micros(16.0)));
        assert_eq!(gpu.transfers.iter().map(|transfer| transfer.bytes).sum::<Bytes>(), Bytes(10.0));
        assert_eq!((gpu.launches[0].start, gpu.launches[0].end), (Micros(11.0), Micros(16.0)));
        let text = explanation.to_string();
        assert!(text.contains("second runs on @gpu"), "{text}");
        assert!(text.contains("latency with it here: 101.0 µs (+531.25 %), bound 101.0 µs"), "{text}");
        assert!(text.contains("every plan on another device is worse by at least +531.25 %"), "{text}");
    }

    #[test]
    fn a_task_that_only_one_device_supports_stays() {
        let problem = problem();
        let options = Options::default();
        let plan = solve(&problem, Objective::Latency, "exact", &options).expect("has a plan");
        let text = explain(&problem, &plan, 0, &options).to_string();
        assert!(text.contains("@gpu: does not support it"), "{text}");
        assert!(text.contains("no other device can run it"), "{text}");
    }

    /// Returns the last line of an explanation.
    fn verdict(explanation: &Explanation) -> String {
        explanation.to_string().lines().last().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_failed_search_proves_nothing() {
        let problem = problem();
        let options = Options::default();
        let mut plan = solve(&problem, Objective::Latency, "exact", &options).expect("has a plan");
        plan.algorithm = "of another version".to_owned();
        let mut explanation = explain(&problem, &plan, 1, &options);
        assert!(matches!(&explanation.choices[0].replanned, Err(NoPlan::NotFound(_))), "{explanation:?}");
        let unproven = "no plan was found on another device; it is not proven that there is none";
        assert_eq!(verdict(&explanation), unproven);
        // A device that is proven to be worse does not make up for it.
        let worse = Outcome {
            value: Micros(20.0),
            bound: Micros(20.0),
            bound_remark: String::new(),
            verified_bound: Micros(20.0),
        };
        let other = Choice { device: "npu".into(), replanned: Ok(worse), ..explanation.choices[0].clone() };
        explanation.choices.push(other);
        let unproven =
            "the best plan found on another device uses @npu (+25.00 %); it is not proven that none is better";
        assert_eq!(verdict(&explanation), unproven);
    }

    #[test]
    fn a_claimed_bound_proves_nothing() {
        let problem = problem();
        let options = Options::default();
        let plan = solve(&problem, Objective::Latency, "exact", &options).expect("has a plan");
        let mut explanation = explain(&problem, &plan, 1, &options);
        let replanned = explanation.choices[0].replanned.as_mut().expect("the cpu supports it");
        replanned.verified_bound = Micros(10.0);
        let unproven =
            "the best plan found on another device uses @cpu (+531.25 %); it is not proven that none is better";
        assert_eq!(verdict(&explanation), unproven);
    }

    #[test]
    fn tasks_are_colocated_through_others() {
        let mut problem = problem();
        let first = problem.nodes[0].clone();
        problem.nodes.extend((2..5).map(|id| Node { id, ..first.clone() }));
        problem.colocate = Some(vec![vec![2, 3], vec![0, 2], vec![1, 4]]);
        assert_eq!(colocated(&problem, 0), [2, 3]);
        assert_eq!(colocated(&problem, 4), [1]);
    }
}
