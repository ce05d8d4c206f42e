//! `divi-exclude-unsupported`: excludes tasks from devices that cannot run them, before planning.

use crate::{
    bundle::{Constants, Gap, Refusal, check_signature, constant_gaps, described_device, gaps, report},
    declared::ExcludeUnsupported,
    export::{Recipes, check_operator, random_seed},
    ir::{Failure, describe, error, warning},
    partition::exclude,
    tasks::{Tasks, entry, members, pin},
};
use divi_codegen::{TargetBackend, backends};
use divi_dialect::{Operation, op};
use std::{collections::BTreeMap, path::Path};

/// Output that a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Native code: operators that a device's back end supports.
    Bundle,
    /// ONNX models: every operator of ONNX, and custom ones.
    Onnx,
}

impl Output {
    fn named(name: &str) -> Option<Self> {
        match name {
            "bundle" => Some(Self::Bundle),
            "onnx" => Some(Self::Onnx),
            _ => None,
        }
    }
}

/// Device of the module, and its back end or the reason why it cannot run anything.
struct Target {
    id: String,
    kind: String,
    backend: Result<&'static dyn TargetBackend, String>,
}

//===----------------------------------------------------------------------===//
// --divi-exclude-unsupported
//===----------------------------------------------------------------------===//

/// Excludes every task from the devices that cannot run it, by `divi.exclude`, with a warning for each device. A task
/// that no device, or not the device that it is pinned to, can run is an error.
pub fn exclude_unsupported(
    module: Operation<'_>,
    output: Output,
    ir_folder: &Path,
    seed: Option<u64>,
) -> Result<(), Failure> {
    let tasks = Tasks::of(entry(module)?)?.operations;
    if output == Output::Onnx {
        return tasks.iter().flat_map(|&task| members(task)).try_for_each(|member| {
            check_operator(member).map_err(|message| {
                error(member, &format!("{} {message}", describe(member)));
                Failure
            })
        });
    }
    let recipes = seed.map(|_| Recipes::of(module));
    let constants = Constants::new(ir_folder, recipes.as_ref().zip(seed));
    let unfolded = constant_gaps(module, &constants);
    if !unfolded.is_empty() {
        return Err(report(&unfolded));
    }
    let targets = targets(module);
    if targets.is_empty() {
        error(module, "has no divi.device: declare the devices first, with --divi-annotate-cost");
        return Err(Failure);
    }
    // Devices of the same kind have the same back end.
    let kinds: BTreeMap<&str, &'static dyn TargetBackend> =
        targets.iter().filter_map(|target| Some((target.kind.as_str(), *target.backend.as_ref().ok()?))).collect();
    let backends: Vec<_> = kinds.values().copied().collect();
    let mut refused: Vec<Vec<(Operation<'_>, Vec<Gap<'_>>)>> = targets.iter().map(|_| vec![]).collect();
    let mut impossible = vec![];
    for &task in &tasks {
        let gaps = gaps(task, &constants, &backends);
        for (target, refused) in targets.iter().zip(&mut refused).filter(|(target, _)| target.backend.is_ok()) {
            let gaps = kinds.keys().position(|kind| *kind == target.kind).map_or(&[][..], |kind| &gaps[kind]);
            if !gaps.is_empty() {
                refused.push((task, gaps.to_vec()));
            }
        }
        if gaps.iter().all(|gaps| !gaps.is_empty()) {
            impossible.extend(gaps.into_iter().next().unwrap_or_default());
        }
    }
    if !impossible.is_empty() {
        return Err(report(&impossible));
    }
    check_signature(entry(module)?).map_err(Refusal::emit)?;
    for (target, refused) in targets.iter().zip(&refused) {
        match &target.backend {
            Ok(_) => {
                for (task, gaps) in refused {
                    let reasons: Vec<_> = gaps.iter().map(Gap::text).collect();
                    let remedy = "pin it to another device, or remove the pin";
                    exclude_task(*task, &target.id, &format!("it: {}; {remedy}", reasons.join("; ")))?;
                }
            }
            Err(reason) => {
                let reason_for_all = format!("anything: {reason}");
                tasks.iter().try_for_each(|&task| exclude_task(task, &target.id, &reason_for_all))?;
                warning(module, &format!("@{} is not used: {reason}", target.id));
            }
        }
        warn_of_excluded(&target.id, refused);
    }
    if targets.iter().all(|target| target.backend.is_err()) && !tasks.is_empty() {
        let reasons: Vec<_> = targets.iter().filter_map(|target| target.backend.as_ref().err().cloned()).collect();
        error(module, reasons.first().map_or("has no device that code is generated for", String::as_str));
        return Err(Failure);
    }
    Ok(())
}

fn targets(module: Operation<'_>) -> Vec<Target> {
    let devices = module.children().into_iter().filter(|operation| operation.name() == op::DEVICE);
    let target = |operation| {
        let device = described_device(operation);
        let backend = backends::require(&device).map_err(|reason| reason.to_string());
        Target { id: device.id, kind: device.kind, backend }
    };
    devices.map(target).collect()
}

/// Excludes a task from a device. A pin to the device is an error: the device cannot run `what`.
fn exclude_task(task: Operation<'_>, device: &str, what: &str) -> Result<(), Failure> {
    if pin(task)? == Some(device) {
        error(task, &format!("{} is pinned to @{device}, which cannot run {what}", describe(task)));
        return Err(Failure);
    }
    exclude(task, device);
    Ok(())
}

/// Warns once for each device about the tasks that it cannot run.
fn warn_of_excluded(device: &str, refused: &[(Operation<'_>, Vec<Gap<'_>>)]) {
    /// Maximum number of reasons in a warning.
    const MOST: usize = 8;
    let Some((first, _)) = refused.first() else { return };
    let mut reasons: Vec<String> = refused.iter().flat_map(|(_, gaps)| gaps.iter().map(Gap::text)).collect();
    reasons.sort();
    reasons.dedup();
    reasons.truncate(MOST);
    let tasks = if refused.len() == 1 { "1 task".to_owned() } else { format!("{} tasks", refused.len()) };
    warning(*first, &format!("{tasks} cannot run on @{device}: {}", reasons.join("; ")));
}

impl ExcludeUnsupported {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<(), Failure> {
        let fail = |message: String| {
            error(module, &message);
            Failure
        };
        let seed = random_seed(&self.weights).map_err(fail)?;
        let output = Output::named(&self.output)
            .ok_or_else(|| fail(format!("unknown output '{}'; expected bundle or onnx", self.output)))?;
        exclude_unsupported(module, output, &self.weights_dir, seed)
    }
}
