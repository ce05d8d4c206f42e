//! What the steps of a plan (`divi.launch`, `divi.transfer`, `divi.slice`, `divi.gather`) say of themselves, once they are
//! verified.

use crate::ir::{attribute, integer_attribute, integers_attribute, symbol_attribute};
use mlir_sys::MlirOperation;

/// The device, or the stage, of that name.
pub(crate) fn symbol<'m>(step: MlirOperation, name: &str) -> &'m str {
    attribute(step, name).and_then(symbol_attribute).unwrap_or_default()
}

pub(crate) fn integer(step: MlirOperation, name: &str) -> u64 {
    // An attribute that is left out is 1, which only `outer` may be.
    attribute(step, name).and_then(integer_attribute).and_then(|value| u64::try_from(value).ok()).unwrap_or(1)
}

pub(crate) fn integers(step: MlirOperation, name: &str) -> Vec<u64> {
    let values = attribute(step, name).and_then(integers_attribute).unwrap_or_default();
    values.into_iter().map(|value| value as u64).collect()
}
