//! Declares a system as operations: `divi.device` and `divi.link`.

use crate::ir::{Failure, describe, error};
use divi_cost::system::{Device, Link, System};
use divi_dialect::{NamedAttribute, NewOperation, Operation, attr, op};
use melior::{ContextRef, ir::Attribute};

/// Declares the devices and links of a system at the head of a module, replacing existing ones.
///
/// Every pin must name a device of the new system.
pub(super) fn declare(module: Operation<'_>, system: &System) -> Result<(), Failure> {
    let context = module.context();
    check_references(module, system)?;
    check_names(module, system)?;
    module.walk(remove_costs);
    let Some(&body) = module.blocks().first() else { return Ok(()) };
    for operation in body.operations() {
        if matches!(operation.name(), op::DEVICE | op::LINK) {
            operation.erase();
        }
    }
    let nodes = system.nodes();
    module.set(attr::CONTENTION, system.contention.name());
    let devices = system.devices.iter().map(|device| (op::DEVICE, device_attributes(context, device, &nodes)));
    let links = system.links.iter().map(|link| (op::LINK, link_attributes(context, system, link)));
    for (position, (name, attributes)) in devices.chain(links).enumerate() {
        let attributes: Vec<_> =
            attributes.into_iter().map(|(name, value)| NamedAttribute::with_name(name, value)).collect();
        let new = NewOperation { attributes: &attributes, ..NewOperation::new(name, module.location()) };
        new.create().insert_at(body, position);
    }
    Ok(())
}

/// Returns the attributes of a `divi.device`. `nodes` lists the names of all nodes.
fn device_attributes<'m>(
    context: ContextRef<'m>,
    device: &Device,
    nodes: &[&str],
) -> Vec<(&'static str, Attribute<'m>)> {
    let sizes: Vec<_> = device.batch_sizes.iter().map(|&size| attr::integer(context, size.into())).collect();
    let memory = i64::try_from(device.memory.0).unwrap_or(i64::MAX);
    let mut attributes = vec![
        (attr::SYM_NAME.name(), attr::string(context, &device.id)),
        (attr::KIND.name(), attr::string(context, device.kind.name())),
        ("memory", attr::integer(context, memory)),
        ("batch_sizes", attr::array(context, &sizes)),
    ];
    attributes.extend(device.arch.as_ref().map(|arch| ("arch", attr::string(context, arch))));
    attributes.extend(device.streams_weights.then(|| ("weights", attr::string(context, "streamed"))));
    attributes.extend(device.threads.map(|threads| ("threads", attr::integer(context, threads.into()))));
    let node = device.node.as_deref().and_then(|own| nodes.iter().position(|node| *node == own));
    attributes.extend(node.map(|node| ("node", attr::integer(context, node as i64))));
    attributes
}

/// Returns the attributes of a `divi.link`.
fn link_attributes<'m>(context: ContextRef<'m>, system: &System, link: &Link) -> Vec<(&'static str, Attribute<'m>)> {
    let mut attributes = vec![
        (attr::FROM.name(), attr::symbol(context, &system.devices[link.from].id)),
        (attr::TO.name(), attr::symbol(context, &system.devices[link.to].id)),
        ("bandwidth", attr::float(context, link.bandwidth.0)),
        ("latency", attr::float(context, link.latency.0)),
    ];
    attributes.extend(link.bus.as_ref().map(|bus| ("bus", attr::string(context, bus))));
    attributes
}

/// Removes the annotations of an earlier run, which refer to other devices.
fn remove_costs(operation: Operation<'_>) {
    operation.remove(attr::BOUND);
    operation.remove(attr::COST);
    operation.remove(attr::COSTS);
    for key in [
        attr::FLOPS,
        attr::INPUT_BYTES,
        attr::OUTPUT_BYTES,
        attr::READ_WEIGHT_BYTES,
        attr::SCRATCH_BYTES,
        attr::WEIGHT_BYTES,
    ] {
        operation.remove(key);
    }
}

/// Checks that no other symbol of the module has the name of a device.
fn check_names(module: Operation<'_>, system: &System) -> Result<(), Failure> {
    for operation in module.children() {
        if matches!(operation.name(), op::DEVICE | op::LINK) {
            continue;
        }
        let name = operation.symbol_name();
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

/// Checks that every reference to a device names one of the system.
fn check_references(module: Operation<'_>, system: &System) -> Result<(), Failure> {
    let ids: Vec<&str> = system.devices.iter().map(|device| device.id.as_str()).collect();
    let mut failed = false;
    module.walk(|operation| {
        for key in [attr::PIN, attr::DEVICE, attr::RESIDENT] {
            if let Some(device) = operation.get(key).filter(|device| !ids.contains(device)) {
                let message = format!(
                    "attribute '{}' names @{device}, which system '{}' does not have: it has {}",
                    key.name(),
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
