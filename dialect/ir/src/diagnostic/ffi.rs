//! Calls of MLIR's diagnostic engine.

use crate::{
    context::text,
    ffi::{call, diviEmitError, diviEmitWarning},
};
use melior::{StringRef, ir::Location};
use mlir_sys::*;

pub(super) fn emit_error(location: Location<'_>, message: &str) {
    call!(diviEmitError(location.to_raw(), StringRef::new(message).to_raw()));
}

pub(super) fn emit_warning(location: Location<'_>, message: &str) {
    call!(diviEmitWarning(location.to_raw(), StringRef::new(message).to_raw()));
}

pub(super) fn location_name(location: Location<'_>) -> Option<&str> {
    call!(mlirLocationIsAName(location.to_raw())).then(|| {
        let name = call!(mlirLocationNameGetName(location.to_raw()));
        let name = call!(mlirIdentifierStr(name));
        call!(text(name))
    })
}
