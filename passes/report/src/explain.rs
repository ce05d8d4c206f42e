//! Reasons for a task's device: what it takes on each device, what would cross if it moved, and what the best plan costs
//! with the task there.

use std::fmt;

use divi_planner::plan::{Schedule, gap};
use divi_planner::problem::{Node, Tensor};
use divi_planner::units::{Bytes, Micros, human_bytes};
use divi_planner::{Error, Options, Plan, Problem, solve};

/// Reasons for one task's device.
#[derive(Clone, Debug)]
pub struct Explanation {
    task: String,
    objective: String,
    value: Micros,
    bound: Micros,
    /// The one device that the task may run on.
    pinned: Option<String>,
    /// Tasks that share its device.
    together: Vec<String>,
    pub choices: Vec<Choice>,
}

/// The task on one device.
#[derive(Clone, Debug)]
pub struct Choice {
    pub device: String,
    /// Where and when the plan runs it there; empty if it does not.
    pub launches: Vec<Launch>,
    /// What it takes at each batch size; empty if the device does not support it.
    pub times: Vec<(u32, Micros)>,
    /// What would cross if it ran here, and all else where the plan has it.
    pub crossing: Vec<Crossing>,
    /// The plan with the task pinned here, or why there is none.
    pub replanned: Result<Outcome, String>,
}

#[derive(Clone, Debug)]
pub struct Launch {
    pub start: Micros,
    pub end: Micros,
    pub inputs: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub value: Micros,
    pub bound: Micros,
}

/// A tensor that has to move.
#[derive(Clone, Debug)]
pub struct Crossing {
    pub from: String,
    pub to: String,
    pub device_from: String,
    pub device_to: String,
    pub bytes: Bytes,
}

/// Explains where a plan runs a node: plans again with the node pinned to each device. A pin that it has is left out for
/// that, and those that share its device move with it.
pub fn explain(problem: &Problem, plan: &Plan, node: usize, options: &Options) -> Explanation {
    let label = |node: usize| problem.nodes[node].name.clone().unwrap_or_else(|| problem.node_label(node));
    let groups = problem.colocate.iter().flatten().filter(|group| group.contains(&node));
    let mut together: Vec<usize> = groups.flatten().copied().filter(|&other| other != node).collect();
    together.sort_unstable();
    together.dedup();
    let tensors = problem.all_tensors();
    let places = plan.schedule.places(problem.nodes.len());
    let choices = (0..problem.devices.len()).map(|device| Choice {
        device: problem.devices[device].name.clone(),
        launches: launches(problem, plan, node, device),
        times: times(&problem.nodes[node], device),
        crossing: crossing(problem, &tensors, &places, node, device),
        replanned: replan(problem, plan, node, device, &together, options),
    });
    let choices = choices.collect();
    Explanation {
        task: label(node),
        objective: plan.objective.name().to_owned(),
        value: plan.value,
        bound: plan.bound,
        pinned: problem.nodes[node].pin.map(|device| problem.devices[device].name.clone()),
        together: together.into_iter().map(label).collect(),
        choices,
    }
}

fn times(node: &Node, device: usize) -> Vec<(u32, Micros)> {
    node.time.iter().filter_map(|(&batch, times)| Some((batch, times[device]?))).collect()
}

fn launches(problem: &Problem, plan: &Plan, node: usize, device: usize) -> Vec<Launch> {
    let time = |inputs: usize| {
        let times = u32::try_from(inputs).ok().and_then(|inputs| problem.nodes[node].time.get(&inputs));
        times.and_then(|times| times[device]).unwrap_or(0.0)
    };
    match &plan.schedule {
        Schedule::Latency { device: devices, start, .. } if devices[node] == device => {
            vec![Launch { start: start[node], end: start[node] + time(1), inputs: 1 }]
        }
        Schedule::Batch { batches, .. } => {
            let here = batches.iter().filter(|batch| batch.node == node && batch.device == device);
            let launch = |start, inputs| Launch { start, end: start + time(inputs), inputs };
            here.map(|batch| launch(batch.start, batch.inputs.len())).collect()
        }
        Schedule::Pipeline { block, stages, .. } => {
            let devices = stages.as_ref().and_then(|stages| stages.block_device.as_ref());
            // A stage's own time is not the input's.
            let here = devices.is_some_and(|devices| devices[block[node]] == device);
            if here { vec![Launch { start: 0.0, end: time(1), inputs: 1 }] } else { Vec::new() }
        }
        Schedule::Latency { .. } | Schedule::Edge { .. } => Vec::new(),
    }
}

/// Tensors between a node on `device` and its neighbours where they are.
fn crossing(problem: &Problem, tensors: &[Tensor], places: &[Vec<usize>], node: usize, device: usize) -> Vec<Crossing> {
    let name = |node: usize| problem.nodes[node].name.clone().unwrap_or_else(|| problem.node_label(node));
    let crossing = |tensor: &Tensor, to: usize, (a, b): (usize, usize)| Crossing {
        from: name(tensor.from),
        to: name(to),
        device_from: problem.devices[a].name.clone(),
        device_to: problem.devices[b].name.clone(),
        bytes: tensor.bytes,
    };
    let mut found = Vec::new();
    for tensor in tensors {
        if tensor.from == node {
            let mut sent = Vec::new();
            for &to in &tensor.to {
                for &there in places[to].iter().filter(|&&there| there != device) {
                    // Once a destination.
                    if !sent.contains(&there) {
                        sent.push(there);
                        found.push(crossing(tensor, to, (device, there)));
                    }
                }
            }
        } else if tensor.to.contains(&node) && !places[tensor.from].contains(&device) {
            // What another reader has brought here already need not come again.
            let brought = tensor.to.iter().any(|&to| to != node && places[to].contains(&device));
            if let Some(&from) = places[tensor.from].first().filter(|_| !brought) {
                found.push(crossing(tensor, node, (from, device)));
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
    together: &[usize],
    options: &Options,
) -> Result<Outcome, String> {
    if times(&problem.nodes[node], device).is_empty() {
        return Err("not supported there".to_owned());
    }
    let mut pinned = problem.clone();
    for &moved in together.iter().chain([&node]) {
        pinned.nodes[moved].pin = Some(device);
    }
    let plan = solve(&pinned, plan.objective, &plan.algorithm, options).map_err(|error| match error {
        Error::Infeasible(findings) if findings.len() == 1 => format!("no plan: {}", findings[0]),
        other => other.to_string(),
    })?;
    Ok(Outcome { value: plan.value, bound: plan.bound })
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, objective, value, bound, pinned, together, choices } = self;
        let here: Vec<&Choice> = choices.iter().filter(|choice| !choice.launches.is_empty()).collect();
        let devices: Vec<String> = here.iter().map(|choice| format!("@{}", choice.device)).collect();
        writeln!(out, "{task} runs on {}", devices.join(" and "))?;
        if let Some(device) = pinned {
            writeln!(out, "  it is pinned to @{device}; what follows is without that pin")?;
        }
        if !together.is_empty() {
            writeln!(out, "  it shares its device with {}", together.join(", "))?;
        }
        let proven = 100.0 * gap(*value, *bound);
        writeln!(out, "  the plan: {objective} {value:.1} µs, bound {bound:.1} µs, gap {proven:.2} %")?;
        for choice in choices {
            choice.describe(out, objective, *value)?;
        }
        writeln!(out, "{}", self.verdict(&here))
    }
}

impl Explanation {
    /// What the numbers come to.
    fn verdict(&self, here: &[&Choice]) -> String {
        let elsewhere = self.choices.iter().filter(|choice| !here.iter().any(|other| other.device == choice.device));
        let outcomes: Vec<_> =
            elsewhere.filter_map(|choice| Some((&choice.device, choice.replanned.as_ref().ok()?))).collect();
        let best = outcomes.iter().min_by(|a, b| a.1.value.total_cmp(&b.1.value));
        let Some((device, outcome)) = best else { return "no other device can have it".to_owned() };
        let bound = outcomes.iter().map(|(_, outcome)| outcome.bound).fold(f64::INFINITY, f64::min);
        let change = change(outcome.value, self.value);
        if bound > self.value * (1.0 + 1e-9) {
            let least = change_of(bound, self.value);
            return format!(
                "every plan with it elsewhere is worse, by {least} at least; the best that was found has it on \
                 @{device} ({change})"
            );
        }
        if (outcome.value - self.value).abs() <= 1e-9 * self.value {
            return format!("it could run on @{device} just as well: the plan is not the only one of its value");
        }
        if outcome.value < self.value {
            return format!("the plan with it on @{device} is better ({change}): give the planner more time");
        }
        format!(
            "the best plan that was found with it elsewhere has it on @{device} ({change}); that none is better is not proven"
        )
    }
}

impl Choice {
    fn describe(&self, out: &mut fmt::Formatter<'_>, objective: &str, value: Micros) -> fmt::Result {
        let taken = match self.times.as_slice() {
            [] => "does not support it".to_owned(),
            [(1, micros)] => format!("takes {micros:.1} µs"),
            several => {
                let times: Vec<String> =
                    several.iter().map(|(batch, micros)| format!("{batch}: {micros:.1}")).collect();
                format!("takes {} µs by batch", times.join(", "))
            }
        };
        write!(out, "@{}: {taken}", self.device)?;
        for launch in &self.launches {
            match (objective, launch.inputs) {
                ("pipeline", _) => write!(out, "; it runs here")?,
                (_, 1) => write!(out, "; it runs here from {:.1} to {:.1} µs", launch.start, launch.end)?,
                (_, inputs) => {
                    write!(out, "; it runs here for {inputs} inputs from {:.1} to {:.1} µs", launch.start, launch.end)?;
                }
            }
        }
        writeln!(out)?;
        match &self.replanned {
            Ok(outcome) => {
                let change = change(outcome.value, value);
                writeln!(
                    out,
                    "  {objective} with it here: {:.1} µs ({change}), bound {:.1} µs",
                    outcome.value, outcome.bound
                )?;
            }
            Err(_) if self.times.is_empty() => return Ok(()),
            Err(reason) => writeln!(out, "  {reason}")?,
        }
        if self.crossing.is_empty() {
            return writeln!(out, "  nothing would cross");
        }
        let bytes: Bytes = self.crossing.iter().map(|crossing| crossing.bytes).sum();
        writeln!(out, "  {} would cross for each input:", human_bytes(bytes))?;
        for crossing in &self.crossing {
            let Crossing { from, to, device_from, device_to, bytes } = crossing;
            writeln!(out, "    {} from {from} (@{device_from}) to {to} (@{device_to})", human_bytes(*bytes))?;
        }
        Ok(())
    }
}

/// `+1.67 %`, or that nothing changes.
fn change(value: Micros, before: Micros) -> String {
    if (value - before).abs() <= 1e-9 * before.max(f64::MIN_POSITIVE) {
        "the same".into()
    } else {
        change_of(value, before)
    }
}

fn change_of(value: Micros, before: Micros) -> String {
    format!("{:+.2} %", 100.0 * (value - before) / before.max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_planner::Objective;
    use divi_planner::problem::Device;

    /// Two tasks in a row; the second is faster on the second device, the way there costs 10.
    fn problem() -> Problem {
        let device = |id: usize, name: &str| Device { id, name: name.into(), memory: None, batch_sizes: vec![1] };
        let links = vec![vec![None, Some(1.0)], vec![Some(1.0), None]];
        let mut problem = Problem::new("two", vec![device(0, "cpu"), device(1, "gpu")], links);
        let node = |id: usize, name: &str, times: [Option<f64>; 2], output: f64| Node {
            id,
            name: Some(name.into()),
            time: [(1, times.to_vec())].into(),
            weight: 0.0,
            input: 0.0,
            output: Some(output),
            scratch: 0.0,
            pin: None,
            module: None,
        };
        problem.nodes =
            vec![node(0, "first", [Some(1.0), None], 10.0), node(1, "second", [Some(100.0), Some(5.0)], 0.0)];
        problem.edges = Some(vec![(0, 1)]);
        problem
    }

    #[test]
    fn moving_costs_what_planning_again_finds() {
        let problem = problem();
        let options = Options::default();
        let plan = solve(&problem, Objective::Latency, "exact", &options).expect("has a plan");
        assert_eq!(plan.value, 16.0);
        let explanation = explain(&problem, &plan, 1, &options);
        let [cpu, gpu] = &explanation.choices[..] else { panic!("one choice a device") };
        assert_eq!(cpu.replanned.as_ref().map(|outcome| outcome.value), Ok(101.0));
        assert!(cpu.crossing.is_empty() && cpu.launches.is_empty());
        assert_eq!(gpu.replanned.as_ref().map(|outcome| outcome.value), Ok(16.0));
        assert_eq!(gpu.crossing.iter().map(|crossing| crossing.bytes).sum::<f64>(), 10.0);
        assert_eq!((gpu.launches[0].start, gpu.launches[0].end), (11.0, 16.0));
        let text = explanation.to_string();
        assert!(text.contains("second runs on @gpu"), "{text}");
        assert!(text.contains("latency with it here: 101.0 µs (+531.25 %), bound 101.0 µs"), "{text}");
        assert!(text.contains("every plan with it elsewhere is worse, by +531.25 % at least"), "{text}");
    }

    #[test]
    fn a_task_that_only_one_device_supports_stays() {
        let problem = problem();
        let options = Options::default();
        let plan = solve(&problem, Objective::Latency, "exact", &options).expect("has a plan");
        let text = explain(&problem, &plan, 0, &options).to_string();
        assert!(text.contains("@gpu: does not support it"), "{text}");
        assert!(text.contains("no other device can have it"), "{text}");
    }
}
