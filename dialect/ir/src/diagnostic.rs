//! Diagnostics on operations.

mod ffi;

use crate::Operation;
use melior::ir::Location;

/// Emits an error at an operation's location.
pub fn emit_error(operation: Operation<'_>, message: &str) {
    emit_error_at(operation.location(), message);
}

/// Emits an error at a location.
pub fn emit_error_at(location: Location<'_>, message: &str) {
    ffi::emit_error(location, message);
}

/// Returns the name of a `NameLoc`; `None` for other locations.
pub fn location_name(location: Location<'_>) -> Option<&str> {
    ffi::location_name(location)
}

/// Emits a warning at an operation's location.
pub fn emit_warning(operation: Operation<'_>, message: &str) {
    ffi::emit_warning(operation.location(), message);
}
