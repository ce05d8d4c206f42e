//! Tasks with their costs and constraints.

use super::{Findings, machine::Machine, size};
use crate::{
    ir::describe,
    tasks::{exclusions, groups_of, is_constant_value, is_weight, moves_of, pin, reads, task_name},
};
use divi_dialect::{BatchCost, MoveAttribute, Operation, Value, attr};
use divi_planner::units::{Bytes, Micros};

/// Task with its costs and constraints.
pub(super) struct Task<'m> {
    pub(super) operation: Operation<'m>,
    pub(super) weight: Bytes,
    /// Bytes of its weights that it reads.
    read_weight: Bytes,
    /// Bytes of computed operands, for one input.
    pub(super) input: Bytes,
    pub(super) scratch: Bytes,
    costs: Vec<BatchCost>,
    pin: Option<String>,
    excluded: Vec<String>,
    /// Co-location groups.
    pub(super) groups: Vec<String>,
    /// Device that holds its parameters from an earlier run.
    resident: Option<String>,
    /// Copies of its parameters between devices.
    pub(super) copies: Vec<Copy>,
}

/// Copy of parameters between two devices.
pub(super) struct Copy {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) start: Micros,
    pub(super) end: Micros,
}

impl<'m> Task<'m> {
    /// Reads a task. Constraints of operators in a cluster apply to the cluster.
    pub(super) fn of(operation: Operation<'m>, findings: &mut Findings) -> Self {
        let cost = operation.get(attr::COST);
        if cost.is_none() {
            findings.add(operation, &format!("{} has no divi.cost: its time is unknown", describe(operation)));
        }
        let values = reads(operation);
        let sum = |values: &mut dyn Iterator<Item = &Value<'_>>| values.map(|&value| size(value)).sum();
        let stated = |key| operation.get(key).map(|bytes: i64| Bytes(bytes as f64));
        let pinned = pin(operation);
        if pinned.is_err() {
            findings.said();
        }
        let weight =
            stated(attr::WEIGHT_BYTES).unwrap_or_else(|| sum(&mut values.iter().filter(|&&value| is_weight(value))));
        Self {
            operation,
            weight,
            read_weight: stated(attr::READ_WEIGHT_BYTES).map_or(weight, |read| read.min(weight)),
            input: stated(attr::INPUT_BYTES)
                .unwrap_or_else(|| sum(&mut values.iter().filter(|&&value| !is_constant_value(value)))),
            scratch: stated(attr::SCRATCH_BYTES).unwrap_or_default(),
            costs: cost.map(|cost| cost.entries()).unwrap_or_default(),
            pin: pinned.ok().flatten().map(str::to_owned),
            excluded: exclusions(operation).into_iter().map(str::to_owned).collect(),
            groups: groups_of(operation).into_iter().map(str::to_owned).collect(),
            resident: operation.get(attr::RESIDENT).map(str::to_owned),
            copies: copies(operation),
        }
    }

    /// Creates a task that costs nothing and may run on any device.
    pub(super) fn free(operation: Operation<'m>) -> Self {
        let none = vec![];
        Self {
            operation,
            weight: Bytes::ZERO,
            read_weight: Bytes::ZERO,
            input: Bytes::ZERO,
            scratch: Bytes::ZERO,
            costs: vec![],
            pin: None,
            excluded: none.clone(),
            groups: none,
            resident: None,
            copies: vec![],
        }
    }

    /// Returns true if a device has the task's parameters from the start, or the task has none.
    pub(super) fn is_there(&self, machine: &Machine, device: usize) -> bool {
        let is_kept = self.resident.as_ref().is_some_and(|resident| *resident == machine.devices[device].name);
        !machine.is_cold || self.weight == Bytes::ZERO || device == machine.host || is_kept
    }

    /// Returns true if the task reads its parameters from the host's memory, as they are not copied to its device.
    pub(super) fn reads_directly(&self, machine: &Machine, device: usize) -> bool {
        let is_copied = self.copies.iter().any(|copy| copy.to == machine.devices[device].name);
        !is_copied && !self.is_there(machine, device)
    }

    /// Returns the time of the task with its parameters in the host's memory: at least that of the bytes that it reads
    /// over the link.
    fn over_link(&self, machine: &Machine, device: usize, time: Micros, findings: &mut Findings) -> Micros {
        if !self.reads_directly(machine, device) {
            return time;
        }
        let Some(over) = machine.transfer(machine.host, device, self.read_weight) else {
            let message = format!(
                "{} runs on {}, but its parameters are not copied there, and no link leads there from {}: add a copy to its \
                 divi.copies",
                describe(self.operation),
                machine.label(device),
                machine.label(machine.host)
            );
            findings.add(self.operation, &message);
            return time;
        };
        time.max(over)
    }

    pub(super) fn name(&self) -> &str {
        task_name(self.operation)
    }

    /// Returns the bytes of all results, at the module's own batch size.
    pub(super) fn output(&self) -> Bytes {
        self.operation.results().into_iter().map(size).sum()
    }

    /// Returns true if the task takes time for one input on some device.
    pub(super) fn takes_time(&self) -> bool {
        self.costs.iter().all(|cost| cost.batch != 1)
            || self.costs.iter().any(|cost| cost.batch == 1 && cost.micros > 0.0)
    }

    /// Returns the time of the task for a number of inputs; 0, with an error, if it must not run there.
    pub(super) fn time(&self, machine: &Machine, device: usize, inputs: usize, findings: &mut Findings) -> Micros {
        let (name, on) = (describe(self.operation), machine.label(device));
        let here = &machine.devices[device];
        if let Some(pin) = self.pin.as_ref().filter(|pin| **pin != here.name) {
            let message = format!("{name} runs on {on}, but is pinned to @{pin}: move it there or remove the pin");
            findings.add(self.operation, &message);
        }
        if self.excluded.contains(&here.name) {
            let message = format!("{name} runs on {on}, which its divi.exclude forbids: move it to another device");
            findings.add(self.operation, &message);
        }
        if self.costs.is_empty() {
            // The missing cost has been reported.
            return Micros::ZERO;
        }
        let own: Vec<&BatchCost> = self.costs.iter().filter(|cost| cost.device == here.name).collect();
        if own.is_empty() {
            let mut others: Vec<_> = self.costs.iter().map(|cost| format!("@{}", cost.device)).collect();
            others.dedup();
            let others = others.join(", ");
            findings
                .add(self.operation, &format!("{name} runs on {on}, which does not support it: move it to {others}"));
            return Micros::ZERO;
        }
        let sizes = |sizes: Vec<i64>| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        if !here.batch_sizes.contains(&(inputs as i64)) {
            let allowed = sizes(here.batch_sizes.clone());
            let message = format!("{name} runs for {inputs} at once on {on}, which takes batches of {allowed}");
            findings.add(self.operation, &message);
        }
        match own.iter().find(|cost| cost.batch == inputs as i64) {
            Some(cost) => self.over_link(machine, device, Micros(cost.micros), findings),
            None => {
                let known = sizes(own.iter().map(|cost| cost.batch).collect());
                let message = format!(
                    "{name} runs for {inputs} at once on {on}, but its divi.cost there is for batches of {known}"
                );
                findings.add(self.operation, &message);
                Micros::ZERO
            }
        }
    }
}

fn copies(operation: Operation<'_>) -> Vec<Copy> {
    let copy = |copy: MoveAttribute<'_>| Copy {
        from: copy.from().to_owned(),
        to: copy.to().to_owned(),
        start: Micros(copy.start()),
        end: Micros(copy.end()),
    };
    moves_of(operation, attr::COPIES).into_iter().map(copy).collect()
}
