//! What the steps of a plan (`divi.launch`, `divi.transfer`, `divi.slice`, `divi.gather`) say of themselves, once they are
//! verified.

use divi_dialect::{Operation, attr};

/// The device, or the stage, of that name.
pub(crate) fn symbol<'m>(step: Operation<'m>, name: &str) -> &'m str {
    step.attribute(name).and_then(attr::as_symbol).unwrap_or_default()
}

pub(crate) fn integer(step: Operation<'_>, name: &str) -> u64 {
    // An attribute that is left out is 1, which only `outer` may be.
    step.attribute(name).and_then(attr::as_integer).and_then(|value| u64::try_from(value).ok()).unwrap_or(1)
}

pub(crate) fn integers(step: Operation<'_>, name: &str) -> Vec<u64> {
    let values = step.attribute(name).and_then(attr::as_integers).unwrap_or_default();
    values.into_iter().map(|value| value as u64).collect()
}
