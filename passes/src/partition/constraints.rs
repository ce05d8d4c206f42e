//! Constraints of the command line become attributes of tasks: `divi.pin`, `divi.exclude`, `divi.colocate`, `divi.weights`.

use super::{Options, placement};
use crate::node_names::node_names;
use crate::{
    ir::{
        Failure, array_attribute, attribute, blocks, describe, error, operation_name, operations, set_attribute,
        string_attribute, symbol_attribute,
    },
    tasks::{Tasks, entry, groups_of, pin},
};
use divi_cost::pattern::fits;
use melior::StringRef;
use mlir_sys::*;

/// What constraints can be put on.
pub(super) struct Targets {
    module: MlirOperation,
    pub(super) tasks: Vec<MlirOperation>,
    /// Ids and kinds of the devices.
    pub(super) devices: Vec<(String, String)>,
}

/// Puts the constraints of the options onto the tasks that they name. A pattern that fits nothing, a device that there is
/// not, and two pins of one task are errors.
pub(super) fn apply(module: MlirOperation, options: &Options) -> Result<(), Failure> {
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
        tasks.into_iter().for_each(|task| targets.exclude(task, device));
    }
    for group in groups {
        let (tasks, group) = targets.parse("colocate", group, "GROUP")?;
        tasks.into_iter().try_for_each(|task| targets.group(task, group))?;
    }
    for pattern in host_weights {
        let tasks = targets.fitting("host-weights", pattern, pattern)?;
        tasks.into_iter().for_each(|task| targets.keep_weights_on_host(task));
    }
    match placement {
        Some(file) => placement::apply(&targets, file),
        None => Ok(()),
    }
}

/// Excludes a task from a device.
pub(crate) fn exclude(module: MlirOperation, task: MlirOperation, device: &str) {
    let mut excluded = attribute(task, "divi.exclude").and_then(array_attribute).unwrap_or_default();
    if excluded.iter().any(|&other| symbol_attribute(other) == Some(device)) {
        return;
    }
    // SAFETY: the context of a live operation is alive, and so are the references.
    let list = unsafe {
        let context = mlirOperationGetContext(module);
        excluded.push(mlirFlatSymbolRefAttrGet(context, StringRef::new(device).to_raw()));
        mlirArrayAttrGet(context, excluded.len() as isize, excluded.as_ptr())
    };
    set_attribute(task, "divi.exclude", list);
}

impl Targets {
    fn of(module: MlirOperation) -> Result<Self, Failure> {
        let tasks = Tasks::of(entry(module)?)?.operations;
        let devices = blocks(module).into_iter().flat_map(operations);
        let text =
            |operation, name| attribute(operation, name).and_then(string_attribute).unwrap_or_default().to_owned();
        let devices = devices
            .filter(|&operation| operation_name(operation) == "divi.device")
            .map(|device| (text(device, "sym_name"), text(device, "kind")));
        Ok(Self { module, tasks, devices: devices.collect() })
    }

    pub(super) fn refuse(&self, message: &str) -> Failure {
        error(self.module, message);
        Failure
    }

    /// `PATTERN=VALUE`: the tasks that fit, and the value.
    fn parse<'a>(
        &self,
        option: &str,
        constraint: &'a str,
        what: &str,
    ) -> Result<(Vec<MlirOperation>, &'a str), Failure> {
        let Some((pattern, value)) = constraint.rsplit_once('=').filter(|(_, value)| !value.is_empty()) else {
            return Err(self.refuse(&format!("{option} is '{constraint}': it must be PATTERN={what}")));
        };
        Ok((self.fitting(option, constraint, pattern)?, value))
    }

    /// The tasks that fit the pattern of a constraint.
    fn fitting(&self, option: &str, constraint: &str, pattern: &str) -> Result<Vec<MlirOperation>, Failure> {
        let fitting = |task: &MlirOperation| node_names(*task).into_iter().any(|name| fits(pattern, name));
        let tasks: Vec<_> = self.tasks.iter().copied().filter(fitting).collect();
        if tasks.is_empty() {
            return Err(self.refuse(&format!("{option} '{constraint}' fits no operator{}", self.like(pattern))));
        }
        Ok(tasks)
    }

    /// Names that a pattern may have meant.
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
            self.refuse(&format!("{option} names device '{name}', which there is not: there are {known}"))
        })
    }

    pub(super) fn pin(&self, task: MlirOperation, device: &str) -> Result<(), Failure> {
        if let Some(other) = pin(task)?.filter(|other| *other != device) {
            let message = format!(
                "{} is one task, pinned to @{other} and to @{device}: take one of the pins away, or keep its operators \
                 apart with a lower fusion level",
                describe(task)
            );
            error(task, &message);
            return Err(Failure);
        }
        set_attribute(task, "divi.pin", self.symbol(device));
        Ok(())
    }

    pub(super) fn exclude(&self, task: MlirOperation, device: &str) {
        exclude(self.module, task, device);
    }

    fn group(&self, task: MlirOperation, group: &str) -> Result<(), Failure> {
        if let Some(other) = groups_of(task).into_iter().find(|other| *other != group) {
            let message = format!("{} is in groups \"{other}\" and \"{group}\": make them one group", describe(task));
            error(task, &message);
            return Err(Failure);
        }
        // SAFETY: the context is alive, and the name outlives the call.
        let name = unsafe { mlirStringAttrGet(self.context(), StringRef::new(group).to_raw()) };
        set_attribute(task, "divi.colocate", name);
        Ok(())
    }

    fn keep_weights_on_host(&self, task: MlirOperation) {
        // SAFETY: the context is alive, and the word outlives the call.
        let host = unsafe { mlirStringAttrGet(self.context(), StringRef::new("host").to_raw()) };
        set_attribute(task, "divi.weights", host);
    }

    fn context(&self) -> MlirContext {
        // SAFETY: the module is alive.
        unsafe { mlirOperationGetContext(self.module) }
    }

    fn symbol(&self, device: &str) -> MlirAttribute {
        // SAFETY: the context is alive, and the name outlives the call.
        unsafe { mlirFlatSymbolRefAttrGet(self.context(), StringRef::new(device).to_raw()) }
    }
}
