//! A task, what it costs, and where it may run.

use super::{Findings, machine::Machine};
use crate::{
    ir::{attribute, describe, integer_attribute, results, value_bytes},
    tasks::{exclusions, groups_of, is_constant_value, is_weight, pin, reads, task_name},
};
use divi_dialect::{BatchCost, CostAttribute};
use divi_planner::units::{Bytes, Micros};
use melior::ir::Attribute;
use mlir_sys::*;

pub(super) struct Task {
    pub(super) operation: MlirOperation,
    pub(super) weight: Bytes,
    /// What it reads that is computed, for one input.
    pub(super) input: Bytes,
    pub(super) scratch: Bytes,
    costs: Vec<BatchCost>,
    pin: Option<String>,
    excluded: Vec<String>,
    /// The groups that it shares a device with.
    pub(super) groups: Vec<String>,
}

impl Task {
    /// Constraints of what is in a cluster are those of the cluster.
    pub(super) fn of(operation: MlirOperation, findings: &mut Findings) -> Self {
        // SAFETY: the attribute lives as long as the context.
        let cost = attribute(operation, "divi.cost")
            .and_then(|cost| CostAttribute::from_attribute(unsafe { Attribute::from_raw(cost) }));
        if cost.is_none() {
            findings.add(operation, &format!("{} has no divi.cost: what it takes is not known", describe(operation)));
        }
        let values = reads(operation);
        let sum = |values: &mut dyn Iterator<Item = &MlirValue>| values.map(|&value| value_bytes(value) as f64).sum();
        let stated = |name| attribute(operation, name).and_then(integer_attribute).map(|bytes| bytes as f64);
        let pinned = pin(operation);
        if pinned.is_err() {
            findings.said();
        }
        Self {
            operation,
            weight: stated("divi.weight_bytes")
                .unwrap_or_else(|| sum(&mut values.iter().filter(|&&value| is_weight(value)))),
            input: stated("divi.input_bytes")
                .unwrap_or_else(|| sum(&mut values.iter().filter(|&&value| !is_constant_value(value)))),
            scratch: stated("divi.scratch_bytes").unwrap_or(0.0),
            costs: cost.map(|cost| cost.entries()).unwrap_or_default(),
            pin: pinned.ok().flatten().map(str::to_owned),
            excluded: exclusions(operation).into_iter().map(str::to_owned).collect(),
            groups: groups_of(operation).into_iter().map(str::to_owned).collect(),
        }
    }

    /// An operator that costs nothing and may run anywhere.
    pub(super) fn free(operation: MlirOperation) -> Self {
        let none = vec![];
        Self {
            operation,
            weight: 0.0,
            input: 0.0,
            scratch: 0.0,
            costs: vec![],
            pin: None,
            excluded: none.clone(),
            groups: none,
        }
    }

    pub(super) fn name(&self) -> &str {
        task_name(self.operation)
    }

    /// The bytes of all results, as the module has them.
    pub(super) fn output(&self) -> Bytes {
        results(self.operation).into_iter().map(|result| value_bytes(result) as f64).sum()
    }

    /// Whether one input of it takes time anywhere.
    pub(super) fn takes_time(&self) -> bool {
        self.costs.iter().all(|cost| cost.batch != 1)
            || self.costs.iter().any(|cost| cost.batch == 1 && cost.micros > 0.0)
    }

    /// What it takes for a number of inputs; 0 where it may not run there, which is said.
    pub(super) fn time(&self, machine: &Machine, device: usize, inputs: usize, findings: &mut Findings) -> Micros {
        let (name, on) = (describe(self.operation), machine.label(device));
        let here = &machine.devices[device];
        if let Some(pin) = self.pin.as_ref().filter(|pin| **pin != here.name) {
            let message = format!("{name} runs on {on}, but is pinned to @{pin}: move it there or take the pin away");
            findings.add(self.operation, &message);
        }
        if self.excluded.contains(&here.name) {
            let message = format!("{name} runs on {on}, which its divi.exclude forbids: move it to another device");
            findings.add(self.operation, &message);
        }
        if self.costs.is_empty() {
            // It has been said that nothing is known.
            return 0.0;
        }
        let own: Vec<&BatchCost> = self.costs.iter().filter(|cost| cost.device == here.name).collect();
        if own.is_empty() {
            let mut others: Vec<_> = self.costs.iter().map(|cost| format!("@{}", cost.device)).collect();
            others.dedup();
            let others = others.join(", ");
            findings
                .add(self.operation, &format!("{name} runs on {on}, which does not support it: move it to {others}"));
            return 0.0;
        }
        let sizes = |sizes: Vec<i64>| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        if !here.batch_sizes.contains(&(inputs as i64)) {
            let allowed = sizes(here.batch_sizes.clone());
            let message = format!("{name} runs for {inputs} at once on {on}, which takes batches of {allowed}");
            findings.add(self.operation, &message);
        }
        match own.iter().find(|cost| cost.batch == inputs as i64) {
            Some(cost) => cost.micros,
            None => {
                let known = sizes(own.iter().map(|cost| cost.batch).collect());
                let message = format!(
                    "{name} runs for {inputs} at once on {on}, but its divi.cost there is for batches of {known}"
                );
                findings.add(self.operation, &message);
                0.0
            }
        }
    }
}
