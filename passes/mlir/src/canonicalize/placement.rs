//! Where operators must run or do: what is merged must not move.

use divi_dialect::{Operation, Value, attr, op};
use melior::ir::Attribute;

/// Returns what an operation says about its place: `divi.pin`, `divi.device`.
pub(super) fn placement(operation: Operation<'_>) -> [Option<Attribute<'_>>; 2] {
    [attr::PIN.name(), attr::DEVICE.name()].map(|name| operation.attribute(name))
}

/// Returns true if a value can be used for the result of an operation as far as devices go: it is where the result would be, and
/// no pin is lost that nobody else has.
pub(super) fn may_stand_for(value: Value<'_>, operation: Operation<'_>) -> bool {
    let [pin, device] = placement(operation);
    let (value_pin, value_device) = place_of(value);
    (pin.is_none() || pin == value_pin) && device == value_device
}

/// Returns the pin of what computes a value, and the device that the value is on, where somebody says.
fn place_of(value: Value<'_>) -> (Option<Attribute<'_>>, Option<Attribute<'_>>) {
    let Some(owner) = value.definer() else { return (None, argument_device(value)) };
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
