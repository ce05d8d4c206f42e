//! Checks that every stage is launched, and that every task runs once for each queued input.

use super::{
    stage::{Functions, Stage, Step},
    stream::Stream,
};
use crate::{
    ir::describe,
    verify_plan::{
        Findings,
        certificate::{Certificate, Objective},
        list,
    },
};
use divi_dialect::{Operation, attr};
use std::collections::{BTreeMap, BTreeSet};

/// Checks that each function with a device, which is a stage, is launched once, or once for each set of inputs if the plan
/// may have many launches.
pub(super) fn check_launches(
    stages: &[Stage<'_>],
    launched: &BTreeSet<&str>,
    functions: &Functions<'_>,
    entry: Operation<'_>,
    certificate: &Certificate<'_>,
    findings: &mut Findings,
) {
    let mut inputs_of: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for stage in stages {
        let is_first = !inputs_of.contains_key(stage.name());
        let inputs = inputs_of.entry(stage.name()).or_default();
        let again: Vec<i64> = stage.inputs.iter().copied().filter(|&input| !inputs.insert(input)).collect();
        if !certificate.has_many_launches && !is_first {
            let why = match certificate.objective {
                Objective::Batch => ", as launches is one in divi.plan",
                Objective::Latency | Objective::Pipeline => "",
            };
            let name = stage.name();
            findings.add(stage.launch, &format!("@{name} is launched a second time: a stage runs once{why}"));
        } else if !again.is_empty() {
            let message = format!("@{} is launched a second time for inputs {}", stage.name(), list(&again));
            findings.add(stage.launch, &message);
        }
    }
    let mut names: Vec<_> = functions.iter().collect();
    names.sort_unstable_by_key(|(name, _)| **name);
    for (name, &function) in names {
        if function != entry && function.has(attr::DEVICE) && !launched.contains(name) {
            findings.add(function, &format!("@{name} is a stage, but is never launched: outline again"));
        }
    }
}

/// Tasks that each device has run. Tasks are identified by their names, since launches of other sizes run other copies of
/// them; of several tasks with one name, each runs every input once.
#[derive(Default)]
pub(super) struct HeldTasks<'a> {
    /// By device, name and kind.
    of_name: BTreeMap<(usize, &'a str, &'a str), SameName>,
}

/// Tasks with one name on a device.
#[derive(Default)]
struct SameName {
    tasks: usize,
    runs_of_input: BTreeMap<i64, usize>,
}

impl<'a> HeldTasks<'a> {
    /// Adds a step of a launch; returns true if its task has not run on the device before.
    pub(super) fn add(&mut self, stage: &'a Stage<'_>, step: &'a Step<'_>) -> bool {
        let key = (stage.device, step.name.as_str(), step.task.operation.name());
        let SameName { tasks, runs_of_input } = self.of_name.entry(key).or_default();
        let mut most = 0;
        for &input in &stage.inputs {
            let runs = runs_of_input.entry(input).or_default();
            *runs += 1;
            most = most.max(*runs);
        }
        let is_new = most > *tasks;
        *tasks = most.max(*tasks);
        is_new
    }
}

/// Number of runs of a task for each input.
type Counts<'m> = (Operation<'m>, BTreeMap<i64, usize>);

/// Checks that every task runs once for each input. Tasks are identified by the names of their nodes, which are the
/// same for all inputs.
pub(super) fn check_inputs(stream: &Stream<'_, '_>, certificate: &Certificate<'_>, findings: &mut Findings) {
    let mut runs: BTreeMap<(&str, &str), Counts<'_>> = BTreeMap::new();
    for stage in &stream.stages {
        for step in &stage.steps {
            let operation = step.task.operation;
            // A task whose result all inputs share may run once for all.
            if step.is_auxiliary || stream.shared.contains(&operation) {
                continue;
            }
            let key = (step.name.as_str(), operation.name());
            let (_, counts) = runs.entry(key).or_insert_with(|| (operation, BTreeMap::new()));
            stage.inputs.iter().for_each(|&input| *counts.entry(input).or_default() += 1);
        }
    }
    for (operation, counts) in runs.into_values() {
        let missing: Vec<i64> = (0..certificate.inputs).filter(|input| !counts.contains_key(input)).collect();
        if !missing.is_empty() {
            let name = describe(operation);
            let message = format!("{name} does not run for inputs {}: outline again", list(&missing));
            findings.add(operation, &message);
        }
        // Several nodes may have the same name, but the same number of them for each input.
        let least = counts.values().copied().min().unwrap_or(1);
        let more: Vec<i64> = counts.iter().filter(|(_, count)| **count > least).map(|(&input, _)| input).collect();
        if !more.is_empty() {
            let name = describe(operation);
            let message = format!("{name} runs more than once for inputs {}: outline again", list(&more));
            findings.add(operation, &message);
        }
    }
}
