//! Where operators must run or do: what is merged must not move.

use crate::ir::{attribute, operation_name};
use melior::StringRef;
use mlir_sys::*;

/// What an operation says about its place: `divi.pin`, `divi.device`.
pub(super) fn placement(operation: MlirOperation) -> [Option<MlirAttribute>; 2] {
    ["divi.pin", "divi.device"].map(|name| attribute(operation, name))
}

pub(super) fn same(a: [Option<MlirAttribute>; 2], b: [Option<MlirAttribute>; 2]) -> bool {
    a.into_iter().zip(b).all(|(a, b)| equal(a, b))
}

fn equal(a: Option<MlirAttribute>, b: Option<MlirAttribute>) -> bool {
    match (a, b) {
        // SAFETY: the attributes are alive.
        (Some(a), Some(b)) => unsafe { mlirAttributeEqual(a, b) },
        (None, None) => true,
        _ => false,
    }
}

/// Whether a value can be used for the result of an operation as far as devices go: it is where the result would be, and
/// no pin is lost that nobody else has.
pub(super) fn may_stand_for(value: MlirValue, operation: MlirOperation) -> bool {
    let [pin, device] = placement(operation);
    let (value_pin, value_device) = place_of(value);
    (pin.is_none() || equal(pin, value_pin)) && equal(device, value_device)
}

/// The pin of what computes a value, and the device that the value is on, where somebody says.
fn place_of(value: MlirValue) -> (Option<MlirAttribute>, Option<MlirAttribute>) {
    // SAFETY: the value is alive.
    unsafe {
        if mlirValueIsABlockArgument(value) {
            return (None, argument_device(value));
        }
        let owner = mlirOpResultGetOwner(value);
        let [pin, device] = placement(owner);
        match operation_name(owner) {
            "divi.transfer" => (pin, attribute(owner, "to")),
            "divi.launch" => (pin, attribute(owner, "device")),
            _ => (pin, device),
        }
    }
}

/// `divi.device` of a function's argument.
fn argument_device(argument: MlirValue) -> Option<MlirAttribute> {
    // SAFETY: the argument is alive; a function has one dictionary an argument.
    unsafe {
        let function = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(argument));
        if function.ptr.is_null() || operation_name(function) != "func.func" {
            return None;
        }
        let attributes = attribute(function, "arg_attrs")?;
        let index = mlirBlockArgumentGetArgNumber(argument);
        if index >= mlirArrayAttrGetNumElements(attributes) {
            return None;
        }
        let dictionary = mlirArrayAttrGetElement(attributes, index);
        let device = mlirDictionaryAttrGetElementByName(dictionary, StringRef::new("divi.device").to_raw());
        (!device.ptr.is_null()).then_some(device)
    }
}
