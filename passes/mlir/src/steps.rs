//! Attributes of the verified steps of a plan (`divi.launch`, `divi.transfer`, `divi.slice`, `divi.gather`).

use crate::ir::{Failure, describe, error};
use divi_dialect::{
    Operation,
    attr::{Integer, Integers, Key, Symbol},
};

/// Returns the name of a device or a stage.
pub(crate) fn symbol(step: Operation<'_>, key: Key<Symbol>) -> &str {
    step.get(key).unwrap_or_default()
}

pub(crate) fn integer(step: Operation<'_>, key: Key<Integer>) -> u64 {
    // The default is 1, and only `outer` may be omitted.
    step.get(key).and_then(|value| u64::try_from(value).ok()).unwrap_or(1)
}

pub(crate) fn integers(step: Operation<'_>, key: Key<Integers>) -> Vec<u64> {
    step.get(key).unwrap_or_default().into_iter().map(|value| value as u64).collect()
}

/// Emits the error that an operation of the entry function is not a step.
pub(crate) fn refuse(operation: Operation<'_>) -> Failure {
    let message =
        format!("{} is not a step of a plan: outline the plan first, with --divi-outline", describe(operation));
    error(operation, &message);
    Failure
}
