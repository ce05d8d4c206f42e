//! Division of a bundle among hosts: the devices, values, stages, constants and steps of one host.
//!
//! A transfer between devices of different hosts becomes a send on one host and a receive on the other. Values in memory that
//! the host cannot access pass through values on a device in host memory (staging).

use super::{Action, Buffer, Bundle, Call, Device, FileRanges, Port, Source, Step, Value, validate::Validation};
use std::collections::BTreeSet;

/// Transfer between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Index of the sending host.
    pub(crate) from: usize,
    /// Index of the receiving host.
    pub(crate) to: usize,
}

/// Part of a bundle that one host runs.
pub(crate) struct HostPart {
    /// Description without the devices, values, stages, constants and steps of other hosts.
    pub(crate) bundle: Bundle,
    /// By step: its index in the whole bundle. A message and the copies that stage it have the index of their transfer.
    pub(crate) steps: Vec<usize>,
    /// Messages of all hosts, in the order of their steps.
    pub(crate) messages: Vec<Message>,
    /// Ranges of files that constants of the whole bundle refer to: hashes cover them.
    pub(crate) ranges: FileRanges,
}

impl Bundle {
    /// Returns the number of hosts of the plan.
    pub fn host_count(&self) -> usize {
        self.devices.iter().filter_map(|device| device.node).max().map_or(1, |last| last + 1)
    }

    /// Checks that hosts are numbered from 0 without gaps, and that either all devices belong to a host or none does.
    pub(super) fn validate_hosts(&self) -> Validation {
        let Some(last) = self.devices.iter().filter_map(|device| device.node).max() else { return Ok(()) };
        if let Some(device) = self.devices.iter().find(|device| device.node.is_none()) {
            return Err(format!("device '{}' belongs to no node, and other devices do", device.id));
        }
        if last >= self.devices.len() {
            return Err(format!("node {last} is out of range: there are {} devices", self.devices.len()));
        }
        match (0..last).find(|&node| self.devices.iter().all(|device| device.node != Some(node))) {
            Some(node) => Err(format!("node {node} has no device, and node {last} exists")),
            None => Ok(()),
        }
    }

    /// Returns the host of a value.
    fn host_of(&self, value: usize) -> usize {
        self.devices[self.values[value].device].node.unwrap_or(0)
    }

    /// Returns the pairs of hosts with transfers from the first to the second.
    pub(crate) fn host_pairs(&self) -> BTreeSet<(usize, usize)> {
        let pair = |step: &Step| match step.action {
            Action::Transfer { input, output } => Some((self.host_of(input), self.host_of(output))),
            _ => None,
        };
        self.steps.iter().filter_map(pair).filter(|(from, to)| from != to).collect()
    }

    /// Checks that the inputs and outputs of the model are on the first host.
    pub(crate) fn check_ports(&self) -> Validation {
        for (ports, kind) in [(&self.inputs, "input"), (&self.outputs, "output")] {
            if let Some(Port { name, value }) = ports.iter().find(|port| self.host_of(port.value) != 0) {
                let (device, node) = (&self.devices[self.values[*value].device].id, self.host_of(*value));
                return Err(format!(
                    "{kind} '{name}' is on device '{device}' of node {node}, and inputs and outputs are at rank 0: describe that \
                     node first in the system description"
                ));
            }
        }
        Ok(())
    }

    /// Returns the part of a valid bundle that `host` runs. `is_on_host` is true for the devices in host memory.
    pub(crate) fn part(&self, host: usize, is_on_host: &[bool]) -> HostPart {
        Division::new(self, host, is_on_host).part()
    }
}

/// State of the construction of a part.
struct Division<'a> {
    whole: &'a Bundle,
    host: usize,
    /// By device of the whole bundle: true if the host can access its memory.
    is_on_host: &'a [bool],
    /// By device of the whole bundle: its index in the part.
    devices: Vec<Option<usize>>,
    /// By value of the whole bundle: its index in the part.
    values: Vec<Option<usize>>,
    /// By stage of the whole bundle: its index in the part.
    stages: Vec<Option<usize>>,
    part: HostPart,
}

impl<'a> Division<'a> {
    fn new(whole: &'a Bundle, host: usize, is_on_host: &'a [bool]) -> Self {
        let is_here = |device: usize| whole.devices[device].node.unwrap_or(0) == host;
        let devices = numbered((0..whole.devices.len()).map(is_here));
        let values = numbered(whole.values.iter().map(|value| is_here(value.device)));
        let stages = numbered(whole.stages.iter().map(|stage| is_here(stage.device)));
        let bundle = Bundle {
            devices: kept(&whole.devices, &devices),
            values: kept(&whole.values, &values),
            stages: kept(&whole.stages, &stages),
            inputs: vec![],
            outputs: vec![],
            task_results: if host == 0 { whole.task_results.clone() } else { vec![] },
            steps: vec![],
            ..whole.clone()
        };
        let part = HostPart { bundle, steps: vec![], messages: vec![], ranges: whole.ranges() };
        let mut division = Self { whole, host, is_on_host, devices, values, stages, part };
        division.renumber_devices();
        division
    }

    fn renumber_devices(&mut self) {
        let new = |device: usize| self.devices[device].unwrap_or(0);
        self.part.bundle.values.iter_mut().for_each(|value| value.device = new(value.device));
        self.part.bundle.stages.iter_mut().for_each(|stage| stage.device = new(stage.device));
    }

    fn part(mut self) -> HostPart {
        for (index, step) in self.whole.steps.iter().enumerate() {
            self.step(index, step);
        }
        let port = |port: &Port| Some(Port { value: self.values[port.value]?, ..port.clone() });
        self.part.bundle.inputs = self.whole.inputs.iter().filter_map(port).collect();
        self.part.bundle.outputs = self.whole.outputs.iter().filter_map(port).collect();
        self.part.bundle.drop_unused_constants();
        self.part.bundle.drop_unused_executables();
        self.part
    }

    fn step(&mut self, index: usize, step: &Step) {
        if let Action::Transfer { input, output } = step.action {
            let (from, to) = (self.whole.host_of(input), self.whole.host_of(output));
            if from != to {
                return self.message(index, step, (input, from), (output, to));
            }
        }
        let value = |value: &usize| self.values[*value];
        let values = |list: &[usize]| list.iter().map(value).collect::<Option<Vec<usize>>>();
        let action = match step.action.clone() {
            Action::Launch { stage, inputs, outputs } => self.stages[stage]
                .and_then(|stage| Some(Action::Launch { stage, inputs: values(&inputs)?, outputs: values(&outputs)? })),
            Action::Transfer { input, output } => {
                value(&input).zip(value(&output)).map(|(input, output)| Action::Transfer { input, output })
            }
            Action::Slice { input, output, positions, of, axis, outer } => value(&input)
                .zip(value(&output))
                .map(|(input, output)| Action::Slice { input, output, positions, of, axis, outer }),
            Action::Gather { inputs, output, of, axis, outer } => values(&inputs)
                .zip(value(&output))
                .map(|(inputs, output)| Action::Gather { inputs, output, of, axis, outer }),
            Action::Send { .. } | Action::Receive { .. } => None,
        };
        if let Some(action) = action {
            self.push(index, Step { action, ..step.clone() });
        }
    }

    /// Replaces a transfer between hosts by the half of it that runs here.
    fn message(&mut self, index: usize, step: &Step, (input, from): (usize, usize), (output, to): (usize, usize)) {
        let message = self.part.messages.len();
        self.part.messages.push(Message { from, to });
        let is_staged = |value: usize| !self.is_on_host[self.whole.values[value].device];
        if from == self.host
            && let Some(mut value) = self.values[input]
        {
            if is_staged(input) {
                let staged = self.staging_value(value);
                let action = Action::Transfer { input: value, output: staged };
                self.push(index, Step { action, ..step.clone() });
                value = staged;
            }
            self.push(index, Step { action: Action::Send { input: value, to, message }, ..step.clone() });
        }
        if to == self.host
            && let Some(value) = self.values[output]
        {
            let received = if is_staged(output) { self.staging_value(value) } else { value };
            self.push(index, Step { action: Action::Receive { output: received, from, message }, ..step.clone() });
            if received != value {
                self.push(index, Step { action: Action::Transfer { input: received, output: value }, ..step.clone() });
            }
        }
    }

    fn push(&mut self, index: usize, step: Step) {
        self.part.bundle.steps.push(step);
        self.part.steps.push(index);
    }

    /// Adds a value in host memory like `value`, on the first device in host memory, which is added if there is none.
    fn staging_value(&mut self, value: usize) -> usize {
        let all = || self.devices.iter().enumerate().filter_map(|(whole, part)| Some((whole, (*part)?)));
        let of_host = all().find(|(whole, _)| self.is_on_host[*whole]).map(|(_, part)| part);
        let bundle = &mut self.part.bundle;
        let own = all().count();
        let device = of_host.unwrap_or(own);
        if device == bundle.devices.len() {
            let id = format!("host{}", self.host);
            let node = Some(self.host);
            bundle.devices.push(Device {
                id,
                kind: "cpu".into(),
                threads: 1,
                memory: u64::MAX,
                node,
                ..Device::default()
            });
        }
        let Value { name, tensor, .. } = bundle.values[value].clone();
        bundle.values.push(Value { name, device, tensor, constant: None });
        bundle.values.len() - 1
    }
}

impl Bundle {
    /// Removes the constants that neither stages, nor values, nor the computation of such constants read.
    pub fn drop_unused_constants(&mut self) {
        let mut is_used = vec![false; self.constants.len()];
        for stage in &self.stages {
            let of_calls = stage.calls.iter().flat_map(Call::constants);
            of_calls.chain(stage.constants.iter().copied()).for_each(|constant| is_used[constant] = true);
        }
        self.values.iter().filter_map(|value| value.constant).for_each(|constant| is_used[constant] = true);
        // A call that writes a constant in use uses all its buffers. Later calls read what earlier ones have written.
        let mut calls: Vec<bool> = vec![false; self.prepare.len()];
        for (call, keep) in self.prepare.iter().zip(&mut calls).rev() {
            let is_computed = |constant: &usize| self.constants[*constant].source == Source::Computed;
            *keep = call.constants().filter(is_computed).any(|constant| is_used[constant]);
            if *keep {
                call.constants().for_each(|constant| is_used[constant] = true);
            }
        }
        let mut keep = calls.into_iter();
        self.prepare.retain(|_| keep.next() == Some(true));
        let new = numbered(is_used.into_iter());
        self.constants = kept(&self.constants, &new);
        let renumber = |constant: &mut usize| *constant = new[*constant].unwrap_or(0);
        let calls = self.stages.iter_mut().flat_map(|stage| &mut stage.calls).chain(&mut self.prepare);
        for buffer in calls.flat_map(|call| &mut call.buffers) {
            if let Buffer::Constant(constant) = buffer {
                renumber(constant);
            }
        }
        self.stages.iter_mut().flat_map(|stage| &mut stage.constants).for_each(renumber);
        self.values.iter_mut().filter_map(|value| value.constant.as_mut()).for_each(renumber);
    }

    /// Removes the code that neither stages nor `prepare` use.
    fn drop_unused_executables(&mut self) {
        if self.prepare.is_empty() {
            self.prepare_executable = None;
        }
        let is_used = |index: usize| {
            self.prepare_executable == Some(index) || self.stages.iter().any(|stage| stage.executable == index)
        };
        let new = numbered((0..self.executables.len()).map(is_used));
        self.executables = kept(&self.executables, &new);
        let renumber = |index: &mut usize| *index = new[*index].unwrap_or(0);
        self.stages.iter_mut().map(|stage| &mut stage.executable).for_each(renumber);
        self.prepare_executable.iter_mut().for_each(renumber);
    }
}

/// Numbers the elements that are kept.
fn numbered(is_kept: impl Iterator<Item = bool>) -> Vec<Option<usize>> {
    let mut next = 0..;
    is_kept.map(|is_kept| if is_kept { next.next() } else { None }).collect()
}

/// Returns the elements that have a new number.
fn kept<T: Clone>(all: &[T], new: &[Option<usize>]) -> Vec<T> {
    all.iter().zip(new).filter(|(_, new)| new.is_some()).map(|(element, _)| element.clone()).collect()
}

#[cfg(test)]
mod tests;
