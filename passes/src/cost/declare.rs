//! A system as operations: `divi.device` and `divi.link`.

use crate::ir::{
    Failure, attribute, blocks, describe, error, operation_name, operations, set_attribute, string_attribute,
    symbol_attribute, walk,
};
use divi_cost::system::System;
use divi_dialect::divi;
use melior::{
    Context, StringRef,
    ir::{
        Attribute, AttributeLike, BlockLike, BlockRef, Location, Operation,
        attribute::{ArrayAttribute, FlatSymbolRefAttribute, FloatAttribute, IntegerAttribute, StringAttribute},
        r#type::IntegerType,
    },
};
use mlir_sys::*;

/// Declares the devices and links of a system at the head of a module, in place of those that are there.
///
/// Every pin must name a device of the new system.
pub(super) fn declare(context: &Context, module: MlirOperation, system: &System) -> Result<(), Failure> {
    check_references(module, system)?;
    check_names(module, system)?;
    walk(module, &mut remove_costs);
    let Some(&body) = blocks(module).first() else { return Ok(()) };
    for operation in operations(body) {
        if matches!(operation_name(operation), "divi.device" | "divi.link") {
            // SAFETY: nothing has these operations as operands, and the list of them is our own.
            unsafe { mlirOperationDestroy(operation) };
        }
    }
    // SAFETY: module and body are alive.
    let (location, body) = unsafe { (Location::from_raw(mlirOperationGetLocation(module)), BlockRef::from_raw(body)) };
    // In the order in which they come.
    let mut nodes: Vec<&str> = vec![];
    for node in system.devices.iter().filter_map(|device| device.node.as_deref()) {
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    let devices = system.devices.iter().map(|device| {
        let i64 = IntegerType::new(context, 64).into();
        let sizes: Vec<Attribute<'_>> =
            device.batch_sizes.iter().map(|&size| IntegerAttribute::new(i64, size.into()).into()).collect();
        let mut builder = divi::DeviceOperationBuilder::new(context, location)
            .sym_name(StringAttribute::new(context, &device.id))
            .kind(StringAttribute::new(context, device.kind.name()))
            .memory(IntegerAttribute::new(i64, i64::try_from(device.memory.0).unwrap_or(i64::MAX)))
            .batch_sizes(ArrayAttribute::new(context, &sizes));
        if let Some(arch) = &device.arch {
            builder = builder.arch(StringAttribute::new(context, arch));
        }
        if device.streams_weights {
            builder = builder.weights(StringAttribute::new(context, "streamed"));
        }
        if let Some(threads) = device.threads {
            builder = builder.threads(IntegerAttribute::new(i64, threads.into()));
        }
        if let Some(node) = device.node.as_deref().and_then(|own| nodes.iter().position(|node| *node == own)) {
            builder = builder.node(IntegerAttribute::new(i64, node as i64));
        }
        Operation::from(builder.build())
    });
    let links = system.links.iter().map(|link| {
        let f64 = melior::ir::Type::float64(context);
        let mut builder = divi::LinkOperationBuilder::new(context, location)
            .from(FlatSymbolRefAttribute::new(context, &system.devices[link.from].id))
            .to(FlatSymbolRefAttribute::new(context, &system.devices[link.to].id))
            .bandwidth(FloatAttribute::new(context, f64, link.bandwidth.0))
            .latency(FloatAttribute::new(context, f64, link.latency.0));
        if let Some(bus) = &link.bus {
            builder = builder.bus(StringAttribute::new(context, bus));
        }
        Operation::from(builder.build())
    });
    let contention = StringAttribute::new(context, system.contention.name());
    set_attribute(module, "divi.contention", contention.to_raw());
    for (position, operation) in devices.chain(links).enumerate() {
        body.insert_operation(position, operation);
    }
    Ok(())
}

/// Takes away what an earlier run has put on an operation: it is about other devices.
fn remove_costs(operation: MlirOperation) {
    const NAMES: &[&str] = &[
        "divi.bound",
        "divi.cost",
        "divi.costs",
        "divi.flops",
        "divi.input_bytes",
        "divi.output_bytes",
        "divi.read_weight_bytes",
        "divi.scratch_bytes",
        "divi.weight_bytes",
    ];
    for name in NAMES {
        // SAFETY: the operation is alive.
        unsafe { mlirOperationRemoveAttributeByName(operation, StringRef::new(name).to_raw()) };
    }
}

/// A device is a symbol of the module, so nothing else can have its name.
fn check_names(module: MlirOperation, system: &System) -> Result<(), Failure> {
    for operation in blocks(module).into_iter().flat_map(operations) {
        if matches!(operation_name(operation), "divi.device" | "divi.link") {
            continue;
        }
        let name = attribute(operation, "sym_name").and_then(string_attribute);
        if let Some(name) = name.filter(|name| system.devices.iter().any(|device| device.id == *name)) {
            let message = format!(
                "{} is called @{name}, as a device of system '{}' is: give the device another id",
                describe(operation),
                system.name
            );
            error(operation, &message);
            return Err(Failure);
        }
    }
    Ok(())
}

/// What refers to a device refers to one of the system.
fn check_references(module: MlirOperation, system: &System) -> Result<(), Failure> {
    let ids: Vec<&str> = system.devices.iter().map(|device| device.id.as_str()).collect();
    let mut failed = false;
    walk(module, &mut |operation| {
        for name in ["divi.pin", "divi.device", "divi.resident"] {
            let Some(value) = attribute(operation, name) else { continue };
            if let Some(device) = symbol_attribute(value).filter(|device| !ids.contains(device)) {
                let message = format!(
                    "attribute '{name}' names @{device}, which system '{}' does not have: it has {}",
                    system.name,
                    ids.join(", ")
                );
                error(operation, &message);
                failed = true;
            }
        }
    });
    if failed { Err(Failure) } else { Ok(()) }
}
