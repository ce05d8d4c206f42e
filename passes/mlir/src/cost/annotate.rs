//! `divi-annotate-cost`: annotates every task with its time on every device of a system.

use super::{
    declare::declare,
    key::keys_of,
    work::{Counter, Traffic, is_host_only},
};
use crate::{
    declared::{AnnotateCost, AnnotateCostStatistics},
    ir::{Failure, describe, error, warning},
    rebatch::{Present, Rebatched},
    tasks::{Tasks, entry, members, pin},
};
use divi_cost::{
    Class, Estimator, Task, TimeSource,
    device::{self, Kind},
    estimate::{Batch, Times},
    system::System,
};
use divi_dialect::{BatchCost, CostAttribute, Operation, attr};
use divi_onnx::Op;
use std::collections::BTreeMap;

//===----------------------------------------------------------------------===//
// --divi-annotate-cost
//===----------------------------------------------------------------------===//

/// Declares the devices of a system and annotates every task with its time on each, at every batch size that the device
/// supports. A batch of b is b times the module's own batch.
///
/// Does not change the computation. Existing devices, links and costs are replaced. Without a system, they are kept if
/// every task has a cost; otherwise the system is the host. `without` is the index of a node that is left out.
pub fn annotate_cost(
    module: Operation<'_>,
    system: &str,
    without: Option<i64>,
) -> Result<AnnotateCostStatistics, Failure> {
    let fail = |message: String| {
        // The diagnostic adds this prefix itself. Errors in a system description start with their location instead.
        error(module, message.strip_prefix("error: ").unwrap_or(&message));
        Failure
    };
    let function = entry(module)?;
    let tasks = Tasks::of(function)?;
    let has_cost = |&task: &Operation<'_>| task.has(attr::COST);
    if system.is_empty() && without.is_none() && !tasks.operations.is_empty() && tasks.operations.iter().all(has_cost) {
        let num_tasks = tasks.operations.len() as u64;
        return Ok(AnnotateCostStatistics { num_tasks, ..AnnotateCostStatistics::default() });
    }
    let system =
        System::load(if system.is_empty() { "host" } else { system }).map_err(|error| fail(error.to_string()))?;
    let system = match without {
        None => system,
        Some(node) => usize::try_from(node)
            .ok()
            .and_then(|node| system.without_node(node))
            .ok_or_else(|| fail(format!("system '{}' has no node {node} that can be left out", system.name)))?,
    };
    for message in &system.warnings {
        warning(module, message);
    }
    let estimator = Estimator::new(&system).map_err(|error| fail(error.to_string()))?;
    check_arguments(function)?;
    check_pins(&tasks, &system)?;
    let batches = count(function, &tasks, &system)?;
    declare(module, &system)?;
    let present = match Present::of(function) {
        Present::Size(size) => u32::try_from(size).unwrap_or(u32::MAX),
        Present::None | Present::Open => 1,
    };
    let mut sources = vec![[0u64; TimeSource::ALL.len()]; system.devices.len()];
    for (i, &operation) in tasks.operations.iter().enumerate() {
        let supported: Vec<bool> = system.devices.iter().map(|device| supports(device.kind, operation)).collect();
        if !supported.contains(&true) {
            let message = format!(
                "{} runs on {} devices only, and system '{}' has none: add a [[device]] of that kind",
                describe(operation),
                device::names(|kind| supports(kind, operation)),
                system.name
            );
            error(operation, &message);
            return Err(Failure);
        }
        let keys = keys_of(operation, &batches[&1][i].task, present.into());
        let times = |device: usize| {
            let sizes = system.devices[device].batch_sizes.iter();
            let at: Vec<Batch<'_>> = sizes.map(|size| batches[size][i].at(*size, present)).collect();
            supported[device].then(|| estimator.times(device, &keys, &at))
        };
        let times: Vec<Option<Times>> = (0..system.devices.len()).map(times).collect();
        for (times, sources) in times.iter().zip(&mut sources) {
            if let Some(times) = times {
                sources[times.source as usize] += 1;
            }
        }
        write(operation, &system, &batches[&1][i].task, &times)?;
    }
    write_sources(module, &system, &sources);
    let total = |source: TimeSource| sources.iter().map(|counts| counts[source as usize]).sum();
    Ok(AnnotateCostStatistics {
        num_tasks: tasks.operations.len() as u64,
        num_measured: total(TimeSource::Measured),
        num_interpolated: total(TimeSource::Interpolated),
        num_calibrated: total(TimeSource::Calibrated),
        num_estimated: total(TimeSource::Estimated),
    })
}

/// Checks that all arguments have static shapes: the sizes of operands and results follow from them.
fn check_arguments(function: Operation<'_>) -> Result<(), Failure> {
    let Some(&entry) = function.blocks().first() else { return Ok(()) };
    for (i, argument) in entry.arguments().into_iter().enumerate() {
        if argument.tensor_type().is_some_and(|ty| !ty.is_static()) {
            let message = format!(
                "{} has an argument {i} of type {}, whose size is open: fix it with --dim, --batch or --input-shape",
                describe(function),
                argument.r#type()
            );
            error(function, &message);
            return Err(Failure);
        }
    }
    Ok(())
}

/// Checks that every pinned task is pinned to a device that runs it.
fn check_pins(tasks: &Tasks<'_>, system: &System) -> Result<(), Failure> {
    for &task in &tasks.operations {
        let Some(name) = pin(task)? else { continue };
        let device = system.devices.iter().find(|device| device.id == name);
        if let Some(device) = device.filter(|device| !supports(device.kind, task)) {
            let message =
                format!("{} is pinned to @{name}, but does not run on {} devices", describe(task), device.kind);
            let others = device::names(|kind| supports(kind, task));
            error(task, &format!("{message}: pin it to a {others} device, or remove the pin"));
            return Err(Failure);
        }
    }
    Ok(())
}

/// Work of a task at a batch size.
#[derive(Clone)]
struct Counted {
    task: Task,
    /// True if the task runs once for each input.
    is_unrolled: bool,
}

impl Counted {
    /// Returns the batch at `factor` times the module's own batch size.
    fn at(&self, factor: u32, present: u32) -> Batch<'_> {
        let (size, runs) = if self.is_unrolled { (present, factor) } else { (factor.saturating_mul(present), 1) };
        Batch { size, task: &self.task, runs }
    }
}

/// Counts the work of all tasks at the module's own batch size and at every one that a device supports. Tasks that run
/// once for each input of a batch are not reported here, but in divi-rebatch and divi-outline.
fn count<'m>(
    function: Operation<'m>,
    tasks: &Tasks<'m>,
    system: &System,
) -> Result<BTreeMap<u32, Vec<Counted>>, Failure> {
    let sizes = system.devices.iter().flat_map(|device| device.batch_sizes.iter().copied());
    let mut batches: BTreeMap<u32, Vec<Counted>> = sizes.chain([1]).map(|size| (size, vec![])).collect();
    let mut present: Option<Vec<Counted>> = None;
    for (&size, counted) in &mut batches {
        let rebatched = Rebatched::of(function, size.into())?;
        let mut counter = Counter::new(&rebatched);
        for (i, &task) in tasks.operations.iter().enumerate() {
            let is_unrolled = rebatched.is_unrolled(task);
            // A task that runs once for each input does the same work each time as at the module's own batch size.
            counted.push(match &present {
                Some(present) if is_unrolled => Counted { is_unrolled, ..present[i].clone() },
                _ => Counted { task: counter.task(task)?, is_unrolled },
            });
        }
        present.get_or_insert_with(|| counted.clone());
        if let (1, Some(&first)) = (size, counter.open.first()) {
            let why = match first.op().is_some_and(Op::is_inferred) {
                true => "depends on data",
                false => "is not declared",
            };
            let message = format!(
                "{} has a result whose size {why}{}: each such dimension is counted as 1",
                describe(first),
                others(counter.open.len())
            );
            warning(first, &message);
        }
    }
    Ok(batches)
}

/// Returns the continuation of a sentence about the first of `count` operators.
fn others(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        2 => ", and so does another".into(),
        _ => format!(", and so do {} others", count - 1),
    }
}

/// Returns true if a kind of device can run a task. A task is opaque if it has an operator that divi does not know,
/// control flow, or values other than numeric tensors.
fn supports(kind: Kind, task: Operation<'_>) -> bool {
    kind.runs_opaque_work() || !members(task).into_iter().any(is_opaque)
}

fn is_opaque(operation: Operation<'_>) -> bool {
    let is_known = match operation.name().split_once('.') {
        // Its region is the body of a loop nest.
        Some(("linalg", _)) => return false,
        Some(("onnx", op)) => Op::from_name(op).is_some_and(Op::is_inferred),
        Some(("arith" | "math" | "tensor" | "tosa", _)) => true,
        _ => false,
    };
    let mut values = operation.operands().into_iter().chain(operation.results());
    !is_known || !operation.blocks().is_empty() || values.any(is_host_only)
}

/// Converts a count to an attribute's integer.
fn saturated(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Writes work and costs of a task. Times are rounded to a nanosecond, which is finer than their accuracy.
fn write(operation: Operation<'_>, system: &System, task: &Task, times: &[Option<Times>]) -> Result<(), Failure> {
    let context = operation.context();
    let traffic = Traffic::of(operation);
    let scratch = task.members.iter().map(|member| member.scratch).max().unwrap_or(0);
    for (key, value) in [
        (attr::FLOPS, task.flops()),
        (attr::INPUT_BYTES, traffic.input),
        (attr::OUTPUT_BYTES, traffic.output),
        (attr::WEIGHT_BYTES, traffic.weight),
        (attr::SCRATCH_BYTES, scratch),
    ] {
        operation.set(key, saturated(value));
    }
    // Unread operands of views, such as shapes, are not worth an attribute.
    let picks = task.members.iter().filter(|member| member.class != Class::View);
    let unread =
        picks.map(|member| member.resident_weights.saturating_sub(member.weights)).fold(0, u64::saturating_add);
    if unread > 0 {
        operation.set(attr::READ_WEIGHT_BYTES, saturated(traffic.weight.saturating_sub(unread)));
    }
    let mut entries = vec![];
    let mut bounds = vec![];
    for (device, times) in system.devices.iter().zip(times) {
        let Some(times) = times else { continue };
        for (&size, micros) in device.batch_sizes.iter().zip(&times.micros) {
            let micros = (micros.0 * 1000.0).round() / 1000.0;
            entries.push(BatchCost { device: device.id.clone(), batch: size.into(), micros });
        }
        bounds.push((device.id.as_str(), attr::string(context, times.bound.name())));
    }
    operation.set(attr::COST, CostAttribute::new(operation.location(), &entries).ok_or(Failure)?);
    operation.set(attr::BOUND, &bounds);
    Ok(())
}

/// Writes onto the module how many times come from each source.
fn write_sources(module: Operation<'_>, system: &System, sources: &[[u64; TimeSource::ALL.len()]]) {
    let context = module.context();
    let devices = system.devices.iter().zip(sources).map(|(device, counts)| {
        let count = |source: TimeSource| attr::integer(context, saturated(counts[source as usize]));
        // Only a device with a model of its own has calibrated times.
        let is_possible = |source: &TimeSource| *source != TimeSource::Calibrated || device.cost_model.is_some();
        let entries = TimeSource::ALL.into_iter().filter(is_possible).map(|source| (source.name(), count(source)));
        let entries: Vec<_> = entries.collect();
        (device.id.as_str(), attr::dictionary(context, &entries))
    });
    module.set(attr::COSTS, &devices.collect::<Vec<_>>());
}

impl AnnotateCost {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<AnnotateCostStatistics, Failure> {
        annotate_cost(module, &self.system, self.without)
    }
}
