//! Placement of operators: merging operators must not move work to another device.

use divi_dialect::{Operation, Value, attr, op};
use melior::ir::Attribute;

/// Returns the placement attributes of an operation: `divi.pin`, `divi.device`.
pub(super) fn placement(operation: Operation<'_>) -> [Option<Attribute<'_>>; 2] {
    [attr::PIN.name(), attr::DEVICE.name()].map(|name| operation.attribute(name))
}

/// Returns true if placement allows a value to replace the result of an operation: the value is on the device of the
/// result, and its producer has the same pin if the operation has one.
pub(super) fn may_stand_for(value: Value<'_>, operation: Operation<'_>) -> bool {
    let [pin, device] = placement(operation);
    let (value_pin, value_device) = place_of(value);
    (pin.is_none() || pin == value_pin) && device == value_device
}

/// Returns the pin of a value's producer and the device that the value is on, where they are set.
fn place_of(value: Value<'_>) -> (Option<Attribute<'_>>, Option<Attribute<'_>>) {
    let Some(owner) = value.defining_op() else { return (None, argument_device(value)) };
    let [pin, device] = placement(owner);
    match owner.name() {
        op::TRANSFER => (pin, owner.attribute(attr::TO.name())),
        op::LAUNCH => (pin, owner.attribute(attr::LAUNCH_DEVICE.name())),
        _ => (pin, device),
    }
}

/// Returns `divi.device` of a function's argument.
fn argument_device(argument: Value<'_>) -> Option<Attribute<'_>> {
    let function = argument.argument_block()?.parent().filter(|function| function.name() == op::FUNC)?;
    function.signature_attribute(attr::ARG_ATTRS, argument.argument_number()?, attr::DEVICE.name())
}
