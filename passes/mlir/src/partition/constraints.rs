//! Writes constraints of the command line onto tasks: `divi.pin`, `divi.exclude`, `divi.colocate`, `divi.weights`.

use super::{Options, placement};
use crate::node_names::node_names;
use crate::{
    ir::{Failure, describe, error},
    tasks::{Tasks, entry, groups_of, pin},
};
use divi_cost::pattern::matches;
use divi_dialect::{Operation, attr, op};

/// Tasks and devices that constraints refer to.
pub(super) struct Targets<'m> {
    module: Operation<'m>,
    pub(super) tasks: Vec<Operation<'m>>,
    /// Ids and kinds of the devices.
    pub(super) devices: Vec<(String, String)>,
}

/// Writes the constraints of the options onto the matching tasks. A pattern without a match, an unknown device, and two
/// pins of one task are errors.
pub(super) fn apply(module: Operation<'_>, options: &Options) -> Result<(), Failure> {
    let Options { pins, exclusions, groups, host_weights, placement, .. } = options;
    if [pins, exclusions, groups, host_weights].iter().all(|list| list.is_empty()) && placement.is_none() {
        return Ok(());
    }
    let targets = Targets::of(module)?;
    for pin in pins {
        let (tasks, device) = targets.parse("pin", pin, "DEVICE")?;
        let device = targets.device("pin", device)?;
        tasks.into_iter().try_for_each(|task| targets.pin(task, device))?;
    }
    for exclusion in exclusions {
        let (tasks, device) = targets.parse("exclude", exclusion, "DEVICE")?;
        let device = targets.device("exclude", device)?;
        tasks.into_iter().for_each(|task| exclude(task, device));
    }
    for group in groups {
        let (tasks, group) = targets.parse("colocate", group, "GROUP")?;
        tasks.into_iter().try_for_each(|task| targets.group(task, group))?;
    }
    for pattern in host_weights {
        let tasks = targets.fitting("host-weights", pattern, pattern)?;
        tasks.into_iter().for_each(|task| task.set(attr::WEIGHTS, "host"));
    }
    match placement {
        Some(file) => placement::apply(&targets, file),
        None => Ok(()),
    }
}

/// Excludes a task from a device.
pub(crate) fn exclude(task: Operation<'_>, device: &str) {
    let mut excluded = task.get(attr::EXCLUDE).unwrap_or_default();
    if !excluded.contains(&device) {
        excluded.push(device);
        task.set(attr::EXCLUDE, &excluded);
    }
}

impl<'m> Targets<'m> {
    fn of(module: Operation<'m>) -> Result<Self, Failure> {
        let tasks = Tasks::of(entry(module)?)?.operations;
        let devices = module.children().into_iter().filter(|operation| operation.name() == op::DEVICE);
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let devices = devices.map(|device| (text(device.symbol_name()), text(device.get(attr::KIND))));
        Ok(Self { module, tasks, devices: devices.collect() })
    }

    pub(super) fn refuse(&self, message: &str) -> Failure {
        error(self.module, message);
        Failure
    }

    /// Parses `PATTERN=VALUE`. Returns the matching tasks, and the value.
    fn parse<'a>(
        &self,
        option: &str,
        constraint: &'a str,
        what: &str,
    ) -> Result<(Vec<Operation<'m>>, &'a str), Failure> {
        let Some((pattern, value)) = constraint.rsplit_once('=').filter(|(_, value)| !value.is_empty()) else {
            return Err(self.refuse(&format!("{option} is '{constraint}': it must be PATTERN={what}")));
        };
        Ok((self.fitting(option, constraint, pattern)?, value))
    }

    /// Returns the tasks that match the pattern of a constraint.
    fn fitting(&self, option: &str, constraint: &str, pattern: &str) -> Result<Vec<Operation<'m>>, Failure> {
        let fitting = |task: &Operation<'_>| node_names(*task).into_iter().any(|name| matches(pattern, name));
        let tasks: Vec<_> = self.tasks.iter().copied().filter(fitting).collect();
        if tasks.is_empty() {
            return Err(self.refuse(&format!("{option} '{constraint}' matches no operator{}", self.like(pattern))));
        }
        Ok(tasks)
    }

    /// Returns the names that are most similar to a pattern, as the end of a message.
    fn like(&self, pattern: &str) -> String {
        let shared = |name: &str| name.bytes().zip(pattern.bytes()).take_while(|(a, b)| a == b).count();
        let all = self.tasks.iter().flat_map(|&task| node_names(task));
        let mut all: Vec<(usize, &str)> = all.map(|name| (shared(name), name)).collect();
        all.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
        let shown: Vec<String> = all.into_iter().take(3).map(|(_, name)| format!("'{name}'")).collect();
        if shown.is_empty() { ": none has a name".into() } else { format!(": there are {}, …", shown.join(", ")) }
    }

    fn device<'a>(&'a self, option: &str, name: &str) -> Result<&'a str, Failure> {
        let known = self.devices.iter().map(|(id, _)| id.as_str());
        let name = name.strip_prefix('@').unwrap_or(name);
        known.clone().find(|id| *id == name).ok_or_else(|| {
            let known = known.collect::<Vec<_>>().join(", ");
            self.refuse(&format!("{option} names unknown device '{name}'; expected one of {known}"))
        })
    }

    pub(super) fn pin(&self, task: Operation<'_>, device: &str) -> Result<(), Failure> {
        if let Some(other) = pin(task)?.filter(|other| *other != device) {
            let message = format!(
                "{} is one task, pinned to @{other} and to @{device}: remove one of the pins, or separate its operators \
                 with a lower fusion level",
                describe(task)
            );
            error(task, &message);
            return Err(Failure);
        }
        task.set(attr::PIN, device);
        Ok(())
    }

    fn group(&self, task: Operation<'_>, group: &str) -> Result<(), Failure> {
        if let Some(other) = groups_of(task).into_iter().find(|other| *other != group) {
            let message = format!("{} is in groups \"{other}\" and \"{group}\": make them one group", describe(task));
            error(task, &message);
            return Err(Failure);
        }
        task.set(attr::COLOCATE, group);
        Ok(())
    }
}
