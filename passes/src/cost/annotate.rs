//! `divi-annotate-cost`: what every task takes on every device of a system.

use super::{
    declare::declare,
    key::key_of,
    work::{Counter, distinct, is_host_only},
};
use crate::{
    ir::{
        Failure, arguments_of, blocks, byte_length, describe, error, named_attribute, operands, operation_name,
        results, run, set_attribute, tensor_type_of_value, text, type_of, walk, warning,
    },
    rebatch::{Present, Rebatched},
    tasks::{Tasks, definer, entry, is_constant_value},
};
use divi_cost::{
    Estimator, Source, Task,
    estimate::{Batch, Times},
    system::{DeviceKind, System},
};
use divi_dialect::{BatchCost, CostAttribute, node::operator, tensor_type_of};
use divi_onnx::infer;
use melior::{
    Context, ContextRef, StringRef,
    ir::{AttributeLike, Location, Type, operation::OperationRef},
};
use mlir_sys::*;
use std::collections::BTreeMap;

/// What a run of the pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    pub tasks: u64,
    /// Times of a task on a device, by where they come from.
    pub measured: u64,
    pub interpolated: u64,
    pub estimated: u64,
}

//===----------------------------------------------------------------------===//
// --divi-annotate-cost
//===----------------------------------------------------------------------===//

/// Declares the devices of a system and says of every task what it takes on each, at every batch size that the device
/// supports. A batch of b is b times the module as it stands.
///
/// Does not change what the module computes. Devices, links and costs that are there already are replaced.
pub fn annotate_cost(module: MlirOperation, system: &str) -> Result<Counts, Failure> {
    // SAFETY: the context of a live operation is alive, and outlives the pass.
    let context = unsafe { ContextRef::from_raw(mlirOperationGetContext(module)) };
    // SAFETY: see above.
    let context = unsafe { context.to_ref() };
    let fail = |message: String| {
        // The diagnostic says so itself; where a description is wrong, its own location comes first.
        error(module, message.strip_prefix("error: ").unwrap_or(&message));
        Failure
    };
    let system = System::load(system).map_err(|error| fail(error.to_string()))?;
    for message in &system.warnings {
        warning(module, message);
    }
    let estimator = Estimator::new(&system).map_err(|error| fail(error.to_string()))?;
    let function = entry(module)?;
    check_arguments(function)?;
    let tasks = Tasks::of(function)?;
    let batches = count(function, &tasks, &system)?;
    declare(context, module, &system)?;
    let present = match Present::of(function) {
        Present::Size(size) => u32::try_from(size).unwrap_or(u32::MAX),
        Present::None | Present::Open => 1,
    };
    let mut sources = vec![[0u64; 3]; system.devices.len()];
    for (i, &operation) in tasks.operations.iter().enumerate() {
        let supported: Vec<bool> = system.devices.iter().map(|device| supports(device.kind, operation)).collect();
        if !supported.contains(&true) {
            let message = format!(
                "{} runs on a cpu only, and system '{}' has none: add a [[device]] of kind \"cpu\"",
                describe(operation),
                system.name
            );
            error(operation, &message);
            return Err(Failure);
        }
        let key = key_of(operation, present.into());
        let times = |device: usize| {
            let sizes = system.devices[device].batch_sizes.iter();
            let at: Vec<Batch<'_>> = sizes.map(|size| batches[size][i].at(*size, present)).collect();
            supported[device].then(|| estimator.times(device, key.as_ref(), &at))
        };
        let times: Vec<Option<Times>> = (0..system.devices.len()).map(times).collect();
        for (times, sources) in times.iter().zip(&mut sources) {
            if let Some(times) = times {
                sources[times.source as usize] += 1;
            }
        }
        write(context, operation, &system, &batches[&1][i].task, &times)?;
    }
    write_sources(context, module, &system, &sources);
    let total = |source: Source| sources.iter().map(|counts| counts[source as usize]).sum();
    Ok(Counts {
        tasks: tasks.operations.len() as u64,
        measured: total(Source::Measured),
        interpolated: total(Source::Interpolated),
        estimated: total(Source::Estimated),
    })
}

/// The sizes of what tasks read and write follow from the arguments, so those must be known.
fn check_arguments(function: MlirOperation) -> Result<(), Failure> {
    let Some(&entry) = blocks(function).first() else { return Ok(()) };
    for (i, argument) in arguments_of(entry).into_iter().enumerate() {
        // SAFETY: the type of a live value is alive.
        let r#type = unsafe { Type::from_raw(type_of(argument)) };
        if tensor_type_of(r#type).is_some_and(|ty| !ty.is_static()) {
            let message = format!(
                "{} has an argument {i} of type {type}, whose size is open: fix it with --batch or --input-shape",
                describe(function)
            );
            error(function, &message);
            return Err(Failure);
        }
    }
    Ok(())
}

/// A task at a batch.
struct Counted {
    task: Task,
    /// It runs once for each input.
    repeats: bool,
}

impl Counted {
    /// At `factor` times the batch that the module has.
    fn at(&self, factor: u32, present: u32) -> Batch<'_> {
        let (size, runs) = if self.repeats { (present, factor) } else { (factor.saturating_mul(present), 1) };
        Batch { size, task: &self.task, runs }
    }
}

/// Counts the work of all tasks at the module's own batch and at every one that a device supports.
fn count(function: MlirOperation, tasks: &Tasks, system: &System) -> Result<BTreeMap<u32, Vec<Counted>>, Failure> {
    let sizes = system.devices.iter().flat_map(|device| device.batch_sizes.iter().copied());
    let mut batches: BTreeMap<u32, Vec<Counted>> = sizes.chain([1]).map(|size| (size, vec![])).collect();
    let mut largest = None;
    for (&size, counted) in &mut batches {
        let rebatched = Rebatched::of(function, size.into())?;
        let mut counter = Counter::new(&rebatched);
        for &task in &tasks.operations {
            counted.push(Counted { task: counter.task(task)?, repeats: rebatched.repeats(task) });
        }
        if let (1, Some(&first)) = (size, counter.open.first()) {
            let message = format!(
                "{} has a result whose size depends on data, {} tasks in all: each such dimension is counted as 1",
                describe(first),
                counter.open.len()
            );
            warning(first, &message);
        }
        largest = Some(rebatched);
    }
    if let Some(rebatched) = largest
        && let Some(&first) = rebatched.repeated().first()
    {
        let message = format!(
            "{} mixes the inputs of a batch, as {} operators do in all: in a batch, they run once for each input",
            describe(first),
            rebatched.repeated().len()
        );
        warning(first, &message);
    }
    Ok(batches)
}

/// Whether a kind of device can run a task. What divi does not know, control flow and what is no tensor of numbers stay on
/// cpus.
fn supports(kind: DeviceKind, task: MlirOperation) -> bool {
    if kind == DeviceKind::Cpu {
        return true;
    }
    let mut supported = true;
    walk(task, &mut |operation| {
        // SAFETY: the operation is alive.
        let op = operator(&unsafe { OperationRef::from_raw(operation) });
        let name = operation_name(operation);
        let is_known = match op {
            Some(op) => infer::knows(op) || op == "NoValue",
            None => matches!(name, "divi.cluster" | "divi.yield") || !name.starts_with("onnx."),
        };
        let has_branches = op.is_some() && !blocks(operation).is_empty();
        let values = operands(operation).into_iter().chain(results(operation));
        supported &= is_known && !has_branches && (op.is_none() || !values.into_iter().any(is_host_only));
    });
    supported
}

fn integer(context: &Context, value: u64) -> MlirAttribute {
    // SAFETY: the context is alive.
    unsafe { mlirIntegerAttrGet(mlirIntegerTypeGet(context.to_raw(), 64), i64::try_from(value).unwrap_or(i64::MAX)) }
}

/// A dictionary from names to attributes.
fn dictionary<'a>(context: &Context, entries: impl Iterator<Item = (&'a str, MlirAttribute)>) -> MlirAttribute {
    let entries: Vec<_> = entries.map(|(name, attribute)| named_attribute(context, name, attribute)).collect();
    // SAFETY: names and attributes are alive.
    unsafe { mlirDictionaryAttrGet(context.to_raw(), entries.len() as isize, entries.as_ptr()) }
}

/// Puts on a task what it does and what it costs. Times are rounded to a nanosecond: nobody knows more.
fn write(
    context: &Context,
    operation: MlirOperation,
    system: &System,
    task: &Task,
    times: &[Option<Times>],
) -> Result<(), Failure> {
    let bytes = |values: &mut dyn Iterator<Item = MlirValue>| {
        values.filter_map(tensor_type_of_value).map(|ty| byte_length(&ty)).fold(0, u64::saturating_add)
    };
    let is_empty = |value: MlirValue| definer(value).is_some_and(|op| operation_name(op) == "tensor.empty");
    let operands = distinct(&operands(operation));
    let mut inputs = operands.iter().copied().filter(|&value| !is_constant_value(value));
    let mut weights = operands.iter().copied().filter(|&value| is_constant_value(value) && !is_empty(value));
    let scratch = task.members.iter().map(|member| member.scratch).max().unwrap_or(0);
    for (name, value) in [
        ("divi.flops", task.flops()),
        ("divi.input_bytes", bytes(&mut inputs)),
        ("divi.output_bytes", bytes(&mut results(operation).into_iter())),
        ("divi.weight_bytes", bytes(&mut weights)),
        ("divi.scratch_bytes", scratch),
    ] {
        set_attribute(operation, name, integer(context, value));
    }
    let mut entries = vec![];
    let mut bounds = vec![];
    for (device, times) in system.devices.iter().zip(times) {
        let Some(times) = times else { continue };
        for (&size, micros) in device.batch_sizes.iter().zip(&times.micros) {
            let micros = (micros.0 * 1000.0).round() / 1000.0;
            entries.push(BatchCost { device: device.id.clone(), batch: size.into(), micros });
        }
        // SAFETY: the context is alive.
        let bound = unsafe { mlirStringAttrGet(context.to_raw(), StringRef::new(times.bound.name()).to_raw()) };
        bounds.push((device.id.as_str(), bound));
    }
    // SAFETY: the operation is alive.
    let location = unsafe { Location::from_raw(mlirOperationGetLocation(operation)) };
    let cost = CostAttribute::new(location, &entries).ok_or(Failure)?;
    set_attribute(operation, "divi.cost", cost.as_attribute().to_raw());
    set_attribute(operation, "divi.bound", dictionary(context, bounds.into_iter()));
    Ok(())
}

/// Says on the module where the times come from.
fn write_sources(context: &Context, module: MlirOperation, system: &System, sources: &[[u64; 3]]) {
    let devices = system.devices.iter().zip(sources).map(|(device, counts)| {
        let entries = [Source::Measured, Source::Interpolated, Source::Estimated];
        let entries = entries.map(|source| (source.name(), integer(context, counts[source as usize])));
        (device.id.as_str(), dictionary(context, entries.into_iter()))
    });
    set_attribute(module, "divi.costs", dictionary(context, devices));
}

#[unsafe(no_mangle)]
extern "C" fn diviRunAnnotateCost(module: MlirOperation, system: MlirStringRef, counts: *mut Counts) -> bool {
    run(module, || {
        // SAFETY: the caller's string and counter outlive the call.
        unsafe { *counts = annotate_cost(module, text(system))? };
        Ok(())
    })
}
